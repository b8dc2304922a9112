"""The project folder: find, read, check, make, format, compare."""
