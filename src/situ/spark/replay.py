"""Replay: the root log, or a part of it, through the same routing again, as fast as it can be read.

Gives what each subscription would have been delivered, and publishes nothing.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from situ.archive.history import PastLog
from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.event.lines import bare_lines, decode_line
from situ.event.row import Row
from situ.event.subjects import BusNames
from situ.sources import Table
from situ.spark.frames import log_batches
from situ.spark.plans import load_plan
from situ.spark.source import BusSource
from situ.stages.deliver import route
from situ.stages.plan import Plan
from situ.stages.root_log import upgrade_message

_ROWS = 10_000
"""Of the log that are read at a time."""
DELIVERIES = pa.schema(
    [
        ("subscription", pa.string()),
        ("pos", pa.int64()),
        ("client", pa.string()),
        ("incarnation", pa.int64()),
        ("seq", pa.int64()),
        ("event", pa.binary()),
    ]
)


def replay(
    session: SparkSession,
    address: Address,
    version: int,
    *,
    first: int = 0,
    last: int | None = None,
    tables: Mapping[str, Table] = MappingProxyType({}),
    past: PastLog | None = None,
) -> DataFrame:
    """A row for each event and each subscription of this version that it is for, from these messages of the root log.

    An event that the log holds twice counts once, as it does for everyone who reads the log. What a subscription gets
    of one client is in one partition, in the order of the log. What is looked up is looked up in ``tables``, whatever
    they had in them when the events came. What the log no longer has is read from ``past``.
    """
    session.dataSource.register(BusSource)
    reader = session.read.format(BusSource.name()).option("address", address.to_json()).option("stream", "ROOT")
    reader = reader.option("content", "log").option("version", str(version)).option("first", str(first))
    reader = reader.option("partitions", str(4 * session.sparkContext.defaultParallelism))
    log = (reader if last is None else reader.option("last", str(last))).load()
    if past is not None:
        state = shared_bus(address).state(BusNames(address.zone).root_stream)
        log = _archived(session, past.before(state.first), address, version, log).unionAll(log)
    deliveries = log.mapInArrow(_deliveries(address, version, dict(tables)), from_arrow_schema(DELIVERIES))
    # One exchange serves both: what is to be told apart lies together, and so does what is to be in order.
    together = deliveries.repartition("subscription", "client")
    return together.dropDuplicates(["subscription", "client", "incarnation", "seq"]).sortWithinPartitions("pos")


def _archived(session: SparkSession, past: PastLog, address: Address, version: int, log: DataFrame) -> DataFrame:
    """What is archived of the log, laid out as the log is."""
    parts = [pickle.dumps(past.only(each)) for each in past.segments]
    table = pa.table({"part": pa.array(range(len(parts)), pa.int32()), "past": pa.array(parts, pa.binary())})
    given = session.createDataFrame(table).repartitionById(max(len(parts), 1), "part")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        interpretation = load_plan(address, version).interpretation
        for batch in batches:
            for text in batch.column("past").to_pylist():
                messages = pickle.loads(text).messages()
                yield from log_batches((upgrade_message(each, interpretation) for each in messages), _ROWS)

    return given.mapInArrow(run, log.schema)


def _deliveries(
    address: Address, version: int, tables: Mapping[str, Table]
) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        plan = load_plan(address, version)
        plan.interpretation.rows.tables = tables
        for batch in batches:
            lines, positions = batch.column("line").to_pylist(), batch.column("pos").to_pylist()
            rows = [decode_line(line, pos=pos) for line, pos in zip(lines, positions, strict=True)]
            lines = bare_lines(rows, lines)
            found = [
                (name, row.pos, row.client, row.incarnation, row.seq, line)
                for name, row, line in _wanted(rows, lines, plan)
            ]
            columns = list(zip(*found, strict=True)) or [()] * len(DELIVERIES)
            arrays = [pa.array(column, field.type) for column, field in zip(columns, DELIVERIES, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=DELIVERIES)

    return run


def _wanted(rows: list[Row], lines: list[bytes], plan: Plan) -> Iterator[tuple[str, Row, bytes]]:
    """Each event, in its terms, with each subscription it is for; nobody is sent what they sent."""
    worded = plan.interpretation.worded(rows, lines, route(rows, plan), plan.routing)
    groups = plan.routing.groups
    for index, group, line in worded.durable:
        row = rows[index]
        for subscription in groups[group].subscriptions:
            if subscription.partition("/")[0] != row.client:
                yield subscription, row, line
    for index, client, names, line in worded.live:
        for name in names.split(","):
            yield f"{client}/{name}", rows[index], line
