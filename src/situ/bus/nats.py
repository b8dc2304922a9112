"""The bus on NATS with JetStream: one connection, with storing, reading, consumers and buckets.

`Publisher` stores messages in streams, in order and each once. `open_bus` gives a `NatsBus`, which puts together the
link, the publisher, readers, consumers and buckets.
"""

from __future__ import annotations

import asyncio
import heapq
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import TracebackType

import msgspec
import nats.errors
from nats.aio.msg import Msg

from situ.bus import streams as reading
from situ.bus.address import Address
from situ.bus.connection import NatsConnection, NatsSubscription
from situ.bus.consumer import Consumers, NatsConsumption
from situ.bus.interface import ConsumerState, Guard, Handler, KeyEntry, StoreAck, StreamState
from situ.bus.streams import KeyValueBuckets, configurations, make
from situ.event.message import ID, REPLY, Message, StoredMessage
from situ.event.subjects import BusNames
from situ.lang.catalogue import BUS_FAILED, MESSAGE_TOO_LARGE, NOT_ON_BUS, STREAM_FULL
from situ.lang.problems import Problem, SituError
from situ.settings import Settings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Storing: many messages under way at once, in the order in which they were handed over, each stored once.
#
# The promise rests on three things. Every message has an id, and a stream stores one message of an id. After a lost
# connection all that was not confirmed is sent again, from the first on; since the first sending and the repetition are
# both in order, so is what the stream stores. And the first message after a connection goes alone: only when it is
# stored do the others follow, so that a server that is not quite up cannot take the second and refuse the first.
#
# A refusal (stream full) does not stop later messages, except those of the same *lane*: they are refused with it. Who
# must not have gaps in what it stores gives its messages a lane; a lane has one message under way.

_MESSAGES, _BYTES = 512, 16 * 1024 * 1024  # under way at once; a server buffers 10,000 messages or 128 MiB per stream
_PAUSE = 0.1
_NO_STREAM_FOR = 3.0  # seconds until "no stream listens" is believed: one may just be starting
_SILENCE = 10.0  # seconds after which a connection without confirmations is given up
_FULL = (10077, 10047, 10023)  # limit of the stream, of the account, of the disk
_BUSY = (10167, 10076, 10008)  # too many requests; JetStream not there yet
_NO_RESPONDERS = "503"


class _Handed(msgspec.Struct, eq=False):
    number: int
    message: Message
    headers: dict[str, str]
    lane: str
    since: float
    future: asyncio.Future[StoreAck]
    sent: float = 0.0
    refused: float | None = None

    def __lt__(self, other: _Handed) -> bool:
        return self.number < other.number

    @property
    def size(self) -> int:
        return len(self.message.body) + 256


class _Counts(msgspec.Struct):
    messages: int = 0
    size: int = 0


class _Lane(msgspec.Struct):
    waiting: deque[_Handed] = msgspec.field(default_factory=deque)


class Publisher:
    """Hands messages to streams over one link. ``start`` before the first, ``close`` after the last."""

    def __init__(self, link: NatsConnection) -> None:
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
        self._listening: NatsSubscription | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._inbox = self._link.inbox()
        self._listening = await self._link.listen(f"{self._inbox}.*", self._confirmed)
        self._link.on_up.append(self._again)
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._send()), loop.create_task(self._watch())]

    async def store(self, message: Message, lane: str = "") -> asyncio.Future[StoreAck]:
        """Hand over, waiting while too much is under way."""
        async with self._turn:
            while self.full:
                self._room.clear()
                await self._room.wait()
        return self.hand_over(message, lane)

    @property
    def full(self) -> bool:
        return self._under_way.messages >= _MESSAGES or self._under_way.size >= _BYTES

    def hand_over(self, message: Message, lane: str = "") -> asyncio.Future[StoreAck]:
        """Hand over without waiting: for a caller that bounds what is under way itself."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[StoreAck] = loop.create_future()
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
                handed.future.set_result(StoreAck(confirmed["seq"], confirmed.get("duplicate", False)))
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The bus itself. What link, publisher, readers, consumers and buckets each promise is told where they are defined.

_log = logging.getLogger(__name__)

PATIENCE = 60.0
"""Seconds that work waits for a bus that is away, before it fails with B101."""


async def open_bus(address: Address, *, name: str, timeout: float = 10.0, patience: float = PATIENCE) -> NatsBus:
    """Connect; B101 if there is no bus within ``timeout``, B102 at once if it does not let us in."""
    bus = NatsBus(address, name=name, patience=patience)
    await bus.connect(timeout)
    return bus


class NatsBus:
    """See :class:`situ.bus.interface.Bus`."""

    def __init__(self, address: Address, *, name: str, patience: float = PATIENCE) -> None:
        self.names = BusNames(address.zone)
        self._link = NatsConnection(address, name=name, patience=patience)
        self._publisher = Publisher(self._link)
        self._consumers = Consumers(self._link, self.names)
        self._keys = KeyValueBuckets(self._link)
        self._consuming: set[NatsConsumption] = set()
        self._serving: set[NatsServing] = set()

    async def connect(self, timeout: float) -> None:
        try:
            await self._link.connect(timeout)
            await self._publisher.start()
        except BaseException:
            await self._link.close()
            raise

    async def __aenter__(self) -> NatsBus:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        await self.close()

    @property
    def zone(self) -> str:
        return self.names.zone

    @property
    def connected(self) -> bool:
        return self._link.connected

    @property
    def reconnects(self) -> int:
        """How often the connection was lost and made again."""
        return self._link.reconnects

    @property
    def trouble(self) -> str:
        """Why there is no connection; empty if there is one."""
        return "" if self._link.connected else self._link.reason

    async def prepare(self, settings: Settings) -> None:
        for configuration in configurations(self.names, settings):
            await make(self._link, configuration)

    # ── streams ──

    async def store(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        return await self._publisher.store(message, lane)

    def hand_over(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        """Like ``store``, but never waits: for callers that bound what is under way themselves."""
        return self._publisher.hand_over(message, lane)

    async def flush(self) -> None:
        """All that was handed over is stored or has failed."""
        await self._publisher.flush()

    def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> AsyncGenerator[StoredMessage, None]:
        return reading.read(self._link, stream, first, last, subjects)

    async def state(self, stream: str) -> StreamState:
        return await reading.state_of(self._link, stream)

    async def find(self, stream: str, at: datetime) -> int:
        return await reading.find(self._link, stream, at)

    async def purge(self, stream: str, before: int) -> None:
        # Beyond its end a purge would make the stream skip sequences.
        before = min(before, (await self.state(stream)).last + 1)
        if before <= 1:
            return
        answer = await self._link.ask_server(f"STREAM.PURGE.{stream}", {"seq": before})
        if "error" in answer:
            raise reading.failure(answer["error"], "stream", stream)

    # ── durable consumers ──

    async def ensure_consumer(self, name: str, groups: Sequence[str], *, guarded: bool = False) -> None:
        await self._consumers.ensure(name, groups, guarded=guarded)

    def guard(self, guard: Guard) -> None:
        """The server hands over."""

    async def drop_consumer(self, name: str) -> None:
        await self._consumers.drop(name)

    async def consumers(self) -> tuple[ConsumerState, ...]:
        return await self._consumers.list()

    async def consume(self, name: str, *, pending: int = 16) -> NatsConsumption:
        consumption = await self._consumers.attach(name, pending)
        self._consuming.add(consumption)
        return consumption

    # ── at once ──

    async def send(self, message: Message) -> None:
        self._check_size(message)
        headers, reply = message.headers, ""
        if REPLY in headers:
            headers = {name: value for name, value in headers.items() if name != REPLY}
            reply = message.headers[REPLY]
        await self._link.publish(message.subject, message.body, headers, reply)

    async def request(self, message: Message, *, timeout: float = 2.0) -> Message:
        self._check_size(message)
        answer = await self._link.ask(message.subject, message.body, message.headers, timeout=timeout)
        return Message(subject=answer.subject, body=answer.data, headers=answer.headers or {})

    async def serve(self, subject: str, handler: Handler) -> NatsServing:
        serving = NatsServing(self._link, handler, self._serving)
        await serving.start(subject)
        self._serving.add(serving)
        return serving

    def _check_size(self, message: Message) -> None:
        if len(message.body) > self._link.max_payload:
            problem = MESSAGE_TOO_LARGE(subject=message.subject, size=len(message.body), most=self._link.max_payload)
            raise SituError(problem)

    # ── values and objects ──

    async def get(self, bucket: str, key: str) -> KeyEntry | None:
        return await self._keys.get(bucket, key)

    async def put(self, bucket: str, key: str, value: bytes, *, expected: int | None = None) -> int:
        return await self._keys.put(bucket, key, value, expected)

    async def remove(self, bucket: str, key: str) -> None:
        await self._keys.remove(bucket, key)

    async def entries(self, bucket: str, prefix: str = "") -> tuple[KeyEntry, ...]:
        return await self._keys.entries(bucket, prefix)

    def watch(self, bucket: str, key: str) -> AsyncGenerator[KeyEntry, None]:
        return self._keys.watch(bucket, key)

    async def put_object(self, bucket: str, name: str, content: bytes) -> None:
        await self._keys.put_object(bucket, name, content)

    async def get_object(self, bucket: str, name: str) -> bytes | None:
        return await self._keys.get_object(bucket, name)

    async def remove_object(self, bucket: str, name: str) -> None:
        await self._keys.remove_object(bucket, name)

    async def close(self) -> None:
        for consumption in tuple(self._consuming):
            await consumption.close()
        for serving in tuple(self._serving):
            await serving.close()
        await self._publisher.close()
        await self._link.close()


class NatsServing:
    """A handler at work: one message after the other."""

    def __init__(self, link: NatsConnection, handler: Handler, among: set[NatsServing]) -> None:
        self._link = link
        self._among = among
        self._handler = handler
        self._came: asyncio.Queue[Msg] = asyncio.Queue()
        self._listening: NatsSubscription | None = None
        self._worker: asyncio.Task[None] | None = None

    async def start(self, subject: str) -> None:
        self._listening = await self._link.listen(subject, self._came.put_nowait)
        if (client := self._link.client) is not None:
            await client.flush()  # who is told that we serve must find us
        self._worker = asyncio.get_running_loop().create_task(self._work())

    async def _work(self) -> None:
        while True:
            came = await self._came.get()
            try:
                headers = dict(came.headers or {})
                headers.pop(REPLY, None)  # only the server says where an answer goes
                if came.reply:
                    headers[REPLY] = came.reply
                answer = await self._handler(Message(subject=came.subject, body=came.data, headers=headers))
            except Exception:  # noqa: BLE001 - a defect of one handler must not end what it serves
                _log.exception("the handler of %s failed", came.subject)
                continue
            if answer is not None and came.reply and (client := self._link.client) is not None:
                try:
                    await client.publish(came.reply, answer.body, headers=dict(answer.headers) or None)
                except (nats.errors.Error, OSError):
                    continue  # who asked is gone with the connection, and asks again

    async def close(self) -> None:
        self._among.discard(self)
        if self._listening is not None:
            await self._listening.close()
            self._listening = None
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
