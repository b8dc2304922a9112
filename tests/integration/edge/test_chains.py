"""Chains of policies at the edge: what they publish reaches those who read it in time, through crashes and changes."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from situ.client.client import Client
from situ.event.instants import instant_at
from situ.event.lines import decode_line
from situ.event.message import split_lines
from situ.event.row import BadRow, Row
from situ.lang.records import replace
from situ.registry.snapshots import publish_deployment
from situ.stages import root_log
from situ.stages.plan import Plan
from tests.edge_zone import EdgeZone, edge_zone, eventually, run
from tests.policy_chains import CONDITIONS, END, LAST, SECOND, Chain, Said, expected, generate, told_of


async def say(meter: Client, event: Said) -> None:
    await meter.publish_event(
        event.type, dict(event.data), id=event.id, source=event.source, time=instant_at(event.time)
    )


def reached(zone: EdgeZone, policy: str) -> int:
    assert zone.engine is not None
    kept = zone.engine.watched.progress.policies.get(policy)
    return kept.reached or 0 if kept is not None else 0


async def rows(zone: EdgeZone) -> list[Row]:
    messages = await zone.messages(zone.names.root_stream)
    return [decode_line(line) for each in messages for line in split_lines(each.body)]


async def settled(zone: EdgeZone) -> None:
    """All have decided what they can, and what they published is in the log."""
    await eventually(lambda: all(reached(zone, name) >= END - 3 * SECOND for name in CONDITIONS))
    assert zone.engine is not None
    await eventually(lambda: not zone.engine.watched.progress.marks)  # type: ignore[union-attr]
    await zone.engine._detection._outbox.settled()


@pytest.mark.parametrize("seed", range(6))
def test_nothing_of_a_chain_is_late_or_lost_or_told_twice_at_the_edge(tmp_path: Path, seed: int) -> None:
    chain = generate(seed, idle="1 h")
    dice = random.Random(seed)

    async def work() -> None:
        async with edge_zone(tmp_path, more=chain.files) as zone, zone.connect("meter") as meter:
            left = list(chain.events)
            while left:
                for event in left[: (some := dice.randrange(1, 12))]:
                    await say(meter, event)
                left = left[some:]
                await meter.flush()
                if dice.random() < 0.2:
                    await zone.crash()
                    await zone.start()
            for event in LAST:
                await say(meter, event)
            await meter.flush()
            await settled(zone)
            published = sorted(told_of(row.client, row) for row in await rows(zone) if row.client in CONDITIONS)
            assert published == expected(chain.deployment(zone.folder), (*chain.events, *LAST))
            assert await zone.messages(zone.names.late_stream) == []

    run(work())


def hot_chain() -> Chain:
    """One in which each policy reads nothing but what the one before it publishes."""
    chain = generate(0, idle="1 h")
    concepts = "window 5 s\nhold 5 s\nconcepts\n  thing A\n  place R (id = 'low')\n"
    policy = "policy {}\n" + concepts + "conditions\n  A is {} R\nactions\n  {}\n"
    named = {"first": ("warmer", "say hot"), "second": ("hotter", "say fire"), "third": ("burning", "say out")}
    return replace(
        chain,
        files={**chain.files, **{f"policies/{name}.dpl": policy.format(name, *each) for name, each in named.items()}},
    )


def reading(number: int, second: float, value: float = 9.0, type: str = "Reading") -> Said:
    time = END - 1_000 * SECOND + int(second * SECOND)
    return Said(type=type, id=f"e{number}", source="meter", time=time, data={"who": "a", "value": value})


def test_a_feeder_that_is_suspended_is_waited_for_no_longer(tmp_path: Path) -> None:
    chain = hot_chain()
    both = chain.files["policies/second.dpl"].replace("A is hotter R", "A is hotter R or A is smoky R")
    files = {**chain.files, "policies/second.dpl": both}

    async def work() -> None:
        async with edge_zone(tmp_path, more=files) as zone, zone.connect("meter") as meter:
            await say(meter, reading(1, 0))
            await say(meter, reading(2, 0.5, type="Smoke", value=0.0))
            await meter.flush()
            await publish_deployment(zone.bus, zone.registry.suspend("first", who="test").deployment)
            await eventually(lambda: "first" not in zone.engine.watched.progress.policies)  # type: ignore[union-attr]
            for number, second in enumerate((20, 40), 3):
                await say(meter, reading(number, second, type="Smoke"))
            await meter.flush()
            # Nothing but its own source holds it back now.
            await eventually(lambda: reached(zone, "second") > reading(0, 30).time)
            assert await zone.messages(zone.names.late_stream) == []

    run(work())


@pytest.mark.parametrize("crash", [False, True])
def test_events_of_a_policy_that_become_dead_letters_are_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, crash: bool
) -> None:
    """Nobody finds them in the log, so nothing there tells that those who read it may go on."""
    stamped = root_log.stamp

    def refused(rows: Iterable[Row | BadRow], plan: Plan, *, own: bool = False) -> tuple[list[Row], list[BadRow]]:
        good, bad = stamped(rows, plan, own=own)
        dead = [row for row in good if row.client == "first"]
        error = ("E000", "", "refused for the sake of a test", "")
        bad += [
            BadRow(0, r.client, r.incarnation, r.seq, r.context, r.recv, r.ad, "decode", (error,), r.data) for r in dead
        ]
        return [row for row in good if row.client != "first"], bad

    monkeypatch.setattr(root_log, "stamp", refused)

    async def work() -> None:
        async with edge_zone(tmp_path, more=hot_chain().files) as zone, zone.connect("meter") as meter:
            for number, second in enumerate((0, 30, 60), 1):
                await say(meter, reading(number, second))
            await meter.flush()
            if crash:
                await eventually(lambda: zone.engine.watched.progress.policies["first"].reached)  # type: ignore[union-attr]
                await zone.crash()
                await zone.start()
            await eventually(lambda: reached(zone, "third") > reading(0, 50).time)
            assert len(await zone.messages(zone.names.dead_stream)) > 0

    run(work())
