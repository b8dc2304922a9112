"""What a client and its router say to each other, and how that is written on the wire.

A message's kind is in the header ``Situ-Message``, the client's session in ``Situ-Session``; the body is a JSON object
of the fields below. ``Publish`` alone carries events: its fields are headers, its body is the batch, which no router
opens. A publication without any header of ours comes from somebody who speaks plain NATS: it is one, too.

This module owns names, fields and their text. What a message does is :mod:`situ.overlay.router`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from situ.event.message import COUNT, KEY, MESSAGE, PLACES, SESSION, EventKey

NACK = "Nack"
POSITION = "Situ-Position"  # of a page of history: where the next one begins
MORE = "Situ-More"


class Malformed(ValueError):
    """This is no message of ours; the text says why."""


# ── from a client to its router ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Connect:
    """I am here. The incarnation is that of my keys."""

    incarnation: int
    principal: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FullList:
    """Everything I declare, and up to which of my events I know that they are stored."""

    version: int = 0
    acked: int = 0
    ads: dict[str, str] = field(default_factory=dict)
    """Name → type."""
    subs: dict[str, Wanted] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a subscription asks for."""

    types: tuple[str, ...]
    filter: str = ""
    durable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """I am still here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Disconnect:
    """I leave."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertise:
    req: int
    ad: str
    type: str
    filter: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unadvertise:
    req: int
    ad: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    req: int
    sub: str
    types: tuple[str, ...]
    filter: str = ""
    durable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Unsubscribe:
    req: int
    sub: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publish:
    """Events in the order of their keys. Without a key the router gives them."""

    key: EventKey | None
    count: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """These of my events will never come."""

    from_seq: int
    to_seq: int
    counts: dict[str, int] = field(default_factory=dict)
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Describe:
    """What are these types? All, if none is named."""

    req: int
    types: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """What my subscription would have got, page by page.

    It begins at an instant (µs; neither: with the first event there is) and goes on where the last page ended.
    """

    req: int
    sub: str
    after_pos: int | None = None
    since: int | None = None
    limit: int = 500


# ── from a router to its child ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """What the project's settings say that clients keep to. Times are in seconds."""

    batch_events: int = 500
    batch_size: int = 512 * 1024
    linger: float = 0.005
    event_limit: int = 1024 * 1024
    install_timeout: float = 2.0
    heartbeat: float = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectAck:
    """``incarnation`` is the router's: with another one it has forgotten its children."""

    zone: str
    router: str
    incarnation: int
    epoch: int = 0
    version: int = 0
    terms: Terms = field(default_factory=Terms)


@dataclass(frozen=True, slots=True, kw_only=True)
class FullListRequest:
    """Tell me everything you have. Of another incarnation than the one you know: connect again first."""

    incarnation: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FullListAck:
    """What is declared for the client now, by itself or in the project."""

    version: int = 0
    ads: dict[str, str] = field(default_factory=dict)
    subs: dict[str, Wanted] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AdAck:
    """``accepted``: the declaration has a version. ``installed``: every engine works with it."""

    req: int = 0
    ad: str
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAck:
    req: int = 0
    sub: str
    state: str
    version: int = 0
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Dead:
    """An event of a stored message that became a dead letter."""

    seq: int
    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PublishAck:
    up_to: int
    dead: tuple[Dead, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryAck:
    """A page of the root log: its body is a batch. ``after_pos`` is where the next one begins, if there is ``more``."""

    after_pos: int
    more: bool
    count: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Ack:
    """Done, with nothing to add."""

    req: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Nack:
    """Not done. ``retry``: the same may succeed later. ``expected``: the number that would have been right."""

    of: str
    req: int = 0
    code: str
    message: str
    hint: str = ""
    retry: bool = False
    expected: int | None = None
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """Sessions below this one are over: somebody else connected under the same name."""

    session: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribeAck:
    """Type → its supertypes, whether events are of it, and its attributes as they are declared."""

    req: int = 0
    version: int = 0
    types: dict[str, Description] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    event: bool
    above: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)


FromClient = (
    Connect
    | FullList
    | Heartbeat
    | Disconnect
    | Advertise
    | Unadvertise
    | Subscribe
    | Unsubscribe
    | Publish
    | Loss
    | Describe
    | History
)
FromRouter = (
    ConnectAck
    | FullListRequest
    | FullListAck
    | AdAck
    | SubAck
    | PublishAck
    | HistoryAck
    | Ack
    | Nack
    | Closed
    | DescribeAck
)

_CLIENT_KINDS: dict[str, Any] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (
        Connect,
        FullList,
        Heartbeat,
        Disconnect,
        Advertise,
        Unadvertise,
        Subscribe,
        Unsubscribe,
        Loss,
        Describe,
        History,
    )
}
_ROUTER_KINDS: dict[str, Any] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (ConnectAck, FullListRequest, FullListAck, AdAck, SubAck, PublishAck, Ack, Closed, DescribeAck)
}
_NACK: msgspec.json.Decoder[Nack] = msgspec.json.Decoder(Nack)
_RAW: msgspec.json.Decoder[list[msgspec.Raw]] = msgspec.json.Decoder(list[msgspec.Raw])
_encode = msgspec.json.Encoder().encode


def kind_of(message: FromClient | FromRouter) -> str:
    """What stands in the header ``Situ-Message``."""
    return message.of + NACK if isinstance(message, Nack) else type(message).__name__


def encode(message: FromClient | FromRouter, session: int = 0) -> tuple[dict[str, str], bytes]:
    """Headers and body of a message; what a router sends has no session."""
    headers = {MESSAGE: kind_of(message)}
    if session:
        headers[SESSION] = str(session)
    if isinstance(message, HistoryAck):
        headers[POSITION], headers[MORE], headers[COUNT] = (
            str(message.after_pos),
            str(int(message.more)),
            str(message.count),
        )
        return headers, message.body
    if not isinstance(message, Publish):
        return headers, _encode(message)
    if message.key is not None:
        headers[KEY] = str(message.key)
        headers[COUNT] = str(message.count)
    return headers, message.body


def session_of(headers: Mapping[str, str]) -> int:
    """The session a client says it is in; 0 if it says nothing."""
    text = headers.get(SESSION, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        raise Malformed(f"`{SESSION}` is no number")
    return int(text)


def decode_from_client(headers: Mapping[str, str], body: bytes) -> FromClient:
    """What a client said; :class:`Malformed` if that is nothing of the above."""
    kind = headers.get(MESSAGE, "Publish")
    if kind == "Publish":
        return _publish(headers, body)
    known = _CLIENT_KINDS.get(kind)
    if known is None:
        raise Malformed(f"there is no message `{kind[:64]}`")
    return _body(known, body)  # type: ignore[no-any-return]  # the table holds a decoder per kind


def decode_from_router(headers: Mapping[str, str], body: bytes) -> FromRouter:
    """What a router said; :class:`Malformed` if that is nothing of the above."""
    kind = headers.get(MESSAGE, "")
    if kind.endswith(NACK):
        return _body(_NACK, body)  # type: ignore[no-any-return]
    if kind == HistoryAck.__name__:
        return _page(headers, body)
    known = _ROUTER_KINDS.get(kind)
    if known is None:
        raise Malformed(f"there is no message `{kind[:64]}`")
    return _body(known, body)  # type: ignore[no-any-return]  # the table holds a decoder per kind


def _page(headers: Mapping[str, str], body: bytes) -> HistoryAck:
    try:
        after, more, count = int(headers[POSITION]), headers[MORE] == "1", int(headers[COUNT])
    except (KeyError, ValueError) as error:
        raise Malformed(f"a page of history has `{POSITION}`, `{MORE}` and `{COUNT}`") from error
    return HistoryAck(after_pos=after, more=more, count=count, body=body)


def _body(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from error


def _publish(headers: Mapping[str, str], body: bytes) -> Publish:
    if (text := headers.get(KEY)) is None:
        return Publish(key=None, count=_events_in(body), body=body)
    try:
        key = EventKey.parse(text)
        count = int(headers.get(COUNT, ""))
    except ValueError as error:
        raise Malformed(f"`{KEY}` and `{COUNT}` of a publication are a key and a number") from error
    if not (1 <= count <= PLACES and key.seq >= 1):
        raise Malformed(f"a publication holds 1 to {PLACES} events, numbered from 1")
    return Publish(key=key, count=count, body=body)


def _events_in(body: bytes) -> int:
    """How many keys the events of a plain body need: never too few, even if it is no batch at all."""
    if body.lstrip()[:1] != b"[":
        return 1
    try:
        count = len(_RAW.decode(body))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        count = body.count(b"\n") + 1
    return min(max(count, 1), PLACES)
