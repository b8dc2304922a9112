"""Generated histories of events, as a log has them: several publishers and sources, disorder, gaps, bursts."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from situ.event.row import Row
from situ.lang.records import replace

SECOND, MINUTE = 1_000_000, 60_000_000
START = 1_760_000_000 * SECOND


def read(row: Row) -> Mapping[str, Any]:
    found: dict[str, Any] = msgspec.json.decode(row.data)
    return found


def event(
    number: int,
    time: int,
    *,
    value: Any = None,
    room: str | None = None,
    client: str = "plant",
    source: str = "s1",
    confidence: float | None = None,
    received: int | None = None,
) -> Row:
    """An event; its times are µs after some instant."""
    data = {"value": value, "room": room}
    return Row(
        pos=(number + 1) * 65_536,
        client=client,
        incarnation=1,
        seq=number + 1,
        context="root",
        recv=START + (time if received is None else received),
        id=f"e{number:05d}",
        source=source,
        type="reading",
        time=START + time,
        ad="",
        confidence=confidence,
        ext="",
        data=msgspec.json.encode({name: each for name, each in data.items() if each is not None}),
    )


def history(
    dice: random.Random, *, lateness: int, most: int = 60, least: int = 1, clients: Sequence[str] = ("p", "q")
) -> list[Row]:
    """Events in the order of a log; some of them come later than the lateness allows."""
    lag = dice.choice([0, lateness / 2, lateness, lateness, 5 * lateness + 9 * SECOND])
    sources = [
        (client, f"{client}-{number}") for client in clients[: dice.randint(1, len(clients))] for number in range(2)
    ]
    pace = dice.choice([0.05, 0.5, 2, 8, 30]) * SECOND
    now, rows = 0, []
    numbers: dict[str, int] = {}
    for number in range(dice.randint(least, most)):
        now += round(dice.expovariate(1 / pace)) if dice.random() < 0.95 else 90 * SECOND
        client, source = dice.choice(sources)
        numbers[client] = numbers.get(client, 0) + 1
        ahead = dice.random() < 0.03
        time = now + 5 * SECOND if ahead else now - round(dice.uniform(0, lag))
        if dice.random() < 0.1:
            time = time // SECOND * SECOND  # some at the very edge of a window, some together
        row = event(
            number,
            time,
            value=dice.choice([None, *[dice.randint(0, 40)] * 9]),
            room=dice.choice([None, "a", "b"]),
            client=client,
            source=source,
            confidence=dice.choice([None, 50.0, 75.0, 80.5, 99.0]),
            received=now,
        )
        rows.append(replace(row, seq=numbers[client]))
    return rows


def portions(dice: random.Random, rows: Sequence[Row]) -> list[Sequence[Row]]:
    """The same history in batches of any size."""
    found, at = [], 0
    while at < len(rows):
        size = dice.choice([1, 1, 2, 3, 7, len(rows)])
        found.append(rows[at : at + size])
        at += size
    return found
