"""Rows of tables for whoever converts events: the tables in use now, and functions that find rows in them.

An engine puts tables in use between two batches or two messages, and never within one. What was compiled stays as it
is: it asks here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from situ.contexts.model import TableLookup
from situ.contexts.transform.function_calls import ExternalValue, FindRow
from situ.contexts.transform.transformation import Transformation
from situ.sources.table import Keyed, Table, TableRow


class TableLookups:
    """The tables in use."""

    __slots__ = ("tables",)

    def __init__(self) -> None:
        self.tables: Mapping[str, Table] = MappingProxyType({})

    def finders(self, way: Transformation) -> dict[str, FindRow]:
        """How the rows that a transformation needs are found, by the names of its variables."""
        return {name: self._finder(each) for name, each in way.externals.items() if isinstance(each.of, TableLookup)}

    def _finder(self, external: ExternalValue) -> FindRow:
        lookup = external.of
        assert isinstance(lookup, TableLookup)
        source, as_of = lookup.source, lookup.as_of
        columns = tuple(column for column, _ in external.keys)
        count = len(columns)
        nothing: dict[tuple[Any, ...], TableRow] = {}
        known: tuple[object, Callable[[tuple[Any, ...]], TableRow | None]] = (None, nothing.get)
        """Tables and how rows are found in them, in one piece: another thread may ask, too."""

        def find(*values: Any) -> TableRow | None:
            nonlocal known
            tables, look = known
            if tables is not self.tables:
                tables = self.tables
                table = tables.get(source)
                if table is None:
                    raise ValueError(f"the table {source} was not read")
                index = table.index(columns, as_of)
                look = index.row if not as_of else lambda key: index.find(key[:count], key[count])
                known = (tables, look)
            return look(values)

        return find


def lookup_keys(ways: Iterable[Transformation]) -> Mapping[str, set[Keyed]]:
    """Which tables these transformations look up in, and by which columns."""
    found: dict[str, set[Keyed]] = {}
    for way in ways:
        for each in way.externals.values():
            if isinstance(each.of, TableLookup):
                columns = tuple(column for column, _ in each.keys)
                found.setdefault(each.of.source, set()).add((columns, each.of.as_of))
    return found
