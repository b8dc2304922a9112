"""The front desk: greets who comes in, once, however often this program is stopped and started again.

    python programs/desk.py

Reads the durable subscription `desk/arrivals` of `clients/people.yaml`: what comes while the program is not there
waits for it.
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
    with situ.connect_blocking(PROJECT, client="desk") as node:
        for event in node.events(durable="arrivals"):
            person = people[event.data.who]
            if person["id"] not in greeted:
                greeted.add(person["id"])
                print(f"{event.time:%H:%M:%S} {person['name']}, {person['role']}, is in the lobby", flush=True)


if __name__ == "__main__":
    main()
