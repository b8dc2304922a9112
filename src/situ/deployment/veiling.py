"""What a client is told of events that it could not publish: of a type that it is not shown, that there is none.

Else whoever guesses the name of a type would be told by dead letters what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from situ.deployment.showing import Showing
from situ.event.row import Bad, Row, errors_of
from situ.types.reserved import RESERVED_EVENTS
from situ.types.undeclared import unknown_event

Advertises = Callable[[str, str], bool]
"""Whether a client has an advertisement for events of a type."""


class _Typed(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(_Typed).decode


def veil(rows: Iterable[Row | Bad], showing: Showing, advertises: Advertises) -> list[Row | Bad]:
    """The rows; what is wrong with an event of a hidden type is the same as with one of no type."""
    return [row if isinstance(row, Row) else _veiled(row, showing, advertises) for row in rows]


def _veiled(bad: Bad, showing: Showing, advertises: Advertises) -> Bad:
    try:
        type = _decode(bad.original).type
    except (msgspec.DecodeError, UnicodeDecodeError):
        return bad  # it says nothing of types
    if type in RESERVED_EVENTS or type in showing.types(bad.client) or advertises(bad.client, type):
        return bad
    shown = type[:100] if type.isprintable() else "…"
    return msgspec.structs.replace(bad, stage="decode", errors=errors_of([unknown_event(shown, ())]))
