"""Replay of the root log or of files, publishing nothing: who would get which event, what policies would detect.

`replay_in_process` and `replay_files` route in this process, `replay_on_spark` on all cores. `replay_policies` runs
detection over a part of the log and does no actions.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from situ.archive.format import archive_of
from situ.archive.history import PastLog
from situ.bus.address import Address
from situ.bus.file_log import Report, event_time, read_files
from situ.bus.folder_lock import private_folder
from situ.bus.interface import Bus, log_range
from situ.event.instants import instant_at, microseconds
from situ.event.lines import bare_line, decode_line, encode_row, stored_lines
from situ.event.message import CLIENT, PLACES, StoredMessage, join_lines, position
from situ.event.row import Origin, Row
from situ.event.subjects import BusNames
from situ.lang.catalogue import MALFORMED_LINE
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.enrichment.enrich import PushObservations
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.lifecycle import OpenSituation, SituationPhase, SituationTransition
from situ.policies.model import Cause, InstancesByConcept, Policy
from situ.project.state_folder import LOGS
from situ.registry.past_scopes import learn_epochs, learn_stored
from situ.routing.model import Subscription
from situ.settings import Settings
from situ.sources import Table
from situ.stages.detect.backfill import LogPortions, lookback, received_at
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, DetectionPlan, Hidden, visible_positions
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import DetectionCounts
from situ.stages.detect.step import PolicyReader, States, step
from situ.stages.interpret import Interpretation
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.pending_deliveries import PendingDeliveries, ReadyDeliveries
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import upgrade_message
from situ.stages.visibility import EventVisibility
from situ.storage.state_folder import environment_of, use_options
from situ.tables.cache import TablesInUse

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Replay of routing. Here and on Spark there is one delivery for each event and each subscription it is for, and each
# event counts once however often the log holds it. Tables are read as they are when the replay begins. In one process
# conversions remember only what the replayed part of the log has.

OnProgress = Callable[[str, int, int], None]

_BATCH = 2_000  # events that are routed at once
_REMEMBERED = 200_000  # keys of events of files, by which repeats are known
_SHOWN = 80  # characters of a line that is passed over


@dataclass(frozen=True, slots=True)
class ReplayedDelivery:
    """An event as a line of text, and the subscription it is for."""

    subscription: str
    line: bytes


def plan_for(deployment: Deployment, subscriptions: Sequence[str], folder: Path) -> Plan:
    """The plan for these subscriptions of a deployment, or for all if none is named; with the tables that it needs."""
    plan = compile_plan(replace(deployment, subscriptions=_chosen(deployment, subscriptions)))
    plan.interpretation.rows.tables = tables_for(deployment, subscriptions, folder)
    return plan


def tables_for(deployment: Deployment, subscriptions: Sequence[str], folder: Path) -> Mapping[str, Table]:
    """The tables as they are now that are looked up in for these subscriptions, or for all; SituError if one is not."""
    contexts = {each.context for each in _chosen(deployment, subscriptions).values()}
    with TablesInUse(folder) as tables:
        return tables.use(deployment.sources, Interpretation.of(deployment).keyed(contexts))


def _chosen(deployment: Deployment, subscriptions: Sequence[str]) -> Mapping[str, Subscription]:
    wanted = set(subscriptions)
    return {id: each for id, each in deployment.subscriptions.items() if not wanted or id in wanted}


async def replay_in_process(
    bus: Bus, plan: Plan, first: int, last: int, progress: OnProgress | None = None
) -> AsyncIterator[list[ReplayedDelivery]]:
    """The deliveries of these messages of the root log, in the order of the log."""
    stream = BusNames(bus.zone).root_stream
    replay = Replay(plan)
    async with aclosing(bus.read(stream, first, last)) as messages:
        async for message in messages:
            lines = stored_lines(upgrade_message(message, plan.interpretation))
            rows = [decode_line(line, pos=position(message.seq, place)) for place, line in enumerate(lines)]
            await learn_epochs(bus, plan, rows)
            for row, line in zip(rows, lines, strict=True):
                replay.add(row, bare_line(row, line))
            if replay.full:
                yield replay.finish()
            if progress is not None:
                progress("", message.seq - first + 1, max(last - first + 1, 1))
    yield replay.finish()


class Replay:
    """Routes lines of a log, many at a time. In a log a client's events are in order, in files they need not be."""

    def __init__(self, plan: Plan, *, ordered: bool = True) -> None:
        self.events = 0
        self._plan = plan
        self._ordered = ordered
        self._highest: dict[tuple[str, int], int] = {}
        self._seen: OrderedDict[tuple[str, int, int], None] = OrderedDict()
        self._rows: list[Row] = []
        self._texts: list[bytes] = []
        plan.interpretation.outgoing.holds = True
        self._holding = PendingDeliveries(plan.interpretation.outgoing)

    @property
    def full(self) -> bool:
        return len(self._rows) >= _BATCH

    def add(self, row: Row, line: bytes) -> None:
        if self._is_new(row):
            self._rows.append(row)
            self._texts.append(line)

    def _is_new(self, row: Row) -> bool:
        if self._ordered:
            key = (row.client, row.incarnation)
            new = row.seq > self._highest.get(key, 0)
            self._highest[key] = max(row.seq, self._highest.get(key, 0))
            return new
        exact = (row.client, row.incarnation, row.seq)
        if exact in self._seen:
            return False
        self._seen[exact] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def finish(self) -> list[ReplayedDelivery]:
        rows, texts = self._rows, self._texts
        self._rows, self._texts = [], []
        self.events += len(rows)
        plan = self._plan
        if plan.interpretation.remembers:
            return [each for said in self._said(rows, texts) for each in self._deliveries(said.rows, said.worded)]
        worded = plan.interpretation.worded(rows, texts, plan.routing.route(rows), plan.routing)
        return self._deliveries(rows, worded)

    def _said(self, rows: list[Row], texts: list[bytes]) -> Iterator[ReadyDeliveries]:
        """Message by message, as engines do where conversions ask what came before."""
        for _, places in groupby(range(len(rows)), key=lambda place: rows[place].pos // PLACES):
            first, *others = places
            part = slice(first, first + 1 + len(others))
            yield from self._holding.word(rows[part], texts[part], self._plan)

    def _deliveries(self, rows: Sequence[Row], worded: ConvertedDeliveries) -> list[ReplayedDelivery]:
        found = [
            (index, subscription, line)
            for index, group, line in worded.durable
            for subscription in self._plan.routing.groups[group].subscriptions
            if not subscription.startswith(f"{rows[index].client}/")
        ]
        found += [
            (index, f"{client}/{name}", line) for index, client, names, line in worded.live for name in names.split(",")
        ]
        found.sort(key=lambda each: each[0])
        return [ReplayedDelivery(subscription, line) for _, subscription, line in found]


def replay_files(
    folder: Path,
    plan: Plan,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    report: Report,
) -> Iterator[list[ReplayedDelivery]]:
    """The deliveries of events in files: lines of a root log, or CloudEvents as clients write them."""
    replay, reader = Replay(plan, ordered=False), FileReader(plan)
    for lines in read_files(folder, start=start, end=end, report=report):
        for line in lines:
            row = reader.read(line, report)
            if row is not None:
                text = bare_line(row, line) if b'"situkey"' in line else encode_row(row)
                _stamp_anew(row, plan)
                replay.add(row, text)
        if replay.full:
            yield replay.finish()
    yield replay.finish()


def _stamp_anew(row: Row, plan: Plan) -> None:
    """What is in files is seen as the scopes of the folder say: what others were at work when it came is not known."""
    row.tags = row.epoch = row.bits = 0
    row.parts = ""
    if plan.seeing is not None and row.ad in plan.deployment.advertisements:
        plan.seeing.stamp([row])


class FileReader:
    """Lines of files → rows. What clients wrote has no key yet: it is numbered as it comes, by source."""

    def __init__(self, plan: Plan) -> None:
        self._interpretation = plan.interpretation
        self._number = 0

    def read(self, line: bytes, report: Report) -> Row | None:
        self._number += 1
        if b'"situkey"' in line:
            try:
                return decode_line(line, pos=position(self._number))
            except (msgspec.DecodeError, ValueError):
                pass  # then it is not from a root log
        at = event_time(line)
        received = 0 if at is None or at.tzinfo is None else microseconds(at)
        origin = Origin(client="file", incarnation=1, seq=self._number, received=received, pos=position(self._number))
        row = self._interpretation.decode(join_lines([line]), origin)[0]
        if isinstance(row, Row):
            return row
        code, _, message, _ = row.errors[0]
        shown = line[:_SHOWN].decode(errors="replace")
        report(MALFORMED_LINE(reason=f"{code} {message.rstrip('.')} ({shown}…)"))
        return None


async def replay_on_spark(
    folder: Path,
    settings: Settings,
    address: Address,
    version: int,
    first: int,
    last: int,
    tables: Mapping[str, Table] = MappingProxyType({}),
) -> AsyncIterator[list[ReplayedDelivery]]:
    """The same on Spark: what a subscription gets of one client is in the order of the log."""
    rows = await asyncio.to_thread(_open, folder, settings, address, version, first, last, tables)
    try:
        while chunk := await asyncio.to_thread(_some, rows):
            yield chunk
    finally:
        rows.close()


def _open(
    folder: Path,
    settings: Settings,
    address: Address,
    version: int,
    first: int,
    last: int,
    tables: Mapping[str, Table],
) -> Any:
    from situ.spark.replay import replay
    from situ.spark.session import open_session

    log = folder / LOGS / "replay.log"
    private_folder(log.parent)
    conf = {name: value.value for name, value in settings.spark.conf}
    # What the bus no longer has, tasks read from the archive.
    use_options(conf)
    archive = archive_of(settings, folder)
    past = None if archive is None else PastLog.of(archive, settings, folder, first, last)
    session = open_session(
        app="situ replay",
        master=settings.spark.master.value,
        conf=conf,
        log=log,
        folder=folder,
        variables=environment_of(conf),
    )

    def rows() -> Iterator[ReplayedDelivery]:
        try:
            found = replay(session, address, version, first=first, last=last, tables=tables, past=past)
            for row in found.toLocalIterator():
                yield ReplayedDelivery(row["subscription"], bytes(row["event"]))
        finally:
            session.stop()

    return rows()


def _some(rows: Iterator[ReplayedDelivery]) -> list[ReplayedDelivery]:
    return list(islice(rows, _BATCH))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Replay of policies: what they would have detected over a part of the root log.
#
# The steps are those of an engine, and the clock is that of the log: it says when each message came. Tables are read as
# they are when the replay begins. What policies look back on is read, too, from before the time asked for. A policy
# that reads what other policies published decides only when all of the log is read: the log does not say how far those
# were.


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedSituation:
    """A situation as it would have been. ``end`` None: it is open where the replay ends."""

    id: str
    policy: str
    bindings: tuple[tuple[str, str], ...]
    start: int
    last: int
    end: int | None
    detections: int
    causes: tuple[Cause, ...]
    """Of its first detection."""
    positions: tuple[int, ...]


@dataclass(slots=True, kw_only=True)
class PolicyInput:
    """What a policy was given of the events of its push sources: those it may see, and how many it may not."""

    sources: tuple[str, ...]
    seen: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayOutcome:
    """What came of a replay; ``settled`` is how far each policy has decided."""

    situations: tuple[ReplayedSituation, ...] = ()
    tally: DetectionCounts = field(default_factory=DetectionCounts)
    settled: Mapping[str, int] = field(default_factory=dict)
    looked: Mapping[str, PolicyInput] = field(default_factory=dict)
    """What each policy could see."""


async def replay_policies(
    bus: Bus,
    folder: Path,
    deployment: Deployment,
    policies: Sequence[Policy],
    since: datetime,
    until: datetime,
    progress: Callable[[str, int, int], None] | None = None,
) -> ReplayOutcome:
    """What these policies make of what was stored in this time."""
    seeing = EventVisibility.of(deployment.numbered())
    everybody = {**deployment.running, **{each.name: each for each in policies}}
    whole = DetectionPlan(
        everybody.values(),
        deployment.ontology,
        deployment.push,
        deployment.sources,
        deployment.types,
        deployment.settings.defaults,
        deployment.actions,
        None if seeing is None else {name: deployment.scopes.tags_of(name).reads for name in everybody},
    )
    names = [each.name for each in policies]
    detecting, held = whole.only(names), frozenset(name for name in names if whole.watches[name].fed)
    begin, last = await log_range(bus, since, until)
    if begin > last:
        return ReplayOutcome(looked=_looked(detecting))
    early = instant_at(max(microseconds(since) - lookback(detecting), 0))
    first, _ = await log_range(bus, early, until)
    instances = await asyncio.to_thread(_instances, folder, deployment, detecting)
    work = _Work(detecting, instances, begin, microseconds(since), PolicyReader.of(detecting, seeing), held)
    interpretation = Interpretation.of(deployment)
    async with aclosing(bus.read(BusNames(bus.zone).root_stream, first, last)) as messages:
        async for message in messages:
            if (clock := work.due(message)) is not None:
                await asyncio.to_thread(work.step, clock)
            await learn_stored(bus, seeing, [message])
            work.add(upgrade_message(message, interpretation))
            if progress is not None:
                progress("", message.seq - first + 1, last - first + 1)
    await asyncio.to_thread(work.end, microseconds(until))
    return work.outcome()


def _instances(folder: Path, deployment: Deployment, detecting: DetectionPlan) -> InstancesByConcept:
    with TablesInUse(folder) as used:
        return detecting.tables.of(used.use(deployment.sources, detecting.tables.keyed))


def _looked(detecting: DetectionPlan) -> dict[str, PolicyInput]:
    return {name: PolicyInput(sources=tuple(sorted(watch.patience))) for name, watch in detecting.watches.items()}


class _Work:
    """Messages of the log, worked portion by portion; from ``begin`` on, stored since then, they count."""

    def __init__(
        self,
        detecting: DetectionPlan,
        instances: InstancesByConcept,
        begin: int,
        since: int,
        reading: PolicyReader | None,
        held: frozenset[str],
    ) -> None:
        """``held`` are the policies that other policies feed."""
        self._reading, self._held = reading, held
        self._portions = LogPortions(detecting, begin, since)
        self._detecting, self._instances = detecting, instances
        self._knowledge = InstanceColumns(detecting.ontology)
        self._progress = DetectionProgress()
        self._states: States = {}
        self._tally = DetectionCounts()
        self._looked = _looked(detecting)
        self._found: dict[str, _Found] = {}
        self.clock = 0

    def due(self, message: StoredMessage) -> int | None:
        """Up to which time what is gathered is to be worked before this message is added; None: not yet."""
        return self._portions.due(message)

    def add(self, message: StoredMessage) -> None:
        if not self._progress.policies:
            self._progress, _ = self._progress.adopted(self._detecting, None, received_at(message))
        self._portions.add(message)

    def end(self, clock: int) -> None:
        """Work the rest; now all can be decided that the log allows."""
        held = self._held
        self.step(max(clock, self.clock))
        self._held = frozenset()
        if held:
            self.step(self.clock)

    def step(self, clock: int) -> None:
        """Work what is gathered, and decide what can be at that time."""
        some, counts = self._portions.taken(), self._portions.counts
        self.clock = max(self.clock, clock)
        read = self._detecting.observing.messages(
            [each.body for each in some],
            [position(each.seq, 0) for each in some],
            [each.headers.get(CLIENT, "") for each in some],
        )
        shown = self._reading.messages(some) if self._reading is not None else None
        done = step(
            self._detecting,
            self._progress,
            self._states,
            read.observed,
            read.seen if shown is None else shown.seen,
            self.clock,
            self._knowledge,
            self._instances,
            NOTHING_HIDDEN if shown is None else shown.hidden,
            self._held if counts else (),
        )
        self._progress, self._states = done.progress, done.states
        for each in done.told:
            self._found.setdefault(each.situation.id, _Found(each)).take(each, counts=counts)
        if counts:
            self._tally.take_observed(done.observed)
            self._look(done.observed, NOTHING_HIDDEN if shown is None else shown.hidden)
            self._tally.take_enriched(done.enriched)
            self._tally.take_late(done.late)
            self._tally.take_told(done.told)

    def _look(self, observed: Iterable[PushObservations], hidden: Hidden) -> None:
        for each in observed:
            if not each.rows.num_rows:
                continue
            push = each.rows.column("push")[0].as_py()
            for name, watch in self._detecting.watches.items():
                if push in watch.patience:
                    seen = len(visible_positions(each.rows.column("pos"), watch.reads, hidden))
                    self._looked[name].seen += seen
                    self._looked[name].hidden += each.rows.num_rows - seen

    def outcome(self) -> ReplayOutcome:
        situations = sorted(
            (each.replayed() for each in self._found.values() if each.counts),
            key=lambda each: (each.start, each.policy, each.bindings, each.id),
        )
        policies = self._progress.policies
        settled = {name: kept.reached for name, kept in policies.items() if kept.reached is not None}
        return ReplayOutcome(situations=tuple(situations), tally=self._tally, settled=settled, looked=self._looked)


class _Found:
    """A situation while the replay goes on. It counts if something was detected in the time asked for."""

    def __init__(self, opened: SituationTransition) -> None:
        self._causes, self._positions = opened.situation.causes, opened.situation.positions
        self._situation: OpenSituation = opened.situation
        self._end: int | None = None
        self.counts = False

    def take(self, transition: SituationTransition, *, counts: bool) -> None:
        self._situation, self._end = transition.situation, transition.end
        self.counts = self.counts or (counts and transition.stage is not SituationPhase.CLOSED)

    def replayed(self) -> ReplayedSituation:
        situation = self._situation
        return ReplayedSituation(
            id=situation.id,
            policy=situation.policy,
            bindings=situation.bindings,
            start=situation.start,
            last=situation.last,
            end=self._end,
            detections=situation.detections,
            causes=self._causes,
            positions=self._positions,
        )


async def events_at(bus: Bus, deployment: Deployment, positions: Sequence[int]) -> dict[int, Row]:
    """The events at these positions of the root log."""
    stream, interpretation = BusNames(bus.zone).root_stream, Interpretation.of(deployment)
    found: dict[int, Row] = {}
    for seq, places in groupby(sorted(set(positions)), lambda each: each // PLACES):
        wanted = set(places)
        async with aclosing(bus.read(stream, seq, seq)) as messages:
            async for message in messages:
                for place, line in enumerate(stored_lines(upgrade_message(message, interpretation))):
                    if (pos := position(seq, place)) in wanted:
                        found[pos] = decode_line(line, pos=pos)
    return found
