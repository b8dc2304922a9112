"""Hops keep what is better better, never flatter, and what is asked behind a link is had by asking for it before."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction, check
from situ.quality.model.allocation_problem import Target
from situ.quality.model.costs import ConstantCost, PiecewiseCost, read_formula
from situ.quality.model.declarations import Capability, Expectation, Need, Profile, QualityProperty
from situ.quality.overlay.offers import (
    extra_cost,
    least_extra_cost,
    profile_after_link,
    rounded,
    target_before_link,
    value_after_link,
    value_before_link,
)
from tests.offered import PROPERTIES, make_capability, make_expectation, make_profile

SHARE = QualityProperty(name="share", lo=0, hi=1, hop="multiply")
DELAY = QualityProperty(name="delay", lo=0, maximise=False, hop="add")
LIMIT = QualityProperty(name="limit", lo=0, hop="worst")
SLACK = QualityProperty(name="slack", lo=0, maximise=False, hop="worst")
VALUES = st.floats(min_value=0, max_value=1e9, allow_subnormal=False)
FIGURES = st.floats(min_value=0.001, max_value=1)


def figures_of(dice: random.Random) -> dict[str, float]:
    """Figures as a link may have them, for some properties."""
    made = {
        "rate": float(dice.randint(2, 10)),
        "latency": dice.choice((0.0, 1.0, 2.5)),
        "share": dice.choice((1, 0.5, 0)),
    }
    return {id: value for id, value in made.items() if dice.random() < 0.7}


def about_of(dice: random.Random) -> QualityProperty:
    return dice.choice(PROPERTIES[:3])


@given(st.sampled_from([SHARE, DELAY, LIMIT, SLACK]), FIGURES, VALUES, VALUES)
def test_whatever_is_at_least_as_good_stays_so(about: QualityProperty, figure: float, one: float, other: float) -> None:
    worse, better = sorted((one, other), key=about.goodness)
    assert about.at_least(value_after_link(about, figure, better), value_after_link(about, figure, worse))
    assert about.at_least(rounded(about, better), rounded(about, worse))


@given(st.sampled_from([SHARE, DELAY, LIMIT, SLACK]), st.sampled_from([None, 0.0, 0.05, 0.1, 3.0, 1e-9]), VALUES)
def test_rounding_never_flatters_and_takes_less_than_a_step(
    about: QualityProperty, quantum: float | None, value: float
) -> None:
    about = replace(about, quantum=quantum)
    found = rounded(about, value)
    assert about.at_least(value, found)
    assert rounded(about, found) == found
    step = quantum if quantum is not None else 10.0 ** (math.floor(math.log10(value)) - 1) if value else 0.0
    assert abs(found - value) <= step * (1 + 1e-9) + value * 1e-15


@pytest.mark.parametrize(
    ("about", "value", "expected"),
    [
        (LIMIT, 0.12, 0.12),
        (LIMIT, 12.99, 12),
        (LIMIT, 1234, 1200),
        (LIMIT, math.inf, math.inf),
        (DELAY, 12.01, 13),
        (DELAY, 0, 0),
        (replace(LIMIT, quantum=5), 14, 10),
        (replace(DELAY, quantum=5), 14, 15),
        (replace(DELAY, quantum=0), 14.123, 14.123),
        (QualityProperty(name="trust", levels=("a", "b"), lo=0, hi=1), 1, 1),
    ],
)
def test_values_are_rounded_towards_worse(about: QualityProperty, value: float, expected: float) -> None:
    assert rounded(about, value) == expected


@given(st.sampled_from([SHARE, DELAY, LIMIT, SLACK]), FIGURES, VALUES, VALUES, VALUES)
def test_what_is_asked_behind_a_link_is_had_by_what_is_asked_before_it(
    about: QualityProperty, figure: float, lb: float, ub: float, part: float
) -> None:
    lb, ub = sorted((lb, ub))
    capability = Capability(about=about, lb=lb, ub=ub, cv=about.worse(lb, ub))
    worst, best = (value_after_link(about, figure, each) for each in (capability.worst, capability.best))
    wanted = worst + (best - worst) * (part / 1e9)
    asked = value_before_link(capability, figure, wanted)
    if asked is None:
        assert not about.at_least(best, wanted)
        return
    assert lb <= asked <= ub
    assert about.at_least(value_after_link(about, figure, asked), wanted)
    if asked != capability.worst:
        less = asked - 1e-6 * max(1.0, abs(asked), wanted) * (1 if about.maximise else -1)
        assert not about.at_least(value_after_link(about, figure, less), wanted) or about.hop == "worst"


def test_what_does_not_get_through_a_link_cannot_be_asked_for() -> None:
    capability = Capability(about=LIMIT, lb=1, ub=60, cv=2)
    assert value_before_link(capability, 12, 12) == 12
    assert value_before_link(capability, 12, 12.5) is None
    assert value_before_link(Capability(about=SHARE, lb=0, ub=1, cv=0), 0.0, 0.0) == 0
    assert value_before_link(Capability(about=SHARE, lb=0, ub=1, cv=0), 0.0, 0.1) is None


def test_costs_behind_a_link_are_those_before_it() -> None:
    """The least extra cost of a value is that of the value which has to be asked for."""
    compared = 0
    for seed in range(3_000):
        dice = random.Random(seed)
        capability = make_capability(dice, about_of(dice))
        about, figure = capability.about, figures_of(dice).get(capability.about.id)
        if figure is None:
            continue
        profile = Profile(publisher="p", type="t", capabilities={about.id: capability})
        moved = profile_after_link(profile, {about.id: figure}).capabilities[about.id]
        assert (moved.lb, moved.cv, moved.ub) == tuple(
            value_after_link(about, figure, each) for each in (capability.lb, capability.cv, capability.ub)
        )
        for _ in range(6):
            wanted = dice.choice((moved.lb, moved.ub, moved.cv, dice.uniform(moved.lb, moved.ub)))
            if about.at_least(moved.cv, wanted):
                assert extra_cost(moved, wanted) == 0
                continue
            asked = value_before_link(capability, figure, wanted)
            assert asked is not None
            assert extra_cost(moved, wanted) == pytest.approx(extra_cost(capability, asked), abs=1e-9), seed
            compared += 1
    assert compared > 1_000


def test_formulas_are_moved_along() -> None:
    share = Capability(about=SHARE, lb=0, ub=1, cv=0.2, cost=read_formula("8 * x"))
    delay = Capability(about=DELAY, lb=1, ub=9, cv=9, cost=read_formula("20 - 2 * x"))
    both = Profile(publisher="p", type="t", capabilities={"share": share, "delay": delay})
    moved = profile_after_link(both, {"share": 0.5, "delay": 3.0})
    assert [(each.lb, each.cv, each.ub) for each in moved.capabilities.values()] == [(0, 0.1, 0.5), (4, 12, 12)]
    needs = {"share": Need(about=SHARE, lb=0.25, ub=1), "delay": Need(about=DELAY, lb=0, ub=5)}
    asking = Expectation(id="x", subscription="x/s", needs=needs)
    assert least_extra_cost(asking, moved) == pytest.approx(8 * (0.5 - 0.2) + 2 * (9 - 2))
    wanted = Target(values={"share": 0.25, "delay": 5})
    assert target_before_link(both, {"share": 0.5, "delay": 3.0}, wanted) == Target(values={"share": 0.5, "delay": 2})
    assert target_before_link(both, {"share": 0.5}, Target(values={"delay": 0.5})) is None
    assert target_before_link(both, {}, Target(mode="fast")) is None


def test_a_cost_that_falls_beyond_what_gets_through_is_the_one_that_is_paid() -> None:
    cost = PiecewiseCost(((0, 0), (10, 10), (20, 4)))
    capability = Capability(about=LIMIT, lb=0, ub=20, cv=1, cost=cost)
    moved = profile_after_link(Profile(publisher="p", type="t", capabilities={"limit": capability}), {"limit": 8})
    for wanted in (1.5, 3.0, 4.0, 5.0, 8.0):
        assert extra_cost(moved.capabilities["limit"], wanted) == pytest.approx(extra_cost(capability, wanted))


def test_whoever_meets_an_expectation_behind_two_links_meets_it_before_them() -> None:
    """Links make nothing better, and with rounding it is never better than without."""
    seen = dict.fromkeys(Satisfaction, 0)
    calm = tuple(replace(each, quantum=None if each.levels else 2.0) for each in PROPERTIES)
    for seed in range(1_000):
        dice = random.Random(seed)
        profile = make_profile(dice, "p", properties=calm)
        exact = _exactly(profile)
        links = [figures_of(dice), figures_of(dice)]
        behind, exactly = profile, exact
        for figures in links:
            behind, exactly = profile_after_link(behind, figures), profile_after_link(exactly, figures)
        for number in range(5):
            expectation = make_expectation(dice, f"x{number}", properties=calm)
            states = [check(expectation, each) for each in (behind, exactly, profile)]
            assert states == sorted(states), seed
            seen[states[0]] += 1
    assert min(seen.values()) > 100


def _exactly(profile: Profile) -> Profile:
    capabilities = {
        id: replace(each, about=replace(each.about, quantum=0)) for id, each in profile.capabilities.items()
    }
    return replace(
        profile, capabilities=capabilities, moded={id: replace(each, quantum=0) for id, each in profile.moded.items()}
    )


def test_doubles_that_do_not_add_up_are_asked_for_a_little_more() -> None:
    """The sum of a difference and what was taken off may be more than what it was taken off from."""
    dice = random.Random(5)
    uneven = 0
    for _ in range(3_000):
        about = dice.choice((DELAY, SHARE))
        wanted, figure = sorted((dice.random(), dice.random()), key=about.goodness)
        capability = Capability(about=about, lb=0, ub=1, cv=about.worse(0, 1))
        asked = value_before_link(capability, figure, wanted)
        assert asked is not None
        assert about.at_least(value_after_link(about, figure, asked), wanted)
        uneven += asked not in (wanted - figure, wanted / figure)
    assert uneven > 30


def test_figures_and_current_values_are_rounded_and_ranges_are_as_wide_as_that_takes() -> None:
    limit = Capability(about=LIMIT, lb=1.17, ub=60, cv=1.19)
    delay = Capability(about=DELAY, lb=0, ub=3.33, cv=3.31)
    moved = profile_after_link(
        Profile(publisher="p", type="t", capabilities={"limit": limit, "delay": delay}), {"limit": 12.9, "delay": 1.234}
    )
    assert moved.capabilities["limit"] == replace(limit, lb=1.1, ub=12, cv=1.1)
    assert moved.capabilities["delay"] == replace(delay, lb=1.3, ub=4.7, cv=4.7)


def test_a_link_that_lets_nothing_through_leaves_a_single_value() -> None:
    share = Capability(about=SHARE, lb=0, ub=1, cv=0.5, cost=read_formula("8 * x"))
    moved = profile_after_link(Profile(publisher="p", type="t", capabilities={"share": share}), {"share": 0.0})
    assert moved.capabilities["share"] == replace(share, ub=0, cv=0, cost=ConstantCost(4))
