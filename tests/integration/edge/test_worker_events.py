"""The process of the edge engine says how busy it is, as an event that is stored, delivered and watched like others."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

from situ.app.worker_events import WorkerPublisher
from situ.lang.records import replace
from situ.lang.types.table import WORKER_PUBLISHER
from situ.registry.run_metrics import RunMetrics
from tests.edge_zone import edge_zone, take

LOAD = {
    "ontology.yaml": """
        concepts:
          worker: {id: string, lag: long}
          limit: {id: string, messages: long}
        relationships:
          over: {between: [worker.lag, limit.messages], function: ">="}
        """,
    "sources/load.yaml": """
        pull:
          limits: {csv: limits.csv, columns: {id: string, messages: long}, concept: limit, key: id}
        push:
          load: {event: situ.worker, concept: worker, id: worker, attribute: lag, value: lag}
        """,
    "limits.csv": "id,messages\nhigh,1000\n",
    "policies/behind.dpl": "concepts\n  worker W\n  limit L\nconditions\n  W is over L\nactions\n  log 'behind'\n",
}
CLIENTS = """
  desk:
    subscriptions:
      busy: {types: [situ.worker], durable: true}
      told: {types: [situ.situation], durable: true}
"""


def test_subscriptions_and_policies_see_how_busy_a_worker_is(tmp_path: Path) -> None:
    async def run() -> None:
        situ = "worker_events: true\ndefaults: {lateness: 10 ms, idle: 200 ms}\n"
        async with edge_zone(tmp_path, situ=situ, clients=CLIENTS, more=LOAD) as zone, zone.connect("desk") as desk:
            assert zone.engine is not None
            publisher = WorkerPublisher(zone.engine)
            figures = RunMetrics(engine="edge", taken=10, waiting=0)
            assert await publisher.tell(figures) == 1
            assert await publisher.tell(replace(figures, waiting=5000)) == 1
            first, second = await take(desk.events("situ.worker", durable="busy"), 2)
            me = f"{socket.gethostname()}/{os.getpid()}"
            assert (first.source, first.data["worker"], first.data["lag"]) == (WORKER_PUBLISHER, me, 0)
            assert (second.data["lag"], second.data["imprecision"]) == (5000, 0.05)
            (opened,) = await take(desk.events("situ.situation", durable="told"), 1)
            assert {each["alias"]: each["id"] for each in opened.data["bindings"]} == {"W": me, "L": "high"}
            assert await zone.messages(zone.names.dead_stream) == []

    asyncio.run(run())
