"""Negotiation while the run is killed: no callback is lost, and none is called twice."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

import situ
from situ.client.capabilities import ReactionManager
from situ.quality.negotiation.feedback import Advice, StateChange
from tests.edge_zone import eventually
from tests.faults.deployed import Deployed, deployed

FILES = {
    "clients/all.yaml": """
        version: 1
        clients:
          pump: {advertisements: {readings: {type: Reading}}}
          desk: {subscriptions: {readings: {types: [Reading], durable: true}}}
        """,
}
PATIENCE = 120.0


async def negotiate(at: Deployed, rounds: int, seed: int) -> None:
    chance = random.Random(seed)
    followed: list[Advice] = []
    heard: list[StateChange] = []
    async with situ.connect(at.folder, client="pump") as pump, situ.connect(at.folder, client="desk") as desk:
        rate = {"rate": {"lb": 1, "ub": 60, "cv": 1, "cost": "0.1 * x"}}
        await pump.capabilities.register("Reading", rate)
        ReactionManager(pump.capabilities, followed.append)
        desk.expectations.on_change(heard.append)
        await desk.expectations.register("readings", {"rate": {"lb": 2}}, id="M1")
        for turn in range(rounds):
            wanted = 5.0 * (turn + 1)
            asked = asyncio.create_task(desk.expectations.update("M1", need={"rate": {"lb": wanted}}))
            # Before it is heard, while it is decided, between advice and answer, or when all is done.
            await asyncio.sleep(chance.choice((0, 0.002, 0.005, 0.01, 0.02, 0.05, 0.2)))
            at.kill()
            at.start()
            await asyncio.to_thread(at.ready)
            await asyncio.wait_for(asked, PATIENCE)
            version = desk.expectations.registered["M1"].version
            await eventually(
                lambda version=version: any(each.state == "satisfied" and each.version == version for each in heard),
                within=PATIENCE,
            )
            assert [each.values["rate"] for each in followed].count(wanted) == 1
    assert [each.values["rate"] for each in followed] == [2.0, *(5.0 * (turn + 1) for turn in range(rounds))]
    assert len({each.id for each in followed}) == len(followed)
    assert len({each.number for each in heard}) == len(heard)


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.soak)])
def test_no_callback_is_lost_or_called_twice(tmp_path: Path, seed: int) -> None:
    with deployed(tmp_path / "plant", engine="edge", files=FILES) as at:
        asyncio.run(negotiate(at, 3, seed))


@pytest.mark.soak
def test_no_callback_is_lost_or_called_twice_for_long(tmp_path: Path) -> None:
    with deployed(tmp_path / "plant", engine="edge", files=FILES) as at:
        asyncio.run(negotiate(at, 11, 7))
