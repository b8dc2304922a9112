"""Situ's detection in one process over a recording: enrichment and the kernel, a file at a time.

From memory, events are there as columns; or the files of JSON are read as part of the work, as peers read them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json

from benchmarks.harness import Taken
from benchmarks.situation_recorded import (
    CLOSING,
    EVENTS,
    LATENESS,
    MILLI,
    SECOND,
    Files,
    answers_of,
    instances,
    observed,
    plan,
)
from situ.policies.enrichment.enrich import Enrichment
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.kernel.kernel import Kernel

FULL = 15 * SECOND
"""After this long windows are full, and what is measured begins."""
_FORM = pa.schema(
    [("id", pa.string()), ("person", pa.string()), ("x", pa.float64()), ("y", pa.float64()), ("time", pa.int64())]
)


@dataclass(frozen=True, slots=True)
class Detected:
    """What a run over a recording gave: a rate in steady state, and all answers."""

    taken: Taken
    answers: frozenset[tuple[str, str]]


def in_memory(files: Files) -> list[pa.Table]:
    """The events of each file, as columns."""
    return [pa.parquet.read_table(each) for each in sorted(files.parquet.glob("*.parquet"))]


def read_json(files: Files) -> Iterator[pa.Table]:
    """The same, read while one waits, by one thread."""
    options = pyarrow.json.ReadOptions(use_threads=False)
    parsing = pyarrow.json.ParseOptions(explicit_schema=_FORM)
    for file in sorted(files.json.glob("*.json")):
        table = pyarrow.json.read_json(file, options, parsing)
        times = pc.multiply(table["time"], MILLI).cast(EVENTS.field("time").type)
        yield table.set_column(table.column_names.index("time"), "time", times)


def detect_in_one_process(files: Files, given: Iterator[pa.Table] | list[pa.Table]) -> Detected:
    """One kernel, one partition; the watermark follows the latest event as it does in the product."""
    of = plan()
    kernel, knowledge = Kernel(of), InstanceColumns(of.ontology)
    enrichment = Enrichment((each.leaf for each in of.leaves), of.ontology)
    known = instances(files.recording.persons, files.recording.rooms)
    knowledge.take(known)
    state, found, latest, first = kernel.start(), [], 0, 0
    begin, counted, seconds = 0.0, 0, 0.0
    for number, part in enumerate(given, 1):
        if begin and number <= files.batches:
            counted += part.num_rows
        times = part["time"].cast(pa.int64())
        latest = max(latest, pc.max(times).as_py())
        first = first or latest
        enriched = enrichment.run([observed(part, enrichment)], knowledge)
        state, detected = kernel.step(state, enriched.rows, latest - LATENESS, known)
        found.append(detected.batch)
        if number == files.batches:
            seconds = time.perf_counter() - begin
        elif not begin and latest - first >= FULL:
            begin = time.perf_counter()
    assert counted, "the recording ends before windows are full"
    assert number == files.batches + CLOSING
    answers = answers_of(found)
    pairs = frozenset(zip(answers["id"].to_pylist(), answers["room"].to_pylist(), strict=True))
    return Detected(Taken(value=counted / seconds), pairs)
