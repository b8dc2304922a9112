"""The bus in the memory of one process, for tests and for what fits into one process; nothing outlives the process.

`MemoryStream` does what JetStream does with the configuration of a stream; `MemoryBus` is the whole `interface.Bus` on
top of it, held to the same tests as the bus on NATS. All who use it share one object and one event loop.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any

from situ.bus.interface import ConsumerState, Guard, Handler, KeyEntry, StoreAck, StreamState, wall_clock
from situ.bus.streams import configurations
from situ.event.message import REPLY, Message, StoredMessage
from situ.event.subjects import MIXED, BusNames
from situ.lang.catalogue import MESSAGE_TOO_LARGE, NO_ANSWER, NO_LISTENER, NOT_ON_BUS, OTHER_REVISION, STREAM_FULL
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.settings import Settings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# One stream: sequences, deduplication of ids within their window, limits, and interest: what nobody waits for is not
# kept. Plain data; no tasks, and time comes from the caller.

_OVERHEAD = 64  # bytes a message costs beyond its content


def fits(pattern: str, subject: str) -> bool:
    """Whether a subject is one of those a pattern with ``*`` and ``>`` means."""
    wanted, given = pattern.split("."), subject.split(".")
    for place, token in enumerate(wanted):
        if token == ">":
            return len(given) > place
        if place >= len(given) or token not in ("*", given[place]):
            return False
    return len(wanted) == len(given)


@dataclass(slots=True)
class MemoryConsumer:
    """How far a durable consumer is. It has interest in what came after it was made."""

    name: str
    groups: tuple[str, ...]
    subjects: frozenset[str]
    acknowledged: int
    handed: int
    number: int = 0
    """How many messages are acknowledged."""
    guarded: bool = False


@dataclass(slots=True)
class MemoryStream:
    """A stream with the configuration that :func:`situ.bus.streams.configurations` gives."""

    configuration: Mapping[str, Any]
    last: int = 0
    size: int = 0
    consumers: dict[str, MemoryConsumer] = field(default_factory=dict)
    _messages: dict[int, StoredMessage] = field(default_factory=dict)
    _ids: dict[str, tuple[int, int]] = field(default_factory=dict)

    def takes(self, subject: str) -> bool:
        return any(fits(pattern, subject) for pattern in self.configuration["subjects"])

    def append(self, message: Message, now: int) -> StoreAck:
        """Store at this time (microseconds); B103 if it refuses when full."""
        self._expire(now)
        if message.id and (before := self._ids.get(message.id)) is not None:
            return StoreAck(before[0], True)
        size = _size(message)
        most = self.configuration["max_bytes"]
        if self.configuration["discard"] == "new" and 0 < most < self.size + size:
            problem = STREAM_FULL(stream=self.configuration["name"], reason="maximum bytes exceeded")
            raise SituError(problem)
        self.last += 1
        if message.id:
            self._ids[message.id] = (self.last, now)
        if self._wanted(message.subject):
            self._messages[self.last] = StoredMessage(
                seq=self.last, subject=message.subject, body=message.body, headers=dict(message.headers), at=now
            )
            self.size += size
            while 0 < most < self.size:
                self._drop(next(iter(self._messages)))
        return StoreAck(self.last)

    def _wanted(self, subject: str) -> bool:
        if self.configuration["retention"] != "interest":
            return True
        return any(subject in consumer.subjects for consumer in self.consumers.values())

    def _expire(self, now: int) -> None:
        window, age = self.configuration["duplicate_window"] // 1000, self.configuration["max_age"] // 1000
        for id, (_, at) in tuple(self._ids.items()):
            if at + window > now:
                break  # they are in the order of their times
            del self._ids[id]
        for seq, message in tuple(self._messages.items()) if age else ():
            if message.at + age > now:
                break
            self._drop(seq)

    def _drop(self, seq: int) -> None:
        self.size -= _size(self._messages.pop(seq))

    def state(self) -> StreamState:
        first = next(iter(self._messages), self.last + 1)
        return StreamState(first=first, last=self.last, messages=len(self._messages), size=self.size)

    def between(self, first: int, last: int, subjects: Collection[str] = ()) -> Iterator[StoredMessage]:
        """What is held of these sequences now."""
        held = list(self._messages)
        for seq in held[bisect_left(held, first) :]:
            if seq > last:
                return
            message = self._messages.get(seq)
            if message is not None and (not subjects or any(fits(one, message.subject) for one in subjects)):
                yield message

    def find(self, at: int) -> int:
        return next((seq for seq, message in self._messages.items() if message.at >= at), self.last + 1)

    def purge(self, before: int) -> None:
        for seq in [seq for seq in self._messages if seq < before]:
            self._drop(seq)

    # ── consumers ──

    def ensure(self, name: str, groups: Sequence[str], subjects: Collection[str], *, guarded: bool = False) -> None:
        consumer = self.consumers.get(name)
        if consumer is None:
            consumer = MemoryConsumer(name, (), frozenset(), self.last, self.last)
            self.consumers[name] = consumer
        consumer.guarded = guarded
        consumer.groups, consumer.subjects = tuple(sorted(set(groups))), frozenset(subjects)
        self._release()

    def acknowledge(self, name: str, seq: int, count: int) -> None:
        """So many messages up to this one are done with."""
        consumer = self.consumers.get(name)
        if consumer is not None and consumer.acknowledged < seq <= consumer.handed:
            consumer.acknowledged = seq
            consumer.number += count
            self._release()

    def drop(self, name: str) -> None:
        if self.consumers.pop(name, None) is not None:
            self._release()

    def _release(self) -> None:
        """Nobody waits any more for what all who wanted it have acknowledged."""
        if self.configuration["retention"] != "interest":
            return
        for seq, message in tuple(self._messages.items()):
            if not any(c.acknowledged < seq and message.subject in c.subjects for c in self.consumers.values()):
                self._drop(seq)


def _size(message: Message | StoredMessage) -> int:
    headers = sum(len(name) + len(value) for name, value in message.headers.items())
    return len(message.subject) + len(message.body) + headers + _OVERHEAD


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The bus.

_log = logging.getLogger(__name__)
_MOST = 8 * 1024 * 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class MemoryBus:
    """A bus in the memory of this process, which outlives the zones on it. ``clock`` gives microseconds since 1970.

    >>> bus = situ.testing.MemoryBus()
    >>> async with situ.testing.Zone(yard, bus=bus) as zone, zone.connect("gate") as client:
    ...     receipt = await client.publish_event("TruckSeen", truck="LY-204", speed=31.0)
    ...     key = await receipt.stored
    >>> await bus.close()
    """

    def __init__(self, zone: str = "main", *, clock: Callable[[], int] = wall_clock) -> None:
        self.names = BusNames(zone)
        self._clock = clock
        self._streams: dict[str, MemoryStream] = {}
        self._buckets: dict[str, dict[str, KeyEntry]] = {}
        self._revisions: dict[str, int] = {}
        self._objects: dict[str, dict[str, bytes]] = {}
        self._serving: list[MemoryServing] = []
        self._replies: dict[str, asyncio.Future[Message]] = {}
        self._refused: dict[str, SituError] = {}  # by lane
        self._numbers = iter(range(1, 2**62))
        self._changed: set[asyncio.Event] = set()
        self._guard: Guard | None = None

    async def __aenter__(self) -> MemoryBus:
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
        return True

    async def prepare(self, settings: Settings) -> None:
        wanted = {configuration["name"]: configuration for configuration in configurations(self.names, settings)}
        for name in self.names.streams:
            if (stream := self._streams.get(name)) is not None:
                stream.configuration = wanted[name]
            else:
                self._streams[name] = MemoryStream(wanted[name])
        for bucket in self.names.buckets:
            self._buckets.setdefault(bucket, {})
        for store in self.names.object_stores:
            self._objects.setdefault(store, {})

    # ── streams ──

    async def store(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        return self.hand_over(message, lane=lane)

    def hand_over(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[StoreAck] = loop.create_future()
        try:
            if lane in self._refused:
                raise SituError(*self._refused[lane].problems)
            self._check_size(message)
            stream = next((stream for stream in self._streams.values() if stream.takes(message.subject)), None)
            if stream is None:
                raise SituError(NOT_ON_BUS(kind="stream for", name=message.subject))
            future.set_result(stream.append(message, self._clock()))
        except SituError as error:
            future.set_exception(error)
            if lane:
                # Until the loop turns nobody can know; what he hands over meanwhile is behind it.
                self._refused[lane] = error
                loop.call_soon(self._refused.pop, lane, None)
            return future
        self._carry(message)
        self._tell()
        return future

    async def flush(self) -> None:
        """Nothing is ever under way."""

    async def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> AsyncGenerator[StoredMessage, None]:
        held = self._stream(stream)
        for message in held.between(first, held.last if last is None else last, subjects):
            yield message

    async def state(self, stream: str) -> StreamState:
        return self._stream(stream).state()

    async def find(self, stream: str, at: datetime) -> int:
        return self._stream(stream).find((at - _EPOCH) // timedelta(microseconds=1))

    async def purge(self, stream: str, before: int) -> None:
        self._stream(stream).purge(before)

    def _stream(self, name: str) -> MemoryStream:
        if name not in self._streams:
            raise SituError(NOT_ON_BUS(kind="stream", name=name))
        return self._streams[name]

    # ── durable consumers ──

    async def ensure_consumer(self, name: str, groups: Sequence[str], *, guarded: bool = False) -> None:
        subjects = {self.names.out(group) for group in groups or (MIXED,)}
        self._stream(self.names.out_stream).ensure(name, groups, subjects, guarded=guarded)

    def guard(self, guard: Guard) -> None:
        self._guard = guard

    async def drop_consumer(self, name: str) -> None:
        self._stream(self.names.out_stream).drop(name)
        self._tell()

    async def consumers(self) -> tuple[ConsumerState, ...]:
        stream = self._stream(self.names.out_stream)
        return tuple(
            ConsumerState(
                name=one.name,
                groups=one.groups,
                acknowledged=one.acknowledged,
                waiting=sum(1 for _ in stream.between(one.handed + 1, stream.last, one.subjects)),
                unacknowledged=sum(1 for _ in stream.between(one.acknowledged + 1, one.handed, one.subjects)),
                number=one.number,
                handed=one.handed,
                guarded=one.guarded,
            )
            for one in sorted(stream.consumers.values(), key=lambda one: one.name)
        )

    async def consume(self, name: str, *, pending: int = 16) -> MemoryConsumption:
        stream = self._stream(self.names.out_stream)
        if name not in stream.consumers:
            raise SituError(NOT_ON_BUS(kind="consumer", name=name))
        return MemoryConsumption(stream, name, max(pending, 1), self._changed, lambda: self._guard)

    # ── at once ──

    async def send(self, message: Message) -> None:
        self._check_size(message)
        if (waiting := self._replies.pop(message.subject, None)) is not None:
            if not waiting.done():
                waiting.set_result(message)
            return
        self._carry(message)

    async def request(self, message: Message, *, timeout: float = 2.0) -> Message:
        self._check_size(message)
        answer: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        reply = f"_INBOX.{next(self._numbers)}"
        self._replies[reply] = answer
        try:
            if not self._carry(replace(message, headers={**message.headers, REPLY: reply})):
                raise SituError(NO_LISTENER(subject=message.subject))
            async with asyncio.timeout(timeout):
                return await answer
        except TimeoutError:
            raise SituError(NO_ANSWER(subject=message.subject, seconds=float(timeout))) from None
        finally:
            self._replies.pop(reply, None)

    async def serve(self, subject: str, handler: Handler) -> MemoryServing:
        serving = MemoryServing(self, subject, handler, self._serving)
        self._serving.append(serving)
        return serving

    def _carry(self, message: Message) -> bool:
        """Whether anybody listens."""
        found = [serving for serving in self._serving if fits(serving.subject, message.subject)]
        for serving in found:
            serving.receive(message)
        return bool(found)

    def _check_size(self, message: Message) -> None:
        if len(message.body) > _MOST:
            raise SituError(MESSAGE_TOO_LARGE(subject=message.subject, size=len(message.body), most=_MOST))

    def _tell(self) -> None:
        for event in self._changed:
            event.set()

    # ── values and objects ──

    def _bucket(self, name: str) -> dict[str, KeyEntry]:
        if name not in self._buckets:
            raise SituError(NOT_ON_BUS(kind="bucket", name=name))
        return self._buckets[name]

    async def get(self, bucket: str, key: str) -> KeyEntry | None:
        entry = self._bucket(bucket).get(key)
        return entry if entry is not None and entry.value is not None else None

    async def put(self, bucket: str, key: str, value: bytes, *, expected: int | None = None) -> int:
        there = await self.get(bucket, key)
        if expected is not None and expected != (there.revision if there is not None else 0):
            raise SituError(OTHER_REVISION(key=key, bucket=bucket, expected=expected))
        return self._set(bucket, key, value)

    async def remove(self, bucket: str, key: str) -> None:
        self._set(bucket, key, None)

    def _set(self, bucket: str, key: str, value: bytes | None) -> int:
        entries = self._bucket(bucket)
        revision = self._revisions[bucket] = self._revisions.get(bucket, 0) + 1
        entries.pop(key, None)  # in the order of revisions
        entries[key] = KeyEntry(key=key, value=value, revision=revision)
        self._tell()
        return revision

    async def entries(self, bucket: str, prefix: str = "") -> tuple[KeyEntry, ...]:
        found = [e for e in self._bucket(bucket).values() if e.key.startswith(prefix) and e.value is not None]
        return tuple(sorted(found, key=lambda entry: entry.key))

    async def watch(self, bucket: str, key: str) -> AsyncGenerator[KeyEntry, None]:
        entries, changed, seen, first = self._bucket(bucket), asyncio.Event(), 0, True
        self._changed.add(changed)
        try:
            while True:
                changed.clear()
                for entry in [e for e in entries.values() if e.revision > seen and fits(key, e.key)]:
                    seen = entry.revision
                    if entry.value is not None or not first:
                        yield entry
                first = False
                await changed.wait()
        finally:
            self._changed.discard(changed)

    async def put_object(self, bucket: str, name: str, content: bytes) -> None:
        self._store_of(bucket)[name] = bytes(content)

    async def get_object(self, bucket: str, name: str) -> bytes | None:
        return self._store_of(bucket).get(name)

    async def remove_object(self, bucket: str, name: str) -> None:
        self._store_of(bucket).pop(name, None)

    def _store_of(self, bucket: str) -> dict[str, bytes]:
        if bucket not in self._objects:
            raise SituError(NOT_ON_BUS(kind="object store", name=bucket))
        return self._objects[bucket]

    async def close(self) -> None:
        for serving in tuple(self._serving):
            await serving.close()


class MemoryConsumption:
    """One reader at work; see :class:`situ.bus.interface.Consumption`."""

    def __init__(
        self,
        stream: MemoryStream,
        name: str,
        pending: int,
        changed: set[asyncio.Event],
        guard: Callable[[], Guard | None],
    ) -> None:
        self._stream = stream
        self._guard = guard
        self._name = name
        self._pending = pending
        self._wake = asyncio.Event()
        self._changed = changed
        self._unacknowledged: deque[int] = deque()
        self._closed = False
        changed.add(self._wake)

    async def __aiter__(self) -> AsyncIterator[StoredMessage]:
        consumer = self._consumer()
        seen, again = consumer.acknowledged, consumer.handed
        while not self._closed:
            consumer = self._consumer()
            full = len(self._unacknowledged) >= self._pending
            waiting = () if full else self._stream.between(seen + 1, self._stream.last, consumer.subjects)
            message = next(iter(waiting), None)
            if message is None:
                self._wake.clear()
                await self._wake.wait()
                continue
            seen = message.seq
            consumer.handed = max(consumer.handed, seen)
            self._unacknowledged.append(seen)
            guard = self._guard() if consumer.guarded else None
            if guard is not None:
                body = await guard.decide(self._name, message)
                if body is None:
                    continue
                message = replace(message, body=body, headers={})
            yield replace(message, redelivered=True) if seen <= again else message

    def _consumer(self) -> MemoryConsumer:
        if self._name not in self._stream.consumers:
            raise SituError(NOT_ON_BUS(kind="consumer", name=self._name))
        return self._stream.consumers[self._name]

    async def acknowledge(self, seq: int) -> None:
        last = count = 0
        while self._unacknowledged and self._unacknowledged[0] <= seq:
            last, count = self._unacknowledged.popleft(), count + 1
        self._stream.acknowledge(self._name, last, count)
        self._wake.set()

    async def close(self) -> None:
        self._closed = True
        self._wake.set()
        self._changed.discard(self._wake)


class MemoryServing:
    """A handler at work: one message after the other."""

    def __init__(self, bus: MemoryBus, subject: str, handler: Handler, among: list[MemoryServing]) -> None:
        self.subject = subject
        self._bus = bus
        self._handler = handler
        self._among = among
        self._came: asyncio.Queue[Message] = asyncio.Queue()
        self._worker = asyncio.get_running_loop().create_task(self._work())

    def receive(self, message: Message) -> None:
        self._came.put_nowait(message)

    async def _work(self) -> None:
        while True:
            came = await self._came.get()
            try:
                answer = await self._handler(came)
            except Exception:  # noqa: BLE001 - a defect of one handler must not end what it serves
                _log.exception("the handler of %s failed", came.subject)
                continue
            if answer is not None and (reply := came.headers.get(REPLY)):
                await self._bus.send(replace(answer, subject=reply))

    async def close(self) -> None:
        if self in self._among:
            self._among.remove(self)
        self._worker.cancel()
        await asyncio.gather(self._worker, return_exceptions=True)
