"""The query ``detect``: policies over the root log, batch by batch, beside the query that writes it.

A batch decides with the watermarks that the batches before it allow, and what it sees itself counts for the next: so
the tasks of one batch need not wait for each other. What its buckets found becomes transitions of situations here,
which are published as events of the policies; then progress is written down, and with it that they were published.
"""

from __future__ import annotations

import json
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

import msgspec
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery

from situ.bus.address import Address
from situ.bus.interface import StoreAck
from situ.bus.sync_bus import shared_bus
from situ.contexts.model import ROOT
from situ.event.failures import FailureLog, StageFailure, failed_by
from situ.event.lines import decode_line, encode_row, stamped_line, stored_lines
from situ.event.message import CLIENT, CONTEXT, COUNT, ID, KEY, OWN, PLACES, RECEIVED, Message, message_id, position
from situ.event.row import Row
from situ.event.subjects import BusNames, pack_late, shard_of
from situ.lang.problems import SituError
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import Detection
from situ.settings import Settings
from situ.spark.backfill import fill, pasts_of
from situ.spark.checkpoint import Offset, check_offsets, last_batch, read_offset
from situ.spark.detect import (
    DRIVER,
    BatchShare,
    BucketDetections,
    EnrichmentNotes,
    detecting_in,
    detections_in,
    enrich_part,
    gather_buckets,
    gathering,
    remembered_at,
)
from situ.spark.dispatch import DispatchTask, publish
from situ.spark.elastic.sizes import BucketCount, SizeStore, WantedSizes
from situ.spark.frames import BUCKETS, BatchNote
from situ.spark.plans import DETECT, current_version, known_instances, load_plan
from situ.spark.session import Query
from situ.spark.source import DetectSource
from situ.spark.state_store import InheritedState, KernelStateStore, ProgressStore, name_of, remove_other_buckets
from situ.stages.detect.backfill import BackfillStart, start_from_backfill
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.progress import DetectionProgress
from situ.stages.detect.situation_events import DetectionCounts, PolicyMessage, cause_positions, situation_messages
from situ.stages.detect.step import detections_safely
from situ.stages.plan import Plan
from situ.stages.root_log import ROUTER, upgrade_message
from situ.stages.takeover import DetectionHandover
from situ.storage.state_folder import StateFolder

_log = logging.getLogger("situ.spark")
_audit = logging.getLogger("situ.audit")
QUERY = DETECT
STEPS = ("offset", "detect", "divide", "divided", "publish", "progress", "done")
"""What a batch does, in this order; to divide what policies remember anew is seldom necessary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectBatchReport:
    """What a finished batch did, for whoever watches."""

    number: int
    offset: Offset
    tally: DetectionCounts
    progress: DetectionProgress
    detecting: DetectionPlan
    seconds: float
    size: int
    """Of what kernels remember, in bytes."""
    buckets: int
    """Among which that is divided."""
    waiting: int
    """Messages of the root log behind those of the batch."""
    workers: Mapping[str, int] = field(default_factory=dict)
    """How many buckets each executor had, where somebody asked."""
    dead: Mapping[str, int] = field(default_factory=dict)
    """Events that are dead letters because policies could not work on them, by code."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What else failed in a way that nobody foresaw, by what it was."""

    @property
    def events(self) -> int:
        """Those that told something."""
        return sum(self.tally.events.values())


class SparkDetection:
    """The policies of one zone on Spark. ``events`` is the checkpoint of the query that writes the root log."""

    def __init__(
        self,
        session: SparkSession | None,
        address: Address,
        settings: Settings,
        checkpoints: StateFolder,
        *,
        events: StateFolder,
        for_tasks: Address | None = None,
        folder: Path = Path(),
        partitions: int | None = None,
        before_batch: Callable[[], None] = lambda: None,
        on_batch: Callable[[DetectBatchReport], None] = lambda batch: None,
        on_step: Callable[[str], None] = lambda step: None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._session = session
        self._address = address
        self._for_tasks = for_tasks or address
        self._settings = settings
        self._folder = folder.absolute()
        self._checkpoint = checkpoints / QUERY
        self._events = events
        self._given = partitions
        self._partitions = self._cores()
        self._first_buckets = settings.spark.buckets or self._partitions
        """How many there were before any offset said it."""
        self._sizes, self._count = SizeStore(self._checkpoint), BucketCount()
        self._tidied = False
        """Whether nothing is left of buckets that there are no more."""
        self._incarnation = self._first = 0
        self._begins: Offset | None = None
        """Where it goes on from another engine, if it does."""
        self._store = ProgressStore(self._checkpoint)
        self._size = 0
        """Of what kernels remembered at the end of the last batch, in bytes."""
        self._before_batch, self._on_batch, self._on_step = before_batch, on_batch, on_step
        self._query = Query(self._begin, name=QUERY, on_failure=on_failure)
        self._failures = FailureLog()
        if session is not None:
            session.dataSource.register(DetectSource)

    @property
    def is_active(self) -> bool:
        return self._query.is_started

    def start(self, first: int) -> None:
        """Start the query behind this message of the root log, or go on where it was."""
        self._prepare(first)
        self._query.start()

    def _prepare(self, first: int) -> None:
        begin = check_offsets(self._checkpoint)
        if begin is not None:
            self._store.load(begin)
        self._first_buckets = self._settled("buckets", self._first_buckets)
        self._incarnation = self._settled("incarnation", time.time_ns() // 1000)
        self._first = self._settled("first", first)  # a first batch that was cut off begins there again
        self._begins = InheritedState(self._checkpoint).offset
        if self._begins is not None and last_batch(self._checkpoint, "offsets") is None:
            self._inherit(self._begins)

    def _inherit(self, at: Offset) -> None:
        """Give each bucket its share of what another engine left: as if a batch of this one had ended there."""
        inherited = InheritedState(self._checkpoint)
        detecting = load_plan(self._address, at.version).detecting
        progress, stored = inherited.load()
        wholes = {
            name: whole
            for name, state in stored.items()
            if name in detecting.watches and (whole := detecting.kernel(name).load(state)) is not None
        }
        buckets = self._buckets_at(at)
        for bucket in range(buckets):
            kernels = {name: detecting.kernel(name, bucket, buckets) for name in wholes}
            shares = {name: kernel.save(kernel.share(wholes[name])) for name, kernel in kernels.items()}
            KernelStateStore(self._checkpoint, bucket).save_whole(name_of(at), shares, name_of(at))
        self._store.save(at, progress, due=True)

    def finish(self) -> DetectionHandover | None:
        """Without Spark: repeat a batch that was begun and not finished, and give all that is remembered then.

        None if policies never began.
        """
        begun, done = (last_batch(self._checkpoint, log) for log in ("offsets", "commits"))
        if begun is None:
            return self._not_begun()
        self._prepare(0)
        if begun != done:
            self._batch(None, begun)
        at = read_offset(self._checkpoint, begun)
        progress = self._store.load(at)
        if progress is None:
            raise self._checkpoint.damaged(f"what the batch that ended at {at.seq} left is missing", "progress")
        plan = load_plan(self._address, at.version)
        instances = known_instances(plan, self._address, at.tables)
        count = self._buckets_at(at)
        buckets = [
            remembered_at(self._checkpoint, name_of(at), plan.detecting, instances, bucket, count)
            for bucket in range(count)
        ]
        states = {}
        for name in plan.detecting.watches:
            if any(name in each for each in buckets):
                kernel = plan.detecting.kernel(name)
                some = [each.get(name) or kernel.start() for each in buckets]
                states[name] = kernel.save(kernel.united(some))
        return DetectionHandover(reached=at.seq, version=at.version, progress=progress, states=states)

    def _not_begun(self) -> DetectionHandover | None:
        """What there was before the first batch: what it would have gone on from, or where in the log it begins."""
        inherited = InheritedState(self._checkpoint)
        if (at := inherited.offset) is not None:
            progress, states = inherited.load()
            return DetectionHandover(reached=at.seq, version=at.version, progress=progress, states=states)
        if not self._checkpoint.exists("first"):
            return None
        self._prepare(0)
        version = current_version(self._address)
        progress = DetectionProgress(incarnation=self._incarnation)
        return DetectionHandover(reached=self._first, version=version, progress=progress, states={})

    def _options(self) -> dict[str, str]:
        begins = self._begins or Offset(seq=self._first)
        return {
            "address": self._for_tasks.to_json(),
            "stream": "ROOT",
            "checkpoint": str(self._checkpoint),
            "partitions": str(self._partitions),
            "folder": str(self._folder),
            "maxEvents": str(self._settings.spark.max_events),
            "begins": json.dumps(begins.as_json()),
            "events": str(self._events),
        }

    def _begin(self) -> StreamingQuery:
        assert self._session is not None
        log = self._session.readStream.format(DetectSource.name()).options(**self._options()).load()
        enriched = log.observe(
            QUERY,
            f.sum("read").alias("read"),
            f.sum("events").alias("events"),
            f.sum("late").alias("late"),
            f.sum("enrich_ms").alias("enrich_ms"),
            f.min("watermark").alias("watermark"),
            f.max("state_bytes").alias("state_bytes"),
        )
        return (
            enriched.select("bucket", "blob")
            .writeStream.queryName(QUERY)
            .option("checkpointLocation", str(self._checkpoint))
            .trigger(processingTime=f"{round(self._settings.spark.trigger.total_seconds() * 1000)} milliseconds")
            .foreachBatch(self._batch)
            .start()
        )

    def _settled(self, name: str, value: int) -> int:
        """What the first run took for this."""
        text = self._checkpoint.load(name)
        if text is None:
            self._checkpoint.save(name, str(value).encode())
            return value
        try:
            return int(text)
        except ValueError as error:
            raise self._checkpoint.damaged(error, name) from None

    def _buckets_at(self, at: Offset) -> int:
        return at.buckets or self._first_buckets

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends; True if it did. :class:`SituError` if it failed."""
        return self._query.wait(seconds)

    def stop(self) -> None:
        """Finish the batch under way, then end."""
        self._query.stop()

    # ── a batch ──

    def _batch(self, frame: DataFrame | None, number: int) -> None:
        """Without a frame, it is all done here."""
        self._query.begin_batch(number)
        self._before_batch()
        began = time.monotonic()
        self._on_step("offset")
        end = read_offset(self._checkpoint, number)
        start = read_offset(self._checkpoint, number - 1) if number else self._begins
        plan = load_plan(self._address, end.version)
        former = self._former(start, end)
        buckets = self._buckets_at(end)
        self._want_sizes(plan, buckets)
        divides = start is not None and self._buckets_at(start) != buckets
        before, progress, told, kept = self._begun(start, end, plan, former)
        begun = self._filled(start, end, plan, progress)
        progress = begun.progress.given_up(start.settled) if start is not None else begun.progress
        told += begun.told
        watermarks = progress.watermarks(plan.detecting, end.clock)
        self._on_step("detect")
        begin = start or Offset()
        note = BatchNote(
            begin=begin,
            end=end,
            reached={name: each.reached for name, each in before.policies.items() if each.reached is not None},
            expected=tuple(before.marks),
            watermark=min(watermarks.values(), default=None),
            state_bytes=self._size,
            buckets=buckets,
        )
        share = BatchShare(
            address=self._address if frame is None else self._for_tasks,
            checkpoint=self._checkpoint,
            begin=begin,
            end=end,
            watermarks=watermarks,
            kept=kept,
            buckets=buckets,
            before=self._buckets_at(start) if start is not None else 0,
            filled=begun.filled,
        )
        if divides:
            self._on_step("divide")
            self._gather(share)
            self._on_step("divided")
        elif not self._tidied:
            remove_other_buckets(self._checkpoint, buckets)
        self._tidied = not divides
        found, noticed = _sorted_out(
            self._worked_here(note, share) if frame is None else self._worked(frame, note, share)
        )
        progress = progress.heard(*(each.seen for each in noticed))
        failures: list[StageFailure] = [failure for each in found for failure in each.begun_anew.values()]
        for each in noticed:
            progress = progress.arrived(each.arrived)
        detections: Mapping[str, Sequence[Detection]]
        detections = {name: detections_in(name, found) for name in plan.detecting.watches}
        causes: Mapping[int, Row] = {}
        if plan.meeting is not None:
            positions = {each for some in detections.values() for one in some for each in one.positions if each}
            causes = self._events_at(positions, plan)
            meeting, given = plan.meeting, causes
            detections, refused = detections_safely(detections, lambda some: meeting.counted(some, given))
            failures += refused
        heard = progress
        (progress, transitions), refused = detections_safely(
            detections, lambda some: heard.decided(plan.detecting, some, watermarks)
        )
        failures += refused
        told += transitions
        self._on_step("publish")
        tally = DetectionCounts()
        progress = self._tell(told, noticed, progress, plan, former, end, begun, tally, causes, failures, before)
        failed = {pos: failure for each in noticed for pos, failure in each.failed.items()}
        failed |= {pos: failure for each in found for pos, failure in each.failed.items()}
        dead = self._refuse(failed, plan, end) if failed else {}
        for text in self._failures.texts(each.trace for each in (*failures, *failed.values())):
            _log.error("%s", text)
        self._on_step("progress")
        for each in noticed:
            tally.add(each.tally)
        tally.take_told(told)
        due = progress.has_open or bool(progress.marks) or any(each.due for each in found)
        due = due or progress.lags(plan.detecting, end.clock)  # what it saw lets the next decide more
        self._store.save(end, progress, due=due)
        self._size = sum(each.size for each in found)
        self._on_batch(
            DetectBatchReport(
                number=number,
                offset=end,
                tally=tally,
                progress=progress,
                detecting=plan.detecting,
                seconds=time.monotonic() - began,
                size=self._size,
                buckets=buckets,
                waiting=max(
                    shared_bus(self._address).state(BusNames(self._address.zone).root_stream).last - end.seq, 0
                ),
                workers=Counter(each.worker for each in found if each.worker),
                dead=dead,
                failures=Counter(each.stage for each in failures),
            )
        )
        self._query.end_batch()
        self._on_step("done")

    def _cores(self) -> int:
        if self._given or self._session is None:
            return self._given or 1
        return self._session.sparkContext.defaultParallelism

    def _want_sizes(self, plan: Plan, buckets: int) -> None:
        """Say what the next batch is to be like."""
        if self._session is None:
            return
        cores = self._cores()
        wanted = self._count.wanted(plan.deployment.settings.spark.buckets, cores, buckets, time.monotonic())
        self._sizes.save(WantedSizes(buckets=wanted, partitions=cores))

    def _gather(self, share: BatchShare) -> None:
        """Have all that buckets of before remember written down, for those that take their place."""
        if self._session is None:
            gather_buckets(share, range(share.before))
            return
        context = self._session.sparkContext
        context.setJobDescription(f"policies: divide {share.before} buckets into {share.buckets}")
        numbers = self._session.range(0, share.before, 1, share.before)
        numbers.mapInArrow(gathering(share), numbers.schema).collect()

    def _worked(self, frame: DataFrame, note: BatchNote, share: BatchShare) -> Iterator[tuple[int, bytes]]:
        assert self._session is not None
        context = self._session.sparkContext
        note.tell(context)
        context.setJobDescription(f"policies: messages {note.begin.seq + 1} to {note.end.seq} of the root log")
        if share.end.partitions > 1:
            frame = frame.repartitionById(share.buckets, (frame.bucket + share.buckets) % share.buckets)
        for row in frame.mapInArrow(detecting_in(share), from_arrow_schema(BUCKETS)).collect():
            yield row.bucket, row.blob

    def _worked_here(self, note: BatchNote, share: BatchShare) -> Iterator[tuple[int, bytes]]:
        log, begin, end = BusNames(self._address.zone).root_stream, note.begin.seq, note.end.seq
        messages = shared_bus(self._address).read(log, begin + 1, end) if end > begin else ()
        rows = enrich_part(self._address, note, 0, messages)
        for batch in detecting_in(share)(rows):
            yield from zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True)

    def _former(self, start: Offset | None, end: Offset) -> DetectionPlan | None:
        if start is None or not start.version or start.version == end.version:
            return None
        try:
            return load_plan(self._address, start.version).detecting
        except SituError:
            return None  # the bus has it no more: what it left is closed without its words

    def _begun(
        self, start: Offset | None, end: Offset, plan: Plan, former: DetectionPlan | None
    ) -> tuple[DetectionProgress, DetectionProgress, list[SituationTransition], frozenset[str]]:
        """What was before; what the batch starts from; and which policies go on as they were."""
        before = self._store.load(start) if start is not None else None
        if before is None:
            before = DetectionProgress(incarnation=self._incarnation)
        progress, told = before.adopted(plan.detecting, former, end.clock)
        kept = frozenset(
            name
            for name, watch in plan.detecting.watches.items()
            if name in before.policies and before.policies[name].digest == watch.digest
        )
        return before, progress, told, kept

    def _filled(self, start: Offset | None, end: Offset, plan: Plan, progress: DetectionProgress) -> BackfillStart:
        """Policies that are new and are to begin in the past take what the log holds since then."""
        if start is not None and start.version == end.version:
            return BackfillStart(progress=progress)
        last = start.seq if start is not None else self._first
        before = (self._store.load(start) if start is not None else None) or DetectionProgress()
        pasts = pasts_of(plan, before, progress, self._address, last, end.clock)
        if not pasts:
            return BackfillStart(progress=progress)
        filled = fill(self._session, self._for_tasks, self._checkpoint, end, self._buckets_at(end), pasts)
        blind = plan.meeting.blind if plan.meeting is not None else ()
        return start_from_backfill(progress, plan.detecting, plan.deployment.starts, filled, blind)

    # ── publishing ──

    def _tell(
        self,
        told: Sequence[SituationTransition],
        noticed: Sequence[EnrichmentNotes],
        progress: DetectionProgress,
        plan: Plan,
        former: DetectionPlan | None,
        end: Offset,
        begun: BackfillStart,
        tally: DetectionCounts,
        causes: Mapping[int, Row],
        failures: list[StageFailure],
        before: DetectionProgress,
    ) -> DetectionProgress:
        bus, names = shared_bus(self._address), BusNames(self._address.zone)
        late = {pos: policies for each in noticed for pos, policies in each.late.items()}
        known = begun.known if plan.meeting is not None else ()
        rows = {**self._events_at({*cause_positions([*told, *known]), *late} - causes.keys(), plan), **causes}
        instances = known_instances(plan, self._address, end.tables)
        progress, published = situation_messages(
            told,
            plan.detecting,
            former,
            progress,
            rows,
            instances,
            begun.past,
            plan.meeting,
            known,
            failures,
            before,
        )
        tally.take_published(published)
        for each in published:
            if each.released:
                _audit.info("%s", each.audit)
        said = [bus.store(raw_message(names, each, end.clock)) for each in published]
        stores = list[Future[StoreAck]]()
        for pos, policies in late.items():
            if (row := rows.get(pos)) is not None:
                stores.append(bus.store(pack_late(names, row, stamped_line(row, encode_row(row)), policies)))
        for store in stores:
            store.result()
        return progress.stored_at(max((each.result().seq for each in said), default=0), begun.progress)

    def _refuse(self, failed: Mapping[int, StageFailure], plan: Plan, end: Offset) -> Mapping[str, int]:
        """What no policy, or not each, could work on is a dead letter; how many there are, by code."""
        rows = self._events_at(failed.keys(), plan)
        bad = [failed_by(failed[pos], row) for pos, row in sorted(rows.items())]
        dispatch = DispatchTask(plan, end.clock)
        publish(self._address, dispatch.letters(bad))
        return dispatch.counts().dead

    def _events_at(self, positions: Collection[int], plan: Plan) -> dict[int, Row]:
        """The events at these positions of the root log, those that are still there."""
        bus, log = shared_bus(self._address), BusNames(self._address.zone).root_stream
        found: dict[int, Row] = {}
        for seq, places in groupby(sorted(positions), lambda each: each // PLACES):
            wanted = set(places)
            for stored in bus.read(log, seq, seq):
                for place, line in enumerate(stored_lines(upgrade_message(stored, plan.interpretation))):
                    if (pos := position(seq, place)) in wanted:
                        found[pos] = decode_line(line, pos=pos)
        return found


def _sorted_out(rows: Iterable[tuple[int, bytes]]) -> tuple[list[BucketDetections], list[EnrichmentNotes]]:
    found, noticed = [], []
    for bucket, blob in rows:
        if bucket == DRIVER:
            noticed.append(msgspec.msgpack.decode(blob, type=EnrichmentNotes))
        else:
            found.append(msgspec.msgpack.decode(blob, type=BucketDetections))
    return found, noticed


def raw_message(names: BusNames, message: PolicyMessage, received: int) -> Message:
    """A message of a policy, as the router puts those of other clients into the log of what came in."""
    headers = {
        CLIENT: message.policy,
        CONTEXT: ROOT,
        RECEIVED: str(received),
        KEY: str(message.key),
        COUNT: str(message.count),
        ID: message_id(message.key, message.count),
        OWN: message.policy,
    }
    return Message(subject=names.raw(ROUTER, shard_of(message.policy)), headers=headers, body=message.body)
