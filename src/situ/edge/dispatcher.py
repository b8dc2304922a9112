"""The dispatcher of the edge engine: events in the logs are routed, shaped and delivered, in the order of the log.

`EdgeCursor` holds on disk how far that is, `recall_conversions` fills the state of conversions at the start,
`ShapeStateFile` holds the state of shaping, `Dispatcher` does the work and recovers what was not delivered.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, StoreAck
from situ.contexts.model import ROOT as ROOT_CONTEXT
from situ.edge.measure import EdgeMeter
from situ.event.failures import failed, failure_of
from situ.event.lines import place
from situ.event.row import BadRow, Row, origins_of
from situ.event.subjects import BusNames, pack_dead
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.quality.measurement.acknowledgements import Events
from situ.registry.past_scopes import learn_epochs
from situ.routing.routing_table import RoutedRows
from situ.stages.deliver import Deliveries, deliver, interpret_out, pack
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.pending_deliveries import DeliveryTag, PendingDeliveries, ReadyDeliveries
from situ.stages.plan import Plan
from situ.stages.root_log import dead_letter_line, read_lines, upgrade_message
from situ.stages.shape import ShapedDeliveries, ShapeState
from situ.stages.takeover import EngineHandover

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The cursor: what is routed of the root log, of the dead letters, and of each client.

_log = logging.getLogger("situ.edge")

NOTHING = (0, 0)
"""Incarnation and number of the last event of a client of which none was routed."""


class EdgeCursor:
    """``root`` and ``dead`` are sequences of messages up to which everything is delivered; None: not known.

    Messages are delivered in the order in which they were handed to the bus, which need not be that of the log: two
    clients are stored side by side. What is delivered before something that stands before it in the log is remembered,
    and the cursor stays: whoever goes on from it must not pass over anything.

    ``highest`` is incarnation and number of the last event of each lane that was routed, or begun to be: what comes
    again from a client is told from what is new by it, also after a restart.
    """

    def __init__(self, file: Path | None) -> None:
        self.root: int | None = None
        self.dead: int | None = None
        self.highest: dict[str, tuple[int, int]] = {}
        self._ahead: dict[str, set[int]] = {"root": set(), "dead": set()}
        self._file = file
        self._saved: tuple[int | None, int | None] = (None, None)
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            self._load(file)

    def _load(self, file: Path) -> None:
        try:
            known = json.loads(file.read_text())
            highest = {str(client): (int(one), int(two)) for client, (one, two) in known["highest"].items()}
            self.root, self.dead, self.highest = int(known["root"]), int(known["dead"]), highest
        except FileNotFoundError:
            return
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s cannot be read (%s): routing goes on behind the end of the log", file, error)

    def deliver(self, log: str, seq: int) -> None:
        """A message of one of the logs is delivered."""
        at: int | None = getattr(self, log)
        ahead = self._ahead[log]
        if at is None:
            at = seq - 1
        if seq > at:
            ahead.add(seq)
        while at + 1 in ahead:
            at += 1
            ahead.remove(at)
        setattr(self, log, at)

    def pass_over(self, log: str, seq: int) -> None:
        """Everything up to this message is delivered, or there is nothing any more that could be."""
        setattr(self, log, seq)
        self._ahead[log] = {each for each in self._ahead[log] if each > seq}

    def reached(self, lane: str, incarnation: int, seq: int) -> bool:
        """Whether this event of the lane was routed."""
        return (incarnation, seq) <= self.highest.get(lane, NOTHING)

    def reach(self, lane: str, incarnation: int, seq: int) -> None:
        if (incarnation, seq) > self.highest.get(lane, NOTHING):
            self.highest[lane] = (incarnation, seq)

    def save(self) -> None:
        if self._file is None or (self.root, self.dead) == self._saved:
            return
        new = self._file.with_suffix(".new")
        with suppress(OSError):  # a full disk: what is routed again after a restart is known by its ids
            new.write_text(json.dumps({"version": 1, "root": self.root, "dead": self.dead, "highest": self.highest}))
            new.replace(self._file)
            self._saved = (self.root, self.dead)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The state of conversions when an engine starts: read from the root log, as far back as it can still matter.


async def recall_conversions(bus: Bus, plan: Plan, routed: int | None) -> None:
    """Note what is in the log: for what comes in all of it, for deliveries up to the message routed last.

    An event is stored when it comes, and its own time is not later than that by more than clocks may differ.
    """
    interpretation = plan.interpretation
    interpretation.outgoing.holds = True
    if not interpretation.remembers:
        return
    stream = BusNames(plan.zone).root_stream
    state = await bus.state(stream)
    span = max(interpretation.incoming.span, interpretation.outgoing.span) + plan.deployment.settings.limits.ahead
    first = max(await bus.find(stream, datetime.now(UTC) - span), state.first)
    reached = state.last if routed is None or routed > state.last else routed
    count = 0
    async for stored in bus.read(stream, first, state.last):
        rows, _ = read_lines(upgrade_message(stored, interpretation))
        interpretation.incoming.note(rows)
        if stored.seq <= reached:
            interpretation.outgoing.note(rows)
        count += len(rows)
    if count:
        _log.info("looked through %d events of the log for what is remembered", count)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Shaping: what single subscriptions get of the events routed to them.
#
# What its filters remember follows the cursor: it is on disk as it was behind some message that is delivered, and what
# came from there to the cursor is shown to the filters once more when a process starts. So a process that dies in the
# midst of it decides everything again as it did.

_VERSION = 1
_SHARE = 20
"""Of the time at most one part in so many goes into writing down."""


@dataclass(frozen=True, slots=True)
class _Written:
    """What filters remembered behind a message, and how it is known that all before is delivered."""

    content: bytes
    is_delivered: Callable[[], bool]


def shaping_text(seq: int, shaping: Mapping[str, Any]) -> bytes:
    """What the file holds: what filters remember behind a message."""
    return msgspec.json.encode({"version": _VERSION, "seq": seq, "shaping": shaping})


class ShapeStateFile:
    """What filters remember, on disk."""

    def __init__(self, file: Path | None) -> None:
        self._file = file
        self._waiting: _Written | None = None
        self._last = b""
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether it is time to write down what is remembered by now."""
        return self._file is not None and self._waiting is None and time.monotonic() >= self._next

    def note(self, seq: int, shaping: ShapeState, is_delivered: Callable[[], bool]) -> None:
        """Take down what is remembered now, behind this message; it is written when that is delivered."""
        began = time.monotonic()
        self._waiting = _Written(shaping_text(seq, shaping.as_json()), is_delivered)
        self._next = time.monotonic() + _SHARE * (time.monotonic() - began)

    def write(self) -> None:
        """Write down what can be."""
        waiting = self._waiting
        if self._file is None or waiting is None or not waiting.is_delivered():
            return
        self._waiting = None
        if waiting.content == self._last:
            return
        beside = self._file.with_suffix(".new")
        with suppress(OSError):  # a full disk: what is on it is older, and more of the log is read again
            beside.write_bytes(waiting.content)
            beside.replace(self._file)
            self._last = waiting.content

    def forget(self) -> None:
        """Nothing is shaped any more."""
        self._waiting, self._last = None, b""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink(missing_ok=True)

    def restore(self, shaping: ShapeState, plan: Plan) -> int | None:
        """Go on with what is on disk; the message behind which it was remembered. None: there is nothing."""
        self._waiting = None
        if self._file is None or not self._file.exists():
            return None
        try:
            content = msgspec.json.decode(self._file.read_bytes())
            if content["version"] != _VERSION:
                raise ValueError(f"its version is {content['version']}")
            shaping.restore([content["shaping"]], plan)
            return int(content["seq"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            _log.warning("%s cannot be read (%s): shaping begins anew", self._file, error)
            shaping.restore([], plan)
            return None


async def replay_shapes(bus: Bus, plan: Plan, shaping: ShapeState, behind: int, until: int) -> None:
    """Show filters what came behind one message, up to another that is delivered: they had passed it before."""
    stream = BusNames(plan.zone).root_stream
    async for stored in bus.read(stream, behind + 1, until):
        rows, lines = read_lines(upgrade_message(stored, plan.interpretation))
        await learn_epochs(bus, plan, rows)
        lines = place(rows, lines, stored.seq)
        shaping.shape(rows, lines, plan.routing.route(rows, queued=True))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# From the logs to the subscribers. A cursor follows what is delivered. What lies behind it when a process starts was
# stored and not, or not certainly, delivered: it is routed again. Repeats that this makes end at the ids of messages
# and in the windows of clients; volatile subscriptions, which promise nothing over a crash, get none of it.

_MOST_UNDER_WAY = 256

ROOT, DEAD = "root", "dead"


@dataclass(slots=True)
class EdgeCounts:
    """What was done since the start."""

    types: Counter[str] = field(default_factory=Counter)
    """Events accepted, by type."""
    groups: Counter[str] = field(default_factory=Counter)
    """Events delivered to durable subscriptions, by group."""
    live: Counter[str] = field(default_factory=Counter)
    """Events sent to volatile subscriptions, by subscription."""
    dead: Counter[str] = field(default_factory=Counter)
    """Dead letters, by code."""
    origins: Counter[str] = field(default_factory=Counter)
    """Events accepted that came in other terms than root's, as `TYPE CONTEXT`."""
    originals: Counter[str] = field(default_factory=Counter)
    """Events that those of their own context got as they were sent, by context."""
    converted: Counter[str] = field(default_factory=Counter)
    """Events put in the terms of a context, by context: each once, however many get it."""
    dropped: Counter[str] = field(default_factory=Counter)
    """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""
    failures: Counter[str] = field(default_factory=Counter)
    """What failed in a way that nobody foresaw and is no event of a client, by what it was."""


@dataclass(slots=True, eq=False)
class _UnderWay(DeliveryTag):
    """A message of a log that is routed: what is to be stored for it, and how many of its deliveries are held.

    ``seq`` is None where time alone brought about that something is delivered.
    """

    log: str = ROOT
    seq: int | None = None
    stores: list[asyncio.Future[StoreAck]] = field(default_factory=list)
    delivered: bool = False


class Dispatcher:
    """Routes and delivers what is in the logs."""

    def __init__(
        self,
        bus: Bus,
        cursor: EdgeCursor,
        shaping: Path | None = None,
        measuring: EdgeMeter | None = None,
        mistakes: InternalErrors | None = None,
    ) -> None:
        self.counts = EdgeCounts()
        self._mistakes = mistakes or InternalErrors(_log)
        self.counts.failures = self._mistakes.counts
        self._measuring = measuring
        self.cursor = cursor
        self._bus = bus
        self._under_way: deque[_UnderWay] = deque()
        self._holding: PendingDeliveries | None = None
        self._shaping = ShapeState()
        self._shaping_file = ShapeStateFile(shaping)
        self._plan: Plan | None = None
        """By which is shaped."""
        self._seq = 0
        """Of the message of the root log that was shaped last."""

    async def dispatch_stored(self, seq: int, rows: list[Row], lines: list[bytes], plan: Plan) -> bool:
        """Route and deliver a message that is in the root log now; False if that was done before."""
        last = rows[-1]
        if self.cursor.reached(last.lane, last.incarnation, last.seq):
            return False
        self.cursor.reach(last.lane, last.incarnation, last.seq)
        self.count(rows)
        await self.dispatch(ROOT, seq, rows, place(rows, lines, seq), plan)
        return True

    def count(self, rows: Sequence[Row]) -> None:
        """Count events of one message that are in the root log."""
        self.counts.types.update([row.type for row in rows])
        if rows[0].context != ROOT_CONTEXT:
            self.counts.origins.update(origins_of(rows))

    async def dispatch(
        self, log: str, seq: int, rows: list[Row], lines: list[bytes], plan: Plan, *, live: bool = True
    ) -> None:
        """Route and deliver a message of a log; its durable deliveries are under way when this returns."""
        message = _UnderWay(log=log, seq=seq)
        if log == ROOT:
            await self.adopt(plan)
        self._begin(message)
        try:
            await self._dispatch(message, rows, lines, plan, live=live)
        except Exception as error:  # noqa: BLE001 - of this message: what comes behind it is delivered
            await self._dispatch_each(message, rows, lines, plan, error, live=live)
        finally:
            message.waiting -= 1
        if len(self._under_way) > _MOST_UNDER_WAY:
            await self.settle(most=_MOST_UNDER_WAY)

    async def _dispatch(
        self, message: _UnderWay, rows: list[Row], lines: list[bytes], plan: Plan, *, live: bool
    ) -> None:
        assert message.seq is not None
        seq = message.seq
        if message.log != ROOT:
            await self._deliver(message, deliver(rows, lines, plan, self._shaping, letters=True), plan, live=live)
        elif not self._may_wait(plan):
            self._seq = seq
            await self._deliver(message, deliver(rows, lines, plan, self._shaping), plan, live=live)
        else:
            assert self._holding is not None
            shaping = partial(self._shape, seq) if plan.shapes.by_id else None
            await self._deliver_said(self._holding.word(rows, lines, plan, message, shaping), plan, live=live)

    async def _dispatch_each(
        self,
        message: _UnderWay,
        rows: list[Row],
        lines: list[bytes],
        plan: Plan,
        error: Exception,
        *,
        live: bool,
    ) -> None:
        """Deliver the events of a message that failed, each by itself; those that fail again are dead letters.

        Where something is remembered from event to event, it would remember those twice that went well: all of them are
        dead letters then.
        """
        failure_of(error, "deliver")  # raises it on if it says nothing of events
        if message.log != ROOT:
            self._mistakes.note(error, "deliver dead letter")
            return
        bad: list[BadRow] = []
        alone = len(rows) > 1 and not self._may_wait(plan) and not plan.shapes.by_id
        for row, line in zip(rows, lines, strict=True):
            try:
                if not alone:
                    raise error
                await self._deliver(message, deliver([row], [line], plan, self._shaping), plan, live=live)
            except Exception as raised:  # noqa: BLE001 - of this event, and of no other
                bad.append(failed(row, "deliver", raised))
        message.stores += await self._refuse(bad, plan, live=live)

    def _begin(self, message: _UnderWay) -> None:
        """Nobody takes it for delivered, as what it does to filters is remembered, before it is handed over."""
        message.waiting += 1
        self._under_way.append(message)

    def _shape(self, seq: int, rows: Sequence[Row], lines: Sequence[bytes], routed: RoutedRows) -> ShapedDeliveries:
        self._seq = seq
        return self._shaping.shape(rows, lines, routed)

    def _may_wait(self, plan: Plan) -> bool:
        """Whether deliveries may wait for what is remembered; what waits is let go by a plan that remembers nothing."""
        return self._holding is not None and (bool(len(self._holding)) or plan.interpretation.remembers)

    async def _deliver_said(self, all_said: Iterable[ReadyDeliveries], plan: Plan, *, live: bool) -> None:
        for said in all_said:
            assert isinstance(said.tag, _UnderWay)
            await self._deliver(said.tag, pack(said.rows, said.worded, plan, self._shaping), plan, live=live)

    async def adopt(self, plan: Plan) -> None:
        """Shape by this plan from now on; what was held back and must be told then is delivered."""
        if plan is self._plan or (self._plan is not None and plan.version < self._plan.version):
            return
        self._plan = plan
        if plan.shapes.by_id or not self._shaping.is_empty:
            await self._let_go(*self._shaping.adopt(plan))
            self._note()

    async def tick(self, now: int) -> None:
        """Deliver what need not wait any longer, because nothing has come for long."""
        if self._plan is not None and self._shaping.holds:
            await self._let_go(self._shaping.tick(now), self._plan)

    async def _let_go(self, shaped: ShapedDeliveries, plan: Plan) -> None:
        if not shaped.rows:
            return
        message = _UnderWay()
        self._begin(message)
        if self._may_wait(plan):
            assert self._holding is not None
            await self._deliver_said(self._holding.say(shaped, plan, message), plan, live=True)
        else:
            found = pack(shaped.rows, interpret_out(shaped, plan), plan, self._shaping)
            await self._deliver(message, found, plan, live=True)
        message.waiting -= 1

    def keep(self) -> None:
        """Write down what filters remember, when all up to there is delivered and the cursor is behind it."""
        self._shaping_file.write()
        if self._shaping.is_empty:
            if self._plan is not None and not self._plan.shapes.by_id:
                self._shaping_file.forget()
        elif self._shaping_file.is_due():
            self._note()
            self._shaping_file.write()

    def _note(self) -> None:
        last, seq = self._under_way[-1] if self._under_way else None, self._seq

        def is_delivered() -> bool:
            return (last is None or last.delivered) and (self.cursor.root or 0) >= seq

        self._shaping_file.note(seq, self._shaping, is_delivered)

    async def _deliver(self, message: _UnderWay, found: Deliveries, plan: Plan, *, live: bool) -> None:
        counts, worded = self.counts, found.worded
        counts.originals.update(worded.originals)
        counts.converted.update(worded.converted)
        if found.sent and live:
            for each in found.sent:
                with suppress(SituError):  # nobody promised
                    await self._bus.send(each)
            for (client, names), number in Counter((client, names) for _, client, names, _ in worded.live).items():
                for name in names.split(","):
                    counts.live[f"{client}/{name}"] += number
        if found.stored:
            groups = Counter([group for _, group, _ in worded.durable])
            counts.groups.update(groups)
            message.stores += await self._store(found, groups)
        if found.bad and message.log == ROOT:
            message.stores += await self._refuse(found.bad, plan, live=live)
        elif found.bad:
            self._untold(found.bad)

    def _untold(self, bad: Sequence[BadRow]) -> None:
        """Dead letters that some do not get to know of: they are in the log of these all the same."""
        self._mistakes.of_events(bad)
        self._mistakes.counts["deliver dead letter"] += len(bad)

    async def _store(self, found: Deliveries, groups: Counter[str]) -> list[asyncio.Future[StoreAck]]:
        """Hand over what readers acknowledge; where that is counted, note what is stored of whom."""
        stores = [await self._bus.store(each) for each in found.stored]
        if self._measuring is not None and self._measuring.counts:
            origins = self._origins(found.rows, found.worded, groups)
            for (group, events), store in zip(origins.items(), stores, strict=True):
                store.add_done_callback(partial(self._measuring.note, group, events))
        return stores

    def _origins(self, rows: Sequence[Row], worded: ConvertedDeliveries, groups: Counter[str]) -> dict[str, Events]:
        """Group → whose events it gets, in the order in which messages are made of them."""
        assert self._measuring is not None
        whom = self._measuring.whom
        clients, types = {row.client for row in rows}, {row.type for row in rows}
        if whom.counted.isdisjoint(clients):
            return {group: {} for group in groups}
        if len(clients) == len(types) == 1:  # as of most messages: nothing has to be told apart
            origin = clients.pop(), types.pop()
            return {group: {origin: count} for group, count in groups.items()}
        own: dict[str, list[Row]] = {group: [] for group in groups}
        for index, group, _ in worded.durable:
            own[group].append(rows[index])
        return {group: whom.origins(each) for group, each in own.items()}

    async def _refuse(self, bad: Sequence[BadRow], plan: Plan, *, live: bool) -> list[asyncio.Future[StoreAck]]:
        """What cannot be put in somebody's terms is a dead letter, and a dead letter is an event itself."""
        self.counts.dead.update(each.errors[0][0] for each in bad)
        self._mistakes.of_events(bad)
        stores: list[asyncio.Future[StoreAck]] = []
        for each in bad:
            message = pack_dead(BusNames(plan.zone), each, dead_letter_line(each, each.recv, plan))
            stores.append(await self._bus.store(message))
            rows, lines = read_lines(message)
            found = deliver(rows, lines, plan)
            if found.bad:
                self._untold(found.bad)
            stores += await self._store(found, Counter([group for _, group, _ in found.worded.durable]))
            for sent in found.sent if live else ():
                with suppress(SituError):
                    await self._bus.send(sent)
        return stores

    async def refuse(self, bad: Sequence[BadRow], plan: Plan) -> None:
        """Events that are in the log and go no further somewhere else; their letters are stored when this returns."""
        for store in await self._refuse(bad, plan, live=True):
            await store

    async def settle(self, *, most: int | None = None) -> None:
        """Move the cursor over what is delivered; wait until no more than ``most`` messages are under way.

        A message of which something is held is not: the cursor stays before it.
        """
        while self._under_way and not self._under_way[0].waiting:
            first = self._under_way[0]
            for store in first.stores:
                if not store.done() and (most is None or len(self._under_way) <= most):
                    return
                await store
            if not self._under_way or self._under_way[0] is not first:
                continue  # somebody else has been here while this one waited
            self._under_way.popleft()
            first.delivered = True
            if first.seq is not None:
                self.cursor.deliver(first.log, first.seq)

    def leave(self, left: EngineHandover) -> EngineHandover:
        """What another engine needs of this, too: which deliveries wait, and what filters remember."""
        waiting = self._holding.as_json() if self._holding is not None else ()
        return replace(left, waiting=waiting, shaping={} if self._shaping.is_empty else self._shaping.as_json())

    async def recover(self, plan: Plan) -> None:
        """Route what is in the logs behind the cursor."""
        self._under_way.clear()
        self._holding = PendingDeliveries(plan.interpretation.outgoing)
        await recall_conversions(self._bus, plan, self.cursor.root)
        await self._recover_shaping(plan)
        root = await self._recover(ROOT, BusNames(plan.zone).root_stream, self.cursor.root, plan)
        if not self._under_way:  # else something is held, and what settles it moves the cursor
            self.cursor.pass_over(ROOT, root)
        self.cursor.pass_over(DEAD, await self._recover(DEAD, BusNames(plan.zone).dead_stream, self.cursor.dead, plan))
        self.cursor.save()

    async def _recover_shaping(self, plan: Plan) -> None:
        """Have filters remember what they did at the cursor."""
        self._shaping, self._plan = ShapeState(), None
        behind, reached = self._shaping_file.restore(self._shaping, plan), self.cursor.root
        self._seq = reached or 0
        released, by = self._shaping.adopt(plan)
        self._plan = plan
        if behind is not None and reached is not None and plan.shapes.by_id:
            await replay_shapes(self._bus, plan, self._shaping, behind, reached)
        self._shaping.dropped = self.counts.dropped
        await self._let_go(released, by)
        await self.settle(most=0)
        if not self._shaping.is_empty:  # before the cursor moves on
            self._note()
            self._shaping_file.write()

    async def _recover(self, log: str, stream: str, reached: int | None, plan: Plan) -> int:
        state = await self._bus.state(stream)
        if reached is None or reached > state.last:
            # Nothing was ever routed from this log, or it is another log: what comes is routed.
            return state.last
        if reached + 1 < state.first:
            _log.warning("%s has lost messages %d to %d before they were routed", stream, reached + 1, state.first - 1)
            self.cursor.pass_over(log, state.first - 1)
        count = 0
        async for stored in self._bus.read(stream, reached + 1, state.last):
            rows, lines = read_lines(upgrade_message(stored, plan.interpretation))
            await learn_epochs(self._bus, plan, rows)
            if log == ROOT:
                self.cursor.reach(rows[-1].lane, rows[-1].incarnation, rows[-1].seq)
                lines = place(rows, lines, stored.seq)
            await self.dispatch(log, stored.seq, rows, lines, plan, live=False)
            count += len(rows)
        await self.settle(most=0)
        if count:
            _log.info("routed %d events of %s that were stored and not routed before", count, stream)
        return state.last
