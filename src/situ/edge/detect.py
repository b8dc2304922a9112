"""Stage detect: events of the root log → situations, published as events of their policies.

Works beside routing: what the log has is taken in portions, a step of detection for each. While nothing comes and
something is still to be decided, the clock alone brings the next step.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.bus.packing import pack_late
from situ.deployment.detecting import Detecting, Watch
from situ.deployment.filling import Begun, begin_with
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.happening import Published, messages_of, positions_of
from situ.deployment.plan import Plan
from situ.deployment.progress import Progress
from situ.deployment.stepping import STAGE, States, Step, Worked, decide, detections_safely, work_rows
from situ.deployment.takeover import Highest, LeftByDetection
from situ.deployment.tally import Tally, Watched
from situ.edge.at_hand import AtHand
from situ.edge.ending import end
from situ.edge.epochs import learn_epochs
from situ.edge.fill import fill
from situ.edge.mistakes import Mistakes
from situ.edge.outbox import Outbox
from situ.edge.pausing import Pausing
from situ.edge.recovering import LeftInLog, plan_of, states_of
from situ.edge.remembered import Done, Record, Remembered
from situ.edge.snapshot import Snapshot
from situ.edge.taken import StepsTaken, Taken
from situ.event.isolation import Failure, failed_by
from situ.event.lines import decode_line, encode_row, stamped_line, stored_lines
from situ.event.message import PLACES, EventKey, position
from situ.event.row import Bad, Row
from situ.situation.enrichment.known import Knowledge
from situ.situation.meaning.detection import Instances
from situ.situation.meaning.lifecycle import Transition
from situ.sources.table import Table

_audit = logging.getLogger("situ.audit")
_TICK = 0.05
"""Seconds between steps that only the clock brings."""
_SAVE_EVERY = 5.0
END_WITHIN = 5.0
"""Seconds that writing down what is remembered may take at the end."""
_FEW, _BRIEF = 256, 0.005
"""Events of a step, and seconds that one of the two before took, for which no other thread is asked: two that both
have something to do take turns of several milliseconds. One long step alone does not say that the next is long."""
_MOST_TOLD = 64
"""Messages that wait to be published; while it cannot be done, nothing more is detected."""

Refuse = Callable[[Sequence[Bad], Plan], Awaitable[None]]
"""Make dead letters of events that are in the log; they are stored when this returns."""
Publish = Callable[[Published], Awaitable[None]]
"""Take a message of a policy in, as the router hands over those of other clients; it is stored when this returns, or
will be before anything more is kept."""


class EdgeDetection:
    """The policies of one zone in this process."""

    def __init__(
        self,
        bus: Bus,
        folder: Path | None,
        tables: Callable[[], Mapping[str, Table]],
        refuse: Refuse,
        mistakes: Mistakes,
    ) -> None:
        self._bus = bus
        self._refuse = refuse
        self._mistakes = mistakes
        self._tables = tables
        self._remembered = Remembered(folder / ".situ" / "edge" / "detect" if folder is not None else None)
        self._queue: deque[Taken] = deque()
        self._woken = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        """Steps, and keeping what is remembered between them."""
        self._plan: Plan | None = None
        self._knowledge: Knowledge | None = None
        self._progress = Progress()
        self._states: States = {}
        self._due = False
        self._taken = StepsTaken()
        self._in_hand = False
        self._outbox: Outbox[Published] = Outbox(_MOST_TOLD)
        self._at_hand = AtHand()
        self._took = deque([0.0, 0.0], maxlen=2)
        """Seconds of the processor for the last steps."""
        self._pausing = Pausing()
        self._changed = False
        self._closed = False
        self._highest: Highest = {}
        self._none_beside = asyncio.Event()
        """Nothing is written down beside the steps."""
        self._none_beside.set()
        self.counts = Tally()
        """What was done since the start."""

    @property
    def watched(self) -> Watched:
        return Watched(
            tally=self.counts, progress=self._progress, detecting=self._plan.detecting if self._plan else None
        )

    @property
    def _detecting(self) -> Detecting:
        assert self._plan is not None, "detection begins with a plan"
        return self._plan.detecting

    # ── beginning and end ──

    async def start(self, plan: Plan, publish: Publish, highest: Highest) -> None:
        """Go on where a process before this one was: what it was to publish is published, what it left is taken.

        ``highest`` is how far each client is, policies among them.
        """
        # What a start before this one left in them is written down, or taken anew.
        self._outbox, self._taken, self._closed = Outbox(_MOST_TOLD), StepsTaken(), False
        self._highest = highest
        record = await asyncio.to_thread(self._remembered.load)
        last = (await self._bus.state(Names(plan.zone).root_stream)).last
        if record is None or record.reached > last:
            self._use(plan)
            progress, _ = Progress(incarnation=_now()).adopted(plan.detecting, None, _now())
            self._progress = progress.beyond(highest)
            # What was there before is nothing that policies have to judge, also after a crash.
            self._taken.know_between(1, last)
            begun = await self._begin_earlier(Progress())
            await self._tell(begun.told, publish, past=begun.past, known=begun.known)
        else:
            await self._recover(record, plan, last, publish)
        await self._keep()

    def _use(self, plan: Plan) -> None:
        self._plan = plan
        self._knowledge = Knowledge(plan.detecting.ontology)
        self._at_hand.clear()  # another plan may word events in another way

    async def _recover(self, record: Record, plan: Plan, last: int, publish: Publish) -> None:
        """Take the steps again that were taken since a record, and go on from there."""
        self._use(await plan_of(self._bus, record.version, plan))
        self._states = states_of(record, self._detecting)
        self._progress, told = record.progress.adopted(self._detecting, None)
        self._taken.know(sorted(record.recent))
        self._taken.reached = record.reached
        left = await LeftInLog.behind(self._bus, plan, record, last)
        begun = Begun(progress=self._progress)
        if self._plan is plan and not record.progress.policies and not record.since:
            begun = await self._begin_earlier(record.progress)  # another engine was there, and had not begun
        for done in record.since:
            await self._take_again(done, left)
            if self._plan is not plan and done.version != record.version:
                before = self._progress
                self._switch(await plan_of(self._bus, done.version, plan))
                await self._begin_earlier(before)  # what is to be told of it is in what was done
            self._progress, told = done.progress.adopted(self._detecting, None)
            for name, number, count, body in done.published:
                message = Published(
                    policy=name, incarnation=done.progress.incarnation, first=number, count=count, body=body.encode()
                )
                await publish(message)
        self._progress = self._progress.beyond(self._highest)
        await self._tell([*told, *begun.told], publish, past=begun.past, known=begun.known)
        if self._plan is not plan:
            await self._change(plan, publish)
        self._queue.extend(left.rest)
        # What was published before the record was written is in the log since then; what is not is dead letters.
        for name, marks in record.progress.marks.items():
            self._queue.append(Taken(0, (), plan, EventKey(name, marks[-1].incarnation, marks[-1].number)))
        self._woken.set()

    async def _take_again(self, done: Done, left: LeftInLog) -> None:
        for clock, messages in done.steps:
            taken = left.take(messages)
            await self._learn([row for each in taken for row in each.rows])
            again = await asyncio.to_thread(self._step, taken, clock)
            self._states, self._progress = again.states, again.progress
            self._taken.know(messages)
        for first, latest in done.passed:
            self._taken.know_between(first, latest)
        left.drop_passed(done)

    async def close(self, within: float | None = END_WITHIN) -> None:
        """Keep what is remembered for the next process, when the step under way is done.

        If that does not end within so many seconds, what it has done is in the journal.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within), self._one_at_a_time:
                self.cease()  # a step after this would be told and not be known to the next process
                if self._plan is not None:
                    await self._keep()
        self._remembered.close()

    def cease(self) -> None:
        """Take no step any more."""
        self._closed = True

    @property
    def is_idle(self) -> bool:
        """Whether all that was given is taken, and all that was told is published."""
        return not self._queue and not self._in_hand and self._outbox.is_settled

    def left(self) -> LeftByDetection | None:
        """What another engine needs to go on, after the end; None if there are no policies."""
        record = self._remembered.load()
        if record is None or not record.progress.policies:
            return None
        assert not record.since, "the last step is in the record"
        return LeftByDetection(
            reached=record.reached, version=record.version, progress=record.progress, states=record.states
        )

    # ── taking and stepping ──

    def take(self, seq: int, rows: Sequence[Row], plan: Plan) -> None:
        """A message of the root log that is routed."""
        listened, marked = plan.detecting.observing.types, self._progress.marks
        if plan is self._plan and not any(row.type in listened or row.client in marked for row in rows):
            if self._queue or self._in_hand:
                self._queue.append(Taken(seq, (), plan))  # noted in its turn: what is before it is not taken yet
            else:
                self._taken.passed(seq)
            return
        self._queue.append(Taken(seq, rows, plan))
        self._woken.set()

    def settle(self, last: EventKey, plan: Plan) -> None:
        """What a policy published up to this event was routed before, all that did not become dead letters."""
        if last.client in self._progress.marks:
            self._queue.append(Taken(0, (), plan, last))
            self._woken.set()

    def adopt(self, plan: Plan) -> None:
        """Everything behind this is worked by another deployment."""
        self._queue.append(Taken(0, (), plan))
        self._woken.set()

    async def run(self, publish: Publish) -> None:
        """Take steps until this is cancelled; what they tell is published beside, in their order."""
        loop = asyncio.get_running_loop()
        works = [
            loop.create_task(each) for each in (self._step_on(), self._outbox.publish_on(publish), self._keep_on())
        ]
        try:
            done, _ = await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for each in done:
                each.result()
        finally:
            await end(works)

    async def _step_on(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_TICK if self._due else None):
                    await self._woken.wait()
            self._woken.clear()
            async with self._one_at_a_time:
                if self._closed:
                    return
                await self.work(self._outbox.put)
            await asyncio.sleep(self._pausing.after(self._took[-1], time.monotonic()))

    async def work(self, publish: Publish) -> None:
        """Take what is there, in one step for each deployment that it is to be worked by."""
        self._in_hand = True
        try:
            await self._work(publish)
        finally:
            self._in_hand = False

    async def _work(self, publish: Publish) -> None:
        while True:
            taken = self._same_plan()
            if taken and taken[0].plan is not self._plan:
                await self._change(taken[0].plan, publish)
            clock, messages = _now(), tuple(each.seq for each in taken if each.seq)
            try:
                found = await self._stepped(taken, clock)
            except Exception as error:  # noqa: BLE001 - of these events: what comes behind them is worked
                found = self._not_stepped(taken, error)
            self._states, self._due, self._changed = found.states, found.due, True
            self._progress = found.progress
            self._count(found)
            await self._keep_late(found.late, taken)
            await self._keep_failed(found, taken)
            self._taken.step(clock, messages)
            self._settled(taken)
            await self._tell(found.told, publish)
            while self._queue and self._queue[0].seq and self._queue[0].plan is self._plan and not self._queue[0].rows:
                self._taken.passed(self._queue.popleft().seq)
            if not self._queue:
                return

    def _settled(self, taken: Sequence[Taken]) -> None:
        """Expect nothing more of what became dead letters: nobody finds them in the log, so it is written down."""
        last = {each.settled.client: (each.settled.incarnation, each.settled.seq) for each in taken if each.settled}
        progress = self._progress.arrived(last)
        if progress is not self._progress:
            self._progress = progress
            self._note(())

    def _same_plan(self) -> list[Taken]:
        taken: list[Taken] = []
        while self._queue and (not taken or self._queue[0].plan is taken[0].plan):
            taken.append(self._queue.popleft())
        return taken

    async def _change(self, plan: Plan, publish: Publish) -> None:
        """Policies that are new begin, those that are gone or altered end what they have open."""
        former, before = self._detecting, self._progress
        told = self._switch(plan)
        begun = await self._begin_earlier(before)
        await self._tell(
            [*told, *begun.told], publish, former=former, past=begun.past, known=begun.known, before=before
        )
        await self._keep()

    async def _begin_earlier(self, before: Progress) -> Begun:
        """Policies that are new and are to begin in the past take what the log holds since then."""
        assert self._plan is not None
        taken = partial(self._taken.is_taken, self._taken.recent)
        filled = await fill(
            self._bus, self._plan, before, self._progress, self._instances(), self._taken.reached, taken, _now()
        )
        blind = self._plan.meeting.blind if self._plan.meeting is not None and filled else ()
        begun = begin_with(self._progress, self._detecting, self._plan.deployment.starts, filled, blind)
        self._progress = begun.progress
        self._states = {**self._states, **{name: state for each in filled for name, state in each.states.items()}}
        self._due = self._due or bool(filled)
        return begun

    def _switch(self, plan: Plan) -> list[Transition]:
        former = self._detecting
        self._use(plan)
        self._progress, told = self._progress.adopted(plan.detecting, former, _now())
        kept = {name for name, watch in plan.detecting.watches.items() if _same(watch, former.watches.get(name))}
        self._states = {name: state for name, state in self._states.items() if name in kept}
        return told

    async def _stepped(self, taken: Sequence[Taken], clock: int) -> Step:
        """A step; what is large is done beside, so that events are routed meanwhile."""
        assert self._plan is not None
        beside = min(self._took) > _BRIEF or sum(len(each.rows) for each in taken) > _FEW
        if self._plan.meeting is None:
            return await asyncio.to_thread(self._step, taken, clock) if beside else self._step(taken, clock)
        await self._learn([row for each in taken for row in each.rows])
        worked = await asyncio.to_thread(self._worked, taken, clock) if beside else self._worked(taken, clock)
        found = worked.found
        if found:
            # Policies remember what they saw under other scopes: what they detect they must be able to see now.
            positions = {each for some in found.values() for one in some for each in one.positions if each}
            causes = await self._causes(sorted(positions))
            await self._learn(list(causes.values()))
            meeting = self._plan.meeting
            found, failures = detections_safely(found, lambda some: meeting.counted(some, causes))
            self._mistakes.take(failures)
        return decide(self._detecting, worked, found)

    def _step(self, taken: Sequence[Taken], clock: int) -> Step:
        worked = self._worked(taken, clock)
        return decide(self._detecting, worked, worked.found)

    def _worked(self, taken: Sequence[Taken], clock: int) -> Worked:
        assert self._plan is not None
        assert self._knowledge is not None
        began = time.thread_time()
        rows = [row for each in taken for row in each.rows]
        worked = work_rows(
            self._detecting,
            self._plan.reading,
            self._progress,
            self._states,
            rows,
            clock,
            self._knowledge,
            self._instances(),
        )
        self._at_hand.add(rows)
        self._took.append(time.thread_time() - began)
        return worked

    async def _learn(self, rows: Sequence[Row]) -> None:
        """Have the scopes of the epochs that these were stamped in."""
        assert self._plan is not None
        await learn_epochs(self._bus, self._plan, rows)

    def _instances(self) -> Instances:
        detecting = self._detecting
        return detecting.tables.of(self._tables()) if not detecting.is_empty else {}

    async def _keep_late(self, late: Mapping[int, list[str]], taken: Sequence[Taken]) -> None:
        if not late:
            return
        assert self._plan is not None
        names = Names(self._plan.zone)
        rows = (row for each in taken for row in each.rows if row.pos in late)
        packed = (pack_late(names, row, stamped_line(row, encode_row(row)), late[row.pos]) for row in rows)
        for stored in [await self._bus.store(each) for each in packed]:
            await stored

    def _not_stepped(self, taken: Sequence[Taken], error: Exception) -> Step:
        """Nothing is done with what was taken, and it is told so."""
        failure = self._mistakes.note(error, STAGE)
        failed = {row.pos: failure for each in taken for row in each.rows}
        # Without events it can only be what is remembered: it would be the same at every step to come.
        states = self._states if failed else {}
        begun_anew = {} if failed else dict.fromkeys(self._states, failure)
        return Step(
            progress=self._progress, states=states, failed=failed, begun_anew=begun_anew, due=self._due and bool(failed)
        )

    async def _keep_failed(self, found: Step, taken: Sequence[Taken]) -> None:
        """What no policy, or not each, could work on is a dead letter."""
        self._mistakes.take(found.failures)
        for name, failure in found.begun_anew.items():
            self._mistakes.begun_anew(name, failure)
        if not found.failed:
            return
        assert self._plan is not None
        rows = (row for each in taken for row in each.rows if row.pos in found.failed)
        await self._refuse([failed_by(found.failed[row.pos], row) for row in rows], self._plan)

    def _count(self, found: Step) -> None:
        self.counts.take_observed(found.observed)
        self.counts.take_enriched(found.enriched)
        self.counts.take_late(found.late)
        self.counts.take_told(found.told)

    # ── telling ──

    async def _tell(
        self,
        told: Sequence[Transition],
        publish: Publish,
        *,
        former: Detecting | None = None,
        past: Collection[str] = (),
        known: Sequence[Transition] = (),
        before: Progress | None = None,
    ) -> None:
        """Publish what happened, written down before; no action is done for what is ``past``.

        What is ``known`` was told before, and counts for who may see the rest; ``before`` another deployment began.
        """
        assert self._plan is not None
        meeting = self._plan.meeting
        if not told and (meeting is None or not known):
            return
        causes = await self._causes(positions_of(told if meeting is None else [*told, *known]))
        instances = self._instances()
        failures: list[Failure] = []
        self._progress, published = messages_of(
            told,
            self._detecting,
            former,
            self._progress,
            causes,
            instances,
            past,
            meeting,
            known,
            failures,
            _now(),
            before,
        )
        self._mistakes.take(failures)
        self._note(published)
        self.counts.take_published(published)
        for each in published:
            if each.released:
                _audit.info("%s", each.audit)
            await publish(each)

    def _note(self, published: Sequence[Published]) -> None:
        """Write down the steps of which nothing is written down yet, and what is to be published."""
        assert self._plan is not None
        steps, passed = self._taken.drained()
        done = Done(
            steps=steps,
            passed=passed,
            version=self._plan.version,
            progress=self._progress,
            published=tuple((each.policy, each.first, each.count, each.body.decode()) for each in published),
        )
        self._remembered.note(done)

    async def _causes(self, positions: Sequence[int]) -> dict[int, Row]:
        """The events at these positions of the root log, those that are still there."""
        assert self._plan is not None
        stream = Names(self._plan.zone).root_stream
        found = self._at_hand.find(positions)
        missing = [position for position in positions if position not in found]
        for seq, places in groupby(missing, lambda each: each // PLACES):
            wanted = set(places)
            async for stored in self._bus.read(stream, seq, seq):
                lines = stored_lines(in_terms_of_now(stored, self._plan.interpretation))
                found |= {
                    pos: decode_line(line, pos=pos)
                    for place, line in enumerate(lines)
                    if (pos := position(seq, place)) in wanted
                }
        return found

    # ── keeping ──

    async def _keep(self) -> None:
        """Write down all that is remembered, when what was to be published is: what is written does not tell of it."""
        await self._none_beside.wait()
        await self._outbox.settled()
        snapshot = self._snapshot()
        await asyncio.to_thread(lambda: self._remembered.save(snapshot.whole()))

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY)
            if self._changed:
                await self._keep_beside()

    async def _keep_beside(self) -> None:
        """The same while steps go on: those from here on are written down behind both records, the one that is there
        and the one to come, which takes its place when all is published that was told before it."""
        beside = await asyncio.to_thread(self._remembered.begin)
        async with self._one_at_a_time:
            self._none_beside.clear()
            self._note(())
            snapshot = self._snapshot()
            if beside is not None:
                self._remembered.follow(beside, snapshot.record.progress)
        try:
            if beside is not None:
                record = await snapshot.whole_beside()
                await self._outbox.settled()
                await asyncio.to_thread(self._remembered.write, beside, record)
                self._remembered.finish(beside)
                await asyncio.to_thread(self._remembered.tidy)
        finally:
            self._none_beside.set()

    def _snapshot(self) -> Snapshot:
        """All that is remembered now; the steps up to here need not be written down any more."""
        assert self._plan is not None
        self._taken.drained()
        self._changed = False
        record = Record(
            reached=self._taken.reached,
            recent=self._taken.recent,
            version=self._plan.version,
            progress=self._progress,
        )
        return Snapshot(record=record, detecting=self._detecting, states=self._states)


def _same(watch: Watch, former: Watch | None) -> bool:
    return former is not None and former.digest == watch.digest


def _now() -> int:
    return time.time_ns() // 1000
