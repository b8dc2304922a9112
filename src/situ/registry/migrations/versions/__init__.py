"""One module for each format of the database, in order."""
