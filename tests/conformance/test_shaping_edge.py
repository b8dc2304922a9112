"""What subscriptions with shapes get from the edge engine is what the reference says, also if it dies meanwhile."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from situ.bus.memory import MemoryBus
from situ.edge.engine import EdgeEngine
from situ.event.lines import decode_line
from situ.event.message import split_lines
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.registry.snapshots import publish_deployment
from situ.routing.delivery_groups import group_of
from situ.stages.plan import compile_plan
from tests.conformance.shaped import World, make_world
from tests.edge_zone import eventually

FUTURE = 3600 * 1_000_000
"""Events of a history come in the future, so that no time passes in which nothing comes."""


async def end_at_once(engine: EdgeEngine) -> None:
    """As a process that dies does: nothing is finished."""
    for task in engine._tasks:
        task.cancel()
    await asyncio.gather(*engine._tasks, return_exceptions=True)
    await engine._stack.aclose()


async def run(folder: Path, world: World, dice: random.Random | None) -> dict[str, list[Row]]:
    """What each subscription gets; with ``dice`` the engine dies now and then."""
    names = BusNames("main")
    deployment = world.deployment(folder / "project").at_version(1)
    groups = {group_of(each): each.id for each in deployment.routed.values()}
    assert groups.keys() == compile_plan(deployment).routing.groups.keys()
    found: dict[str, list[Row]] = {id: [] for id in world.shapes}
    async with MemoryBus() as bus:
        await bus.prepare(deployment.settings)
        for group in groups:
            await bus.ensure_consumer(f"keep_{group}", [group])
        await publish_deployment(bus, deployment)
        engine = EdgeEngine(bus, folder / "project")
        await engine.start()
        deaths = 0
        for send in world.sends:
            taken = await engine.take(send.key, send.count, send.body, send.received)
            if dice is not None and dice.random() < 0.1:
                if dice.random() < 0.5:
                    await taken
                if dice.random() < 0.5:
                    await engine._dispatcher.settle()
                    engine._cursor.save()
                    if dice.random() < 0.5:
                        engine._dispatcher.keep()
                await end_at_once(engine)
                deaths += 1
                engine = EdgeEngine(bus, folder / "project")
                await engine.start()
                # A client sends again what was not acknowledged.
                taken = await engine.take(send.key, send.count, send.body, send.received)
            await taken
        await eventually(lambda: engine._logged.empty())
        await engine.stop()
        assert dice is None or deaths > 3
        async for message in bus.read(names.out_stream, 1):
            found[groups[names.group_of(message.subject)]] += map(decode_line, split_lines(message.body))
    return found


def check(world: World, found: dict[str, list[Row]], now: int | None = None) -> None:
    delivered = 0
    for id, shape in world.shapes.items():
        expected, got = world.expected(id, now), world.got(found[id])
        assert [each[:3] for each in got] == [each[:3] for each in expected], shape
        assert [each[3] for each in got] == pytest.approx([each[3] for each in expected]), shape
        delivered += len(got)
    assert delivered > 5 * len(world.shapes)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_edge_shapes_as_the_reference_does(tmp_path: Path, seed: int) -> None:
    world = make_world(seed, start=time.time_ns() // 1000 + FUTURE, events=120, shapes=40)
    found = asyncio.run(run(tmp_path, world, None))
    check(world, found)


@pytest.mark.parametrize("seed", [11, 12, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(13, 100))])
def test_an_engine_that_dies_again_and_again_loses_and_repeats_nothing(tmp_path: Path, seed: int) -> None:
    world = make_world(seed, start=time.time_ns() // 1000 + FUTURE, events=120, shapes=40)
    check(world, asyncio.run(run(tmp_path, world, random.Random(seed))))
