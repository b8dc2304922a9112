"""Reading the data of rows: only the attributes that filters look at, as the values they work with.

The text of a row is canonical and its type known, so it is read in one go, in C, and trusted. The result equals what
:mod:`situ.types.decode` gives for these attributes. A row that was read into a struct has some of them at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from situ.event.instants import instant_at
from situ.event.plans import field_of, shape_of
from situ.event.row import Row
from situ.types.model import Primitive, Struct, Type, plain
from situ.types.python_values import PYTHON_TYPES
from situ.types.shapes import dict_shape

Data = Mapping[str, Any]


def data_reader(event: Struct, names: Collection[str] | None) -> Callable[[bytes], Data]:
    """A function from the text of an event's data to those of its attributes; None: all of them."""
    return msgspec.json.Decoder(dict_shape(event, names)).decode


def row_reader(event: Struct, names: Collection[str] | None) -> Callable[[Row], Data]:
    """The same from a row: out of its struct, if that holds the very values, else out of its text."""
    decode = data_reader(event, names)
    wanted = [(place, each) for place, each in enumerate(event.attributes) if names is None or each.name in names]
    if not all(_is_at_hand(each.type) for _, each in wanted):
        return lambda row: decode(row.data)
    made = shape_of(event)
    fields = [(each.name, field_of(place)) for place, each in wanted]

    def read(row: Row) -> Data:
        value = row.value
        if type(value) is not made:
            return decode(row.data)
        return {name: found for name, field in fields if (found := getattr(value, field)) is not UNSET}

    return read


def _is_at_hand(type: Type) -> bool:
    """Whether structs have its values as filters work with them; others they have as texts."""
    bare = plain(type)
    return isinstance(bare, Primitive) and PYTHON_TYPES[bare] in {str, bool, int, float}


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
