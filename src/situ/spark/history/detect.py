"""Detection over history: events of an archive or of files → the situations that there were.

A batch knows everything: no event is late, time is that of the events, and the end of what was recorded settles what
absence waits for. Tasks read parts of the archive, only the columns that policies look at, and make rows of leaves of
them (:mod:`situ.spark.dataframes.detect`), which Spark sorts by bucket and time for the kernels. What is noted on the
way, how many events there were and which of them failed, goes through the same shuffle as a bucket of its own: a task
that is repeated counts once.
"""

from __future__ import annotations

import pickle
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from situ.archive.format import ArchivedPart, open_archive
from situ.archive.layout import DATA, LINES, messages_of
from situ.event.failures import is_of_event
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.policies import lifecycle
from situ.policies.enrichment.enrich import EnrichedRows, PushObservations
from situ.policies.enrichment.observations import EventColumns
from situ.policies.lifecycle import SituationPhase
from situ.policies.model import Cause, Detection
from situ.sources.table import Keyed, Table
from situ.spark.dataframes.detect import (
    DETECTIONS,
    PORTIONS,
    DetectionTerms,
    ReadyPolicies,
    blind_policies,
    bucket_portions,
    detection_batches,
    enrich_rows,
    portions_of,
    record_batch,
    sorted_by_bucket,
    stamped_rows,
)
from situ.spark.dataframes.worker import ProjectTerms
from situ.spark.history.mapped_files import DeadRow, FileMap, MappedFile, read_mapped
from situ.stages.detect.detection_plan import NOTHING_HIDDEN, Hidden, visible_positions
from situ.stages.detect.situation_events import DetectionCounts
from situ.stages.detect.step import PolicyObservations
from situ.stages.plan import Plan
from situ.stages.root_log import upgrade_message
from situ.tables.cache import open_tables

_TOGETHER = 65_536
"""Events that are enriched at once."""
_A_TASK = 1_000_000
"""Events of a task, about."""
_FOREVER = 1_000 * 86_400 * 1_000_000
_RESULTS = pa.schema([("kind", pa.string()), ("blob", pa.binary())])
_NOTE, _SITUATION = "note", "situation"
_SAMPLES = 20
"""Rows of files that failed which are named, of each task; all are counted."""


class PastSituation(msgspec.Struct, frozen=True, kw_only=True):
    """A situation as it was; ``causes`` and ``positions`` are those of its first detection. Times in microseconds."""

    id: str
    policy: str
    bindings: tuple[tuple[str, str], ...]
    start: int
    last: int
    end: int
    detections: int
    causes: tuple[Cause, ...]
    positions: tuple[int, ...]


class HistoryNote(msgspec.Struct, kw_only=True):
    """What was seen of a part of history."""

    events: int = 0
    """Those that policies listen to, in the time asked for and what they look back on."""
    columns: int = 0
    """Of these, those that no text was read of."""
    counts: DetectionCounts = msgspec.field(default_factory=DetectionCounts)
    looked: dict[str, tuple[int, int]] = msgspec.field(default_factory=dict)
    """By policy: observations that it saw, and that it may not see."""
    dead: dict[str, int] = msgspec.field(default_factory=dict)
    """Rows of files that are no events, by code."""
    samples: list[DeadRow] = msgspec.field(default_factory=list)

    def add(self, other: HistoryNote) -> None:
        self.events += other.events
        self.columns += other.columns
        self.counts.add(other.counts)
        for name, (seen, hidden) in other.looked.items():
            before = self.looked.get(name, (0, 0))
            self.looked[name] = (before[0] + seen, before[1] + hidden)
        for code, number in other.dead.items():
            self.dead[code] = self.dead.get(code, 0) + number
        self.samples = (self.samples + other.samples)[:_SAMPLES]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPlan:
    """What is to be read: parts of an archive, or files with their maps; of the time from ``early`` to ``until``, of
    which what is detected since ``since`` counts. Times are those of events."""

    place: str = ""
    format: str = ""
    parts: tuple[ArchivedPart, ...] = ()
    files: tuple[MappedFile, ...] = ()
    maps: tuple[FileMap, ...] = ()
    early: int | None = None
    since: int | None = None
    until: int | None = None

    def tasks(self, cores: int) -> list[HistoryPlan]:
        """This, divided among tasks."""
        events = sum(each.events for each in self.parts)
        most = max(1, min(_A_TASK, events // max(2 * cores, 1)))
        parts = _divided(sorted(self.parts, key=lambda each: (each.begin, each.name)), most)
        return [
            *(replace(self, parts=tuple(some), files=(), maps=()) for some in parts),
            *(replace(self, parts=(), files=(each,)) for each in self.files),
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectedHistory:
    """What came of it: situations as they are fetched, and the notes, which are whole when these are."""

    situations: Iterator[PastSituation]
    note: HistoryNote = field(default_factory=HistoryNote)


def history_terms(plan: Plan, policies: Sequence[str], maps: Sequence[FileMap], folder: Path) -> DetectionTerms:
    """What tasks need to detect by these policies, with the tables as they are now; those that see nothing are left
    out."""
    blind = blind_policies(plan, policies)
    seeing = tuple(name for name in policies if name not in blind)
    detecting, sources = plan.detecting.only(seeing), plan.deployment.sources

    def read(keyed: Mapping[str, Collection[Keyed]]) -> Mapping[str, Table]:
        with open_tables({name: sources[name] for name in keyed}, folder, keyed=keyed) as tables:
            return tables.snapshot

    looked_up = plan.interpretation.keyed({each.context for each in maps}) if maps else {}
    return DetectionTerms(
        project=ProjectTerms.of(plan.deployment, read(looked_up)),
        policies=seeing,
        tables=read(detecting.tables.keyed),
    )


def detect_history(session: SparkSession, terms: DetectionTerms, plan: HistoryPlan) -> DetectedHistory:
    """The situations of these policies over this history."""
    cores = session.sparkContext.defaultParallelism
    # Not more buckets than cores: rows that all of them need, as of what must be absent, are in each.
    buckets = max(cores, 2)
    tasks = plan.tasks(cores)
    if not tasks:
        return DetectedHistory(situations=iter(()))
    table = pa.table(
        {"bucket": pa.array(range(len(tasks)), pa.int32()), "plan": [pickle.dumps(each) for each in tasks]}
    )
    given = session.createDataFrame(table).repartitionById(len(tasks), "bucket")
    portions = given.mapInArrow(_reading(terms, buckets), from_arrow_schema(PORTIONS))
    found = sorted_by_bucket(portions, buckets + 1).mapInArrow(
        _detecting(terms, buckets), from_arrow_schema(DETECTIONS)
    )
    results = found.groupBy("policy", "share").applyInArrow(_deciding(terms, plan.since), from_arrow_schema(_RESULTS))
    history = DetectedHistory(situations=iter(()))

    def situations() -> Iterator[PastSituation]:
        for row in results.toLocalIterator():
            if row["kind"] == _NOTE:
                history.note.add(msgspec.msgpack.decode(row["blob"], type=HistoryNote))
            else:
                yield msgspec.msgpack.decode(row["blob"], type=PastSituation)

    return DetectedHistory(situations=situations(), note=history.note)


def _divided(parts: Sequence[ArchivedPart], most: int) -> Iterator[list[ArchivedPart]]:
    some: list[ArchivedPart] = []
    events = 0
    for each in parts:
        if some and events + each.events > most:
            yield some
            some, events = [], 0
        some.append(each)
        events += each.events
    if some:
        yield some


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events → rows of leaves.


def _reading(terms: DetectionTerms, buckets: int) -> Callable[[Any], Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for text in batch.column("plan").to_pylist():
                yield from HistoryTaskReader(terms, pickle.loads(text), buckets).portions()

    return run


class HistoryTaskReader:
    """One task: what it is to read, as portions for buckets, and its note for the bucket behind the last."""

    def __init__(self, terms: DetectionTerms, plan: HistoryPlan, buckets: int) -> None:
        self._ready: ReadyPolicies = terms.ready()
        self._ready.instances(terms.tables)
        self._plan, self._buckets = plan, buckets
        self.note = HistoryNote()

    def portions(self) -> Iterator[pa.RecordBatch]:
        for enriched, hidden in chain(self._archived(), self._mapped()):
            found = bucket_portions(self._ready.detecting, enriched.rows, hidden, self._buckets)
            yield record_batch(found, PORTIONS)
        yield record_batch([(self._buckets, 0, msgspec.msgpack.encode(self.note))], PORTIONS)

    # ── the archive ──

    def _archived(self) -> Iterator[tuple[EnrichedRows, Hidden]]:
        listened = self._ready.detecting.observing.types
        by_type: dict[tuple[str, int], list[ArchivedPart]] = defaultdict(list)
        for part in self._plan.parts:
            if part.type in listened:
                by_type[part.type, part.generation].append(part)
        now = self._ready.plan.interpretation.generation
        for (type, generation), parts in by_type.items():
            # What was stored in the terms of a former root is converted event by event.
            if generation < now or self._ready.plan.seeing is not None:
                yield from self._by_text(parts)
            else:
                yield from self._by_columns(type, parts)

    def _by_columns(self, type: str, parts: Sequence[ArchivedPart]) -> Iterator[tuple[EnrichedRows, Hidden]]:
        attributes = self._ready.detecting.observing.attributes(type)
        columns = ("pos", "id", "source", "time", *(f"{DATA}.{each}" for each in attributes))
        for batch, those in _together(self._read(parts, columns)):
            read = self._observed(type, batch)
            if read is None:
                yield from self._by_text(those)
                continue
            try:
                enriched = self._ready.detecting.enrichment.run(read.observed, self._ready.knowledge)
            except Exception as error:
                if not is_of_event(error):
                    raise
                yield from self._by_text(those)
                continue
            self.note.columns += batch.num_rows
            yield self._noted(batch.num_rows, enriched, read)

    def _observed(self, type: str, batch: pa.RecordBatch) -> PolicyObservations | None:
        """None: their columns do not tell it."""
        if batch.schema.get_field_index(DATA) < 0 or batch.column(DATA).null_count:
            return None
        times = batch.column("time").cast(pa.int64()).to_numpy()
        events = EventColumns(
            type=type,
            ids=batch.column("id"),
            sources=_plain(batch.column("source")),
            times=times,
            received=times,
            positions=batch.column("pos"),
            clients=None,
            data=batch.column(DATA),
        )
        found = self._ready.detecting.observing.columns(events)
        if found is None:
            return None
        return PolicyObservations(observed=found.observed, seen=found.seen, hidden=NOTHING_HIDDEN)

    def _by_text(self, parts: Iterable[ArchivedPart]) -> Iterator[tuple[EnrichedRows, Hidden]]:
        """Event by event, as engines read the log: of parts that come whole."""
        for batch, _ in _together(self._read(dict.fromkeys(parts), LINES), _TOGETHER // 8):
            yield self._enriched(list(self._rows(batch)))

    def _rows(self, batch: pa.RecordBatch) -> Iterator[Row]:
        interpretation = self._ready.plan.interpretation
        early, until = self._plan.early, self._plan.until
        for place, pos in enumerate(batch.column("pos").to_pylist()):
            (message,) = messages_of([batch.slice(place, 1)])
            (line,) = stored_lines(upgrade_message(message, interpretation))
            row = decode_line(line, pos=pos)
            row.pos = pos
            if (early is None or row.time >= early) and (until is None or row.time < until):
                yield row

    def _read(
        self, parts: Iterable[ArchivedPart], columns: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, ArchivedPart]]:
        archive = open_archive(self._plan.place, self._plan.format)
        early, until = self._plan.early, self._plan.until
        for part in parts:
            cut = (early is not None and part.begin < early) or (until is not None and part.end >= until)
            for batch in archive.read(part, columns):
                yield (self._in_time(batch) if cut and "time" in batch.schema.names else batch), part

    def _in_time(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        times = batch.column("time").cast(pa.int64()).to_numpy()
        within = np.ones(len(times), bool)
        if self._plan.early is not None:
            within &= times >= self._plan.early
        if self._plan.until is not None:
            within &= times < self._plan.until
        return batch.filter(pa.array(within))

    # ── files ──

    def _mapped(self) -> Iterator[tuple[EnrichedRows, Hidden]]:
        for file in self._plan.files:
            events = read_mapped(file, self._plan.maps[file.map], self._ready.plan)
            while some := list(islice(events, _TOGETHER // 8)):
                rows = []
                for each in some:
                    if isinstance(each, DeadRow):
                        self.note.dead[each.code] = self.note.dead.get(each.code, 0) + 1
                        if len(self.note.samples) < _SAMPLES:
                            self.note.samples.append(each)
                    elif self._wanted(each):
                        rows.append(each)
                if rows:
                    yield self._enriched(rows)

    def _wanted(self, row: Row) -> bool:
        early, until = self._plan.early, self._plan.until
        return (early is None or row.time >= early) and (until is None or row.time < until)

    # ── both ──

    def _enriched(self, rows: list[Row]) -> tuple[EnrichedRows, Hidden]:
        count = len(rows)
        enriched, read = enrich_rows(self._ready, stamped_rows(self._ready, rows))
        return self._noted(count, enriched, read)

    def _noted(self, events: int, enriched: EnrichedRows, read: PolicyObservations) -> tuple[EnrichedRows, Hidden]:
        self.note.events += events
        self.note.counts.take_observed(read.observed)
        self.note.counts.take_enriched(enriched)
        for each in read.observed:
            self._look(each, read.hidden)
        return enriched, read.hidden

    def _look(self, observed: PushObservations, hidden: Hidden) -> None:
        push, count = observed.rows.column("push")[0].as_py(), observed.rows.num_rows
        for name, watch in self._ready.detecting.watches.items():
            if push in watch.patience:
                seen = count
                if hidden:
                    seen = len(visible_positions(observed.rows.column("pos"), watch.reads, hidden))
                before = self.note.looked.get(name, (0, 0))
                self.note.looked[name] = (before[0] + seen, before[1] + count - seen)


def _together(
    batches: Iterable[tuple[pa.RecordBatch, ArchivedPart]], most: int = _TOGETHER
) -> Iterator[tuple[pa.RecordBatch, list[ArchivedPart]]]:
    """Batches of whole parts put together, as long as they are small and laid out alike; with the parts they are of."""
    waiting: list[pa.RecordBatch] = []
    parts: dict[str, ArchivedPart] = {}
    count = 0
    for batch, part in batches:
        if waiting and (count + batch.num_rows > most or batch.schema != waiting[0].schema) and part.name not in parts:
            yield _one(waiting), list(parts.values())
            waiting, parts, count = [], {}, 0
        if batch.num_rows:
            waiting.append(batch)
            parts[part.name] = part
            count += batch.num_rows
    if waiting:
        yield _one(waiting), list(parts.values())


def _one(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows of leaves → detections → situations.


def _detecting(terms: DetectionTerms, buckets: int) -> Callable[[Any], Any]:
    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        portions = portions_of(batches)
        first = next(portions, None)
        if first is None:
            return
        portions = chain([first], portions)
        if first[0] < buckets:
            yield from detection_batches(terms, portions, buckets)
        else:
            yield record_batch([("", 0, note) for _, _, note in portions], DETECTIONS)

    return run


def _deciding(terms: DetectionTerms, since: int | None) -> Callable[[Any], Any]:
    def run(table: pa.Table) -> pa.Table:
        name = table.column("policy")[0].as_py()
        blobs = table.column("detection").to_pylist()
        if not name:
            return pa.Table.from_batches([record_batch([(_NOTE, blob) for blob in blobs], _RESULTS)])
        found = [msgspec.msgpack.decode(each, type=Detection) for each in blobs]
        policy = terms.ready().detecting.watches[name].policy
        rows = [(_SITUATION, msgspec.msgpack.encode(each)) for each in situations_of(found, policy.hold, since)]
        return pa.Table.from_batches([record_batch(rows, _RESULTS)])

    return run


def situations_of(detections: Sequence[Detection], hold: int, since: int | None) -> Iterator[PastSituation]:
    """What becomes of all detections of a policy, when nothing more comes; those that anything of is new since then."""
    _, told = lifecycle.step({}, detections, max(each.time for each in detections) + _FOREVER, hold)
    first: dict[str, tuple[tuple[Cause, ...], tuple[int, ...]]] = {}
    counts: set[str] = set()
    for each in told:
        situation = each.situation
        if each.stage is SituationPhase.OPENED:
            first[situation.id] = (situation.causes, situation.positions)
        if each.stage is not SituationPhase.CLOSED:
            if since is None or each.time >= since:
                counts.add(situation.id)
            continue
        causes, positions = first.pop(situation.id)
        if situation.id in counts:
            assert each.end is not None
            yield PastSituation(
                id=situation.id,
                policy=situation.policy,
                bindings=situation.bindings,
                start=situation.start,
                last=situation.last,
                end=each.end,
                detections=situation.detections,
                causes=causes,
                positions=positions,
            )
