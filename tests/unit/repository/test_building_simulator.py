"""The simulated building: the same for the same seed, physically possible, and truthful about what it planted."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from simulator import (
    Building,
    Flaw,
    PlanError,
    Simulation,
    example_building,
    load_building,
    simulate,
    write_building,
)
from simulator.command import main
from simulator.deterministic_math import bearing, heading_vector
from simulator.floor_plan import CLEARANCE, Room
from simulator.movement import FASTEST, NOBODY, SECOND, Walk, lay_out
from simulator.sensors import CAMERA_ERROR_ANGLE, CAMERA_ERROR_DISTANCE, METRES_PER_FOOT, READER_ERROR
from simulator.simulation import START

from situ.project.create import example_folder

MINUTE = timedelta(minutes=1)
ALL_TYPES = ("TagSeen", "FaceSeen", "DoorUsed", "RoomClimate", "Sighting")
MESSY: dict[str, Any] = {"disorder": timedelta(seconds=2), "duplicates": 0.05, "malformed": 0.05}


@pytest.fixture(scope="module")
def building() -> Building:
    return example_building()


def text_of(simulation: Simulation, span: timedelta | None = None) -> bytes:
    return b"".join(simulation.json_lines(span=span))


def events_of(simulation: Simulation) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text_of(simulation).splitlines()]


def instant(event: dict[str, Any]) -> datetime:
    return datetime.fromisoformat(event["time"])


# ── the same for the same seed ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "digest"),
    [
        (
            {"persons": 40, "seed": 7, "types": ALL_TYPES, "situations": 1},
            "716b3a71a34cc6c2978460568dab2bff11172fb816d8bf425dede0637e43721c",
        ),
        (
            {"persons": 100, "seed": 2**64 + 11, "interval": timedelta(milliseconds=333), **MESSY},
            "cdb009797a1ffd3b58b6b49b69ad8a45c1dbae08e3ee50cfae45a8814b446571",
        ),
    ],
)
def test_the_bytes_for_a_seed_never_change(building: Building, options: dict[str, Any], digest: str) -> None:
    """A change here changes every recorded benchmark and golden file: make it on purpose."""
    text = text_of(simulate(building, duration=MINUTE, **options))
    assert hashlib.sha256(text).hexdigest() == digest


def test_another_seed_gives_another_day(building: Building) -> None:
    assert text_of(simulate(building, seed=1, duration=MINUTE)) != text_of(simulate(building, seed=2, duration=MINUTE))


@pytest.mark.parametrize("options", [{}, MESSY])
def test_chunks_do_not_change_what_is_in_them(building: Building, options: dict[str, Any]) -> None:
    simulation = simulate(building, duration=MINUTE / 3, types=ALL_TYPES, **options)
    assert len(list(simulation.json_lines(span=timedelta(seconds=1)))) >= 20
    assert text_of(simulation, span=timedelta(seconds=1)) == text_of(simulation)


def test_a_walk_does_not_depend_on_who_else_walks_or_how_often_one_looks(building: Building) -> None:
    people = lay_out(building.with_people(100)), np.arange(100)
    together = Walk(people[0], 3, people[1]).advance(300 * SECOND)
    alone = Walk(lay_out(building), 3, np.array([16]))
    bit_by_bit = [alone.advance(until * SECOND) for until in range(1, 301)]
    seen = sorted(
        {
            (int(start), float(x), float(y))
            for legs in bit_by_bit
            for start, x, y in zip(legs.start, legs.x, legs.y, strict=True)
        }
    )
    rows = together.walker == 16
    assert seen == list(
        zip(together.start[rows].tolist(), together.x[rows].tolist(), together.y[rows].tolist(), strict=True)
    )


def test_angles_agree_with_the_mathematical_library() -> None:
    for degrees in (-720.0, -90.0, -0.1, 0.0, 37.0, 45.0, 90.0, 180.0, 270.0, 323.0, 359.99):
        assert heading_vector(degrees) == pytest.approx(
            (math.cos(math.radians(degrees)), math.sin(math.radians(degrees))), abs=1e-14
        )
    assert heading_vector(270.0) == (0.0, -1.0)
    around = np.arange(-1800, 1801) / 10
    x, y = 3 * np.cos(np.radians(around)), 3 * np.sin(np.radians(around))
    apart = np.abs(bearing(x, y) - np.degrees(np.arctan2(y, x)))
    assert np.minimum(apart, 360 - apart).max() < 1e-6
    assert bearing(np.zeros(1), np.zeros(1)).tolist() == [0.0]


# ── physically possible ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_nobody_walks_through_walls_or_runs(building: Building, seed: int) -> None:
    layout = lay_out(building)
    legs = Walk(layout, seed, np.arange(len(building.people))).advance(1800 * SECOND)
    lasting = legs.end - legs.start
    x, y = legs.x + legs.velocity_x * lasting, legs.y + legs.velocity_y * lasting
    assert lasting.min() > 0
    assert np.hypot(legs.velocity_x, legs.velocity_y).max() * SECOND <= FASTEST + 1e-9
    box = np.array([(room.x1, room.y1, room.x2, room.y2) for room in building.rooms])[legs.room]
    for at_x, at_y in ((legs.x, legs.y), (x, y)):
        assert (box[:, 0] - 1e-6 <= at_x).all()
        assert (at_x <= box[:, 2] + 1e-6).all()
        assert (box[:, 1] - 1e-6 <= at_y).all()
        assert (at_y <= box[:, 3] + 1e-6).all()
    follows = legs.walker[1:] == legs.walker[:-1]
    assert (legs.start[1:] == legs.end[:-1])[follows].all()
    assert np.hypot(legs.x[1:] - x[:-1], legs.y[1:] - y[:-1])[follows].max() < 1e-6
    # Who changes rooms stands in the door between them.
    changes = np.flatnonzero(follows & (legs.room[1:] != legs.room[:-1])) + 1
    assert len(changes) > 1000
    for leg in changes.tolist():
        door = building.doors[legs.door[leg]]
        assert {building.rooms[legs.room[leg - 1]].id, building.rooms[legs.room[leg]].id} == set(door.rooms)
        assert (legs.x[leg], legs.y[leg]) == (door.x, door.y)
    assert set(np.flatnonzero(legs.door != NOBODY).tolist()) == set(changes.tolist())
    # Everybody gets around, and everywhere that somebody may go somebody goes.
    assert set(legs.room.tolist()) == set(range(len(building.rooms)))
    assert min(Counter(legs.walker[changes].tolist()).values()) > 10


def test_people_keep_away_from_walls_except_at_doors(building: Building) -> None:
    """Otherwise a sensor's error would show them in the next room."""
    walls = {room.id: room for room in building.rooms}
    doors = [(door.x, door.y, door.rooms) for door in building.doors]
    for event in events_of(simulate(building, types=["Sighting"], duration=5 * MINUTE)):
        x, y = event["data"]["at"]["x"], event["data"]["at"]["y"]
        room = next(room for room in walls.values() if room.holds(x, y))
        gap = min(x - room.x1, room.x2 - x, y - room.y1, room.y2 - y)
        if gap < CLEARANCE - 0.01:
            assert min(math.hypot(x - at_x, y - at_y) for at_x, at_y, names in doors if room.id in names) <= CLEARANCE


def test_guests_keep_to_their_hosts_or_to_public_rooms(building: Building) -> None:
    path: dict[str, dict[datetime, tuple[float, float]]] = defaultdict(dict)
    for event in events_of(simulate(building, types=["Sighting"], duration=8 * MINUTE, interval=timedelta(seconds=1))):
        path[event["data"]["who"]][instant(event)] = (event["data"]["at"]["x"], event["data"]["at"]["y"])
    security = {room.id: room.security for room in building.rooms}
    for person in building.people:
        if person.role == "guest" and person.host is None:
            seen = {security[room_at(building, x, y).id] for x, y in path[person.id].values()}
            assert seen == {"public"}
        elif person.host is not None:
            host = sorted(path[person.host].items())
            for time, (x, y) in path[person.id].items():
                near = [at for when, at in host if abs(when - time) <= timedelta(seconds=1.5)]
                assert min(math.hypot(x - a, y - b) for a, b in near) < 2.5


def room_at(building: Building, x: float, y: float) -> Room:
    return next(room for room in building.rooms if room.holds(x, y))


def positions(building: Building, events: list[dict[str, Any]]) -> Iterator[tuple[datetime, str, float, float, float]]:
    """What the readers' and cameras' events say in the building's terms: time, person, x, y, and the possible error."""
    tags = {person.tag: person.id for person in building.people}
    faces = {person.face: person.id for person in building.people}
    readers = {reader.id: reader for reader in building.readers}
    cameras = {camera.id: camera for camera in building.cameras}
    for event in events:
        data = event["data"]
        if event["type"] == "TagSeen":
            reader = readers[data["reader"]]
            cosine, sine = math.cos(math.radians(reader.heading)), math.sin(math.radians(reader.heading))
            ahead, left = data["cartesian"]["dx"] / 100, data["cartesian"]["dy"] / 100
            assert math.hypot(ahead, left) <= reader.range + 2 * READER_ERROR
            x, y = reader.x + ahead * cosine - left * sine, reader.y + ahead * sine + left * cosine
            yield instant(event), tags[data["tag"]], x, y, math.sqrt(2) * READER_ERROR
        elif event["type"] == "FaceSeen":
            camera = cameras[data["camera"]]
            distance, angle = METRES_PER_FOOT * data["polar"]["r"], data["polar"]["theta"]
            assert distance <= camera.range + CAMERA_ERROR_DISTANCE + 0.01
            assert abs(angle) <= camera.angle / 2 + CAMERA_ERROR_ANGLE + 0.01
            direction = math.radians(camera.heading + angle)
            x, y = camera.x + distance * math.cos(direction), camera.y + distance * math.sin(direction)
            aside = distance * math.radians(CAMERA_ERROR_ANGLE)
            yield instant(event), faces[data["face"]], x, y, CAMERA_ERROR_DISTANCE + aside


def test_sensors_see_people_where_they_are(building: Building) -> None:
    wings = building.with_people(90)
    events = events_of(simulate(wings, types=ALL_TYPES, duration=2 * MINUTE))
    at = {
        (instant(event), event["data"]["who"]): (event["data"]["at"]["x"], event["data"]["at"]["y"])
        for event in events
        if event["type"] == "Sighting"
    }
    seen = list(positions(wings, events))
    errors = [(math.hypot(x - at[time, who][0], y - at[time, who][1]), most) for time, who, x, y, most in seen]
    rounding = 0.02
    assert all(error <= most + rounding for error, most in errors)
    assert max(error for error, _ in errors) > 0.1, "sensors err"
    # Every tag is read, wherever people are; cameras hang in some rooms only.
    assert {(time, who) for time, who, *_ in seen} == at.keys()
    counted = Counter(event["type"] for event in events)
    assert counted["TagSeen"] >= counted["Sighting"] > counted["FaceSeen"] > 0


def test_people_warm_the_air_and_breathe(building: Building) -> None:
    quiet, busy = (
        events_of(simulate(building, persons=persons, types=["RoomClimate"], duration=20 * MINUTE))
        for persons in (1, 40)
    )
    for events in (quiet, busy):
        assert Counter(event["data"]["room"] for event in events) == {room.id: 40 for room in building.rooms}
        assert all(15 <= event["data"]["temperature"] <= 35 for event in events)
        assert all(0 <= event["data"]["humidity"] <= 100 for event in events)
        assert all(400 <= event["data"]["co2"] <= 3000 for event in events)
    for what in ("temperature", "co2"):
        assert sum(event["data"][what] for event in busy) > 1.02 * sum(event["data"][what] for event in quiet)


# ── what it planted is there, and nothing else ──────────────────────────────────────────────────────


def alone(building: Building, events: list[dict[str, Any]]) -> dict[tuple[str, str], list[datetime]]:
    """When guests are in a restricted room without an employee in it and within 5 m, at any time up to 5 s away."""
    roles = {person.id: person.role for person in building.people}
    restricted = [room for room in building.rooms if room.security == "restricted"]
    inside: dict[str, dict[str, list[tuple[datetime, str, float, float]]]] = defaultdict(lambda: defaultdict(list))
    for time, who, x, y, _ in positions(building, events):
        for room in restricted:
            if room.holds(x, y):
                inside[room.id][roles[who]].append((time, who, x, y))
    found: dict[tuple[str, str], list[datetime]] = defaultdict(list)
    for place, by_role in inside.items():
        for time, guest, x, y in by_role["guest"]:
            if not any(
                abs(when - time) <= timedelta(seconds=5) and math.hypot(x - a, y - b) <= 5
                for when, _, a, b in by_role["employee"]
            ):
                found[guest, place].append(time)
    return found


@pytest.mark.parametrize(("seed", "persons", "situations"), [(7, 40, 0), (7, 40, 4), (8, 60, 5), (9, 90, 6)])
def test_planted_situations_are_the_only_ones(building: Building, seed: int, persons: int, situations: int) -> None:
    simulation = simulate(
        building, seed=seed, persons=persons, duration=4 * MINUTE, situations=situations, types=["TagSeen"]
    )
    assert len(simulation.truth) == situations
    found = alone(simulation.building, events_of(simulation))
    assert found.keys() == {(planted.guest, planted.room) for planted in simulation.truth}
    slack = timedelta(milliseconds=300)
    for planted in simulation.truth:
        assert START <= planted.entered < planted.left <= START + 4 * MINUTE
        times = sorted(found[planted.guest, planted.room])
        here = [time for time in times if planted.entered - slack <= time <= planted.left + slack]
        assert here[0] - planted.entered < timedelta(seconds=1)
        assert planted.left - here[-1] < timedelta(seconds=1)
        assert max(after - before for before, after in itertools.pairwise(here)) < timedelta(seconds=1)
    for (guest, room), times in found.items():
        visits = [(p.entered - slack, p.left + slack) for p in simulation.truth if (p.guest, p.room) == (guest, room)]
        assert all(any(entered <= time <= left for entered, left in visits) for time in times)


def test_escorted_guests_do_enter_restricted_rooms(building: Building) -> None:
    """The situations a policy must not report: otherwise finding guests there would be enough."""
    escorted = {person.id for person in building.people if person.host is not None}
    restricted = [room for room in building.rooms if room.security == "restricted"]
    seen = {
        who
        for _, who, x, y, _ in positions(
            building, events_of(simulate(building, duration=10 * MINUTE, interval=timedelta(seconds=2)))
        )
        if any(room.holds(x, y) for room in restricted)
    }
    assert len(seen & escorted) >= 3


def test_the_same_guest_can_go_twice(building: Building) -> None:
    simulation = simulate(building, persons=7, duration=20 * MINUTE, situations=6)
    assert {planted.guest for planted in simulation.truth} == {"p07"}
    assert len({planted.entered for planted in simulation.truth}) == 6


# ── life made harder ────────────────────────────────────────────────────────────────────────────────


def test_disorder_delays_but_loses_nothing(building: Building) -> None:
    most = timedelta(seconds=2)
    straight = text_of(simulate(building, duration=2 * MINUTE)).splitlines()
    mixed = simulate(building, duration=2 * MINUTE, disorder=most)
    lines = text_of(mixed).splitlines()
    assert sorted(lines) == sorted(straight)
    times = [instant(json.loads(line)) for line in lines]
    latest = list(itertools.accumulate(times, max))
    lateness = [late - time for late, time in zip(latest, times, strict=True)]
    assert timedelta(seconds=1.8) < max(lateness) <= most
    arrivals = np.concatenate([arrival for arrival, _ in mixed.timed_lines()])
    delays = arrivals / SECOND - np.array([(time - START).total_seconds() for time in times])
    assert (np.diff(arrivals) >= 0).all()
    assert delays.min() >= -1e-6
    assert delays.max() <= 2.0 + 1e-6
    assert delays.mean() == pytest.approx(1.0, abs=0.03)


def test_duplicates_repeat_whole_events_later(building: Building) -> None:
    lines = text_of(simulate(building, duration=5 * MINUTE, duplicates=0.02)).splitlines()
    times = Counter(lines)
    assert set(times.values()) == {1, 2}
    assert sum(count - 1 for count in times.values()) / len(times) == pytest.approx(0.02, abs=0.003)
    assert sorted(times) == sorted(text_of(simulate(building, duration=5 * MINUTE)).splitlines())
    first = {line: place for place, line in reversed(list(enumerate(lines)))}
    assert any(place - first[line] > 10 for place, line in enumerate(lines)), "not just one after the other"


def test_malformed_events_are_broken_as_they_say(building: Building) -> None:
    options: dict[str, Any] = {"duration": 2 * MINUTE, "types": ALL_TYPES}
    straight = text_of(simulate(building, **options)).splitlines()
    broken = simulate(building, malformed=0.1, **options)
    lines = text_of(broken).splitlines()
    flaws = np.zeros(len(lines), dtype=np.int64)
    for batch in broken.batches():
        flaws[batch["place"].to_numpy()] = batch["flaw"].to_numpy()
    assert len(lines) == len(straight)
    assert np.count_nonzero(flaws) / len(lines) == pytest.approx(0.1, abs=0.01)
    counted = Counter(Flaw(flaw) for flaw in flaws.tolist() if flaw)
    assert set(counted) == set(Flaw) - {Flaw.NONE}
    assert min(counted.values()) > 0.8 * max(counted.values())
    for flaw, line, good in zip(flaws.tolist(), lines, straight, strict=True):
        if flaw == Flaw.NONE:
            assert line == good
        else:
            assert is_broken(Flaw(flaw), line, json.loads(good))


def is_broken(flaw: Flaw, line: bytes, good: dict[str, Any]) -> bool:
    if flaw is Flaw.CUT_OFF:
        with pytest.raises(json.JSONDecodeError):
            json.loads(line)
        return True
    event = json.loads(line)
    changed = {key for key in good if event.get(key) != good[key]}
    match flaw:
        case Flaw.NO_TYPE:
            return changed == {"type"} and "type" not in event
        case Flaw.UNKNOWN_TYPE:
            return changed == {"type"} and event["type"] not in ALL_TYPES
        case Flaw.BAD_TIME:
            with pytest.raises(ValueError, match="isoformat"):
                instant(event)
            return changed == {"time"}
        case Flaw.WRONG_KIND:
            wrong = [key for key in good["data"] if type(event["data"][key]) is not type(good["data"][key])]
            return changed == {"data"} and len(wrong) == 1
        case _:
            return changed == {"data"} and event["data"] == {}


# ── fits the project ────────────────────────────────────────────────────────────────────────────────


def declared() -> dict[str, dict[str, str]]:
    """Attributes of every type of the example project and its contexts, those of supertypes included."""
    own: dict[str, tuple[list[str], dict[str, str]]] = {}
    folders = (example_folder() / "types", example_folder() / "contexts")
    for file in (file for folder in folders for file in sorted(folder.glob("*.yaml"))):
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
        for head, attributes in (content.get("types", {}) | content["events"]).items():
            name, _, supers = head.rstrip(")").partition("(")
            own[name] = ([part.strip() for part in supers.split(",") if part], attributes)
    own["Point"] = ([], {"x": "double", "y": "double"})

    def everything(name: str) -> dict[str, str]:
        supers, attributes = own.get(name, ([], {}))
        inherited = {key: value for part in supers for key, value in everything(part).items()}
        return inherited | attributes

    return {name: everything(name) for name in own}


def fits(value: Any, written: str, types: dict[str, dict[str, str]]) -> bool:
    name = written.removeprefix("optional ").split()[0]
    if attributes := types.get(name):
        required = {key for key, type_ in attributes.items() if not type_.startswith("optional ")}
        return required <= value.keys() <= attributes.keys() and all(
            fits(part, attributes[key], types) for key, part in value.items()
        )
    return isinstance(value, float if name == "double" else str)


def test_events_are_cloud_events_of_declared_types_and_clients(building: Building) -> None:
    types = declared()
    clients = yaml.safe_load((example_folder() / "clients" / "sensors.yaml").read_text(encoding="utf-8"))["clients"]
    sent = {(name, ad["type"]) for name, client in clients.items() for ad in client["advertisements"].values()}
    sent -= {("badge-reader", "BadgeShown")}  # which a program of its own plays
    seen = set()
    for event in events_of(simulate(building, persons=80, duration=2 * MINUTE)):
        assert event.keys() == {"specversion", "id", "source", "type", "time", "data"}
        assert event["specversion"] == "1.0"
        assert len(event["time"]) == len("2026-11-02T08:00:00.000000Z")
        assert START <= instant(event) < START + 2 * MINUTE
        assert fits(event["data"], event["type"], types)
        seen.add((event["source"].partition("/")[0], event["type"]))
    assert seen == sent


def test_ids_are_unique_and_times_are_in_order(building: Building) -> None:
    events = events_of(simulate(building, duration=2 * MINUTE, types=ALL_TYPES))
    assert [event["id"] for event in events] == [f"{number:012d}" for number in range(len(events))]
    assert [event["time"] for event in events] == sorted(event["time"] for event in events)


@pytest.mark.parametrize("options", [{}, {"disorder": timedelta(seconds=1), "duplicates": 0.1}])
def test_columns_say_what_the_lines_say(building: Building, options: dict[str, Any]) -> None:
    simulation = simulate(building, duration=MINUTE / 3, types=ALL_TYPES, **options)
    rows = [row for batch in simulation.batches() for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["place"])
    lines = text_of(simulation).splitlines()
    assert [row["place"] for row in rows] == list(range(len(lines)))
    for row, line in zip(rows, lines, strict=True):
        event = json.loads(line)
        assert row["time"] == instant(event)
        assert {key: row[key] for key in ("id", "source", "type", "data")} == {
            key: event[key] for key in ("id", "source", "type", "data")
        }
        assert json.dumps(event, separators=(",", ":")).encode() == line


def test_a_start_elsewhere_moves_the_times_only(building: Building) -> None:
    options: dict[str, Any] = {"duration": MINUTE, "types": ["DoorUsed"]}
    zone = datetime.fromisoformat("1969-12-31T23:59:30+00:00")
    here, there = events_of(simulate(building, **options)), events_of(simulate(building, start=zone, **options))
    assert [instant(event) - zone for event in there] == [instant(event) - START for event in here]


@pytest.mark.parametrize(("persons", "rate"), [(40, 50), (40, 1000), (1000, 20_000), (7, 5000)])
def test_the_rate_is_about_what_was_asked(building: Building, persons: int, rate: float) -> None:
    seconds = 20_000 // rate + 20
    simulation = simulate(building, persons=persons, rate=rate, duration=timedelta(seconds=seconds), duplicates=0.05)
    events = sum(batch.num_rows for batch in simulation.batches())
    assert events / seconds == pytest.approx(rate, rel=0.2)


def test_without_duration_it_goes_on(building: Building) -> None:
    chunks = simulate(building, duration=None).json_lines(span=timedelta(seconds=30))
    later = [json.loads(chunk.splitlines()[-1]) for chunk in itertools.islice(chunks, 5)]
    assert instant(later[-1]) > START + timedelta(seconds=149)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"persons": 0}, "at least one person"),
        ({"start": datetime(2026, 1, 1)}, "time zone"),  # noqa: DTZ001 what is refused here
        ({"rate": 10, "interval": MINUTE}, "not both"),
        ({"rate": 0.1}, "doors and climate alone"),
        ({"rate": 1e9}, "walk more persons"),
        ({"interval": timedelta(0)}, "interval must be positive"),
        ({"duration": timedelta(0)}, "duration must be positive"),
        ({"disorder": -MINUTE}, "disorder must not be negative"),
        ({"duplicates": 1.5}, "duplicates is a fraction"),
        ({"malformed": -0.1}, "malformed is a fraction"),
        ({"types": ["Alarm"]}, "no sensor sends Alarm"),
        ({"types": []}, "no type of event"),
        ({"situations": -1}, "situations"),
        ({"situations": 1, "duration": None}, "spread over a duration"),
        ({"situations": 100, "duration": MINUTE}, r"only \d+ of 100 situations"),
        ({"situations": 1, "persons": 3}, "guest without host"),
    ],
)
def test_impossible_wishes_are_refused(building: Building, options: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        simulate(building, **options)


# ── plans ───────────────────────────────────────────────────────────────────────────────────────────


def test_wings_are_copies_with_names_of_their_own(building: Building) -> None:
    wings = building.with_people(3 * 40 + 1)
    assert len(wings.people) == 121
    assert len(wings.rooms) == 4 * len(building.rooms)
    assert wings.rooms[: len(building.rooms)] == building.rooms
    assert wings.people[-1].id == "p01/w4"
    third = {room.id: room for room in wings.rooms}["lab/w3"]
    lab = {room.id: room for room in building.rooms}["lab"]
    assert (third.x1 - lab.x1, third.y1 - lab.y1) == (80.0, 0.0)
    assert building.with_people(40) == building


def test_a_plan_survives_being_written(building: Building, tmp_path: Path) -> None:
    for plan in (building, building.with_people(77)):
        write_building(plan, tmp_path)
        assert load_building(tmp_path) == plan


def test_all_that_is_wrong_with_a_plan_is_said_at_once(building: Building, tmp_path: Path) -> None:
    write_building(building, tmp_path)
    data = tmp_path / "data"
    replace_in(data / "people.csv", "p02,Tomás Rivera,employee", "p02,Tomás Rivera,boss")
    replace_in(data / "readers.csv", "reader-1,lobby,0,3", "reader-1,lobby,zero,3")
    replace_in(data / "cameras.csv", ",90,16\ncamera-2", ",90\ncamera-2")
    replace_in(data / "floor.xml", 'between="lobby corridor"', 'between="lobby"')
    (data / "floor.xml").write_text((data / "floor.xml").read_text().replace('x1="8"', "", 1))
    with pytest.raises(PlanError) as caught:
        load_building(tmp_path)
    said = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 5
    for part in (
        "people.csv:3: `boss`",
        "readers.csv:2: ",
        "`range`",
        "door `D1`: `lobby`",
        "room `meeting`: has no `x1`",
    ):
        assert part in said


def test_a_plan_that_cannot_be_walked_is_refused(building: Building, tmp_path: Path) -> None:
    write_building(building, tmp_path)
    data = tmp_path / "data"
    replace_in(data / "people.csv", "p01,lobby", "p40,lobby")
    replace_in(data / "people.csv", "T-468B71", "T-BF8B9D")
    replace_in(data / "people.csv", ",,office-3", ",,lab")
    replace_in(data / "readers.csv", "reader-2,cafe", "reader-2,lab")
    replace_in(data / "readers.csv", "reader-3,corridor", "reader-3,roof")
    replace_in(data / "cameras.csv", "100,11", "100,-11")
    replace_in(data / "floor.xml", 'between="corridor server" x="18"', 'between="corridor server" x="19.5"')
    replace_in(data / "floor.xml", 'id="D2"', 'id="D1"')
    with pytest.raises(PlanError) as caught:
        load_building(tmp_path)
    said = "\n".join(caught.value.problems)
    assert len(caught.value.problems) == 8
    for part in (
        "`p40`",
        "tag `T-BF8B9D`",
        "begins the day in `lab`",
        "`reader-2`",
        "`roof`",
        "range above 0",
        "`D8`",
        "`D1`",
    ):
        assert part in said


def replace_in(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_files_that_are_missing_or_no_xml_are_said(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "floor.xml").write_text("<floor")
    with pytest.raises(PlanError) as caught:
        load_building(tmp_path)
    assert len(caught.value.problems) == 4
    assert "is not XML" in caught.value.problems[0]
    assert all("cannot be read" in problem for problem in caught.value.problems[1:])


# ── in a terminal ───────────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_what_the_library_gives(
    building: Building, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    truth = tmp_path / "truth.jsonl"
    code = main(
        [
            "--persons",
            "50",
            "--for",
            "1.5 min",
            "--seed",
            "3",
            "--situations",
            "2",
            "--truth",
            str(truth),
            "--write-plan",
            str(tmp_path),
        ]
    )
    simulation = simulate(building, persons=50, duration=timedelta(seconds=90), seed=3, situations=2)
    out, err = capfdbinary.readouterr()
    assert (code, err) == (0, b"")
    assert out == text_of(simulation)
    rows = [json.loads(line) for line in truth.read_text().splitlines()]
    assert [(row["guest"], row["room"]) for row in rows] == [(p.guest, p.room) for p in simulation.truth]
    assert [datetime.fromisoformat(row["entered"]) for row in rows] == [p.entered for p in simulation.truth]
    assert load_building(tmp_path) == simulation.building


def test_the_command_keeps_pace(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    begin = datetime.now(UTC)
    assert main(["--persons", "5", "--for", "700ms", "--every", "100ms", "--start", "now", "--paced"]) == 0
    lines = capfdbinary.readouterr().out.splitlines()
    assert datetime.now(UTC) - begin > timedelta(milliseconds=600)
    assert instant(json.loads(lines[-1])) - begin > timedelta(milliseconds=600)


@pytest.mark.parametrize(
    "wrong", [["--for", "60"], ["--start", "yesterday"], ["--persons", "0"], ["--plan", "/nowhere"]]
)
def test_the_command_explains_wrong_usage(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(wrong)
    assert caught.value.code == 2
    assert "error: " in capsys.readouterr().err
