"""Generated input through the Spark engine, on a real bus."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from situ.bus.address import Address
from situ.bus.nats import open_bus
from situ.contexts.model import ROOT
from situ.event.message import CLIENT, CONTEXT, COUNT, ID, KEY, RECEIVED, Message, message_id, split_lines
from situ.event.subjects import BusNames, shard_of
from situ.lang.records import replace
from situ.spark.engine import SparkEngine
from tests.conformance.delivered import Delivered, routing_of
from tests.conformance.generated import NO_FILES, SITU, TYPES, Send, Step
from tests.integration.spark.test_engine import drained, wait_for
from tests.zone import Zone, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_on_spark(
    spark: SparkSession, folder: Path, steps: Sequence[Step], *, files: Mapping[str, str] = NO_FILES
) -> Delivered:
    """``files`` are what the project has besides."""
    found = Delivered()
    with zone(folder, types=TYPES, situ=SITU, more=files) as at, listening(at.address, found) as heard:
        engine = SparkEngine(spark, at.address, at.deployment.settings, folder / "checkpoints")
        engine.start()
        try:
            read = 0
            for step in steps:
                if isinstance(step, Send):
                    _store(at, step)
                    continue
                read = _collect(at, engine, found, read)
                deployment = replace(at.deployment, subscriptions=step.subscriptions)
                for group in routing_of(deployment).groups:
                    at.bus.ensure_consumer(f"keep_{group}", [group])
                at.publish(deployment)
                wait_for(drained(engine, at), seconds=180)
            _collect(at, engine, found, read)
            wait_for(lambda: heard.count >= sum(engine.totals.live.values()), seconds=180)
        finally:
            engine.stop()
        found.add_root(at.root())
        for message in at.messages(at.names.dead_stream):
            found.add_dead(split_lines(message.body))
    return found


def _store(at: Zone, send: Send) -> None:
    known = at.deployment.clients.get(send.key.client)
    context = at.deployment.contexts.by_id[ROOT if known is None else known.context]
    headers = {
        CLIENT: send.key.client,
        CONTEXT: ROOT if context.id == ROOT else context.name,
        KEY: str(send.key),
        COUNT: str(send.count),
        RECEIVED: str(send.received),
        ID: message_id(send.key, send.count),
    }
    subject = at.names.raw("r1", shard_of(send.key.client))
    at.bus.store(Message(subject=subject, headers=headers, body=send.body)).result()


def _collect(at: Zone, engine: SparkEngine, found: Delivered, read: int) -> int:
    """What was delivered while the deployment of now was in force."""
    wait_for(drained(engine, at), seconds=180)
    routing = routing_of(at.deployment)
    for message in at.bus.read(at.names.out_stream, read + 1):
        found.add_durable(at.names.group_of(message.subject), split_lines(message.body), routing)
        read = message.seq
    return read


class Heard:
    count = 0


@contextmanager
def listening(address: Address, found: Delivered) -> Iterator[Heard]:
    """Write down what goes to clients live."""
    heard, ready, over = Heard(), threading.Event(), threading.Event()

    async def listen() -> None:
        names = BusNames(address.zone)
        prefix = names.live("")

        async def hear(message: Message) -> None:
            heard.count += found.add_live(message.subject.removeprefix(prefix), message)

        async with await open_bus(address, name="listener") as bus:
            serving = await bus.serve(names.live("*"), hear)
            await bus.state(names.out_stream)  # what was asked for before an answer is in force
            ready.set()
            while not over.is_set():
                await asyncio.sleep(0.02)
            await serving.close()

    thread = threading.Thread(target=lambda: asyncio.run(listen()))
    thread.start()
    try:
        assert ready.wait(60)
        yield heard
    finally:
        over.set()
        thread.join()
