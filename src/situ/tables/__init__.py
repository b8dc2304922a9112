"""Tables of others, read from files and databases and kept until they are too old."""
