"""Raw events of the smart building's sensors for everybody who detects from the bus: messages, tables, answers.

Badge readers and cameras send what they see in terms of their own, see :mod:`tests.soak.recording`; times are whole
milliseconds here. One message ends it: somebody is seen a minute later, so that what was waiting is decided. Answers
are worked out beforehand, in one process that has no bus.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
from simulator.floor_plan import Building, load_building

from benchmarks.situation_answers import Answers
from benchmarks.situation_recorded import DETECTIONS, EVENTS, SECOND, expected
from benchmarks.zones import Sent
from situ.event.message import join_lines
from tests.soak.recording import GATEWAYS, READERS, Recording, read_messages, record

START = datetime(2026, 1, 1, tzinfo=UTC)
"""In the past, whenever it is measured: no event is later than it is received."""
_BEYOND = timedelta(minutes=1)
_MICROS = re.compile(rb'(\.\d{3})\d{3}Z"')
_FOOT, _CENTIMETRE = 0.3048, 0.01


@dataclass(frozen=True, slots=True, kw_only=True)
class RawRecording:
    """A project, what its sensors send, and what is to be told of it."""

    folder: Path
    """Of the project."""
    tables: Path
    """A folder with the tables as lines of JSON."""
    messages: tuple[Sent, ...]
    until: int
    """All that happens is decided when event time is settled up to here, in microseconds."""
    answers: Answers

    @property
    def events(self) -> int:
        return sum(each.count for each in self.messages)


def record_raw(folder: Path, *, rate: float, seconds: float) -> RawRecording:
    """About so many events a second of half as many people."""
    recording = record(folder, rate=rate, seconds=seconds, start=START)
    building = load_building(recording.folder)
    last = START + timedelta(seconds=seconds)
    messages = (*_sent(recording), _closing(building, last + _BEYOND))
    tables = folder / "tables"
    _write_tables(building, tables)
    found = _detections(building, messages)
    _check(recording, found)
    return RawRecording(
        folder=recording.folder,
        tables=tables,
        messages=messages,
        until=round((last + _BEYOND / 2).timestamp()) * SECOND,
        answers=frozenset(zip(found["id"].to_pylist(), found["room"].to_pylist(), strict=True)),
    )


def _sent(recording: Recording) -> Iterator[Sent]:
    for each in read_messages(recording.messages):
        client = GATEWAYS[each.gateway]
        context = "readers" if client in READERS else "cameras"
        yield Sent(client=client, body=_MICROS.sub(rb'\1Z"', each.body), count=each.count, context=context)


def _closing(building: Building, at: datetime) -> Sent:
    someone = next(each for each in building.people if each.role == "employee")
    reader = building.readers[0]
    event = {
        "specversion": "1.0",
        "id": "closing",
        "time": f"{at:%Y-%m-%dT%H:%M:%S}.000Z",
        "source": reader.id,
        "type": "TagSeen",
        "data": {"reader": reader.id, "tag": someone.tag, "cartesian": {"dx": 100.0, "dy": 0.0}},
    }
    return Sent(client=READERS[0], body=join_lines([json.dumps(event).encode()]), count=1, context="readers")


def _write_tables(building: Building, folder: Path) -> None:
    """The fields of each have one order, and no commas in them: so they are read without a parser."""
    folder.mkdir()
    rows: dict[str, Iterable[dict[str, Any]]] = {
        "persons": (
            {"id": each.id, "status": each.role, "tag": each.tag, "face": each.face} for each in building.people
        ),
        "rooms": _rooms(building),
        "readers": ({"id": each.id, "x": each.x, "y": each.y, "heading": each.heading} for each in building.readers),
        "cameras": ({"id": each.id, "x": each.x, "y": each.y, "heading": each.heading} for each in building.cameras),
    }
    for name, some in rows.items():
        (folder / f"{name}.json").write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in some))


def _rooms(building: Building) -> list[dict[str, Any]]:
    names = ("id", "security", "x1", "y1", "x2", "y2")
    return [{name: getattr(room, name) for name in names} for room in building.rooms]


# ── what is to be told ──


def _detections(building: Building, messages: Iterable[Sent]) -> pa.Table:
    """By our kernel, over what is worked out here, one event after the other."""
    rows = sorted(_sightings(building, messages), key=lambda row: row["time"])
    persons = pa.table({"id": [each.id for each in building.people], "status": [each.role for each in building.people]})
    return expected(pa.Table.from_pylist(rows, schema=EVENTS), persons, pa.Table.from_pylist(_rooms(building)))


def _sightings(building: Building, messages: Iterable[Sent]) -> Iterator[dict[str, Any]]:
    mounts = {each.id: each for each in (*building.readers, *building.cameras)}
    who = {each.tag: each.id for each in building.people} | {each.face: each.id for each in building.people}
    for message in messages:
        for event in msgspec.json.decode(message.body):
            data = event["data"]
            # Worked out in the order of the contexts: at a door the last digit decides on which side somebody is.
            if event["type"] == "TagSeen":
                person, mount = who[data["tag"]], mounts[data["reader"]]
                dx, dy, angle = data["cartesian"]["dx"], data["cartesian"]["dy"], math.radians(mount.heading)
                x = mount.x + _CENTIMETRE * (dx * math.cos(angle) - dy * math.sin(angle))
                y = mount.y + _CENTIMETRE * (dx * math.sin(angle) + dy * math.cos(angle))
            else:
                person, mount = who[data["face"]], mounts[data["camera"]]
                r, angle = data["polar"]["r"], math.radians(mount.heading + data["polar"]["theta"])
                x, y = mount.x + _FOOT * r * math.cos(angle), mount.y + _FOOT * r * math.sin(angle)
            time = datetime.fromisoformat(event["time"])
            yield {"id": event["id"], "person": person, "x": x, "y": y, "time": time}


def _check(recording: Recording, found: pa.Table) -> None:
    """Guests who went astray are told of, and nobody else."""
    assert found.schema == DETECTIONS
    told = set(zip(found["person"].to_pylist(), found["room"].to_pylist(), strict=True))
    astray = {(each.guest, each.room) for each in recording.truth}
    noticed = {(each.guest, each.room) for each in recording.noticed}
    assert noticed, "nobody goes astray"
    assert noticed <= told <= astray, (noticed - told, told - astray)
