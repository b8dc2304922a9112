"""Strategies decide what going through all plans decides; nobody is harmed; no bound is violated.

A hundred generated problems of every kind in every run, twenty thousand in `make soak`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from fractions import Fraction

import pytest

from benchmarks.quality_world import World, make_world
from situ.lang.records import replace
from situ.quality.allocation import exact
from situ.quality.allocation import local_search as greedy
from situ.quality.allocation import sequential as turns
from situ.quality.allocation.exact import is_selection, select
from situ.quality.allocation.pool_matrix import PoolMatrix
from situ.quality.allocation.search_space import Objective, ProfileOption, components_of, rule_utility
from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.match.match_index import MatchIndex
from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.allocation_problem import STAY, AllocationPlan, AllocationProblem, point_at
from situ.quality.model.declarations import Strategy
from tests import plans
from tests.plans import Kind, make_problem
from tests.volume import cases

NORMAL, LONG = 60, 20_000
WEIGHED = ("cheapest", "utility", "fairness")


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", WEIGHED)
def test_a_small_problem_is_decided_as_by_going_through_all_plans(name: str, cases: int) -> None:
    moved = 0
    for seed in range(cases):
        problem = make_problem(seed)
        plan, best = BUILT_IN_STRATEGIES[name](problem), plans.best_plan(problem, name)
        assert plan.targets == best, seed
        assert plan.exact, seed
        assert plan.cost == float(plans.cost_of_plan(problem, best)), seed
        moved += bool(best)
    assert moved > cases / 4


@cases(300, LONG)
def test_pareto_decides_one_at_a_time_as_it_is_written(cases: int) -> None:
    moved = declined = 0
    for seed in range(cases):
        problem = make_problem(seed, Kind(expectations=6))
        plan = BUILT_IN_STRATEGIES["pareto"](problem)
        targets, why = plans.pareto(problem)
        assert plan.targets == targets, seed
        assert {id: each.why for id, each in plan.declined.items()} == why, seed
        assert plan.cost == float(plans.cost_of_plan(problem, targets)), seed
        moved += bool(targets)
        declined += bool(why)
    assert moved > cases / 8
    assert declined > cases / 20


@cases(150, LONG)
def test_pareto_decides_the_same_from_what_is_kept(cases: int) -> None:
    """And needs to be told of nobody but those that are decided on."""
    parted = 0
    for seed in range(cases):
        problem = make_problem(240_000 + seed, Kind(expectations=6))
        plan = BUILT_IN_STRATEGIES["pareto"](problem)
        kept = replace(problem, standing=standing_of(problem))
        assert BUILT_IN_STRATEGIES["pareto"](kept) == plan, seed
        for each in problem.expectations[-1:]:
            undecided = frozenset({each.id})
            alone = replace(kept, expectations=(each,), undecided=undecided, relevant=Unlisted(kept.relevant))
            found, expected = (
                BUILT_IN_STRATEGIES["pareto"](one) for one in (alone, replace(problem, undecided=undecided))
            )
            assert found == expected, seed
            parted += bool(found.targets)
    assert parted > cases / 20


class Unlisted(dict[str, frozenset[str]]):
    """What is relevant to whom in a large zone: one decision must not take as long as going through all of it."""

    def __iter__(self) -> Iterator[str]:
        raise AssertionError("gone through")

    keys = values = items = __iter__  # type: ignore[assignment]


@cases(NORMAL, LONG)
@pytest.mark.parametrize("ahead", [1, 3])
def test_it_does_not_matter_how_far_pareto_looks_ahead(ahead: int, monkeypatch: pytest.MonkeyPatch, cases: int) -> None:
    problems = [make_problem(280_000 + seed, Kind(expectations=8)) for seed in range(cases)]
    kept = [replace(each, standing=standing_of(each)) for each in problems]
    far = [BUILT_IN_STRATEGIES["pareto"](each) for each in (*problems, *kept)]
    monkeypatch.setattr(turns, "_AHEAD", ahead)
    for seed, (each, expected) in enumerate(zip((*problems, *kept), far, strict=True)):
        assert BUILT_IN_STRATEGIES["pareto"](each) == expected, seed
    assert sum(bool(each.targets) for each in far) > cases / 4


@cases(25, LONG)
def test_what_a_look_decides_is_what_going_through_candidates_decides(
    cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By what rises evenly, with many turns in each pool; by what begins with another plan; and by whole numbers."""
    moved = refused = 0
    for seed in range(cases):
        even = problem_of(make_world(150, 15, 3, moded=seed % 5 / 5, seed=seed), protect=seed % 4 > 0)
        start = dict(list(BUILT_IN_STRATEGIES["pareto"](even).targets.items())[::2])
        later = frozenset(each.id for each in even.expectations[seed % 3 :: 3])
        whole = make_problem(320_000 + seed, Kind(expectations=12, budget=False, actions=False, falling=False))
        for problem in (even, replace(even, start=start, undecided=later), whole):
            kept = replace(problem, standing=standing_of(problem))
            plans = [BUILT_IN_STRATEGIES["pareto"](each) for each in (problem, kept)]
            with monkeypatch.context() as patch:
                patch.setattr(PoolMatrix, "foremost", lambda *_: None)
                assert plans == [BUILT_IN_STRATEGIES["pareto"](each) for each in (problem, kept)], seed
            moved += len(plans[0].targets)
            refused += sum(each.why == "alternative" for each in plans[0].declined.values())
    assert moved > 5 * cases
    assert refused > cases


def problem_of(world: World, *, protect: bool) -> AllocationProblem:
    return AllocationProblem(
        expectations=tuple(each for each, _ in world.expectations),
        profiles={each.id: each for each, _ in world.profiles},
        pools=world.pools,
        relevant=world.relevant,
        strategy=Strategy(protect=protect),
    )


def standing_of(problem: AllocationProblem) -> MatchIndex:
    standing = MatchIndex()
    standing.put_many(
        [(each, problem.pools[id]) for id, each in problem.profiles.items()],
        [(each, problem.relevant[each.subscription]) for each in problem.expectations],
    )
    return standing


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_a_plan_says_who_is_served_by_what(name: str, cases: int) -> None:
    for seed in range(cases):
        problem = make_problem(30_000 + seed)
        check_plan(problem, BUILT_IN_STRATEGIES[name](problem), seed)


def test_who_loses_to_a_later_one_is_declined() -> None:
    problem = make_problem(36_647)
    plan = BUILT_IN_STRATEGIES["pareto"](problem)
    check_plan(problem, plan, 36_647)
    assert {id: each.why for id, each in plan.declined.items()} == {"c0/x0": "conflict"}


def check_plan(problem: AllocationProblem, plan: AllocationPlan, seed: int) -> None:
    states = {each.id: match(each, plans.relevant_to(problem, each)).state for each in problem.expectations}
    able = {id for id, state in states.items() if state is Satisfaction.SATISFIABLE}
    met = plans.satisfied(problem, plan.targets)
    had = {id for id, state in states.items() if state is Satisfaction.SATISFIED}
    assert plan.adopted.keys() - had == able & met, seed
    assert plan.declined.keys() - had == able - met, seed
    for id, target in plan.targets.items():
        check_target(problem, id, plan, seed)
        assert target, seed
    for each in problem.expectations:
        claims = plan.adopted.get(each.id, ())
        assert all(each.is_met_by(point_at(problem.profiles[one.profile], one.target)) for one in claims), seed


def check_target(problem: AllocationProblem, id: str, plan: AllocationPlan, seed: int) -> None:
    """Within the bounds, never worse, and exactly what the claims on it add up to."""
    profile, target = problem.profiles[id], plan.targets[id]
    claims = [each.target for some in plan.adopted.values() for each in some if each.profile == id]
    claims.append(plan.for_nobody.get(id, STAY))
    for name, value in target.values.items():
        capability = profile.capabilities[name]
        about = capability.about
        assert capability.lb <= value <= capability.ub, seed
        assert about.at_least(value, capability.cv), seed
        claimed = [each.values[name] for each in claims if name in each.values]
        assert value == max(claimed, key=about.goodness), seed
    assert target.mode in {"", *(each.name for each in profile.modes)} - {profile.mode} or not target.mode, seed
    assert target.mode in {each.mode for each in claims}, seed


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_nobody_is_harmed_without_modes_nor_where_that_is_forbidden(name: str, cases: int) -> None:
    for seed in range(cases):
        free = make_problem(60_000 + seed, Kind(modes=False))
        free = replace(free, strategy=replace(free.strategy, protect=False))
        assert not plans.harms(free, BUILT_IN_STRATEGIES[name](free).targets), seed
        moded = make_problem(60_000 + seed)
        moded = replace(moded, strategy=replace(moded.strategy, protect=True))
        assert not plans.harms(moded, BUILT_IN_STRATEGIES[name](moded).targets), seed


def test_somebody_may_be_harmed_where_nothing_forbids_it() -> None:
    problems = (make_problem(seed) for seed in range(3_000))
    bare = (replace(each, strategy=replace(each.strategy, protect=False)) for each in problems)
    assert any(plans.harms(each, BUILT_IN_STRATEGIES["utility"](each).targets) for each in bare)


@cases(50, LONG)
@pytest.mark.parametrize("name", BUILT_IN_STRATEGIES)
def test_the_order_of_what_goes_in_does_not_matter(name: str, cases: int) -> None:
    for seed in range(cases):
        problem = make_problem(90_000 + seed, Kind(expectations=5))
        other = plans.shuffled(problem, random.Random(seed), expectations=name != "pareto")
        assert BUILT_IN_STRATEGIES[name](problem).targets == BUILT_IN_STRATEGIES[name](other).targets, seed


def by_greedy(name: str, problem: AllocationProblem, monkeypatch: pytest.MonkeyPatch) -> AllocationPlan:
    """What the search for large parts finds, without what it does to settle."""
    with monkeypatch.context() as patch:
        patch.setattr(exact, "MOST_PLANS", 0)
        patch.setattr(greedy, "_ROUNDS", 0)
        return BUILT_IN_STRATEGIES[name](problem)


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", ["cheapest", "utility"])
def test_greedy_keeps_its_bound_without_modes(name: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind(modes=False, falling=False, several=False, alternatives=False, dear=True, expectations=12)
    worse = 0
    for seed in range(cases):
        problem = make_problem(120_000 + seed, kind)
        problem = replace(problem, strategy=replace(problem.strategy, weight=0.0, budget=float(5 + seed % 20)))
        best, plan = BUILT_IN_STRATEGIES[name](problem), by_greedy(name, problem, monkeypatch)
        found, most = (value_of(name, problem, each.targets) for each in (plan, best))
        assert best.exact, seed
        assert plan.exact or plan.bound == greedy.BOUND_OF_SUMS, seed
        assert plans.is_permitted(problem, plan.targets), seed
        assert found >= Fraction(greedy.BOUND_OF_SUMS) * most, seed
        worse += found < most
    assert worse, "where greedy finds the best each time its bound is not tested"


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", ["cheapest", "utility"])
def test_greedy_keeps_its_bound_with_modes(name: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = Kind(several=False, dear=True, expectations=12)
    bounded = 0
    for seed in range(cases):
        problem = make_problem(150_000 + seed, kind)
        problem = replace(problem, strategy=replace(problem.strategy, weight=0.0, budget=None, protect=False))
        best, plan = BUILT_IN_STRATEGIES[name](problem), by_greedy(name, problem, monkeypatch)
        found, most = (value_of(name, problem, each.targets) for each in (plan, best))
        bounded += plan.bound == greedy.BOUND_OF_MODES
        assert found >= Fraction(plan.bound or 0) * most, seed
    assert bounded > cases / 8


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", WEIGHED)
def test_greedy_violates_nothing_whatever_the_problem(name: str, cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact, "MOST_PLANS", 0)
    for seed in range(cases):
        problem = make_problem(180_000 + seed)
        plan = BUILT_IN_STRATEGIES[name](problem)
        assert plans.is_permitted(problem, plan.targets), seed
        assert is_no_worse(name, problem, plan), seed
        check_plan(problem, plan, seed)


@cases(NORMAL, LONG)
@pytest.mark.parametrize("name", WEIGHED)
def test_what_is_weighed_nearby_is_what_is_weighed_as_a_whole(
    name: str, cases: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "MOST_PLANS", 0)
    moved = 0
    for seed in range(cases):
        problem = make_problem(360_000 + seed, Kind(profiles=6, expectations=12))
        if seed % 2:  # profiles that have few subscriptions in common
            problem = problem_of(make_world(20, 8, 2, moded=seed % 5 / 5, seed=seed), protect=seed % 4 == 1)
        plan = BUILT_IN_STRATEGIES[name](problem)
        with monkeypatch.context() as patch:
            patch.setattr(greedy, "local_search", settled_as_a_whole)
            assert BUILT_IN_STRATEGIES[name](problem) == plan, seed
        moved += bool(plan.targets)
    assert moved > cases / 4


def settled_as_a_whole(
    weighing: Objective, options: Sequence[Sequence[ProfileOption]], start: exact.Chosen, *, rounds: int
) -> exact.Chosen:
    """Every profile gets what is best as the others are; whatever is compared, all of it is weighed."""
    chosen = list(start)
    for _ in range(rounds):
        before = list(chosen)
        for place, some in enumerate(options):
            best, most = chosen[place], None
            for option in (best, *some):
                every = [*chosen[:place], option, *chosen[place + 1 :]]
                results = weighing.results(weighing.part.met_by([each.met for each in every]))
                cost = sum(weighing.scaled(each.cost) for each in every)
                if weighing.permits(results, cost):
                    worth = weighing.worth(results, cost)
                    if most is None or worth > most:
                        best, most = option, worth
            chosen[place] = best
        if chosen == before:
            break
    return tuple(chosen)


def is_no_worse(name: str, problem: AllocationProblem, plan: AllocationPlan) -> bool:
    """Than leaving all as it is."""
    return plans.worth(problem, name, plan.targets) <= plans.worth(problem, name, {})


def value_of(name: str, problem: AllocationProblem, targets: plans.Targets) -> Fraction:
    return Fraction(plans.served(problem, targets)) if name == "cheapest" else plans.usefulness(problem, targets)


@cases(150, LONG)
def test_project_selection_finds_what_branch_and_bound_finds(cases: int) -> None:
    kind = Kind(modes=False, several=False, budget=False, profiles=1, expectations=6, alternatives=False)
    selected = 0
    for seed in range(cases):
        problem = make_problem(210_000 + seed, kind)
        for part in filter(is_selection, components_of(problem)):
            options = [each.options() or () for each in part.choices]
            costs = [level.cost for each in part.choices for levels in each.levels for level in levels]
            weighing = Objective(part, rule_utility, problem.strategy, costs)
            best = exact.branch_and_bound(weighing, options)
            assert best is not None
            assert [each.target for each in select(weighing)] == [each.target for each in best], seed
            selected += any(each.changes for each in best)
    assert selected > cases / 8
