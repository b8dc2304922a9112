"""The recorded events that Situ and others are measured with: what everybody is to answer is what the policy means."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from benchmarks.situation_by_hand import Sightings, accompanied
from benchmarks.situation_many import Flowing
from benchmarks.situation_on_files import recorded_detecting
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


def test_all_stages_in_one_process_find_what_is_expected(tmp_path: Path) -> None:
    recording = record(12_000, 300)
    write(recording, tmp_path / "recorded", 1)
    flowing = Flowing(recording, tmp_path / "recorded", tmp_path / "states", recorded_detecting(), 1_500)
    while not flowing.is_done:
        flowing.step()
    assert flowing.answers == recording.answers != frozenset()


def test_what_is_written_by_hand_finds_what_is_expected() -> None:
    recording = record(12_000, 300)
    persons = {row["id"]: row["status"] for row in recording.persons.to_pylist()}
    rooms = [row for row in recording.rooms.to_pylist() if row["security"] == "restricted"]
    numbers = {name: number for number, name in enumerate(persons, 1)}
    seen: dict[str, list[tuple[object, ...]]] = {"guest": [], "employee": []}
    for row in recording.events.to_pylist():
        if row["person"] in persons:
            where = [
                place
                for place, room in enumerate(rooms, 1)
                if room["x1"] <= row["x"] <= room["x2"] and room["y1"] <= row["y"] <= room["y2"]
            ]
            time = round(row["time"].timestamp() * 1e6)
            for place in where or [0]:
                seen[persons[row["person"]]].append(
                    (time, numbers[row["person"]], row["x"], row["y"], place, row["id"], rooms[place - 1]["id"])
                )
    guests, employees = (sightings(seen[status]) for status in ("guest", "employee"))
    due = guests.take(guests["place"] > 0)
    alone = due.take(~accompanied(due, guests, employees))
    assert set(zip(alone["id"], alone["room"], strict=True)) == recording.answers != frozenset()


def sightings(rows: list[tuple[object, ...]]) -> Sightings:
    names = ("time", "who", "x", "y", "place", "id", "room")
    return Sightings(**{name: np.array(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})
