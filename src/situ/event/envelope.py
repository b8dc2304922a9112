"""The event as Situ carries it: a CloudEvent with the marks that Situ writes, and how a client's event is taken in.

It owns the attributes of the envelope and what they mean. It knows no text format (:mod:`situ.event.cloudevents` does)
and nothing of declared types: ``data`` is the JSON value as it was sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from situ.lang.catalogue import FROM_THE_FUTURE
from situ.lang.problems import Problem
from situ.lang.records import replace

SPEC_VERSION = "1.0"
MARK_PREFIX = "situ"


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What Situ writes on an event on its way. A client sends none of these but ``ad``."""

    key: str | None = None
    """``client.incarnation.seq``: the event's place among all its client sent."""
    ad: str | None = None
    """``client/name`` of the advertisement it was published under."""
    context: str | None = None
    """The context version its data is in, as ``us@2``."""
    origin: str | None = None
    """The producer's context version, once the data is in another."""
    received: datetime | None = None
    """When it reached the router."""
    tags: int | None = None
    """Number of the advertised set of scope tags."""
    epoch: int | None = None
    """Scope epoch it was stamped in."""
    bits: str | None = None
    """The visibility filters that are true, in hexadecimal."""
    parts: str | None = None
    """Of a situation: tags, epoch and bits of its parts."""
    pos: str | None = None
    """Position in the log."""
    subs: str | None = None
    """The addressee's subscriptions that it matched."""
    redelivered: bool | None = None
    """Delivered before."""
    imprecision: str | None = None
    """How far the delivered value may be from the true one."""


NO_MARKS = Marks()

MarkKind = Literal["text", "integer", "boolean", "timestamp"]

MARKS: Mapping[str, tuple[str, MarkKind]] = MappingProxyType(
    {
        "situkey": ("key", "text"),
        "situad": ("ad", "text"),
        "situcontext": ("context", "text"),
        "situfrom": ("origin", "text"),
        "siturecv": ("received", "timestamp"),
        "situtags": ("tags", "integer"),
        "situepoch": ("epoch", "integer"),
        "situbits": ("bits", "text"),
        "situparts": ("parts", "text"),
        "situpos": ("pos", "text"),
        "situsubs": ("subs", "text"),
        "situredelivered": ("redelivered", "boolean"),
        "imprecision": ("imprecision", "text"),
    }
)
"""The attribute on the wire → the field of :class:`Marks` and the kind of its value."""


class CloudEvent(msgspec.Struct, frozen=True, kw_only=True):
    """A CloudEvent 1.0 with JSON data.

    ``time`` is None only before ingress, which then fills it in; ``confidence`` is in percent. ``extensions`` are
    foreign attributes: they travel along as text.
    """

    id: str
    source: str
    type: str
    time: datetime | None = None
    data: Any = None
    subject: str | None = None
    dataschema: str | None = None
    datacontenttype: str | None = None
    confidence: float | None = None
    extensions: Mapping[str, str] = msgspec.field(default_factory=dict)
    marks: Marks = NO_MARKS


def check_time(event: CloudEvent, received: datetime, ahead: timedelta) -> Problem | None:
    """E703 if the event says it happened more than ``ahead`` after it was received."""
    if event.time is None or event.time - received <= ahead:
        return None
    from situ.lang.types.scalars import print_duration, print_timestamp

    return FROM_THE_FUTURE(
        time=print_timestamp(event.time), received=print_timestamp(received), ahead=print_duration(ahead)
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Taking in an event of a client: nobody speaks for another, and only Situ writes its marks.
#
# Pure: the client's name and the time of arrival are inputs.


class AcceptedEvent(msgspec.Struct, frozen=True):
    """The event as Situ carries it on; ``dropped`` names the attributes its client had no right to send."""

    event: CloudEvent
    dropped: tuple[str, ...] = ()


def accept(event: CloudEvent, *, client: str, received: datetime) -> AcceptedEvent:
    """Take in an event that was decoded without marks.

    Its source becomes one of the client's, its time the arrival's if it had none; of Situ's own attributes only the
    advertisement counts.
    """
    dropped = tuple(sorted(name for name in event.extensions if _is_ours(name) and name != "situad"))
    marks = Marks(ad=event.extensions.get("situad"), received=received)
    foreign = {name: text for name, text in event.extensions.items() if not _is_ours(name)}
    accepted = replace(
        event,
        source=own_source(event.source, client),
        time=event.time or received,
        extensions=foreign,
        marks=marks,
    )
    return AcceptedEvent(accepted, dropped)


def own_source(source: str, client: str) -> str:
    """The source itself if it is the client or below it, else put behind the client's name."""
    if source == client or source.startswith(client + "/"):
        return source
    return f"{client}/{source}"


def _is_ours(name: str) -> bool:
    return name.startswith(MARK_PREFIX) or name in MARKS
