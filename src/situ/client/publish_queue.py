"""The publication queue of a client: events → messages, sent in order until they are stored.

Events that come close together share a message, whose boundaries never change. Several messages are under way at once;
when one fails, it and all behind it are sent again from there on (the router refuses what is out of order, so nothing
overtakes). The queue is bounded: who publishes faster than the router stores waits.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from situ.bus.event_loop import end
from situ.event.message import EventKey, join_lines
from situ.lang.catalogue import EVENT_TOO_LARGE, QUEUE_FULL
from situ.lang.problems import Problem, SituError
from situ.protocol.messages import FromRouter, Nack, Publish, PublishAck, Terms
from situ.protocol.wire import error_from_nack, problem_from_wire

_CHANCE = random.SystemRandom()  # not the one that programs seed
_UNDER_WAY = 16
_MOST_EVENTS, _MOST_BYTES = 100_000, 64 * 1024 * 1024
_DELAYS = (0.1, 0.4, 1.6, 6.4, 25.6)
_LONGEST = 30.0
RETRY, RECONNECT, STOP = "retry", "reconnect", "stop"

Transmit = Callable[[Publish], Awaitable[FromRouter]]


class Packet:
    """A message under way: numbers ``first`` to ``last`` of a client's incarnation."""

    __slots__ = ("body", "client", "dead", "first", "ids", "incarnation", "last", "lines", "outcome", "size")

    def __init__(self, client: str, incarnation: int, first: int) -> None:
        self.client = client
        self.incarnation = incarnation
        self.first = first
        self.last = first - 1
        self.lines: list[bytes] = []
        self.size = 0
        self.body = b""
        self.ids: list[str] = []
        self.dead: dict[int, tuple[Problem, ...]] = {}
        # The result is None or the error: an error nobody asks for is no mistake.
        self.outcome: asyncio.Future[SituError | None] = asyncio.get_running_loop().create_future()


class Receipt:
    """An event that is in the queue. ``await receipt.stored`` returns when it is stored, or raises why it is not.

    >>> receipt = await gate.publish_event("TruckSeen", truck="LY-204", speed=31.0)
    >>> await receipt.stored == receipt.key
    True
    """

    __slots__ = ("_id", "_number", "_packet")

    def __init__(self, number: int, id: str | None, packet: Packet | None) -> None:
        self._number = number
        self._id = id
        self._packet = packet

    @property
    def key(self) -> str:
        """Client, incarnation and number; of a duplicate none."""
        packet = self._packet
        return "" if packet is None else f"{packet.client}.{packet.incarnation}.{self._number}"

    @property
    def id(self) -> str:
        if self._id is not None or self._packet is None:
            return self._id or ""
        return f"{self._packet.incarnation}-{self._number}"

    @property
    def duplicate(self) -> bool:
        """An event of this id was published before: this one was not."""
        return self._packet is None

    @property
    def stored(self) -> Receipt:
        return self

    def __await__(self) -> Generator[Any, None, str]:
        packet = self._packet
        if packet is None:
            return self.key
        error = packet.outcome.result() if packet.outcome.done() else (yield from asyncio.shield(packet.outcome))
        if error is not None:
            raise error
        if packet.dead and (problems := packet.dead.get(self._number)) is not None:
            raise SituError(*problems)
        return self.key

    def __repr__(self) -> str:
        return f"Receipt(key={self.key!r}, id={self.id!r}, duplicate={self.duplicate})"


def pause(attempt: int, chance: float) -> float:
    """Seconds before the next attempt; ``chance`` is between 0 and 1 and spreads those that failed together."""
    base = _DELAYS[attempt] if attempt < len(_DELAYS) else _LONGEST
    return min(base * (0.75 + 0.5 * chance), _LONGEST)


class PublishQueue:
    """Owns the numbers of a client's events."""

    def __init__(
        self,
        client: str,
        incarnation: int,
        transmit: Transmit,
        *,
        events: int = _MOST_EVENTS,
        size: int = _MOST_BYTES,
        patience: float = 30.0,
    ) -> None:
        self.client = client
        self.incarnation = incarnation
        self.terms = Terms()
        self.stored = 0
        """The highest number known to be stored."""
        self.seq = 0
        """The highest number given."""
        self.resent = 0
        self.on_lost: Callable[[], None] = lambda: None
        """Called when the router does not know this client any more."""
        self.on_stored: Callable[[list[str]], None] = lambda ids: None
        self.on_mistake: Callable[[Exception], object] = lambda error: None
        """Called with what nobody foresaw; what was sent is sent again."""
        self._transmit = transmit
        self._most, self._size, self._patience = events, size, patience
        self._open: Packet | None = None
        self._linger: asyncio.TimerHandle | asyncio.Handle | None = None
        self._packets: deque[Packet] = deque()
        self._cursor = 0
        """How many of the packets are under way."""
        self._round = 0
        """Raised whenever sending starts again from the first: what comes of earlier attempts then counts no more."""
        self._bytes = 0
        self._sealed = False
        """A message was full just now, and nothing has been waited for since."""
        self._attempt = 0
        self._ready = False
        self._pausing: asyncio.TimerHandle | None = None
        self._room = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._error: SituError | None = None

    @property
    def queued(self) -> int:
        """Events that are not known to be stored."""
        return self.seq - self.stored

    # ── taking events in ──

    @property
    def busy(self) -> bool:
        """The next event must wait for :meth:`room`."""
        return self._sealed or self.seq - self.stored >= self._most or self._bytes >= self._size

    async def room(self) -> None:
        """Wait until another event may be queued."""
        if self._sealed:
            # Whoever publishes in a tight loop never waits otherwise, and nothing would be sent.
            self._sealed = False
            await asyncio.sleep(0)
        if self.busy:
            await self._wait_for_room()

    def put(self, line: bytes, id: str | None) -> Receipt:
        """Queue the event of the next number, whose text this is."""
        if self._error is not None:
            raise self._error
        size, terms = len(line), self.terms
        if size > terms.event_limit:
            raise SituError(EVENT_TOO_LARGE(size=size, most=terms.event_limit))
        seq = self.seq + 1
        packet = self._open
        if packet is None or packet.size + size > terms.batch_size:
            if packet is not None:
                self._seal()
            packet = self._open = Packet(self.client, self.incarnation, seq)
            self._empty.clear()
            self._schedule()
        self.seq = packet.last = seq
        packet.lines.append(line)
        packet.size += size + 2
        self._bytes += size
        if id is not None:
            packet.ids.append(id)
        if len(packet.lines) >= terms.batch_events:
            self._seal()
            self._sealed = True
        return Receipt(seq, id, packet)

    async def _wait_for_room(self) -> None:
        self._seal()
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience
        while self._error is None and (self.queued >= self._most or self._bytes >= self._size):
            self._room.clear()
            try:
                async with asyncio.timeout_at(deadline):
                    await self._room.wait()
            except TimeoutError:
                raise SituError(QUEUE_FULL(events=self.queued, seconds=f"{self._patience:g}")) from None

    def _schedule(self) -> None:
        loop = asyncio.get_running_loop()
        # With nothing under way there is nothing to wait for but what this very turn of the loop still brings.
        if self._ready and not self._packets:
            self._linger = loop.call_soon(self._seal)
        else:
            self._linger = loop.call_later(self.terms.linger, self._seal)

    def _seal(self) -> None:
        if self._linger is not None:
            self._linger.cancel()
            self._linger = None
        packet, self._open = self._open, None
        if packet is None:
            return
        packet.body = join_lines(packet.lines)
        packet.lines = []
        self._packets.append(packet)
        self._send()

    # ── sending ──

    def resume(self) -> None:
        """The router knows this client: send from the first that is not stored."""
        self._ready = True
        self._again(0.0)

    def hurry(self) -> None:
        """What made sending fail may be over: try now."""
        if self._pausing is not None:
            self._again(0.0)

    def suspend(self) -> None:
        """The router does not know this client now."""
        self._ready = False
        self._round += 1
        self._cursor = 0

    def fail(self, error: SituError) -> None:
        """Nothing will be stored any more."""
        self._error = error
        self._ready = False
        self._seal()
        for packet in self._packets:
            if not packet.outcome.done():
                packet.outcome.set_result(error)
        self._packets.clear()
        self._cursor = 0
        self._room.set()
        self._empty.set()

    async def flush(self, timeout: float | None = None) -> bool:
        """Wait until everything is stored; False if that takes too long."""
        self._seal()
        try:
            async with asyncio.timeout(timeout):
                await self._empty.wait()
        except TimeoutError:
            return False
        return True

    async def close(self) -> None:
        if self._pausing is not None:
            self._pausing.cancel()
        if self._linger is not None:
            self._linger.cancel()
        await end(self._tasks)

    def _send(self) -> None:
        while self._ready and self._pausing is None and self._cursor < min(len(self._packets), _UNDER_WAY):
            packet = self._packets[self._cursor]
            self._cursor += 1
            task = asyncio.get_running_loop().create_task(self._one(packet, self._round))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _one(self, packet: Packet, turn: int) -> None:
        key = EventKey(self.client, self.incarnation, packet.first)
        count = packet.last - packet.first + 1
        try:
            answer = await self._transmit(Publish(key=key, count=count, body=packet.body))
            if isinstance(answer, PublishAck):
                self._acknowledged(packet, answer)
            elif turn == self._round and isinstance(answer, Nack):
                self._refused(answer)
        except Exception as error:  # noqa: BLE001 - whatever it is: what is not known to be stored is sent again
            if not isinstance(error, SituError):
                self.on_mistake(error)
            if turn == self._round:
                self._again(self._next_pause())

    def _acknowledged(self, packet: Packet, answer: PublishAck) -> None:
        for each in answer.dead:
            others = (problem_from_wire(said.code, said.message, said.hint) for said in each.others)
            packet.dead[each.seq] = (problem_from_wire(each.code, each.message, each.hint), *others)
        self._attempt = 0
        while self._packets and self._packets[0].last <= answer.up_to:
            done = self._packets.popleft()
            self._cursor = max(self._cursor - 1, 0)
            self.stored = done.last
            self._bytes -= done.size - 2 * (done.last - done.first + 1)
            if done.ids:
                self.on_stored(done.ids)
            if not done.outcome.done():
                done.outcome.set_result(None)
        self._room.set()
        if not self._packets:
            if self._open is None:
                self._empty.set()
            else:
                self._seal()
        self._send()

    def _refused(self, nack: Nack) -> None:
        if nack.code in ("R001", "R005"):
            self.suspend()
            self.on_lost()
        elif nack.code == "R006":
            # The router waits for an earlier number: ours if it is one of those under way, else it has forgotten us.
            known = bool(self._packets) and nack.expected == self._packets[0].first
            if known:
                self._again(0.0 if self._attempt == 0 else self._next_pause())
                self._attempt += 1
            else:
                self.suspend()
                self.on_lost()
        elif nack.retry:
            self._again(self._next_pause())
        else:
            self.fail(error_from_nack(nack))

    def _next_pause(self) -> float:
        seconds = pause(self._attempt, _CHANCE.random())
        self._attempt += 1
        return seconds

    def _again(self, seconds: float) -> None:
        self._round += 1
        self.resent += self._cursor
        self._cursor = 0
        if self._pausing is not None:
            self._pausing.cancel()
            self._pausing = None
        if seconds:
            self._pausing = asyncio.get_running_loop().call_later(seconds, self._resume)
        else:
            self._send()

    def _resume(self) -> None:
        self._pausing = None
        self._send()
