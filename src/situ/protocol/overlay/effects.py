"""What goes into the machine of a router among others, and what comes out of it.

What concerns the clients of a router alone is in :mod:`situ.protocol.effects`.

A *stream* is a log of the zone's store: entries in order, each stored once by its id, read on from what was committed.
``root/r`` is what was published at router r, ``out/s`` what waits for durable subscription s, ``xout/z`` what is to
leave for zone z, ``xin`` what came from other zones. A *key* is a value of the zone's store that changes by
compare-and-set alone. What a host cannot do at once it reports later, under the ticket it was given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from situ.protocol.effects import Effect, Input
from situ.protocol.overlay.messages import OverlayEvent, OverlayMessage
from situ.protocol.overlay.scope_document import ScopeDocument

# ── inputs ────────────────────────────────────────────────────────────────────────────────────────


class Boot(Struct, frozen=True, gc=False):
    """The router begins, with what the store of its zone has and the scopes in force."""

    keys: Mapping[str, Any]
    document: ScopeDocument


class FromRouter(Struct, frozen=True, gc=False):
    """A router said something; ``incarnation`` is its own when it did."""

    sender: str
    incarnation: int
    message: OverlayMessage


class GarbledRouter(Struct, frozen=True, gc=False):
    """What came from a router is no message."""

    sender: str
    reason: str


class Appended(Struct, frozen=True, gc=False):
    """The batch is stored. Per entry its stream and place: another stream's if it was stored there before."""

    ticket: int
    places: tuple[tuple[str, int], ...]


class AppendFailed(Struct, frozen=True, gc=False):
    """Whether the batch is stored is not known."""

    ticket: int


class StreamEntry(Struct, frozen=True, gc=False):
    stream: str
    place: int
    item: Any


class AllCommitted(Struct, frozen=True, gc=False):
    """Whoever reads a stream has committed what was asked about."""

    ticket: int


class CasDone(Struct, frozen=True, gc=False):
    """``ok``: the value was written, else ``value`` is what is there."""

    ticket: int
    ok: bool
    value: Any


class CasFailed(Struct, frozen=True, gc=False):
    """Whether the value was written is not known."""

    ticket: int


class KeyChanged(Struct, frozen=True, gc=False):
    """A value was seen to change; news may be old."""

    key: str
    value: Any


class DocumentFetched(Struct, frozen=True, gc=False):
    document: ScopeDocument


class Settled(Struct, frozen=True, gc=False):
    """A client has worked off a durable subscription up to this place."""

    client: str
    session: int
    stream: str
    place: int


class Tick(Struct, frozen=True, gc=False):
    """The heartbeat of the router itself."""


class Leave(Struct, frozen=True, gc=False):
    """The router is to end in order."""


OverlayInput: TypeAlias = (
    Input
    | Boot
    | FromRouter
    | GarbledRouter
    | Appended
    | AppendFailed
    | StreamEntry
    | AllCommitted
    | CasDone
    | CasFailed
    | KeyChanged
    | DocumentFetched
    | Settled
    | Tick
    | Leave
)

# ── effects ───────────────────────────────────────────────────────────────────────────────────────


class SendRouter(Struct, frozen=True, gc=False):
    to: str
    message: OverlayMessage


class SendZone(Struct, frozen=True, gc=False):
    """To whoever listens as gateway of a zone."""

    zone: str
    message: OverlayMessage


class Listen(Struct, frozen=True, gc=False):
    """Take what is sent to the gateway of the zone, or stop to."""

    on: bool


class Append(Struct, frozen=True, gc=False):
    """Store a batch: ids and items. :class:`Appended` or :class:`AppendFailed` follows."""

    stream: str
    entries: tuple[tuple[str, Any], ...]
    ticket: int


class Follow(Struct, frozen=True, gc=False):
    """Read a stream from what was committed on, in order, until :class:`Unfollow`."""

    stream: str


class Unfollow(Struct, frozen=True, gc=False):
    stream: str


class Commit(Struct, frozen=True, gc=False):
    """The entry at this place needs no reading any more. Reading begins with the first that is not committed."""

    stream: str
    place: int


class AwaitCommit(Struct, frozen=True, gc=False):
    """Say when a place of a stream is committed; 0: all that a client has in it by now."""

    stream: str
    place: int
    client: str
    ticket: int


class DropStream(Struct, frozen=True, gc=False):
    stream: str


class Cas(Struct, frozen=True, gc=False):
    """Write a value (None: none) if the one there is the expected one."""

    key: str
    expected: Any
    value: Any
    ticket: int


class Deliver(Struct, frozen=True, gc=False):
    """Hand an event to a client. ``place`` is that of a durable subscription's stream, else 0."""

    client: str
    session: int
    subs: tuple[str, ...]
    event: OverlayEvent
    place: int = 0


class Tell(Struct, frozen=True, gc=False):
    """Tell a client something of the overlay."""

    client: str
    message: OverlayMessage


class FetchDocument(Struct, frozen=True, gc=False):
    epoch: int


class EpochComplete(Struct, frozen=True, gc=False):
    """Nobody hands over by an older epoch in closed dimensions any more. Only the gateway of the home zone says so."""

    epoch: int


class SetTick(Struct, frozen=True, gc=False):
    after: float


OverlayEffect: TypeAlias = (
    Effect
    | SendRouter
    | SendZone
    | Listen
    | Append
    | Follow
    | Unfollow
    | Commit
    | AwaitCommit
    | DropStream
    | Cas
    | Deliver
    | Tell
    | FetchDocument
    | EpochComplete
    | SetTick
)
