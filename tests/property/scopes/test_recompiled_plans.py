"""Plans that follow from the plan before are those that would be compiled from nothing, change after change."""

from __future__ import annotations

import random

from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.graph import BoundaryFilter, Dimension, ScopeGraph
from situ.scopes.visibility_plan import VisibilityPlan, compile_visibility, number_filters
from tests.scopes import changed, graph_of, make_dimension, make_graph, make_tags
from tests.volume import seeds


def swapped(dice: random.Random, graph: ScopeGraph, sets: list[TagSet]) -> list[TagSet]:
    if dice.random() < 0.6:
        return sets
    kept = dice.sample(sets, len(sets) - dice.randint(0, min(2, len(sets) - 1)))
    return [*kept, *(make_tags(dice, graph) for _ in range(dice.randint(0, 2)))]


def judge(seed: int, changes: int) -> None:
    dice = random.Random(seed)
    graph = make_graph(dice, most_dimensions=3)
    ads, subs = ([make_tags(dice, graph) for _ in range(5)] for _ in range(2))
    numbers = number_filters(graph, NO_NUMBERS)
    plan: VisibilityPlan | None = None
    for _ in range(changes):
        numbers = number_filters(graph, numbers)
        before, plan = plan, compile_visibility(graph, ads, subs, numbers, before=plan)
        anew = compile_visibility(graph, ads, subs, numbers)
        assert plan.rows == anew.rows, seed
        assert (plan.ads, plan.subs, plan.stamped) == (anew.ads, anew.subs, anew.stamped)
        if before is not None:
            assert all(numbers[text] == number for text, number in before.numbers.given.items())
        graph = changed(dice, graph)
        ads, subs = swapped(dice, graph, ads), swapped(dice, graph, subs)


@seeds(range(60), range(1_000, 4_000))
def test_recompiled_is_compiled(seeds: range) -> None:
    for seed in seeds:
        judge(seed, 12)


def test_only_what_begins_or_ends_below_the_change_is_computed_again() -> None:
    dice = random.Random(5)
    graph = graph_of(make_dimension("d1", dice, 40), make_dimension("d2", dice, 40))
    one = graph.dimensions["d1"]
    ads = subs = [TagSet.of({"d1": each, "d2": "d2s0"}) for each in one.scopes]
    numbers = number_filters(graph, NO_NUMBERS)
    plan = compile_visibility(graph, ads, subs, numbers)
    name = next(each for each in one.upwards() if one.containers(each) and 1 < len(one.below(each)) < 10)
    filters = {**one.scopes, name: replace(one.scopes[name], output=BoundaryFilter(text="severity = 77"))}
    graph = graph_of(Dimension(name="d1", closed=one.closed, scopes=filters), graph.dimensions["d2"])
    again = compile_visibility(graph, ads, subs, number_filters(graph, numbers), before=plan)
    touched = {place for place, each in enumerate(ads) if each.tag("d1") in one.below(name)}
    assert again.dimensions["d1"].changed == one.below(name)
    assert again.dimensions["d2"].changed == frozenset()
    for place, (old, new) in enumerate(zip(plan.rows, again.rows, strict=True)):
        if place not in touched:
            assert all(old[other] is new[other] for other in range(len(old)) if other not in touched)
