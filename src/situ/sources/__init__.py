"""Sources: tables outside of Situ, what is declared about them and what was read from them; and push sources."""

from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Push, Source, SourceKind
from situ.sources.table import Table, TableIndex, make_table

__all__ = ["Push", "Source", "SourceKind", "Table", "TableIndex", "load_pushes", "load_sources", "make_table"]
