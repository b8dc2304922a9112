"""``situ replay --policy``: what policies would have detected over the root log."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from situ.bus.interface import Bus
from situ.cli.exits import Exit
from situ.cli.explained_policy import find_policy
from situ.cli.files import STDIN, read_file
from situ.cli.in_force import Live, Place
from situ.cli.on_bus import bus_of
from situ.cli.output import Output
from situ.cli.progress import Advance, progress
from situ.deployment import Deployment
from situ.errors import Problem, Problems, SituError
from situ.event.instants import print_instant
from situ.event.row import Row
from situ.host.replaying_policies import Outcome, Replayed, events_at, replay_policies
from situ.registry.snapshots import fetch_deployment
from situ.situation.meaning.telling import sentence
from situ.situation.policies.load_policies import PolicyFile, load_policies
from situ.situation.policies.policy import Policy

ENDING = ".dpl"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """What policies would have detected; ``causes`` are the events at their positions, if they were asked for."""

    policies: Mapping[str, Policy]
    outcome: Outcome
    causes: Mapping[int, Row] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()

    def sentence(self, each: Replayed) -> str:
        return sentence(self.policies[each.policy], each.bindings)

    def as_json(self) -> dict[str, Any]:
        tally = self.outcome.tally
        return {
            "situations": [self._as_json(each) for each in self.outcome.situations],
            "detections": sum(tally.detections.values()),
            "events": dict(sorted(tally.events.items())),
            "looked": {
                name: {"sources": list(each.sources), "seen": each.seen, "hidden": each.hidden}
                for name, each in sorted(self.outcome.looked.items())
            },
            "late": tally.late_events,
            "unknown": {name: {"count": each.count, "sample": each.sample} for name, each in tally.unknown.items()},
            "failures": {test: {"count": each.count, "sample": each.sample} for test, each in tally.failures.items()},
            "settled": {name: print_instant(each) for name, each in self.outcome.settled.items()},
        }

    def _as_json(self, each: Replayed) -> dict[str, Any]:
        return {
            "situation": each.id,
            "policy": each.policy,
            "bindings": dict(each.bindings),
            "start": print_instant(each.start),
            "last": print_instant(each.last),
            "end": None if each.end is None else print_instant(each.end),
            "detections": each.detections,
            "text": self.sentence(each),
            "causes": [{"source": cause.source, "id": cause.id} for cause in each.causes],
        }


def replay_detection(
    output: Output, live: Live, names: Sequence[str], since: datetime, until: datetime | None, *, verbose: bool
) -> Exit:
    """The command: ends with 1 if nothing was detected."""
    with progress("Replaying", shown=output.has_terminal) as advance:
        found = asyncio.run(_replayed(live, names, since, until or datetime.now(UTC), verbose, advance))
    if found.warnings and not output.quiet:
        output.warn(found.warnings)

    def shown() -> Any:
        from situ.cli.show_replayed import show_replayed

        return show_replayed(found, verbose=verbose, summary=not output.quiet)

    output.answer(found.as_json, shown)
    return Exit.DONE if found.outcome.situations else Exit.NO


async def _replayed(
    live: Live, names: Sequence[str], since: datetime, until: datetime, verbose: bool, advance: Advance | None
) -> Detected:
    async with bus_of(live, "replay") as bus:
        return await detected_in_log(bus, live, names, since, until, verbose=verbose, advance=advance)


async def detected_in_log(
    bus: Bus,
    place: Place,
    names: Sequence[str],
    since: datetime,
    until: datetime,
    *,
    verbose: bool = False,
    advance: Advance | None = None,
) -> Detected:
    """What these policies, by name or from files, would have detected of what was stored in this time."""
    deployment = await fetch_deployment(bus)
    policies, warnings = policies_of(names, deployment)
    outcome = await replay_policies(bus, place.path, deployment, tuple(policies.values()), since, until, advance)
    causes: Mapping[int, Row] = {}
    if verbose:
        positions = [each for situation in outcome.situations for each in situation.positions if each]
        causes = await events_at(bus, deployment, positions)
    return Detected(policies=policies, outcome=outcome, causes=causes, warnings=warnings)


def policies_of(names: Sequence[str], deployment: Deployment) -> tuple[dict[str, Policy], tuple[Problem, ...]]:
    """Policies in force by name, and those of files as if they were part of the deployment; with warnings."""
    files = [name for name in dict.fromkeys(names) if name == STDIN or "/" in name or name.endswith(ENDING)]
    found = {name: find_policy(name, deployment) for name in names if name not in files}
    problems = Problems()
    written = [PolicyFile(file=file, data=read_file(file)) for file in files]
    found |= load_policies(written, deployment.domain, deployment.sources, problems)
    if problems.errors:
        raise SituError(*problems.sorted())
    return found, problems.sorted()
