"""Messages on the wire: encoded as headers and body, decoded, and errors that came over it.

A message's kind is in the header ``Situ-Message``, the client's session in ``Situ-Session``; the body is a JSON object
of its fields. ``Publish`` and ``HistoryAck`` carry events: their fields are headers, their body is the batch, which no
router opens. A message without any header of ours comes from somebody who speaks plain NATS: it is a publication.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import msgspec

from situ.event.message import COUNT, KEY, MESSAGE, PLACES, REPLY, SESSION, EventKey, Message
from situ.lang.catalogue import CODES
from situ.lang.problems import Code, Problem, Severity, SituError
from situ.protocol.messages import (
    Ack,
    AdAck,
    Advertise,
    AnswerAdvice,
    AskQuality,
    ChangeExpectation,
    ChangeProfile,
    ChangeScopes,
    Closed,
    Connect,
    ConnectAck,
    ContextAck,
    DefineContext,
    Describe,
    DescribeAck,
    Disconnect,
    Expect,
    Explain,
    ExplainAck,
    FromClient,
    FromRouter,
    FullList,
    FullListAck,
    FullListRequest,
    Heartbeat,
    History,
    HistoryAck,
    Loss,
    MoveExpectation,
    Nack,
    Provide,
    Publish,
    PublishAck,
    QualityAck,
    RevokeProfile,
    ScopeAck,
    SubAck,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    UseContext,
)
from situ.protocol.permissions import may_be_answered

NACK = "Nack"  # a refusal is named after what it refuses: `SubscribeNack`
POSITION = "Situ-Position"  # of a page of history: where the next one begins
MORE = "Situ-More"


class Malformed(ValueError):
    """This is no message of ours; the text says why."""


class ForgedReply(ValueError):
    """A client wants its answer sent where it may not be answered; the text says where."""


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
        UseContext,
        DefineContext,
        ChangeScopes,
        Expect,
        ChangeExpectation,
        MoveExpectation,
        Provide,
        ChangeProfile,
        RevokeProfile,
        AnswerAdvice,
        AskQuality,
        Loss,
        Describe,
        Explain,
        History,
    )
}
_ROUTER_KINDS: dict[str, Any] = {
    kind.__name__: msgspec.json.Decoder(kind)
    for kind in (
        ConnectAck,
        FullListRequest,
        FullListAck,
        AdAck,
        SubAck,
        ContextAck,
        ScopeAck,
        PublishAck,
        Ack,
        Closed,
        DescribeAck,
        ExplainAck,
        QualityAck,
    )
}
ROUTER_KINDS = frozenset((*_ROUTER_KINDS, HistoryAck.__name__))
"""What stands in the header of what routers say, but for refusals."""
CLIENT_KINDS = frozenset((*_CLIENT_KINDS, Publish.__name__))
"""What stands in the header of what clients say."""
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
            message.after,
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


def read_request(client: str, message: Message) -> tuple[int, FromClient]:
    """Session and message of a client, as its router takes them; :class:`ForgedReply` and :class:`Malformed` if it is
    not to be answered, or is no message."""
    headers = message.headers
    reply = headers.get(REPLY)
    if reply and not may_be_answered(client, reply):
        raise ForgedReply(reply)
    return session_of(headers), decode_from_client(headers, message.body)


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
        after, more, count = headers[POSITION], headers[MORE] == "1", int(headers[COUNT])
    except (KeyError, ValueError) as error:
        raise Malformed(f"a page of history has `{POSITION}`, `{MORE}` and `{COUNT}`") from error
    return HistoryAck(after=after, more=more, count=count, body=body)


def _body(decoder: Any, body: bytes) -> Any:
    try:
        return decoder.decode(body or b"{}")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Malformed(str(error)) from error


def _publish(headers: Mapping[str, str], body: bytes) -> Publish:
    if (text := headers.get(KEY)) is None:
        # One event alone is a batch of one.
        batch = b"[\n%s\n]" % body if body.lstrip()[:1] == b"{" else body
        return Publish(key=None, count=_events_in(batch), body=batch)
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Errors that came over the wire, as errors of ours: the code, the message and the hint that the router gave.


def problem_from_wire(code: str, message: str, hint: str) -> Problem:
    """A problem whose texts are these; nothing in them is filled in any more."""
    known = CODES.get(code)
    severity = Severity.ERROR if known is None else known.severity
    entry = Code(code, severity, message, _literally(message), _literally(hint), "", MappingProxyType({}))
    return Problem(code=entry, location=None, values=MappingProxyType({}))


def error_from_nack(nack: Nack) -> SituError:
    return SituError(problem_from_wire(nack.code, nack.message, nack.hint))


def _literally(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
