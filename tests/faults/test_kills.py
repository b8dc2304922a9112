"""Nothing is lost and nothing comes twice while the run, the bus, and in the long version the clients, are killed."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.faults.deployed import Deployed, deployed, wait_for
from tests.faults.traffic import (
    WISHES,
    Publisher,
    Recorder,
    check_seen,
    is_bad,
    kill_all,
    start_all,
    wait_ready,
    working,
)

LONG = 900.0
"""Seconds that a large part of the events may take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How much flows and what is killed meanwhile."""

    events: int
    run: int
    """How often the run is killed."""
    bus: int
    clients: int = 0
    """How often a subscriber is killed."""
    publishers: int = 3
    rate: float = 6000.0
    """Events a second, of all publishers together."""
    seed: int = 1


def moments(plan: Plan) -> list[tuple[float, str]]:
    """What is killed when: shares of all that is to be delivered, in order."""
    chance = random.Random(plan.seed)
    kills = ["run"] * plan.run + ["bus"] * plan.bus + ["client"] * plan.clients
    chance.shuffle(kills)
    return list(zip(sorted(chance.uniform(0.03, 0.9) for _ in kills), kills, strict=True))


def flow(at: Deployed, plan: Plan) -> None:
    """Let events flow and kill; then all is as if nothing had happened."""
    chance = random.Random(plan.seed + 1)
    each = plan.events // plan.publishers
    publishers = [
        Publisher(at.folder, f"pump-{number}", each, plan.rate / plan.publishers) for number in range(plan.publishers)
    ]
    recorders = [Recorder(at.folder, wish) for wish in WISHES]
    wanted = sum(len(recorder.wish.expected(each)) for recorder in recorders) * plan.publishers
    try:
        start_all(recorders)
        wait_ready(recorders)
        start_all(publishers)
        wait_ready(publishers)
        kill: dict[str, Callable[[], None]] = {
            "run": lambda: kill_run(at, chance),
            "bus": lambda: kill_bus(at),
            "client": lambda: restart(chance.choice(recorders)),
        }
        for share, what in moments(plan):
            wait_for(
                lambda share=share: came(at, recorders) >= share * wanted, f"{share:.0%} of the events", seconds=LONG
            )
            for publisher in publishers:
                publisher.check()
            # Somewhere in a batch, or between two.
            time.sleep(chance.uniform(0, 0.4))
            kill[what]()
        for publisher in publishers:
            wait_for(lambda publisher=publisher: publisher.done, f"{publisher.client} is done", seconds=LONG)
            assert publisher.stored == each
        wait_for(lambda: delivered(at, recorders, plan) >= wanted, "everything is delivered", seconds=LONG)
        # What comes twice comes late.
        time.sleep(2)
        for recorder in recorders:
            check_seen(recorder, publishers, killed=bool(plan.clients))
    finally:
        kill_all([*publishers, *recorders])
    check_log(at, publishers)


def came(at: Deployed, recorders: list[Recorder]) -> int:
    return sum(recorder.count for recorder in working(at, recorders))


def delivered(at: Deployed, recorders: list[Recorder], plan: Plan) -> int:
    if not plan.clients:
        return came(at, recorders) - len(recorders)  # the line that says they are ready
    return sum(len({each.key for each in recorder.seen()}) for recorder in working(at, recorders))


def kill_run(at: Deployed, chance: random.Random) -> None:
    """Kill it, and once in a while kill also the one that is then starting."""
    at.kill()
    at.start()
    if chance.random() < 0.3:
        time.sleep(chance.uniform(0, 4))
        at.kill()
        at.start()
    at.ready()


def kill_bus(at: Deployed) -> None:
    before = at.bus_server()
    at.kill_bus()
    wait_for(lambda: (now := at.bus_server()) is not None and now != before, "the bus is back")


def restart(recorder: Recorder) -> None:
    recorder.kill()
    recorder.start()


def check_log(at: Deployed, publishers: list[Publisher]) -> None:
    """The root log has every good event once, in each publisher's order; the others are dead letters, once."""
    root = at.root()
    times = Counter((row.client, row.incarnation, row.seq) for row in root)
    assert times.most_common(1)[0][1] == 1, f"in the root log more than once: {times.most_common(5)}"
    for publisher in publishers:
        seqs = [row.seq for row in root if row.client == publisher.client]
        assert seqs == [number for number in range(1, publisher.count + 1) if not is_bad(number)]
    letters = Counter(letter["key"] for letter in at.dead())
    bad = sum(1 for number in range(1, publishers[0].count + 1) if is_bad(number))
    assert len(letters) == bad * len(publishers)
    assert set(letters.values()) == {1}


def test_each_event_reaches_spark_s_subscribers_once_while_run_and_bus_are_killed(tmp_path: Path) -> None:
    with deployed(tmp_path / "plant", engine="spark") as at:
        flow(at, Plan(events=6_000, run=1, bus=1, rate=2000, seed=6))
        assert at.stop() == 0


def test_each_event_reaches_the_edge_s_subscribers_once_while_run_and_bus_are_killed(tmp_path: Path) -> None:
    with deployed(tmp_path / "plant", engine="edge") as at:
        flow(at, Plan(events=6_000, run=2, bus=1, rate=4000, seed=3))
        assert at.stop() == 0


@pytest.mark.soak
@pytest.mark.parametrize("engine", ["spark", "edge"])
def test_a_million_events_while_everything_is_killed(tmp_path: Path, engine: str) -> None:
    with deployed(tmp_path / "plant", engine=engine) as at:
        flow(at, Plan(events=1_000_000, run=10, bus=2, clients=4, publishers=4, rate=8000, seed=int(time.time())))
        assert at.stop() == 0
