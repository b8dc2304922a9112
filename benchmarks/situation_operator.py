"""How Spark hosts the kernel: its own stateful operator against states in files, with the same rows and kernel.

Rows of leaves come in files, one a batch, in as many parts as a batch has tasks. They are spread over the partitions of
the policy, shuffled, and each partition's kernel takes its step. Decision 0024 says what came out.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.situation_events import SECOND, Building, domain, security_plan
from situ.policies.enrichment.rows import concat, from_blob, to_blob
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.plan import Leaf, PolicyPlan, partition_rows

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.state import GroupState

BUCKETS, TASKS = 4, 2
PEOPLE = 20_000
_LATENESS = 2 * SECOND
_SNAPSHOT_EVERY = 10
GIVEN = pa.schema([("watermark", pa.int64()), ("blob", pa.binary())])
SPREAD = pa.schema([("bucket", pa.int64()), ("watermark", pa.int64()), ("blob", pa.binary())])
FOUND = pa.schema([("bucket", pa.int64()), ("detections", pa.int64()), ("rows", pa.int64())])
_FOUND = "bucket long, detections long, rows long"


@cache
def plan() -> PolicyPlan:
    return security_plan(domain())


@cache
def kernel(bucket: int) -> Kernel:
    return Kernel(plan(), partition=bucket, partitions=BUCKETS)


def spread(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What enrichment made → the rows of each partition of the policy, of every one in every batch."""
    of = plan()
    for batch in batches:
        for watermark, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            parts: list[dict[int, pa.RecordBatch]] = [{} for _ in range(BUCKETS)]
            for number, given in from_blob(blob).items():
                leaf = of.leaves[number].leaf
                for bucket, part in enumerate(partition_rows(of, leaf, concat(leaf, given), BUCKETS)):
                    parts[bucket][number] = part
            blobs = [to_blob(part) for part in parts]
            columns = [list(range(BUCKETS)), [watermark] * BUCKETS, blobs]
            arrays = [pa.array(values, field.type) for values, field in zip(columns, SPREAD, strict=True)]
            yield pa.RecordBatch.from_arrays(arrays, schema=SPREAD)


def rows_of(blobs: Iterable[bytes]) -> dict[Leaf, pa.RecordBatch]:
    together: dict[int, list[pa.RecordBatch]] = {}
    for blob in blobs:
        for number, batches in from_blob(blob).items():
            together.setdefault(number, []).extend(batches)
    leaves = [each.leaf for each in plan().leaves]
    return {leaves[number]: concat(leaves[number], batches) for number, batches in together.items()}


def step(bucket: int, state: KernelState, blobs: list[bytes], watermark: int) -> tuple[KernelState, dict[str, int]]:
    rows = rows_of(blobs)
    after, detected = kernel(bucket).step(state, rows, watermark, {})
    taken = sum(each.num_rows for each in rows.values())
    return after, {"bucket": bucket, "detections": detected.batch.num_rows, "rows": taken}


# ── with Spark's state ────────────────────────────────────────────────────────────────────────────


def in_state(key: tuple[int], frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
    import pandas as pd

    (bucket,) = key
    blobs: list[bytes] = []
    watermark = 0
    for frame in frames:
        blobs += map(bytes, frame["blob"])
        watermark = max(watermark, int(frame["watermark"].max()))
    stored = kernel(bucket).load(bytes(state.get[0])) if state.exists else None
    after, found = step(bucket, stored or kernel(bucket).start(), blobs, watermark)
    state.update((kernel(bucket).save(after),))
    yield pd.DataFrame([found])


def with_spark_state(frame: DataFrame, folder: Path, taken: list[int]) -> Any:
    found = (
        frame.mapInArrow(spread, "bucket long, watermark long, blob binary")
        .groupBy("bucket")
        .applyInPandasWithState(in_state, _FOUND, "blob binary", "append", "NoTimeout")
    )
    return found.writeStream.outputMode("append").foreachBatch(partial(_collected, taken))


def _collected(taken: list[int], frame: DataFrame, number: int) -> None:
    taken.append(sum(row["rows"] for row in frame.collect()))


# ── with states in files ──────────────────────────────────────────────────────────────────────────

_held: dict[tuple[Path, int], tuple[int, KernelState]] = {}
"""What a worker has in memory: the batch after which that was the state."""


def in_files(folder: Path, number: int, journal: bool, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """A step from the state after the batch before to that after this one, each under its number."""
    given: dict[int, tuple[int, list[bytes]]] = {}
    for batch in batches:
        for bucket, watermark, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            before, blobs = given.get(bucket, (watermark, []))
            given[bucket] = (max(before, watermark), [*blobs, blob])
    for bucket, (watermark, blobs) in given.items():
        state = _restored(folder, bucket, number - 1)
        after, found = step(bucket, state, blobs, watermark)
        if journal and number % _SNAPSHOT_EVERY:
            _write(folder / str(number) / f"{bucket}.rows", _packed(watermark, blobs))
        else:
            _write(folder / str(number) / f"{bucket}.state", kernel(bucket).save(after))
        _held[folder, bucket] = (number, after)
        yield pa.RecordBatch.from_pylist([found], schema=FOUND)


def _restored(folder: Path, bucket: int, number: int) -> KernelState:
    """From memory; or from the last state that was written whole, and what came since."""
    held = _held.get((folder, bucket))
    if held is not None and held[0] == number:
        return held[1]
    if number < 0:
        return kernel(bucket).start()
    stored = folder / str(number) / f"{bucket}.state"
    if stored.exists():
        return kernel(bucket).load(stored.read_bytes()) or kernel(bucket).start()
    state = _restored(folder, bucket, number - 1)
    watermark, blobs = _unpacked((folder / str(number) / f"{bucket}.rows").read_bytes())
    return step(bucket, state, blobs, watermark)[0]


def _packed(watermark: int, blobs: list[bytes]) -> bytes:
    return b"".join((watermark.to_bytes(8, "big", signed=True), *(len(b).to_bytes(8, "big") + b for b in blobs)))


def _unpacked(packed: bytes) -> tuple[int, list[bytes]]:
    place, blobs = 8, []
    while place < len(packed):
        size = int.from_bytes(packed[place : place + 8], "big")
        blobs.append(packed[place + 8 : place + 8 + size])
        place += 8 + size
    return int.from_bytes(packed[:8], "big", signed=True), blobs


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_suffix(f".{os.getpid()}")
    beside.write_bytes(content)
    beside.replace(file)


def with_files(frame: DataFrame, folder: Path, taken: list[int], *, journal: bool = False) -> Any:
    def batch(part: DataFrame, number: int) -> None:
        rows = part.mapInArrow(spread, "bucket long, watermark long, blob binary")
        placed = rows.repartitionById(TASKS, (rows["bucket"] % TASKS).cast("int"))
        _collected(taken, placed.mapInArrow(partial(in_files, folder, number, journal), _FOUND), number)
        shutil.rmtree(folder / str(number - 2 * _SNAPSHOT_EVERY), ignore_errors=True)

    return frame.writeStream.foreachBatch(batch)


# ── the measurement ───────────────────────────────────────────────────────────────────────────────

Way = Callable[["DataFrame", Path, list[int]], Any]
FILES, JOURNAL, SPARKS, ROCKS = (
    "states in files",
    "states in files now and then",
    "Spark's state",
    "Spark's state, RocksDB",
)
# Spark's other store, RocksDB, cannot be used beside the file system that our session has for its checkpoints.
WAYS: Mapping[str, Way] = {
    SPARKS: with_spark_state,
    FILES: with_files,
    JOURNAL: partial(with_files, journal=True),
}


def write_batches(folder: Path, size: int, count: int) -> None:
    """Files with the rows of all leaves, each for so many events, in as many parts as there are tasks."""
    building, of = Building(PEOPLE), plan()
    for number in range(count):
        start, blobs = number * size, []
        for part in range(TASKS):
            rows = building.rows(of, start + part * size // TASKS, size // TASKS)
            blobs.append(to_blob({place: rows[each.leaf] for place, each in enumerate(of.leaves)}))
        watermark = building.time(start + size - 1) - _LATENESS
        table = pa.table([[watermark] * TASKS, blobs], schema=GIVEN)
        file = folder / f"{number:05d}.parquet"
        pa.parquet.write_table(table, file, row_group_size=1, compression="none")
        os.utime(file, (number + 1, number + 1))


def measured(bench: Bench, given: Path, way: Way, size: int, skipped: int) -> Taken:
    session = bench.spark
    folder, taken = bench.folder("operator"), []
    frame = (
        session.readStream.schema("watermark long, blob binary")
        .option("maxFilesPerTrigger", 1)
        .option("latestFirst", "false")
        .parquet(str(given))
    )
    query = (
        way(frame, folder / "states", taken)
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    lasted = [each["durationMs"]["triggerExecution"] for each in query.recentProgress if each["numInputRows"]]
    assert len(taken) > skipped, taken
    assert all(taken), taken
    millis = statistics.median(lasted[skipped:])
    return Taken(value=size / millis * 1000, figures={"ms a batch": millis})


def _variants(bench: Bench) -> list[Variant]:
    variants = []
    for size, count, skipped in ((200_000, 5, 2), (1_000, 25, 8)) if not bench.quick else ((500, 3, 1),):
        given = bench.folder("rows")
        write_batches(given, size, count)
        for name, way in WAYS.items():
            work = partial(measured, bench, given, way, size, skipped)
            variants.append(Variant(name=f"{size:,} events a batch: {name}", work=work))
    return variants


def _judge(medians: dict[str, float]) -> list[Verdict]:
    found = []
    for size in ("200,000", "1,000"):
        values = {name: medians.get(f"{size} events a batch: {name}") for name in (FILES, SPARKS)}
        if values[FILES] is not None and values[SPARKS]:
            ratio = values[FILES] / values[SPARKS]
            found.append(Verdict(what=f"{size} events a batch: files over Spark's state", value=ratio))
    return found


SCENARIOS = [
    Scenario(
        name="situation-operator",
        title="Hosting the kernel on Spark",
        unit="events/s",
        about=(
            "The security policy over rows that are enriched already: spread over four partitions of the policy, "
            "shuffled, a step of the kernel for each, its state kept. Twenty thousand people, a window of 5 s."
        ),
        variants=_variants,
        judge=_judge,
        repetitions=3,
        warm=False,
        spark=True,
    ),
]
