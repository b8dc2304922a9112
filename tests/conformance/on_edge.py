"""Generated input through the edge engine."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path

from situ.bus.memory import MemoryBus
from situ.edge.engine import EdgeEngine
from situ.event.lines import decode_line
from situ.event.message import Message, split_lines
from situ.event.subjects import BusNames
from situ.lang.records import replace
from situ.model import Deployment
from situ.registry.snapshots import publish_deployment
from tests.conformance.delivered import Delivered, routing_of
from tests.conformance.generated import NO_FILES, SITU, TYPES, Send, Step
from tests.edge_zone import eventually
from tests.zone import deployment_of


def run_on_edge(folder: Path, steps: Sequence[Step], files: Mapping[str, str] = NO_FILES) -> Delivered:
    """``files`` are what the project has besides."""
    return asyncio.run(_run(folder, steps, files))


async def _run(folder: Path, steps: Sequence[Step], files: Mapping[str, str]) -> Delivered:
    found, names = Delivered(), BusNames("main")
    deployment = deployment_of(folder / "project", (), types=TYPES, situ=SITU, more=files).at_version(1)
    prefix = names.live("")

    async def hear(message: Message) -> None:
        found.add_live(message.subject.removeprefix(prefix), message)

    async with MemoryBus() as bus:
        await bus.prepare(deployment.settings)
        await publish_deployment(bus, deployment)
        serving = await bus.serve(names.live("*"), hear)
        engine = EdgeEngine(bus, folder / "project")
        await engine.start()
        read = 0
        for step in steps:
            if isinstance(step, Send):
                await (await engine.take(step.key, step.count, step.body, step.received))
                continue
            # The engine says that it works with the new one when all that it took before is routed by the old one.
            before, deployment = deployment, replace(deployment, subscriptions=step.subscriptions)
            deployment = deployment.at_version(before.version + 1)
            for group in routing_of(deployment).groups:
                await bus.ensure_consumer(f"keep_{group}", [group])
            await publish_deployment(bus, deployment)
            await eventually(lambda version=deployment.version: engine.version == version, within=180)
            read = await _collect(bus, found, read, before)
        await engine.stop()
        await _collect(bus, found, read, deployment)
        await serving.close()
        async for message in bus.read(names.root_stream, 1):
            found.add_root(decode_line(line) for line in split_lines(message.body))
        async for message in bus.read(names.dead_stream, 1):
            found.add_dead(split_lines(message.body))
    return found


async def _collect(bus: MemoryBus, found: Delivered, read: int, deployment: Deployment) -> int:
    """What was delivered while this deployment was in force."""
    names, routing = BusNames("main"), routing_of(deployment)
    async for message in bus.read(names.out_stream, read + 1):
        found.add_durable(names.group_of(message.subject), split_lines(message.body), routing)
        read = message.seq
    return read
