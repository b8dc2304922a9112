"""From the logs to the subscribers: events that are stored are routed and delivered, in the order of the log.

A cursor follows what is delivered. What lies behind it when a process starts was stored and not, or not certainly,
delivered: it is routed again. Repeats that this makes end at the ids of messages and in the windows of clients;
volatile subscriptions, which promise nothing over a crash, get none of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, deque
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from situ.bus.interface import Ack, Bus
from situ.bus.names import Names
from situ.bus.packing import pack_dead
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.holding import Holding, Said, Tag
from situ.deployment.letters import letter
from situ.deployment.plan import Plan
from situ.deployment.shaping import Shaped, Shaping
from situ.deployment.takeover import Left
from situ.deployment.wording import Worded
from situ.edge import deliver
from situ.edge.cursor import Cursor
from situ.edge.epochs import learn_epochs
from situ.edge.interpret import word
from situ.edge.measure import Measuring
from situ.edge.mistakes import Mistakes
from situ.edge.recalling import recall
from situ.edge.root_log import place, read_lines
from situ.edge.route import route
from situ.edge.shape import ShapingFile, shape, show_again
from situ.errors import SituError
from situ.event.isolation import failed, failure_of, is_of_event
from situ.event.message import Message
from situ.event.row import Bad, Row
from situ.quality.receipts import Events
from situ.subscription.routing import Routed

_log = logging.getLogger("situ.edge")
_MOST_UNDER_WAY = 256

ROOT, DEAD = "root", "dead"


@dataclass(slots=True)
class Counts:
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
class _UnderWay(Tag):
    """A message of a log that is routed: what is to be stored for it, and how many of its deliveries are held.

    ``seq`` is None where time alone brought about that something is delivered.
    """

    log: str = ROOT
    seq: int | None = None
    stores: list[asyncio.Future[Ack]] = field(default_factory=list)
    delivered: bool = False


class Dispatcher:
    """Routes and delivers what is in the logs."""

    def __init__(
        self,
        bus: Bus,
        cursor: Cursor,
        shaping: Path | None = None,
        measuring: Measuring | None = None,
        mistakes: Mistakes | None = None,
    ) -> None:
        self.counts = Counts()
        self._mistakes = mistakes or Mistakes(_log)
        self.counts.failures = self._mistakes.counts
        self._measuring = measuring
        self.cursor = cursor
        self._bus = bus
        self._under_way: deque[_UnderWay] = deque()
        self._holding: Holding | None = None
        self._shaping = Shaping()
        self._shaping_file = ShapingFile(shaping)
        self._plan: Plan | None = None
        """By which is shaped."""
        self._seq = 0
        """Of the message of the root log that was shaped last."""

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
            await self._deliver_now(message, _unshaped(rows, lines, plan), plan, live=live)
        elif not self._may_wait(plan):
            shaped = _unshaped(rows, lines, plan)
            if plan.shapes.by_id:
                shaped = self._shape(seq, rows, lines, shaped.routed)
            else:
                self._seq = seq
            await self._deliver_now(message, shaped, plan, live=live)
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
        bad: list[Bad] = []
        alone = len(rows) > 1 and not self._may_wait(plan) and not plan.shapes.by_id
        for row, line in zip(rows, lines, strict=True):
            try:
                if not alone:
                    raise error
                await self._deliver_now(message, _unshaped([row], [line], plan), plan, live=live)
            except Exception as raised:  # noqa: BLE001 - of this event, and of no other
                bad.append(failed(row, "deliver", raised))
        message.stores += await self._refuse(bad, plan, live=live)

    def _begin(self, message: _UnderWay) -> None:
        """Nobody takes it for delivered, as what it does to filters is remembered, before it is handed over."""
        message.waiting += 1
        self._under_way.append(message)

    def _shape(self, seq: int, rows: Sequence[Row], lines: Sequence[bytes], routed: Routed) -> Shaped:
        self._seq = seq
        return shape(self._shaping, rows, lines, routed)

    def _may_wait(self, plan: Plan) -> bool:
        """Whether deliveries may wait for what is remembered; what waits is let go by a plan that remembers nothing."""
        return self._holding is not None and (bool(len(self._holding)) or plan.interpretation.remembers)

    async def _deliver_now(self, message: _UnderWay, shaped: Shaped, plan: Plan, *, live: bool) -> None:
        worded = self._shaping.mark(shaped.rows, word(shaped.rows, shaped.lines, shaped.routed, plan))
        await self._deliver(message, shaped.rows, worded, plan, live=live)

    async def _deliver_said(self, all_said: Iterable[Said], plan: Plan, *, live: bool) -> None:
        for said in all_said:
            assert isinstance(said.tag, _UnderWay)
            await self._deliver(said.tag, said.rows, self._shaping.mark(said.rows, said.worded), plan, live=live)

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

    async def _let_go(self, shaped: Shaped, plan: Plan) -> None:
        if not shaped.rows:
            return
        message = _UnderWay()
        self._begin(message)
        if self._may_wait(plan):
            assert self._holding is not None
            await self._deliver_said(self._holding.say(shaped, plan, message), plan, live=True)
        else:
            await self._deliver_now(message, shaped, plan, live=True)
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

    async def _deliver(
        self, message: _UnderWay, rows: Sequence[Row], worded: Worded, plan: Plan, *, live: bool
    ) -> None:
        counts = self.counts
        counts.originals.update(worded.originals)
        counts.converted.update(worded.converted)
        bad = list(worded.bad)
        try:
            now = deliver.live(worded, plan)
            queued = deliver.durable(rows, worded, plan) if worded.durable else []
        except Exception as error:
            if not is_of_event(error):
                raise
            worded = self._deliverable(rows, worded, plan, bad)
            now, queued = deliver.live(worded, plan), deliver.durable(rows, worded, plan)
        if now and live:
            for each in now:
                with suppress(SituError):  # nobody promised
                    await self._bus.send(each)
            for (client, names), number in Counter((client, names) for _, client, names, _ in worded.live).items():
                for name in names.split(","):
                    counts.live[f"{client}/{name}"] += number
        if queued:
            groups = Counter([group for _, group, _ in worded.durable])
            counts.groups.update(groups)
            message.stores += await self._store(rows, worded, queued, groups)
        if bad and message.log == ROOT:
            message.stores += await self._refuse(bad, plan, live=live)
        elif bad:
            self._untold(bad)

    def _untold(self, bad: Sequence[Bad]) -> None:
        """Dead letters that some do not get to know of: they are in the log of these all the same."""
        self._mistakes.of_events(bad)
        self._mistakes.counts["deliver dead letter"] += len(bad)

    def _deliverable(self, rows: Sequence[Row], worded: Worded, plan: Plan, bad: list[Bad]) -> Worded:
        """What can be put into messages; the rows of which that is not so are ``bad``."""
        fine = set()
        for index in sorted({each[0] for each in worded.durable} | {each[0] for each in worded.live}):
            one = _only(worded, {index})
            try:
                deliver.live(one, plan)
                deliver.durable(rows, one, plan)
                fine.add(index)
            except Exception as error:  # noqa: BLE001 - of this event, and of no other
                bad.append(failed(rows[index], "deliver", error))
        return _only(worded, fine)

    async def _store(
        self, rows: Sequence[Row], worded: Worded, messages: Sequence[Message], groups: Counter[str]
    ) -> list[asyncio.Future[Ack]]:
        """Hand over what readers acknowledge; where that is counted, note what is stored of whom."""
        stores = [await self._bus.store(each) for each in messages]
        if self._measuring is not None and self._measuring.counts:
            for (group, events), store in zip(self._origins(rows, worded, groups).items(), stores, strict=True):
                store.add_done_callback(partial(self._measuring.note, group, events))
        return stores

    def _origins(self, rows: Sequence[Row], worded: Worded, groups: Counter[str]) -> dict[str, Events]:
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

    async def _refuse(self, bad: Sequence[Bad], plan: Plan, *, live: bool) -> list[asyncio.Future[Ack]]:
        """What cannot be put in somebody's terms is a dead letter, and a dead letter is an event itself."""
        self.counts.dead.update(each.errors[0][0] for each in bad)
        self._mistakes.of_events(bad)
        stores: list[asyncio.Future[Ack]] = []
        for each in bad:
            message = pack_dead(Names(plan.zone), each, letter(each, each.recv, plan))
            stores.append(await self._bus.store(message))
            rows, lines = read_lines(message)
            worded = word(rows, lines, route(rows, plan, queued=True), plan)
            if worded.bad:
                self._untold(worded.bad)
            queued = deliver.durable(rows, worded, plan)
            stores += await self._store(rows, worded, queued, Counter([group for _, group, _ in worded.durable]))
            for sent in deliver.live(worded, plan) if live else ():
                with suppress(SituError):
                    await self._bus.send(sent)
        return stores

    async def refuse(self, bad: Sequence[Bad], plan: Plan) -> None:
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

    def leave(self, left: Left) -> Left:
        """What another engine needs of this, too: which deliveries wait, and what filters remember."""
        waiting = self._holding.as_json() if self._holding is not None else ()
        return replace(left, waiting=waiting, shaping={} if self._shaping.is_empty else self._shaping.as_json())

    async def recover(self, plan: Plan) -> None:
        """Route what is in the logs behind the cursor."""
        self._under_way.clear()
        self._holding = Holding(plan.interpretation.outgoing)
        await recall(self._bus, plan, self.cursor.root)
        await self._recover_shaping(plan)
        root = await self._recover(ROOT, Names(plan.zone).root_stream, self.cursor.root, plan)
        if not self._under_way:  # else something is held, and what settles it moves the cursor
            self.cursor.pass_over(ROOT, root)
        self.cursor.pass_over(DEAD, await self._recover(DEAD, Names(plan.zone).dead_stream, self.cursor.dead, plan))
        self.cursor.save()

    async def _recover_shaping(self, plan: Plan) -> None:
        """Have filters remember what they did at the cursor."""
        self._shaping, self._plan = Shaping(), None
        behind, reached = self._shaping_file.restore(self._shaping, plan), self.cursor.root
        self._seq = reached or 0
        released, by = self._shaping.adopt(plan)
        self._plan = plan
        if behind is not None and reached is not None and plan.shapes.by_id:
            await show_again(self._bus, plan, self._shaping, behind, reached)
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
            rows, lines = read_lines(in_terms_of_now(stored, plan.interpretation))
            await learn_epochs(self._bus, plan, rows)
            if log == ROOT:
                self.cursor.reach(rows[-1].client, rows[-1].incarnation, rows[-1].seq)
                lines = place(rows, lines, stored.seq)
            await self.dispatch(log, stored.seq, rows, lines, plan, live=False)
            count += len(rows)
        await self.settle(most=0)
        if count:
            _log.info("routed %d events of %s that were stored and not routed before", count, stream)
        return state.last


def _only(worded: Worded, places: Collection[int]) -> Worded:
    """The deliveries of these rows."""
    durable = [each for each in worded.durable if each[0] in places]
    live = [each for each in worded.live if each[0] in places]
    return replace(worded, durable=durable, live=live)


def _unshaped(rows: Sequence[Row], lines: Sequence[bytes], plan: Plan) -> Shaped:
    return Shaped(rows=rows, lines=lines, routed=route(rows, plan, queued=True))
