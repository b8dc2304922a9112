"""A bus for callers that do not run an event loop: workers of Spark, commands, threads.

The connection lives on a loop of its own in a thread of its own. One bus is shared by all that ask for the same address
in one process; a process that was forked from another gets its own, since threads and sockets do not survive a fork.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import Coroutine, Iterator, Sequence
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar

from situ.bus.address import Address
from situ.bus.interface import ConsumerState, KeyEntry, StoreAck, StreamState
from situ.bus.nats import PATIENCE, NatsBus, open_bus
from situ.event.message import Message, StoredMessage
from situ.event.subjects import BusNames
from situ.lang.catalogue import BUS_UNREACHABLE
from situ.lang.problems import SituError
from situ.settings import Settings

T = TypeVar("T")

_MESSAGES, _BYTES = 512, 32 * 1024 * 1024  # under way at once
_CHUNK = 256  # messages that cross from the loop to the caller at a time


class BlockingBus:
    """The calls of :class:`situ.bus.interface.Bus` that sync callers need, from any thread."""

    def __init__(
        self, address: Address, *, name: str = "worker", timeout: float = 10.0, patience: float = PATIENCE
    ) -> None:
        self.address = address
        self.names = BusNames(address.zone)
        self._handed: deque[tuple[Message, str, Future[StoreAck]]] = deque()
        self._room = threading.Condition()
        self._messages = self._size = 0
        self._scheduled = False
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=f"bus {name}", daemon=True)
        self._thread.start()
        try:
            self._bus: NatsBus = self._call(open_bus(address, name=name, timeout=timeout, patience=patience))
        except BaseException:
            self._end()
            raise

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        if self._closed:
            work.close()
            raise SituError(BUS_UNREACHABLE(servers=str(self.address), reason="this connection was closed"))
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    @property
    def zone(self) -> str:
        return self.names.zone

    @property
    def connected(self) -> bool:
        return not self._closed and self._bus.connected

    # ── streams ──

    def prepare(self, settings: Settings) -> None:
        self._call(self._bus.prepare(settings))

    def store(self, message: Message, *, lane: str = "") -> Future[StoreAck]:
        """Hand over; waits while too much is under way. One thread's messages are stored in the order of its calls."""
        future: Future[StoreAck] = Future()
        size = len(message.body)
        with self._room:
            while (self._messages >= _MESSAGES or self._size >= _BYTES) and not self._closed:
                self._room.wait()
            if self._closed:
                raise SituError(BUS_UNREACHABLE(servers=str(self.address), reason="this connection was closed"))
            self._messages += 1
            self._size += size
            self._handed.append((message, lane, future))
            wake, self._scheduled = not self._scheduled, True
        if wake:
            self._loop.call_soon_threadsafe(self._take)
        return future

    def _take(self) -> None:
        """On the loop: pass on what callers handed over since the last time."""
        with self._room:
            self._scheduled = False
            handed, self._handed = self._handed, deque()
        for message, lane, future in handed:
            self._pass_on(message, lane, future)

    def _pass_on(self, message: Message, lane: str, future: Future[StoreAck]) -> None:
        def confirm(stored: asyncio.Future[StoreAck]) -> None:
            with self._room:
                self._messages -= 1
                self._size -= len(message.body)
                self._room.notify_all()
            if not future.set_running_or_notify_cancel():
                return
            if (error := stored.exception()) is not None:
                future.set_exception(error)
            else:
                future.set_result(stored.result())

        self._bus.hand_over(message, lane=lane).add_done_callback(confirm)

    def flush(self) -> None:
        """All that was handed over is stored or has failed; each future says which."""
        with self._room:
            while self._messages:
                self._room.wait()

    def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> Iterator[StoredMessage]:
        messages = self._bus.read(stream, first, last, subjects=subjects)

        async def some() -> list[StoredMessage]:
            found: list[StoredMessage] = []
            async for message in messages:
                found.append(message)
                if len(found) == _CHUNK:
                    break
            return found

        async def end() -> None:
            await messages.aclose()

        try:
            while chunk := self._call(some()):
                yield from chunk
        finally:
            if not self._closed:
                # Who gives up in the middle leaves this to the garbage collector, which may run on the loop's thread.
                ending = asyncio.run_coroutine_threadsafe(end(), self._loop)
                if threading.current_thread() is not self._thread:
                    ending.result()

    def state(self, stream: str) -> StreamState:
        return self._call(self._bus.state(stream))

    def find(self, stream: str, at: datetime) -> int:
        return self._call(self._bus.find(stream, at))

    def purge(self, stream: str, before: int) -> None:
        self._call(self._bus.purge(stream, before))

    def ensure_consumer(self, name: str, groups: Sequence[str]) -> None:
        self._call(self._bus.ensure_consumer(name, groups))

    def consumers(self) -> tuple[ConsumerState, ...]:
        return self._call(self._bus.consumers())

    # ── at once, values, objects ──

    def send(self, message: Message) -> None:
        self._call(self._bus.send(message))

    def request(self, message: Message, *, timeout: float = 2.0) -> Message:
        return self._call(self._bus.request(message, timeout=timeout))

    def get(self, bucket: str, key: str) -> KeyEntry | None:
        return self._call(self._bus.get(bucket, key))

    def put(self, bucket: str, key: str, value: bytes, *, expected: int | None = None) -> int:
        return self._call(self._bus.put(bucket, key, value, expected=expected))

    def remove(self, bucket: str, key: str) -> None:
        self._call(self._bus.remove(bucket, key))

    def entries(self, bucket: str, prefix: str = "") -> tuple[KeyEntry, ...]:
        return self._call(self._bus.entries(bucket, prefix))

    def put_object(self, bucket: str, name: str, content: bytes) -> None:
        self._call(self._bus.put_object(bucket, name, content))

    def get_object(self, bucket: str, name: str) -> bytes | None:
        return self._call(self._bus.get_object(bucket, name))

    def remove_object(self, bucket: str, name: str) -> None:
        self._call(self._bus.remove_object(bucket, name))

    # ── ending ──

    def close(self) -> None:
        """Everything handed over is stored or has failed; then the connection ends."""
        if self._closed:
            return
        self._call(self._bus.close())
        self._end()

    def _end(self) -> None:
        with self._room:
            self._closed = True
            self._room.notify_all()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def __enter__(self) -> BlockingBus:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


_shared: dict[tuple[int, Address], BlockingBus] = {}
_sharing = threading.Lock()


def shared_bus(address: Address, *, name: str = "worker") -> BlockingBus:
    """The bus at this address of this process, connected at the first call."""
    with _sharing:
        key = (os.getpid(), address)
        bus = _shared.get(key)
        if bus is None:
            # What a parent process shared stays in the dictionary, untouched: its sockets are not ours to close.
            bus = _shared[key] = BlockingBus(address, name=name)
        return bus


def close_shared() -> None:
    """Close what this process shares."""
    with _sharing:
        own = [key for key in _shared if key[0] == os.getpid()]
        closing = [_shared.pop(key) for key in own]
    for bus in closing:
        bus.close()


def _forget_lock() -> None:
    """In a forked child: the lock may have been held by a thread that the child does not have."""
    global _sharing
    _sharing = threading.Lock()


atexit.register(close_shared)
os.register_at_fork(after_in_child=_forget_lock)
