"""The recorded events that Situ and others are measured with: what everybody is to answer is what the policy means."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from benchmarks.situation_recorded import CLOSING, LATENESS, check_by_reference, record, write


def test_what_is_expected_is_what_the_reference_says() -> None:
    recording = record(10_500, 300)
    assert check_by_reference(recording, guests=1, seconds=35) > 0


def test_events_are_out_of_order_but_never_late() -> None:
    times = record(3_000, 60).events["time"].cast(pa.int64()).to_pylist()
    latest, behind = times[0], 0
    for time in times:
        behind, latest = max(behind, latest - time), max(latest, time)
    assert 0 < behind < LATENESS


def test_the_same_events_are_in_both_forms(tmp_path: Path) -> None:
    files = write(record(1_000, 60), tmp_path, 4, json=True)
    stored = pa.parquet.read_table(files.parquet)
    lines = [json.loads(line) for file in sorted(files.json.iterdir()) for line in file.read_text().splitlines()]
    assert stored.num_rows == len(lines) == 1_000 + CLOSING
    assert [line["id"] for line in lines] == stored["id"].to_pylist()
    assert [line["time"] * 1000 for line in lines] == stored["time"].cast(pa.int64()).to_pylist()
