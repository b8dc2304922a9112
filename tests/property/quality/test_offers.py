"""The frontier of offers: whoever knows nothing else finds the same states and the same least extra costs."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable

import pytest

from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.costs import ConstantCost, Cost, read_formula
from situ.quality.model.declarations import Capability, Expectation, Mode, Need, Profile, QualityProperty
from situ.quality.overlay.offers import beats, frontier, least_extra_cost, truncated
from tests.offered import PROPERTIES, make_expectation, make_profile
from tests.volume import cases

NORMAL, LONG = 150, 10_000


def ids(profiles: Iterable[Profile]) -> set[str]:
    return {each.id for each in profiles}


def least(expectation: Expectation, profiles: Iterable[Profile]) -> float:
    return min((least_extra_cost(expectation, each) for each in profiles), default=math.inf)


@cases(NORMAL, LONG)
def test_the_frontier_has_all_states_and_all_least_costs(cases: int) -> None:
    states: Counter[Satisfaction] = Counter()
    left_out = 0
    for seed in range(cases):
        dice = random.Random(seed)
        properties = PROPERTIES[: dice.randint(1, 3)]
        profiles = [make_profile(dice, f"p{number}", properties=properties) for number in range(dice.randint(0, 10))]
        offers = frontier(profiles)
        few = truncated(offers, most=dice.choice((0, 1)))
        left_out += len(profiles) - len(offers)
        assert ids(few) <= ids(offers) <= ids(profiles)
        for number in range(12):
            expectation = make_expectation(dice, f"x{number}", properties=properties)
            state = match(expectation, profiles).state
            assert match(expectation, offers).state is state, seed
            assert match(expectation, few).state is state, seed
            if state is not Satisfaction.SATISFIED:
                assert least(expectation, offers) == pytest.approx(least(expectation, profiles), abs=1e-9), seed
            states[state] += 1
    assert left_out > cases
    assert min(states.values()) > cases / 2, states


@cases(NORMAL, LONG)
def test_whoever_is_left_out_is_beaten_by_somebody_who_is_not(cases: int) -> None:
    for seed in range(cases):
        dice = random.Random(seed)
        properties = PROPERTIES[: dice.randint(1, 2)]
        profiles = [make_profile(dice, f"p{number}", properties=properties) for number in range(8)]
        offers = frontier(profiles)
        assert all(any(beats(offer, each) for offer in offers) for each in profiles), seed
        assert not any(beats(one, other) for one in offers for other in offers if one is not other), seed
        shuffled = dice.sample(profiles, len(profiles))
        assert frontier(shuffled) == offers


RATE = QualityProperty(name="rate", lo=0)


def rate(name: str, cv: float, ub: float, cost: Cost) -> Profile:
    return Profile(
        publisher=name, type="t", capabilities={"rate": Capability(about=RATE, lb=0, ub=ub, cv=cv, cost=cost)}
    )


def test_both_skylines_hold_the_dear_one_alone_and_the_frontier_holds_both() -> None:
    dear = rate("A", 2, 60, read_formula("100 * x"))
    cheap = rate("B", 2, 30, read_formula("x"))
    assert frontier([dear, cheap]) == (dear, cheap)
    assert truncated((dear, cheap), most=0) == (dear,)
    five = Expectation(id="x", subscription="x/s", needs={"rate": Need(about=RATE, lb=5, ub=math.inf)})
    assert [least_extra_cost(five, each) for each in (dear, cheap)] == [300, 3]


def test_different_formulas_are_not_compared_and_equal_ones_are() -> None:
    one, other = rate("A", 5, 60, read_formula("2 * x")), rate("B", 2, 30, read_formula("3 * x"))
    assert not beats(one, other)
    same = rate("C", 5, 60, read_formula("3 * x"))
    assert beats(same, other)
    assert frontier([other, same]) == (same,)


def test_whoever_has_now_what_another_could_get_beats_it_whatever_the_formulas() -> None:
    assert beats(rate("A", 40, 60, read_formula("2 * x")), rate("B", 2, 30, read_formula("3 * x")))


def test_a_mode_that_is_better_and_dearer_beats_nothing() -> None:
    def fast(name: str, rate: float, cost: float) -> Profile:
        modes = (Mode(name="slow", values={"rate": 1}, cost=1), Mode(name="fast", values={"rate": rate}, cost=cost))
        return Profile(publisher=name, type="t", modes=modes, mode="slow", moded={"rate": RATE})

    assert not beats(fast("A", 60, 5), fast("B", 30, 4))
    assert beats(fast("A", 60, 4), fast("B", 30, 4))


def test_of_offers_that_are_the_same_the_first_one_stays() -> None:
    twins = [rate(name, 2, 30, ConstantCost(1)) for name in ("b", "a", "c")]
    assert [each.publisher for each in frontier(twins)] == ["a"]
