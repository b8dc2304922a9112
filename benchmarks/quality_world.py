"""A zone's expectations and profiles for measuring negotiation: types, uniform or by Zipf's law, four properties."""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from situ.lang.records import replace
from situ.quality.model.costs import PiecewiseCost
from situ.quality.model.declarations import BUILT_IN, Capability, Expectation, Mode, Need, Profile, QualityProperty

EXPECTATIONS, PROFILES, TYPES = 100_000, 10_000, 1_000
PROPERTIES = tuple(BUILT_IN[name] for name in ("rate", "confidence", "freshness", "completeness"))
_RANGES = {"rate": (1.0, 60.0), "confidence": (40.0, 99.0), "freshness": (1.0, 60.0), "completeness": (0.5, 1.0)}
_MODED = ("rate", "confidence")


@dataclass(frozen=True, kw_only=True)
class World:
    """Who expects what of whom; the pool of a profile is its type."""

    profiles: list[tuple[Profile, str]]
    expectations: list[tuple[Expectation, frozenset[str]]]

    @cached_property
    def pools(self) -> dict[str, str]:
        return {profile.id: pool for profile, pool in self.profiles}

    @cached_property
    def relevant(self) -> dict[str, frozenset[str]]:
        return {each.subscription: pools for each, pools in self.expectations}


def make_world(
    expectations: int = EXPECTATIONS,
    profiles: int = PROFILES,
    types: int = TYPES,
    *,
    zipf: bool = False,
    moded: float = 0.1,
    seed: int = 7,
) -> World:
    """``moded`` is the share of profiles that have modes."""
    dice = random.Random(seed)
    chosen = _types(dice, types, zipf=zipf)
    offered = [make_profile(dice, f"p{number}", next(chosen), moded=moded) for number in range(profiles)]
    return World(
        profiles=[(each, each.type) for each in offered],
        expectations=list(itertools.islice(_asked(dice, chosen), expectations)),
    )


def make_profile(dice: random.Random, publisher: str, type: str, *, moded: float = 0.1) -> Profile:
    """Ranges with costs that rise towards better; of some, rate and confidence depend on each other."""
    return _made(dice, publisher, type, modes=dice.random() < moded)


def _made(dice: random.Random, publisher: str, type: str, *, modes: bool) -> Profile:
    moded = {each.id: each for each in PROPERTIES if each.id in _MODED} if modes else {}
    free = {each.id: _capability(dice, each) for each in PROPERTIES if each.id not in moded}
    listed = tuple(
        Mode(name=f"m{number}", values={id: _value(dice, id) for id in moded}, cost=dice.uniform(0, 5))
        for number in range(3 if moded else 0)
    )
    mode = listed[0].name if listed else ""
    return Profile(publisher=publisher, type=type, capabilities=free, modes=listed, mode=mode, moded=moded)


def changed(dice: random.Random, profile: Profile) -> Profile:
    """The same publisher, at other values, within other ranges."""
    made = _made(dice, profile.publisher, profile.type, modes=bool(profile.modes))
    return replace(made, version=profile.version + 1)


def make_expectation(dice: random.Random, id: str, subscription: str, order: int) -> Expectation:
    """One to four properties, floors mostly in the better half of what can be had."""
    asked = dice.sample(PROPERTIES, dice.choice((1, 2, 2, 3, 3, 4)))
    return Expectation(
        id=id,
        subscription=subscription,
        needs={each.id: _need(dice, each) for each in asked},
        utility=float(dice.randint(1, 10)),
        order=order,
    )


def _types(dice: random.Random, count: int, *, zipf: bool) -> Iterator[str]:
    shares = list(itertools.accumulate(1 / place if zipf else 1.0 for place in range(1, count + 1)))
    while True:
        yield f"type{bisect.bisect_left(shares, dice.random() * shares[-1])}"


def _asked(dice: random.Random, types: Iterator[str]) -> Iterator[tuple[Expectation, frozenset[str]]]:
    """Every fourth subscription has two alternatives."""
    order = itertools.count()
    for number in itertools.count():
        pools = frozenset({next(types)})
        for _ in range(2 if number % 4 == 0 else 1):
            place = next(order)
            yield make_expectation(dice, f"c{number}/x{place}", f"c{number}/s", place), pools


def _value(dice: random.Random, id: str) -> float:
    return dice.uniform(*_RANGES[id])


def _capability(dice: random.Random, about: QualityProperty) -> Capability:
    lb, cv, ub = sorted(_value(dice, about.id) for _ in range(3))
    ends = sorted((dice.uniform(0, 2), dice.uniform(2, 10)), reverse=not about.maximise)
    return Capability(about=about, lb=lb, ub=ub, cv=cv, cost=PiecewiseCost(((lb, ends[0]), (ub, ends[1]))))


def _need(dice: random.Random, about: QualityProperty) -> Need:
    worse, better = _RANGES[about.id] if about.maximise else _RANGES[about.id][::-1]
    floor = worse + (better - worse) * dice.uniform(0.3, 1.0)
    goal = floor + (better - floor) * dice.random()
    lb, ub = sorted((floor, goal))
    return Need(about=about, lb=lb, ub=ub)
