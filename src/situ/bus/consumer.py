"""Reading as a durable consumer of ``OUT``: in order, from the first unacknowledged message on, whatever happens.

The server remembers per consumer how far messages were handed out and how far they are acknowledged. It would hand out
unacknowledged ones again by itself, but late and between others; so its own patience is set to a year, and who attaches
reads what lies between the two marks again from the stream itself, in order, before he asks for new messages. The same
is done after a lost connection, and when a message was handed to somebody who never got it.

A consumer is never deleted to set it back: ``OUT`` keeps messages only for consumers that exist.

Among scopes a message is decided once more when it is handed over, by the router. A reader that gets one which was not,
or finds that its consumer is guarded, turns to the router and reads from its mark on.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from datetime import timedelta
from typing import Any

import msgspec
from nats.aio.msg import Msg

from situ.bus.connection import NatsConnection, NatsSubscription
from situ.bus.consumer_proxy import GUARDED, OWN, ConsumerAccess, RouterAccess, ServerAccess, is_guarded, subjects_of
from situ.bus.interface import ConsumerState
from situ.bus.streams import failure, nanoseconds
from situ.event.message import DECIDED, HANDED, StoredMessage
from situ.event.subjects import MIXED, BusNames
from situ.lang.catalogue import BUS_UNREACHABLE, NO_ANSWER, NOT_ON_BUS
from situ.lang.problems import SituError
from situ.lang.records import replace

_YEAR = nanoseconds(timedelta(days=365))
_EXPIRES = 10.0
_SOON = 3.0  # with a router in between, which may be started again and not know of a request any more
_PAUSE = 0.1
_AWAY = (BUS_UNREACHABLE.code, NO_ANSWER.code)


class _Undecided(Exception):
    """A message came past the router that had to be decided there."""


def configuration(name: str, subjects: Sequence[str], *, guarded: bool = False) -> dict[str, Any]:
    return {
        "name": name,
        "durable_name": name,
        "ack_policy": "all",
        "deliver_policy": "new",
        "ack_wait": _YEAR,
        "max_deliver": -1,
        "max_ack_pending": -1,  # readers bound what is under way themselves
        "filter_subjects": list(subjects),
        **({"metadata": {GUARDED: "yes"}} if guarded else {}),
    }


class Consumers:
    """The durable consumers of a zone."""

    def __init__(self, link: NatsConnection, names: BusNames) -> None:
        self._link = link
        self._names = names
        self._stream = names.out_stream

    async def ensure(self, name: str, groups: Sequence[str], *, guarded: bool = False) -> None:
        # Without a filter it would get everything: who has no groups waits for a group that there is not.
        subjects = sorted({self._names.out(group) for group in groups or (MIXED,)})
        request = {"stream_name": self._stream, "action": "", "config": configuration(name, subjects, guarded=guarded)}
        answer = await self._link.ask_server(f"CONSUMER.CREATE.{self._stream}.{name}", request)
        if "error" in answer:
            raise failure(answer["error"], "stream", self._stream)

    async def drop(self, name: str) -> None:
        answer = await self._link.ask_server(f"CONSUMER.DELETE.{self._stream}.{name}")
        if "error" in answer and answer["error"].get("code") != 404:
            raise failure(answer["error"], "consumer", name)

    async def list(self) -> tuple[ConsumerState, ...]:
        found: list[ConsumerState] = []
        while True:
            answer = await self._link.ask_server(f"CONSUMER.LIST.{self._stream}", {"offset": len(found)})
            if "error" in answer:
                raise failure(answer["error"], "stream", self._stream)
            page = answer.get("consumers") or []
            found.extend(self._state(info) for info in page)
            if not page or len(found) >= answer.get("total", 0):
                return tuple(sorted(found, key=lambda state: state.name))

    def _state(self, info: dict[str, Any]) -> ConsumerState:
        return ConsumerState(
            name=info["name"],
            groups=tuple(g for subject in subjects_of(info) if (g := self._names.group_of(subject)) != MIXED),
            acknowledged=info["ack_floor"]["stream_seq"],
            waiting=info["num_pending"],
            unacknowledged=info["num_ack_pending"],
            number=info["ack_floor"]["consumer_seq"],
            handed=info["delivered"]["stream_seq"],
            guarded=is_guarded(info),
        )

    async def attach(self, name: str, pending: int) -> NatsConsumption:
        of = RouterAccess if self._link.address.principal else ServerAccess
        consumption = NatsConsumption(self._link, of(self._link, self._stream, name), name, max(pending, 1))
        await consumption.start()
        return consumption


class _Given(msgspec.Struct, frozen=True):
    """A message under way to the reader."""

    message: StoredMessage
    number: int  # how many messages were handed to this consumer up to it


class NatsConsumption:
    """One reader at work; see :class:`situ.bus.interface.Consumption`."""

    def __init__(self, link: NatsConnection, taking: ConsumerAccess, name: str, pending: int) -> None:
        self._link = link
        self._taking = taking
        self._name = name
        self._pending = pending
        self._inbox = link.inbox()
        self._listening: NatsSubscription | None = None
        self._came: asyncio.Queue[Msg] = asyncio.Queue()
        self._wake = asyncio.Event()
        self._requests: dict[str, int] = {}  # by number: how many messages each may still bring
        self._request_numbers = iter(range(1, 2**62))
        self._unacknowledged: deque[_Given] = deque()
        self._seen = 0  # the last sequence given to the reader
        self._number = 0
        self._attached = False
        self._again = 0  # up to this sequence, messages were handed to another reader before
        self._acknowledged: _Given | None = None
        self._expires = _EXPIRES
        self._own = False  # whether numbers are the reader's own
        self._closed = False

    async def start(self) -> None:
        await self._taking.info()  # B109 if there is none
        self._listening = await self._link.listen(f"{self._inbox}.*", self._receive)
        self._link.on_up.append(self._wake.set)

    def _receive(self, message: Msg) -> None:
        self._came.put_nowait(message)
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[StoredMessage]:
        while not self._closed:
            down = self._link.down
            try:
                async for message in self._handed_out():
                    yield message
                async for message in self._new(down):
                    yield message
            except _Undecided:
                self._taking = self._taking.through_router()
            except SituError as error:
                if error.code not in _AWAY:
                    raise
                await asyncio.sleep(_PAUSE)  # a reader waits for its bus however long it is away
            self._requests.clear()
            self._inbox_drained()

    async def _new(self, down: asyncio.Event) -> AsyncIterator[StoredMessage]:
        """What comes, until there is reason to look at the marks again."""
        while not self._closed and not down.is_set():
            await self._ask()
            arrived = await self._next(down)
            if arrived is None:
                return  # silence
            given = self._take(arrived)
            if given is not None:
                if given.number != self._number + 1:
                    return  # one was handed to nobody: it is read from the stream
                self._note(given)
                yield given.message
            elif not self._requests and self._came.empty():
                return  # nothing came for as long as a request lasts

    def _inbox_drained(self) -> None:
        """What still arrives for old requests lies below the mark and is read from the stream instead."""
        while not self._came.empty():
            self._came.get_nowait()

    async def _handed_out(self) -> AsyncIterator[StoredMessage]:
        """What the server has handed out, but this reader not got or not acknowledged, in order."""
        await self._repeat_acknowledgement()
        info = await self._taking.info()
        if is_guarded(info):
            before, self._taking, self._expires = self._taking, self._taking.through_router(), _SOON
            if self._taking is not before:
                # What a reader before this one acknowledged goes through the router: it is there before this question.
                info = await self._taking.info()
            if not self._own and OWN in subjects_of(info):
                # From here on the router numbers messages, and sequences of the stream mean nothing any more.
                self._own, self._attached, self._acknowledged = True, False, None
                self._unacknowledged.clear()
        floor, handed = info["ack_floor"], info["delivered"]
        if not self._attached:
            self._attached = True
            self._seen, self._number, self._again = floor["stream_seq"], floor["consumer_seq"], handed["stream_seq"]
        if handed["stream_seq"] > self._seen:
            messages = self._taking.again(self._seen + 1, handed["stream_seq"], subjects_of(info))
            async with aclosing(messages) as found:
                async for message in found:
                    if DECIDED in message.headers:
                        raise _Undecided
                    number = handed["consumer_seq"] if message.seq == handed["stream_seq"] else self._number + 1
                    if message.seq <= self._again:
                        message = replace(message, redelivered=True)
                    await self._room()
                    self._note(_Given(message, number))
                    yield message
                    if self._closed:
                        return
        self._seen = max(self._seen, handed["stream_seq"])
        self._number = max(self._number, handed["consumer_seq"])

    async def _room(self) -> None:
        while len(self._unacknowledged) >= self._pending and not self._closed:
            self._wake.clear()
            await self._wake.wait()

    def _note(self, given: _Given) -> None:
        self._seen, self._number = given.message.seq, given.number
        self._unacknowledged.append(given)

    # ── asking for new messages ──

    async def _ask(self) -> None:
        """Ask for as many as the reader may have under way; wait while that is none."""
        await self._room()
        waiting = self._came.qsize() + sum(self._requests.values())
        wanted = self._pending - len(self._unacknowledged) - waiting
        # A few at a time: one request per acknowledgement would double the traffic.
        if self._closed or wanted <= 0 or (waiting and wanted * 2 < self._pending):
            return
        number = str(next(self._request_numbers))
        self._requests[number] = wanted
        await self._taking.next(wanted, self._expires, f"{self._inbox}.{number}")

    async def _next(self, down: asyncio.Event) -> Msg | None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + 2 * self._expires
        while self._came.empty():
            if down.is_set() or self._closed or loop.time() >= deadline:
                return None
            self._wake.clear()
            try:
                # Not `wait_for`: it may swallow a cancellation that comes with the event.
                async with asyncio.timeout(min(0.5, deadline - loop.time())):
                    await self._wake.wait()
            except TimeoutError:
                continue
        return self._came.get_nowait()

    def _take(self, arrived: Msg) -> _Given | None:
        headers = arrived.headers or {}
        status = headers.get("Status")
        if status is not None:
            # The request is over: it expired, or the server cannot serve it just now.
            self._requests.pop(arrived.subject.rpartition(".")[2], None)
            if status == "409" and "deleted" in str(headers.get("Description", "")).lower():
                raise SituError(NOT_ON_BUS(kind="consumer", name=self._name))
            return None
        if DECIDED in headers:
            raise _Undecided
        if oldest := next(iter(self._requests), None):  # the server serves requests one after the other
            self._requests[oldest] -= 1
            if not self._requests[oldest]:
                del self._requests[oldest]
        if self._own and HANDED not in headers:
            return None  # asked for before there was anything to guard: the router has it again
        acknowledged = headers.get(HANDED) or arrived.reply
        seq, handed, at = (int(token) for token in acknowledged.split(".")[-4:-1])
        message = StoredMessage(seq=seq, subject=arrived.subject, body=arrived.data, headers=headers, at=at // 1000)
        if seq <= self._seen:
            return None
        return _Given(message, handed)

    # ── acknowledging ──

    async def acknowledge(self, seq: int) -> None:
        last: _Given | None = None
        while self._unacknowledged and self._unacknowledged[0].message.seq <= seq:
            last = self._unacknowledged.popleft()
        if last is None:
            return
        self._acknowledged = last
        self._wake.set()
        await self._repeat_acknowledgement()

    async def _repeat_acknowledgement(self) -> None:
        """An acknowledgement that got lost is repeated by the next; after a lost connection, by this."""
        if (last := self._acknowledged) is not None:
            await self._taking.acknowledge(last.message, last.number)

    async def close(self) -> None:
        self._closed = True
        self._wake.set()
        if self._listening is not None:
            self._link.on_up.remove(self._wake.set)
            await self._taking.close()
            await self._listening.close()
            self._listening = None
