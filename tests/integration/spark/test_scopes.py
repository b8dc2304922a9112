"""Scopes on Spark: three audiences see three views, the log carries stamps, and a replay is decided by both epochs."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from situ.event.message import STAMP
from situ.event.subjects import DEPLOYMENTS
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.model.deployment import encode_scopes, scopes_name
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from situ.spark.replay import replay
from tests.integration.spark.test_engine import drained, reading, running, wait_for
from tests.scopes import dimension, graph_of
from tests.zone import Zone, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from situ.scopes.graph import ScopeGraph

TREE = {"line": "plant", "office": "plant", "guest": "office"}


def scopes(least: int) -> ScopeGraph:
    return graph_of(
        dimension("membership", TREE, closed=True, output_line=f"value >= {least}", input_guest="sensor = 's1'")
    )


AUDIENCES = {
    name: Subscription(
        client=name, name="all", types=("Reading",), durable=True, scopes=TagSet.of({"membership": scope})
    )
    for name, scope in (("crew", "line"), ("desk", "office"), ("badge", "guest"))
}
NOBODY = Subscription(client="nobody", name="all", types=("Reading",), durable=True)


def put_in_force(at: Zone, deployment: Deployment, epoch: int, graph: ScopeGraph) -> None:
    at.bus.put_object(DEPLOYMENTS, scopes_name(epoch), encode_scopes(graph))
    at.publish(replace(deployment, scopes=graph, epoch=epoch).numbered())


def seen(values: list[tuple[int, int]]) -> dict[str, list[int]]:
    """Numbers of readings, each with the least value then: what the audiences see of them."""
    passing = [number for number, least in values if number % 100 >= least]
    return {
        "crew": [number for number, _ in values],
        "desk": passing,
        "badge": [number for number in passing if number % 7 == 1],
    }


def test_three_audiences_and_a_replay(spark: SparkSession, tmp_path: Path) -> None:
    with zone(tmp_path, [*AUDIENCES.values(), NOBODY]) as at:
        ads = {
            id: replace(each, scopes=TagSet.of({"membership": "line"}))
            for id, each in at.deployment.advertisements.items()
        }
        declared = replace(at.deployment, advertisements=ads)
        put_in_force(at, declared, 1, scopes(50))
        with running(spark, at, tmp_path / "checkpoints") as engine:
            at.send("press-1", [reading(number, number % 100) for number in range(200)])
            wait_for(drained(engine, at))
            found = at.delivered()
            expected = seen([(number, 50) for number in range(200)])
            for name, each in AUDIENCES.items():
                assert [int(row.id) for row in found[group_of(each)]] == expected[name], name
            assert group_of(NOBODY) not in found
            assert {(row.tags, row.epoch) for row in at.root()} == {(1, 1)}
            waiting = at.messages(at.names.out_stream)
            assert all(STAMP in each.headers or b"situtags" in each.body for each in waiting), "until then"
            put_in_force(at, replace(declared, numbers=at.deployment.numbers), 2, scopes(80))
            at.send("press-1", [reading(number, number % 100) for number in range(200, 300)])
            wait_for(drained(engine, at))
        again: dict[str, list[int]] = defaultdict(list)
        for row in replay(spark, at.address, at.deployment.version).collect():
            assert b"situtags" not in row.event
            again[row.subscription.partition("/")[0]].append(int(json.loads(row.event)["id"]))
        assert again == seen([(number, 80) for number in range(300)]), "what was visible then, and is now"
        put_in_force(at, replace(declared, numbers=at.deployment.numbers), 3, scopes(10))
        widened = replay(spark, at.address, at.deployment.version).where("subscription = 'desk/all'").collect()
        then = seen([(number, 50 if number < 200 else 80) for number in range(300)])
        assert [int(json.loads(row.event)["id"]) for row in widened] == then["desk"], "nothing reaches back"
