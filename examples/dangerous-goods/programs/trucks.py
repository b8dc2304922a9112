"""Six trucks drive through the port for a minute and a half, and say where they are, once a second.

    python programs/trucks.py
    python programs/trucks.py --speed 10

Koch's trucks and those of Tank Nord say it each in their own terms. Petrol and peroxide meet on the quay road after
38 s, beside a truck with milk; the diesel leaves the tank road after 32 s and stays away; the acid goes around works
for 10 s, which it may. With `--speed` more happens in less time: what is sent happened before now, and comes so much
faster.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any

import situ

PROJECT = Path(__file__).parents[1]
SECONDS = 90
GATE = 53.5, 9.9
DEPOT = 900.0, 600.0
DEGREE = 111_195.0
FOOT = 0.3048


def positions(second: int) -> dict[str, tuple[float, float]]:
    """Where trucks are, in metres east and north of the gate."""
    return {
        "t1": (10.0 * second, -5.0),
        "t2": (max(800.0 - 10.0 * second, 0.0), 5.0),
        "t3": (400.0, 15.0),
        "t4": (950.0 if 20 <= second < 30 else 900.0, 200.0 + 5.0 * second),
        "t5": (900.0 + 15.0 * max(second - 30, 0), 1000.0 - 5.0 * min(second, 30)),
        "t6": (-20.0, 0.0),
    }


def said(truck: dict[str, str], x: float, y: float) -> tuple[str, str, dict[str, Any]]:
    """Who says where a truck is, by which type of event, and how."""
    if not truck["unit"]:
        offset = {"east": (x - DEPOT[0]) / FOOT, "north": (y - DEPOT[1]) / FOOT}
        return "tank-nord", "Moved", {"plate": truck["plate"], "from_depot": offset}
    lat, lon = GATE[0] + y / DEGREE, GATE[1] + x / (DEGREE * math.cos(math.radians(GATE[0])))
    return "koch", "Fix", {"unit": truck["unit"], "position": {"lat": lat, "lon": lon}}


def drive() -> Iterator[tuple[int, str, str, dict[str, Any]]]:
    """All that is said: in which second, by which client, the type of the event and its data."""
    with (PROJECT / "data" / "trucks.csv").open(encoding="utf-8", newline="") as file:
        trucks = {row["id"]: row for row in csv.DictReader(file)}
    for second in range(SECONDS):
        for truck, (x, y) in positions(second).items():
            yield second, *said(trucks[truck], x, y)


async def publish(clients: Mapping[str, situ.Client], start: datetime, speed: float = math.inf) -> int:
    """Publish it all, and say how much that is; nobody gets ahead of the others by more than a second."""
    loop = asyncio.get_running_loop()
    begin, published = loop.time(), 0
    for second, sayings in groupby(drive(), key=itemgetter(0)):
        await asyncio.sleep(begin + second / speed - loop.time())
        time = start + timedelta(seconds=second)
        receipts = [await clients[client].publish_event(type, data, time=time) for _, client, type, data in sayings]
        for receipt in receipts:
            await receipt.stored
        published += len(receipts)
    return published


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--speed", type=float, default=1.0, metavar="TIMES", help="so many times as fast as it happens")
    speed = parser.parse_args().speed
    start = datetime.now(UTC) - (timedelta(seconds=SECONDS) if speed > 1 else timedelta(0))
    async with situ.connect(PROJECT, client="koch") as koch, situ.connect(PROJECT, client="tank-nord") as tank_nord:
        published = await publish({"koch": koch, "tank-nord": tank_nord}, start, speed)
    print(f"{published} positions published")


if __name__ == "__main__":
    asyncio.run(main())
