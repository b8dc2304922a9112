"""Rows of a log as Spark has them: one for each event, and together what the messages were."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pyarrow as pa
import pytest

from situ.event.message import StoredMessage, join_lines
from situ.spark.frames import ROWS, TaskCounts, count_batch, decode_counts, messages_of, row_batches

ODD = [b"[]", b"", b"x", b"\n", b"\n\n\n", b"[\n{}\n]\n", b"{}\n{}", b"[\n{},\n\n{}\n]"]


def message(seq: int, body: bytes) -> StoredMessage:
    return StoredMessage(seq=seq, subject=f"s.{seq}", body=body, headers={"Situ-Key": f"a.1.{seq}"}, at=seq)


def cut(batches: list[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """As Spark hands them on: in batches of its own, between any two rows."""
    for batch in pa.Table.from_batches(batches, ROWS).combine_chunks().to_batches(max_chunksize=most):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, ROWS) as writer:
            writer.write_batch(batch)
        yield from pa.ipc.open_stream(sink.getvalue())


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_there_is_a_row_for_each_event_and_messages_are_what_they_were(most: int) -> None:
    dice = random.Random(most)
    counts = [dice.randrange(1, 40) for _ in range(30)]
    bodies = [join_lines(b'{"n": %d, "t": "\\u000a, \xc3\xa4"}' % n for n in range(count)) for count in counts]
    messages = [message(seq, body) for seq, body in enumerate(bodies, 1)]
    batches = list(row_batches(messages, 100))
    assert sum(batch.num_rows for batch in batches) == sum(counts)
    assert len(batches) > 1
    assert list(messages_of(cut(batches, most))) == messages
    assert list(messages_of(batches)) == messages


def test_bodies_that_no_client_library_makes_pass_as_they_are() -> None:
    messages = [message(seq, body) for seq, body in enumerate(ODD, 1)]
    assert list(messages_of(row_batches(messages, 3))) == messages
    assert list(messages_of([])) == []


def test_what_a_task_counted_is_a_row_with_what_spark_shows() -> None:
    counts = TaskCounts(types={"A": 3, "B": 1}, groups={"g": 2}, live={"c/s": 5}, dead={"E705": 1}, state_bytes=7)
    counts.seconds = {"decode": 0.25}
    batch = count_batch(counts)
    assert decode_counts(batch.column("counts").to_pylist()) == [counts]
    shown = {name: value for name, (value,) in batch.to_pydict().items() if name != "counts" and value}
    assert shown == {"events": 4, "deliveries": 7, "dead_letters": 1, "state_bytes": 7, "decode_ms": 250.0}
