"""Reading the data of rows: only the attributes that filters look at, as the values they work with.

The text of a row is canonical and its type known, so it is read in one go, in C, and trusted. The result equals what
:mod:`situ.types.decode` gives for these attributes. A row that was read into a struct has some of them at hand.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from situ.errors import SituError
from situ.event.instants import instant_at
from situ.event.plans import field_of, shape_of
from situ.event.row import Row
from situ.types.decode import decoder
from situ.types.model import Primitive, Struct, Type, plain
from situ.types.python_values import PYTHON_TYPES
from situ.types.shapes import NoShape, dict_shape
from situ.types.table import Types

Data = Mapping[str, Any]

_NONE: Mapping[str, Any] = {}
IN_ROWS = {name: name for name in ("id", "source", "type", "time", "confidence")} | {"received": "recv"}
"""What filters see of the envelope → the column of a row that has it; the rest is among its extensions."""


def data_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[bytes], Data]:
    """A function from the text of an event's data to those of its attributes; None: all of them.

    What stands below is of any subtype that ``types`` has of what is declared there.
    """
    try:
        return msgspec.json.Decoder(dict_shape(event, names, types)).decode
    except NoShape:
        return _judged_reader(event, names, types)


def _judged_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[bytes], Data]:
    """Where subtypes disagree on an attribute, ``$type`` has to be looked at: slower, in Python."""
    wanted = tuple(each for each in event.attributes if names is None or each.name in names)
    judge = decoder(Struct("", wanted), types)

    def read(text: bytes) -> Data:
        decoded = judge(msgspec.json.decode(text))
        if decoded.problems:
            raise SituError(*decoded.problems)
        found: Data = decoded.value
        return found

    return read


def row_reader(event: Struct, names: Collection[str] | None, types: Types) -> Callable[[Row], Data]:
    """The same from a row: out of its struct, if that holds the very values, else out of its text."""
    decode = data_reader(event, names, types)
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


def read_extensions(row: Row) -> Mapping[str, Any]:
    """The subject and the foreign attributes of an event, all of them texts."""
    if not row.ext:
        return _NONE
    found: Mapping[str, Any] = msgspec.json.decode(f"{{{row.ext}}}")
    return found


def envelope_value(row: Row, name: str) -> Any:
    """One attribute of the envelope as the index has it: times in microseconds."""
    if name in IN_ROWS:
        return getattr(row, IN_ROWS[name])
    return read_extensions(row).get(name) if name in row.ext else None


def read_envelope(row: Row) -> Mapping[str, Any]:
    """What filters see of the envelope."""
    return {
        **read_extensions(row),
        "id": row.id,
        "source": row.source,
        "type": row.type,
        "time": instant_at(row.time),
        "confidence": row.confidence,
        "received": instant_at(row.recv),
    }
