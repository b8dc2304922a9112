"""The course of advice to one profile: sent, accepted, effective; or refused, expired, failed, withdrawn.

At most one advice is open. One that is not answered is sent once more; one that is accepted has to show. Who lets
advice expire or fails to follow it rests for a minute and others are asked; who does it twice in a row is frozen, for
ten minutes at first and twice as long each time after, until it changes its profile. All times are inputs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal

from situ.quality.feedback import Advice, Kind, Value
from situ.quality.ledger import target_as_json, target_from_json
from situ.quality.problem import Target
from situ.quality.profile import Profile

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """An advice under way."""

    id: str
    target: Target
    number: int
    """Of the message that told of it last."""
    repeated: bool = False
    """It was sent once more."""
    status: Status = "sent"
    since: float
    """When it was last sent, or accepted."""
    mark: int | None = None
    """How far event time was when it was accepted, in µs."""


@dataclass(slots=True)
class Course:
    """All that is known of a publisher's ways with advice, for one profile."""

    open: Open | None = None
    last: float | None = None
    """When the last advice was sent."""
    failures: int = 0
    """In a row."""
    until: float | None = None
    """Until when nothing is advised and nothing expected: it rests or is frozen."""
    limits: dict[str, float] = field(default_factory=dict)
    barred: set[str] = field(default_factory=set)
    """Modes that it refused or failed to take."""
    unproven: dict[str, float] = field(default_factory=dict)
    """Property → what it says it does since it was advised, and nobody has measured."""
    asked: Target | None = None
    """What it was last advised to do, whatever became of that: who does it late still does it on advice."""
    relax_at: float | None = None
    """When it is to be told to fall back."""
    relaxed: list[Open] = field(default_factory=list)
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
        self.open = Open(id=f"{profile.id}#{number}", target=target, number=number, since=now)
        return _message(self.open, "raise", profile, now + ANSWER)

    def send_again(self, profile: Profile, now: float, number: int) -> Advice:
        assert self.open is not None
        self.open = replace(self.open, number=number, since=now, repeated=True)
        return _message(self.open, "raise", profile, now + ANSWER)

    def relax(self, profile: Profile, target: Target, now: float, number: int) -> Advice:
        """Advise to fall back, which nobody waits for."""
        self.asked, self.relax_at, self.last = target, None, now
        advice = Open(id=f"{profile.id}#{number}", target=target, number=number, since=now)
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
        return {
            "open": None if self.open is None else _open_as_json(self.open),
            "last": self.last,
            "failures": self.failures,
            "until": self.until,
            "limits": dict(self.limits),
            "barred": sorted(self.barred),
            "unproven": dict(self.unproven),
            "asked": None if self.asked is None else target_as_json(self.asked),
            "relax_at": self.relax_at,
            "relaxed": [_open_as_json(each) for each in self.relaxed],
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Course:
        given = dict(value)
        given["open"] = None if value["open"] is None else _open_from_json(value["open"])
        given["barred"] = set(value["barred"])
        given["asked"] = None if value["asked"] is None else target_from_json(value["asked"])
        given["relaxed"] = [_open_from_json(each) for each in value.get("relaxed", ())]
        return cls(**given)


def _without(advice: Open, properties: Collection[str], *, mode: bool) -> Open:
    """What is left of an advice, apart from some of it."""
    values = {id: value for id, value in advice.target.values.items() if id not in properties}
    return replace(advice, target=Target(values=MappingProxyType(values), mode="" if mode else advice.target.mode))


def _suffices(able: Mapping[str, float], target: Target, profile: Profile) -> bool:
    about = {id: each.about for id, each in profile.capabilities.items()}
    return all(
        id in able and about[id].at_least(able[id], wanted) for id, wanted in target.values.items() if id in about
    )


def _open_as_json(advice: Open) -> dict[str, Any]:
    plain = {name: getattr(advice, name) for name in ("id", "number", "repeated", "status", "since", "mark")}
    return plain | {"target": target_as_json(advice.target)}


def _open_from_json(value: Mapping[str, Any]) -> Open:
    return Open(**{**value, "target": target_from_json(value["target"])})


def _message(advice: Open, kind: Kind, profile: Profile, deadline: float | None) -> Advice:
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
