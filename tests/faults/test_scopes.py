"""Scopes change under load while runs are killed: nobody is handed what is not visible to him, and nothing is lost."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.faults.deployed import PATIENCE, wait_for
from tests.faults.scoped import Scoped, scoped

SLOW = {"crew": "all", "desk": "all", "badge": "all", "gate": "some"}
"""Who looks in once in a while, and the names of their subscriptions."""


async def flow(zone: Scoped, *, changes: int, kills: int, rate: float, most: int) -> Mapping[str, int]:
    """Scopes change again and again. Some read all the time; others look in between changes, and leave some behind."""
    dice = random.Random(zone.dice.random())
    killed = set(dice.sample(range(changes), kills))
    enough = asyncio.Event()
    async with asyncio.TaskGroup() as clients:
        following = [
            clients.create_task(zone.follow("shift", durable="all")),
            clients.create_task(zone.follow("wall", durable="all")),
            clients.create_task(zone.follow("screen", "Alarm")),
        ]
        publishing = [clients.create_task(zone.publish(client, rate, enough)) for client in ("press", "clerk")]
        visiting: asyncio.Task[None] | None = None
        for number in range(changes):
            await asyncio.sleep(dice.uniform(0.2, 0.8))
            zone.change()
            if number in killed:
                await asyncio.sleep(dice.uniform(0, 0.5))  # before anybody knows, meanwhile, or when all do
                await asyncio.to_thread(kill, zone)
            await zone.confirm()
            if visiting is None:
                zone.let_in()
                await zone.confirm()
                visiting = clients.create_task(zone.visit())
            elif dice.random() < 0.5:
                zone.let_out()
                await visiting
                visiting = None
                await zone.confirm()
            for client, name in SLOW.items():
                if dice.random() < 0.6:
                    await zone.look_in(client, name, dice.randrange(1, most), idle=0.5)
        enough.set()
        await asyncio.gather(*publishing)
        await zone.routed()
        for client, name in SLOW.items():
            await zone.read_out(client, name)
        if visiting is not None:
            following.append(visiting)
        for task in following:
            task.cancel()
    return await asyncio.to_thread(zone.check, killed=kills)


def kill(zone: Scoped) -> None:
    zone.at.kill()
    zone.at.start()
    zone.at.ready()


MANY = 40
"""Changes after which a visitor, who may be let out as soon as he is let in, surely was there when something came."""


def run(zone: Scoped, **options: float) -> Mapping[str, int]:
    async def bounded() -> Mapping[str, int]:
        async with asyncio.timeout(4 * PATIENCE):
            return await flow(zone, **options)  # type: ignore[arg-type]

    points = asyncio.run(bounded())
    print(dict(points))
    for point in ("older", "must", "withheld", "screen", *(("visits",) if options["changes"] >= MANY else ())):
        assert points[point] > 0, f"{point}: it did not come to that: {points}"
    return points


def test_narrowed_queues_at_the_edge_while_the_run_is_killed(tmp_path: Path) -> None:
    with scoped(tmp_path / "plant", engine="edge", seed=1) as zone:
        run(zone, changes=6, kills=3, rate=150, most=60)
        assert zone.at.stop() == 0


def test_narrowed_queues_on_spark_while_the_run_is_killed(tmp_path: Path) -> None:
    with scoped(tmp_path / "plant", engine="spark", seed=2) as zone:
        run(zone, changes=3, kills=1, rate=60, most=200)
        assert zone.at.stop() == 0


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["edge", "spark"])
@pytest.mark.parametrize("seed", range(3))
def test_many_changes_while_the_run_is_killed(tmp_path: Path, engine: str, seed: int) -> None:
    with scoped(tmp_path / "plant", engine=engine, seed=1_000 + seed) as zone:
        run(zone, changes=MANY, kills=10, rate=300, most=300)
        wait_for(lambda: zone.at.alive, "it still runs")
        assert zone.at.stop() == 0
