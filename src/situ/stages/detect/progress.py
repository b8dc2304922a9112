"""What detection remembers from step to step beside the states of kernels: how far event time is, what is open.

Where policies read what others publish, those others come first: a policy decides up to where all who feed it have
decided in the step before, as long as what they published has come back through the log. Until then a *mark* remembers
how far they had decided before they published it, and nobody who reads it goes further.

Values: a step that is repeated starts from what its first run started from, and comes to the same. It can be written
down as JSON.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from types import MappingProxyType
from typing import Any, NamedTuple

from situ.event.row import Row
from situ.lang.records import replace
from situ.policies import lifecycle
from situ.policies.lifecycle import POLICY_REMOVED, OpenSituations, SituationTransition, open_as_json, open_from_json
from situ.policies.model import Detection
from situ.policies.watermark import (
    SourceTimes,
    WatermarkInputs,
    merge_source_times,
    of_policies,
    source_times_as_json,
    source_times_from_json,
    waits_for,
    watermark,
)
from situ.stages.detect.detection_plan import DetectionPlan, PolicyRuntime, partial_source_key

FORMAT = 1


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyProgress:
    """Of one policy: which one it was, how far it has decided, its open situations."""

    digest: str
    reached: int | None = None
    before: int | None = None
    """How far it had decided before its last step: whatever that step told is not older."""
    since: int = 0
    """When it began to listen to the push sources it listens to."""
    quiet: int | None = None
    """No action is done for what was before this: it is of the time before the policy came."""
    open: OpenSituations = field(default_factory=lambda: MappingProxyType({}))
    oldest: int | None = field(default=None, compare=False)
    """When that of the open situations was detected last for which this is longest ago; None: not known."""

    def is_quiet(self, reached: int, hold: int) -> bool:
        """Whether time that goes on to there closes nothing, as far as that is known without looking at them all."""
        return not self.open or (self.oldest is not None and reached <= self.oldest + hold)


class PublicationMark(NamedTuple):
    """What a policy has published and others read: up to which of its events, and how far it had decided before.

    ``level`` None: it had decided nothing. ``ingress`` is the last message of the ingress stream that it came in with;
    0 where it went into the root log right away.
    """

    incarnation: int
    number: int
    level: int | None
    ingress: int = 0


Arrived = Mapping[str, tuple[int, int]]
"""Of policies: incarnation and number of the last event of each that has come through the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectionProgress:
    """Of all policies: what was seen of push sources, what is kept of each, how many events each published.

    ``incarnation`` is that of policies as clients: whoever forgets what was published begins a new one.
    """

    incarnation: int = 1
    seen: Mapping[str, SourceTimes] = field(default_factory=_nothing)
    policies: Mapping[str, PolicyProgress] = field(default_factory=_nothing)
    numbers: Mapping[str, int] = field(default_factory=_nothing)
    marks: Mapping[str, tuple[PublicationMark, ...]] = field(default_factory=_nothing)
    """Of policies that others read: what has not come through the log yet, in the order it was published."""

    def adopted(
        self, now: DetectionPlan, former: DetectionPlan | None, clock: int = 0
    ) -> tuple[DetectionProgress, list[SituationTransition]]:
        """With the policies of another deployment: new ones begin, situations of those that are gone are closed."""
        told: list[SituationTransition] = []
        kept: dict[str, PolicyProgress] = {}
        for name, watch in now.watches.items():
            before = self.policies.get(name)
            if before is None:
                kept[name] = PolicyProgress(digest=watch.digest, since=clock)
            elif before.digest == watch.digest:
                kept[name] = before
            else:
                altered, closed = _altered(before, watch, former.watches.get(name) if former is not None else None)
                kept[name] = replace(altered, before=before.before, since=clock, quiet=before.quiet)
                told += closed
        for name, before in self.policies.items():
            if name not in now.watches:
                hold = former.watches[name].policy.hold if former is not None and name in former.watches else 0
                reason = now.resting.get(name, POLICY_REMOVED)
                told += lifecycle.close(before.open, reason, before.reached, hold)
        return replace(self, policies=kept, seen=self._seen_by(now, former)), told

    def _seen_by(self, now: DetectionPlan, former: DetectionPlan | None) -> Mapping[str, SourceTimes]:
        """With what policies have heard that read as somebody else from now on: time does not stop for them."""
        found = dict(self.seen)
        for name, watch in now.watches.items():
            before = former.watches.get(name) if former is not None else None
            if before is not None and before.reads != watch.reads:
                for push in (*watch.patience, *map(of_policies, watch.patience)):
                    heard = self.seen.get(partial_source_key(push, before.reads))
                    if heard is not None:
                        found.setdefault(partial_source_key(push, watch.reads), heard)
        return found if len(found) > len(self.seen) else self.seen

    def heard(self, *parts: Mapping[str, SourceTimes], arrived: Arrived = MappingProxyType({})) -> DetectionProgress:
        """With what parts of a batch have seen of push sources, and what of policies has come with it."""
        return replace(self, seen=merge_source_times(self.seen, *parts)).arrived(arrived)

    def arrived(self, last: Arrived) -> DetectionProgress:
        """With what policies published up to these events: it has come through the log, or never will."""
        came = {name: last[name] for name in last if name in self.marks and self.marks[name][0][:2] <= last[name]}
        if not came:
            return self
        left = {
            name: tuple(mark for mark in marks if mark[:2] > came[name]) if name in came else marks
            for name, marks in self.marks.items()
        }
        return replace(self, marks={name: marks for name, marks in left.items() if marks})

    def given_up(self, settled: int) -> DetectionProgress:
        """Without waiting for what came in before this message of the ingress stream, all of which has been seen as far
        as it is in the root log: what was not among it became dead letters."""
        overdue = {name: [mark for mark in marks if mark.ingress < settled] for name, marks in self.marks.items()}
        return self.arrived({name: marks[-1][:2] for name, marks in overdue.items() if marks})

    def stored_at(self, ingress: int, before: DetectionProgress) -> DetectionProgress:
        """With where in the ingress stream all that was published since ``before`` is at the latest."""
        marks = {
            name: tuple(
                mark if mark in before.marks.get(name, ()) else mark._replace(ingress=ingress) for mark in marks
            )
            for name, marks in self.marks.items()
        }
        return replace(self, marks=marks) if marks != self.marks else self

    def marked(self, names: Iterable[str], feeders: Collection[str], before: DetectionProgress) -> DetectionProgress:
        """With a mark for each of these policies that has published something others read.

        ``before`` is what was before the last step, or before another deployment: it knows those that are gone.
        """
        marks = dict(self.marks)
        for name in dict.fromkeys(names):
            if name in feeders:
                kept, former = self.policies.get(name), before.policies.get(name)
                level = kept.before if kept is not None else former.reached if former is not None else None
                mark = PublicationMark(self.incarnation, self.numbers[name], level)
                marks[name] = (*marks.get(name, ()), mark)
        return replace(self, marks=marks) if marks != self.marks else self

    def heard_by(self, watch: PolicyRuntime) -> Mapping[str, SourceTimes]:
        """What a policy has seen of its push sources; nothing of what it does not see.

        Of those that feed it, it is known how far they are; their events tell nothing about it.
        """
        found = {}
        for push in watch.patience:
            heard = [self._heard(push, watch)]
            if not watch.fed or watch.circular:
                heard.append(self._heard(of_policies(push), watch))
            some = [each for each in heard if each is not None]
            if some:
                found[push] = reduce(SourceTimes.merge, some)
        return found

    def _heard(self, push: str, watch: PolicyRuntime) -> SourceTimes | None:
        # Where nothing is hidden, as before there were scopes and in tests of policies, all have seen the same.
        return self.seen.get(partial_source_key(push, watch.reads), self.seen.get(push))

    def heard_of(self, push: str) -> SourceTimes | None:
        """What all policies together have seen of a push source."""
        names = (push, of_policies(push))
        found = [seen for name, seen in self.seen.items() if name.partition("@")[0] in names]
        return reduce(SourceTimes.merge, found) if found else None

    def watermarks(self, detecting: DetectionPlan, clock: int) -> dict[str, int]:
        """How far event time is settled for each policy; one that has heard nothing yet is not among them."""
        found = {}
        for name, watch in detecting.watches.items():
            kept = self.policies.get(name)
            now = watermark(
                self.heard_by(watch),
                watch.patience,
                clock,
                kept.reached if kept is not None else None,
                self.listening(detecting, watch, clock),
            )
            if now is not None:
                found[name] = now
        return found

    def waits_for(self, detecting: DetectionPlan, watch: PolicyRuntime, clock: int) -> str | None:
        """The push source or the policy that holds a policy back; None: nothing does."""
        return waits_for(self.heard_by(watch), watch.patience, clock, self.listening(detecting, watch, clock))

    def lags(self, detecting: DetectionPlan, clock: int) -> bool:
        """Whether another step would decide more, though nothing comes."""
        watermarks = self.watermarks(detecting, clock)
        return any(now != self.policies[name].reached for name, now in watermarks.items())

    def listening(self, detecting: DetectionPlan, watch: PolicyRuntime, clock: int) -> WatermarkInputs:
        """How a policy listens: since when, and how far those are that feed it."""
        kept = self.policies.get(watch.name)
        fed = {name: self._pace(detecting, name, clock) for name in watch.fed}
        # What policies still had to say that are gone now, of which nobody knows any more whom they fed.
        for name in self.marks.keys() - detecting.watches.keys():
            if any(self._heard(of_policies(push), watch) is not None for push in watch.patience):
                fed[name] = self.marks[name][0].level
        return WatermarkInputs(since=kept.since if kept is not None else 0, awaited=watch.awaited, fed=fed)

    def _pace(self, detecting: DetectionPlan, name: str, clock: int) -> int | None:
        """How far a policy has decided, as far as all that it published before has come; None: it has not.

        One that has nothing to decide, since it never heard anything, is as far as the clock, less what it is granted.
        """
        if name in self.marks:
            return self.marks[name][0].level
        kept, watch = self.policies.get(name), detecting.watches[name]
        if kept is not None and kept.reached is not None:
            return kept.reached
        # One that others feed decides in this step, if it can.
        if watch.fed or self.heard_by(watch):
            return None
        listening = self.listening(detecting, watch, clock)
        if waits_for({}, watch.patience, clock, listening) is not None:
            return None
        return clock - max((each.lateness for each in watch.patience.values()), default=0)

    def decided(
        self, detecting: DetectionPlan, detections: Mapping[str, Sequence[Detection]], watermarks: Mapping[str, int]
    ) -> tuple[DetectionProgress, list[SituationTransition]]:
        """After a step that decided all before these watermarks and found these detections."""
        told: list[SituationTransition] = []
        policies = dict(self.policies)
        for name, watch in detecting.watches.items():
            reached = watermarks.get(name)
            if reached is None:
                continue
            kept, new, hold = policies[name], detections.get(name, ()), watch.policy.hold
            if not new and kept.is_quiet(reached, hold):
                policies[name] = replace(kept, reached=reached, before=kept.reached)
                continue
            current, transitions = lifecycle.step(kept.open, new, reached, hold)
            told += transitions
            oldest = min((each.last for each in current.values()), default=None)
            policies[name] = replace(kept, reached=reached, before=kept.reached, open=current, oldest=oldest)
        return replace(self, policies=policies), told

    def numbered(self, policy: str, count: int) -> tuple[DetectionProgress, int]:
        """With so many more events of a policy; the number of the first of them."""
        last = self.numbers.get(policy, 0)
        return replace(self, numbers={**self.numbers, policy: last + count}), last + 1

    def beyond(self, highest: Mapping[str, tuple[int, int]]) -> DetectionProgress:
        """With an incarnation of its own, if others have published as one of its policies under a later one.

        ``highest`` is the last event of each client: its incarnation and number. Under an earlier incarnation whatever
        is published counts as a repeat.
        """
        last = max((highest.get(name, (0, 0))[0] for name in (*self.policies, *self.numbers)), default=0)
        return self if last <= self.incarnation else replace(self, incarnation=last + 1, numbers={})

    def with_parts(self, policy: str, parts: Mapping[str, str]) -> DetectionProgress:
        """With the stamps of what situations of a policy come from, by their ids."""
        kept = self.policies.get(policy)
        new = {
            bindings: replace(each, parts=parts[each.id])
            for bindings, each in (kept.open.items() if kept is not None else ())
            if parts.get(each.id, each.parts) != each.parts
        }
        if kept is None or not new:
            return self
        return replace(self, policies={**self.policies, policy: replace(kept, open={**kept.open, **new})})

    @property
    def has_open(self) -> bool:
        """Whether a situation is open: time that goes by closes it."""
        return any(kept.open for kept in self.policies.values())

    def as_json(self) -> dict[str, Any]:
        return {
            "version": FORMAT,
            "incarnation": self.incarnation,
            "seen": source_times_as_json(self.seen),
            "policies": {
                name: {**_about(kept), "open": open_as_json(kept.open)} for name, kept in sorted(self.policies.items())
            },
            "numbers": dict(sorted(self.numbers.items())),
            "published": _marks_as_json(self.marks),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> DetectionProgress:
        """What :meth:`as_json` gave; ValueError or KeyError for what it cannot have given."""
        if stored.get("version") != FORMAT:
            raise ValueError(f"its version is {stored.get('version')}, this release reads {FORMAT}")
        return cls(
            incarnation=int(stored["incarnation"]),
            seen=source_times_from_json(stored["seen"]),
            policies={
                name: PolicyProgress(**_kept(each), open=open_from_json(each["open"]))
                for name, each in stored["policies"].items()
            },
            numbers={name: int(number) for name, number in stored["numbers"].items()},
            marks=_marks_from_json(stored),
        )

    def changes(self, former: DetectionProgress) -> dict[str, Any]:
        """What is another than it was: as JSON, and small however much is open. :meth:`changed` makes the whole of it.

        Of situations, those that are as they were are the same objects.
        """
        return {
            "version": FORMAT,
            "incarnation": self.incarnation,
            "seen": source_times_as_json(self.seen),
            "policies": {
                name: _changes(kept, former.policies.get(name))
                for name, kept in sorted(self.policies.items())
                if kept is not former.policies.get(name)
            },
            "gone": sorted(former.policies.keys() - self.policies.keys()),
            "numbers": {name: n for name, n in sorted(self.numbers.items()) if former.numbers.get(name) != n},
            "published": _marks_as_json(self.marks),
        }

    def changed(self, stored: Mapping[str, Any]) -> DetectionProgress:
        """With what :meth:`changes` gave; ValueError or KeyError for what it cannot have given."""
        if stored.get("version") != FORMAT:
            raise ValueError(f"its version is {stored.get('version')}, this release reads {FORMAT}")
        policies = {name: kept for name, kept in self.policies.items() if name not in stored["gone"]}
        for name, each in stored["policies"].items():
            before = policies[name].open if name in policies else {}
            current = {**before, **open_from_json(each["open"])}
            for bindings in each["closed"]:
                del current[tuple(sorted(bindings.items()))]
            policies[name] = PolicyProgress(**_kept(each), open=current)
        return DetectionProgress(
            incarnation=int(stored["incarnation"]),
            seen=source_times_from_json(stored["seen"]),
            policies=policies,
            numbers={**self.numbers, **{name: int(number) for name, number in stored["numbers"].items()}},
            marks=_marks_from_json(stored),
        )


def last_of(rows: Iterable[Row], names: Collection[str]) -> Arrived:
    """How far these policies are by what of them is among events of the log."""
    found: dict[str, tuple[int, int]] = {}
    for row in rows if names else ():
        if row.client in names:
            found[row.client] = max(found.get(row.client, (0, 0)), (row.incarnation, row.seq))
    return found


def _changes(kept: PolicyProgress, former: PolicyProgress | None) -> dict[str, Any]:
    before: OpenSituations = former.open if former is not None else {}
    if before is kept.open:
        return {**_about(kept), "open": open_as_json({}), "closed": []}
    opened = {bindings: each for bindings, each in kept.open.items() if before.get(bindings) is not each}
    closed = [dict(bindings) for bindings in before if bindings not in kept.open]
    return {**_about(kept), "open": open_as_json(opened), "closed": closed}


def _about(kept: PolicyProgress) -> dict[str, Any]:
    about = {"digest": kept.digest, "reached": kept.reached, "before": kept.before, "since": kept.since}
    return about if kept.quiet is None else {**about, "quiet": kept.quiet}


def _kept(stored: Mapping[str, Any]) -> dict[str, Any]:
    """What was stored before policies could wait for each other says less; nothing of it is waited for then."""
    return {
        "digest": stored["digest"],
        "reached": stored["reached"],
        "before": stored.get("before", stored["reached"]),
        "since": stored.get("since", 0),
        "quiet": stored.get("quiet"),
    }


def _marks_as_json(marks: Mapping[str, tuple[PublicationMark, ...]]) -> dict[str, Any]:
    return {name: [list(mark) for mark in marks[name]] for name in sorted(marks)}


def _marks_from_json(stored: Mapping[str, Any]) -> dict[str, tuple[PublicationMark, ...]]:
    """What was stored before marks said where they are has a time instead, which says nothing of that."""
    found = {name: [PublicationMark(*mark) for mark in marks] for name, marks in stored.get("published", {}).items()}
    found |= {name: [PublicationMark(*mark[:3]) for mark in marks] for name, marks in stored.get("marks", {}).items()}
    return {name: tuple(marks) for name, marks in found.items()}


def _altered(
    before: PolicyProgress, watch: PolicyRuntime, former: PolicyRuntime | None
) -> tuple[PolicyProgress, list[SituationTransition]]:
    """What goes on of a policy that has been altered. How far it had decided stays: nothing is decided twice."""
    if former is None:
        closed = lifecycle.close(before.open, lifecycle.POLICY_CHANGED, before.reached, 0)
        return PolicyProgress(digest=watch.digest, reached=before.reached), closed
    current, closed = lifecycle.carry_over(before.open, former.policy, watch.policy, before.reached)
    return PolicyProgress(digest=watch.digest, reached=before.reached, open=current), closed
