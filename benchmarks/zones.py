"""Zones for benchmarks: a real bus, a deployment, and an ingress stream that is filled again and again.

What clients would send is stored as their router stores it, as fast as the bus takes it, so that what is measured is
never who publishes.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from situ.bus.sync_bus import BlockingBus
from situ.event.message import CLIENT, CONTEXT, COUNT, ID, KEY, RECEIVED, EventKey, Message, message_id
from situ.event.subjects import BusNames, shard_of
from situ.lang.records import replace
from situ.project.check import check_folder
from situ.routing.model import Subscription
from tests.nats_server import nats_server
from tests.project_files import write
from tests.zone import Zone


@dataclass(frozen=True, slots=True)
class Sent:
    """What one message of a client holds."""

    client: str
    body: bytes
    count: int
    context: str = "root"


@contextmanager
def open_zone(folder: Path, files: Mapping[str, str], subscriptions: Iterable[Subscription] = ()) -> Iterator[Zone]:
    """A running zone of a project with these files; ``subscriptions`` come on top of those it declares."""
    write(folder / "project", dict(files))
    checked = check_folder(folder / "project")
    assert checked.deployment is not None, checked.problems
    deployment = checked.deployment
    more = {each.id: each for each in subscriptions}
    deployment = replace(deployment, subscriptions={**deployment.subscriptions, **more})
    with nats_server(folder / "nats") as server, BlockingBus(server.address(), name="bench") as bus:
        bus.prepare(deployment.settings)
        zone = Zone(server, bus, server.address(), deployment, BusNames("main"))
        zone.publish(deployment)
        yield zone


class Ingress:
    """The ingress stream of a zone, with always the same events in it, under keys of their own each time."""

    def __init__(self, zone: Zone, parts: Sequence[Sent], messages: int) -> None:
        self.zone = zone
        self.messages = messages
        self.stored_in = 0.0
        """Seconds that it took to fill it."""
        self._parts = parts
        self._incarnation = 0
        self._intact = False

    @property
    def last(self) -> int:
        return self.zone.bus.state(self.zone.names.in_stream).last

    @property
    def events(self) -> int:
        return sum(self._parts[number % len(self._parts)].count for number in range(self.messages))

    @property
    def size(self) -> int:
        """Bytes of all messages."""
        return sum(len(self._parts[number % len(self._parts)].body) for number in range(self.messages))

    def fill(self, *, again: bool = True) -> None:
        """All streams of the zone are empty but this one. Not ``again``: what only was read stays as it is."""
        if self._intact and not again:
            return
        bus, names = self.zone.bus, self.zone.names
        for stream in names.streams:
            bus.purge(stream, bus.state(stream).last + 1)
        self._incarnation += 1
        began = time.perf_counter()
        for future in [bus.store(message) for message in self._messages_of(names)]:
            future.result()
        self.stored_in = time.perf_counter() - began
        self._intact = not again

    def _messages_of(self, names: BusNames) -> Iterator[Message]:
        reached: dict[str, int] = defaultdict(lambda: 1)
        for number in range(self.messages):
            sent = self._parts[number % len(self._parts)]
            key = EventKey(sent.client, self._incarnation, reached[sent.client])
            reached[sent.client] += sent.count
            headers = {
                CLIENT: sent.client,
                CONTEXT: sent.context,
                KEY: str(key),
                COUNT: str(sent.count),
                RECEIVED: str(time.time_ns() // 1000),
                ID: message_id(key, sent.count),
            }
            yield Message(subject=names.raw("r1", shard_of(sent.client)), headers=headers, body=sent.body)
