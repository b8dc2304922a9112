"""What subscriptions with shapes get from the Spark engine is what the edge and the slow reference say."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from situ.event.row import Row
from situ.lang.records import replace
from situ.routing.delivery_groups import group_of
from situ.spark.engine import BatchReport, SparkEngine
from tests.conformance.on_spark import _store
from tests.conformance.shaped import TYPES, World, make_world
from tests.conformance.test_shaping_edge import FUTURE, check
from tests.integration.spark.test_engine import drained, wait_for
from tests.zone import zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run(spark: SparkSession, folder: Path, world: World) -> tuple[dict[str, list[Row]], set[int]]:
    """What each subscription gets, and by how many tasks batches were worked.

    Much is shared by several tasks, little is worked by one: what filters remember is shared anew from batch to batch.
    """
    found: dict[str, list[Row]] = {}
    batches: list[BatchReport] = []
    with zone(folder, types=TYPES) as at:
        at.publish(replace(world.deployment(folder / "declared"), settings=at.deployment.settings))
        groups = {group_of(each): each.id for each in at.deployment.routed.values()}
        most, few = len(world.sends) * 2 // 5, len(world.sends) * 3 // 5
        for sends in (world.sends[:most], world.sends[most:few], world.sends[few:]):
            for send in sends:
                _store(at, send)
            engine = SparkEngine(
                spark,
                at.address,
                at.deployment.settings,
                folder / "checkpoints",
                partitions=2,
                on_batch=batches.append,
            )
            engine.start()
            try:
                wait_for(drained(engine, at), seconds=300)
            finally:
                engine.stop()
        assert sum(engine.totals.dropped.values()) > 0
        for group, rows in at.delivered().items():
            found[groups[group]] = rows
    return {id: found.get(id, []) for id in world.shapes}, {each.offset.partitions for each in batches if each.counts}


def test_tasks_that_share_the_clients_shape_as_the_reference_does(spark: SparkSession, tmp_path: Path) -> None:
    world = make_world(21, start=time.time_ns() // 1000 + FUTURE, events=240, shapes=80, size=3000)
    alone = {id: each for id, each in world.shapes.items() if each.thin is None or not each.thin.across}
    world = replace(world, shapes=alone)
    found, tasks = run(spark, tmp_path, world)
    check(world, found, now=0)
    assert tasks == {1, 2}


def test_one_task_shapes_what_goes_across(spark: SparkSession, tmp_path: Path) -> None:
    world = make_world(22, start=time.time_ns() // 1000 + FUTURE, events=240, shapes=80, size=3000)
    found, tasks = run(spark, tmp_path, world)
    check(world, found, now=0)
    assert tasks == {1}
