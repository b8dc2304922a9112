"""Reading the data of rows: only the attributes that filters look at, as the values they work with.

The text of a row is canonical and its type known, so it is read in one go, in C, and trusted. The result equals what
:mod:`situ.types.decode` gives for these attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from situ.event.instants import instant_at
from situ.event.row import Row
from situ.types.model import Struct
from situ.types.shapes import dict_shape

Data = Mapping[str, Any]


def data_reader(event: Struct, names: Collection[str] | None) -> Callable[[bytes], Data]:
    """A function from the text of an event's data to those of its attributes; None: all of them."""
    return msgspec.json.Decoder(dict_shape(event, names)).decode


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
