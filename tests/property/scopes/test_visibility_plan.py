"""One meaning, many forms: on generated graphs, filters, tags and events all of them say what the three rules say.

Some hundred cases in every run, twenty thousand and more in `make soak`.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

import pytest

from situ.lang.tags import ANY, TagSet
from situ.scopes import filter_sets as families
from situ.scopes.filter_sets import from_words, to_words
from situ.scopes.graph import ScopeGraph
from situ.scopes.visibility_plan import Verdict, VisibilityPlan, compile_visibility
from tests.oracles.visibility import Brokers, transformation_path, travel, visible
from tests.oracles.visibility_expression import to_expression
from tests.scopes import World, make_brokers, make_world, stamp_bits, worlds
from tests.volume import cases

NORMAL, LONG = 1_000, 20_000


def judge_plan(world: World, plan: VisibilityPlan) -> list[bool]:
    """The verdict of every case: the pair with the bits."""
    found = []
    for ad, sub, event in world.cases:
        bits = stamp_bits(plan.numbers, plan.stamped, event)
        verdict = plan.pair(ad, sub).visible(bits)
        assert from_words(to_words(bits)) == bits
        found.append(verdict)
    return found


def judge(world: World, *, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """The verdicts of a world, after the reference, the sets and the nested form have agreed on them."""
    expected = [visible(world.graph, event, ad, sub) for ad, sub, event in world.cases]
    assert judge_plan(world, world.plan) == expected, world.seed
    with monkeypatch.context() as patch:
        patch.setattr(families, "MOST_SETS", 1)
        nested = compile_visibility(world.graph, world.ads, world.subs, world.plan.numbers)
    assert judge_plan(world, nested) == expected, world.seed
    yield from expected


@cases(NORMAL, LONG)
def test_sets_and_nested_families_say_what_the_rules_say(cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    verdicts = [verdict for world in worlds(cases) for verdict in judge(world, monkeypatch=monkeypatch)]
    assert len(verdicts) >= cases
    assert 0.15 < sum(verdicts) / len(verdicts) < 0.85, "neither all visible nor all invisible"


def test_generated_pairs_are_of_every_kind() -> None:
    found = [pair for world in worlds(NORMAL) for _, _, pair in world.plan.pairs()]
    shares = {verdict: sum(pair.verdict is verdict for pair in found) / len(found) for verdict in Verdict}
    assert min(shares.values()) > 0.05, shares
    assert max(len(family.program[0]) for pair in found for family in pair.families) >= 4
    assert max(len(pair.families) for pair in found) >= 3


@cases(400, LONG)
def test_the_expression_of_a_pair_says_what_the_rules_say(cases: int) -> None:
    for world in worlds(cases, start=50_000):
        for ad, sub, event in world.cases:
            text = to_expression(world.plan.pair(ad, sub), world.plan.numbers)
            assert event.passes(text) == visible(world.graph, event, ad, sub), (world.seed, text)


def brokers_of(dice: random.Random, brokers: Brokers, graph: ScopeGraph, tags: TagSet) -> str:
    """A broker in the overlays of all scopes that are named."""
    named = {tag for name in graph.dimensions if (tag := tags.tag(name)) not in (None, ANY)}
    return dice.choice(sorted(each for each, overlay in brokers.overlays.items() if named <= overlay))


@cases(300, LONG)
def test_events_that_go_hop_by_hop_arrive_exactly_where_they_are_visible(cases: int) -> None:
    arrived = 0
    for seed in range(cases // 10):
        world = make_world(90_000 + seed, most_dimensions=3)
        dice = random.Random(seed)
        brokers = make_brokers(dice, world.graph)
        for ad, sub, event in dice.sample(world.cases, 10):
            ends = [(tags, brokers_of(dice, brokers, world.graph, tags)) for tags in (ad, sub)]
            path = travel(world.graph, event, brokers, ends[0], ends[1])
            assert (path is not None) == visible(world.graph, event, ad, sub), (world.seed, ad, sub, event)
            if path is not None:
                arrived += 1
                assert_valley_free(world.graph, path[-1].dimensions, transformation_path(path)[-1])
    assert arrived > cases / 10


def assert_valley_free(graph: ScopeGraph, names: tuple[str, ...], paths: tuple[tuple[str, ...], ...]) -> None:
    for name, path in zip(names, paths, strict=True):
        containers = graph.dimensions[name].containers
        steps = ["up" if after in containers(before) else "down" for before, after in itertools.pairwise(path)]
        assert steps == sorted(steps, reverse=True), (path, steps)


def test_overlays_that_keep_events_back_never_let_more_through() -> None:
    lost = 0
    for seed in range(60):
        world = make_world(70_000 + seed, most_dimensions=2)
        dice = random.Random(seed)
        whole = make_brokers(dice, world.graph)
        torn = Brokers(
            neighbours=whole.neighbours,
            overlays={
                each: frozenset(scope for scope in sorted(overlay) if dice.random() < 0.6)
                for each, overlay in whole.overlays.items()
            },
        )
        for ad, sub, event in world.cases:
            ends = [(tags, brokers_of(dice, whole, world.graph, tags)) for tags in (ad, sub)]
            if travel(world.graph, event, torn, ends[0], ends[1]) is not None:
                assert visible(world.graph, event, ad, sub), world.seed
            elif visible(world.graph, event, ad, sub):
                lost += 1
    assert lost > 50, "some events must have been kept back, or nothing was tested"
