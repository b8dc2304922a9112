"""Events as an application gets them, and the streams that bring them: live, durable, and history first.

`Event` and `Data` are read from the line that was delivered, `Situation` from an event of a policy. `live`,
`history_then_live` and `DurableStream` are streams in which the step to the next event says that the last one is done
with.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from situ.bus.interface import Bus, Consumption
from situ.client.state_files import DoneEvents, SeenFile
from situ.lang.catalogue import BUS_UNREACHABLE, NO_ANSWER
from situ.lang.problems import SituError, nearest
from situ.protocol.dedup_window import DedupWindow
from situ.protocol.messages import HistoryAck

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# An event. A message of hundreds of events is decoded by one call; what few applications look at is made when they do.


class Data(dict[str, Any]):
    """The data of an event: ``event.data["at"]["x"]`` and ``event.data.at.x`` are the same."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        try:
            value = self[name]
        except KeyError:
            similar = nearest(name, self) or tuple(self)
            raise AttributeError(f"the data has no {name!r}; it has {', '.join(similar) or 'nothing'}") from None
        if type(value) is dict or type(value) is list:
            value = self[name] = _with_attributes(value)
        return value


def _with_attributes(value: Any) -> Any:
    if type(value) is dict:
        return Data(value)
    if type(value) is list:
        return [_with_attributes(item) for item in value]
    return value


class Event(msgspec.Struct, kw_only=True):
    """What was published, and where it stands: its ``pos`` among the events of the subscription, without gaps.

    ``context`` is the version of the context in whose terms it is, ``origin`` that in whose terms it was published.

    Its ``key`` is the same whenever and wherever the event is seen. Where there are scopes it says nothing but that.

    ``redelivered`` says that this process or one before it may have seen the event already. ``released`` names the
    dimensions in which an administrator let a situation go, and with it all that it does not say any more.
    ``imprecision`` is how far the value that it says may be from the latest, where that is what was asked for.

    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-310", speed=31.0)
    >>> async for event in office.events("TruckSeen", where="truck = 'LY-310'", since="begin", limit=1):
    ...     print(event.type, event.source, event.data.truck)
    TruckSeen gate LY-310
    """

    id: str
    source: str
    type: str
    instant: str = msgspec.field(name="time")
    key: str = msgspec.field(name="situkey", default="")
    context: str = msgspec.field(name="situcontext", default="root")
    origin: str = msgspec.field(name="situfrom", default="root")
    subject: str | None = None
    released: str = ""
    confidence: str | None = None
    imprecision: str | None = None
    redelivered: bool = msgspec.field(name="situredelivered", default=False)
    arrival: str = msgspec.field(name="siturecv", default="")
    subscriptions: str = msgspec.field(name="situsubs", default="")
    content: dict[str, Any] = msgspec.field(name="data", default_factory=dict)
    number: int = msgspec.field(name="situnumber", default=0)

    @property
    def data(self) -> Data:
        content = self.content
        if type(content) is not Data:
            content = self.content = Data(content)
        return content

    @property
    def time(self) -> datetime:
        return datetime.fromisoformat(self.instant)

    @property
    def received(self) -> datetime:
        """When its router got it."""
        return datetime.fromisoformat(self.arrival or self.instant)

    @property
    def pos(self) -> int:
        """Its number among those that its subscription was given: one more than that of the event before."""
        return self.number

    def __repr__(self) -> str:
        return f"Event(type={self.type!r}, key={self.key!r}, time={self.time.isoformat()!r}, data={dict(self.data)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What a policy found: from when to when, and who is in it. :meth:`of` reads it from an event.

    >>> found = await office.register_for_events("situ.situation.opened")
    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=80.0)
    >>> async for event in found:
    ...     situation = situ.Situation.of(event)
    ...     print(situation.policy, situation.bindings)
    ...     break
    speeding {'T': 'LY-204'}
    """

    id: str
    policy: str
    bindings: Mapping[str, str]
    """Alias of the policy → the id of what it stands for."""
    start: datetime
    """Of its first detection."""
    end: datetime | None = None
    """None while it is open."""
    text: str = ""
    """One sentence for people."""
    detections: int | None = None
    """How many there were, where they are counted: events do not say."""

    @classmethod
    def of(cls, event: Event) -> Situation:
        """The situation that an event of type ``situ.situation`` tells of; ValueError for other events."""
        from situ.lang.types.table import CLOSED, SITUATION  # with all types, which a client knows by name only

        if not event.type.startswith(SITUATION.name):
            raise ValueError(f"an event of type {event.type} tells of no situation")
        data = event.data
        # What was released may say no more when it ended than by the time of the event itself.
        closed = data.get("end") or (event.instant if event.type == CLOSED.name else None)
        return cls(
            id=data["situation"],
            policy=data["policy"],
            bindings={each["alias"]: each["id"] for each in data["bindings"]},
            start=datetime.fromisoformat(data["start"]),
            end=None if closed is None else datetime.fromisoformat(closed),
            text=data["text"],
        )


_DECODER: msgspec.json.Decoder[list[Event]] = msgspec.json.Decoder(list[Event])


def read_events(body: bytes) -> list[Event]:
    """The events of a message that was delivered."""
    return _DECODER.decode(body)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Streams.

BUFFERED = 1024

Stream = AsyncGenerator[Event, None]
_PASSING = (BUS_UNREACHABLE.code, NO_ANSWER.code)
_PAUSE = 1.0

Page = Callable[[str | None], Awaitable[HistoryAck]]
"""Asks for the page of history behind the last one, by what that said of its end; None: the first page."""


class EventBuffer:
    """Events that came and were not taken yet: the last 1,024. Older ones are dropped, and counted."""

    def __init__(self, size: int = BUFFERED) -> None:
        self.dropped = 0
        self.received = 0
        self.given = 0
        """Events that the application got: the next one has the number after that."""
        self._events: deque[Event] = deque()
        self._size = size
        self._some = asyncio.Event()
        self._over = False

    def put(self, event: Event) -> None:
        self.received += 1
        if len(self._events) >= self._size:
            self._events.popleft()
            self.dropped += 1
        self._events.append(event)
        self._some.set()

    def number(self, event: Event) -> Event:
        """Have an event numbered that is given to the application next."""
        self.given += 1
        event.number = self.given
        return event

    def end(self) -> None:
        """Nothing more will come."""
        self._over = True
        self._some.set()

    def clear(self) -> None:
        self._events.clear()

    def __len__(self) -> int:
        return len(self._events)

    async def take(self) -> Event | None:
        """The next event; None after the last."""
        while not self._events:
            if self._over:
                return None
            self._some.clear()
            await self._some.wait()
        return self._events.popleft()


async def live(buffer: EventBuffer) -> Stream:
    """Events as they come."""
    while (event := await buffer.take()) is not None:
        yield buffer.number(event)


async def history_then_live(pages: Page, buffer: EventBuffer) -> Stream:
    """What is in the log, and then what comes; the buffer must have been listening since before the first page.

    What came while history was read is in both. If the buffer could not hold all of it, it is emptied and history is
    read on: the log has everything.
    """
    window = DedupWindow()
    after: str | None = None
    while True:
        dropped = buffer.dropped
        more = True
        while more:
            page = await pages(after)
            for event in read_events(page.body):
                if window.add_key(event.key):
                    yield buffer.number(event)
            after, more = page.after, page.more
        if buffer.dropped == dropped:
            break
        buffer.clear()
        buffer.dropped = dropped
    while (came := await buffer.take()) is not None:
        if window.add_key(came.key):
            yield buffer.number(came)


class DurableStream:
    """The stream of a durable subscription, each event once as far as this client's disk remembers."""

    def __init__(self, bus: Bus, client: str, consumer: str, seen: SeenFile) -> None:
        self.repeats = 0
        """Events that came again and were not given again."""
        self.received = 0
        self._bus = bus
        self._client = client
        self._consumer = consumer
        self._seen = seen
        self._reading: Consumption | None = None
        self._over = False

    async def end(self) -> None:
        """Nothing more is given, whatever the consumer has."""
        self._over = True
        if self._reading is not None:
            await self._reading.close()

    async def stream(self, pages: Page | None, limit: int | None = None) -> Stream:
        """History first if it is asked for and was not read before; then what the consumer has.

        After ``limit`` events the stream ends, without a wait for one more, when the last is done with.
        """
        left = -1 if limit is None else limit
        if pages is not None and not self._seen.history.get("done"):
            async with aclosing(self._history(pages)) as events:
                async for event in events:
                    yield event
                    self._seen.add(event.key)
                    left -= 1
                    if left == 0:
                        return
        while not self._over:
            consumption: Consumption | None = None
            try:
                consumption = self._reading = await self._bus.consume(self._consumer)
                async for stored in consumption:
                    come = read_events(stored.body)
                    last = come[-1] if come else None  # none: all of it has become invisible while it waited
                    # The events of a message are mostly of one producer: all of a key but the number is read once.
                    producer, done = "", None
                    for event in come:
                        begin, _, number = event.key.rpartition(".")
                        if begin != producer:
                            producer, done = begin, self._done(begin)
                        if done is None:
                            continue
                        seq = done.number(number)
                        if done.has(seq):
                            self.repeats += 1
                            continue
                        if stored.redelivered:
                            event.redelivered = True
                        self.received += 1
                        event.number = self._seen.given + 1
                        yield event
                        done.add(seq)
                        left -= 1
                        if left == 0 and event is not last:
                            return
                    await consumption.acknowledge(stored.seq)
                    if left == 0:
                        return
            except SituError as error:
                if error.code not in _PASSING:
                    raise
                # The bus was away for longer than it waits by itself; what is not acknowledged comes again.
                await asyncio.sleep(_PAUSE)
            else:
                return
            finally:
                if consumption is not None:
                    await consumption.close()

    def _done(self, producer: str) -> DoneEvents | None:
        """What was done with of a producer, its client and incarnation; None if it is this client itself."""
        return None if producer.partition(".")[0] == self._client else self._seen.of(producer)

    async def _history(self, pages: Page) -> Stream:
        known = self._seen.history.get("after")
        after = None if known is None else str(known)
        again = after is not None
        more = True
        while more:
            page = await pages(after)
            for event in read_events(page.body):
                if self._seen.window.has_key(event.key):
                    continue
                event.redelivered = again
                event.number = self._seen.given + 1
                self.received += 1
                yield event
            after, more, again = page.after, page.more, False
            self._seen.note_history(after, done=not more)

    def close(self) -> None:
        self._seen.close()
