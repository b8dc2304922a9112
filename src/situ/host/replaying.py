"""Replay: the root log, or a part of it, through the same routing again, and nothing is published.

On Spark the pipeline does it, with all cores; in one process it is done here, with the routing of the edge engine. Both
give a delivery for each event and each subscription it is for, each event once however often the log holds it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

from situ.bus.address import Address
from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.deployment import Deployment
from situ.event.lines import decode_line
from situ.event.message import Stored, position, split_lines
from situ.event.row import Row
from situ.host.logs import LOGS
from situ.settings import Settings
from situ.subscription.routing import Routing, compile_routing

Progress = Callable[[str, int, int], None]

_BATCH = 2_000  # events that are routed at once


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event as a line of text, and the subscription it is for."""

    subscription: str
    line: bytes


async def span(bus: Bus, begin: datetime, end: datetime | None) -> tuple[int, int]:
    """The first and the last message of the root log that was stored in this time."""
    stream = Names(bus.zone).root_stream
    state = await bus.state(stream)
    last = state.last if end is None else min(await bus.find(stream, end) - 1, state.last)
    return max(await bus.find(stream, begin), state.first), last


def wanted_only(deployment: Deployment, subscriptions: Sequence[str]) -> Routing:
    """The routing for these subscriptions of a deployment, or for all if none is named."""
    chosen = {
        id: each for id, each in deployment.subscriptions.items() if not subscriptions or id in set(subscriptions)
    }
    return compile_routing(
        types=deployment.types,
        functions=deployment.definitions,
        subscriptions=chosen,
        limits=deployment.settings.expression_limits,
    )


async def replay_here(
    bus: Bus, routing: Routing, first: int, last: int, progress: Progress | None = None
) -> AsyncIterator[list[Delivery]]:
    """The deliveries of these messages of the root log, in the order of the log."""
    stream = Names(bus.zone).root_stream
    replay = Replay(routing)
    async with aclosing(bus.read(stream, first, last)) as messages:  # type: ignore[type-var]  # it is a generator
        async for message in messages:
            if found := replay.take(_lines(message)):
                yield found
            if progress is not None:
                progress("", message.seq - first + 1, max(last - first + 1, 1))
    yield replay.finish()


class Replay:
    """Routes lines of a log, many at a time."""

    def __init__(self, routing: Routing) -> None:
        self.events = 0
        self._routing = routing
        self._highest: dict[tuple[str, int], int] = {}
        self._rows: list[Row] = []
        self._texts: list[bytes] = []

    def take(self, lines: Iterator[tuple[bytes, int]]) -> list[Delivery]:
        for line, pos in lines:
            row = decode_line(line, pos=pos)
            key = (row.client, row.incarnation)
            if row.seq <= self._highest.get(key, 0):
                continue  # the log holds it twice
            self._highest[key] = row.seq
            self._rows.append(row)
            self._texts.append(line)
        return self.finish() if len(self._rows) >= _BATCH else []

    def finish(self) -> list[Delivery]:
        rows, texts = self._rows, self._texts
        self._rows, self._texts = [], []
        self.events += len(rows)
        routed, groups = self._routing.route(rows), self._routing.groups
        found = [
            (index, subscription)
            for index, group in routed.durable
            for subscription in groups[group].subscriptions
            if not subscription.startswith(f"{rows[index].client}/")
        ]
        found += [(index, f"{client}/{name}") for index, client, names in routed.live for name in names.split(",")]
        found.sort(key=lambda each: each[0])
        return [Delivery(subscription, texts[index]) for index, subscription in found]


async def replay_on_spark(
    folder: Path, settings: Settings, address: Address, version: int, first: int, last: int
) -> AsyncIterator[list[Delivery]]:
    """The same by the pipeline, in the order in which its partitions give them."""
    rows = await asyncio.to_thread(_open, folder, settings, address, version, first, last)
    try:
        while chunk := await asyncio.to_thread(_some, rows):
            yield chunk
    finally:
        rows.close()


def _open(folder: Path, settings: Settings, address: Address, version: int, first: int, last: int) -> Any:
    from situ.pipeline.replay import replay
    from situ.pipeline.session import open_session

    log = folder / LOGS / "replay.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    conf = {name: value.value for name, value in settings.spark.conf}
    session = open_session(app="situ replay", master=settings.spark.master.value, conf=conf, log=log)

    def rows() -> Iterator[Delivery]:
        try:
            for row in replay(session, address, version, first=first, last=last).toLocalIterator():
                yield Delivery(row["subscription"], bytes(row["event"]))
        finally:
            session.stop()

    return rows()


def _some(rows: Iterator[Delivery]) -> list[Delivery]:
    return list(islice(rows, _BATCH))


def _lines(message: Stored) -> Iterator[tuple[bytes, int]]:
    for place, line in enumerate(split_lines(message.body)):
        yield line, position(message.seq, place)
