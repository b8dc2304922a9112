"""How a reader gets at its durable consumer: by itself, or through its router.

Who may do everything on the bus asks JetStream. A client with credentials of its own may not: what JetStream is asked
for stands in the body of a request, and the consumer in a part of a token, where no permission can look. It asks its
router, on the one subject that it may write to, and the router asks JetStream, naming the subject of the client's
answers: what is asked for comes from the server to the client, and not through the router. The request names the
subscription; whose it is stands in the subject, which the server has checked.

Among scopes everybody asks his router, and gets from it what is left of each message (:mod:`situ.bus.handing`). The
sequences of the stream count messages for everybody, so the router tells none: messages have the number that they have
for this reader, and a mark, which only the router can read, by which they are acknowledged.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
import nats.errors

from situ.bus.handing import Handed, Relays, mark_in
from situ.bus.interface import Bus, Guard
from situ.bus.link import Link
from situ.bus.names import Names, consumer_of, subscription_of
from situ.bus.permissions import may_be_answered
from situ.bus.reading import Asked, failure, read
from situ.catalogue import NO_ANSWER, NO_LISTENER
from situ.errors import SituError
from situ.event.message import MESSAGE, REPLY, Message, Stored
from situ.subscription.model import NAME

TAKE = "Take"
"""The header ``Situ-Message`` of such a request."""

GUARDED = "situ-guarded"
"""What the metadata of a consumer say if its messages have to be decided when they are handed over."""
OWN = "own"
"""The subject of all messages of a guarded consumer, as its reader may know it."""

_MOST, _MOST_BYTES = 1024, 8 * 1024 * 1024
_LONGEST = 30_000_000_000  # nanoseconds
_TOGETHER = 0.005  # seconds; an acknowledgement holds for all before it
_PAUSE = 0.2


class Taking(Protocol):
    """What a reader asks for, of one consumer."""

    async def info(self) -> dict[str, Any]:
        """Its marks and subjects; B109 if there is none."""

    async def next(self, batch: int, expires: float, reply: str) -> None:
        """New messages, so many, to this subject."""

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[Stored, None]:
        """What was handed out before, from the stream itself."""

    async def acknowledge(self, message: Stored, number: int) -> None: ...

    async def close(self) -> None: ...

    def through_router(self) -> Taking:
        """The same consumer, asked for at the router."""


def acknowledgement(stream: str, consumer: str, seq: int, number: int) -> str:
    """The subject that acknowledges the message of this sequence and all before."""
    return f"$JS.ACK.{stream}.{consumer}.1.{seq}.{number}.0.0"


class FromServer:
    """Asks JetStream."""

    def __init__(self, link: Link, stream: str, consumer: str) -> None:
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

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[Stored, None]:
        return read(self._link, self._stream, first, last, subjects, 100)

    async def acknowledge(self, message: Stored, number: int) -> None:
        if (client := self._link.client) is not None:
            with suppress(nats.errors.Error, OSError):
                await client.publish(acknowledgement(self._stream, self._consumer, message.seq, number))

    async def close(self) -> None:
        """Nothing is held back."""

    def through_router(self) -> Taking:
        return FromRouter(self._link, self._stream, self._consumer)


class FromRouter:
    """Asks the router, as a client."""

    def __init__(self, link: Link, stream: str, consumer: str, router: str = "r1") -> None:
        client, _, self._name = subscription_of(consumer).partition("/")
        self._link = link
        self._stream = stream
        self._consumer = consumer
        self._subject = Names(link.address.zone).ingress(router, client)
        self._headers = {MESSAGE: TAKE}
        self._due: tuple[Stored, int] | None = None
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

    def again(self, first: int, last: int, subjects: Sequence[str]) -> AsyncGenerator[Stored, None]:
        asked = Asked(self._subject, self._headers, {"do": "again", "name": self._name})
        return read(self._link, self._stream, first, last, subjects, 100, asked)

    async def acknowledge(self, message: Stored, number: int) -> None:
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

    def through_router(self) -> Taking:
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
    max_bytes: int = _MOST_BYTES
    next_by_subj: str = ""
    mark: str = ""


_TAKE: msgspec.json.Decoder[Take] = msgspec.json.Decoder(Take)


class Desk:
    """The router's side: asks JetStream for a client, and for nothing but what is the client's own."""

    def __init__(self, bus: Bus, guard: Guard) -> None:
        self._bus = bus
        self._guard = guard
        self._relays = Relays(bus, guard)
        self._stream = Names(bus.zone).out_stream
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
            handed = Handed(
                subjects=subjects,
                floor=_place(info["ack_floor"]),
                last=_place(info["delivered"]),
                wanted=asked.seq,
            )
            if not self._relays.again(consumer, handed, reply):
                self.refused += 1
        else:
            wanted = {"seq": first, "batch": asked.batch, "next_by_subj": asked.next_by_subj}
            body = {**wanted, "max_bytes": min(asked.max_bytes, _MOST_BYTES)}
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


def _now() -> float:
    return asyncio.get_running_loop().time()
