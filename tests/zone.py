"""A zone for tests of engines: a real bus, a deployment, and messages stored as a router stores them."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from situ.bus.address import Address
from situ.bus.sync_bus import BlockingBus, close_shared
from situ.event.lines import decode_line, stored_lines
from situ.event.message import (
    CLIENT,
    CONTEXT,
    COUNT,
    DEPLOYMENT,
    ID,
    KEY,
    RECEIVED,
    EventKey,
    Message,
    StoredMessage,
    join_lines,
    message_id,
)
from situ.event.row import Row
from situ.event.subjects import DEPLOYMENTS, REGISTRY, BusNames, consumer_of, shard_of
from situ.lang.catalogue import ENGINE_FAILED
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.routing.model import Subscription
from situ.stages.plan import compile_plan
from situ.testing.fixtures import load_project
from tests.nats_server import NatsServer, nats_server
from tests.project_files import write

TYPES = """
version: 1
events:
  Reading: {sensor: string, value: double, unit: optional string}
  Alarm: {text: string, level: int}
"""


@dataclass
class Zone:
    """The bus of one zone with one router's place in it; what clients would send is stored by :meth:`send`."""

    server: NatsServer
    bus: BlockingBus
    address: Address
    deployment: Deployment
    names: BusNames
    _next: dict[str, int] = field(default_factory=lambda: defaultdict(lambda: 1))

    def publish(self, deployment: Deployment) -> None:
        """Put a deployment in force, under the next version."""
        entry = self.bus.get(REGISTRY, "current")
        version = json.loads(entry.value or b"{}")["version"] + 1 if entry is not None else 1
        self.deployment = deployment.at_version(version)
        self.bus.put_object(DEPLOYMENTS, str(version), json.dumps(self.deployment.as_json()).encode())
        routing = compile_plan(self.deployment).routing
        for group in routing.groups.values():
            for subscription in group.subscriptions:
                self.bus.ensure_consumer(consumer_of(subscription), [group.id])
        current = {"version": version, "digest": self.deployment.digest}
        self.bus.put(REGISTRY, "current", json.dumps(current).encode())

    def send(self, client: str, events: Iterable[bytes | Mapping[str, Any]], *, incarnation: int = 1) -> int:
        """Store one message of a client, as its router would; gives its sequence."""
        lines = [each if isinstance(each, bytes) else json.dumps(each).encode() for each in events]
        seq = self._next[client]
        self._next[client] += len(lines)
        key = EventKey(client, incarnation, seq)
        return self.store(key, lines)

    def store(self, key: EventKey, lines: list[bytes]) -> int:
        """Store a message under any key, as a router would."""
        known = self.deployment.clients.get(key.client)
        context = self.deployment.contexts.by_id["root" if known is None else known.context]
        headers = {
            CLIENT: key.client,
            CONTEXT: "root" if context.id == "root" else context.name,
            DEPLOYMENT: str(self.deployment.version),
            KEY: str(key),
            COUNT: str(len(lines)),
            RECEIVED: str(time.time_ns() // 1000),
            ID: message_id(key, len(lines)),
        }
        subject = self.names.raw("r1", shard_of(key.client))
        return self.bus.store(Message(subject=subject, headers=headers, body=join_lines(lines))).result().seq

    def root(self) -> list[Row]:
        """The events of the root log."""
        return [
            decode_line(line) for message in self.messages(self.names.root_stream) for line in stored_lines(message)
        ]

    def delivered(self) -> dict[str, list[Row]]:
        """The events that wait for each delivery group."""
        found: dict[str, list[Row]] = defaultdict(list)
        for message in self.messages(self.names.out_stream):
            found[self.names.group_of(message.subject)] += [decode_line(line) for line in stored_lines(message)]
        return found

    def dead(self) -> list[dict[str, Any]]:
        """The data of the dead letters."""
        lines = (line for message in self.messages(self.names.dead_stream) for line in stored_lines(message))
        return [json.loads(line)["data"] for line in lines]

    def messages(self, stream: str) -> list[StoredMessage]:
        return list(self.bus.read(stream, 1))


def cut_off(step: str) -> SituError:
    """What ends a query as the end of its process would: nothing is done about it, and nothing behind it."""
    return SituError(ENGINE_FAILED(engine="spark", reason=f"cut off before {step}", remedy=""))


def event(id: str, type: str, data: Any, **attributes: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": id, "source": "x", "type": type, **attributes, "data": data}


def deployment_of(
    folder: Path,
    subscriptions: Iterable[Subscription],
    *,
    types: str = TYPES,
    situ: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Deployment:
    """What a project with these types declares, with three publishers and these subscriptions."""
    advertised = "{advertisements: {readings: {type: Reading}, alarms: {type: Alarm}}}"
    clients = "".join(f"  press-{number}: {advertised}\n" for number in range(1, 9))
    write(
        folder,
        {
            "situ.yaml": f"version: 1\nname: plant\n{situ}",
            "types/all.yaml": types,
            "clients/all.yaml": f"version: 1\nclients:\n{clients}",
            **more,
        },
    )
    return replace(load_project(folder).deployment, subscriptions={each.id: each for each in subscriptions})


@contextmanager
def zone(
    folder: Path,
    subscriptions: Iterable[Subscription] = (),
    *,
    types: str = TYPES,
    situ: str = "",
    more: Mapping[str, str] = MappingProxyType({}),
) -> Iterator[Zone]:
    """A running zone with this deployment, its durable groups kept by consumers."""
    deployment = deployment_of(folder / "project", subscriptions, types=types, situ=situ, more=more)
    with nats_server(folder / "nats") as server, BlockingBus(server.address(), name="test") as bus:
        bus.prepare(deployment.settings)
        found = Zone(server, bus, server.address(), deployment, BusNames("main"))
        found.publish(deployment)
        try:
            yield found
        finally:
            close_shared()  # an engine in this process shares its connection; it would look for the server for ever
