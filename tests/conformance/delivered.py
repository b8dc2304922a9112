"""What an engine made of its input, in a form that does not depend on which engine it was."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from situ.event.lines import decode_line
from situ.event.message import Message, split_lines
from situ.event.row import Row
from situ.model import Deployment
from situ.routing.routing_table import RoutingTable
from situ.stages.plan import compile_plan

Event = tuple[Any, ...]
# As a dead letter quotes it: text inside of text.
_POSITION = re.compile(rb',\\"situpos\\":\\"\d+\\"')


def routing_of(deployment: Deployment) -> RoutingTable:
    return compile_plan(deployment).routing


def event_of(row: Row) -> Event:
    """All of an event but its place in the log, which is another in every engine's log."""
    # When a dead letter was written is the engine's own time.
    time = None if row.type == "situ.deadletter" else row.time
    data = _POSITION.sub(b"", row.data)
    return (
        row.client,
        row.incarnation,
        row.seq,
        row.id,
        row.source,
        row.type,
        time,
        row.ad,
        row.confidence,
        row.ext,
        data,
    )


@dataclass
class Delivered:
    """By subscription and publisher, in the order of delivery: an order between publishers nobody promises."""

    root: dict[str, list[Event]] = field(default_factory=lambda: defaultdict(list))
    durable: dict[str, dict[str, list[Event]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    live: dict[str, dict[str, list[Event]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    dead: list[tuple[str, ...]] = field(default_factory=list)

    def add_root(self, rows: Iterable[Row]) -> None:
        for row in rows:
            self.root[row.client].append(event_of(row))

    def add_durable(self, group: str, lines: Iterable[bytes], routing: RoutingTable) -> None:
        events = [event_of(decode_line(line)) for line in lines]
        for subscription in routing.groups[group].subscriptions:
            for event in events:
                self.durable[subscription][event[0]].append(event)

    def add_live(self, client: str, message: Message) -> int:
        """Gives how many deliveries these are."""
        count = 0
        for line in split_lines(message.body):
            names = json.loads(line)["situsubs"].split(",")
            event = event_of(decode_line(line))
            for name in names:
                self.live[f"{client}/{name}"][event[0]].append(event)
            count += len(names)
        return count

    def add_dead(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            data = json.loads(_POSITION.sub(b"", line))["data"]
            told = ("code", "key", "stage", "path", "message", "hint", "ad", "original")
            self.dead.append(tuple(data.get(name, "") for name in told))
        self.dead.sort(key=lambda letter: letter[1])
