"""Metrics that a run reports every second: of its policies, and of itself.

Plain data, on the bus under ``figures.<engine>`` for whoever asks (``situ status``), and in the hands of the live view.
Counts are those of this run, from its start on. :class:`RunMetrics` is one report; :class:`DetectionMetrics` is its
part about policies.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from situ.lang.json_form import plain
from situ.lang.records import replace

if TYPE_CHECKING:
    from situ.model import Deployment
    from situ.stages.detect.situation_events import DetectionStatus


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Policies: how far each is, what it waits for, what it has come to.

POLICY_RUNNING, POLICY_SUSPENDED, POLICY_STOPPED = "running", "suspended", "stopped"

_SHOWN = 200  # policies, and push sources, that go to the bus every second
_ODD = 20  # tests that failed


class PolicyMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Of one policy. Instants are in microseconds since 1970."""

    state: str = POLICY_RUNNING
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


class PushSourceMetrics(msgspec.Struct, frozen=True, kw_only=True):
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


class FailedTest(msgspec.Struct, frozen=True, kw_only=True):
    """A test of policies that failed on values."""

    test: str
    count: int
    sample: str


class DetectionMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """Of all policies. ``late`` are events that came too late for a policy at least."""

    running: int = 0
    suspended: int = 0
    stopped: int = 0
    open: int = 0
    opened: int = 0
    detections: int = 0
    late: int = 0
    policies: Mapping[str, PolicyMetrics] = msgspec.field(default_factory=dict)
    push: Mapping[str, PushSourceMetrics] = msgspec.field(default_factory=dict)
    failures: tuple[FailedTest, ...] = ()

    def __bool__(self) -> bool:
        """Whether there are policies at all."""
        return bool(self.policies)

    def shortened(self) -> DetectionMetrics:
        """For the bus: of very many policies those that most is to be said of. Sums count all."""
        policies = sorted(
            self.policies.items(),
            key=lambda item: (item[1].state == POLICY_RUNNING, -item[1].opened, -item[1].late, item[0]),
        )
        push = sorted(self.push.items(), key=lambda item: (-item[1].events, item[0]))
        return replace(self, policies=dict(policies[:_SHOWN]), push=dict(push[:_SHOWN]), failures=self.failures[:_ODD])


def detection_metrics(deployment: Deployment, watched: DetectionStatus, now: int) -> DetectionMetrics:
    """How the policies of a deployment are."""
    policies = _policies(deployment, watched, now)
    tally = watched.tally
    failures = sorted(tally.failures.items(), key=lambda item: (-item[1].count, item[0]))
    return DetectionMetrics(
        running=sum(each.state == POLICY_RUNNING for each in policies.values()),
        suspended=sum(each.state == POLICY_SUSPENDED for each in policies.values()),
        stopped=sum(each.state == POLICY_STOPPED for each in policies.values()),
        open=sum(each.open for each in policies.values()),
        opened=sum(tally.opened.values()),
        detections=sum(tally.detections.values()),
        late=tally.late_events,
        policies=policies,
        push=_push(watched, now),
        failures=tuple(FailedTest(test=test, count=each.count, sample=each.sample) for test, each in failures),
    )


def _policies(deployment: Deployment, watched: DetectionStatus, now: int) -> dict[str, PolicyMetrics]:

    tally, progress, detecting = watched.tally, watched.progress, watched.detecting
    settled = progress.watermarks(detecting, now) if detecting is not None else {}
    watches = detecting.watches if detecting is not None else {}
    found: dict[str, PolicyMetrics] = {}
    for name in sorted({*deployment.policies, *deployment.stopped}):
        kept, watch = progress.policies.get(name), watches.get(name)
        figures = PolicyMetrics(
            state=POLICY_SUSPENDED if name in deployment.suspended else POLICY_RUNNING,
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
            figures = replace(figures, state=POLICY_STOPPED, reason=reasons)
        found[name] = figures
    return found


def _push(watched: DetectionStatus, now: int) -> dict[str, PushSourceMetrics]:
    from situ.stages.detect.situation_events import Anomaly

    tally, progress, detecting = watched.tally, watched.progress, watched.detecting
    if detecting is None:
        return {}
    idle: dict[str, int] = {}
    for watch in detecting.watches.values():
        for name, patience in watch.patience.items():
            idle[name] = max(idle.get(name, 0), patience.idle)
    found: dict[str, PushSourceMetrics] = {}
    for name in detecting.push:
        heard, odd = progress.heard_of(name), tally.unknown.get(name, Anomaly())
        found[name] = PushSourceMetrics(
            events=tally.events.get(name, 0),
            heard=heard.heard if heard is not None else None,
            latest=heard.time if heard is not None else None,
            idle=heard is None or now - heard.heard > idle.get(name, 0),
            unknown=odd.count,
            sample=odd.sample,
        )
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The run: how much came in and went out, what waits, how much memory it takes.

STARTING, RUNNING, WAITING, STOPPING, STOPPED = "starting", "running", "waiting for the bus", "stopping", "stopped"

METRICS_PREFIX = "figures."
"""What keys of figures on the bus begin with; the engine's name follows."""

_WINDOW = 5.0  # seconds over which rates are taken


class ArchiveMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """How far the archive of the root log is. Instants are in microseconds since 1970."""

    place: str
    """The folder or URI, as situ.yaml writes it."""
    last: int = 0
    """The last message of the root log that is archived."""
    behind: int = 0
    """Messages that are not yet."""
    oldest: int = 0
    """When the first of these was stored; 0 if there is none."""
    segments: int = 0
    events: int = 0
    """Archived by this run."""
    lost: int = 0
    """Messages that left the log before they were archived, in this run."""
    failing: str = ""
    """Why the archive cannot be written to; it is tried again."""
    since: int = 0
    """When that began."""


class EngineSize(msgspec.Struct, frozen=True, kw_only=True):
    """How much an engine has to work with; 0 for what there is none of."""

    executors: int = 0
    """Processes that work beside the run."""
    cores: int = 0
    buckets: int = 0
    """Among which what policies remember is divided."""
    behind: int = 0
    """Messages of the root log that detection has not taken yet."""


class ExecutorLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What an executor did in the last seconds."""

    worker: str
    host: str
    cpu: float
    """The share of its cores that is in use."""
    rows: float
    """Events a second."""
    buckets: int = 0
    """Of policies, in the last batch that had any."""


class RealTimeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A query that delivers a client's events in real time."""

    client: str
    rows: float
    """Records a second that it read in its last batch."""
    at: int
    """When that ended; 0 before the first."""
    delivers: bool
    """Whether deliveries are left to it; otherwise it begins, or finishes what was."""


class RunMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """One look at a run. Instants are in microseconds since 1970, sizes in bytes."""

    engine: str
    state: str = STARTING
    pid: int = 0
    version: int = 0
    """Of the deployment the engine works with; 0 before its first."""
    started: int = 0
    at: int = 0
    taken: int = 0
    """Events that were accepted into the root log."""
    delivered: int = 0
    dead: int = 0
    taken_rate: float = 0.0
    delivered_rate: float = 0.0
    waiting: int = 0
    """Messages that clients sent and the engine has not taken yet."""
    batch: float = 0.0
    """Seconds the last batch took; 0 for an engine that takes events one by one."""
    size: EngineSize = EngineSize()
    restarts: int = 0
    clients: int = 0
    """Clients that are connected."""
    types: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events accepted, by type."""
    subscriptions: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events delivered, by subscription."""
    codes: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Dead letters, by code."""
    origins: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events accepted that came in other terms than root's, as `TYPE CONTEXT`."""
    terms: Mapping[str, str] = msgspec.field(default_factory=dict)
    """The contexts of those of the subscriptions that are in other terms than root's."""
    originals: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events that those of their own context got as they were sent, by context."""
    converted: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events put in the terms of a context, by context: each once, however many get it."""
    dropped: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""
    failures: Mapping[str, int] = msgspec.field(default_factory=dict)
    """What failed in a way that nobody foresaw and is no event of a client, by what it was; the log has how."""
    refused: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Messages of clients that the router refused or reported, by code."""
    memory: Mapping[str, int] = msgspec.field(default_factory=dict)
    situations: DetectionMetrics = DetectionMetrics()
    """How policies are, if there are some."""
    archive: ArchiveMetrics | None = None
    """How far the archive of the root log is, if there is one."""
    real_time: tuple[RealTimeQuery, ...] = ()
    """The queries in real-time mode, if a subscription asks for them."""

    @property
    def seconds(self) -> float:
        """How long the run has lasted."""
        return max(self.at - self.started, 0) / 1e6

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(self)
        return found

    def encode(self) -> bytes:
        """For the bus: of long lists only the names with the highest counts."""
        subscriptions = _highest(self.subscriptions)
        terms = {name: context for name, context in self.terms.items() if name in subscriptions}
        short = replace(
            self,
            types=_highest(self.types),
            origins=_highest(self.origins),
            dropped=_highest(self.dropped),
            subscriptions=subscriptions,
            terms=terms,
            situations=self.situations.shortened(),
        )
        return json.dumps(short.as_json(), separators=(",", ":")).encode()


def decode_metrics(text: bytes) -> RunMetrics | None:
    """The figures that a run wrote; None if they are those of another release or none at all."""
    try:
        return msgspec.json.decode(text, type=RunMetrics)
    except ValueError:
        return None


class EventRates:
    """Events a second, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, taken: int, delivered: int) -> tuple[float, float]:
        """Note the counts of now; the rates of both."""
        seen = self._seen
        seen.append((now, taken, delivered))
        while len(seen) > 2 and now - seen[0][0] > _WINDOW:
            seen.popleft()
        at, first_taken, first_delivered = seen[0]
        if now <= at:
            return 0.0, 0.0
        return round((taken - first_taken) / (now - at), 1), round((delivered - first_delivered) / (now - at), 1)


def _highest(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])
