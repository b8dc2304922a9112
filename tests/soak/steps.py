"""What each step of the security scenario costs: CPU time of an event, in one process, without Spark and without a bus.

``python -m tests.soak.steps`` records ten seconds of sensors and takes their messages through the stages that Spark's
workers run. The first time warms up, the second is measured. What Java, the bus and sockets take comes on top;
:mod:`tests.soak.security` has all of it together.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import benchmarks  # noqa: F401 - finds the simulator, which belongs to an example
from situ.event.message import CLIENT, CONTEXT, COUNT, KEY, RECEIVED, EventKey, Message, StoredMessage
from situ.event.row import BadRow, Row
from situ.event.subjects import BusNames, shard_of
from situ.lang.records import replace
from situ.policies.enrichment.instances import InstanceColumns
from situ.project.check import check_folder
from situ.spark import frames
from situ.spark.detect import for_buckets
from situ.spark.dispatch import DispatchTask
from situ.stages.deliver import interpret_out, route_and_shape
from situ.stages.detect.step import read_messages
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import ingress_rows, origin_of, pack, write
from situ.stages.shape import ShapedDeliveries
from situ.stages.stamp import stamp
from situ.tables.cache import TablesInUse
from tests.soak.recording import GATEWAYS, Recording, record
from tests.soak.recording import read_messages as recorded_messages

RATE, SECONDS = 20_000, 10.0
_ROWS = 8192
T = TypeVar("T")


class Steps:
    """How long each step took."""

    def __init__(self) -> None:
        self.seconds: defaultdict[str, float] = defaultdict(float)

    def __call__(self, step: str, work: Callable[..., T], *given: Any) -> T:
        began = time.process_time()
        found = work(*given)
        self.seconds[step] += time.process_time() - began
        return found


def came_in(recording: Recording, plan: Plan) -> Iterator[StoredMessage]:
    """The messages as the router puts them into the log of what came in."""
    names, numbers = BusNames(plan.zone), Counter[str]()
    for seq, each in enumerate(recorded_messages(recording.messages), 1):
        client = GATEWAYS[each.gateway]
        received = recording.start + each.due
        headers = {
            CLIENT: client,
            CONTEXT: plan.interpretation.stamped(client),
            RECEIVED: str(received),
            KEY: str(EventKey(client, 1, numbers[client] + 1)),
            COUNT: str(each.count),
        }
        numbers[client] += each.count
        subject = names.raw("r1", shard_of(client))
        yield StoredMessage(seq=seq, subject=subject, body=each.body, headers=headers, at=received)


def dispatch(steps: Steps, messages: list[StoredMessage], plan: Plan, clock: int) -> list[Message]:
    """The way of events up to their deliveries; the messages of the root log."""
    batches = steps("rows of the source", lambda: list(frames.row_batches(messages, _ROWS)))
    task, root = DispatchTask(plan, clock), list[Message]()
    for message in steps("messages of the rows", lambda: list(frames.messages_of(batches))):
        rows = steps("decode", _rows, message, plan)
        rows = steps("interpret into root", plan.interpretation.into_root, rows)
        good, bad = steps("stamp", stamp, rows, plan)
        assert not bad
        batch = steps("lines of the root log", write, good, bad)
        steps("messages of the root log", pack, batch, plan)
        root += [each for _, each in batch.messages]
        shaped = steps("route", route_and_shape, good, batch.lines, plan, None, clock)
        worded = steps("interpret out", interpret_out, shaped, plan)
        steps("messages of deliveries", _delivered, task, shaped, worded)
    return root


def _rows(message: StoredMessage, plan: Plan) -> list[Row | BadRow]:
    return ingress_rows(message, origin_of(message), plan.interpretation, lambda _: None, bare=True)


def _delivered(task: DispatchTask, shaped: ShapedDeliveries, worded: ConvertedDeliveries) -> list[Message]:
    return list(task._add(shaped.rows, worded))


def detect(steps: Steps, messages: list[StoredMessage], plan: Plan, knowledge: InstanceColumns) -> None:
    """The way from the root log to the kernels."""
    read = steps("decode for policies", read_messages, plan.detecting, plan.reading, messages)
    steps(
        "enrich, and blocks by bucket",
        lambda: for_buckets(read.observed, plan.detecting, knowledge, {}, 2, read.hidden, seen=read.seen),
    )


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="situ-steps-") as folder:
        recording = record(Path(folder), rate=RATE, seconds=SECONDS)
        deployment = check_folder(recording.folder).deployment
        assert deployment is not None
        plan = compile_plan(replace(deployment, version=1))
        with TablesInUse(recording.folder) as tables, TablesInUse(recording.folder) as known:
            tables.use(deployment.sources, plan.interpretation.keyed())
            plan.interpretation.rows.tables = tables.snapshot
            known.use(deployment.sources, plan.detecting.tables.keyed)
            knowledge = InstanceColumns(plan.detecting.ontology)
            knowledge.take(plan.detecting.tables.of(known.snapshot))
        messages = list(came_in(recording, plan))
        for _ in range(2):
            steps, clock = Steps(), recording.start + int(SECONDS * 1e6)
            logged = [
                StoredMessage(seq=seq, subject=each.subject, body=each.body, headers=each.headers, at=clock)
                for seq, each in enumerate(dispatch(steps, messages, plan, clock), 1)
            ]
            detect(steps, logged, plan, knowledge)
    for step, seconds in steps.seconds.items():
        print(f"{step:32}{1e6 * seconds / recording.events:6.2f} µs")
    print(f"{f'of {recording.events:,} events':32}{1e6 * sum(steps.seconds.values()) / recording.events:6.2f} µs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
