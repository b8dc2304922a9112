"""Situations among generated scopes, found by real policies: who sees one may see all that it comes from."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from situ.event.row import Row
from situ.lang.expr.tree import FALSE, TRUE
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.scopes.graph import BoundaryFilter, Dimension, PolicyTags, Release, ScopeGraph, ScopeLink
from situ.scopes.stamp_codec import StampPart, merge_parts, read_parts, write_parts
from tests.oracles.visibility import visible
from tests.scoped import SECOND, Flow, T, project
from tests.scopes import Passed, changed, make_graph, make_tags
from tests.volume import seeds

TEXTS = (
    "type IS Sighting",
    "at.x < 8 [m]",
    "at.x >= 3 [m]",
    "who = 'g1'",
    "type IS Sighting OR type IS situ.situation",
    "NOT type IS GuestAlone",
    "policy = 'presence'",
    "TRUE",
    "FALSE",
)
POLICIES = ("presence", "again", "counted", "unaccompanied-guest")
READERS = ("reader-e", "reader-w")
ALL = (1 << 64) - 1
"""The bits of what passes every filter."""


@pytest.fixture(scope="module")
def declared(tmp_path_factory: pytest.TempPathFactory) -> Deployment:
    folder: Path = tmp_path_factory.mktemp("scoped")
    return project(folder, POLICIES)


def of_sightings(dice: random.Random, graph: ScopeGraph) -> ScopeGraph:
    """The graph with filters about what there is here."""

    def other(before: BoundaryFilter | None) -> BoundaryFilter | None:
        return None if before is None or dice.random() < 0.3 else BoundaryFilter(text=dice.choice(TEXTS))

    def of(dimension: Dimension) -> Dimension:
        scopes = {
            name: replace(
                each,
                output=other(each.output),
                input=other(each.input),
                links=tuple((to, ScopeLink(up=other(link.up), down=other(link.down))) for to, link in each.links),
            )
            for name, each in dimension.scopes.items()
        }
        return replace(dimension, scopes=scopes)

    return replace(graph, dimensions={name: of(each) for name, each in graph.dimensions.items()})


def tagged(dice: random.Random, declared: Deployment, graph: ScopeGraph) -> Deployment:
    """Everybody with tags of the graph, most of which see something of each other; one policy may be released."""
    few = [make_tags(dice, graph) for _ in range(3)]
    everywhere = TagSet.of(rest=True)

    def tags(*more: TagSet) -> TagSet:
        return dice.choice((*few, *more))

    policies = {name: PolicyTags(reads=tags(everywhere, everywhere), publishes=tags(everywhere)) for name in POLICIES}
    dimensions = tuple(sorted(name for name in graph.dimensions if dice.random() < 0.5))
    let_go = Release(policy="counted", dimensions=dimensions, keep=("text", "bindings"), by="boss")
    ads = {id: replace(each, scopes=tags()) for id, each in declared.advertisements.items()}
    sources = {name: replace(each, scopes=tags(everywhere, everywhere)) for name, each in declared.sources.items()}
    scopes = replace(graph, policies=policies, releases=(let_go,) if dimensions else ())
    return replace(declared, scopes=scopes, advertisements=ads, sources=sources)


def walk_in(dice: random.Random, flow: Flow, at: int) -> None:
    for number in range(4):
        who = dice.choice(("g1", "g2", "g3"))
        flow.see(dice.choice(READERS), who, dice.choice((1.0, 5.0, 9.0, 30.0)), time=at + number * SECOND // 4)


def situations(flow: Flow) -> list[tuple[Row, tuple[int, ...]]]:
    """What was told when something was detected, with where its causes are."""
    found = [(row, row.id.rpartition("c-")[2].partition(".")[0]) for row in flow.log.values() if row.type in TOLD]
    return [(row, flow.causes[detection]) for row, detection in found]


TOLD = ("situ.situation.opened", "situ.situation.continued")


def released(flow: Flow, policy: str) -> frozenset[str]:
    return frozenset(
        dimension
        for each in flow.plan.deployment.scopes.releases
        if each.policy == policy
        for dimension in each.dimensions
    )


def leaves(
    flow: Flow, row: Row, positions: tuple[int, ...], let_go: frozenset[str] = frozenset()
) -> Iterator[tuple[Row, frozenset[str]]]:
    """All events inside, those of situations inside included, each with the dimensions in which it was let go."""
    let_go |= released(flow, row.client)
    for position in positions:
        cause = flow.log[position]
        yield cause, let_go
        if cause.type in TOLD:
            inner = flow.causes[cause.id.rpartition("c-")[2].partition(".")[0]]
            yield from leaves(flow, cause, inner, let_go)


@seeds(range(8), range(1_000, 1_400))
def test_who_sees_a_situation_may_see_all_that_it_comes_from(declared: Deployment, seeds: range) -> None:
    seen = hidden = nested = compared = 0
    for seed in seeds:
        dice = random.Random(seed)
        graph = of_sightings(dice, make_graph(dice, most_dimensions=2, most_scopes=5))
        deployment = tagged(dice, declared, graph)
        flow = Flow(deployment)
        walk_in(dice, flow, T)
        flow.wait()
        if dice.random() < 0.5:
            flow.again()
            later = of_sightings(dice, changed(dice, graph)) if dice.random() < 0.3 else changed(dice, graph)
            now = replace(later, policies=deployment.scopes.policies, releases=deployment.scopes.releases)
            if all(name in now.dimensions for each in now.releases for name in each.dimensions):
                flow.use(replace(deployment, scopes=now, numbers=flow.plan.deployment.numbers), 2)
                walk_in(dice, flow, T + 20 * SECOND)
                flow.wait(since=T + 20 * SECOND)
        seeing = flow.plan.seeing
        assert seeing is not None
        consumers = [make_tags(dice, seeing.graph) for _ in range(4)] + [TagSet.of(rest=True), TagSet.of()]
        for row, positions in situations(flow):
            inside = list(leaves(flow, row, positions))
            look = seeing.look(row)
            for consumer in consumers:
                sees = seeing.sees(look, consumer)
                seen, hidden = seen + sees, hidden + (not sees)
                if sees:
                    assert seeing.sees((*look[:4], ""), consumer), "its own content"
                    for each, let_go in inside:
                        assert let_go or flow.sees(each, consumer), (seed, row.client, each.type)
                        assert seeing._visible(
                            each.tags, each.epoch, each.bits, seeing.look(each)[3], consumer, let_go
                        ), (seed, row.client)
                        nested += each.type in TOLD
            if released(flow, row.client):
                assert json.loads(row.data)["causes"] == []
        together = {part for row, _ in situations(flow) for part in read_parts(row.parts)}
        fewer, gone = merge_parts(together, most=1)
        whole, merged = write_parts(together), write_parts(fewer)
        tags = flow.plan.deployment.numbers.of(next(iter(deployment.advertisements.values())).scopes)
        for consumer in consumers:
            looks = [(tags, seeing.epoch, ALL, ALL, each) for each in (whole, merged)]
            sees, sees_merged = (seeing.sees(each, consumer) for each in looks)
            assert sees or not sees_merged, "merging never widens"
            compared += gone > 0 and sees
    assert min(seen, hidden, nested) > 2 * len(seeds)
    assert compared > 0


@seeds(range(20), range(1_000, 2_000))
def test_absence_and_rows_of_tables_are_seen_where_they_are_whatever_the_filters_say(
    declared: Deployment, seeds: range
) -> None:
    verdicts = []
    for seed in seeds:
        dice = random.Random(seed)
        graph = of_sightings(dice, make_graph(dice, most_dimensions=2, most_scopes=5))
        deployment = tagged(dice, declared, graph)
        flow = Flow(deployment)
        assert flow.plan.meeting is not None
        seeing, scopes = flow.plan.seeing, deployment.scopes
        assert seeing is not None
        reads = scopes.tags_of("unaccompanied-guest").reads
        ads = {each.scopes for each in deployment.advertisements.values() if each.type == "Sighting"}
        nodes = {each.text: seeing.filters.node(each.text, "Sighting") for each in graph.filters()}
        perhaps = Passed(frozenset(text for text, node in nodes.items() if node != FALSE))
        surely = Passed(frozenset(text for text, node in nodes.items() if node == TRUE))
        could = {each for each in ads if visible(graph, perhaps, each, reads)}
        rows = {each.scopes for each in deployment.sources.values()}
        blind = not all(visible(graph, Passed(frozenset()), each, reads) for each in rows)
        assert ("unaccompanied-guest" in flow.plan.meeting.blind) == blind, seed
        always = write_parts(flow.plan.meeting.always("unaccompanied-guest"))
        anybody = StampPart(flow.plan.deployment.numbers.of(next(iter(rows))), 1, 0)
        for consumer in [make_tags(dice, graph) for _ in range(6)]:
            wanted = all(visible(graph, surely, each, consumer) for each in could) and all(
                visible(graph, Passed(frozenset()), each, consumer) for each in rows
            )
            found = seeing.sees((anybody.tags, 1, 0, 0, always), consumer)
            assert found == wanted, (seed, consumer)
            verdicts.append(found)
    assert 0.02 < sum(verdicts) / len(verdicts) < 0.9
