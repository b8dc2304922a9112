"""Tables outside of Situ that are looked up in: what is declared about them, and what was read from them."""

from situ.sources.load import load_sources
from situ.sources.model import Kind, Source
from situ.sources.table import Index, Table, make_table

__all__ = ["Index", "Kind", "Source", "Table", "load_sources", "make_table"]
