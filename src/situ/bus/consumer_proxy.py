"""How a reader gets at its durable consumer: from JetStream, or through its router, which may hold messages back.

`Relays` are the readers whose messages the router checks against the scopes on their way. `ServerAccess` and
`RouterAccess` are the two ways of a reader; `ConsumerProxy` answers the second one at the router.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec
import nats.errors

from situ.bus.connection import NatsConnection
from situ.bus.interface import Bus, Guard, Serving
from situ.bus.streams import END, BatchRequest, failure, read
from situ.event.message import HANDED, MESSAGE, REPLY, Message, StoredMessage
from situ.event.subjects import BusNames, consumer_of, subscription_of
from situ.lang.catalogue import NO_ANSWER, NO_LISTENER
from situ.lang.problems import SituError
from situ.protocol.permissions import INBOX, may_be_answered
from situ.routing.model import NAME

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Guarded delivery. Without scopes messages go from the server to their reader, and nothing here is at work. With scopes
# an event may have become invisible while it waited. So the router asks JetStream to answer on a subject of its own,
# has each message decided, and sends on what is left of it. No state is kept: a reader whose router went away begins
# where its consumer is, and every message is decided again then.
#
# What is left of a message may be nothing. The reader gets that, too, for only it can acknowledge what lies before it.

_log = logging.getLogger("situ.router")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IDLE = 60.0  # seconds after which nobody reads there any more: a reader asks every ten
_MOST_UNDER_WAY = 64
_MOST_REQUESTS = 16
_OVER = {"Status": "409", "Description": "Router Ends"}
_MOST_BYTES = 8 * 1024 * 1024


class HandedRange(msgspec.Struct, frozen=True, kw_only=True):
    """What was handed to a reader and is wanted again: behind ``floor`` up to ``last``, each a sequence of the stream
    and the number that the message has for the reader; of these from the number ``wanted`` on."""

    subjects: Sequence[str]
    floor: tuple[int, int]
    last: tuple[int, int]
    wanted: int


class Relays:
    """The readers that are served under guard now."""

    def __init__(self, bus: Bus, guard: Guard) -> None:
        self._bus = bus
        self._guard = guard
        self._stream = BusNames(bus.zone).out_stream
        self._relays: dict[str, _Relay] = {}
        """By consumers: each is read by one at a time."""
        self._under_way: set[asyncio.Task[None]] = set()

    async def between(self, consumer: str, reply: str) -> str:
        """The subject to have answers sent to that a reader wants on the subject ``reply``."""
        to, _, number = reply.rpartition(".")
        relay = self._relays.get(consumer)
        if relay is None or relay.to != to:
            await self._make_room(consumer)
            relay = self._relays[consumer] = _Relay(self._bus, self._guard, consumer, to)
            await relay.start()
        return relay.asked(number)

    async def _make_room(self, consumer: str) -> None:
        """The reader that a consumer had before is gone, and what it asked for is not to be handed to nobody."""
        idle = _now() - _IDLE
        for each in [each for each, relay in self._relays.items() if each == consumer or relay.used < idle]:
            await self._relays.pop(each).close()

    def again(self, consumer: str, handed: HandedRange, reply: str) -> bool:
        """Send what was handed out before, as the server would; whether there is room for that."""
        if len(self._under_way) >= _MOST_UNDER_WAY:
            return False
        task = asyncio.get_running_loop().create_task(self._again(consumer, handed, reply))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return True

    async def _again(self, consumer: str, handed: HandedRange, reply: str) -> None:
        left = _MOST_BYTES
        (first, number), (last, latest) = handed.floor, handed.last
        try:
            messages = self._bus.read(self._stream, first + 1, last, subjects=handed.subjects)
            async with aclosing(messages):
                async for message in messages:
                    number = latest if message.seq == last else number + 1
                    if number < handed.wanted:
                        continue
                    body = await self._guard.decide(consumer, message)
                    if body is None:
                        return
                    headers = _as_read(message, number, self._guard.mark(message.seq, number))
                    await self._bus.send(Message(subject=reply, body=body, headers=headers))
                    left -= len(message.body)
                    if left <= 0:
                        break
            await self._bus.send(Message(subject=reply, headers={"Status": END, "Description": "EOB"}))
        except SituError as error:
            _log.warning("what was handed to %s cannot be read again now: %s", consumer, error)

    async def close(self) -> None:
        for task in tuple(self._under_way):
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)
        for relay in self._relays.values():
            await relay.close()
        self._relays.clear()


class _Relay:
    """Stands between the server and one reader of one consumer."""

    def __init__(self, bus: Bus, guard: Guard, consumer: str, to: str) -> None:
        self.to = to
        self.inbox = f"{INBOX}.{secrets.token_hex(16)}"
        self.used = _now()
        self._bus = bus
        self._guard = guard
        self._consumer = consumer
        self._numbers: deque[str] = deque(maxlen=_MOST_REQUESTS)
        self._serving: Serving | None = None

    async def start(self) -> None:
        self._serving = await self._bus.serve(f"{self.inbox}.*", self._pass_on)

    def asked(self, number: str) -> str:
        """The subject for the answers to the reader's request of this number."""
        self.used = _now()
        self._numbers.append(number)
        return f"{self.inbox}.{number}"

    async def _pass_on(self, message: Message) -> None:
        if "Status" in message.headers:  # how a request ended; it is known by its number
            number = message.subject.rpartition(".")[2]
            told = {name: message.headers[name] for name in ("Status", "Description") if name in message.headers}
            await self._bus.send(Message(subject=f"{self.to}.{number}", headers=told))
            return
        reply = message.headers.get(REPLY, "")
        # The subject of an acknowledgement ends with sequence of the stream, number of the consumer, time, number left.
        seq, place, at = (int(token) for token in reply.split(".")[-4:-1])
        stored = StoredMessage(
            seq=seq, subject=message.subject, body=message.body, headers=message.headers, at=at // 1000
        )
        try:
            body = await self._guard.decide(self._consumer, stored)
        except SituError as error:  # the reader misses it and asks for it again
            _log.warning("%s is not handed over now: %s", self._consumer, error)
            return
        if body is not None:
            headers = {HANDED: _told(self._guard.mark(seq, place), place, at)}
            await self._bus.send(Message(subject=f"{self.to}.0", body=body, headers=headers))

    async def close(self) -> None:
        if self._serving is not None:
            await self._serving.close()
            self._serving = None
            for number in self._numbers:  # whoever still waits for an answer asks again
                with suppress(SituError):
                    await self._bus.send(Message(subject=f"{self.to}.{number}", headers=_OVER))


def _as_read(message: StoredMessage, number: int, mark: str) -> dict[str, str]:
    """What the server says of a message that is read from a stream, with the number that it has for its reader."""
    at = _EPOCH + timedelta(microseconds=message.at)
    return {
        "Nats-Subject": "own",
        "Nats-Sequence": str(number),
        "Nats-Time-Stamp": at.isoformat(timespec="microseconds"),
        HANDED: _told(mark, number, message.at * 1000),
    }


def _told(mark: str, number: int, at: int) -> str:
    """Where a reader finds what it finds in the subject of an acknowledgement: sequence, number and time."""
    return f"{mark}.{number}.{number}.{at}.0"


def mark_in(headers: Mapping[str, str]) -> str:
    """The mark of a message that was handed over by a router; empty, if it was not."""
    return headers.get(HANDED, "").partition(".")[0]


def _now() -> float:
    return asyncio.get_running_loop().time()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Access to a consumer. Whoever may do everything on the bus asks JetStream. A client with credentials of its own may
# not: in a request to JetStream the subject for answers stands in the body and the consumer in a part of a token, where
# no permission can look. It asks its router, on the one subject that it may write to, and the router asks JetStream,
# naming the subject of the client's answers: messages come from the server to the client, not through the router. The
# request names the subscription; whose it is stands in the subject, which the server has checked.
#
# With scopes everybody asks the router, and gets from it what is left of each message. The sequences of the stream
# count messages for everybody, so the router does not reveal them: messages have the number that they have for this
# reader, and a mark, which only the router can read, by which they are acknowledged.

TAKE = "Take"
"""The header ``Situ-Message`` of such a request."""

GUARDED = "situ-guarded"
"""What the metadata of a consumer say if its messages have to be decided when they are handed over."""
OWN = "own"
"""The subject of all messages of a guarded consumer, as its reader may know it."""

_MOST, _MOST_TAKEN_BYTES = 1024, 8 * 1024 * 1024
_LONGEST = 30_000_000_000  # nanoseconds
_TOGETHER = 0.005  # seconds; an acknowledgement holds for all before it
_PAUSE = 0.2


class ConsumerAccess(Protocol):
    """What a reader asks for, of one consumer."""

    async def info(self) -> dict[str, Any]:
        """Its marks and subjects; B109 if there is none."""

    async def next(self, batch: int, expires: float, reply: str) -> None:
        """New messages, so many, to this subject."""

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[StoredMessage, None]:
        """What was handed out before, from the stream itself."""

    async def acknowledge(self, message: StoredMessage, number: int) -> None: ...

    async def close(self) -> None: ...

    def through_router(self) -> ConsumerAccess:
        """The same consumer, asked for at the router."""


def acknowledgement(stream: str, consumer: str, seq: int, number: int) -> str:
    """The subject that acknowledges the message of this sequence and all before."""
    return f"$JS.ACK.{stream}.{consumer}.1.{seq}.{number}.0.0"


class ServerAccess:
    """Asks JetStream."""

    def __init__(self, link: NatsConnection, stream: str, consumer: str) -> None:
        self._link = link
        self._stream = stream
        self._consumer = consumer

    async def info(self) -> dict[str, Any]:
        answer = await self._link.ask_server(f"CONSUMER.INFO.{self._stream}.{self._consumer}")
        if "error" in answer:
            raise failure(answer["error"], "consumer", self._consumer)
        return answer

    async def next(self, batch: int, expires: float, reply: str) -> None:
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}"
        body = {"batch": batch, "expires": int(expires * 1e9)}
        await self._link.publish(subject, json.dumps(body).encode(), None, reply=reply)

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[StoredMessage, None]:
        return read(self._link, self._stream, first, last, subjects, 100)

    async def acknowledge(self, message: StoredMessage, number: int) -> None:
        if (client := self._link.client) is not None:
            with suppress(nats.errors.Error, OSError):
                await client.publish(acknowledgement(self._stream, self._consumer, message.seq, number))

    async def close(self) -> None:
        """Nothing is held back."""

    def through_router(self) -> ConsumerAccess:
        return RouterAccess(self._link, self._stream, self._consumer)


class RouterAccess:
    """Asks the router, as a client."""

    def __init__(self, link: NatsConnection, stream: str, consumer: str, router: str = "r1") -> None:
        client, _, self._name = subscription_of(consumer).partition("/")
        self._link = link
        self._stream = stream
        self._consumer = consumer
        self._subject = BusNames(link.address.zone).ingress(router, client)
        self._headers = {MESSAGE: TAKE}
        self._due: tuple[StoredMessage, int] | None = None
        self._soon: asyncio.Task[None] | None = None

    async def info(self) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._link.patience
        while True:
            try:
                answer = await self._link.ask(self._subject, self._body(do="info"), self._headers)
                break
            except SituError as error:
                # A router that is started again has no listener for a moment.
                if error.code not in (NO_LISTENER.code, NO_ANSWER.code) or loop.time() > deadline:
                    raise
            await asyncio.sleep(_PAUSE)
        found: dict[str, Any] = json.loads(answer.data)
        if "error" in found:
            raise failure(found["error"], "consumer", self._consumer)
        return found

    async def next(self, batch: int, expires: float, reply: str) -> None:
        body = self._body(do="next", batch=batch, expires=int(expires * 1e9))
        await self._link.publish(self._subject, body, self._headers, reply=reply)

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[StoredMessage, None]:
        asked = BatchRequest(self._subject, self._headers, {"do": "again", "name": self._name})
        return read(self._link, self._stream, first, last, subjects, 100, asked)

    async def acknowledge(self, message: StoredMessage, number: int) -> None:
        self._due = message, number
        if self._soon is None or self._soon.done():
            self._soon = asyncio.get_running_loop().create_task(self._later())

    async def _later(self) -> None:
        await asyncio.sleep(_TOGETHER)
        await self._acknowledge()

    async def _acknowledge(self) -> None:
        due, self._due = self._due, None
        if due is not None and (client := self._link.client) is not None:
            with suppress(nats.errors.Error, OSError):
                message, number = due
                body = self._body(do="ack", seq=message.seq, number=number, mark=mark_in(message.headers))
                await client.publish(self._subject, body, headers=dict(self._headers))

    async def close(self) -> None:
        if self._soon is not None:
            self._soon.cancel()
            await asyncio.gather(self._soon, return_exceptions=True)
        await self._acknowledge()

    def through_router(self) -> ConsumerAccess:
        return self

    def _body(self, **fields: Any) -> bytes:
        return json.dumps({"name": self._name, **fields}).encode()


class Take(msgspec.Struct, frozen=True, kw_only=True):
    """The body of such a request. ``name`` is the subscription's; whose it is, it does not say."""

    do: str
    name: str
    batch: int = 1
    expires: int = _LONGEST
    seq: int = 1
    number: int = 1
    max_bytes: int = _MOST_TAKEN_BYTES
    next_by_subj: str = ""
    mark: str = ""


_TAKE: msgspec.json.Decoder[Take] = msgspec.json.Decoder(Take)


class ConsumerProxy:
    """The router's side: asks JetStream for a client, and for nothing but what is the client's own."""

    def __init__(self, bus: Bus, guard: Guard) -> None:
        self._bus = bus
        self._guard = guard
        self._relays = Relays(bus, guard)
        self._stream = BusNames(bus.zone).out_stream
        self._unguarded = 0.0
        self.refused = 0
        """Requests that are none, or for what is not the client's own."""

    async def serve(self, client: str, message: Message) -> None:
        """Pass a request of this client on; what it may not ask for gets no answer."""
        reply = message.headers.get(REPLY, "")
        asked = None
        with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            asked = _TAKE.decode(message.body)
        if asked is None or not NAME.fullmatch(asked.name) or (reply and not may_be_answered(client, reply)):
            self.refused += 1
            return
        consumer = consumer_of(f"{client}/{asked.name}")
        if bool(reply) == (asked.do == "ack"):
            self.refused += 1
        elif asked.do == "again":
            await self._again(consumer, asked, reply)
        elif asked.do == "info" and self._guard.active:
            await self._tell(consumer, reply)
        elif (to := self._request(consumer, asked)) is None:
            self.refused += 1
        else:
            if asked.do == "next":
                reply = await self._way(consumer, asked, reply)
            if reply or asked.do == "ack":
                await self._ask(*to, reply)

    async def _ask(self, subject: str, body: Mapping[str, Any], reply: str) -> None:
        headers = {REPLY: reply} if reply else {}
        await self._bus.send(Message(subject=subject, body=json.dumps(body).encode() if body else b"", headers=headers))

    async def _way(self, consumer: str, asked: Take, reply: str) -> str:
        """The subject on which messages are to come: the reader's own, or one where they are decided first."""
        if self._guard.active:
            if self._guard.knows(consumer):
                return await self._relays.between(consumer, reply)
            self.refused += 1
            return ""
        self._unguarded = max(self._unguarded, _now() + asked.expires / 1e9)
        return reply

    async def guarded(self) -> None:
        """Wait until nothing comes any more for requests that were passed on before there was anything to guard."""
        while self._guard.active and (left := self._unguarded - _now()) > 0:
            await asyncio.sleep(left)

    async def close(self) -> None:
        await self._relays.close()

    def _request(self, consumer: str, asked: Take) -> tuple[str, Mapping[str, Any]] | None:
        if asked.do == "info":
            return f"$JS.API.CONSUMER.INFO.{self._stream}.{consumer}", {}
        if asked.do == "next" and 1 <= asked.batch <= _MOST and 0 < asked.expires <= _LONGEST:
            body = {"batch": asked.batch, "expires": asked.expires}
            return f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{consumer}", body
        if asked.do == "ack" and asked.seq >= 1 and asked.number >= 1:
            found = self._guard.marked(asked.mark) if self._guard.active else (asked.seq, asked.number)
            return (acknowledgement(self._stream, consumer, *found), {}) if found is not None else None
        return None

    async def _tell(self, consumer: str, reply: str) -> None:
        """How far a reader is, in numbers of its own."""
        info = await self._info(consumer)
        if "error" not in info:
            floor, handed = info["ack_floor"]["consumer_seq"], info["delivered"]["consumer_seq"]
            info = {
                "config": {"metadata": {GUARDED: "yes"}, "filter_subjects": [OWN]},
                "ack_floor": {"stream_seq": floor, "consumer_seq": floor},
                "delivered": {"stream_seq": handed, "consumer_seq": handed},
            }
        await self._bus.send(Message(subject=reply, body=json.dumps(info).encode()))

    async def _info(self, consumer: str) -> dict[str, Any]:
        answer = await self._bus.request(Message(subject=f"$JS.API.CONSUMER.INFO.{self._stream}.{consumer}"))
        found: dict[str, Any] = json.loads(answer.body)
        return found

    async def _again(self, consumer: str, asked: Take, reply: str) -> None:
        """Only of the consumer's own subjects, and only what it has not acknowledged.

        Who asks for more may not know how far he is: an acknowledgement of the reader before him can have come since
        he asked for that.
        """
        info = await self._info(consumer)
        fits = "error" not in info and 1 <= asked.batch <= _MOST and asked.seq >= 1
        subjects = subjects_of(info) if fits else ()
        if not fits or asked.next_by_subj not in ((OWN,) if self._guard.active else subjects):
            self.refused += 1
            return
        first = max(asked.seq, info["ack_floor"]["stream_seq"] + 1)
        if self._guard.active:
            # What was not handed out yet is got by asking for the next: there it is counted.
            handed = HandedRange(
                subjects=subjects,
                floor=_place(info["ack_floor"]),
                last=_place(info["delivered"]),
                wanted=asked.seq,
            )
            if not self._relays.again(consumer, handed, reply):
                self.refused += 1
        else:
            wanted = {"seq": first, "batch": asked.batch, "next_by_subj": asked.next_by_subj}
            body = {**wanted, "max_bytes": min(asked.max_bytes, _MOST_TAKEN_BYTES)}
            await self._ask(f"$JS.API.DIRECT.GET.{self._stream}", body, reply)


def _place(mark: Mapping[str, int]) -> tuple[int, int]:
    return mark["stream_seq"], mark["consumer_seq"]


def is_guarded(info: Mapping[str, Any]) -> bool:
    """Whether whoever reads this consumer has to ask his router."""
    return GUARDED in (info["config"].get("metadata") or {})


def subjects_of(info: Mapping[str, Any]) -> tuple[str, ...]:
    """What a consumer reads."""
    config = info["config"]
    single = config.get("filter_subject")
    return (single,) if single else tuple(config.get("filter_subjects") or ())
