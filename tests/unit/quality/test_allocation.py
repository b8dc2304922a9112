"""The worked examples of deciding, and what the strategies do at their edges."""

from __future__ import annotations

import time
from collections.abc import Mapping

import pytest

from situ.lang.records import replace
from situ.quality.allocation import exact
from situ.quality.allocation import strategies as cheapest
from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.model.allocation_problem import AllocationProblem, PublisherActions, Target, point_at
from situ.quality.model.costs import ConstantCost, Cost, PiecewiseCost, read_formula
from situ.quality.model.declarations import (
    BUILT_IN,
    Capability,
    Expectation,
    Mode,
    Need,
    Profile,
    PublisherAction,
    QualityProperty,
    Strategy,
)

A = QualityProperty(name="a", lo=0, hi=10, maximise=False)
B = QualityProperty(name="b", lo=0, hi=10, maximise=False)
RATE, CONFIDENCE = BUILT_IN["rate"], BUILT_IN["confidence"]
FALLING = PiecewiseCost(((0.0, 10.0), (10.0, 0.0)))
"""10 − x."""


def capability(about: QualityProperty, lb: float, ub: float, cv: float, cost: Cost = FALLING) -> Capability:
    return Capability(about=about, lb=lb, ub=ub, cv=cv, cost=cost)


def need(about: QualityProperty, lb: float, ub: float) -> Need:
    return Need(about=about, lb=lb, ub=ub)


def expectation(id: str, subscription: str, *needs: Need, utility: float = 1.0, publishers: int = 1) -> Expectation:
    found = {each.about.id: each for each in needs}
    return Expectation(id=id, subscription=subscription, needs=found, utility=utility, publishers=publishers)


def profile(publisher: str, *capabilities: Capability) -> Profile:
    return Profile(publisher=publisher, type="t", capabilities={each.about.id: each for each in capabilities})


def problem(
    expectations: tuple[Expectation, ...], *profiles: Profile, strategy: Strategy | None = None
) -> AllocationProblem:
    return AllocationProblem(
        expectations=expectations,
        profiles={each.id: each for each in profiles},
        pools={each.id: "t" for each in profiles},
        relevant={each.subscription: frozenset({"t"}) for each in expectations},
        strategy=strategy or Strategy(),
    )


# ── W4: two brokers, five publishers, five expectations ──


def five_by_five(cost_of_a_on_p1: Cost = FALLING) -> AllocationProblem:
    profiles = [
        profile("P1", capability(A, 1, 6, 3, cost_of_a_on_p1), capability(B, 5, 9, 6)),
        profile("P2", capability(A, 4, 10, 6), capability(B, 1, 5, 2)),
        profile("P3", capability(A, 5, 10, 7), capability(B, 6, 9, 7)),
        profile("P4", capability(A, 4, 9, 8), capability(B, 2, 9, 5)),
        profile("P5", capability(A, 3, 9, 5), capability(B, 6, 9, 8)),
    ]
    asked = (
        expectation("X3", "S1/s", need(A, 2, 4), need(B, 5, 7)),
        expectation("X1", "S1/s", need(A, 1, 2), need(B, 4, 6)),
        expectation("X2", "S2/s", need(A, 5, 7), need(B, 1, 3)),
        expectation("X5", "S3/s", need(A, 3, 5), need(B, 1, 3)),
        expectation("X4", "S4/s", need(A, 1, 2), need(B, 1, 3)),
    )
    return problem(asked, *profiles)


def test_pareto_declines_what_costs_more_where_an_alternative_is_satisfied() -> None:
    plan = BUILT_IN_STRATEGIES["pareto"](five_by_five())
    assert plan.targets == {"P2/t": Target(values={"a": 5.0})}
    assert plan.cost == 1.0
    refusal = plan.declined["X1"]
    assert (refusal.why, refusal.profile, refusal.target.values, refusal.extra) == (
        "alternative",
        "P1/t",
        {"a": 2.0},
        1.0,
    )
    assert plan.adopted.keys() == {"X5"}
    assert plan.declined.keys() == {"X1"}, "X4 is out of reach: nobody declines it"


def test_pareto_adopts_what_is_cheaper_than_what_is() -> None:
    plan = BUILT_IN_STRATEGIES["pareto"](five_by_five(PiecewiseCost(((1.0, 9.0), (2.0, 1.0), (3.0, 4.0), (6.0, 4.0)))))
    assert plan.targets == {"P1/t": Target(values={"a": 2.0}), "P2/t": Target(values={"a": 5.0})}
    assert plan.cost == -2.0
    assert not plan.declined


def test_pareto_gives_a_turn_to_whom_a_mode_that_was_decided_before_takes_what_it_has() -> None:
    modes = (Mode(name="fast", values={"rate": 10.0}, cost=5.0), Mode(name="slow", values={"rate": 1.0}))
    switched = Profile(publisher="P", type="t", modes=modes, mode="fast", moded={"rate": RATE})
    other = profile("Q", capability(RATE, 1, 10, 2, ConstantCost(0.0)))
    given = problem((expectation("x", "A/s", need(RATE, 5, 10)),), switched, other)
    assert not BUILT_IN_STRATEGIES["pareto"](given).targets, "it is satisfied as things are"
    plan = BUILT_IN_STRATEGIES["pareto"](replace(given, start={"P/t": Target(mode="slow")}))
    assert plan.targets == {"Q/t": Target(values={"rate": 5.0})}
    assert plan.adopted.keys() == {"x"}


# ── W4: one rate for three ──


def three_rates(strategy: Strategy | None = None) -> AllocationProblem:
    asked = (
        expectation("a", "A/s", need(RATE, 5, 10), utility=10),
        expectation("b", "B/s", need(RATE, 30, 45), utility=4),
        expectation("c", "C/s", need(RATE, 50, 60), utility=1),
    )
    return problem(asked, profile("P", capability(RATE, 2, 60, 2, read_formula("0.1 * x"))), strategy=strategy)


def test_utility_raises_a_rate_as_far_as_that_is_worth_it() -> None:
    plan = BUILT_IN_STRATEGIES["utility"](three_rates())
    assert plan.targets == {"P/t": Target(values={"rate": 30.0})}
    assert plan.cost == pytest.approx(2.8)
    assert plan.exact
    assert {id: claims[0].target.values for id, claims in plan.adopted.items()} == {"a": {"rate": 5}, "b": {"rate": 30}}
    assert plan.declined["c"].why == "worth"
    assert plan.declined["c"].extra == pytest.approx(2.0)


@pytest.mark.parametrize(("budget", "rate"), [(0.0, None), (0.5, 5.0), (2.9, 30.0), (4.9, 50.0)])
@pytest.mark.parametrize("name", ["cheapest", "fairness"])
def test_no_plan_costs_more_than_the_budget(name: str, budget: float, rate: float | None) -> None:
    plan = BUILT_IN_STRATEGIES[name](three_rates(Strategy(name=name, budget=budget)))
    assert plan.targets == ({} if rate is None else {"P/t": Target(values={"rate": rate})})


def test_pareto_takes_what_the_budget_allows_in_the_order_of_registration() -> None:
    plan = BUILT_IN_STRATEGIES["pareto"](three_rates(Strategy(budget=2.9)))
    assert plan.targets == {"P/t": Target(values={"rate": 30})}
    assert plan.declined["c"].why == "budget"


# ── modes ──


def sensor(mode: str = "precise") -> Profile:
    modes = (
        Mode(name="precise", values={"rate": 2.0, "confidence": 90.0}, cost=1.0),
        Mode(name="fast", values={"rate": 60.0, "confidence": 60.0}, cost=1.0),
    )
    return Profile(publisher="P", type="t", modes=modes, mode=mode, moded={"rate": RATE, "confidence": CONFIDENCE})


def two_minds(strategy: Strategy) -> AllocationProblem:
    asked = (
        expectation("sure", "A/s", need(CONFIDENCE, 80, 100), utility=1),
        expectation("quick", "B/s", need(RATE, 30, 60), utility=5),
    )
    return problem(asked, sensor(), strategy=strategy)


@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_nobody_loses_what_it_has_to_a_mode(name: str) -> None:
    plan = BUILT_IN_STRATEGIES[name](two_minds(Strategy(name=name)))
    assert not plan.targets
    assert plan.declined["quick"].why in {"harm", "conflict"}


@pytest.mark.parametrize("name", ["utility", "pareto"])
def test_where_harm_is_allowed_a_mode_is_taken_for_who_gains(name: str) -> None:
    plan = BUILT_IN_STRATEGIES[name](two_minds(Strategy(name=name, protect=False)))
    assert plan.targets == {"P/t": Target(mode="fast")}
    assert plan.adopted["quick"][0].target == Target(mode="fast")


# ── several publishers, order, claims ──


def test_several_publishers_are_moved_for_one_expectation_the_cheapest_first() -> None:
    profiles = [
        profile(name, capability(RATE, 1, 60, 1, PiecewiseCost(((1.0, 0.0), (60.0, top)))))
        for name, top in (("dear", 30.0), ("cheap", 1.0), ("middle", 5.0))
    ]
    asked = (expectation("x", "A/s", need(RATE, 10, 60), publishers=2),)
    for name in BUILT_IN_STRATEGIES:
        plan = BUILT_IN_STRATEGIES[name](problem(asked, *profiles, strategy=Strategy(name=name, weight=0.01)))
        assert plan.targets.keys() == {"cheap/t", "middle/t"}, name
        assert {each.profile for each in plan.adopted["x"]} == {"cheap/t", "middle/t"}, name


def test_a_claim_holds_what_its_expectation_needs_and_no_more() -> None:
    plan = BUILT_IN_STRATEGIES["pareto"](three_rates())
    values = {id: claims[0].target.values["rate"] for id, claims in plan.adopted.items()}
    assert values == {"a": 5, "b": 30, "c": 50}


def test_pareto_goes_on_from_what_was_decided_before() -> None:
    before = {"P/t": Target(values={"rate": 30.0})}
    later = replace(three_rates(), start=before, undecided=frozenset({"c"}))
    plan = BUILT_IN_STRATEGIES["pareto"](later)
    assert plan.targets == {"P/t": Target(values={"rate": 50})}
    assert plan.cost == pytest.approx(2.0)
    assert plan.adopted.keys() == {"c"}
    assert not BUILT_IN_STRATEGIES["pareto"](replace(later, undecided=frozenset({"b"}))).targets


def test_the_action_that_moves_a_publisher_is_paid_for() -> None:
    dear = PublisherAction(property="rate", direction="up", action="adaptPublisher", cost=ConstantCost(9.0))
    asked = three_rates()
    plan = BUILT_IN_STRATEGIES["utility"](replace(asked, actions=PublisherActions((dear,))))
    assert plan.targets == {"P/t": Target(values={"rate": 30.0})}
    assert plan.cost == pytest.approx(11.8)
    assert not BUILT_IN_STRATEGIES["utility"](
        replace(asked, actions=PublisherActions((replace(dear, cost=ConstantCost(12.0)),)))
    ).targets


# ── large ones ──


def crowd(count: int) -> AllocationProblem:
    """One profile of three properties and many who want a little of each: far more plans than can be gone through."""
    about = [QualityProperty(name=name, lo=0, hi=1000) for name in ("u", "v", "w")]
    asked = tuple(
        expectation(
            f"c{number}/x",
            f"c{number}/s",
            *(need(each, 1 + (number * factor) % 997, 1000) for each, factor in zip(about, (7, 13, 29), strict=True)),
            utility=1 + number % 5,
        )
        for number in range(count)
    )
    cost = PiecewiseCost(((0.0, 0.0), (500.0, 100.0), (1000.0, 600.0)))
    return problem(asked, profile("P", *(capability(each, 0, 1000, 0, cost) for each in about)))


def test_one_profile_and_any_number_of_expectations_is_decided_exactly() -> None:
    asked = crowd(200)
    plan = BUILT_IN_STRATEGIES["utility"](asked)
    assert plan.exact
    worth = usefulness(asked, plan.targets) - plan.cost
    assert worth > 0
    # No single step up or down of one property is worth more.
    for target in steps_from(asked, plan.targets["P/t"]):
        assert usefulness(asked, {"P/t": target}) - cost_at(asked, target) <= worth


def usefulness(asked: AllocationProblem, targets: Mapping[str, Target]) -> float:
    (id,) = asked.profiles
    point = point_at(asked.profiles[id], targets[id])
    return sum(each.utility for each in asked.expectations if each.is_met_by(point))


def cost_at(asked: AllocationProblem, target: Target) -> float:
    (one,) = asked.profiles.values()
    return sum(one.capabilities[id].cost.at(value) for id, value in target.values.items())


def steps_from(asked: AllocationProblem, target: Target) -> list[Target]:
    floors = {id: sorted({each.needs[id].floor for each in asked.expectations}) for id in ("u", "v", "w")}
    return [Target(values={**target.values, id: value}) for id, values in floors.items() for value in values]


@pytest.mark.parametrize("name", ["cheapest", "fairness", "utility"])
def test_what_is_too_large_is_decided_greedily_and_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_PLANS", 10)
    asked = crowd(12)
    asked = replace(asked, strategy=Strategy(name=name, weight=0.0, budget=300.0))
    plan = BUILT_IN_STRATEGIES[name](asked)
    assert not plan.exact
    assert (plan.bound is None) == (name == "fairness")
    assert plan.cost <= 300


@pytest.mark.parametrize("budget", [None, 10.0])
def test_any_number_of_profiles_that_have_no_choice_is_in_nobodys_way(budget: float | None) -> None:
    still = [profile(f"S{number:04}", capability(RATE, 2, 2, 2)) for number in range(7_000)]
    asked = expectation("a", "A/s", need(RATE, 5, 10)), expectation("b", "B/s", need(RATE, 1, 2))
    plan = BUILT_IN_STRATEGIES["cheapest"](
        problem(asked, *still, profile("P", capability(RATE, 1, 8, 1)), strategy=Strategy(budget=budget))
    )
    assert plan.exact
    assert plan.targets == {"P/t": Target(values={"rate": 5.0})}


def test_one_big_option_is_not_lost_to_a_small_one_that_is_cheaper_for_what_it_brings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "MOST_PLANS", 0)
    line = PiecewiseCost(((0.0, 0.0), (1.0, 1.0), (10.0, 10.0)))
    asked = (
        expectation("small", "A/s", need(RATE, 1, 10), utility=2),
        expectation("big", "B/s", need(CONFIDENCE, 10, 100), utility=15),
    )
    profiles = profile("P", capability(RATE, 0, 10, 0, line)), profile("Q", capability(CONFIDENCE, 0, 10, 0, line))
    plan = BUILT_IN_STRATEGIES["utility"](problem(asked, *profiles, strategy=Strategy(weight=0.0, budget=10.0)))
    assert plan.targets == {"Q/t": Target(values={"confidence": 10.0})}


def test_modes_are_given_out_one_profile_after_the_other_for_at_least_half_of_the_best(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = (
        expectation("x", "A/s", need(RATE, 10, 60), utility=3),
        expectation("y", "B/s", need(CONFIDENCE, 80, 100), utility=2),
    )
    both = replace(
        sensor(), modes=(*sensor().modes, Mode(name="off", values={"rate": 0.0, "confidence": 0.0})), mode="off"
    )
    only_fast = replace(both, publisher="Q", modes=both.modes[1:])
    strategy = Strategy(weight=0.0, protect=False)
    best = BUILT_IN_STRATEGIES["utility"](problem(asked, both, only_fast, strategy=strategy))
    assert best.targets == {"P/t": Target(mode="precise"), "Q/t": Target(mode="fast")}
    monkeypatch.setattr(exact, "MOST_PLANS", 0)
    plan = BUILT_IN_STRATEGIES["utility"](problem(asked, both, only_fast, strategy=strategy))
    assert plan.targets == {"P/t": Target(mode="fast")}, "it brings the most at first, and then nothing helps y"
    assert plan.bound == 0.5
    assert not plan.exact


# ── which strategy decides ──


def test_whoever_is_relevant_to_nobody_is_left_alone() -> None:
    asked = three_rates()
    alone = replace(asked, relevant=dict.fromkeys(asked.relevant, frozenset({"elsewhere"})))
    for name in BUILT_IN_STRATEGIES:
        plan = BUILT_IN_STRATEGIES[name](alone)
        assert not plan.targets
        assert not plan.declined


# ── bounds ──


def many_readers(count: int, *, apart: bool = False) -> AllocationProblem:
    """Readers of which each could serve a desk; ``apart``: each but one of its own."""
    readers = [
        profile(f"P{at:04}", capability(RATE, 1, 60, 2, PiecewiseCost(((1.0, 0.0), (60.0, 6.0 + at % 7)))))
        for at in range(count)
    ]
    desks = tuple(
        replace(expectation(f"d{at:02}/X", f"d{at:02}/s", need(RATE, 5 + at, 60)), order=at + 1) for at in range(10)
    )
    found = problem(desks, *readers, strategy=Strategy(name="cheapest"))
    if not apart:
        return found
    pools = {id: f"t{at}" for at, id in enumerate(found.profiles)}
    return replace(found, pools=pools, relevant={f"d{at:02}/s": frozenset({f"t{at}"}) for at in range(10)})


def test_cheapest_weighs_so_many_and_serves_more_one_by_one() -> None:
    few = BUILT_IN_STRATEGIES["cheapest"](many_readers(cheapest.MOST_JOINED))
    many = BUILT_IN_STRATEGIES["cheapest"](many_readers(2_000))
    assert many.adopted.keys() == few.adopted.keys() == {f"d{at:02}/X" for at in range(10)}
    assert many.cost == few.cost, "it is the cheapest in either way"
    assert not many.exact
    assert many.bound is None
    apart = many_readers(500, apart=True)
    assert BUILT_IN_STRATEGIES["cheapest"](apart).exact, "those that nothing joins are no more work than each of them"


def test_cheapest_keeps_to_its_budget_with_many() -> None:
    wide = replace(many_readers(500), strategy=Strategy(name="cheapest", budget=0.5))
    plan = BUILT_IN_STRATEGIES["cheapest"](wide)
    assert plan.cost <= 0.5
    assert plan.adopted
    assert {each.why for each in plan.declined.values()} == {"budget"}
    assert not any(each.exact for each in plan.declined.values())


def test_cheapest_with_many_takes_no_longer_than_pareto_takes() -> None:
    large = many_readers(2_000)
    times = {}
    for name in ("pareto", "cheapest"):
        began = time.thread_time()
        BUILT_IN_STRATEGIES[name](large)
        times[name] = time.thread_time() - began
    assert times["cheapest"] < 10 * times["pareto"] + 0.5
