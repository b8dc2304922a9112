"""Policies over a part of the root log: what they would have detected. Nothing is published, and no action is done.

The steps are those of an engine, and the clock is that of the log: it says when each message came. Tables are
taken as they are when the replay begins. What policies look back on is read, too, from before the time asked for. One
that reads what other policies published decides when all of the log is read: it does not say how far those were.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import datetime
from itertools import groupby
from pathlib import Path

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment import Deployment
from situ.deployment.detecting import Detecting
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.hiding import NOTHING_HIDDEN, Hidden, positions_left
from situ.deployment.interpreting import Interpretation
from situ.deployment.log_time import Portions, came, looked_back
from situ.deployment.progress import Progress
from situ.deployment.reading import Reading
from situ.deployment.seeing import Seeing
from situ.deployment.stepping import States, step
from situ.deployment.tally import Tally
from situ.edge.epochs import learn_stored
from situ.event.instants import instant_at, microseconds
from situ.event.lines import decode_line, stored_lines
from situ.event.message import CLIENT, PLACES, Stored, position
from situ.event.row import Row
from situ.host.replaying import span
from situ.situation.enrichment.enrich import Observed
from situ.situation.enrichment.known import Knowledge
from situ.situation.meaning.detection import Cause, Instances
from situ.situation.meaning.lifecycle import Situation, Stage, Transition
from situ.situation.policies.policy import Policy
from situ.tables.in_use import TablesInUse


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
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
class Looked:
    """What a policy was given of the events of its push sources: those it may see, and how many it may not."""

    sources: tuple[str, ...]
    seen: int = 0
    hidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of a replay; ``settled`` is how far each policy has decided."""

    situations: tuple[Replayed, ...] = ()
    tally: Tally = field(default_factory=Tally)
    settled: Mapping[str, int] = field(default_factory=dict)
    looked: Mapping[str, Looked] = field(default_factory=dict)
    """What each policy could see."""


async def replay_policies(
    bus: Bus,
    folder: Path,
    deployment: Deployment,
    policies: Sequence[Policy],
    since: datetime,
    until: datetime,
    progress: Callable[[str, int, int], None] | None = None,
) -> Outcome:
    """What these policies make of what was stored in this time."""
    seeing = Seeing.of(deployment.numbered())
    everybody = {**deployment.running, **{each.name: each for each in policies}}
    whole = Detecting(
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
    begin, last = await span(bus, since, until)
    if begin > last:
        return Outcome(looked=_looked(detecting))
    early = instant_at(max(microseconds(since) - looked_back(detecting), 0))
    first, _ = await span(bus, early, until)
    instances = await asyncio.to_thread(_instances, folder, deployment, detecting)
    work = _Work(detecting, instances, begin, microseconds(since), Reading.of(detecting, seeing), held)
    interpretation = Interpretation.of(deployment)
    async with aclosing(bus.read(Names(bus.zone).root_stream, first, last)) as messages:
        async for message in messages:
            if (clock := work.due(message)) is not None:
                await asyncio.to_thread(work.step, clock)
            await learn_stored(bus, seeing, [message])
            work.add(in_terms_of_now(message, interpretation))
            if progress is not None:
                progress("", message.seq - first + 1, last - first + 1)
    await asyncio.to_thread(work.end, microseconds(until))
    return work.outcome()


def _instances(folder: Path, deployment: Deployment, detecting: Detecting) -> Instances:
    with TablesInUse(folder) as used:
        return detecting.tables.of(used.use(deployment.sources, detecting.tables.keyed))


def _looked(detecting: Detecting) -> dict[str, Looked]:
    return {name: Looked(sources=tuple(sorted(watch.patience))) for name, watch in detecting.watches.items()}


class _Work:
    """Messages of the log, worked portion by portion; from ``begin`` on, stored since then, they count."""

    def __init__(
        self,
        detecting: Detecting,
        instances: Instances,
        begin: int,
        since: int,
        reading: Reading | None,
        held: frozenset[str],
    ) -> None:
        """``held`` are the policies that other policies feed."""
        self._reading, self._held = reading, held
        self._portions = Portions(detecting, begin, since)
        self._detecting, self._instances = detecting, instances
        self._knowledge = Knowledge(detecting.ontology)
        self._progress = Progress()
        self._states: States = {}
        self._tally = Tally()
        self._looked = _looked(detecting)
        self._found: dict[str, _Found] = {}
        self.clock = 0

    def due(self, message: Stored) -> int | None:
        """Up to which time what is gathered is to be worked before this message is added; None: not yet."""
        return self._portions.due(message)

    def add(self, message: Stored) -> None:
        if not self._progress.policies:
            self._progress, _ = self._progress.adopted(self._detecting, None, came(message))
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

    def _look(self, observed: Iterable[Observed], hidden: Hidden) -> None:
        for each in observed:
            if not each.rows.num_rows:
                continue
            push = each.rows.column("push")[0].as_py()
            for name, watch in self._detecting.watches.items():
                if push in watch.patience:
                    seen = len(positions_left(each.rows.column("pos"), watch.reads, hidden))
                    self._looked[name].seen += seen
                    self._looked[name].hidden += each.rows.num_rows - seen

    def outcome(self) -> Outcome:
        situations = sorted(
            (each.replayed() for each in self._found.values() if each.counts),
            key=lambda each: (each.start, each.policy, each.bindings, each.id),
        )
        policies = self._progress.policies
        settled = {name: kept.reached for name, kept in policies.items() if kept.reached is not None}
        return Outcome(situations=tuple(situations), tally=self._tally, settled=settled, looked=self._looked)


class _Found:
    """A situation while the replay goes on. It counts if something was detected in the time asked for."""

    def __init__(self, opened: Transition) -> None:
        self._causes, self._positions = opened.situation.causes, opened.situation.positions
        self._situation: Situation = opened.situation
        self._end: int | None = None
        self.counts = False

    def take(self, transition: Transition, *, counts: bool) -> None:
        self._situation, self._end = transition.situation, transition.end
        self.counts = self.counts or (counts and transition.stage is not Stage.CLOSED)

    def replayed(self) -> Replayed:
        situation = self._situation
        return Replayed(
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
    stream, interpretation = Names(bus.zone).root_stream, Interpretation.of(deployment)
    found: dict[int, Row] = {}
    for seq, places in groupby(sorted(set(positions)), lambda each: each // PLACES):
        wanted = set(places)
        async with aclosing(bus.read(stream, seq, seq)) as messages:
            async for message in messages:
                for place, line in enumerate(stored_lines(in_terms_of_now(message, interpretation))):
                    if (pos := position(seq, place)) in wanted:
                        found[pos] = decode_line(line, pos=pos)
    return found
