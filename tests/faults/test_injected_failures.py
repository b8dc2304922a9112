"""Every handler is made to raise once, for one event among others: the others go on, the one is accounted for.

Which handlers there are is read from the code: one that is new and not in these lists fails a test.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from situ.event.lines import decode_line
from situ.event.message import (
    CLIENT,
    CONTEXT,
    COUNT,
    KEY,
    RECEIVED,
    EventKey,
    Message,
    StoredMessage,
    join_lines,
    split_lines,
)
from situ.project.check import check_folder
from situ.spark.dispatch import DispatchTask
from situ.spark.partitions import decode
from situ.stages.plan import Plan, compile_plan
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.faults.injected import MARK, Injection, functions_of, inject
from tests.project_files import write

TYPES = """
version: 1
events:
  Order: {n: long, text: string, share: double}
"""
SHOP = """
version: 1
context: shop
events:
  Sale: {n: long, text: string, share: double}
maps: [in: Sale -> Order, out: Order -> Sale]
rules: {in: [Sale.share -> halved], out: [Order.share -> doubled]}
functions: {halved: double -> double = value / 2, doubled: double -> double = value * 2}
"""
DESK = """
version: 1
context: desk
events:
  Wanted: {n: long, text: string, share: double}
maps: [out: Order -> Wanted]
rules: {out: [Order.share -> doubled]}
functions: {doubled: double -> double = value * 2}
"""
CLIENTS = """
  shop: {context: shop, advertisements: {sales: {type: Sale, where: "share >= 0"}}}
  desk: {context: desk, subscriptions: {all: {types: [Wanted], where: "share >= 0", durable: true}}}
  hall: {subscriptions: {all: {types: [Order], where: "upper(text) <> 'NONE'", durable: true}}}
"""
FILES = {"types/all.yaml": TYPES, "contexts/shop.yaml": SHOP, "contexts/desk.yaml": DESK}
MANY, MARKED = 12, 5
OTHERS = [number for number in range(MANY) if number != MARKED]
WHO = ("desk", "hall")

SLOWLY = "situ.stages.decode:EventDecoder._rows"
"""The fast way of reading: what it fails on is converted slowly, too."""
STAGES = [
    "situ.stages.stamp:stamp",
    "situ.stages.deliver:route_and_shape",
    "situ.stages.deliver:route",
    "situ.stages.deliver:interpret_out",
]
"""Of both engines."""
ON_EDGE = [
    "situ.stages.root_log:write",
    "situ.stages.root_log:read_lines",
    "situ.stages.root_log:dead_letters",
    "situ.stages.deliver:deliver",
    "situ.stages.deliver:pack",
]
ON_SPARK = ["situ.spark.partitions:decode", "situ.spark.partitions:take_events"]
INSIDE_EDGE = ["situ.stages.root_log:_accept", "situ.event.lines:place", "situ.event.subjects:pack_deliveries"]
"""What stages and the dispatcher call on the edge alone."""
CORE = [
    "situ.stages.decode:EventDecoder._rows",
    "situ.stages.decode:EventDecoder._rows situ.stages.decode:EventDecoder._judge",
    "situ.stages.interpret:Interpretation.into_root",
    "situ.stages.interpret:Interpretation.worded",
    "situ.event.subjects:pack_root",
    "situ.event.lines:encode_rows",
    "situ.event.lines:encode_rows situ.event.lines:encode_row",
    "situ.stages.interpret:Interpretation._structs_into_root",
    f"{SLOWLY} situ.stages.interpret:Interpretation._into_root",
    "situ.stages.stamp:AdvertisementFilters.kept",
    f"{SLOWLY} situ.contexts.transform.converter:Converter.text",
    f"{SLOWLY} situ.stages.interpret_out:DeliveryConversion._line",
    f"{SLOWLY} situ.stages.interpret:Interpretation._in_terms",
    "situ.stages.stamp:AdvertisementCheck.each",
    "situ.routing.routing_table:RoutingTable._route",
    "situ.routing.routing_table:RoutingTable._route situ.routing.routing_table:RoutingTable._route_one",
    "situ.routing.filter:Filter.test",
]
"""What stages call for each event, or for many: decoders, expressions, functions."""
EDGE_PLACES = (*STAGES, *ON_EDGE, *INSIDE_EDGE, *CORE)
ON_BAD = ("dead_letters",)
"""Those that are only reached by events that are dead letters anyhow."""
NOT_BY_EVENTS = {
    "situ.spark.partitions:take_events": "is for jobs that decode in their own way, and gives what was sent",
    "situ.spark.partitions:decode": "goes through all messages of a task; what it does with one is in it",
    "situ.stages.root_log:read_lines": "reads lines that this process has written",
}
STAGE_MODULES = (
    "situ.stages.plan",
    "situ.stages.stamp",
    "situ.stages.root_log",
    "situ.stages.deliver",
    "situ.spark.partitions",
    "situ.spark.dispatch",
)
NO_STAGES = {
    "situ.stages.plan:compile_plan": "makes the plan, before there are events",
    "situ.stages.root_log:ingest": "is accept and pack",
    "situ.stages.root_log:accept": "tells events that fail from others: _accept",
    "situ.stages.root_log:accept_rows": "likewise",
    "situ.stages.root_log:pack": "tells events that fail from others: pack_root",
    "situ.stages.root_log:upgrade_message": "reads what an earlier deployment has written",
    "situ.stages.root_log:origin_of": "is a part of decode on Spark, and looks at no event",
    "situ.stages.root_log:ingress_rows": "is a part of decode on Spark: INGRESS",
    "situ.stages.root_log:dead_letter_line": "is a part of dead_letters",
    "situ.stages.root_log:refused": "is for records of topics that are no events, and fails with what reads them",
    "situ.spark.partitions:fitting": "decides how much of the log is read, and looks at no event",
    "situ.spark.partitions:is_shaped": "likewise",
    "situ.spark.partitions:partitions_of_batch": "likewise",
    "situ.spark.partitions:part_of_batch": "likewise",
    "situ.spark.partitions:partitions_of_range": "likewise",
    "situ.spark.partitions:read_partition": "is what a task does: test_injected_spark.py",
    "situ.spark.dispatch:publish": "likewise",
    "situ.spark.dispatch:dispatched": "likewise",
    "situ.spark.dispatch:dispatch_part": "likewise",
    "situ.spark.dispatch:dispatching": "likewise",
}
"""What stands beside the stages."""
WHOLE_MESSAGES = ("place",)
"""Those that a message passes as a whole: all of its events are dead letters then, and those of others go on."""


def test_every_function_of_a_stage_is_tried() -> None:
    there = {f"{module}:{name}" for module in STAGE_MODULES for name in functions_of(module)}
    tried = {*STAGES, *ON_EDGE, *ON_SPARK}
    assert there - NO_STAGES.keys() == tried, "a stage has a function that no failure is put into, or has it no more"
    assert NO_STAGES.keys() <= there, "these are no more"


def sale(turn: int, number: int, text: str) -> dict[str, Any]:
    return {"n": 100 * turn + number, "text": text, "share": 4}


@dataclass
class Outcome:
    raised: int
    delivered: dict[str, list[int]]
    letters: list[dict[str, Any]]
    failures: Counter[str]
    alive: dict[str, int] = field(default_factory=dict)
    """How many of the events behind them were delivered."""


# ── on the edge ──


async def tried_on_edge(zone: EdgeZone, place: str, turn: int) -> Outcome:
    """Publish some events, one of them marked, while a handler raises for it; then some more."""
    assert zone.engine is not None
    engine = zone.engine
    before, failed = len(await zone.messages(zone.names.dead_stream)), Counter(engine.counts.failures)
    bad = place.endswith(ON_BAD)
    with pytest.MonkeyPatch.context() as patch:
        injection = [inject(patch, each) for each in place.split()][-1]
        async with zone.connect("shop") as shop:
            for number in range(MANY):
                data = sale(turn, number, MARK if number == MARKED else "x")
                if bad and number == MARKED:
                    data["share"] = "none"
                await shop.publish_event("Sale", data)
            async with asyncio.timeout(30):
                await shop.flush()
            await eventually(lambda: engine._logged.empty(), within=30)
            await engine._dispatcher.settle(most=0)
    async with zone.connect("shop") as shop:
        for number in range(50, 50 + MANY):
            await (await shop.publish_event("Sale", sale(turn, number, "x"))).stored
        await eventually(lambda: engine._logged.empty(), within=30)
        await engine._dispatcher.settle(most=0)
    delivered = {who: [each - 100 * turn for each in await got(zone, who) if each // 100 == turn] for who in WHO}
    letters = [
        json.loads(line)["data"]
        for message in (await zone.messages(zone.names.dead_stream))[before:]
        for line in split_lines(message.body)
    ]
    return Outcome(
        raised=injection.raised,
        delivered={who: sorted(each for each in some if each < 50) for who, some in delivered.items()},
        letters=letters,
        failures=Counter(engine.counts.failures) - failed,
        alive={who: sum(each >= 50 for each in some) for who, some in delivered.items()},
    )


async def got(zone: EdgeZone, who: str) -> list[int]:
    """The numbers of all that waits for a subscriber."""
    group = next(each.groups[0] for each in await zone.bus.consumers() if each.name == f"{who}_all")
    subject = zone.names.out(group)
    found = [m for m in await zone.messages(zone.names.out_stream) if m.subject == subject]
    return [json.loads(line)["data"]["n"] for message in found for line in split_lines(message.body)]


@pytest.fixture(scope="module")
def on_edge(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    async def main() -> dict[str, Outcome]:
        found = {}
        async with edge_zone(tmp_path_factory.mktemp("edge"), clients=CLIENTS, more=FILES) as zone:
            for turn, place in enumerate(EDGE_PLACES, 1):
                found[place] = await tried_on_edge(zone, place, turn)
        return found

    return asyncio.run(main())


def check(outcome: Outcome, place: str) -> None:
    """The others were delivered, the one is accounted for, and what came behind went on."""
    assert outcome.raised, "nothing was tried: the event did not come by there"
    if not place.endswith(WHOLE_MESSAGES):
        for who in WHO:
            assert set(outcome.delivered[who]) >= set(OTHERS), (who, outcome.delivered)
    told = [each for each in outcome.letters if each["key"].endswith(f".{MARKED + 1}")]
    everywhere = all(MARKED in outcome.delivered[who] for who in WHO)
    assert everywhere or told or outcome.failures, "an event is gone, and nobody is told"
    if told and not place.endswith(ON_BAD):
        assert {each["code"] for each in told} == {"E705"}
        assert all("Unforeseen" in each["message"] and "put in by" not in each["message"] for each in told)


@pytest.mark.parametrize("place", [each for each in EDGE_PLACES if each not in NOT_BY_EVENTS])
def test_on_the_edge_one_event_fails_and_the_others_go_on(place: str, on_edge: dict[str, Outcome]) -> None:
    check(on_edge[place], place)
    assert on_edge[place].alive == dict.fromkeys(WHO, MANY)


# ── on Spark: what a task does with its messages ──


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("spark")
    settings = {"situ.yaml": "version: 1\nname: plant\n"}
    write(folder, {**settings, "clients/all.yaml": f"version: 1\nclients:\n{CLIENTS}", **FILES})
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.problems
    return compile_plan(checked.deployment)


def task(plan: Plan, bodies: Sequence[bytes]) -> tuple[list[Message], DispatchTask]:
    """What one task of a batch publishes for these messages of one client."""

    def messages() -> Iterator[StoredMessage]:
        seq = 1
        for place, body in enumerate(bodies, 1):
            count = len(split_lines(body))
            headers = {CLIENT: "shop", CONTEXT: "shop@1", RECEIVED: "1", COUNT: str(count)}
            headers[KEY] = str(EventKey("shop", 1, seq))
            seq += count
            yield StoredMessage(seq=place, subject="raw", body=body, headers=headers, at=1)

    dispatch = DispatchTask(plan, 1)
    rows = decode(messages(), plan, {}, lambda version: None, bare=True)
    return list(dispatch.messages(rows)), dispatch


def line(number: int, text: str, share: object = 4) -> bytes:
    data = {"n": number, "text": text, "share": share}
    return json.dumps({"specversion": "1.0", "id": str(number), "type": "Sale", "data": data}).encode()


INGRESS = "situ.stages.root_log:_stamped_rows"
"""What Spark, and the edge engine that follows it, do with a message that waits to be taken in."""


@pytest.mark.parametrize(
    "place", [INGRESS, *(each for each in (*STAGES, *ON_SPARK, *CORE) if each not in NOT_BY_EVENTS)]
)
def test_on_spark_one_event_fails_and_the_others_go_on(place: str, plan: Plan) -> None:
    bodies = [
        join_lines([line(number, MARK if number == MARKED else "x") for number in range(MANY)]),
        join_lines([line(number, "x") for number in range(50, 50 + MANY)]),
    ]
    # The plan was compiled for other tests, too: what is remembered by type must not hide the handler.
    plan.stamp._known.clear()
    with pytest.MonkeyPatch.context() as patch:
        injection: Injection = [inject(patch, each) for each in place.split()][-1]
        published, dispatch = task(plan, bodies)
    groups = {each.subscriptions[0].partition("/")[0]: each.id for each in plan.routing.groups.values()}
    delivered = {
        who: sorted(
            json.loads(decode_line(each).data)["n"]
            for message in published
            if message.subject == f"situ.main.out.{groups[who]}"
            for each in split_lines(message.body)
        )
        for who in WHO
    }
    letters = [
        json.loads(each)["data"]
        for message in published
        if message.subject.startswith("situ.main.dead.")
        for each in split_lines(message.body)
    ]
    counts = dispatch.counts()
    outcome = Outcome(
        raised=injection.raised,
        delivered={who: [each for each in some if each < 50] for who, some in delivered.items()},
        letters=letters,
        failures=Counter(counts.failures),
    )
    check(outcome, place)
    assert all(set(some) >= set(range(50, 50 + MANY)) for some in delivered.values())
    assert counts.dead.get("E705", 0) == len(letters)
    if letters:
        assert any("Unforeseen" in each for each in counts.traces), "the traceback is for the log of the run"


# ── what a client can do without a mistake of ours ──


def letters_of(published: Sequence[Message]) -> list[str]:
    found = (each for each in published if each.subject.startswith("situ.main.dead."))
    return [json.loads(line)["data"]["code"] for message in found for line in split_lines(message.body)]


@pytest.mark.parametrize("depth", [100, 900, 20_000])
def test_on_spark_a_deep_event_is_a_dead_letter_and_its_neighbours_are_not(depth: int, plan: Plan) -> None:
    deep = line(1, "x")[:-2] + b',"deep":' + b"[" * depth + b"]" * depth + b"}}"
    published, dispatch = task(plan, [join_lines([line(0, "x"), deep, line(2, "x")])])
    assert letters_of(published) == ["E704"]
    assert dispatch.counts().types == {"Order": 2}


def test_a_message_of_very_many_events_is_one_dead_letter(plan: Plan) -> None:
    """One letter for each of them held up everybody for half a minute, and made an answer that no bus takes."""
    published, _ = task(plan, [b"[" + b",".join([b"{}"] * 60_000) + b"]"])
    assert letters_of(published) == ["E704"]


def test_what_is_longer_in_the_log_than_it_was_sent_fits_the_bus(plan: Plan) -> None:
    """As many short events as fit into a message made one of the log that the bus refused, and again at each try."""
    body = join_lines([line(number, "x") for number in range(9_000)])
    published, _ = task(plan, [body])
    root = [each for each in published if each.subject.startswith("situ.main.root.")]
    assert len(root) > 1
    assert max(len(each.body) for each in published) < 1024 * 1024 + 1000
    assert sum(len(split_lines(each.body)) for each in root) == 9_000
    assert len({each.id for each in root}) == len(root)
