"""A table as it was read from a source: cells as values of declared types, rows found by key.

:func:`make_table` makes a :class:`Table` of cells, column by column; :func:`cell_reader` says how the cells of one
column are read. Where a table comes from is not known here.
"""

from __future__ import annotations

import decimal
import hashlib
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

import msgspec

from situ.lang.catalogue import CELL_UNFIT, KEY_TWICE
from situ.lang.documents.strict_json import read_json
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.types.json_codec import encoder
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    format_attribute,
    plain,
)
from situ.lang.types.scalars import READERS, Unfit, decimal_reader, describe, number_remedy
from situ.sources.model import Source, may_be_as_of, may_be_key

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Cells → values of declared types, those of :mod:`situ.lang.types.scalars`.
#
# Files of text give texts, databases and Parquet give values of Python, of which some stand for others: SQLite has no
# booleans and no instants, JSON comes as text from one driver and as lists from the next. What is meant plainly is
# read, what would have to be guessed is refused: an instant without zone, a number that loses digits.

CellReader = Callable[[Any], Any]
"""From a cell that is not null to its value; raises :class:`~situ.lang.types.scalars.Unfit` with the remedy."""

_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,4})?")
_MOST_MICROSECONDS = timedelta(microseconds=2**63 - 1)


def cell_reader(type: Type, *, text: bool = False, deep: bool = False) -> CellReader:
    """How cells of a column of this type are read; with ``text`` all of them are texts.

    With ``deep`` so are the values inside of structs and lists, which come as dictionaries and lists of texts.
    """
    bare = plain(type)
    match bare:
        case Primitive():
            return _TEXTS.get(bare, _stripped(_VALUES[bare])) if text else _VALUES[bare]
        case Decimal():
            return _stripped(_decimal(bare)) if text else _decimal(bare)
        case ListOf():
            return _list(cell_reader(bare.element, text=deep, deep=deep))
        case Struct():
            return _struct(bare, deep)
        case _:
            assert_never(bare)


# ── texts ─────────────────────────────────────────────────────────────────────────────────────────


def _stripped(read: CellReader) -> CellReader:
    return lambda cell: read(cell.strip())


def _boolean_text(cell: str) -> bool:
    match cell.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise Unfit("Write true or false.")


def _whole_text(type: Primitive) -> CellReader:
    def read(cell: str) -> int:
        text = cell.strip()
        if not _WHOLE.fullmatch(text):
            raise Unfit("Whole numbers are written with digits alone.")
        value: int = READERS[type](int(text))
        return value

    return read


def _double_text(cell: str) -> float:
    text = cell.strip()
    if not _NUMBER.fullmatch(text):
        raise Unfit(number_remedy(text).replace(", and without quotes", "") if "," in text else "")
    value: float = READERS[DOUBLE](float(text))
    return value


# ── values of Python ──────────────────────────────────────────────────────────────────────────────


def _boolean(cell: Any) -> bool:
    if type(cell) is int and cell in (0, 1):
        return cell == 1
    value: bool = READERS[BOOLEAN](cell)
    return value


def _whole(type: Primitive) -> CellReader:
    def read(cell: Any) -> int:
        if isinstance(cell, decimal.Decimal) and cell.is_finite() and cell == cell.to_integral_value():
            cell = int(cell)
        value: int = READERS[type](cell)
        return value

    return read


def _double(cell: Any) -> float:
    value: float = READERS[DOUBLE](float(cell) if isinstance(cell, decimal.Decimal) else cell)
    return value


def _decimal(type: Decimal) -> CellReader:
    exact = decimal_reader(type)

    def read(cell: Any) -> decimal.Decimal:
        if isinstance(cell, decimal.Decimal):
            if not cell.is_finite() or abs(cell.adjusted()) > 60:
                raise Unfit(f"Decimals here have at most {type.precision} digits.")
            cell = format(cell, "f")
            # Databases fill up with zeros to the scale of their column.
            cell = cell.rstrip("0").rstrip(".") if "." in cell else cell
        return exact(cell)

    return read


def _bytes(cell: Any) -> bytes:
    if isinstance(cell, bytes | bytearray | memoryview):
        return bytes(cell)
    value: bytes = READERS[BYTES](cell)
    return value


def _date(cell: Any) -> date:
    if type(cell) is date:
        return cell
    if isinstance(cell, datetime):
        raise Unfit("It has a time of day: declare the column as `timestamp`.")
    value: date = READERS[DATE](cell)
    return value


def _timestamp(cell: Any) -> datetime:
    if not isinstance(cell, datetime):
        value: datetime = READERS[TIMESTAMP](cell)
        return value
    if cell.tzinfo is None:
        raise Unfit("It has no time zone: store instants with one, or add it in the query (`AT TIME ZONE 'UTC'`).")
    try:
        return cell.astimezone(UTC)
    except OverflowError:
        raise Unfit("There is no such instant in the years 1 to 9999.") from None


def _duration(cell: Any) -> timedelta:
    if isinstance(cell, timedelta):
        if abs(cell) > _MOST_MICROSECONDS:
            raise Unfit("Durations reach to about 292,000 years.")
        return cell
    value: timedelta = READERS[DURATION](cell)
    return value


def _from_json(cell: Any) -> Any:
    if not isinstance(cell, str):
        return cell
    try:
        return read_json(cell)
    except SituError:
        raise Unfit("Structs and lists are written as JSON.") from None


def _list(element: CellReader) -> CellReader:
    def read(cell: Any) -> list[Any]:
        items = _from_json(cell)
        if not isinstance(items, list | tuple):
            raise Unfit("Lists stand in square brackets.")
        return [None if item is None else element(item) for item in items]

    return read


def _struct(struct: Struct, deep: bool) -> CellReader:
    steps = tuple((each, cell_reader(each.type, text=deep, deep=deep)) for each in struct.attributes)

    def read(cell: Any) -> dict[str, Any]:
        found = _from_json(cell)
        if not isinstance(found, dict):
            raise Unfit("Structs are written as objects, {…}.")
        result: dict[str, Any] = {}
        for attribute, inner in steps:
            value = found.get(attribute.name)
            if value is not None:
                result[attribute.name] = inner(value)
            elif attribute.default is not None:
                result[attribute.name] = attribute.default
            elif not attribute.optional:
                raise Unfit(f"`{attribute.name}` is missing in it.")
        return result

    return read


_VALUES: dict[Primitive, CellReader] = {
    BOOLEAN: _boolean,
    INT: _whole(INT),
    LONG: _whole(LONG),
    DOUBLE: _double,
    STRING: READERS[STRING],
    BYTES: _bytes,
    DATE: _date,
    TIMESTAMP: _timestamp,
    DURATION: _duration,
}
_TEXTS: dict[Primitive, CellReader] = {
    BOOLEAN: _boolean_text,
    INT: _whole_text(INT),
    LONG: _whole_text(LONG),
    DOUBLE: _double_text,
    STRING: READERS[STRING],
}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tables: immutable rows of typed values, found by key, and by key as of an instant.
#
# Rows are structs as events hold them, dictionaries without the attributes that are null; they are shared by all who
# look them up and must not be changed. Nulls never match, neither in the table nor in what is looked for.

TableRow = Mapping[str, Any]
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
    source: Source, attribute: Attribute, cells: Sequence[Any], read: CellReader, problems: list[Problem]
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

    def __init__(self, *, source: str, row: Struct, rows: tuple[TableRow, ...]) -> None:
        self.source = source
        self.row = row
        """What one row is."""
        self.rows = rows
        self.digest = _digest(row, rows)
        """SHA-256 of the content in hexadecimal: of names, types and values, whatever the order of rows."""
        self._indexes: dict[Keyed, TableIndex] = {}

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

    def index(self, columns: Sequence[str], as_of: str = "") -> TableIndex:
        """Rows by these columns, made at the first call; :class:`SituError` with S113 if a key has several rows."""
        keyed = (tuple(columns), as_of)
        found = self._indexes.get(keyed)
        if found is None:
            found = self._indexes[keyed] = TableIndex(self, *keyed)
        return found

    def find(self, key: Mapping[str, Any], as_of: str = "", at: datetime | None = None) -> TableRow | None:
        """The row whose columns have these values; with ``as_of`` the last of them that is not after ``at``."""
        return self.index(tuple(key), as_of).find(tuple(key.values()), at)


class TableIndex:
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
        rows: dict[tuple[Any, ...], list[TableRow]] = {}
        times: dict[tuple[Any, ...], list[datetime]] = {}
        for number, key, time in sorted(entries, key=lambda entry: entry[2]):
            rows.setdefault(key, []).append(table.rows[number])
            times.setdefault(key, []).append(time)
        self._rows, self._times = rows, times

    @property
    def row(self) -> Callable[[tuple[Any, ...]], TableRow | None]:
        """What :meth:`find` does where there is one row for a key, without a call of ours."""
        assert not self.as_of
        return self._rows.get

    def find(self, key: tuple[Any, ...], at: datetime | None = None) -> TableRow | None:
        """The row with these values, in the order of ``columns``; of several the last that is not after ``at``."""
        if not self.as_of:
            row: TableRow | None = self._rows.get(key)
            return row
        times = self._times.get(key)
        if times is None or at is None:
            return None
        number = bisect_right(times, at)
        return self._rows[key][number - 1] if number else None


_ALWAYS = datetime(1, 1, 1, tzinfo=UTC)


def _entries(
    rows: tuple[TableRow, ...], columns: tuple[str, ...], as_of: str
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


def _digest(row: Struct, rows: tuple[TableRow, ...]) -> str:
    result = hashlib.sha256()
    for each in row.attributes:
        result.update(f"{each.name}: {format_attribute(each)}\n".encode())
    encode = encoder(row)
    for text in sorted(msgspec.json.encode(encode(values)) for values in rows):
        result.update(text)
        result.update(b"\n")
    return result.hexdigest()
