"""Storing messages in streams: many under way at once, in the order they were handed over, each stored once.

The promise rests on three things. Every message has an id, and a stream stores one message of an id. After a lost
connection all that was not confirmed is sent again, from the first on; since the first sending and the repetition are
both in order, so is what the stream stores. And the first message after a connection goes alone: only when it is stored
do the others follow, so that a server that is not quite up cannot take the second and refuse the first.

A refusal (stream full) does not stop later messages, except those of the same *lane*: they are refused with it. Who
must not have gaps in what he stores gives his messages a lane; a lane has one message under way.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import secrets
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import nats.errors
from nats.aio.msg import Msg

from situ.bus.interface import Ack
from situ.bus.link import Link, Listening
from situ.catalogue import BUS_FAILED, MESSAGE_TOO_LARGE, NOT_ON_BUS, STREAM_FULL
from situ.errors import Problem, SituError
from situ.event.message import ID, Message

_MESSAGES, _BYTES = 512, 16 * 1024 * 1024  # under way at once; a server buffers 10,000 messages or 128 MiB per stream
_PAUSE = 0.1
_NO_STREAM_FOR = 3.0  # seconds until "no stream listens" is believed: one may just be starting
_SILENCE = 10.0  # seconds after which a connection without confirmations is given up
_FULL = (10077, 10047, 10023)  # limit of the stream, of the account, of the disk
_BUSY = (10167, 10076, 10008)  # too many requests; JetStream not there yet
_NO_RESPONDERS = "503"


@dataclass(slots=True, eq=False)
class _Handed:
    number: int
    message: Message
    headers: dict[str, str]
    lane: str
    since: float
    future: asyncio.Future[Ack]
    sent: float = 0.0
    refused: float | None = None

    def __lt__(self, other: _Handed) -> bool:
        return self.number < other.number

    @property
    def size(self) -> int:
        return len(self.message.body) + 256


@dataclass(slots=True)
class _Counts:
    messages: int = 0
    size: int = 0


@dataclass(slots=True)
class _Lane:
    waiting: deque[_Handed] = field(default_factory=deque)


class Publisher:
    """Hands messages to streams over one link. ``start`` before the first, ``close`` after the last."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._numbers = iter(range(1, 2**62))
        self._origin = secrets.token_hex(12)
        self._inbox = ""
        self._unsent: list[_Handed] = []  # a heap: what is sent again comes before what is new
        self._sent: dict[int, _Handed] = {}
        self._lanes: dict[str, _Lane] = {}
        self._under_way = _Counts()
        self._turn = asyncio.Lock()
        self._room = asyncio.Event()
        self._work = asyncio.Event()
        self._alone = True
        self._paused = False
        self._listening: Listening | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._inbox = self._link.inbox()
        self._listening = await self._link.listen(f"{self._inbox}.*", self._confirmed)
        self._link.on_up.append(self._again)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send()), loop.create_task(self._watch())]

    async def store(self, message: Message, lane: str = "") -> asyncio.Future[Ack]:
        """Hand over, waiting while too much is under way."""
        async with self._turn:
            while self.full:
                self._room.clear()
                await self._room.wait()
        return self.hand_over(message, lane)

    @property
    def full(self) -> bool:
        return self._under_way.messages >= _MESSAGES or self._under_way.size >= _BYTES

    def hand_over(self, message: Message, lane: str = "") -> asyncio.Future[Ack]:
        """Hand over without waiting: for a caller that bounds what is under way itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Ack] = loop.create_future()
        number = next(self._numbers)
        headers = dict(message.headers)
        headers.setdefault(ID, f"{self._origin}.{number}")
        handed = _Handed(number, message, headers, lane, loop.time(), future)
        size = len(message.body) + _size_of(headers)
        if size > self._link.max_payload:
            problem = MESSAGE_TOO_LARGE(subject=message.subject, size=size, most=self._link.max_payload)
            future.set_exception(SituError(problem))
            return future
        self._under_way.messages += 1
        self._under_way.size += handed.size
        if lane and lane in self._lanes:
            self._lanes[lane].waiting.append(handed)
            return future
        if lane:
            self._lanes[lane] = _Lane()
        self._queue(handed)
        return future

    async def flush(self) -> None:
        """All that was handed over is stored or has failed."""
        while self._under_way.messages:
            self._room.clear()
            await self._room.wait()

    async def close(self) -> None:
        await self.flush()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._listening is not None:
            self._link.on_up.remove(self._again)
            await self._listening.close()

    # ── sending ──

    def _queue(self, handed: _Handed) -> None:
        heapq.heappush(self._unsent, handed)
        self._work.set()

    def _again(self) -> None:
        """A new connection: what is not confirmed goes again, in order, and the first alone."""
        for handed in self._sent.values():
            heapq.heappush(self._unsent, handed)
        self._sent.clear()
        self._alone = True
        self._work.set()

    async def _send(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not self._unsent or self._paused or (self._alone and self._sent):
                self._work.clear()
                await self._work.wait()
            client = self._link.client
            if client is None:
                self._work.clear()
                await self._work.wait()
                continue
            handed = heapq.heappop(self._unsent)
            if handed.future.cancelled():
                self._done(handed)
                self._next_in_lane(handed.lane)
                continue
            handed.sent = loop.time()
            self._sent[handed.number] = handed
            message = handed.message
            # If the connection is lost in this very moment, `_again` finds the message among those sent.
            with suppress(nats.errors.Error, OSError):
                await client.publish(
                    message.subject, message.body, reply=f"{self._inbox}.{handed.number}", headers=handed.headers
                )

    async def _watch(self) -> None:
        """Gives up connections on which nothing is confirmed, and messages that wait too long."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0.25)
            now, patience = loop.time(), self._link.patience
            oldest = min(self._sent.values(), default=None)
            if oldest is not None and self._link.connected and now - oldest.sent > min(_SILENCE, patience):
                self._link.drop("it confirms nothing; its disk may be full")
            waiting = min((h for h in (oldest, self._unsent[0] if self._unsent else None) if h), default=None)
            if waiting is not None and now - waiting.since > patience:
                self._fail_all(self._link.unreachable())

    # ── confirmation ──

    def _confirmed(self, answer: Msg) -> None:
        handed = self._sent.pop(int(answer.subject.rpartition(".")[2]), None)
        if handed is None:
            return  # of a former connection
        if answer.headers and answer.headers.get("Status") == _NO_RESPONDERS:
            self._later(handed, SituError(NOT_ON_BUS(kind="stream for", name=handed.message.subject)))
            return
        confirmed = json.loads(answer.data)
        error = confirmed.get("error")
        if error is None:
            self._alone = False
            self._done(handed)
            if not handed.future.done():
                handed.future.set_result(Ack(confirmed["seq"], confirmed.get("duplicate", False)))
            self._next_in_lane(handed.lane)
        elif error.get("err_code") in _BUSY:
            self._later(handed, SituError(_failure(handed.message, error)))
        else:
            self._alone = False
            self._refuse(handed, _refusal(handed.message, confirmed, error))
        self._work.set()

    def _later(self, handed: _Handed, error: SituError) -> None:
        """The server is not ready for it: wait a little, then send this and all after it again."""
        now = asyncio.get_running_loop().time()
        handed.refused = now if handed.refused is None else handed.refused
        if now - handed.refused > min(_NO_STREAM_FOR, self._link.patience):
            self._alone = False
            self._refuse(handed, error)
            self._work.set()
            return
        self._queue(handed)
        self._alone = True
        if not self._paused:
            self._paused = True
            asyncio.get_running_loop().call_later(_PAUSE, self._resume)

    def _resume(self) -> None:
        self._paused = False
        self._work.set()

    def _refuse(self, handed: _Handed, error: SituError) -> None:
        """Fail it, and what waits behind it in its lane."""
        lane = self._lanes.pop(handed.lane, None)
        for one in (handed, *(lane.waiting if lane is not None else ())):
            self._fail(one, error)

    def _fail(self, handed: _Handed, error: SituError) -> None:
        self._done(handed)
        if not handed.future.done():
            handed.future.set_exception(SituError(*error.problems))

    def _fail_all(self, error: SituError) -> None:
        failing = [*self._sent.values(), *sorted(self._unsent)]
        self._sent.clear()
        self._unsent.clear()
        for handed in failing:
            self._refuse(handed, error)

    def _next_in_lane(self, name: str) -> None:
        lane = self._lanes.get(name) if name else None
        if lane is not None and lane.waiting:
            self._queue(lane.waiting.popleft())
        elif lane is not None:
            del self._lanes[name]

    def _done(self, handed: _Handed) -> None:
        self._under_way.messages -= 1
        self._under_way.size -= handed.size
        self._room.set()


def _size_of(headers: Mapping[str, str]) -> int:
    return 12 + sum(len(name) + len(value.encode()) + 4 for name, value in headers.items())


def _refusal(message: Message, confirmed: Mapping[str, object], error: Mapping[str, object]) -> SituError:
    if error.get("err_code") in _FULL:
        stream = str(confirmed.get("stream") or message.subject)
        return SituError(STREAM_FULL(stream=stream, reason=str(error.get("description", "no room"))))
    return SituError(_failure(message, error))


def _failure(message: Message, error: Mapping[str, object]) -> Problem:
    return BUS_FAILED(what=f"store a message on `{message.subject}`", reason=str(error.get("description", error)))
