"""When measured values take the place of declared ones, and the effective profile that matching sees.

`Correction` and `effective_profile` make the profile; `Estimate` decides for one profile which values are effective.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.lang.records import replace
from situ.quality.match.satisfaction import capability_of
from situ.quality.measurement.panes import LENGTH, LONGEST, MINUTE, WINDOW, Pane, PaneStore, measure_window, pane_of
from situ.quality.model.declarations import BUILT_IN, Capability, Mode, Profile, QualityProperty

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Effective profiles. Measured values take the place of declared ones, and ranges are widened to hold them. What cannot
# be had is not in reach: a property that no action improves, a value that the publisher said or showed it cannot do,
# and anything at all of a publisher that does not follow advice. The result is a profile like any other.


def _nothing() -> Mapping[str, float]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """What is known of a profile besides what it declares."""

    measured: Mapping[str, float] = field(default_factory=_nothing)
    """Property → the value that holds instead of the declared one."""
    added: Mapping[str, QualityProperty] = field(default_factory=lambda: MappingProxyType({}))
    """Measured properties that no publisher declares, as the middleware alone determines them."""
    limits: Mapping[str, float] = field(default_factory=_nothing)
    """Property → the best that can be had after all."""
    barred: frozenset[str] = frozenset()
    """Modes that cannot be had after all."""
    frozen: bool = False
    """Nothing else than what is can be had."""


def effective_profile(
    profile: Profile, correction: Correction, improvable: Callable[[QualityProperty], bool]
) -> Profile:
    """A profile as it is to be matched. ``improvable``: whether some action gets better values of a property."""
    capabilities = {
        id: _capability(id, each, correction, improvable(each.about)) for id, each in profile.capabilities.items()
    }
    for id, about in correction.added.items():
        if id not in profile.properties and id in correction.measured:
            value = correction.measured[id]
            capabilities[id] = Capability(about=about, lb=value, ub=value, cv=value)
    modes = tuple(_mode(each, profile, correction) for each in profile.modes if _is_open(each, profile, correction))
    if capabilities == profile.capabilities and modes == profile.modes:
        return profile
    return replace(profile, capabilities=MappingProxyType(capabilities), modes=modes)


def _capability(id: str, capability: Capability, correction: Correction, improvable: bool) -> Capability:
    about = capability.about
    cv = correction.measured.get(id, capability.cv)
    best = about.better(capability.best, cv)
    if id in correction.limits:
        best = about.better(about.worse(best, correction.limits[id]), cv)
    if correction.frozen or not improvable:
        best = cv
    worst = about.worse(capability.worst, cv)
    lb, ub = (worst, best) if about.maximise else (best, worst)
    return replace(capability, lb=lb, ub=ub, cv=cv)


def _is_open(mode: Mode, profile: Profile, correction: Correction) -> bool:
    return mode.name == profile.mode or not (correction.frozen or mode.name in correction.barred)


def _mode(mode: Mode, profile: Profile, correction: Correction) -> Mode:
    if mode.name != profile.mode or not mode.values.keys() & correction.measured.keys():
        return mode
    values = {id: correction.measured.get(id, value) for id, value in mode.values.items()}
    return replace(mode, values=MappingProxyType(values))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The estimator. An effective value moves only when the measured one is off by more than a tenth in two windows in a
# row, so small fluctuations move nothing; or at once, when a publisher falls silent for three times as long as it
# should. Windows slide, and those in a row end a minute apart with none between that says otherwise. When measured and
# declared values agree for five of them, the declaration rules again. Declared, measured and effective values are all
# kept.

TOLERANCE = 0.1
MOVES_AFTER = WINDOW
"""From the end of the first window that is off to that of the second."""
RETURNS_AFTER = 4 * WINDOW
SILENT_GAPS = 3
ADDED: Mapping[str, QualityProperty] = {"latency": BUILT_IN["latency"]}
"""What no publisher declares, as the middleware alone determines it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueShift:
    """An effective value became another."""

    property: str
    before: float | None
    after: float
    worse: bool
    """It is a violation: less is delivered than was declared or measured before."""


@dataclass(slots=True)
class Estimate:
    """Of one profile."""

    since: int | None = None
    """Windows begin here or later, in µs of event time; None: with what is measured first."""
    last: int | None = None
    """The latest event."""
    measured: dict[str, float] = field(default_factory=dict)
    """As the last window has it."""
    corrected: dict[str, float] = field(default_factory=dict)
    """What holds instead of what is declared."""
    gap: int | None = None
    """The longest between two events in the last window."""
    confirmed: set[str] = field(default_factory=set)
    """Properties whose last window agreed with what holds."""
    judged: int | None = None
    """The end of the last window."""
    silent: bool = False
    _off: dict[str, int] = field(default_factory=dict)
    """Property → the end of the first window in a row that was off."""
    _agreed: dict[str, int] = field(default_factory=dict)
    """Property → the end of the first window in a row that agreed with the declaration."""

    def correction(self) -> Correction:
        return Correction(measured=dict(self.corrected), added=ADDED)

    def violations(self, profile: Profile) -> set[str]:
        """Properties of which less holds than is declared."""
        return {
            id
            for id, value in self.corrected.items()
            if (declared := _value(profile, id)) is not None and not _about(profile, id).at_least(value, declared)
        }

    def restart(self, before: Profile, after: Profile, mark: int | None) -> None:
        """The publisher declares other values: what was measured of these before says nothing about them."""
        changed = {id for id in after.properties | before.properties if _value(before, id) != _value(after, id)}
        for id in changed:
            for each in (self.corrected, self._off, self._agreed, self.measured):
                each.pop(id, None)
            self.confirmed.discard(id)
        if changed:
            self.since = None if mark is None else _next_pane(mark)
            self.silent = False

    def hear(self, panes: Iterable[Pane]) -> None:
        """Events arrived."""
        for pane in sorted(panes, key=lambda each: each.start):
            if pane.last is None:
                continue
            if self.silent and (self.last is None or pane.last > self.last):
                # The silence is over: what comes now is measured without it.
                self.since, self.silent = None, False
            if self.since is None:
                # Of the first pane nobody knows how much of it was measured.
                self.since = pane.start + LENGTH
            self.last = pane.last if self.last is None else max(self.last, pane.last)

    def observe(self, profile: Profile, gathered: PaneStore, until: int) -> tuple[ValueShift, ...]:
        """Look at all windows that end up to ``until`` and were not looked at; tell what moved, in order."""
        if self.since is None:
            self.since = _next_pane(until)
        moves: list[ValueShift] = []
        earliest = until - LONGEST if self.judged is None else max(self.judged + LENGTH, until - LONGEST)
        for end in range(max(pane_of(earliest), self.since + WINDOW), pane_of(until) + 1, LENGTH):
            window = gathered.window(profile.id, self.since, end)
            if window is None:
                continue
            self.judged, self.gap = end, window.gap
            self.measured = measure_window(window, sorted(profile.properties | ADDED.keys()), _value(profile, "rate"))
            for id, value in self.measured.items():
                # Of a silence only its length tells anything.
                if not (self.silent and id == "rate"):
                    moves += self._judge(profile, id, value, end)
        moves += self._listen(profile, until)
        return tuple(moves)

    def _judge(self, profile: Profile, id: str, value: float, end: int) -> list[ValueShift]:
        about = _about(profile, id)
        declared = _value(profile, id)
        holds = self.corrected.get(id, declared)
        if holds is None:
            self.corrected[id] = value
            return [ValueShift(property=id, before=None, after=value, worse=False)]
        moves = []
        if agrees(about, value, holds):
            self._off.pop(id, None)
            self.confirmed.add(id)
        else:
            self.confirmed.discard(id)
            if end - self._off.setdefault(id, end) >= MOVES_AFTER:
                moves.append(self._move(about, id, holds, value, blame=declared is not None))
        if id in self.corrected and declared is not None:
            if not agrees(about, value, declared):
                self._agreed.pop(id, None)
            elif end - self._agreed.setdefault(id, end) >= RETURNS_AFTER:
                moves.append(ValueShift(property=id, before=self.corrected.pop(id), after=declared, worse=False))
                self._agreed.pop(id, None)
                self._off.pop(id, None)
        return moves

    def _move(self, about: QualityProperty, id: str, before: float, after: float, *, blame: bool) -> ValueShift:
        self.corrected[id] = after
        self._off.pop(id, None)
        return ValueShift(property=id, before=before, after=after, worse=blame and not about.at_least(after, before))

    def _listen(self, profile: Profile, until: int) -> list[ValueShift]:
        """Whether the publisher is silent for longer than it should be."""
        assert self.since is not None
        holds = self.corrected.get("rate", _value(profile, "rate"))
        quiet = until - max(self.since, self.last if self.last is not None else self.since)
        if not holds or not math.isfinite(holds) or quiet < SILENT_GAPS * MINUTE / holds:
            return []
        self.silent = True
        value = 0.0 if quiet >= LONGEST else MINUTE / quiet
        about = _about(profile, "rate")
        self._agreed.pop("rate", None)
        return [] if agrees(about, value, holds) else [self._move(about, "rate", holds, value, blame=True)]

    # ── its form ──────────────────────────────────────────────────────────────────────────────────

    def as_json(self) -> dict[str, Any]:
        """What outlives a restart: what holds. Windows begin afresh, since nobody measures while it lasts."""
        return {"corrected": dict(self.corrected), "silent": self.silent}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Estimate:
        return cls(corrected=dict(value["corrected"]), silent=value["silent"])


def agrees(about: QualityProperty, value: float, with_: float) -> bool:
    """Whether two values are the same but for trembling."""
    if about.levels:
        return value == with_
    return value == with_ or abs(value - with_) <= TOLERANCE * abs(with_)


def _value(profile: Profile, id: str) -> float | None:
    """What is declared."""
    found = capability_of(profile, id)
    return None if found is None else found.cv


def _about(profile: Profile, id: str) -> QualityProperty:
    found = capability_of(profile, id)
    return ADDED[id] if found is None else found.about


def _next_pane(time: int) -> int:
    return -(-time // LENGTH) * LENGTH
