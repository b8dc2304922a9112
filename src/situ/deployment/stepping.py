"""One step of detection, all in one place: observations in, what happened to situations out.

Where policies are worked in several partitions, an engine does the parts of this where they belong.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.deployment.detecting import Detecting
from situ.deployment.hiding import NOTHING_HIDDEN, Hidden, left_of
from situ.deployment.progress import Progress
from situ.deployment.reading import Reading
from situ.event.row import Row
from situ.situation.enrichment.enrich import Enriched, Observed
from situ.situation.enrichment.known import Knowledge
from situ.situation.kernel.reporting import detections_of
from situ.situation.kernel.state import State
from situ.situation.meaning.detection import Detection, Instances
from situ.situation.meaning.lifecycle import Transition
from situ.situation.meaning.watermark import Seen

States = Mapping[str, State]
"""What kernels remember, by policy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a step leaves behind, and what it tells."""

    progress: Progress
    states: States
    told: tuple[Transition, ...] = ()
    enriched: Enriched = field(default_factory=lambda: Enriched(rows=MappingProxyType({})))
    observed: tuple[Observed, ...] = ()
    late: Mapping[int, list[str]] = field(default_factory=dict)
    """Where events are that came too late, and for which policies."""
    due: bool = False
    """Whether time that goes by can bring more, though no event comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worked:
    """What kernels made of observations, before anything is decided about situations."""

    progress: Progress
    states: States
    found: Mapping[str, Sequence[Detection]]
    watermarks: Mapping[str, int]
    enriched: Enriched
    observed: tuple[Observed, ...]
    late: Mapping[int, list[str]]


def step(
    detecting: Detecting,
    progress: Progress,
    states: States,
    observed: Iterable[Observed],
    seen: Mapping[str, Seen],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
    hidden: Hidden = NOTHING_HIDDEN,
) -> Step:
    """Take in observations, and decide what the watermarks of now allow."""
    worked = work(detecting, progress, states, observed, seen, clock, knowledge, instances, hidden)
    return decide(detecting, worked, worked.found)


def work(
    detecting: Detecting,
    progress: Progress,
    states: States,
    observed: Iterable[Observed],
    seen: Mapping[str, Seen],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
    hidden: Hidden = NOTHING_HIDDEN,
) -> Worked:
    """Take in observations, each policy those that are not ``hidden`` from it, up to the watermarks of now."""
    observed = tuple(observed)
    reached = {name: kept.reached for name, kept in progress.policies.items() if kept.reached is not None}
    late = detecting.late(observed, reached, hidden)
    progress = progress.heard(seen)
    watermarks = progress.watermarks(detecting, clock)
    knowledge.take(instances)
    enriched = detecting.enrichment.run(observed, knowledge)
    after: dict[str, State] = {}
    found: dict[str, list[Detection]] = {}
    for name, watch in detecting.watches.items():
        kernel = detecting.kernel(name)
        state = states[name] if name in states else kernel.start()
        rows = {
            each.leaf: left_of(enriched.rows[each.leaf], watch.reads, hidden)
            for each in watch.plan.leaves
            if each.leaf in enriched.rows
        }
        now = watermarks.get(name, state.watermark)
        state, decided = kernel.step(state, rows, now, instances)
        after[name], ahead = kernel.ahead(state, instances)
        if len(decided) or len(ahead):
            found[name] = [*detections_of(name, decided), *detections_of(name, ahead)]
    return Worked(
        progress=progress,
        states=after,
        found=found,
        watermarks=watermarks,
        enriched=enriched,
        observed=observed,
        late=late,
    )


def work_rows(
    detecting: Detecting,
    reading: Reading | None,
    progress: Progress,
    states: States,
    rows: Sequence[Row],
    clock: int,
    knowledge: Knowledge,
    instances: Instances,
) -> Worked:
    """Take in events of the log, of which policies see what ``reading`` says; without it, everything."""
    read = detecting.observing.rows(rows)
    seen, hidden = read.seen, NOTHING_HIDDEN
    if reading is not None:
        shown = reading.rows(rows)
        seen, hidden = shown.seen, shown.hidden
    return work(detecting, progress, states, read.observed, seen, clock, knowledge, instances, hidden)


def decide(detecting: Detecting, worked: Worked, found: Mapping[str, Sequence[Detection]]) -> Step:
    """What becomes of situations, with those of the detections that count."""
    progress, told = worked.progress.decided(detecting, found, worked.watermarks)
    due = progress.has_open or any(state.due is not None for state in worked.states.values())
    return Step(
        progress=progress,
        states=worked.states,
        told=tuple(told),
        enriched=worked.enriched,
        observed=worked.observed,
        late=worked.late,
        due=due,
    )
