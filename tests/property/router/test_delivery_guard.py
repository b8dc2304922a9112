"""Queues among scopes, on generated graphs and changes: what is handed over is what both epochs let be seen."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Iterable, Sequence

from situ.bus.memory import MemoryBus
from situ.client.events import read_events
from situ.event.lines import encode_rows
from situ.event.message import Message, StoredMessage
from situ.event.row import Row
from situ.event.subjects import DEPLOYMENTS, BusNames, consumer_of
from situ.lang.records import replace
from situ.model import Deployment
from situ.model.deployment import encode_scopes, scopes_name
from situ.router.delivery_guard import DeliveryGuard
from situ.routing.delivery_groups import group_of
from situ.scopes.explanation import RootEvent
from situ.scopes.graph import ScopeGraph
from situ.settings import Settings
from situ.stages.deliver import interpret_out, pack, route
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import read_lines
from situ.stages.shape import ShapedDeliveries
from tests.oracles.visibility import visible
from tests.property.stages.test_visibility import expected, make_deployment, make_row, stamped
from tests.scopes import changed, make_graph, make_tags
from tests.volume import seeds

EPOCHS = (1, 2, 3, 4)


def queued(plan: Plan, count: int, dice: random.Random) -> tuple[list[Message], dict[str, RootEvent]]:
    """Messages that are put into queues now, and the events that they hold."""
    made = [each for number in range(count) if (each := make_row(dice, number, plan.deployment)) is not None]
    if not made:
        return [], {}
    rows = stamped(plan, made)
    events: dict[str, RootEvent] = {}
    for place, (row, (_, event)) in enumerate(zip(rows, made, strict=True)):
        row.incarnation, row.seq = plan.version, place + 1
        row.id = f"{plan.version}-{place}"
        events[row.id] = event
    worded = interpret_out(ShapedDeliveries(rows=rows, lines=encode_rows(rows), routed=route(rows, plan)), plan)
    return pack(rows, worded, plan).stored, {row.id: events[row.id] for row in rows}


def ids(body: bytes) -> list[str]:
    rows = read_events(body)
    assert b'"situtags"' not in body, "no client gets to see a stamp"
    assert json.loads(body) is not None
    return [row.id for row in rows]


async def hand_over(seed: int) -> tuple[int, int]:
    """How many were handed over, and how many withheld that were in a queue."""
    dice = random.Random(seed)
    graph = make_graph(dice, most_dimensions=3)
    tags = [make_tags(dice, graph) for _ in range(5)]
    declared = make_deployment(dice, graph, tags)
    durable = {id: replace(each, durable=True) for id, each in declared.subscriptions.items()}
    declared = replace(declared, subscriptions=durable)
    graphs: dict[int, ScopeGraph] = {}
    plan: Plan | None = None
    waiting: list[tuple[int, Message, dict[str, RootEvent]]] = []
    handed = withheld = 0
    async with MemoryBus() as bus:
        await bus.prepare(Settings(name="test"))
        handing = DeliveryGuard(bus)
        for epoch in EPOCHS:
            graphs[epoch] = graph
            plan = compile_plan(replace(declared, scopes=graph, epoch=epoch, version=epoch), plan)
            await bus.put_object(DEPLOYMENTS, scopes_name(epoch), encode_scopes(graph))
            messages, events = queued(plan, 15, dice)
            waiting += [(epoch, message, events) for message in messages]
            handing.adopt(plan.deployment)
            for then, message, held in waiting:
                for id in readers(plan.deployment, message):
                    body = await handing.decide(
                        consumer_of(id),
                        StoredMessage(seq=1, subject=message.subject, body=message.body, headers=message.headers, at=0),
                    )
                    assert body is not None
                    rows, _ = read_lines(message)
                    wanted = [
                        row.id
                        for row in rows
                        if all(
                            visible(
                                graphs[each], held[row.id], declared.advertisements[row.ad].scopes, durable[id].scopes
                            )
                            for each in {then, epoch}
                        )
                    ]
                    assert ids(body) == wanted, (seed, then, epoch, id)
                    handed += len(wanted)
                    withheld += len(rows) - len(wanted)
            for _ in range(dice.choice((1, 3))):
                graph = changed(dice, graph)
        assert handing.withheld == withheld
    return handed, withheld


def readers(deployment: Deployment, message: Message) -> Iterable[str]:
    group = BusNames(deployment.settings.zone).group_of(message.subject)
    return [id for id, each in deployment.subscriptions.items() if group_of(each) == group]


@seeds(range(10), range(1_000, 3_000))
def test_what_waits_is_handed_over_if_it_is_visible_in_both_epochs(seeds: range) -> None:
    async def main() -> tuple[int, int]:
        found = [await hand_over(seed) for seed in seeds]
        return sum(each for each, _ in found), sum(each for _, each in found)

    handed, withheld = asyncio.run(main())
    assert handed > 10 * len(seeds)
    assert withheld > len(seeds), "scopes narrowed, and what waited was withheld"


@seeds(range(15), range(1_000, 3_000))
def test_what_is_routed_later_waits_if_it_was_visible_when_it_was_stamped(seeds: range) -> None:
    """Whoever hands it over decides by the scopes in force then. Who gets it at once must see it now."""
    waits = hidden = 0
    for seed in seeds:
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=3)
        tags = [make_tags(dice, graph) for _ in range(5)]
        deployment = make_deployment(dice, graph, tags)
        before = compile_plan(replace(deployment, scopes=graph, epoch=1))
        made = [each for number in range(15) if (each := make_row(dice, number, deployment)) is not None]
        rows = stamped(before, made)
        newer = changed(dice, changed(dice, graph))
        plan = compile_plan(replace(deployment, scopes=newer, epoch=2), before)
        routed = plan.routing.route(rows, queued=True)
        then = expected(deployment, [graph], made)
        both = expected(deployment, [graph, newer], made)
        durable = {id for id, each in deployment.subscriptions.items() if each.durable}
        groups = plan.routing.groups
        got = {(place, id) for place, group in routed.durable for id in groups[group].subscriptions}
        assert {each for each in got if _is_other(each, rows)} == {each for each in then if each[1] in durable}, seed
        live = {(place, f"{who}/{name}") for place, who, names in routed.live for name in names.split(",")}
        assert live == {each for each in both if each[1] not in durable}, seed
        one = [(place, plan.routing.route_one(row, queued=True)) for place, row in enumerate(rows)]
        assert [(place, group) for place, each in one for _, group in each.durable] == routed.durable, seed
        waits += len(got)
        hidden += len({each for each in then - both if each[1] in durable})
    assert waits > len(seeds)
    assert hidden > 0, "something waits that is hidden now"


def _is_other(delivery: tuple[int, str], rows: Sequence[Row]) -> bool:
    place, id = delivery
    return id.partition("/")[0] != rows[place].client
