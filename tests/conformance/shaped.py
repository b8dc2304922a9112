"""Generated histories and shapes for engines, and what each subscription is to get of them by the slow reference.

One history is for many subscriptions, each with a shape of its own. At its end every source sends an event long after,
which settles all windows before it, and is not looked at.
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from situ.event.instants import print_instant
from situ.event.message import EventKey, join_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.model import Deployment
from situ.quality.model.declarations import Aggregate
from situ.quality.model.shapes import EventFloor, Limit, Shape, Suppress, Thin
from situ.routing.model import Subscription
from tests.conformance.generated import Send
from tests.histories import MINUTE, SECOND, START, event, history, read
from tests.oracles import shaping as reference
from tests.zone import deployment_of

TYPES = """
version: 1
events:
  Reading: {room: optional string, value: optional double}
  Alarm: {text: string, level: int}
"""
PUBLISHERS = ("press-1", "press-2", "press-3", "press-4")
LATENESS = 2 * SECOND
AFTER = 30 * MINUTE

Got = tuple[str, str, int, float]
"""Client, source, time, value of an event; -1: it says none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A history that begins at ``start``, cut into messages, and shapes by subscription."""

    rows: tuple[Row, ...]
    sends: tuple[Send, ...]
    shapes: dict[str, Shape]
    end: int

    def deployment(self, folder: Path) -> Deployment:
        wanted = [
            Subscription(client="desk", name=id.partition("/")[2], types=("Reading",), durable=True)
            for id in self.shapes
        ]
        return replace(deployment_of(folder, wanted, types=TYPES), shapes=self.shapes)

    def expected(self, id: str, now: int | None = None) -> list[Got]:
        """What a subscription is to get, in order of source and time; ``now``: when ages are taken."""
        shape, rows = self.shapes[id], list(self.rows)
        rows = reference.selected(rows, shape.sources)
        for each in shape.each:
            rows = reference.good(rows, each, now)
        if shape.aggregate is not None:
            made = reference.aggregated(rows, shape.aggregate, LATENESS, read)
            return sorted((*key, float(value)) for *key, value in made if key[2] < self.end)  # type: ignore[misc]
        for one in shape.suppress:
            rows = reference.suppressed(rows, one, read)
        if shape.thin is not None:
            rows = reference.thinned(rows, shape.thin, LATENESS, read)
        return self.got(rows)

    def got(self, rows: Sequence[Row]) -> list[Got]:
        """Events as they are compared; each once, without the last of each source."""
        once = {row.key: row for row in rows if row.time < self.end}
        return sorted((row.client, row.source, row.time, float(read(row).get("value", -1))) for row in once.values())


def make_world(seed: int, *, start: int, events: int, shapes: int, size: int = 0) -> World:
    """``size`` is that of something that events carry along."""
    dice = random.Random(seed)
    rows = history(dice, lateness=LATENESS, most=events, least=events, clients=PUBLISHERS)
    last = max(row.time for row in rows) - START
    sources = sorted({(row.client, row.source) for row in rows})
    ends = [
        event(events + number, last + AFTER, value=1, room=room, client=client, source=source, confidence=99.0)
        for number, ((client, source), room) in enumerate(product(sources, (None, "a", "b")))
    ]
    placed: list[Row] = []
    numbers: dict[str, int] = {}
    for row in (*rows, *ends):
        numbers[row.client] = numbers.get(row.client, 0) + 1
        placed.append(_moved(row, start - START, numbers[row.client]))
    made = {f"desk/s{number}": _shape(dice, start) for number in range(shapes)}
    return World(rows=tuple(placed), sends=tuple(_sends(dice, placed, size)), shapes=made, end=start + last + AFTER)


def _moved(row: Row, by: int, seq: int) -> Row:
    source = f"{row.client}/{row.source}"
    return replace(row, time=row.time + by, recv=row.recv + by, seq=seq, source=source)


def _shape(dice: random.Random, start: int) -> Shape:
    kind = dice.choice(["thin", "thin", "across", "held", "suppress", "aggregate", "each", "all"])
    every = dice.choice([5, 10]) * SECOND
    suppress = Suppress(attribute="value", delta=dice.choice([1, 5, 15]), per=dice.choice(["", "room"]))
    each = EventFloor(about="confidence", floor=dice.choice([60, 80]), keep_missing=dice.random() < 0.5)
    thin = Thin(limits=_limits(dice, start), per=dice.choice(["", "room"]))
    match kind:
        case "thin":
            return Shape(thin=thin)
        case "across":
            return Shape(thin=replace(thin, across=True, keep=dice.choice(["first", "last"])))
        case "held":
            return Shape(thin=replace(thin, keep=dice.choice(["last", "best"])))
        case "suppress":
            return Shape(suppress=(replace(suppress, max_silence=dice.choice([None, 20 * SECOND])),))
        case "aggregate":
            function = dice.choice(["avg", "min", "max", "sum"])
            return Shape(aggregate=Aggregate(function=function, attribute="value", window=6 * every, every=every))
        case "each":
            return Shape(sources=frozenset(PUBLISHERS[:2]), each=(each, EventFloor(about="freshness", floor=1.0)))
        case _:
            return Shape(sources=frozenset(PUBLISHERS[1:]), each=(each,), suppress=(suppress,), thin=thin)


def _limits(dice: random.Random, start: int) -> tuple[Limit, ...]:
    def limit(since: int | None = None) -> Limit:
        form = dice.choice(["slot", "quota"])
        return Limit(events=dice.choice([1, 3, 10]), minutes=dice.choice([1, 2]), form=form, since=since)

    return (limit(), limit(start + dice.randint(0, 10) * MINUTE)) if dice.random() < 0.4 else (limit(),)


def _sends(dice: random.Random, rows: Sequence[Row], size: int) -> list[Send]:
    """The rows in messages of one client each, in the order of the log."""
    found: list[Send] = []
    at = 0
    while at < len(rows):
        most = dice.choice([1, 1, 2, 5])
        some = [rows[at]]
        while len(some) < most and at + len(some) < len(rows) and rows[at + len(some)].client == some[0].client:
            if rows[at + len(some)].recv != some[0].recv:
                break
            some.append(rows[at + len(some)])
        key = EventKey(some[0].client, 1, some[0].seq)
        found.append(Send(key, len(some), join_lines([_line(row, size) for row in some]), some[0].recv))
        at += len(some)
    return found


def _line(row: Row, size: int) -> bytes:
    data = dict(read(row))
    said = {} if row.confidence is None else {"confidence": f"{row.confidence:g}"}
    return json.dumps(
        {
            "specversion": "1.0",
            "id": row.id,
            "source": row.source.partition("/")[2],
            "type": "Reading",
            "time": print_instant(row.time),
            **said,
            **({"subject": "x" * size} if size else {}),
            "data": data,
        }
    ).encode()
