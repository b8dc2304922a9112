"""Sources: tables outside of Situ, what is declared about them and what was read from them; and push sources."""

from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Kind, Push, Source
from situ.sources.table import Index, Table, make_table

__all__ = ["Index", "Kind", "Push", "Source", "Table", "load_pushes", "load_sources", "make_table"]
