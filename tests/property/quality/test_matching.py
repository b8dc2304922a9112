"""Matching says what trying every value says, whatever the profiles, and what is better never stands worse.

Some hundred cases in every run, twenty thousand in `make soak`.
"""

from __future__ import annotations

import math
import random
from collections import Counter

from situ.lang.records import replace
from situ.quality.match.satisfaction import (
    Satisfaction,
    capability_of,
    check,
    closest,
    is_dominated,
    match,
    reasons,
    relative_shortfall,
)
from situ.quality.model.declarations import Capability, Expectation, Need, Profile, QualityProperty
from tests.oracles.quality_match import accepts, is_covered, is_fully_covered, is_guaranteed, match_by_enumeration
from tests.quality_worlds import PROPERTIES, finite, make_need, matched, span, value
from tests.volume import cases

NORMAL, LONG = 750, 20_000


@cases(NORMAL, LONG)
def test_matching_says_what_trying_every_value_says(cases: int) -> None:
    seen: Counter[Satisfaction] = Counter()
    for world in matched(cases):
        found = match(world.expectation, world.profiles)
        assert found == match_by_enumeration(world.expectation, world.profiles), world.seed
        seen[found.state] += 1
    assert min(seen[state] for state in Satisfaction) > cases / 25, seen


def grid(about: QualityProperty, lb: float, ub: float) -> list[float]:
    """Every value of a range that a generated bound can be, and those between."""
    steps = [position / 4 for position in range(25)] if not about.levels else [0.0, 1.0, 2.0, 3.0]
    return sorted({lb, ub, *(each for each in steps if lb <= each <= ub)})


@cases(NORMAL, LONG)
def test_closed_forms_say_what_single_values_say(cases: int) -> None:
    seen: Counter[tuple[bool, ...]] = Counter()
    for seed in range(cases):
        dice = random.Random(seed)
        about = dice.choice(PROPERTIES)
        need, (lb, ub) = make_need(dice, about), span(dice, about)
        values = grid(about, lb, ub)
        cv = dice.choice(values)
        capability = Capability(about=about, lb=lb, ub=ub, cv=cv)
        wanted = grid(about, need.lb, need.ub)
        covered = any(accepts(need, each) for each in values)
        found = (
            is_guaranteed(need, capability),
            is_dominated(need, capability),
            is_covered(need, capability),
            is_fully_covered(need, capability),
        )
        assert found == (
            all(accepts(need, each) for each in values),
            accepts(need, cv),
            covered,
            all(any(about.at_least(each, target) for each in values) for target in wanted),
        ), seed
        guaranteed, dominated, is_cover, full = found
        assert guaranteed <= dominated <= is_cover, seed
        assert full <= is_cover, seed
        seen[found] += 1
    assert len(seen) >= 6, seen


@cases(NORMAL // 2, LONG)
def test_the_order_of_profiles_does_not_matter(cases: int) -> None:
    for world in matched(cases, start=100_000):
        profiles = list(world.profiles)
        before = match(world.expectation, profiles), reasons(world.expectation, profiles)
        random.Random(world.seed).shuffle(profiles)
        assert (match(world.expectation, profiles), reasons(world.expectation, profiles)) == before, world.seed


def improved(dice: random.Random, profile: Profile) -> Profile:
    """The profile with better current values and wider ranges."""
    better = {id: more_of(dice, each) for id, each in profile.capabilities.items()}
    return replace(profile, capabilities=better)


def more_of(dice: random.Random, capability: Capability) -> Capability:
    about = capability.about
    cv = about.better(capability.cv, value(dice, about)) if dice.random() < 0.5 else capability.cv
    lb, ub = min(capability.lb, cv, value(dice, about)), max(capability.ub, cv, value(dice, about))
    return replace(capability, lb=lb, ub=ub, cv=cv)


def stricter(dice: random.Random, need: Need) -> Need:
    floor = need.about.better(need.floor, value(dice, need.about))
    ends = sorted((floor, need.about.better(need.goal, floor)))
    return replace(need, lb=ends[0], ub=ends[1])


@cases(NORMAL // 2, LONG)
def test_more_is_never_worse_and_asking_more_is_never_better(cases: int) -> None:
    raised = lowered = 0
    for world in matched(cases, start=200_000):
        dice = random.Random(world.seed)
        before = match(world.expectation, world.profiles).state
        after = match(world.expectation, [improved(dice, each) for each in world.profiles]).state
        assert after >= before, world.seed
        raised += after > before
        needs = {id: stricter(dice, need) for id, need in world.expectation.needs.items()}
        strict = match(replace(world.expectation, needs=needs), world.profiles).state
        assert strict <= before, world.seed
        lowered += strict < before
    assert raised > cases / 50
    assert lowered > cases / 50


@cases(NORMAL // 2, LONG)
def test_reasons_are_those_of_a_closest_profile(cases: int) -> None:
    told = 0
    for world in matched(cases, start=300_000):
        expectation, profiles = world.expectation, world.profiles
        short = [each for each in profiles if check(expectation, each) is not Satisfaction.SATISFIED]
        nearest = closest(expectation, profiles)
        found = reasons(expectation, profiles)
        if not short:
            assert nearest is None
            assert [each.about.id for each in found] == sorted(expectation.needs)
            continue
        ranked = sorted(short, key=lambda each: rank(expectation, each))
        assert nearest == ranked[0], world.seed
        for each in found:
            capability = capability_of(ranked[0], each.about.id)
            expected = (None, None) if capability is None else (capability.cv, capability.best)
            assert (each.current, each.reachable) == expected, world.seed
            assert capability is None or not accepts(expectation.needs[each.about.id], capability.cv)
        told += 1
    assert told > cases / 3


def rank(expectation: Expectation, profile: Profile) -> tuple[int, int, float, str]:
    """Straight from the words: fewest missing, fewest missing or not dominated, least sum of shortfalls, id."""
    held = {id: capability_of(profile, id) for id in expectation.needs}
    missing = [id for id, each in held.items() if each is None]
    short = {
        id: each.cv for id, each in held.items() if each is not None and not accepts(expectation.needs[id], each.cv)
    }
    sizes = [relative_shortfall(expectation.needs[id], cv) for id, cv in sorted(short.items())]
    return len(missing), len(missing) + len(short), math.fsum(sizes), profile.id


def test_shortfalls_are_shares_of_the_scale() -> None:
    dice = random.Random(7)
    for about in PROPERTIES:
        for _ in range(200):
            need, at = make_need(dice, about), finite(dice, about)
            found = relative_shortfall(need, at)
            assert (found == 0) == accepts(need, at)
            assert 0 <= found <= 2, "of what has a sign, at most twice the larger"
