"""The event types that Situ itself publishes: every table knows them, nobody declares them.

They are no part of a table's own declarations, so they change neither its canonical form nor what is listed of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from situ.types.model import DOUBLE, LONG, STRING, TIMESTAMP, Attribute, ListOf, Struct

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

BINDING = Struct(
    "situ.binding",
    (
        Attribute(name="alias", type=STRING),
        Attribute(name="concept", type=STRING),
        Attribute(name="id", type=STRING),
    ),
)
"""Which instance of a concept an alias of a policy stands for."""

BINDINGS = ListOf(BINDING)

CAUSE_VALUE = Struct(
    "situ.cause.value",
    (
        Attribute(name="path", type=STRING),
        Attribute(name="number", type=DOUBLE, optional=True),
        Attribute(name="text", type=STRING, optional=True),
    ),
)
"""One value in the data of a causing event: a number in the unit of its attribute, or anything else as text."""

CAUSE = Struct(
    "situ.cause",
    (
        Attribute(name="id", type=STRING),
        Attribute(name="source", type=STRING),
        Attribute(name="type", type=STRING),
        Attribute(name="time", type=TIMESTAMP),
        Attribute(name="pos", type=LONG),
        Attribute(name="values", type=ListOf(CAUSE_VALUE)),
    ),
)
"""An event that caused a situation; ``pos`` is its place in the root log."""

SITUATION = Struct(
    "situ.situation",
    (
        Attribute(name="situation", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="start", type=TIMESTAMP),
        Attribute(name="last", type=TIMESTAMP),
        Attribute(name="end", type=TIMESTAMP, optional=True),
        Attribute(name="reason", type=STRING, optional=True),
        Attribute(name="detection", type=STRING, optional=True),
        Attribute(name="text", type=STRING),
        Attribute(name="bindings", type=BINDINGS),
        Attribute(name="causes", type=ListOf(CAUSE)),
    ),
)
"""A policy is met. ``start`` and ``last`` are the times of its first and its latest detection, ``detection`` the one
that this event reports, with its causes; ``reason`` says why a situation was closed before nothing came any more."""

OPENED, CONTINUED, CLOSED = (
    Struct(f"{SITUATION.name}.{what}", SITUATION.attributes, (SITUATION,)) for what in ("opened", "continued", "closed")
)

NOTICE = Struct(
    "situ.notice",
    (
        Attribute(name="to", type=STRING),
        Attribute(name="text", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
    ),
)
"""A text for people, from a policy that notifies them."""

COMMAND = Struct(
    "situ.command",
    (
        Attribute(name="to", type=STRING),
        Attribute(name="data", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
    ),
)
"""A message to a device, which is a client; ``data`` is JSON."""

ACTION = Struct(
    "situ.action",
    (
        Attribute(name="verb", type=STRING),
        Attribute(name="action", type=STRING),
        Attribute(name="policy", type=STRING),
        Attribute(name="situation", type=STRING),
        Attribute(name="detection", type=STRING),
        Attribute(name="time", type=TIMESTAMP),
        Attribute(name="number", type=LONG),
        Attribute(name="place", type=LONG),
        Attribute(name="digest", type=STRING),
        Attribute(name="bindings", type=BINDINGS),
        Attribute(name="attributes", type=STRING),
    ),
)
"""Something is to be done that is no event: step ``place`` of the ``number``-th action of a policy. ``digest`` is that
of the step as it was declared then: what to do is looked up, never taken from the event. ``attributes`` is what was
known of the instances, as JSON; secrets are put in by whoever does it."""

RESERVED_EVENTS: Mapping[str, Struct] = MappingProxyType(
    {each.name: each for each in (DEAD_LETTER, LOSS, SITUATION, OPENED, CONTINUED, CLOSED, NOTICE, COMMAND, ACTION)}
)


def reserved_subtypes(event: Struct) -> tuple[Struct, ...]:
    """Those of Situ's own events that are below one of them, in the order of their names."""
    return tuple(RESERVED_EVENTS[name] for name in sorted(RESERVED_EVENTS) if event in RESERVED_EVENTS[name].supers)
