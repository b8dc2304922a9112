"""A failing run made short, and told: the shortest schedule that was found, as lines and as a sequence diagram.

`shrink` leaves out actions as long as the same rule is broken. `tell_story` runs what is left once more and picks the
messages that matter: those of the event or the router that the broken rule is about.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.lang.records import replace
from situ.protocol.simulator.checks import Violation
from situ.protocol.simulator.scenario import Action, Scenario, World
from situ.protocol.simulator.simulation import Outcome, Simulation

_MOST_RUNS = 60
_MOST_LINES = 60
_QUIET = ("EpochConfirm", "EpochLease", "ZoneHello", "Ack", "Hello", "Pull", "SltAck", "InterestAck", "ExternalAck")


@dataclass(frozen=True, slots=True)
class Story:
    """What happened, in order; and the same as a sequence diagram in Mermaid."""

    violation: Violation
    actions: tuple[Action, ...]
    lines: tuple[str, ...]
    diagram: str


def shrink(scenario: Scenario, seed: int, violation: Violation, world: World | None = None) -> Scenario:
    """A scenario with fewer actions in which the same rule is broken. The number of runs is bounded."""
    runs = _MOST_RUNS
    actions = list(scenario.actions)
    size = max(len(actions) // 2, 1)
    while runs > 0:
        start = 0
        while start < len(actions) and runs > 0:
            fewer = actions[:start] + actions[start + size :]
            runs -= 1
            found = Simulation(replace(scenario, actions=tuple(fewer)), seed, world=world).run().violation
            if found is not None and found.rule == violation.rule:
                actions = fewer
            else:
                start += size
        if size == 1:
            break
        size = max(size // 2, 1)
    return replace(scenario, actions=tuple(actions))


def tell_story(scenario: Scenario, seed: int, world: World | None = None) -> Story | None:
    """The story of a run in which something does not hold."""
    outcome = Simulation(scenario, seed, watch=True, world=world).run()
    violation = outcome.violation
    if violation is None:
        return None
    lines = [_told(*each) for each in _relevant(outcome, violation)]
    lines.append(f"{violation.at:9.3f} s  ! {violation}")
    return Story(violation, scenario.actions, tuple(lines), _diagram(outcome, violation))


def _told(at: float, source: str, target: str, kind: str, about: str) -> str:
    if kind == "action":
        return f"{at:9.3f} s  * {about}"
    return f"{at:9.3f} s  {source} → {target}: {kind} {about}".rstrip()


def _relevant(outcome: Outcome, violation: Violation) -> list[tuple[float, str, str, str, str]]:
    def matters(entry: tuple[float, str, str, str, str]) -> bool:
        _, source, target, kind, about = entry
        if kind == "action":
            return not about.startswith("publish") or violation.about.partition(".")[0] in about
        return about == violation.about or (violation.about in (source, target) and kind not in _QUIET)

    found = [each for each in outcome.log if matters(each)]
    return found[:10] + found[10:][-_MOST_LINES:]


def _diagram(outcome: Outcome, violation: Violation) -> str:
    """In Mermaid: who sent what to whom, with the broken rule as a note."""
    lines = ["sequenceDiagram"]
    last = ""
    for at, source, target, kind, about in _relevant(outcome, violation):
        if kind == "action":
            over = last or next(iter(source.split()), "") or "scenario"
            lines.append(f"    Note over {_name(over)}: {at:.3f} s {about.replace(';', ',')}")
            continue
        lines.append(f"    {_name(source)}->>{_name(target)}: {kind} {about}".rstrip())
        last = target
    lines.append(f"    Note over {_name(last or 'scenario')}: {str(violation).replace(';', ',')}")
    return "\n".join(lines) + "\n"


def _name(name: str) -> str:
    return name.replace("/", "_").replace("-", "_")
