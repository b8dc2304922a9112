"""Choices: to what each profile could be moved, and which expectations that would meet.

Sets of expectations are bits of a number: the first one that is decided on is bit 0. A free property need only be at
its current value or at the cheapest value good enough for some expectation; whatever lies between serves nobody more.
Of all combinations those are left out that another one beats: at least as many expectations, at no more cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from situ.quality.actions import Actions
from situ.quality.expectation import Expectation
from situ.quality.operating import cheapest, terms_of_mode, terms_of_value
from situ.quality.problem import Problem, Target, point_at
from situ.quality.profile import Capability, Profile

MOST_COMBINED = 200_000
"""Combinations of values of one profile that are gone through."""
_MOST_COMPARED = 4096
"""Options that are compared with each other; of more, only those that meet exactly the same."""


@dataclass(frozen=True, slots=True)
class Level:
    """A value of a free property, or a mode, and what it does by itself."""

    met: int
    """Expectations that it is good enough for, those that do not ask for it among them."""
    cost: Fraction
    moved: int
    """How many properties are then different."""
    rank: float
    """Modes in their order, values from worse to better: of equal plans that with the lower ranks is taken."""
    values: Mapping[str, float] = field(default_factory=dict)
    mode: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """To what a profile could be moved as a whole, or the part of it that some of its properties make."""

    met: int
    cost: Fraction
    moved: int
    taken: tuple[Level, ...]

    @property
    def target(self) -> Target:
        values = {id: value for each in self.taken for id, value in each.values.items()}
        return Target(values=values, mode=next((each.mode for each in self.taken if each.mode), ""))

    @property
    def changes(self) -> bool:
        return any(each.values or each.mode for each in self.taken)

    @property
    def ranks(self) -> tuple[float, ...]:
        return tuple(each.rank for each in self.taken)

    @property
    def order(self) -> tuple[Fraction, bool, int, tuple[float, ...]]:
        """Of options that meet the same, the least one is taken."""
        return (self.cost, self.changes, self.moved, self.ranks)

    def with_level(self, level: Level) -> Option:
        return Option(self.met & level.met, self.cost + level.cost, self.moved + level.moved, (*self.taken, level))


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What there is to choose for one profile."""

    profile: Profile
    now: int
    """Expectations it meets as it is."""
    able: int
    """Those that it meets by some option, ``now`` among them."""
    firm: int
    """Those that it meets whatever is chosen."""
    levels: tuple[tuple[Level, ...], ...]
    """By properties; the last ones are the modes, if there are any."""

    def options(self) -> tuple[Option, ...] | None:
        """All that no other one beats, cheapest first; None, if there are too many to go through."""
        found: tuple[Option, ...] = (joined(self, ()),)
        for levels in self.levels:
            if len(found) * len(levels) > MOST_COMBINED:
                return None
            found = _unbeaten([each.with_level(level) for each in found for level in levels])
        return found

    def single_options(self) -> tuple[Option, ...]:
        """For each expectation the cheapest one that meets it; and the cheapest of all."""
        wanted = [0, *(1 << bit for bit in bits(self.able))]
        return _unbeaten([each for one in wanted if (each := self._least_for(one)) is not None])

    def staying(self) -> Option:
        return Option(self.now, Fraction(0), 0, ())

    def _least_for(self, wanted: int) -> Option | None:
        fit = [[each for each in levels if each.met & wanted == wanted] for levels in self.levels]
        if not all(fit):
            return None
        return joined(self, [min(each, key=lambda level: (level.cost, level.moved, level.rank)) for each in fit])


def choices_of(problem: Problem) -> list[Choices]:
    """Of all profiles that are relevant to somebody, in the order of their ids."""
    subscribed: dict[str, list[tuple[int, Expectation]]] = {}
    for number, each in enumerate(problem.expectations):
        for pool in problem.relevant.get(each.subscription, ()):
            subscribed.setdefault(pool, []).append((number, each))
    found = []
    for id in sorted(problem.profiles):
        asking = subscribed.get(problem.pools.get(id, ""), [])
        if asking:
            found.append(_choices(problem.profiles[id], asking, problem.actions))
    return found


def joined(choices: Choices, levels: Iterable[Level]) -> Option:
    """One level of each property together."""
    option = Option(choices.able, Fraction(0), 0, ())
    for each in levels:
        option = option.with_level(each)
    return option


def bits(mask: int) -> Iterator[int]:
    """The numbers of the bits that are set."""
    while mask:
        lowest = mask & -mask
        yield lowest.bit_length() - 1
        mask ^= lowest


def _choices(profile: Profile, asking: Sequence[tuple[int, Expectation]], actions: Actions) -> Choices:
    properties = profile.properties
    could = [pair for pair in asking if properties >= pair[1].needs.keys()]
    reach = profile.reach()
    able = [pair for pair in could if any(pair[1].is_met_by(point) for point in reach)]
    levels = [_free_levels(id, each, able, actions) for id, each in sorted(profile.capabilities.items())]
    if profile.modes:
        levels.append(_modes(profile, able, actions))
    current = profile.current()
    everywhere = [point_at(profile, Target(mode=each.name)) for each in profile.modes] or [current]
    return Choices(
        profile=profile,
        now=_mask(number for number, each in able if each.is_met_by(current)),
        able=_mask(number for number, _ in able),
        firm=_mask(number for number, each in able if all(each.is_met_by(point) for point in everywhere)),
        levels=tuple(levels),
    )


def _free_levels(
    id: str, capability: Capability, asking: Sequence[tuple[int, Expectation]], actions: Actions
) -> tuple[Level, ...]:
    about = capability.about
    now = about.goodness(capability.cv)
    asked = {number: each.needs[id].asked for number, each in asking if id in each.needs}
    floors = {about.value(each) for each in asked.values() if each > now}
    values = {cheapest(capability, floor, actions) for floor in (capability.cv, *floors)}
    found = []
    for value in sorted(values, key=about.goodness):
        good = about.goodness(value)
        stays = value == capability.cv
        found.append(
            Level(
                met=_mask(number for number, _ in asking if asked.get(number, -math.inf) <= good),
                cost=Fraction(0) if stays else _exactly(terms_of_value(capability, value, actions)),
                moved=0 if stays else 1,
                rank=good,
                values={} if stays else {id: value},
            )
        )
    return tuple(found)


def _modes(profile: Profile, asking: Sequence[tuple[int, Expectation]], actions: Actions) -> tuple[Level, ...]:
    found = []
    before = profile.mode_named(profile.mode)
    for place, mode in enumerate(profile.modes):
        point = {id: each.goodness(mode.values[id]) for id, each in profile.moded.items()}
        stays = mode.name == profile.mode
        fit = (
            number
            for number, each in asking
            if all(need.asked <= point.get(id, math.inf) for id, need in each.needs.items())
        )
        found.append(
            Level(
                met=_mask(fit),
                cost=Fraction(0) if stays else _exactly(terms_of_mode(profile, mode.name, actions)),
                moved=sum(mode.values[id] != before.values[id] for id in profile.moded),
                rank=place,
                mode="" if stays else mode.name,
            )
        )
    return tuple(found)


def _mask(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _exactly(numbers: Sequence[float]) -> Fraction:
    return sum(map(Fraction, numbers), Fraction(0))


def _unbeaten(options: Sequence[Option]) -> tuple[Option, ...]:
    best: dict[int, Option] = {}
    for each in options:
        known = best.get(each.met)
        if known is None or each.order < known.order:
            best[each.met] = each
    in_order = sorted(best.values(), key=lambda each: each.order)
    if len(in_order) > _MOST_COMPARED:
        return tuple(in_order)
    found: list[Option] = []
    masks: list[int] = []
    for each in in_order:
        met = each.met
        if not any(met & mask == met for mask in masks):
            found.append(each)
            masks.append(met)
    return tuple(found)
