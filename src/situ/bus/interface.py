"""What every bus can do: keep messages in streams, carry them at once, keep values by key.

The engines know a bus by this protocol alone. Streams, buckets and subjects are named in :mod:`situ.event.subjects`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from situ.event.message import Message, StoredMessage
from situ.event.subjects import BusNames
from situ.settings import Settings


def wall_clock() -> int:
    """Microseconds since 1970: the clock of a zone, unless a test gives it another."""
    return time.time_ns() // 1000


class StoreAck(msgspec.Struct, frozen=True):
    """A message is stored under ``seq``; a duplicate was before, and that is where."""

    seq: int
    duplicate: bool = False


class StreamState(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream holds; ``first`` is ``last + 1`` if that is nothing."""

    first: int
    last: int
    messages: int
    size: int


class KeyEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A value under a key. No value: the key was removed."""

    key: str
    value: bytes | None
    revision: int


class ConsumerState(msgspec.Struct, frozen=True, kw_only=True):
    """How far a durable consumer is: acknowledged up to this sequence, and how many messages wait beyond."""

    name: str
    groups: tuple[str, ...]
    acknowledged: int
    waiting: int
    unacknowledged: int
    number: int = 0
    """How many messages were handed over up to the one that is acknowledged; those that were gone before are not."""
    handed: int = 0
    """The sequence of the last message that was handed over."""
    guarded: bool = False
    """Whether messages are decided once more when they are handed over."""


Handler = Callable[[Message], Awaitable[Message | None]]
"""Takes a message; what it gives back is the answer to a request."""


class Serving(Protocol):
    """A handler at work."""

    async def close(self) -> None: ...


class Consumption(Protocol):
    """The messages of one durable consumer, in the order of the stream, from the first unacknowledged on."""

    def __aiter__(self) -> AsyncIterator[StoredMessage]: ...

    async def acknowledge(self, seq: int) -> None:
        """All up to this sequence are done with."""

    async def close(self) -> None: ...


class Guard(Protocol):
    """Decides what readers of guarded consumers get when it is handed to them."""

    @property
    def active(self) -> bool:
        """Whether there is anything to decide."""

    def knows(self, consumer: str) -> bool:
        """Whether there is a subscription that this is the consumer of."""

    async def decide(self, consumer: str, message: StoredMessage) -> bytes | None:
        """The body that the reader of this consumer gets; None: the message is not for him any more."""

    def mark(self, seq: int, number: int) -> str:
        """What stands for the sequence of a message in its stream and its number for its reader: he learns neither."""

    def marked(self, mark: str) -> tuple[int, int] | None:
        """Sequence and number again; None, if nobody made this mark."""


class Bus(Protocol):
    """A connection to the bus of one zone."""

    @property
    def zone(self) -> str: ...

    @property
    def connected(self) -> bool: ...

    async def prepare(self, settings: Settings) -> None:
        """Streams and buckets of the zone are there, as the settings say; content they have stays."""

    async def store(self, message: Message, *, lane: str = "") -> asyncio.Future[StoreAck]:
        """Hand a message to its stream. Messages of one connection are stored in the order of these calls.

        Waits while too many are under way. The future fails with B-codes: stream full, bus unreachable. When a message
        of a lane fails, those that were handed over behind it in the same lane fail with it: a lane has no gaps.
        """

    def read(
        self, stream: str, first: int, last: int | None = None, *, subjects: Sequence[str] = ()
    ) -> AsyncGenerator[StoredMessage, None]:
        """What the stream holds of these sequences, in order; ends at ``last``, or where the stream ends now."""

    async def state(self, stream: str) -> StreamState: ...

    async def find(self, stream: str, at: datetime) -> int:
        """The first sequence stored at or after this time; one beyond the last if there is none."""

    async def purge(self, stream: str, before: int) -> None:
        """Remove all sequences below this one."""

    async def ensure_consumer(self, name: str, groups: Sequence[str], *, guarded: bool = False) -> None:
        """A durable consumer of these groups of ``OUT`` exists; if it did not, it starts with what comes now.

        If it is guarded, its readers get what the router of the zone makes of each message.
        """

    def guard(self, guard: Guard) -> None:
        """Ask this one what readers of guarded consumers get, where this object itself hands messages over. What a
        server hands over, readers ask their router for."""

    async def drop_consumer(self, name: str) -> None: ...

    async def consumers(self) -> tuple[ConsumerState, ...]: ...

    async def consume(self, name: str, *, pending: int = 16) -> Consumption:
        """Read as this durable consumer; at most ``pending`` messages are under way unacknowledged."""

    async def send(self, message: Message) -> None:
        """Carry a message to whoever listens now; nobody is no error. One that has the header ``Situ-Reply`` is a
        request whose answer goes to that subject, whoever listens there."""

    async def request(self, message: Message, *, timeout: float = 2.0) -> Message:
        """Send, and wait for the answer; B-codes for no listener, no answer in time."""

    async def serve(self, subject: str, handler: Handler) -> Serving:
        """Hand every message on the subject (``*`` and ``>`` as in NATS) to the handler, one at a time and in order.

        A request has the subject of its answer in the header ``Situ-Reply``: a handler that gives nothing back may
        answer later, and take the next message meanwhile, by sending to that subject.
        """

    async def get(self, bucket: str, key: str) -> KeyEntry | None: ...

    async def put(self, bucket: str, key: str, value: bytes, *, expected: int | None = None) -> int:
        """Set a value, give its revision. With ``expected`` only if that is the key's revision (0: it has none)."""

    async def remove(self, bucket: str, key: str) -> None: ...

    async def entries(self, bucket: str, prefix: str = "") -> tuple[KeyEntry, ...]: ...

    def watch(self, bucket: str, key: str) -> AsyncGenerator[KeyEntry, None]:
        """The value now, if there is one, and then every new one; ``key`` may hold wildcards."""

    async def put_object(self, bucket: str, name: str, content: bytes) -> None: ...

    async def get_object(self, bucket: str, name: str) -> bytes | None: ...

    async def remove_object(self, bucket: str, name: str) -> None: ...

    async def close(self) -> None:
        """Everything handed over is stored or has failed; then the connection ends."""


async def log_range(bus: Bus, begin: datetime, end: datetime | None) -> tuple[int, int]:
    """The first and the last message of the root log that was stored in this time."""
    stream = BusNames(bus.zone).root_stream
    state = await bus.state(stream)
    last = state.last if end is None else min(await bus.find(stream, end) - 1, state.last)
    return max(await bus.find(stream, begin), state.first), last
