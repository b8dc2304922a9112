"""Advice to publishers: the ledger of who claims what of a profile, and the course of one advice.

`Ledger` gives the target of a profile. `AdviceCourse` is the protocol with its publisher: sent, accepted, effective; or
refused, expired, failed, withdrawn.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from situ.lang.json_form import StoredForm, plain
from situ.lang.records import replace
from situ.quality.model.allocation_problem import STAY, Target, point_at
from situ.quality.model.declarations import Point, Profile
from situ.quality.negotiation.feedback import Advice, Kind, Value

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The ledger: what a profile did before anybody advised it (the baseline), and who claims what of it since. The target
# is the best of the baseline and of all claims: whoever wants less is thinned. In modes it is the cheapest mode in
# which no claimant loses what it claimed. When claims go, the target falls; nothing else is remembered of them, so with
# the last claim it is the baseline again.

Meets = Callable[[str, Point], bool]
"""Whether an expectation, by its id, is met by a point."""


@dataclass(slots=True)
class Ledger:
    """Of one profile."""

    baseline: dict[str, float] = field(default_factory=dict)
    """Property → its value before the first advice; of those that were claimed."""
    mode: str = ""
    """The mode before the first advice; empty: none was claimed."""
    claims: dict[str, Target] = field(default_factory=dict)
    """Expectation → what it needs. What a plan does for nobody, since it is cheaper so, nobody claims and nobody does:
    with the last claim a publisher is left alone."""
    _best: dict[str, float] | None = field(default=None, compare=False, repr=False)
    """Property → the best of all claims, since they last changed."""

    def __bool__(self) -> bool:
        return bool(self.baseline or self.mode or self.claims)

    def claim(self, profile: Profile, expectation: str, target: Target) -> None:
        """An expectation needs this of a profile."""
        self.remember(profile, target)
        self.claims[expectation] = target
        self._best = None

    def remember(self, profile: Profile, target: Target) -> None:
        """What a profile does before it is at a target is the baseline, unless it was at another before."""
        self._best = None
        for id in target.values:
            self.baseline.setdefault(id, profile.capabilities[id].cv)
        if target.mode and not self.mode:
            self.mode = profile.mode

    def follow(self, profile: Profile, done: Target) -> None:
        """A publisher is at a target now. Who did less than it said may have been asked for less than it said."""
        self.remember(profile, done)
        for id, value in done.values.items():
            self.baseline[id] = profile.capabilities[id].about.worse(self.baseline[id], value)

    def release(self, expectation: str) -> bool:
        """Whether there was a claim to take back."""
        self._best = None
        return self.claims.pop(expectation, None) is not None

    def rebase(self, before: Profile, after: Profile) -> None:
        """A publisher changed values by itself: what it does now is what it would do without advice."""
        self._best = None
        for id in list(self.baseline):
            if id not in after.capabilities:
                del self.baseline[id]
            elif id not in before.capabilities or before.capabilities[id].cv != after.capabilities[id].cv:
                self.baseline[id] = after.capabilities[id].cv
        names = {each.name for each in after.modes}
        if self.mode and (before.mode != after.mode or self.mode not in names):
            self.mode = after.mode if after.modes else ""
        self.claims = {id: kept for id, each in self.claims.items() if (kept := _still(each, after, names))}

    def replace(self, baseline: dict[str, float], claims: dict[str, Target]) -> None:
        """The same in other numbers; of claims of nothing nothing is left."""
        self.baseline, self._best = baseline, None
        self.claims = {id: each for id, each in claims.items() if each}

    def target(self, profile: Profile, meets: Meets) -> Target:
        """What a profile is to do, in all that was ever claimed; nothing, where it has no such property any more."""
        claimed = self._claimed(profile)
        values = {
            id: profile.capabilities[id].about.better(claimed.get(id, value), value)
            for id, value in self.baseline.items()
            if id in profile.capabilities
        }
        return Target(values=MappingProxyType(values), mode=self._mode(profile, meets))

    def claimed(self, profile: Profile, meets: Meets) -> Target:
        """What somebody needs of it: the baseline is nothing that anybody asks for."""
        mode = self._mode(profile, meets) if any(each.mode for each in self.claims.values()) else ""
        return Target(values=MappingProxyType(self._claimed(profile)), mode=mode)

    def _claimed(self, profile: Profile) -> dict[str, float]:
        if self._best is None:
            self._best = {}
            for each in self.claims.values():
                for id, value in each.values.items():
                    if id in profile.capabilities:
                        self._best[id] = profile.capabilities[id].about.better(self._best.get(id, value), value)
        return self._best

    def _mode(self, profile: Profile, meets: Meets) -> str:
        if not self.mode:
            return ""
        claimants = [id for id, each in self.claims.items() if each.mode]
        names = [each.name for each in sorted(profile.modes, key=lambda each: each.cost)]
        # The baseline first: where nobody loses anything by it, nothing is cheaper than leaving the publisher alone.
        for name in (self.mode, *names):
            if name in names and all(
                self.claims[id].mode == name
                or meets(id, point_at(profile, Target(values=self.claims[id].values, mode=name)))
                for id in claimants
            ):
                return name
        return profile.mode

    def settle(self, profile: Profile) -> None:
        """Forget baselines that hold again and that nobody claims."""
        back = [
            id
            for id, value in self.baseline.items()
            if id not in profile.capabilities or profile.capabilities[id].cv == value
        ]
        for id in back:
            if not any(id in each.values for each in self.claims.values()):
                del self.baseline[id]
                self._best = None
        if self.mode == profile.mode and not any(each.mode for each in self.claims.values()):
            self.mode = ""

    def as_json(self) -> dict[str, Any]:
        claims = {id: each.as_json() for id, each in self.claims.items()}
        return {"baseline": dict(self.baseline), "mode": self.mode, "claims": claims}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Ledger:
        claims = {id: Target.from_json(each) for id, each in value["claims"].items()}
        return cls(baseline=dict(value["baseline"]), mode=value["mode"], claims=claims)


def _still(target: Target, profile: Profile, modes: set[str]) -> Target:
    """What is left of a claim on a profile that is another now."""
    values = {id: value for id, value in target.values.items() if id in profile.capabilities}
    return Target(values=MappingProxyType(values), mode=target.mode if target.mode in modes else "")


def improves(target: Target, profile: Profile) -> Target:
    """The part of a target that is better than what a profile does; another mode counts as that."""
    values = {
        id: value
        for id, value in target.values.items()
        if not profile.capabilities[id].about.at_least(profile.capabilities[id].cv, value)
    }
    mode = target.mode if target.mode and target.mode != profile.mode else ""
    return Target(values=MappingProxyType(values), mode=mode) if values or mode else STAY


def lowers(target: Target, profile: Profile) -> Target:
    """The part of a target that is worse than what a profile does; another mode counts as that, too."""
    values = {
        id: value
        for id, value in target.values.items()
        if not profile.capabilities[id].about.at_least(value, profile.capabilities[id].cv)
    }
    mode = target.mode if target.mode and target.mode != profile.mode else ""
    return Target(values=MappingProxyType(values), mode=mode) if values or mode else STAY


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The course of advice. At most one advice is open. One that is not answered is sent once more; one that is accepted has
# to show. Who lets advice expire or fails to follow it rests for a minute and others are asked; who does it twice in a
# row is frozen, for ten minutes at first and twice as long each time after, until it changes its profile. All times are
# inputs.

ANSWER = 5.0
"""Seconds to answer an advice, once and then once more."""
EFFECT = 180.0
"""Seconds until what was accepted has to show, in windows of a minute: three."""
SPACING = 1.0
"""Seconds between two advices to one profile, whatever its publisher does in between."""
REST = 60.0
FIRST_FREEZE = 600.0
LONGEST_FREEZE = 86_400.0
ENOUGH = 2
"""Advices in a row that come to nothing."""

Status = Literal["sent", "accepted"]


class OpenAdvice(StoredForm, frozen=True, kw_only=True):
    """An advice under way."""

    id: str
    number: int
    """Of the message that told of it last."""
    repeated: bool = False
    """It was sent once more."""
    status: Status = "sent"
    since: float
    """When it was last sent, or accepted."""
    mark: int | None = None
    """How far event time was when it was accepted, in µs."""
    target: Target


class AdviceCourse(msgspec.Struct):
    """All that is known of a publisher's ways with advice, for one profile."""

    open: OpenAdvice | None = None
    last: float | None = None
    """When the last advice was sent."""
    failures: int = 0
    """In a row."""
    until: float | None = None
    """Until when nothing is advised and nothing expected: it rests or is frozen."""
    limits: dict[str, float] = msgspec.field(default_factory=dict)
    barred: set[str] = msgspec.field(default_factory=set)
    """Modes that it refused or failed to take."""
    unproven: dict[str, float] = msgspec.field(default_factory=dict)
    """Property → what it says it does since it was advised, and nobody has measured."""
    asked: Target | None = None
    """What it was last advised to do, whatever became of that: who does it late still does it on advice."""
    relax_at: float | None = None
    """When it is to be told to fall back."""
    relaxed: list[OpenAdvice] = msgspec.field(default_factory=list)
    """Advice to fall back of which the publisher has shown by nothing that it heard it: it may have been away. No two
    are about the same."""

    @property
    def is_frozen(self) -> bool:
        return self.until is not None

    @property
    def holds_back(self) -> bool:
        """Whether less is expected of it than it declares."""
        return bool(self.limits or self.barred or self.is_frozen)

    @property
    def deadline(self) -> float:
        """Until when an advice that was sent has to be answered."""
        assert self.open is not None
        return self.open.since + ANSWER

    def may_send(self, now: float) -> bool:
        return self.open is None and (self.last is None or now >= self.last + SPACING)

    # ── the protocol ──────────────────────────────────────────────────────────────────────────────

    def send(self, profile: Profile, target: Target, now: float, number: int) -> Advice:
        """Advise to do better. The number is that of the message, higher than all before, whatever became of them."""
        self.asked, self.last = target, now
        self.heard(target.values, mode=bool(target.mode))
        self.open = OpenAdvice(id=f"{profile.id}#{number}", target=target, number=number, since=now)
        return _message(self.open, "raise", profile, now + ANSWER)

    def send_again(self, profile: Profile, now: float, number: int) -> Advice:
        assert self.open is not None
        self.open = replace(self.open, number=number, since=now, repeated=True)
        return _message(self.open, "raise", profile, now + ANSWER)

    def relax(self, profile: Profile, target: Target, now: float, number: int) -> Advice:
        """Advise to fall back, which nobody waits for."""
        self.asked, self.relax_at, self.last = target, None, now
        advice = OpenAdvice(id=f"{profile.id}#{number}", target=target, number=number, since=now)
        self.heard(target.values, mode=bool(target.mode))
        self.relaxed.append(advice)
        return _message(advice, "relax", profile, None)

    def heard(self, properties: Collection[str], *, mode: bool) -> None:
        """What was said before about these properties, or the mode, is of no use any more."""
        self.relaxed = [kept for each in self.relaxed if (kept := _without(each, properties, mode=mode)).target]

    def to_be_heard(self, profile: Profile) -> Iterator[Advice]:
        """What a publisher may not have heard: said as it was, so that one that has can tell."""
        yield from (_message(each, "relax", profile, None) for each in self.relaxed)
        if self.open is not None and self.open.status == "sent":
            yield _message(self.open, "raise", profile, self.deadline)

    def withdraw(self, profile: Profile, number: int) -> Advice:
        """Nobody needs any more what was advised."""
        assert self.open is not None
        advice, self.open = replace(self.open, number=number), None
        return _message(advice, "withdraw", profile, None)

    def accept(self, now: float, mark: int | None) -> None:
        if self.open is not None and self.open.status == "sent":
            self.open = replace(self.open, status="accepted", since=now, mark=mark)

    def took_effect(self, told: Profile | None) -> None:
        """What was advised holds: by the word of the publisher, given its profile, or as was measured."""
        assert self.open is not None
        if told is not None:
            self.unproven = dict(self.open.target.values)
            if self.open.target.mode:
                self.unproven |= told.mode_named(self.open.target.mode).values
        else:
            self.failures = 0
        self.open = None

    def refuse(self, profile: Profile, able: Mapping[str, float]) -> None:
        """It cannot do what was advised, but ``able``: that is the best to be had from now on."""
        assert self.open is not None
        target = self.open.target
        # Who can do as much as it was asked for and refuses all the same is not asked for that again.
        can_all = not target.mode and _suffices(able, target, profile)
        self._limit(profile, target, {} if can_all else able)
        self.open, self.failures = None, 0

    def fail(self, profile: Profile, able: Mapping[str, float], now: float) -> None:
        """It did not do what it accepted; what it does is the best to be had from now on."""
        if self.open is not None:
            self._limit(profile, self.open.target, able)
        self.open = None
        self.come_to_nothing(now)

    def expire(self, now: float) -> None:
        self.open = None
        self.come_to_nothing(now)

    def come_to_nothing(self, now: float) -> None:
        self.failures += 1
        doubled = FIRST_FREEZE * 2.0 ** min(max(self.failures - ENOUGH, 0), 16)
        self.until = now + (REST if self.failures < ENOUGH else min(doubled, LONGEST_FREEZE))

    def thaw(self) -> None:
        self.until = None

    def forget(self) -> None:
        """The publisher changed its profile by itself: what it declares counts again."""
        self.limits, self.barred, self.until, self.failures = {}, set(), None, 0

    def is_late(self, now: float, mark: int | None) -> bool:
        """Whether something accepted should have shown by now, in time or in event time."""
        if self.open is None or self.open.status != "accepted":
            return False
        passed = 0 if mark is None or self.open.mark is None else mark - self.open.mark
        return now >= self.open.since + EFFECT or passed >= EFFECT * 1_000_000

    def next_time(self) -> float | None:
        """When something is due that only time brings about."""
        times = [each for each in (self.until, self.relax_at) if each is not None]
        if self.open is not None:
            times.append(self.open.since + (ANSWER if self.open.status == "sent" else EFFECT))
        return min(times, default=None)

    def _limit(self, profile: Profile, target: Target, able: Mapping[str, float]) -> None:
        for id in target.values:
            if id in profile.capabilities:  # it may have become a matter of modes since
                self.limits[id] = able.get(id, profile.capabilities[id].cv)
        if target.mode:
            self.barred.add(target.mode)

    # ── its form ──────────────────────────────────────────────────────────────────────────────────

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = plain(self)
        return found

    @classmethod
    def from_json(cls, value: Any) -> AdviceCourse:
        return msgspec.convert(value, cls)


def _without(advice: OpenAdvice, properties: Collection[str], *, mode: bool) -> OpenAdvice:
    """What is left of an advice, apart from some of it."""
    values = {id: value for id, value in advice.target.values.items() if id not in properties}
    return replace(advice, target=Target(values=MappingProxyType(values), mode="" if mode else advice.target.mode))


def _suffices(able: Mapping[str, float], target: Target, profile: Profile) -> bool:
    about = {id: each.about for id, each in profile.capabilities.items()}
    return all(
        id in able and about[id].at_least(able[id], wanted) for id, wanted in target.values.items() if id in about
    )


def _message(advice: OpenAdvice, kind: Kind, profile: Profile, deadline: float | None) -> Advice:
    values: dict[str, Value] = {
        id: profile.capabilities[id].about.written(each)
        for id, each in advice.target.values.items()
        if id in profile.capabilities
    }
    return Advice(
        id=advice.id,
        kind=kind,
        profile=profile.id,
        number=advice.number,
        values=MappingProxyType(values),
        mode=advice.target.mode,
        deadline=deadline,
    )
