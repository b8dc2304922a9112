"""Tables of others, read from files and databases and kept until they are too old."""

from situ.tables.cache import Refreshed, Tables, open_tables
from situ.tables.in_use import TablesInUse
from situ.tables.reading import Reading

__all__ = ["Reading", "Refreshed", "Tables", "TablesInUse", "open_tables"]
