"""Routing among scopes, on generated graphs, tags, subscriptions and events: all get what they want and may see."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence

import pytest

from situ.event.instants import microseconds
from situ.event.lines import bare_line, decode_line, encode_row, encode_rows, stamped_line, stamped_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.explanation import RootEvent
from situ.scopes.graph import ScopeGraph
from situ.stages.plan import Plan, compile_plan
from tests.oracles.routing import NaiveRouting
from tests.oracles.visibility import visible
from tests.scopes import TYPES, changed, make_event, make_graph, make_tags
from tests.volume import seeds

WHERES = {
    "Alarm": ("", "severity >= 4", "vendor = 'acme'"),
    "Fire": ("", "hall = 'a'", "severity > 0"),
    "State": ("", "load > 0.5"),
    "Note": ("", "sampled"),
}


def make_deployment(dice: random.Random, graph: ScopeGraph, tags: Sequence[TagSet]) -> Deployment:
    """Publishers with two advertisements each, and subscribers with durable and volatile subscriptions."""
    ads = {}
    for number in range(4):
        for name in ("a", "b"):
            each = Advertisement(
                client=f"p{number}", name=name, type=dice.choice(("Alarm", "State", "Note")), scopes=dice.choice(tags)
            )
            ads[each.id] = each
    subs = {}
    for number in range(12):
        type = dice.choice(list(WHERES))
        sub = Subscription(
            client=f"p{dice.randrange(4)}" if dice.random() < 0.2 else f"s{dice.randrange(4)}",
            name=f"n{number}",
            types=(type,),
            where=dice.choice(WHERES[type]),
            durable=dice.random() < 0.5,
            scopes=dice.choice(tags),
        )
        subs[sub.id] = sub
    clients = {
        name: ClientDeclaration(name=name) for name in sorted({each.client for each in (*ads.values(), *subs.values())})
    }
    return Deployment(types=TYPES, scopes=graph, clients=clients, advertisements=ads, subscriptions=subs)


def make_row(dice: random.Random, number: int, deployment: Deployment) -> tuple[Row, RootEvent] | None:
    """An event under some advertisement that it may be published under."""
    event = make_event(dice)
    fitting = [
        each
        for each in deployment.advertisements.values()
        if each.type == event.type or (each.type, event.type) == ("Alarm", "Fire")
    ]
    if not fitting:
        return None
    ad = dice.choice(fitting)
    time = microseconds(event.envelope["time"])
    row = Row(
        pos=number + 1,
        client=ad.client,
        incarnation=1,
        seq=number + 1,
        context="root",
        recv=time,
        id=event.envelope["id"],
        source=event.envelope["source"],
        type=event.type,
        time=time,
        ad=ad.id,
        confidence=event.envelope.get("confidence"),
        ext="",
        data=json.dumps(dict(event.data), separators=(",", ":")).encode(),
    )
    return row, event


def got(plan: Plan, rows: Sequence[Row], *, one_by_one: bool = False) -> set[tuple[int, str]]:
    """Who gets which rows, without the group's copies of a client's own."""
    groups, found = plan.routing.groups, set()
    together = [(place, plan.routing.route_one(row)) for place, row in enumerate(rows)] if one_by_one else []
    for base, routed in together or [(0, plan.routing.route(rows))]:
        found |= {(base + place, id) for place, group in routed.durable for id in groups[group].subscriptions}
        found |= {(base + place, f"{who}/{name}") for place, who, names in routed.live for name in names.split(",")}
    return {(place, id) for place, id in found if id.partition("/")[0] != rows[place].client}


def expected(
    deployment: Deployment, graphs: Sequence[ScopeGraph], rows: Sequence[tuple[Row, RootEvent]]
) -> set[tuple[int, str]]:
    """By the rules alone: who wants an event, and sees it in each of these graphs."""
    wanted = NaiveRouting(types=TYPES, functions={}, subscriptions=deployment.subscriptions)
    return {
        (place, id)
        for place, (row, event) in enumerate(rows)
        for id in wanted.match(row)
        if id.partition("/")[0] != row.client
        and all(
            visible(graph, event, deployment.advertisements[row.ad].scopes, deployment.subscriptions[id].scopes)
            for graph in graphs
        )
    }


def stamped(plan: Plan, made: Sequence[tuple[Row, RootEvent]]) -> list[Row]:
    rows = [row for row in plan.stamp.each([row for row, _ in made]) if isinstance(row, Row)]
    assert len(rows) == len(made)
    assert plan.seeing is not None
    plan.seeing.stamp(rows)
    return rows


@seeds(range(15), range(1_000, 3_000))
def test_everybody_gets_what_is_wanted_and_visible(seeds: range) -> None:
    share = []
    for seed in seeds:
        dice = random.Random(seed)
        graph = make_graph(dice)
        deployment = make_deployment(dice, graph, [make_tags(dice, graph) for _ in range(6)])
        plan = compile_plan(deployment)
        made = [each for number in range(30) if (each := make_row(dice, number, deployment)) is not None]
        rows = stamped(plan, made)
        wanted = expected(deployment, [graph], made)
        assert got(plan, rows) == wanted, seed
        assert got(plan, rows, one_by_one=True) == wanted, seed
        assert got(plan, rows[::-1]) == {(len(rows) - 1 - place, id) for place, id in wanted}, (
            "neighbours change nothing"
        )
        share.append(len(wanted) / max(1, len(expected(deployment, [], made))))
    assert 0.05 < sum(share) / len(share) < 0.95


@seeds(range(10), range(1_000, 3_000))
def test_what_was_stamped_before_is_handed_over_if_it_is_visible_in_both_epochs(seeds: range) -> None:
    reached_back = kept = 0
    for seed in seeds:
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=3)
        tags = [make_tags(dice, graph) for _ in range(5)]
        deployment = make_deployment(dice, graph, tags)
        graphs: dict[int, ScopeGraph] = {}
        plans: dict[int, Plan] = {}
        made: dict[int, list[tuple[Row, RootEvent]]] = {}
        for epoch in (1, 2, 3):
            graphs[epoch] = graph
            plans[epoch] = compile_plan(replace(deployment, scopes=graph, epoch=epoch), plans.get(epoch - 1))
            made[epoch] = [each for number in range(12) if (each := make_row(dice, number, deployment)) is not None]
            lines = encode_rows(stamped(plans[epoch], made[epoch]))
            rows = [row for row, _ in made[epoch]]
            again = [decode_line(line) for line in stamped_lines(rows, lines)]  # as it is read from the log later
            made[epoch] = [(row, event) for row, (_, event) in zip(again, made[epoch], strict=True)]
            for _ in range(dice.choice((1, 4))):
                graph = changed(dice, graph)
        fresh = compile_plan(plans[3].deployment)
        assert fresh.seeing is not None
        fresh.seeing.load = graphs.get
        for then in (1, 2, 3):
            rows = [row for row, _ in made[then]]
            wanted = expected(deployment, [graphs[then], graphs[3]], made[then])
            assert got(plans[3], rows) == wanted, (seed, then)
            assert got(fresh, rows) == wanted, (seed, then)
            reached_back += len(expected(deployment, [graphs[3]], made[then]) - wanted)
            kept += len(wanted)
    assert reached_back > 0, "something was opened, and old events stayed where they were"
    assert kept > 0


@pytest.mark.parametrize("seed", [*range(8), *(pytest.param(n, marks=pytest.mark.soak) for n in range(8, 30))])
def test_stamps_stand_behind_a_line_and_are_taken_off_again(seed: int) -> None:
    dice = random.Random(seed)
    graph = make_graph(dice)
    deployment = make_deployment(dice, graph, [make_tags(dice, graph) for _ in range(3)])
    made = [each for number in range(20) if (each := make_row(dice, number, deployment)) is not None]
    plain = [encode_row(row) for row, _ in made]
    for row, line in zip(stamped(compile_plan(deployment), made), plain, strict=True):
        row.parts = dice.choice(("", "3.41.1f;4.40.0.geography+network", ',"situtags":1}'))
        logged = stamped_line(row, line)
        again = decode_line(logged)
        assert again == row
        assert bare_line(again, logged) == line == encode_row(again)
        assert b'"situtags"' not in line
