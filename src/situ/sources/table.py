"""Cells of tables → values of declared types.

Files of text give texts, databases and Parquet give values of Python, of which some stand for others: SQLite has no
booleans and no instants, JSON comes as text from one driver and as lists from the next. What is meant plainly is
read, what would have to be guessed is refused: an instant without zone, a number that loses digits. The values are
those of :mod:`situ.types.scalars`.
"""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, assert_never

from situ.errors import SituError
from situ.event.strict_json import read_json
from situ.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    STRING,
    TIMESTAMP,
    Decimal,
    ListOf,
    Primitive,
    Struct,
    Type,
    plain,
)
from situ.types.scalars import READERS, Unfit, decimal_reader, number_remedy

Reader = Callable[[Any], Any]
"""From a cell that is not null to its value; raises :class:`~situ.types.scalars.Unfit` with the remedy."""

_WHOLE = re.compile(r"[-+]?[0-9]{1,40}")
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][-+]?[0-9]{1,4})?")
_MOST_MICROSECONDS = timedelta(microseconds=2**63 - 1)


def cell_reader(type: Type, *, text: bool = False, deep: bool = False) -> Reader:
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


def _stripped(read: Reader) -> Reader:
    return lambda cell: read(cell.strip())


def _boolean_text(cell: str) -> bool:
    match cell.strip().lower():
        case "true":
            return True
        case "false":
            return False
    raise Unfit("Write true or false.")


def _whole_text(type: Primitive) -> Reader:
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


def _whole(type: Primitive) -> Reader:
    def read(cell: Any) -> int:
        if isinstance(cell, decimal.Decimal) and cell.is_finite() and cell == cell.to_integral_value():
            cell = int(cell)
        value: int = READERS[type](cell)
        return value

    return read


def _double(cell: Any) -> float:
    value: float = READERS[DOUBLE](float(cell) if isinstance(cell, decimal.Decimal) else cell)
    return value


def _decimal(type: Decimal) -> Reader:
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


def _list(element: Reader) -> Reader:
    def read(cell: Any) -> list[Any]:
        items = _from_json(cell)
        if not isinstance(items, list | tuple):
            raise Unfit("Lists stand in square brackets.")
        return [None if item is None else element(item) for item in items]

    return read


def _struct(struct: Struct, deep: bool) -> Reader:
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


_VALUES: dict[Primitive, Reader] = {
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
_TEXTS: dict[Primitive, Reader] = {
    BOOLEAN: _boolean_text,
    INT: _whole_text(INT),
    LONG: _whole_text(LONG),
    DOUBLE: _double_text,
    STRING: READERS[STRING],
}
