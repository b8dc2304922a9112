"""One event in a thousand that cannot be converted: it is a dead letter that says where, and all others go on."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situ.event.message import split_lines
from situ.routing.model import Subscription
from situ.spark.engine import SparkEngine
from tests.edge_zone import EdgeZone, edge_zone, eventually
from tests.integration.spark.test_engine import drained, wait_for
from tests.zone import event, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TYPES = """
version: 1
types:
  Parts(long): {}
  Line: {item: string, share: double}
events:
  Order: {n: long, lines: [Line]}
"""
SHOP = """
version: 1
context: shop
types:
  Part: {item: string, share: Parts}
events:
  Sale: {n: long, lines: [Part]}
maps: [in: Sale -> Order]
rules: {in: [Parts -> inverted]}
functions: {inverted: Parts -> double = 1 / value}
"""
DESK = """
version: 1
context: desk
events:
  Wanted: {n: long, lines: [Line]}
maps: [out: Order -> Wanted]
rules: {out: [Order.lines.share -> times]}
functions: {times: double -> double = 1 / value}
"""
CLIENTS = """
  shop-1: {context: shop, advertisements: {sales: {type: Sale}}}
  shop-2: {context: shop, advertisements: {sales: {type: Sale}}}
  till: {advertisements: {orders: {type: Order}}}
  desk: {context: desk}
"""
CONTEXTS = {"contexts/shop.yaml": SHOP, "contexts/desk.yaml": DESK}
COUNT, POISONED, A_MESSAGE = 1000, 617, 50
SHARES = {"shop-1": 4, "shop-2": 4, "till": 0.25}
TYPE = {"shop-1": "Sale", "shop-2": "Sale", "till": "Order"}
POISON = {
    "shop-1": {"item": "b", "share": 0},  # no function divides by it
    "shop-2": [{"item": "b", "share": 4}],  # a list where one line should be
    "till": {"item": "b", "share": 0.0},  # an order like any other, but not at the desk
}
EVERYBODY = list(range(COUNT))
OTHERS = [number for number in EVERYBODY if number != POISONED]
LETTERS = {  # by client: code, stage, place, context
    "shop-1": ("INT704", "interpret", "lines[1].share", "shop@1"),
    "shop-2": ("INT703", "decode", "lines[1]", "shop@1"),
    "till": ("INT704", "interpret-out", "lines[1].share", "desk@1"),
}


def data(client: str, number: int) -> dict[str, Any]:
    good = {"item": "a", "share": SHARES[client]}
    return {"n": number, "lines": [good, POISON[client] if number == POISONED else good, good]}


def check_letters(letters: list[dict[str, Any]]) -> None:
    found = {letter["key"].partition(".")[0]: letter for letter in letters}
    assert len(letters) == len(found) == len(LETTERS)
    for client, (code, stage, path, context) in LETTERS.items():
        letter = found[client]
        assert (letter["code"], letter["stage"], letter["path"]) == (code, stage, path), letter
        assert letter["context"].startswith(context), letter
        assert f'"n":{POISONED},' in letter["original"].replace(" ", "")
    assert "`inverted` failed, float division by zero, share is 0" in found["shop-1"]["message"]
    assert all(bool(letter.get("plan")) == (letter["code"] == "INT704") for letter in letters)
    assert "`Parts -> inverted`" in found["shop-1"]["hint"]
    assert "`times` failed" in found["till"]["message"]


def check_delivered(got: dict[str, dict[str, list[dict[str, Any]]]]) -> None:
    """By subscriber and by who published it."""
    numbers = {
        who: {client: [each["n"] for each in some] for client, some in theirs.items()} for who, theirs in got.items()
    }
    assert numbers == {
        "hall": {"shop-1": OTHERS, "shop-2": OTHERS, "till": EVERYBODY},
        "desk": {"shop-1": OTHERS, "shop-2": OTHERS, "till": OTHERS},
    }
    for client in SHARES:
        for who, share in (("hall", 0.25), ("desk", 4.0)):
            good = (each for each in got[who][client] if each["n"] != POISONED)
            assert {line["share"] for each in good for line in each["lines"]} == {share}


def test_on_the_edge(tmp_path: Path) -> None:
    got: dict[str, dict[str, list[dict[str, Any]]]] = {
        who: {client: [] for client in SHARES} for who in ("hall", "desk")
    }

    async def work(at: EdgeZone) -> None:
        async with at.connect("hall") as hall, at.connect("desk") as desk:
            for who, node, type in (("hall", hall, "Order"), ("desk", desk, "Wanted")):
                all_of_them = await node.register_for_events(type, durable="all")
                await node.add_listener(
                    all_of_them, lambda event, who=who: got[who][event.source.partition("/")[0]].append(event.data)
                )
            for client in SHARES:
                async with at.connect(client) as node:
                    for number in EVERYBODY:
                        await node.publish_event(TYPE[client], data(client, number))
                    await node.flush()
            await eventually(
                lambda: sum(len(some) for theirs in got.values() for some in theirs.values()) >= 6 * COUNT - 5
            )
            messages = await at.messages(at.names.dead_stream)
            check_letters([json.loads(line)["data"] for each in messages for line in split_lines(each.body)])
        check_delivered(got)

    async def go() -> None:
        async with edge_zone(tmp_path, clients=CLIENTS, more={"types/all.yaml": TYPES, **CONTEXTS}) as at:
            await work(at)

    asyncio.run(go())


def test_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    wanted = [
        Subscription(client="hall", name="all", types=("Order",), durable=True),
        Subscription(client="desk", name="all", types=("Wanted",), durable=True, context="desk"),
    ]
    more = {**CONTEXTS, "clients/all.yaml": f"version: 1\nclients:\n{CLIENTS}"}
    with zone(tmp_path, wanted, types=TYPES, more=more) as at:
        for client in SHARES:
            for start in range(0, COUNT, A_MESSAGE):
                numbers = range(start, start + A_MESSAGE)
                at.send(client, [event(str(each), TYPE[client], data(client, each)) for each in numbers])
        engine = SparkEngine(spark, at.address, at.deployment.settings, tmp_path / "checkpoints")
        engine.start()
        try:
            wait_for(drained(engine, at))
        finally:
            engine.stop()
        check_letters(at.dead())
        got: dict[str, dict[str, list[dict[str, Any]]]] = {}
        for rows in at.delivered().values():
            who = got.setdefault({"Order": "hall", "Wanted": "desk"}[rows[0].type], {})
            for row in rows:
                who.setdefault(row.client, []).append(json.loads(row.data))
        check_delivered(got)
