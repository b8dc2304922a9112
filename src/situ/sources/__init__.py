"""Sources: tables outside of Situ, what is declared about them and what was read from them; and push sources.

It owns the notation of both, the queries they may hold (XML paths, SQL that only reads), how cells become values of
declared types, and tables whose rows are found by key. It knows types. It must not know what a concept or a policy is,
and reads no file and no database: `situ.tables` does.

Front door: the names below (Source, SourceKind, Push, load_sources, load_pushes, Table, TableIndex, make_table),
`model` (sources_as_json, pushes_as_json, may_be_as_of), `load` (sources_from_json, pushes_from_json), `table` (Keyed,
TableRow), `queries` (CellPath, cell_path, row_path, is_table), `declare` (SOURCE_KEYS, PUSH_KEYS, attribute_at).
"""

from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Push, Source, SourceKind
from situ.sources.table import Table, TableIndex, make_table

__all__ = ["Push", "Source", "SourceKind", "Table", "TableIndex", "load_pushes", "load_sources", "make_table"]
