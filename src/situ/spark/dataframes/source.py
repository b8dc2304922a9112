"""The data source ``situ``: what a subscription gets, and what a client publishes, on the bus of a run.

``spark.readStream.format("situ")`` reads the root log of a run, and gives the events that a subscription asks for and
may see, in its terms; ``spark.read`` all that the log has now. An offset is the number of a message of the log, so a
query goes on from its checkpoint, and nothing has to wait for it on the bus. ``writeStream`` and ``write`` publish the
texts of events as a client, through the router, which holds them to what the client has advertised.

Options: ``project``, the folder; ``subscription`` (``client/name``) to read, ``client`` to write; ``start``
(``earliest``, or ``latest``, which streams begin with), ``maxMessages`` of a batch, ``partitions``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.streaming.datasource import ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow
from pyspark.sql.types import BinaryType, StringType, StructType

from situ.lang.catalogue import NOT_IN_PROJECT, NOT_ON_DATAFRAMES, SOURCE_OPTION
from situ.lang.problems import SituError, nearest
from situ.lang.records import replace

if TYPE_CHECKING:
    import pyarrow as pa

    from situ.bus.address import Address
    from situ.model import Deployment
    from situ.sources.table import Table
    from situ.stages.plan import Plan

# Spark loads this module in processes of its own that only ask what the source is: what does the work is imported in
# the functions that do it.

NAME = "situ"
SCHEMA = "value STRING, key STRING, type STRING, time TIMESTAMP, received TIMESTAMP, position BIGINT"
"""``value`` is the event as it would be delivered: what ``Project.decode`` reads."""
_VALUE = "value"
_TOGETHER = 1000
"""Events that are published in one message, and messages of the log that are routed together."""
_PATIENCE = 30.0


class SituSource(DataSource):
    """``format("situ")``."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return SCHEMA

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark's signature
        return LogReader(SubscriptionLog.of(self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: ARG002, N802 - Spark's signature
        return LogStreamReader(SubscriptionLog.of(self.options))

    def writer(self, schema: StructType, overwrite: bool) -> EventWriter:
        if overwrite:
            _refuse("write", "it cannot take back what was published", 'Say `.mode("append")`.')
        return EventWriter(ClientPublisher.of(self.options, schema))

    def streamWriter(self, schema: StructType, overwrite: bool) -> EventStreamWriter:  # noqa: ARG002, N802
        return EventStreamWriter(ClientPublisher.of(self.options, schema))


def _refuse(do: str, reason: str, remedy: str) -> NoReturn:
    raise SituError(SOURCE_OPTION(do=do, reason=reason, remedy=remedy))


def _option(options: Mapping[str, str], name: str, do: str, example: str) -> str:
    found = options.get(name, "")
    if not found:
        _refuse(do, f"the option `{name}` is missing", f'Say `.option("{name}", "{example}")`.')
    return found


def _count(options: Mapping[str, str], name: str, otherwise: int) -> int:
    found = options.get(name, str(otherwise))
    if not found.isdecimal() or int(found) < 1:
        _refuse("read", f"`{name}` is `{found}`", "It is a whole number above 0.")
    return int(found)


def _address(folder: Path) -> Address:
    """Where the bus of the project is."""
    from situ.bus.address import resolve_address, settings_of_run
    from situ.project.folder import read_settings

    return resolve_address(folder, settings_of_run(folder) or read_settings(folder))


def _named(kind: str, name: str, known: Mapping[str, Any]) -> None:
    if name not in known:
        remedy = f"In force are {', '.join(f'`{each}`' for each in sorted(known)[:10]) or 'none'}."
        where = " in force"
        raise SituError(NOT_IN_PROJECT(kind=kind, name=name, where=where, nearest=nearest(name, known), remedy=remedy))


def _in_force(address: Address) -> Deployment:
    from situ.spark.plans import current_version, fetch

    version = current_version(address)
    if not version:
        _refuse("start", "no version of the project is in force", "Start it with `situ run`.")
    return fetch(address, version)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reading.


@dataclass(frozen=True, slots=True)
class MessageRange(InputPartition):
    """Messages of the log, the last one excluded, and the version that routes them."""

    first: int
    end: int
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionLog:
    """The root log as one subscription sees it. Travels to the tasks."""

    address: Address
    subscription: str
    tables: Mapping[str, Table] = field(repr=False)
    partitions: int
    most: int
    start: str

    @classmethod
    def of(cls, options: Mapping[str, str]) -> SubscriptionLog:
        folder = Path(_option(options, "project", "read", "plant"))
        subscription = _option(options, "subscription", "read", "desk/arrivals")
        start = options.get("start", "")
        if start not in ("", "earliest", "latest"):
            _refuse("read", f"`start` is `{start}`", "It is `earliest` or `latest`.")
        address = _address(folder)
        deployment = _in_force(address)
        _named("subscription", subscription, deployment.subscriptions)
        return cls(
            address=address,
            subscription=subscription,
            tables=_tables(deployment, subscription, folder),
            partitions=_count(options, "partitions", 2),
            most=_count(options, "maxMessages", 10_000),
            start=start,
        )

    @property
    def ends(self) -> tuple[int, int]:
        """The first message that the log has, and the one behind the last."""
        from situ.bus.sync_bus import shared_bus
        from situ.event.subjects import BusNames

        state = shared_bus(self.address).state(BusNames(self.address.zone).root_stream)
        return state.first, state.last + 1

    def divided(self, first: int, end: int, version: int) -> list[MessageRange]:
        """About equal shares of these messages; one of nothing, if there are none: Spark would make up another."""
        size = max(1, -(-(end - first) // self.partitions))
        shares = [MessageRange(at, min(at + size, end), version) for at in range(first, end, size)]
        return shares or [MessageRange(first, first, version)]

    def read(self, part: MessageRange) -> Iterator[pa.RecordBatch]:
        from situ.bus.sync_bus import shared_bus
        from situ.event.subjects import BusNames
        from situ.stages.root_log import upgrade_message

        if part.first >= part.end:
            return
        plan = plan_of(self.address, part.version, self.subscription)
        plan.interpretation.rows.tables = self.tables
        messages = shared_bus(self.address).read(BusNames(self.address.zone).root_stream, part.first, part.end - 1)
        some: list[Any] = []
        for message in messages:
            some.append(upgrade_message(message, plan.interpretation))
            if len(some) == _TOGETHER:
                yield _batch(deliveries(some, plan, self.subscription))
                some = []
        if some:
            yield _batch(deliveries(some, plan, self.subscription))


def _tables(deployment: Deployment, subscription: str, folder: Path) -> Mapping[str, Table]:
    """The tables that the terms of a subscription need; :class:`SituError` with N156 if they need more than that."""
    from situ.contexts.model import Direction
    from situ.stages.interpret import Interpretation
    from situ.tables.cache import open_tables

    interpretation = Interpretation.of(deployment)
    context = deployment.subscriptions[subscription].context
    for name in deployment.types.events:
        way = interpretation.converter(context, Direction.OUT, name)
        if way is not None and way.transformation.execution == "stateful":
            remedy = "Read it with the client library, which gets what the run has converted."
            reason = "its context remembers other events"
            raise SituError(NOT_ON_DATAFRAMES(what=f"The subscription `{subscription}`", reason=reason, remedy=remedy))
    keyed = interpretation.keyed([context])
    with open_tables({name: deployment.sources[name] for name in keyed}, folder, keyed=keyed) as tables:
        return dict(tables.snapshot)


@lru_cache(maxsize=4)
def plan_of(address: Address, version: int, subscription: str) -> Plan:
    """The plan of a version for one subscription alone: nobody else's filters are asked."""
    from situ.spark.plans import fetch, fetch_scopes
    from situ.stages.plan import compile_plan

    deployment = fetch(address, version)
    only = {subscription: deployment.subscriptions[subscription]} if subscription in deployment.subscriptions else {}
    plan = compile_plan(replace(deployment, subscriptions=only, shapes={}))
    if plan.seeing is not None:
        plan.seeing.load = lambda epoch: fetch_scopes(address, epoch)
    return plan


def deliveries(messages: Sequence[Any], plan: Plan, subscription: str) -> Iterator[tuple[Any, ...]]:
    """What of these messages of the log a subscription gets, in its terms; nobody gets events of his own."""
    from situ.event.lines import bare_lines, decode_line, stored_lines
    from situ.event.message import position
    from situ.stages.deliver import route

    placed = [
        (position(message.seq, place), line) for message in messages for place, line in enumerate(stored_lines(message))
    ]
    rows = [decode_line(line, pos=pos) for pos, line in placed]
    lines = bare_lines(rows, [line for _, line in placed])
    worded = plan.interpretation.worded(rows, lines, route(rows, plan), plan.routing)
    wanted = {index: line for index, _, line in worded.durable} | {index: line for index, _, _, line in worded.live}
    client = subscription.partition("/")[0]
    for index in sorted(wanted):
        row = rows[index]
        if row.client != client:
            made = decode_line(wanted[index])
            yield wanted[index].decode(), row.key, made.type, row.time, row.recv, row.pos


def _batch(rows: Iterator[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    instant = pa.timestamp("us", tz="UTC")
    schema = pa.schema(
        [
            (_VALUE, pa.string()),
            ("key", pa.string()),
            ("type", pa.string()),
            ("time", instant),
            ("received", instant),
            ("position", pa.int64()),
        ]
    )
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, each.type) for column, each in zip(columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


class LogReader(DataSourceReader):
    """All that the log has when the query runs, or nothing of it with ``start`` at ``latest``."""

    def __init__(self, log: SubscriptionLog) -> None:
        self._log = log

    def partitions(self) -> Sequence[InputPartition]:
        from situ.spark.plans import current_version

        first, end = self._log.ends
        first = end if self._log.start == "latest" else first
        return self._log.divided(first, end, current_version(self._log.address))

    def read(self, partition: MessageRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return self._log.read(partition)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """The log as it grows. An offset is the next message, and the version in force when the batch was planned."""

    def __init__(self, log: SubscriptionLog) -> None:
        self._log = log
        self._until: int | None = None
        """Where a query ends that wants only what is there when it begins."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802 - Spark's name
        first, end = self._log.ends
        return {"next": first if self._log.start == "earliest" else end, "version": 0}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        return ReadMaxRows(self._log.most)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        _, self._until = self._log.ends

    def latestOffset(self, start: dict[str, int], limit: ReadLimit) -> dict[str, int]:  # noqa: ARG002, N802
        from situ.spark.plans import current_version

        first, end = self._log.ends
        end = end if self._until is None else min(end, self._until)
        begin = max(start["next"], first)
        if end <= begin:
            return start
        return {"next": min(end, begin + self._log.most), "version": current_version(self._log.address)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> Sequence[InputPartition]:
        first, _ = self._log.ends
        return self._log.divided(max(start["next"], first), end["next"], end["version"])

    def read(self, partition: MessageRange) -> Iterator[pa.RecordBatch]:  # type: ignore[override]
        return self._log.read(partition)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Writing. At least once: a task that is repeated publishes again.


@dataclass(frozen=True, slots=True)
class PublishedCount(WriterCommitMessage):
    """What a task has published, and how much of that came to be dead letters."""

    events: int
    dead: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPublisher:
    """A client without a session of its own: its router numbers its events. Travels to the tasks."""

    address: Address
    client: str

    @classmethod
    def of(cls, options: Mapping[str, str], schema: StructType) -> ClientPublisher:
        folder = Path(_option(options, "project", "write", "plant"))
        client = _option(options, "client", "write", "camera-1")
        types = {each.name: each.dataType for each in schema.fields}
        if not isinstance(types.get(_VALUE), StringType | BinaryType):
            remedy = "Write `Project.encode(…)`, or a column `value` with CloudEvents in JSON."
            _refuse("write", "the DataFrame has no column `value` of texts", remedy)
        address = _address(folder)
        _named("client", client, _in_force(address).clients)
        return cls(address=address, client=client)

    def publish(self, batches: Iterator[pa.RecordBatch]) -> PublishedCount:
        published = dead = 0
        for batch in batches:
            texts = [each for each in batch.column(_VALUE).to_pylist() if each is not None]
            lines = [_line(text) for text in texts]
            for start in range(0, len(lines), _TOGETHER):
                dead += self._publish(lines[start : start + _TOGETHER])
            published += len(lines)
        return PublishedCount(published, dead)

    def _publish(self, lines: Sequence[bytes]) -> int:
        """How many of these came to be dead letters; :class:`SituError` if the router takes none of them."""
        from situ.bus.sync_bus import shared_bus
        from situ.event.message import Message, join_lines
        from situ.event.subjects import BusNames, portions
        from situ.protocol.messages import Nack, PublishAck
        from situ.protocol.wire import decode_from_router, error_from_nack
        from situ.stages.root_log import ROUTER

        bus, dead = shared_bus(self.address), 0
        subject = BusNames(self.address.zone).ingress(ROUTER, self.client)
        for some in portions(lines):
            message = Message(subject=subject, body=join_lines(lines[some]))
            answer = bus.request(message, timeout=_PATIENCE)
            said = decode_from_router(answer.headers, answer.body)
            if isinstance(said, Nack):
                raise error_from_nack(said)
            dead += len(said.dead) if isinstance(said, PublishAck) else 0
        return dead


def _line(text: str | bytes) -> bytes:
    """One line, whatever it is: what is no event becomes a dead letter of its client, and its neighbours do not."""
    line = text.encode() if isinstance(text, str) else text
    if b"\n" not in line and b"\r" not in line:
        return line
    try:
        return json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":")).encode()
    except ValueError:
        return line.replace(b"\r", b" ").replace(b"\n", b" ")


class EventWriter(DataSourceArrowWriter):
    """``df.write.format("situ")``."""

    def __init__(self, publisher: ClientPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._publisher.publish(iterator)


class EventStreamWriter(DataSourceStreamArrowWriter):
    """``df.writeStream.format("situ")``."""

    def __init__(self, publisher: ClientPublisher) -> None:
        self._publisher = publisher

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        return self._publisher.publish(iterator)
