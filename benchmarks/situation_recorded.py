"""Recorded events for the security policy, for everybody who detects the same: Situ, hand-written Spark, Flink, Esper.

``A guest is inside a restricted room R; A is not within 5 m of B or B is not inside R; window 5 s``, over positions of
people. A folder holds the events in files, one a micro-batch, as Parquet and as lines of JSON, in the order in which
they arrive; two tables; and the detections that everybody has to give.

Events: ``id`` (text, unique), ``person`` (text), ``x`` and ``y`` (metres), ``time``: a timestamp in Parquet,
milliseconds since 1970 in JSON. An event arrives at most a second after its time: with ``LATENESS`` none is late. The
last files have one event each, of nobody, a minute after the others and more: what was waiting is decided.

Tables: ``persons`` (``id``, ``status``: ``guest`` or ``employee``), ``rooms`` (``id``, ``security``: ``restricted`` or
``open``, ``x1``, ``y1``, ``x2``, ``y2``). Rooms lie side by side, and
``x1 ≤ x ≤ x2 and y1 ≤ y ≤ y2`` is inside: who stands in a wall is in both of its rooms.

**A detection** is an event e of a guest A at the time t, inside a restricted room R, for which there is no employee B
with both of these:

- B was seen *inside R* at a time in [t − 5 s, t + 5 s], by any of its events;
- B was seen *near A* then: there are any event x of A and any event y of B, at times at most 5 s apart and at places at
  most 5 m apart, wherever that is, and the later of the two has its time in [t − 5 s, t + 5 s]. So the earlier one
  may be up to 10 s before t. x need not be e, and y need not be an event of B inside R.

All limits belong to what they limit. A detection is known by ``id``, that of e, and ``room``; ``person`` is A, ``time``
is t. Nothing later than t + 5 s counts, so it can be reported when the watermark has passed t + 5 s.

Coordinates are multiples of 1/64 m: squares of distances are exact, and everybody gets the same ones. Times are whole
milliseconds.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet

from benchmarks.situation_events import domain, security_plan
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.instances import InstanceColumns
from situ.policies.enrichment.rows import BASE
from situ.policies.kernel.kernel import Kernel
from situ.policies.model import Cause, InstancesByConcept, Observation
from situ.policies.plan import PolicyPlan
from situ.policies.reference import detect

MILLI, SECOND = 1_000, 1_000_000
WINDOW, LATENESS, NEAR = 5 * SECOND, 2 * SECOND, 5.0
"""Of the policy; times are in microseconds."""
BEGIN = 1_767_225_600 * SECOND
EVENTS = pa.schema(
    [
        ("id", pa.string()),
        ("person", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("time", pa.timestamp("us", tz="UTC")),
    ]
)
DETECTIONS = pa.schema(
    [("id", pa.string()), ("person", pa.string()), ("room", pa.string()), ("time", pa.timestamp("us", tz="UTC"))]
)
CLOSING = 3
"""How many events of nobody end a recording, each in a file of its own."""
_SIDE, _STAY, _GROUP, _CROWD = 25.0, 30, 3, 20
_AWAY, _LEAVING = 200, 50
_Ints = npt.NDArray[np.int64]
_Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Recording:
    """Events as they arrive, what is known, and what is to be detected."""

    events: pa.Table
    persons: pa.Table
    rooms: pa.Table
    detections: pa.Table

    @property
    def answers(self) -> frozenset[tuple[str, str]]:
        """The detections as everybody's are compared: the event and the room."""
        return frozenset(zip(self.detections["id"].to_pylist(), self.detections["room"].to_pylist(), strict=True))


@dataclass(frozen=True, slots=True)
class Files:
    """A recording in a folder."""

    folder: Path
    recording: Recording
    batches: int
    """Files with events of people; those of nobody come behind them."""
    size: int
    """Events in each."""

    @property
    def parquet(self) -> Path:
        return self.folder / "parquet"

    @property
    def json(self) -> Path:
        return self.folder / "json"


def record(events: int, people: int, rooms: int = 0, seed: int = 7) -> Recording:
    """So many events of so many people, each of whom is seen once a second; about twenty to a room, if not said."""
    walk = _Walk(people, rooms or max(5, people // _CROWD), seed)
    table = walk.events(events)
    persons = pa.table({"id": walk.names(), "status": ["guest" if n % _GROUP else "employee" for n in range(people)]})
    known = walk.rooms_table()
    return Recording(table, persons, known, expected(table, persons, known))


def write(recording: Recording, folder: Path, batches: int, *, json: bool = False) -> Files:
    """Files of equal size, then those of nobody; their order by name is that by time of writing, too."""
    count = recording.events.num_rows - CLOSING
    size = -(-count // batches)
    parts = [recording.events.slice(start, min(size, count - start)) for start in range(0, count, size)]
    closing = [recording.events.slice(count + number, 1) for number in range(CLOSING)]
    files = Files(folder, recording, len(parts), size)
    for number, part in enumerate([*parts, *closing], 1):
        _write(part, files.parquet / f"{number:05d}.parquet", number)
        if json:
            _write(part, files.json / f"{number:05d}.json", number)
    for name, table in (("persons", recording.persons), ("rooms", recording.rooms), ("expected", recording.detections)):
        _write(table, folder / f"{name}.parquet", 1)
        _write(table, folder / f"{name}.json", 1)
    return files


def _write(table: pa.Table, file: Path, number: int) -> None:
    import msgspec

    file.parent.mkdir(parents=True, exist_ok=True)
    if file.suffix == ".parquet":
        pa.parquet.write_table(table, file, compression="snappy")
    else:
        if "time" in table.column_names:
            millis = pc.divide(table["time"].cast(pa.int64()), MILLI)
            table = table.set_column(table.column_names.index("time"), "time", millis)
        encode = msgspec.json.encode
        file.write_bytes(b"".join(encode(row) + b"\n" for row in table.to_pylist()))
    os.utime(file, (number, number))


# ── people on their way ───────────────────────────────────────────────────────────────────────────


class _Walk:
    """Groups of an employee and two guests, who stay half a minute in a room and go on to another.

    Of every 200th group the employee is somewhere else; of every 50th other one, the employee leaves for a while.
    """

    def __init__(self, people: int, rooms: int, seed: int) -> None:
        dice = np.random.default_rng(seed)
        self._people, self._rooms = people, rooms
        self._wide = int(np.ceil(rooms**0.5))
        self._order = dice.permutation(people)
        self._phases = np.sort(dice.integers(0, 1000, people))
        self._start = dice.integers(0, _STAY, people)
        self._salt = dice.integers(1, 1 << 40)
        self._dice = dice

    def names(self) -> pa.Array:
        return pa.array([f"person {number}" for number in range(self._people)])

    def rooms_table(self) -> pa.Table:
        numbers = np.arange(self._rooms)
        x, y = self._corner(numbers)
        return pa.table(
            {
                "id": [f"room {number}" for number in numbers],
                "security": ["open" if number % 5 else "restricted" for number in numbers],
                "x1": x,
                "y1": y,
                "x2": x + _SIDE,
                "y2": y + _SIDE,
            }
        )

    def events(self, count: int) -> pa.Table:
        numbers = np.arange(count)
        seconds, places = np.divmod(numbers, self._people)
        who = self._order[places]
        millis = seconds * 1000 + self._phases[places]
        x, y = self._where(who, seconds)
        arrival = np.argsort(millis + self._dice.integers(0, 1000, count), kind="stable")
        after = millis[-1] + 60_000 * np.arange(1, CLOSING + 1)
        names = pa.concat_arrays([self.names(), pa.array(["nobody"])])
        nowhere = np.full(CLOSING, -1000.0)
        columns = [
            pa.array([f"event {number}" for number in np.append(arrival, count + np.arange(CLOSING)).tolist()]),
            names.take(pa.array(np.append(who[arrival], [self._people] * CLOSING))),
            np.append(x[arrival], nowhere),
            np.append(y[arrival], nowhere),
            pa.array(BEGIN + MILLI * np.append(millis[arrival], after)).cast(EVENTS.field("time").type),
        ]
        return pa.table(columns, schema=EVENTS)

    def _where(self, who: _Ints, seconds: _Ints) -> tuple[_Floats, _Floats]:
        group, member = np.divmod(who, _GROUP)
        stay, since = np.divmod(seconds + self._start[group], _STAY)
        employee = member == 0
        away = employee & (group % _AWAY == 0)
        left = employee & (group % _LEAVING == _LEAVING // 2) & (since >= 6) & (since < 27)
        room = self._chance(group, stay, 1) % self._rooms
        room = np.where(away, (room + 1) % self._rooms, room)
        corner_x, corner_y = self._corner(room)
        x = corner_x + 1 + self._between(self._chance(group, stay, 2), 0, _SIDE - 2)
        y = corner_y + 1 + self._between(self._chance(group, stay, 3), 0, _SIDE - 2)
        aside = np.where(left, 12.0, 0.0) * np.where(x - corner_x > _SIDE / 2, -1, 1)
        x += aside + 0.5 * member + self._between(self._chance(who, seconds, 4), -0.75, 0.75)
        y += 0.5 * member + self._between(self._chance(who, seconds, 5), -0.75, 0.75)
        return x, y

    def _corner(self, room: _Ints) -> tuple[_Floats, _Floats]:
        return _SIDE * (room % self._wide), _SIDE * (room // self._wide)

    def _chance(self, one: _Ints, other: _Ints, number: int) -> _Ints:
        """The same for the same, and otherwise anything."""
        mixed = (
            (one.astype(np.uint64) << np.uint64(32)) ^ other.astype(np.uint64) ^ np.uint64(self._salt + (number << 58))
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
        return (mixed >> np.uint64(2)).astype(np.int64)

    @staticmethod
    def _between(chance: _Ints, low: float, high: float) -> _Floats:
        return low + chance % int((high - low) * 64) / 64


# ── what is to be detected ────────────────────────────────────────────────────────────────────────


@cache
def plan() -> PolicyPlan:
    """Of the security policy."""
    return security_plan(domain(), window=WINDOW // SECOND)


def instances(persons: pa.Table, rooms: pa.Table) -> InstancesByConcept:
    """The tables as the policy knows them."""
    return {
        "person": {row["id"]: {"status": row["status"]} for row in persons.to_pylist()},
        "room": {
            row["id"]: {"security": row["security"], "area": {side: row[side] for side in ("x1", "y1", "x2", "y2")}}
            for row in rooms.to_pylist()
        },
    }


def observed(events: pa.RecordBatch | pa.Table, enrichment: Enrichment) -> PushObservations:
    """Events as enrichment takes them."""
    count = events.num_rows
    coordinates = {("position", "x"): "x", ("position", "y"): "y"}
    table = pa.table(
        [
            events["time"].cast(pa.int64()),
            pa.repeat("reader", count),
            events["id"],
            pa.repeat("seen", count),
            pa.array(np.zeros(count, np.int64)),
            events["person"],
            *(events[coordinates[scalar.path]] for scalar in enrichment.scalars("person", "position")),
        ],
        names=[*BASE.names, "x", "y"],
    )
    rows = table.combine_chunks().to_batches()[0] if count else pa.RecordBatch.from_pylist([], schema=table.schema)
    return PushObservations(concept="person", attribute="position", rows=rows)


def expected(events: pa.Table, persons: pa.Table, rooms: pa.Table, at_once: int = 100_000) -> pa.Table:
    """What our kernel detects, in one partition, of events in the order of time."""
    of = plan()
    kernel, knowledge = Kernel(of), InstanceColumns(of.ontology)
    enrichment = Enrichment((each.leaf for each in of.leaves), of.ontology)
    known = instances(persons, rooms)
    knowledge.take(known)
    state, found = kernel.start(), []
    ordered = events.take(pc.sort_indices(events["time"]))
    for start in range(0, events.num_rows, at_once):
        part = ordered.slice(start, at_once)
        enriched = enrichment.run([observed(part, enrichment)], knowledge)
        state, detected = kernel.step(state, enriched.rows, part["time"].cast(pa.int64())[-1].as_py(), known)
        found.append(detected.batch)
    return answers_of(found)


def answers_of(batches: list[pa.RecordBatch]) -> pa.Table:
    """What kernels reported, as detections of a recording."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    columns = [
        [row["causes"][0]["id"] for row in rows],
        [row["@A"] for row in rows],
        [row["@R"] for row in rows],
        pa.array([row["activation"] for row in rows], pa.int64()).cast(DETECTIONS.field("time").type),
    ]
    return pa.table(columns, schema=DETECTIONS).sort_by([("time", "ascending"), ("id", "ascending")])


def check_by_reference(recording: Recording, guests: int = 3, seconds: int = 45) -> int:
    """Hold what is expected against the slow reference, for some guests who are alone at times and some who are not.

    For the first so many seconds, and the employees who are ever anywhere near. Returns how many detections there were.
    """
    rows = recording.events.to_pylist()
    until = BEGIN + seconds * SECOND
    by_person: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        row["time"] = _micros(row["time"])
        if row["time"] < until:
            by_person.setdefault(row["person"], []).append(row)
    status = {row["id"]: row["status"] for row in recording.persons.to_pylist()}
    alone = dict.fromkeys(row["person"] for row in recording.detections.to_pylist() if row["person"] in by_person)
    others = [name for name in by_person if status.get(name) == "guest" and name not in alone]
    known, compared = instances(recording.persons, recording.rooms), 0
    for guest in [*list(alone)[:guests], *others[:guests]]:
        heard = [*by_person[guest], *_companions(by_person, status, guest)]
        found = detect(plan().policy, plan().ontology, list(_observations(heard)), known, until=until - WINDOW - SECOND)
        told = {(each.causes[0].id, dict(each.bindings)["R"]) for each in found if dict(each.bindings)["A"] == guest}
        wanted = {
            (row["id"], row["room"])
            for row in recording.detections.to_pylist()
            if row["person"] == guest and _micros(row["time"]) + WINDOW < until - WINDOW - SECOND
        }
        assert told == wanted, (guest, told ^ wanted)
        compared += len(told)
    return compared


def _companions(
    by_person: Mapping[str, list[dict[str, Any]]], status: Mapping[str, str], guest: str
) -> Iterator[dict[str, Any]]:
    """The events of the employees who ever came anywhere near a guest, by far more than counts."""
    own = np.array([(row["x"], row["y"]) for row in by_person[guest]])
    for name, rows in by_person.items():
        if status.get(name) == "employee":
            places = np.array([(row["x"], row["y"]) for row in rows])
            if (np.abs(own[:, None] - places[None]).max(axis=2) < 2 * NEAR).any():
                yield from rows


def _observations(rows: list[dict[str, Any]]) -> Iterator[Observation]:
    for row in rows:
        yield Observation(
            push="seen",
            concept="person",
            identity=row["person"],
            attribute="position",
            value={"x": row["x"], "y": row["y"]},
            time=row["time"],
            cause=Cause("reader", row["id"]),
        )


def _micros(time: Any) -> int:
    return round(time.timestamp() * SECOND)
