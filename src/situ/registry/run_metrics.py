"""What a run says of its policies every second: how far each is, what it waits for, what it has come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from situ.deployment import Deployment
    from situ.deployment.tally import Watched

RUNNING, SUSPENDED, STOPPED = "running", "suspended", "stopped"

_SHOWN = 200  # policies, and push sources, that go to the bus every second
_ODD = 20  # tests that failed


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """Of one policy. Instants are in microseconds since 1970."""

    state: str = RUNNING
    reason: str = ""
    """Why it is stopped."""
    settled: int | None = None
    """Nothing that happened before is waited for; None: nothing was heard yet."""
    waits_for: str | None = None
    """The push source that holds it back, or the policy that feeds it; None: all are silent, and it goes on with the
    clock."""
    open: int = 0
    opened: int = 0
    detections: int = 0
    late: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PushFigures:
    """Of one push source that policies listen to."""

    events: int = 0
    heard: int | None = None
    """When anything came last."""
    latest: int | None = None
    """The latest of its event times."""
    idle: bool = True
    """Whether it is not waited for."""
    unknown: int = 0
    """Events about identities that no pull source knows."""
    sample: str = ""
    """One of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedTest:
    """A test of policies that failed on values."""

    test: str
    count: int
    sample: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SituationFigures:
    """Of all policies. ``late`` are events that came too late for a policy at least."""

    running: int = 0
    suspended: int = 0
    stopped: int = 0
    open: int = 0
    opened: int = 0
    detections: int = 0
    late: int = 0
    policies: Mapping[str, PolicyFigures] = field(default_factory=dict)
    push: Mapping[str, PushFigures] = field(default_factory=dict)
    failures: tuple[FailedTest, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are policies at all."""
        return bool(self.policies)

    def shortened(self) -> SituationFigures:
        """For the bus: of very many policies those that most is to be said of. Sums count all."""
        policies = sorted(
            self.policies.items(), key=lambda item: (item[1].state == RUNNING, -item[1].opened, -item[1].late, item[0])
        )
        push = sorted(self.push.items(), key=lambda item: (-item[1].events, item[0]))
        return replace(self, policies=dict(policies[:_SHOWN]), push=dict(push[:_SHOWN]), failures=self.failures[:_ODD])

    @classmethod
    def from_json(cls, value: Any) -> SituationFigures:
        """What ``asdict`` gave; ValueError if it cannot have."""
        try:
            return msgspec.convert(value, cls)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from None


def situation_figures(deployment: Deployment, watched: Watched, now: int) -> SituationFigures:
    """How the policies of a deployment are."""
    policies = _policies(deployment, watched, now)
    tally = watched.tally
    failures = sorted(tally.failures.items(), key=lambda item: (-item[1].count, item[0]))
    return SituationFigures(
        running=sum(each.state == RUNNING for each in policies.values()),
        suspended=sum(each.state == SUSPENDED for each in policies.values()),
        stopped=sum(each.state == STOPPED for each in policies.values()),
        open=sum(each.open for each in policies.values()),
        opened=sum(tally.opened.values()),
        detections=sum(tally.detections.values()),
        late=tally.late_events,
        policies=policies,
        push=_push(watched, now),
        failures=tuple(FailedTest(test=test, count=each.count, sample=each.sample) for test, each in failures),
    )


def _policies(deployment: Deployment, watched: Watched, now: int) -> dict[str, PolicyFigures]:

    tally, progress, detecting = watched.tally, watched.progress, watched.detecting
    settled = progress.watermarks(detecting, now) if detecting is not None else {}
    watches = detecting.watches if detecting is not None else {}
    found: dict[str, PolicyFigures] = {}
    for name in sorted({*deployment.policies, *deployment.stopped}):
        kept, watch = progress.policies.get(name), watches.get(name)
        figures = PolicyFigures(
            state=SUSPENDED if name in deployment.suspended else RUNNING,
            settled=settled.get(name),
            waits_for=progress.waits_for(detecting, watch, now)
            if detecting is not None and watch is not None
            else None,
            open=len(kept.open) if kept is not None else 0,
            opened=tally.opened.get(name, 0),
            detections=tally.detections.get(name, 0),
            late=tally.late.get(name, 0),
        )
        if name in deployment.stopped:
            reasons = "; ".join(f"{each.code.code} {each.message}" for each in deployment.stopped[name].reasons)
            figures = replace(figures, state=STOPPED, reason=reasons)
        found[name] = figures
    return found


def _push(watched: Watched, now: int) -> dict[str, PushFigures]:
    from situ.deployment.tally import Odd

    tally, progress, detecting = watched.tally, watched.progress, watched.detecting
    if detecting is None:
        return {}
    idle: dict[str, int] = {}
    for watch in detecting.watches.values():
        for name, patience in watch.patience.items():
            idle[name] = max(idle.get(name, 0), patience.idle)
    found: dict[str, PushFigures] = {}
    for name in detecting.push:
        heard, odd = progress.heard_of(name), tally.unknown.get(name, Odd())
        found[name] = PushFigures(
            events=tally.events.get(name, 0),
            heard=heard.heard if heard is not None else None,
            latest=heard.time if heard is not None else None,
            idle=heard is None or now - heard.heard > idle.get(name, 0),
            unknown=odd.count,
            sample=odd.sample,
        )
    return found
