"""The front desk: greets who comes in, once, however often this program is stopped and started again.

    python programs/desk.py

Reads the durable subscription `desk/arrivals` of `clients/people.yaml`: what comes while the program is not there
waits for it. Whether a reader or a camera saw somebody makes no difference here: who it was, and where in metres, has
been found out on the way.
"""

from __future__ import annotations

import csv
from pathlib import Path

import situ

PROJECT = Path(__file__).parents[1]


def main() -> None:
    with (PROJECT / "data" / "people.csv").open(encoding="utf-8", newline="") as file:
        people = {row["id"]: row for row in csv.DictReader(file)}
    greeted: set[str] = set()
    with situ.connect_blocking(PROJECT, client="desk") as client:
        for event in client.events(durable="arrivals"):
            person = people[event.data.who]
            if person["id"] not in greeted:
                greeted.add(person["id"])
                at = event.data.at
                place = f"{at.x:.1f} m, {at.y:.1f} m, says {event.source}"
                print(f"{event.time:%H:%M:%S} {person['name']}, {person['role']}, is in the lobby: {place}", flush=True)


if __name__ == "__main__":
    main()
