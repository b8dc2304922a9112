"""The event types that Situ itself publishes: every table knows them, nobody declares them.

They are no part of a table's own declarations, so they change neither its canonical form nor what is listed of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from situ.types.model import LONG, STRING, Attribute, ListOf, Struct

DEAD_LETTER = Struct(
    "situ.deadletter",
    (
        Attribute(name="code", type=STRING),
        Attribute(name="stage", type=STRING),
        Attribute(name="path", type=STRING),
        Attribute(name="message", type=STRING),
        Attribute(name="hint", type=STRING),
        Attribute(name="others", type=ListOf(STRING), optional=True),
        Attribute(name="key", type=STRING),
        Attribute(name="ad", type=STRING),
        Attribute(name="context", type=STRING),
        Attribute(name="plan", type=STRING, optional=True),
        Attribute(name="encoding", type=STRING, optional=True),
        Attribute(name="size", type=LONG, optional=True),
        Attribute(name="original", type=STRING),
    ),
)
"""An event that could not go on, with the reason. ``encoding`` is ``base64`` where the original is no text, ``size``
its bytes where only the beginning was kept, ``others`` what else is wrong with it."""

LOSS = Struct(
    "situ.loss",
    (
        Attribute(name="client", type=STRING),
        Attribute(name="incarnation", type=LONG),
        Attribute(name="from_seq", type=LONG),
        Attribute(name="to_seq", type=LONG),
        Attribute(name="reason", type=STRING),
    ),
)
"""Events that a client numbered and gave up before they were stored."""

RESERVED_EVENTS: Mapping[str, Struct] = MappingProxyType({each.name: each for each in (DEAD_LETTER, LOSS)})
