"""A table as it was read: immutable rows of typed values, found by key, and by key as of an instant.

Rows are structs as events hold them, dictionaries without the attributes that are null; they are shared by all who look
them up and must not be changed. Where a table comes from is not known here. Nulls never match, neither in the
table nor in what is looked for.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

import msgspec

from situ.catalogue import CELL_UNFIT, KEY_TWICE
from situ.errors import Problem, Problems, SituError
from situ.sources.cells import Reader, cell_reader
from situ.sources.model import Source, may_be_as_of, may_be_key
from situ.types.encode import encoder
from situ.types.model import Attribute, Struct
from situ.types.scalars import Unfit, describe
from situ.types.syntax import format_attribute

Row = Mapping[str, Any]
Keyed = tuple[tuple[str, ...], str]
"""How rows are looked up: by these columns, and as of the instant in that one; empty for none."""

_MOST_PROBLEMS = 20


def make_table(source: Source, cells: Mapping[str, Sequence[Any]], *, text: bool = False, deep: bool = False) -> Table:
    """The table of these cells, column by column; None is null.

    With ``text`` all cells are texts, with ``deep`` so are the values inside of cells that are structs or lists.

    :class:`SituError` with S112 for cells that do not fit, and S113 where rows have the key of the source twice.
    """
    problems: list[Problem] = []
    readers = [cell_reader(each.type, text=text, deep=deep) for each in source.columns]
    columns = [
        _column(source, each, cells[each.name], read, problems)
        for each, read in zip(source.columns, readers, strict=True)
    ]
    if problems:
        raise SituError(*problems)
    names = [each.name for each in source.columns]
    rows = tuple(
        {name: value for name, value in zip(names, values, strict=True) if value is not None}
        for values in zip(*columns, strict=True)
    )
    table = Table(source=source.name, row=source.row, rows=rows)
    if source.key:
        table.index(source.key, source.as_of)
    return table


def _column(
    source: Source, attribute: Attribute, cells: Sequence[Any], read: Reader, problems: list[Problem]
) -> list[Any]:
    values: list[Any] = []
    for number, cell in enumerate(cells, 1):
        try:
            if cell is not None:
                values.append(read(cell))
                continue
            if attribute.default is None and not attribute.optional:
                raise Unfit("Fill it, or declare the column `optional` or with a default.")
            values.append(attribute.default)
        except Unfit as error:
            values.append(None)
            if len(problems) < _MOST_PROBLEMS:
                problems.append(_unfit(source, attribute, number, cell, error.remedy))
    return values


def _unfit(source: Source, attribute: Attribute, row: int, cell: Any, remedy: str) -> Problem:
    return CELL_UNFIT(
        source.location,
        source=source.name,
        row=row,
        column=attribute.name,
        found=describe(cell),
        expected=str(attribute.type),
        remedy=remedy,
    )


class Table:
    """Rows of one source, as they were at one time. Two of them are equal if they hold the same rows, in any order."""

    __slots__ = ("_indexes", "digest", "row", "rows", "source")

    def __init__(self, *, source: str, row: Struct, rows: tuple[Row, ...]) -> None:
        self.source = source
        self.row = row
        """What one row is."""
        self.rows = rows
        self.digest = _digest(row, rows)
        """SHA-256 of the content in hexadecimal: of names, types and values, whatever the order of rows."""
        self._indexes: dict[Keyed, Index] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Table):
            return NotImplemented
        return (self.source, self.row, self.digest) == (other.source, other.row, other.digest)

    def __hash__(self) -> int:
        return hash((self.source, self.digest))

    def __repr__(self) -> str:
        return f"<Table {self.source}, {len(self.rows)} rows, {self.digest[:8]}>"

    def __getstate__(self) -> dict[str, Any]:
        # Indexes are made again where they are needed: what travels to workers stays small.
        return {"source": self.source, "row": self.row, "rows": self.rows, "digest": self.digest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.items():
            setattr(self, name, value)
        self._indexes = {}

    def index(self, columns: Sequence[str], as_of: str = "") -> Index:
        """Rows by these columns, made at the first call; :class:`SituError` with S113 if a key has several rows."""
        keyed = (tuple(columns), as_of)
        found = self._indexes.get(keyed)
        if found is None:
            found = self._indexes[keyed] = Index(self, *keyed)
        return found

    def find(self, key: Mapping[str, Any], as_of: str = "", at: datetime | None = None) -> Row | None:
        """The row whose columns have these values; with ``as_of`` the last of them that is not after ``at``."""
        return self.index(tuple(key), as_of).find(tuple(key.values()), at)


class Index:
    """The rows of a table by the values of some columns."""

    __slots__ = ("_rows", "_times", "as_of", "columns")

    def __init__(self, table: Table, columns: tuple[str, ...], as_of: str = "") -> None:
        _check(table.row, columns, as_of)
        self.columns = columns
        self.as_of = as_of
        entries = list(_entries(table.rows, columns, as_of))
        _check_unique(table, columns, as_of, entries)
        self._rows: Mapping[tuple[Any, ...], Any]
        self._times: Mapping[tuple[Any, ...], list[datetime]] = {}
        if not as_of:
            self._rows = {key: table.rows[number] for number, key, _ in entries}
            return
        rows: dict[tuple[Any, ...], list[Row]] = {}
        times: dict[tuple[Any, ...], list[datetime]] = {}
        for number, key, time in sorted(entries, key=lambda entry: entry[2]):
            rows.setdefault(key, []).append(table.rows[number])
            times.setdefault(key, []).append(time)
        self._rows, self._times = rows, times

    def find(self, key: tuple[Any, ...], at: datetime | None = None) -> Row | None:
        """The row with these values, in the order of ``columns``; of several the last that is not after ``at``."""
        if not self.as_of:
            row: Row | None = self._rows.get(key)
            return row
        times = self._times.get(key)
        if times is None or at is None:
            return None
        number = bisect_right(times, at)
        return self._rows[key][number - 1] if number else None


_ALWAYS = datetime(1, 1, 1, tzinfo=UTC)


def _entries(
    rows: tuple[Row, ...], columns: tuple[str, ...], as_of: str
) -> Iterator[tuple[int, tuple[Any, ...], datetime]]:
    """Number, key and time of the rows that can be found."""
    for number, row in enumerate(rows):
        key = tuple([row.get(column) for column in columns])
        time = _instant(row.get(as_of)) if as_of else _ALWAYS
        if time is not None and None not in key:
            yield number, key, time


def _instant(value: date | None) -> datetime | None:
    if value is None or isinstance(value, datetime):
        return value
    return datetime(value.year, value.month, value.day, tzinfo=UTC)


def _check(row: Struct, columns: tuple[str, ...], as_of: str) -> None:
    """Declarations were checked before: what is wrong here is a mistake of the caller."""
    for name in columns:
        attribute = row.attribute(name)
        if attribute is None or not may_be_key(attribute.type):
            raise ValueError(f"no rows can be found by {name!r}")
    time = row.attribute(as_of) if as_of else None
    if not columns or (as_of and (time is None or not may_be_as_of(time.type))):
        raise ValueError(f"no rows can be found by {columns} as of {as_of!r}")


def _check_unique(
    table: Table, columns: tuple[str, ...], as_of: str, entries: list[tuple[int, tuple[Any, ...], datetime]]
) -> None:
    seen: dict[tuple[Any, ...], int] = {}
    problems = Problems()
    for number, key, time in entries:
        first = seen.setdefault((*key, time), number)
        if first != number and len(problems) < _MOST_PROBLEMS:
            row = table.rows[number]
            shown = ", ".join(f"{name} {_shown(row[name])}" for name in (*columns, *((as_of,) if as_of else ())))
            problems.add(KEY_TWICE(source=table.source, first=first + 1, second=number + 1, key=shown))
    problems.raise_errors()


def _shown(value: Any) -> str:
    text = str(value)
    return f"`{text}`" if len(text) <= 60 else f"`{text[:59]}…`"


def _digest(row: Struct, rows: tuple[Row, ...]) -> str:
    result = hashlib.sha256()
    for each in row.attributes:
        result.update(f"{each.name}: {format_attribute(each)}\n".encode())
    encode = encoder(row)
    for text in sorted(msgspec.json.encode(encode(values)) for values in rows):
        result.update(text)
        result.update(b"\n")
    return result.hexdigest()
