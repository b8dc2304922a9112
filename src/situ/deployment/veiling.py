"""What does not exist for a client among closed dimensions: types that it is not shown, contexts that would show more.

Of an event of such a type it is told that there is no such type. Else whoever guesses the name of a type would be told
by dead letters what it is made of.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from situ.deployment.interpreting import looks_up, remembers
from situ.deployment.showing import Showing
from situ.deployment.snapshot import Deployment
from situ.event.isolation import failed
from situ.event.row import Bad, Row, errors_of
from situ.subscription.model import ROOT
from situ.types.reserved import RESERVED_EVENTS
from situ.types.undeclared import unknown_event


def is_kept_back(deployment: Deployment, client: str, context: str, *, bound: bool) -> bool:
    """Whether a client may not choose the terms of a context by itself.

    Not where tables are looked up in, or events are remembered: neither asks who may see what it finds. And not at all
    if it is ``bound`` to its own because the project puts it there: what these terms leave out it shall not know.
    """
    if not any(each.closed for each in deployment.scopes.dimensions.values()):
        return False
    known = deployment.clients.get(client)
    found = deployment.contexts.by_id.get(context)
    if found is None or (known is not None and known.context == context):
        return False
    return looks_up(found) or remembers(found) or (bound and known is not None and known.context != ROOT)


Advertises = Callable[[str, str], bool]
"""Whether a client has an advertisement for events of a type."""


class _Typed(msgspec.Struct):
    type: str


_decode = msgspec.json.Decoder(_Typed).decode


def veil(rows: Iterable[Row | Bad], showing: Showing, advertises: Advertises) -> list[Row | Bad]:
    """The rows; what is wrong with an event of a hidden type is the same as with one of no type."""
    return [row if isinstance(row, Row) else _surely_veiled(row, showing, advertises) for row in rows]


def _surely_veiled(bad: Bad, showing: Showing, advertises: Advertises) -> Bad:
    try:
        return _veiled(bad, showing, advertises)
    except Exception as error:  # noqa: BLE001 - nothing is told of an event of which nobody knows what may be told
        return failed(bad, bad.stage, error, bad.original)


def _veiled(bad: Bad, showing: Showing, advertises: Advertises) -> Bad:
    try:
        type = _decode(bad.original).type
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return bad  # it says nothing of types
    if type in RESERVED_EVENTS or type in showing.types(bad.client) or advertises(bad.client, type):
        return bad
    shown = type[:100] if type.isprintable() else "…"
    return msgspec.structs.replace(bad, stage="decode", errors=errors_of([unknown_event(shown, ())]))
