"""The Spark engine: runs the event query, batch by batch, until it is stopped.

A batch goes through named steps; between any two of them the process may die, and the batch that is then repeated
does the same again. What the query needs of the outside, the version of the deployment above all, is in the offset that
Spark wrote down before the batch began.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming.query import StreamingQuery

from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.event.failures import FailureLog
from situ.event.subjects import BusNames
from situ.kafka.connection import KafkaAddress
from situ.lang.problems import SituError
from situ.registry.run_metrics import EngineSize
from situ.settings import Settings
from situ.spark import frames
from situ.spark.checkpoint import (
    BatchEnds,
    ClientOffsetStore,
    Offset,
    adopt_log,
    check_checkpoint,
    last_batch,
    read_offset,
    recall,
)
from situ.spark.detect_query import DetectBatchReport, SparkDetection
from situ.spark.dispatch import dispatching
from situ.spark.elastic.executors import ExecutorPool
from situ.spark.elastic.sizes import SizeStore, WantedSizes
from situ.spark.frames import BatchNote, TaskCounts, Totals, decode_counts
from situ.spark.partitions import is_shaped
from situ.spark.plans import DETECT, current_version, load_plan
from situ.spark.session import LOST, Query
from situ.spark.source import BusSource
from situ.spark.tables import check_tables
from situ.spark.topics import TopicCommits
from situ.storage.state_folder import StateFolder, open_folder

_log = logging.getLogger("situ.spark")
QUERY = "events"
STEPS = ("offset", "publish", "carry", "count", "done")
"""What a batch does, in this order."""
_PURGE_EVERY = 2.0
_WARM_UP = 60.0
_WARMING = "warm-up"
_GLANCE = 0.001


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """What a finished batch did, for whoever watches."""

    number: int
    offset: Offset
    counts: tuple[TaskCounts, ...]
    seconds: float


class SparkEngine:
    """One zone's events on Spark: a row for each event comes from the bus, and the task that gets it publishes."""

    def __init__(
        self,
        session: SparkSession,
        address: Address,
        settings: Settings,
        checkpoints: Path | StateFolder,
        *,
        for_tasks: Address | None = None,
        folder: Path = Path(),
        partitions: int | None = None,
        before_batch: Callable[[], None] = lambda: None,
        on_batch: Callable[[BatchReport], None] = lambda batch: None,
        on_step: Callable[[str], None] = lambda step: None,
        on_detect: Callable[[DetectBatchReport], None] = lambda batch: None,
        on_detect_step: Callable[[str], None] = lambda step: None,
    ) -> None:
        self._session = session
        self._address = address
        self._for_tasks = for_tasks or address
        """The same bus, as Spark's own processes reach it."""
        self._settings = settings
        self._folder = folder.absolute()
        checkpoints = open_folder(checkpoints)
        self._checkpoint = checkpoints / QUERY
        self._carries = ClientOffsetStore(self._checkpoint)
        self._ends = BatchEnds(self._checkpoint)
        self._given = partitions
        self._partitions = self._cores()
        self._sizes = SizeStore(self._checkpoint)
        self.pool = ExecutorPool(session.sparkContext)
        self._told_detect = on_detect
        self._buckets = self._behind = 0
        self._before_batch = before_batch
        self._on_batch = on_batch
        self._on_step = on_step
        self._query = Query(self._begin, name=QUERY, on_failure=lambda: self._count_failure(QUERY))
        self._purged = 0.0
        self._topics = TopicCommits(KafkaAddress.of(settings))
        self._detection = SparkDetection(
            session,
            address,
            settings,
            checkpoints,
            events=self._checkpoint,
            for_tasks=for_tasks,
            folder=folder,
            partitions=partitions,
            before_batch=before_batch,
            on_batch=self._on_detect,
            on_step=on_detect_step,
            on_failure=lambda: self._count_failure(DETECT),
        )
        self.totals = Totals()
        self._failures = FailureLog()
        self.version = 0  # of the deployment, and the last message, that the last finished batch had
        self.seq = 0
        session.dataSource.register(BusSource)

    def start(self) -> None:
        """Start the query, or go on where it was; N101 if that cannot be read."""
        bus, names = shared_bus(self._address), BusNames(self._address.zone)
        check_checkpoint(self._checkpoint)
        adopt_log(bus, names, self._checkpoint)
        check_tables(self._address, self._folder)
        version = current_version(self._address)
        last = bus.state(names.root_stream).last
        if last_batch(self._checkpoint, "offsets") == last_batch(self._checkpoint, "commits"):
            self._ends.add(last)  # no batch was given up in its middle
        if version and not load_plan(self._address, version).detecting.is_empty:
            self._detection.start(last)
        self._query.start()
        self._warm_up()  # the query gets ready meanwhile
        self._query.await_first_look()

    def _cores(self) -> int:
        """As many tasks as run at once: those of now, as executors come and go."""
        return self._given or self._session.sparkContext.defaultParallelism

    def resize(self) -> int | None:
        """Have as many executors as there is work for; how many that is, None if it is not our matter."""
        settings = load_plan(self._address, self.version).deployment.settings if self.version else self._settings
        return self.pool.resize(settings.spark.executors, settings.spark.trigger)

    def size(self) -> EngineSize:
        """How much there is to work with now."""
        return EngineSize(
            executors=len(self.pool.ids()), cores=self._cores(), buckets=self._buckets, behind=self._behind
        )

    def _on_detect(self, batch: DetectBatchReport) -> None:
        self._buckets, self._behind = batch.buckets, batch.waiting
        self.pool.note(DETECT, batch.seconds, batch.waiting)
        self._told_detect(batch)

    def _count_failure(self, query: str) -> None:
        self.totals.failures[f"query {query}"] += 1

    def _begin(self) -> StreamingQuery:
        # Also when it failed and begins again: those who get what is sent to them at once are to get it once.
        recall(shared_bus(self._address), BusNames(self._address.zone), self._checkpoint)
        settings = self._settings
        stream = (
            self._session.readStream.format(BusSource.name())
            .option("address", self._for_tasks.to_json())
            .option("stream", "IN")
            .option("content", "rows")
            .option("checkpoint", str(self._checkpoint))
            .option("partitions", str(self._partitions))
            .option("folder", str(self._folder))
            .option("maxEvents", str(settings.spark.max_events))
            .load()
        )
        counts = stream.mapInArrow(dispatching(self._for_tasks, self._checkpoint), frames.schema("counts"))
        shown = [f.sum(each.name).alias(each.name) for each in list(frames.COUNTS)[1:]]
        return (
            counts.observe(QUERY, *shown)
            .select("counts")
            .writeStream.queryName(QUERY)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{round(settings.spark.trigger.total_seconds() * 1000)} milliseconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _warm_up(self) -> None:
        """Have the workers, with the plan in force, before the first event waits for them; but not for ever."""
        context = self._session.sparkContext
        loading = threading.Thread(target=self._load_workers, name="warm-up", daemon=True)
        loading.start()
        loading.join(_WARM_UP)
        if loading.is_alive():
            context.cancelJobGroup(_WARMING)

    def _load_workers(self) -> None:
        address, version = self._for_tasks, current_version(self._address)

        def load(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            load_plan(address, version)
            yield from batches

        if not version:
            return
        self._session.sparkContext.setJobGroup(_WARMING, "events: load workers", interruptOnCancel=True)
        tasks = self._session.range(0, self._partitions, 1, self._partitions)
        with suppress(*LOST, SituError):  # whatever keeps workers from loading is told by the first batch
            tasks.mapInArrow(load, tasks.schema).collect()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until a query ends; True if it did. :class:`SituError` if it failed."""
        if self._query.is_started and self._detection.is_active and self._detection.wait(_GLANCE):
            return True
        return self._query.wait(seconds)

    def stop(self) -> None:
        """Finish the batches under way, then end."""
        self._query.stop()
        self._detection.stop()
        self._topics.close()

    def _batch(self, frame: DataFrame, number: int) -> None:
        self._query.begin_batch(number)
        self._before_batch()
        began = time.monotonic()
        self._on_step("offset")
        offset = read_offset(self._checkpoint, number)
        start = read_offset(self._checkpoint, number - 1) if number else Offset(seq=0)
        self._purge(start.seq)
        self._sizes.save(WantedSizes(partitions=self._cores()))
        self._start_detection(start, offset)
        self._on_step("publish")
        carry = self._carries.load(start.mark)
        some = offset.mark > start.mark or is_shaped(self._address, self._checkpoint, start, offset)
        counts = self._publish(frame, start, offset) if some else ()
        self._ends.add(shared_bus(self._address).state(BusNames(self._address.zone).root_stream).last)
        self._on_step("carry")
        self._carries.save(offset.mark, carry.advanced(each.highest for each in counts))
        if offset.records:
            self._topics.done(offset, load_plan(self._address, offset.version).deployment)
        self._on_step("count")
        self.totals.add(counts, batch=number)
        for text in self._failures.texts(trace for each in counts for trace in each.traces):
            _log.error("%s", text)
        self.version, self.seq = offset.version, offset.seq
        seconds = time.monotonic() - began
        waiting = shared_bus(self._address).state(BusNames(self._address.zone).in_stream).last - offset.seq
        self.pool.note(QUERY, seconds, max(waiting, 0))
        self._on_batch(BatchReport(number=number, offset=offset, counts=counts, seconds=seconds))
        self._query.end_batch()
        self._on_step("done")

    def _start_detection(self, start: Offset, offset: Offset) -> None:
        """Policies that come with another version begin with what the batch that brings it puts into the log."""
        if self._detection.is_active or offset.version in (0, start.version):
            return
        if not load_plan(self._address, offset.version).detecting.is_empty:
            bus = shared_bus(self._address)
            self._detection.start(bus.state(BusNames(self._address.zone).root_stream).last)

    def _publish(self, frame: DataFrame, start: Offset, offset: Offset) -> tuple[TaskCounts, ...]:
        context = self._session.sparkContext
        BatchNote(begin=start, end=offset).tell(context)
        records = f", {offset.records} records of topics" if offset.records else ""
        context.setJobDescription(f"events: messages {start.seq + 1} to {offset.seq} of what came in{records}")
        return tuple(decode_counts(row.counts for row in frame.collect()))

    def _purge(self, before: int) -> None:
        """The batch before this one is done: what it read is in the root log and no longer needed."""
        now = time.monotonic()
        if now - self._purged > _PURGE_EVERY and before:
            self._purged = now
            shared_bus(self._address).purge(BusNames(self._address.zone).in_stream, before + 1)
