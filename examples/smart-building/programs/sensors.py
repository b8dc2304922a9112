"""The sensors of the building: people walk through it, and what readers, cameras and doors notice is published.

    python programs/sensors.py --for 60 --rate 200
    python programs/sensors.py --for 10 --speed 6 --situations 2

Every reader and camera is a client of its own, as `clients/sensors.yaml` declares them, and speaks in its own terms:
tags in centimetres, faces in feet and degrees. Some of what they send is broken on purpose: see
`situ dead-letters list`. With `--speed` more happens in less time: what is sent happened before now, and comes so much
faster. With `--situations` so many guests go alone into restricted rooms.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from contextlib import AsyncExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path

from simulator import load_building, simulate

import situ

PROJECT = Path(__file__).parents[1]
TYPES = ("TagSeen", "FaceSeen", "DoorUsed", "RoomClimate")


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--for", dest="seconds", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--rate", type=float, default=200.0, metavar="EVENTS", help="about so many a second")
    parser.add_argument("--broken", type=float, default=0.002, metavar="FRACTION", help="of the events")
    parser.add_argument("--speed", type=float, default=1.0, metavar="TIMES", help="so many times as fast")
    parser.add_argument("--situations", type=int, default=0, metavar="NUMBER", help="guests who go astray")
    options = parser.parse_args()
    duration = timedelta(seconds=options.seconds * options.speed)
    simulation = simulate(
        load_building(PROJECT),
        start=datetime.now(UTC) - (duration if options.speed > 1 else timedelta(0)),
        duration=duration,
        rate=options.rate / options.speed,
        types=TYPES,
        malformed=options.broken,
        situations=options.situations,
    )
    loop = asyncio.get_running_loop()
    begin, published = loop.time(), 0
    async with AsyncExitStack() as stack:
        clients: dict[str, situ.Client] = {}
        shown: set[str] = set()
        for arrivals, lines in simulation.timed_lines(span=timedelta(milliseconds=250) * options.speed):
            await asyncio.sleep(begin + arrivals[0] / 1e6 / options.speed - loop.time())
            for line in lines.splitlines():
                try:
                    event = json.loads(line)
                    type, source, data = event["type"], event["source"], event["data"]
                except (ValueError, KeyError, TypeError):
                    continue  # so broken that no client library would have sent it
                client = source.partition("/")[0]
                if client not in clients:
                    clients[client] = await stack.enter_async_context(situ.connect(PROJECT, client=client))
                try:
                    await clients[client].publish_event(type, data, source=source, time=event.get("time"))
                    published += 1
                    if type not in shown:
                        shown.add(type)
                        print(f"{client} sends {type} {json.dumps(data)}", flush=True)
                except situ.SituError as error:
                    print(f"{client}: {error}")
    print(f"{published:,} events published by {len(clients)} clients")


if __name__ == "__main__":
    asyncio.run(main())
