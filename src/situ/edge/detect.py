"""Detection of situations in the edge engine: takes events of the root log in steps and publishes what policies detect.

`StepPacing` says how long to pause between steps, `Outbox` holds messages to be published, `fill` does the back-fill of
policies that begin in the past, `EdgeDetection` takes the steps and keeps the checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing, suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Generic, TypeVar

from situ.bus.event_loop import end
from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, wall_clock
from situ.edge.detect_checkpoint import (
    CheckpointRecord,
    CompletedSteps,
    DetectionCheckpoint,
    DetectionSnapshot,
    RecentRows,
    TakenMessage,
    TakenSteps,
    UntakenMessages,
    plan_of,
    states_of,
)
from situ.event.failures import StageFailure, failed_by
from situ.event.instants import instant_at
from situ.event.lines import decode_line, encode_row, stamped_line, stored_lines
from situ.event.message import PLACES, EventKey, StoredMessage, position
from situ.event.row import BadRow, Row
from situ.event.subjects import BusNames, pack_late
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import InstancesByConcept
from situ.registry.past_scopes import learn_epochs, learn_stored
from situ.sources.table import Table
from situ.stages.detect.backfill import (
    Backfill,
    BackfillStart,
    BackfillState,
    bounds_of,
    lookback,
    policies_to_backfill,
    start_from_backfill,
)
from situ.stages.detect.detection_plan import DetectionPlan, PolicyRuntime
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import (
    DetectionCounts,
    DetectionStatus,
    PolicyMessage,
    cause_positions,
    situation_messages,
)
from situ.stages.detect.step import (
    STAGE,
    DetectionStep,
    KernelOutput,
    PolicyReader,
    States,
    decide,
    detections_safely,
    work_rows,
)
from situ.stages.plan import Plan
from situ.stages.root_log import upgrade_message
from situ.stages.takeover import DetectionHandover, Highest

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Pauses: steps take half of the time at most, so that events are routed between them. Most steps come singly, and the
# next one begins as soon as something is there: a pause after each would be added to whatever comes meanwhile. Only
# when steps have taken more than half of the time for some milliseconds is what comes gathered for the next one.

LENT = 0.005
"""Seconds that steps may take beyond their half before they pause."""
LONGEST = 0.002
"""Seconds for which what comes is gathered, at most."""


class StepPacing:
    """Of steps that are taken one after the other. The clock is an input."""

    def __init__(self) -> None:
        self._owed = 0.0
        """Seconds that steps took, less those that were left to others since."""
        self._ended = 0.0

    def after(self, took: float, now: float) -> float:
        """Seconds to pause after a step that took so long and ended now."""
        left = max(now - took - self._ended, 0.0)
        self._owed = min(max(self._owed - left, 0.0) + took, LENT + LONGEST)
        self._ended = now
        return min(took, LONGEST) if self._owed > LENT else 0.0


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Messages that are in the journal and to be published: in order, by a task of its own, no more than a few at a time.

T = TypeVar("T")


class Outbox(Generic[T]):
    """Holds no more than ``most``; while it is full, whoever has more waits."""

    def __init__(self, most: int) -> None:
        self._queue: asyncio.Queue[T] = asyncio.Queue(most)
        self._put = self._done = 0
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def empty(self) -> bool:
        """Whether nothing waits; the last one may be on its way."""
        return self._queue.empty()

    @property
    def is_settled(self) -> bool:
        """Whether all that was put here is published."""
        return self._done == self._put and self._queue.empty()

    async def put(self, message: T) -> None:
        await self._queue.put(message)
        self._put += 1

    async def publish_on(self, publish: Callable[[T], Awaitable[None]]) -> None:
        """Publish what is put here, until this is cancelled."""
        while True:
            await publish(await self._queue.get())
            self._done += 1
            while self._waiting and self._waiting[0][0] <= self._done:
                _, waiter = self._waiting.popleft()
                if not waiter.done():
                    waiter.set_result(None)

    async def settled(self) -> None:
        """Wait until all that was put here by now is published, whatever is put meanwhile."""
        if self._done < self._put:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append((self._put, waiter))
            await waiter


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Back-fill, for policies that begin in the past: what the root log holds is worked before they go on with the rest.
# Other policies wait meanwhile; what comes is in the log, and nothing of it is missed.

_SOME = 500


async def fill(
    bus: Bus,
    plan: Plan,
    before: DetectionProgress,
    progress: DetectionProgress,
    instances: InstancesByConcept,
    until: int,
    is_taken: Callable[[int], bool],
    clock: int,
) -> list[BackfillState]:
    """What policies that are new to ``before`` have of the log up to a message, of those that were taken.

    ``progress`` knows how far those are that feed them.
    """
    stream, found = BusNames(plan.zone).root_stream, list[BackfillState]()
    fills = policies_to_backfill(plan.detecting, plan.deployment.starts, before)
    bounds = bounds_of(plan.detecting, progress, fills, clock)
    for since, names in fills.items():
        detecting = plan.detecting.only(names)
        begin = await bus.find(stream, instant_at(since))
        first = await bus.find(stream, instant_at(max(since - lookback(detecting), 0)))
        reading = PolicyReader.of(detecting, plan.seeing)
        filling = Backfill(detecting, instances, begin, since, reading=reading, bounds=bounds)
        some: list[StoredMessage] = []
        if first <= until:
            async with aclosing(bus.read(stream, first, until)) as messages:
                async for message in messages:
                    if is_taken(message.seq):
                        some.append(upgrade_message(message, plan.interpretation))
                    if len(some) >= _SOME:
                        await learn_stored(bus, plan.seeing, some)
                        await asyncio.to_thread(filling.take, some)
                        some = []
        await learn_stored(bus, plan.seeing, some)
        await asyncio.to_thread(filling.take, some)
        found.append(await asyncio.to_thread(filling.filled))
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Steps, beside routing: what the log has is taken in portions, a step of detection for each. While nothing comes and
# something is still to be decided, the clock alone brings the next step.

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
_MOST_TELL_ATTEMPTS = 3

Refuse = Callable[[Sequence[BadRow], Plan], Awaitable[None]]
"""Make dead letters of events that are in the log; they are stored when this returns."""
Publish = Callable[[PolicyMessage], Awaitable[None]]
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
        mistakes: InternalErrors,
        clock: Callable[[], int],
    ) -> None:
        self._bus = bus
        self._clock = clock
        self._refuse = refuse
        self._mistakes = mistakes
        self._tables = tables
        self._remembered = DetectionCheckpoint(folder / ".situ" / "edge" / "detect" if folder is not None else None)
        self._queue: deque[TakenMessage] = deque()
        self._woken = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        """Steps, and keeping what is remembered between them."""
        self._plan: Plan | None = None
        self._knowledge: InstanceColumns | None = None
        self._progress = DetectionProgress()
        self._states: States = {}
        self._due = False
        self._untold: list[SituationTransition] = []
        self._tell_attempts = 0
        self._taken = TakenSteps()
        self._in_hand = False
        self._outbox: Outbox[PolicyMessage] = Outbox(_MOST_TOLD)
        self._at_hand = RecentRows()
        self._took = deque([0.0, 0.0], maxlen=2)
        """Seconds of the processor for the last steps."""
        self._pausing = StepPacing()
        self._changed = False
        self._closed = False
        self._highest: Highest = {}
        self._none_beside = asyncio.Event()
        """Nothing is written down beside the steps."""
        self._none_beside.set()
        self.counts = DetectionCounts()
        """What was done since the start."""

    @property
    def watched(self) -> DetectionStatus:
        return DetectionStatus(
            tally=self.counts, progress=self._progress, detecting=self._plan.detecting if self._plan else None
        )

    @property
    def _detecting(self) -> DetectionPlan:
        assert self._plan is not None, "detection begins with a plan"
        return self._plan.detecting

    # ── beginning and end ──

    async def start(self, plan: Plan, publish: Publish, highest: Highest) -> None:
        """Go on where a process before this one was: what it was to publish is published, what it left is taken.

        ``highest`` is how far each client is, policies among them.
        """
        # What a start before this one left in them is written down, or taken anew.
        self._outbox, self._taken, self._closed = Outbox(_MOST_TOLD), TakenSteps(), False
        self._untold, self._tell_attempts = [], 0
        self._highest = highest
        record = await asyncio.to_thread(self._remembered.load)
        last = (await self._bus.state(BusNames(plan.zone).root_stream)).last
        if record is None or record.reached > last:
            self._use(plan)
            progress, _ = DetectionProgress(incarnation=wall_clock()).adopted(plan.detecting, None, self._clock())
            self._progress = progress.beyond(highest)
            # What was there before is nothing that policies have to judge, also after a crash.
            self._taken.know_between(1, last)
            begun = await self._begin_earlier(DetectionProgress())
            await self._tell(begun.told, publish, past=begun.past, known=begun.known)
        else:
            await self._recover(record, plan, last, publish)
        await self._keep()

    def _use(self, plan: Plan) -> None:
        self._plan = plan
        self._knowledge = InstanceColumns(plan.detecting.ontology)
        self._at_hand.clear()  # another plan may word events in another way

    async def _recover(self, record: CheckpointRecord, plan: Plan, last: int, publish: Publish) -> None:
        """Take the steps again that were taken since a record, and go on from there."""
        self._use(await plan_of(self._bus, record.version, plan))
        self._states = states_of(record, self._detecting)
        self._progress, told = record.progress.adopted(self._detecting, None)
        self._taken.know(sorted(record.recent))
        self._taken.reached = record.reached
        left = await UntakenMessages.behind(self._bus, plan, record, last)
        begun = BackfillStart(progress=self._progress)
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
                message = PolicyMessage(
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
            self._queue.append(TakenMessage(0, (), plan, EventKey(name, marks[-1].incarnation, marks[-1].number)))
        self._woken.set()

    async def _take_again(self, done: CompletedSteps, left: UntakenMessages) -> None:
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
        return not self._queue and not self._untold and not self._in_hand and self._outbox.is_settled

    def left(self) -> DetectionHandover | None:
        """What another engine needs to go on, after the end; None if there are no policies."""
        record = self._remembered.load()
        if record is None or not record.progress.policies:
            return None
        assert not record.since, "the last step is in the record"
        return DetectionHandover(
            reached=record.reached, version=record.version, progress=record.progress, states=record.states
        )

    # ── taking and stepping ──

    def take(self, seq: int, rows: Sequence[Row], plan: Plan) -> None:
        """A message of the root log that is routed."""
        listened, marked = plan.detecting.observing.types, self._progress.marks
        if plan is self._plan and not any(row.type in listened or row.client in marked for row in rows):
            if self._queue or self._in_hand:
                self._queue.append(TakenMessage(seq, (), plan))  # noted in its turn: what is before it is not taken yet
            else:
                self._taken.passed(seq)
            return
        self._queue.append(TakenMessage(seq, rows, plan))
        self._woken.set()

    def settle(self, last: EventKey, plan: Plan) -> None:
        """What a policy published up to this event was routed before, all that did not become dead letters."""
        if last.client in self._progress.marks:
            self._queue.append(TakenMessage(0, (), plan, last))
            self._woken.set()

    def adopt(self, plan: Plan) -> None:
        """Everything behind this is worked by another deployment."""
        self._queue.append(TakenMessage(0, (), plan))
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
            await self._tell_untold(publish)
            taken = self._same_plan()
            if taken and taken[0].plan is not self._plan:
                await self._change(taken[0].plan, publish)
            clock, messages = self._clock(), tuple(each.seq for each in taken if each.seq)
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
            settled = self._settled(taken)
            self._untold += found.told
            await self._tell_untold(publish)
            if settled:
                self._note(())  # nobody finds dead letters in the log
            while self._queue and self._queue[0].seq and self._queue[0].plan is self._plan and not self._queue[0].rows:
                self._taken.passed(self._queue.popleft().seq)
            if not self._queue:
                return

    def _settled(self, taken: Sequence[TakenMessage]) -> bool:
        """Expect nothing more of what became dead letters; whether there were any."""
        last = {each.settled.client: (each.settled.incarnation, each.settled.seq) for each in taken if each.settled}
        progress = self._progress.arrived(last)
        if progress is self._progress:
            return False
        self._progress = progress
        return True

    def _same_plan(self) -> list[TakenMessage]:
        taken: list[TakenMessage] = []
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

    async def _begin_earlier(self, before: DetectionProgress) -> BackfillStart:
        """Policies that are new and are to begin in the past take what the log holds since then."""
        assert self._plan is not None
        taken = partial(self._taken.is_taken, self._taken.recent)
        filled = await fill(
            self._bus, self._plan, before, self._progress, self._instances(), self._taken.reached, taken, self._clock()
        )
        blind = self._plan.meeting.blind if self._plan.meeting is not None and filled else ()
        begun = start_from_backfill(self._progress, self._detecting, self._plan.deployment.starts, filled, blind)
        self._progress = begun.progress
        self._states = {**self._states, **{name: state for each in filled for name, state in each.states.items()}}
        self._due = self._due or bool(filled)
        return begun

    def _switch(self, plan: Plan) -> list[SituationTransition]:
        former = self._detecting
        self._use(plan)
        self._progress, told = self._progress.adopted(plan.detecting, former, self._clock())
        kept = {name for name, watch in plan.detecting.watches.items() if _same(watch, former.watches.get(name))}
        self._states = {name: state for name, state in self._states.items() if name in kept}
        return told

    async def _stepped(self, taken: Sequence[TakenMessage], clock: int) -> DetectionStep:
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

    def _step(self, taken: Sequence[TakenMessage], clock: int) -> DetectionStep:
        worked = self._worked(taken, clock)
        return decide(self._detecting, worked, worked.found)

    def _worked(self, taken: Sequence[TakenMessage], clock: int) -> KernelOutput:
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

    def _instances(self) -> InstancesByConcept:
        detecting = self._detecting
        return detecting.tables.of(self._tables()) if not detecting.is_empty else {}

    async def _keep_late(self, late: Mapping[int, list[str]], taken: Sequence[TakenMessage]) -> None:
        if not late:
            return
        assert self._plan is not None
        names = BusNames(self._plan.zone)
        rows = (row for each in taken for row in each.rows if row.pos in late)
        packed = (pack_late(names, row, stamped_line(row, encode_row(row)), late[row.pos]) for row in rows)
        for stored in [await self._bus.store(each) for each in packed]:
            await stored

    def _not_stepped(self, taken: Sequence[TakenMessage], error: Exception) -> DetectionStep:
        """Nothing is done with what was taken, and it is told so."""
        failure = self._mistakes.note(error, STAGE)
        failed = {row.pos: failure for each in taken for row in each.rows}
        # Without events it can only be what is remembered: it would be the same at every step to come.
        states = self._states if failed else {}
        begun_anew = {} if failed else dict.fromkeys(self._states, failure)
        return DetectionStep(
            progress=self._progress, states=states, failed=failed, begun_anew=begun_anew, due=self._due and bool(failed)
        )

    async def _keep_failed(self, found: DetectionStep, taken: Sequence[TakenMessage]) -> None:
        """What no policy, or not each, could work on is a dead letter."""
        self._mistakes.take(found.failures)
        for name, failure in found.begun_anew.items():
            self._mistakes.begun_anew(name, failure)
        if not found.failed:
            return
        assert self._plan is not None
        rows = (row for each in taken for row in each.rows if row.pos in found.failed)
        await self._refuse([failed_by(found.failed[row.pos], row) for row in rows], self._plan)

    def _count(self, found: DetectionStep) -> None:
        self.counts.take_observed(found.observed)
        self.counts.take_enriched(found.enriched)
        self.counts.take_late(found.late)
        self.counts.take_told(found.told)

    # ── telling ──

    async def _tell_untold(self, publish: Publish) -> None:
        """What a step decided and what could not be told then is told before anything else is decided: policies take
        it for told already. It is tried a few times; what fails even then is counted and logged."""
        if not self._untold:
            return
        try:
            await self._tell(self._untold, publish)
        except Exception:
            self._woken.set()
            self._tell_attempts += 1
            if self._tell_attempts >= _MOST_TELL_ATTEMPTS:
                self._mistakes.untold(each.situation.policy for each in self._untold)
                self._untold, self._tell_attempts = [], 0
            raise
        self._untold, self._tell_attempts = [], 0

    async def _tell(
        self,
        told: Sequence[SituationTransition],
        publish: Publish,
        *,
        former: DetectionPlan | None = None,
        past: Collection[str] = (),
        known: Sequence[SituationTransition] = (),
        before: DetectionProgress | None = None,
    ) -> None:
        """Publish what happened, written down before; no action is done for what is ``past``.

        What is ``known`` was told before, and counts for who may see the rest; ``before`` another deployment began.
        """
        assert self._plan is not None
        meeting = self._plan.meeting
        if not told and (meeting is None or not known):
            return
        causes = await self._causes(cause_positions(told if meeting is None else [*told, *known]))
        instances = self._instances()
        failures: list[StageFailure] = []
        undone = self._progress
        self._progress, published = situation_messages(
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
            before,
        )
        self._mistakes.take(failures)
        try:
            self._note(published)
        except Exception:
            self._progress = undone  # told again, it must have the same numbers
            raise
        self.counts.take_published(published)
        for each in published:
            if each.released:
                _audit.info("%s", each.audit)
            await publish(each)

    def _note(self, published: Sequence[PolicyMessage]) -> None:
        """Write down the steps of which nothing is written down yet, and what is to be published."""
        assert self._plan is not None
        steps, passed = self._taken.drained()
        done = CompletedSteps(
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
        stream = BusNames(self._plan.zone).root_stream
        found = self._at_hand.find(positions)
        missing = [position for position in positions if position not in found]
        for seq, places in groupby(missing, lambda each: each // PLACES):
            wanted = set(places)
            async for stored in self._bus.read(stream, seq, seq):
                lines = stored_lines(upgrade_message(stored, self._plan.interpretation))
                found |= {
                    pos: decode_line(line, pos=pos)
                    for place, line in enumerate(lines)
                    if (pos := position(seq, place)) in wanted
                }
        return found

    # ── keeping ──

    async def _keep(self) -> None:
        """Write down all that is remembered, when what was to be published is: what is written does not tell of it."""
        if self._untold:
            return  # the next run takes these steps again, and tells what they find
        await self._none_beside.wait()
        await self._outbox.settled()
        snapshot = self._snapshot()
        await asyncio.to_thread(lambda: self._remembered.save(snapshot.whole()))

    async def _keep_on(self) -> None:
        while True:
            await asyncio.sleep(_SAVE_EVERY)
            if self._changed and not self._untold:
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

    def _snapshot(self) -> DetectionSnapshot:
        """All that is remembered now; the steps up to here need not be written down any more."""
        assert self._plan is not None
        self._taken.drained()
        self._changed = False
        record = CheckpointRecord(
            reached=self._taken.reached,
            recent=self._taken.recent,
            version=self._plan.version,
            progress=self._progress,
        )
        return DetectionSnapshot(record=record, detecting=self._detecting, states=self._states)


def _same(watch: PolicyRuntime, former: PolicyRuntime | None) -> bool:
    return former is not None and former.digest == watch.digest
