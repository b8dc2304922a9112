"""What is explained is what is: the verdict, the ways shown, and the filters that are said to be lacking."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from situ.scopes.explanation import DimensionCase, DimensionExplanation, RootEvent, explain_visibility
from situ.scopes.graph import ScopeGraph
from tests.oracles.visibility import visible
from tests.scopes import World, worlds
from tests.volume import cases


@dataclass(frozen=True, kw_only=True)
class Made(RootEvent):
    """An event for which some filters were made true."""

    true: frozenset[str] = field(default=frozenset())

    def passes(self, text: str) -> bool:
        return text in self.true or RootEvent.passes(self, text)


def made(event: RootEvent, *texts: str) -> Made:
    return Made(filters=event.filters, type=event.type, envelope=event.envelope, data=event.data, true=frozenset(texts))


def judge_ways(graph: ScopeGraph, each: DimensionExplanation) -> None:
    """Ways lead from the one tag to the other, up and then down, and are open only where it is visible."""
    dimension = graph.dimensions[each.dimension]
    for way in (each.way, *each.others):
        names = [each.advertised, *(step.end for step in way)]
        assert names[-1] == each.subscribed or not way
        assert len(set(names)) == len(names)
        for before, step in itertools.pairwise(way):
            assert before.end == step.start
            assert (before.direction, step.direction) != ("down", "up")
        for step in way:
            assert (step.end in dimension.containers(step.start)) == (step.direction == "up")
        if way:
            assert all(asked.passes for step in way for asked in step.asked) == each.visible
    assert (each.blocked is None) == (each.visible or not each.way)


def judge(world: World) -> int:
    helped = 0
    for ad, sub, event in world.cases:
        explained = explain_visibility(world.graph, event, ad, sub)
        assert explained.visible == visible(world.graph, event, ad, sub), world.seed
        for each in explained.dimensions:
            if each.cell is DimensionCase.BETWEEN:
                judge_ways(world.graph, each)
            for texts in each.lacking:
                assert texts
                helping = explain_visibility(world.graph, made(event, *texts), ad, sub)
                now = next(other for other in helping.dimensions if other.dimension == each.dimension)
                assert now.visible, (world.seed, texts)
                for left_out in texts:
                    fewer = made(event, *(text for text in texts if text != left_out))
                    found = explain_visibility(world.graph, fewer, ad, sub).dimensions
                    assert not next(other for other in found if other.dimension == each.dimension).visible
                if len(explained.hidden) == 1:
                    assert visible(world.graph, made(event, *texts), ad, sub)
                    helped += 1
    return helped


@cases(300, 20_000)
def test_what_is_explained_is_what_the_rules_say(cases: int) -> None:
    assert sum(judge(world) for world in worlds(cases, start=30_000)) > cases / 50
