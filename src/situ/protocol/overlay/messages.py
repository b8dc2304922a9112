"""Every message that routers send each other: names and fields, and their form on the wire.

Tables are told as differences (``…Delta``) that say which version they follow, or whole (``…Full``), and confirmed
(``…Ack``); they all have the same fields, so one set of transitions serves them. What the messages do is
:mod:`situ.protocol.overlay.machine`. The class name of a message is its name on the wire. A message travels with the
name and the incarnation of its sender, which the transport vouches for.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct

from situ.event.message import EventKey
from situ.lang.tags import NO_TAGS, TagSet

MOST_BYTES = 8 * 1024 * 1024
"""Of a message between routers: what is larger is not read."""


class Want(Struct, frozen=True):
    """An entry of an interest table: somebody in that direction wants such events. Equal wants are one."""

    id: int
    types: tuple[str, ...]
    where: str = ""
    tags: TagSet = NO_TAGS
    durable: bool = False


def want_of(types: tuple[str, ...], where: str, tags: TagSet, durable: bool) -> Want:
    """The want with its id, which depends on what is wanted alone."""
    text = repr((types, where, tags.named, tags.rest, durable)).encode()
    number = int.from_bytes(blake2b(text, digest_size=7).digest())
    return Want(number, types, where, tags, durable)


class OverlayEvent(Struct, frozen=True):
    """An event with its stamp: tags, epoch, and the filters that were true of it. It never changes on its way."""

    key: EventKey
    type: str
    data: dict[str, Any]
    tags: TagSet
    epoch: int
    bits: int


Row: TypeAlias = tuple[str, str]
"""Of a scope look-up table: a dimension and a tag that somebody in that direction advertises with."""
Entry: TypeAlias = Want | tuple[str, str]


class OverlayMessage(Struct, frozen=True, tag=True, gc=False):
    """What all messages have in common: their name on the wire."""


# ── routers of one zone: who is there ─────────────────────────────────────────────────────────────


class Hello(OverlayMessage, frozen=True, tag=True):
    """I am here, and know nothing of you yet. ``answer``: this one answers another."""

    epoch: int = 0
    answer: bool = False


class Heartbeat(OverlayMessage, frozen=True, tag=True):
    """I am still here. ``told`` are the versions of my tables for you, ``have`` those of yours that I have.

    In the order interest, scopes, external; so what was lost is noticed by either side.
    """

    epoch: int
    term: int
    gateway: str
    told: tuple[int, int, int]
    have: tuple[int, int, int]


class Goodbye(OverlayMessage, frozen=True, tag=True):
    """I leave in order: do not wait for me."""


class ClientAt(OverlayMessage, frozen=True, tag=True):
    """This client is my child now."""

    client: str
    session: int


class Moved(OverlayMessage, frozen=True, tag=True):
    """To a child: connect to one of these instead."""

    routers: tuple[str, ...]


# ── tables ────────────────────────────────────────────────────────────────────────────────────────


class TableDelta(OverlayMessage, frozen=True, tag=True):
    """What changed since version ``base``. ``term`` is that of the gateway that tells, else 0."""

    base: int
    version: int
    add: tuple[Entry, ...]
    remove: tuple[int | Row, ...]
    term: int = 0
    zone: str = ""


class TableFull(OverlayMessage, frozen=True, tag=True):
    """The whole table as of a version."""

    version: int
    entries: tuple[Entry, ...]
    term: int = 0
    zone: str = ""


class TableAck(OverlayMessage, frozen=True, tag=True):
    """I have that version. ``interest``: the answering interest is with you from this version of it on."""

    version: int
    interest: int = 0
    term: int = 0
    zone: str = ""


class InterestDelta(TableDelta, frozen=True, tag=True):
    """What the children of a router want. What it says of routers that are ``adopted`` comes first."""

    add: tuple[Want, ...]
    remove: tuple[int, ...]
    adopted: tuple[str, ...] = ()


class InterestFull(TableFull, frozen=True, tag=True):
    entries: tuple[Want, ...]
    adopted: tuple[str, ...] = ()


class InterestAck(TableAck, frozen=True, tag=True):
    pass


class SltDelta(TableDelta, frozen=True, tag=True):
    """The tags that are advertised behind a router."""

    add: tuple[Row, ...]
    remove: tuple[Row, ...]


class SltFull(TableFull, frozen=True, tag=True):
    entries: tuple[Row, ...]


class SltAck(TableAck, frozen=True, tag=True):
    pass


class External(TableDelta, frozen=True, tag=True):
    """What other zones want, from the gateway to a router of its zone."""

    add: tuple[Want, ...]
    remove: tuple[int, ...]


class ExternalFull(TableFull, frozen=True, tag=True):
    entries: tuple[Want, ...]


class ExternalAck(TableAck, frozen=True, tag=True):
    pass


class Pull(OverlayMessage, frozen=True, tag=True):
    """I have your table up to this version, and not what came after."""

    table: str
    have: int
    term: int = 0
    zone: str = ""


class Confirmed(OverlayMessage, frozen=True, tag=True):
    """From the gateway: other zones work with this version of your table, but for those missing.

    ``external``: from this version of that table on you know all they want of it.
    """

    table: str
    version: int
    term: int
    external: int = 0
    missing: tuple[str, ...] = ()


# ── events ────────────────────────────────────────────────────────────────────────────────────────


class Forward(OverlayMessage, frozen=True, tag=True):
    """An event on its way. ``channel`` and ``place`` number what goes over a link, so that nothing overtakes.

    ``duty``: whoever gets it is to carry it to other zones. ``local``: and to look among its children.
    """

    channel: int
    place: int
    event: OverlayEvent
    phase: str
    term: int
    trail: tuple[str, ...]
    duty: bool = False
    local: bool = True


class ForwardAck(OverlayMessage, frozen=True, tag=True):
    """All up to this place is stored wherever it has to be. ``again``: what comes after it is missing."""

    channel: int
    place: int
    again: bool = False


class ForwardNack(OverlayMessage, frozen=True, tag=True):
    """R009: not acting as gateway. Who does, as far as known."""

    channel: int
    gateway: str
    term: int


# ── gateways ──────────────────────────────────────────────────────────────────────────────────────


class GatewayAnnounce(OverlayMessage, frozen=True, tag=True):
    """This router is the gateway from this term on."""

    router: str
    term: int


class StaleTerm(OverlayMessage, frozen=True, tag=True):
    """You speak as gateway of a term that is over."""

    zone: str
    term: int


class Adopted(OverlayMessage, frozen=True, tag=True):
    """What is for ``router`` goes to ``by``, which looks after its log and its durable subscriptions."""

    router: str
    by: str
    term: int


class ZoneHello(OverlayMessage, frozen=True, tag=True):
    """I speak for this zone. Versions are of interest and scopes, as in a heartbeat; ``have_term`` says of whose."""

    zone: str
    term: int
    epoch: int
    told: tuple[int, int]
    have: tuple[int, int]
    have_term: int


class ZoneInterest(TableDelta, frozen=True, tag=True):
    """What a zone wants."""

    add: tuple[Want, ...]
    remove: tuple[int, ...]


class ZoneInterestFull(TableFull, frozen=True, tag=True):
    entries: tuple[Want, ...]


class ZoneInterestAck(TableAck, frozen=True, tag=True):
    pass


class ZoneSlt(TableDelta, frozen=True, tag=True):
    """The tags that are advertised in a zone."""

    add: tuple[Row, ...]
    remove: tuple[Row, ...]


class ZoneSltFull(TableFull, frozen=True, tag=True):
    entries: tuple[Row, ...]


class ZoneSltAck(TableAck, frozen=True, tag=True):
    pass


class ZonePull(Pull, frozen=True, tag=True):
    pass


class GatewayForward(OverlayMessage, frozen=True, tag=True):
    """An event from one zone to another."""

    zone: str
    term: int
    channel: int
    place: int
    event: OverlayEvent
    trail: tuple[str, ...]


class GatewayAck(OverlayMessage, frozen=True, tag=True):
    zone: str
    channel: int
    place: int
    again: bool = False


# ── epochs ────────────────────────────────────────────────────────────────────────────────────────


class EpochNotice(OverlayMessage, frozen=True, tag=True):
    """Scopes have changed: this is the epoch in force."""

    epoch: int


class EpochConfirm(OverlayMessage, frozen=True, tag=True):
    """I work with this epoch; ``at`` is my clock, for the answer. ``missing``: who of my zone does not, as gateway."""

    epoch: int
    at: float
    zone: str = ""
    missing: tuple[str, ...] = ()


class EpochLease(OverlayMessage, frozen=True, tag=True):
    """You may hand over by this epoch for so long after ``at``, by your clock."""

    epoch: int
    at: float
    left: float


_OnWire: TypeAlias = (
    Hello
    | Heartbeat
    | Goodbye
    | ClientAt
    | InterestDelta
    | InterestFull
    | InterestAck
    | SltDelta
    | SltFull
    | SltAck
    | External
    | ExternalFull
    | ExternalAck
    | Pull
    | Confirmed
    | Forward
    | ForwardAck
    | ForwardNack
    | GatewayAnnounce
    | StaleTerm
    | Adopted
    | ZoneHello
    | ZoneInterest
    | ZoneInterestFull
    | ZoneInterestAck
    | ZoneSlt
    | ZoneSltFull
    | ZoneSltAck
    | ZonePull
    | GatewayForward
    | GatewayAck
    | EpochNotice
    | EpochConfirm
    | EpochLease
)

# ── on the wire ───────────────────────────────────────────────────────────────────────────────────

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[_OnWire] = msgspec.json.Decoder(_OnWire)


def encode_overlay(message: OverlayMessage) -> bytes:
    return _encoder.encode(message)


def decode_overlay(body: bytes) -> OverlayMessage:
    """What a router said; ValueError if it is nothing of the above, or too large to be looked at."""
    if len(body) > MOST_BYTES:
        raise ValueError(f"it has {len(body)} bytes, more than the {MOST_BYTES} allowed")
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error
