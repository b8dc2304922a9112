"""What detection remembers from step to step beside the states of kernels: how far event time is, what is open.

Values: a step that is repeated starts from what its first run started from, and comes to the same. It can be written
down as JSON.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from types import MappingProxyType
from typing import Any

from situ.deployment.detecting import Detecting, Watch, heard_as
from situ.situation.meaning import lifecycle
from situ.situation.meaning.detection import Detection
from situ.situation.meaning.lifecycle import POLICY_REMOVED, Open, Transition, open_as_json, open_from_json
from situ.situation.meaning.watermark import Seen, merged, seen_as_json, seen_from_json, watermark

FORMAT = 1


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Of one policy: which one it was, how far it has decided, its open situations."""

    digest: str
    reached: int | None = None
    open: Open = field(default_factory=lambda: MappingProxyType({}))
    oldest: int | None = field(default=None, compare=False)
    """When that of the open situations was detected last for which this is longest ago; None: not known."""

    def is_quiet(self, reached: int, hold: int) -> bool:
        """Whether time that goes on to there closes nothing, as far as that is known without looking at them all."""
        return not self.open or (self.oldest is not None and reached <= self.oldest + hold)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Of all policies: what was seen of push sources, what is kept of each, how many events each published.

    ``incarnation`` is that of policies as clients: whoever forgets what was published begins a new one.
    """

    incarnation: int = 1
    seen: Mapping[str, Seen] = field(default_factory=_nothing)
    policies: Mapping[str, Kept] = field(default_factory=_nothing)
    numbers: Mapping[str, int] = field(default_factory=_nothing)

    def adopted(self, now: Detecting, former: Detecting | None) -> tuple[Progress, list[Transition]]:
        """With the policies of another deployment: new ones begin, situations of those that are gone are closed."""
        told: list[Transition] = []
        kept: dict[str, Kept] = {}
        for name, watch in now.watches.items():
            before = self.policies.get(name)
            if before is None:
                kept[name] = Kept(digest=watch.digest)
            elif before.digest == watch.digest:
                kept[name] = before
            else:
                kept[name], closed = _altered(before, watch, former.watches.get(name) if former is not None else None)
                told += closed
        for name, before in self.policies.items():
            if name not in now.watches:
                hold = former.watches[name].policy.hold if former is not None and name in former.watches else 0
                reason = now.resting.get(name, POLICY_REMOVED)
                told += lifecycle.close(before.open, reason, before.reached, hold)
        return replace(self, policies=kept, seen=self._seen_by(now, former)), told

    def _seen_by(self, now: Detecting, former: Detecting | None) -> Mapping[str, Seen]:
        """With what policies have heard that read as somebody else from now on: time does not stop for them."""
        found = dict(self.seen)
        for name, watch in now.watches.items():
            before = former.watches.get(name) if former is not None else None
            if before is not None and before.reads != watch.reads:
                for push in watch.patience:
                    heard = self.seen.get(heard_as(push, before.reads))
                    if heard is not None:
                        found.setdefault(heard_as(push, watch.reads), heard)
        return found if len(found) > len(self.seen) else self.seen

    def heard(self, *parts: Mapping[str, Seen]) -> Progress:
        """With what parts of a batch have seen of push sources."""
        return replace(self, seen=merged(self.seen, *parts))

    def heard_by(self, watch: Watch) -> Mapping[str, Seen]:
        """What a policy has seen of its push sources; nothing of what it does not see."""
        if watch.reads is None:
            return self.seen
        # Where nothing is hidden, as before there were scopes and in tests of policies, all have seen the same.
        found = {push: self.seen.get(heard_as(push, watch.reads), self.seen.get(push)) for push in watch.patience}
        return {push: seen for push, seen in found.items() if seen is not None}

    def heard_of(self, push: str) -> Seen | None:
        """What all policies together have seen of a push source."""
        found = [seen for name, seen in self.seen.items() if name == push or name.startswith(f"{push}@")]
        return reduce(Seen.merge, found) if found else None

    def watermarks(self, detecting: Detecting, clock: int) -> dict[str, int]:
        """How far event time is settled for each policy; one that has heard nothing yet is not among them."""
        found = {}
        for name, watch in detecting.watches.items():
            kept = self.policies.get(name)
            now = watermark(self.heard_by(watch), watch.patience, clock, kept.reached if kept is not None else None)
            if now is not None:
                found[name] = now
        return found

    def decided(
        self, detecting: Detecting, detections: Mapping[str, Sequence[Detection]], watermarks: Mapping[str, int]
    ) -> tuple[Progress, list[Transition]]:
        """After a step that decided all before these watermarks and found these detections."""
        told: list[Transition] = []
        policies = dict(self.policies)
        for name, watch in detecting.watches.items():
            reached = watermarks.get(name)
            if reached is None:
                continue
            kept, new, hold = policies[name], detections.get(name, ()), watch.policy.hold
            if not new and kept.is_quiet(reached, hold):
                policies[name] = replace(kept, reached=reached)
                continue
            current, transitions = lifecycle.step(kept.open, new, reached, hold)
            told += transitions
            oldest = min((each.last for each in current.values()), default=None)
            policies[name] = replace(kept, reached=reached, open=current, oldest=oldest)
        return replace(self, policies=policies), told

    def numbered(self, policy: str, count: int) -> tuple[Progress, int]:
        """With so many more events of a policy; the number of the first of them."""
        last = self.numbers.get(policy, 0)
        return replace(self, numbers={**self.numbers, policy: last + count}), last + 1

    def beyond(self, highest: Mapping[str, tuple[int, int]]) -> Progress:
        """With an incarnation of its own, if others have published as one of its policies under a later one.

        ``highest`` is the last event of each client: its incarnation and number. Under an earlier incarnation whatever
        is published counts as a repeat.
        """
        last = max((highest.get(name, (0, 0))[0] for name in (*self.policies, *self.numbers)), default=0)
        return self if last <= self.incarnation else replace(self, incarnation=last + 1, numbers={})

    def with_parts(self, policy: str, parts: Mapping[str, str]) -> Progress:
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
            "seen": seen_as_json(self.seen),
            "policies": {
                name: {"digest": kept.digest, "reached": kept.reached, "open": open_as_json(kept.open)}
                for name, kept in sorted(self.policies.items())
            },
            "numbers": dict(sorted(self.numbers.items())),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Progress:
        """What :meth:`as_json` gave; ValueError or KeyError for what it cannot have given."""
        if stored.get("version") != FORMAT:
            raise ValueError(f"its version is {stored.get('version')}, this release reads {FORMAT}")
        return cls(
            incarnation=int(stored["incarnation"]),
            seen=seen_from_json(stored["seen"]),
            policies={
                name: Kept(digest=each["digest"], reached=each["reached"], open=open_from_json(each["open"]))
                for name, each in stored["policies"].items()
            },
            numbers={name: int(number) for name, number in stored["numbers"].items()},
        )

    def changes(self, former: Progress) -> dict[str, Any]:
        """What is another than it was: as JSON, and small however much is open. :meth:`changed` makes the whole of it.

        Of situations, those that are as they were are the same objects.
        """
        return {
            "version": FORMAT,
            "incarnation": self.incarnation,
            "seen": seen_as_json(self.seen),
            "policies": {
                name: _changes(kept, former.policies.get(name))
                for name, kept in sorted(self.policies.items())
                if kept is not former.policies.get(name)
            },
            "gone": sorted(former.policies.keys() - self.policies.keys()),
            "numbers": {name: n for name, n in sorted(self.numbers.items()) if former.numbers.get(name) != n},
        }

    def changed(self, stored: Mapping[str, Any]) -> Progress:
        """With what :meth:`changes` gave; ValueError or KeyError for what it cannot have given."""
        if stored.get("version") != FORMAT:
            raise ValueError(f"its version is {stored.get('version')}, this release reads {FORMAT}")
        policies = {name: kept for name, kept in self.policies.items() if name not in stored["gone"]}
        for name, each in stored["policies"].items():
            before = policies[name].open if name in policies else {}
            current = {**before, **open_from_json(each["open"])}
            for bindings in each["closed"]:
                del current[tuple(sorted(bindings.items()))]
            policies[name] = Kept(digest=each["digest"], reached=each["reached"], open=current)
        return Progress(
            incarnation=int(stored["incarnation"]),
            seen=seen_from_json(stored["seen"]),
            policies=policies,
            numbers={**self.numbers, **{name: int(number) for name, number in stored["numbers"].items()}},
        )


def _changes(kept: Kept, former: Kept | None) -> dict[str, Any]:
    before: Open = former.open if former is not None else {}
    if before is kept.open:
        return {"digest": kept.digest, "reached": kept.reached, "open": open_as_json({}), "closed": []}
    opened = {bindings: each for bindings, each in kept.open.items() if before.get(bindings) is not each}
    closed = [dict(bindings) for bindings in before if bindings not in kept.open]
    return {"digest": kept.digest, "reached": kept.reached, "open": open_as_json(opened), "closed": closed}


def _altered(before: Kept, watch: Watch, former: Watch | None) -> tuple[Kept, list[Transition]]:
    """What goes on of a policy that has been altered. How far it had decided stays: nothing is decided twice."""
    if former is None:
        closed = lifecycle.close(before.open, lifecycle.POLICY_CHANGED, before.reached, 0)
        return Kept(digest=watch.digest, reached=before.reached), closed
    current, closed = lifecycle.carry_over(before.open, former.policy, watch.policy, before.reached)
    return Kept(digest=watch.digest, reached=before.reached, open=current), closed
