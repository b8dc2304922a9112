"""Handing over under guard: what waits for a durable subscription passes its router on the way to the reader.

Without scopes messages go from the server to their reader, and nothing here is at work. Among scopes an event may have
become invisible while it waited. So the router asks JetStream with a subject of its own as the place for the answers,
has each message decided, and sends on what is left of it. Nothing is noted anywhere: a reader whose router went away
begins where its consumer is, and every message is decided again then.

What is left of a message may be nothing. The reader gets that, too, for only he can acknowledge what lies before it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from situ.bus.interface import Bus, Guard, Serving
from situ.bus.names import Names
from situ.bus.permissions import INBOX
from situ.bus.reading import END
from situ.errors import SituError
from situ.event.message import HANDED, REPLY, Message, Stored

_log = logging.getLogger("situ.router")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_IDLE = 60.0  # seconds after which nobody reads there any more: a reader asks every ten
_MOST_UNDER_WAY = 64
_MOST_REQUESTS = 16
_OVER = {"Status": "409", "Description": "Router Ends"}
_MOST_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Handed:
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
        self._stream = Names(bus.zone).out_stream
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

    def again(self, consumer: str, handed: Handed, reply: str) -> bool:
        """Send what was handed out before, as the server would; whether there is room for that."""
        if len(self._under_way) >= _MOST_UNDER_WAY:
            return False
        task = asyncio.get_running_loop().create_task(self._again(consumer, handed, reply))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        return True

    async def _again(self, consumer: str, handed: Handed, reply: str) -> None:
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
        seq, place, at = (int(token) for token in reply.split(".")[-4:-1])
        stored = Stored(seq=seq, subject=message.subject, body=message.body, headers=message.headers, at=at // 1000)
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


def _as_read(message: Stored, number: int, mark: str) -> dict[str, str]:
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
