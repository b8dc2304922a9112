"""The badge reader at the front door: says how often it looks for badges, and looks more often when it is advised to.

    python programs/badge_reader.py --for 120 --speed 6

What it can do stands in `quality/badges.yaml`: up to sixty badges a minute, eighty per cent sure. It begins with two.
With `--speed` a minute takes less time: what is sent happened before now, and comes so much faster.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path

import situ

PROJECT = Path(__file__).parents[1]


class Reader:
    """Looks for badges at a rate, events a minute."""

    def __init__(self) -> None:
        self.rate = 2.0

    def adapt(self, advice: situ.Advice) -> None:
        """Do what is advised."""
        before, self.rate = self.rate, float(advice.values.get("rate", self.rate))
        word = "It is asked to look more often" if advice.kind == "raise" else "It may rest again"
        print(f"{word}: from {before:g} to {self.rate:g} a minute", flush=True)


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--speed", type=float, default=1.0, metavar="TIMES", help="so many times as fast")
    options = parser.parse_args()
    with (PROJECT / "data" / "people.csv").open(encoding="utf-8", newline="") as file:
        people = [row["id"] for row in csv.DictReader(file)]
    reader = Reader()
    duration = timedelta(seconds=options.seconds * options.speed)
    begin = datetime.now(UTC) - (duration if options.speed > 1 else timedelta(0))
    loop = asyncio.get_running_loop()
    started, last, number = loop.time(), 0.0, 0
    async with situ.connect(PROJECT, client="badge-reader") as client:
        situ.ReactionManager(client.capabilities, reader.adapt)
        print(f"It looks for badges {reader.rate:g} times a minute", flush=True)
        while last < duration.total_seconds():
            # It may be asked to look more often while it waits.
            while (loop.time() - started) * options.speed < last + 60 / reader.rate:
                await asyncio.sleep(0.5 / options.speed)
            last += 60 / reader.rate
            time, who = begin + timedelta(seconds=last), people[number % len(people)]
            await client.publish_event("BadgeShown", who=who, time=time, confidence=80)
            number += 1
    print(f"{number} badges seen")


if __name__ == "__main__":
    asyncio.run(main())
