"""Reading the data of rows: only the attributes that filters look at, as the values they work with.

The text of a row is canonical and its type known, so it is read in one go, in C, and trusted. The result equals what
:mod:`situ.types.decode` gives for these attributes.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable, Collection, Mapping
from typing import Any, TypedDict, assert_never

import msgspec

from situ.event.instants import instant_at
from situ.event.row import Row
from situ.types.encode import TYPE_KEY
from situ.types.model import Decimal, ListOf, Primitive, Struct, Type, plain
from situ.types.python_values import PYTHON_TYPES

Data = Mapping[str, Any]


def data_reader(event: Struct, names: Collection[str] | None) -> Callable[[bytes], Data]:
    """A function from the text of an event's data to those of its attributes; None: all of them."""
    return msgspec.json.Decoder(_dict(event, names)).decode


def read_envelope(row: Row) -> Mapping[str, Any]:
    """What filters see of the envelope."""
    return {
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": instant_at(row.time),
        "confidence": row.confidence,
        "received": instant_at(row.recv),
    }


def _shape(type: Type) -> Any:
    bare = plain(type)
    match bare:
        case Primitive():
            return PYTHON_TYPES[bare]
        case Decimal():
            return decimal.Decimal
        case ListOf():
            return list[_shape(bare.element) | None]  # type: ignore[misc]  # made at run time
        case Struct():
            return _dict(bare, None)
        case _:
            assert_never(bare)


def _dict(struct: Struct, names: Collection[str] | None) -> Any:
    shapes = {each.name: _shape(each.type) for each in struct.attributes if names is None or each.name in names}
    shapes[TYPE_KEY] = str
    return TypedDict(struct.name or "Data", shapes, total=False)  # type: ignore[operator]  # made at run time
