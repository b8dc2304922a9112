"""A building as plain data: rooms, doors, people, readers and cameras, and how wings are added to it.

This module owns what the words mean and what makes a plan walkable. It knows nothing of files, of time, or
of how anybody moves. Lengths are metres, angles degrees counted counter-clockwise from east.
"""

from __future__ import annotations

import csv
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args
from xml.etree import ElementTree

Security = Literal["public", "internal", "restricted"]
Role = Literal["employee", "guest"]
SECURITY: tuple[Security, ...] = get_args(Security)
ROLES: tuple[Role, ...] = get_args(Role)

CLEARANCE = 0.6
"""Metres people keep from walls, doors in use excepted: more than any sensor errs, so nobody is seen through a wall."""

WINGS_IN_A_ROW = 32
GAP_BETWEEN_WINGS = 10.0


class PlanError(ValueError):
    """The plan cannot be walked; carries everything that is wrong with it."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    id: str
    security: Security
    passage: bool
    x1: float
    y1: float
    x2: float
    y2: float

    def holds(self, x: float, y: float, slack: float = 1e-6) -> bool:
        return self.x1 - slack <= x <= self.x2 + slack and self.y1 - slack <= y <= self.y2 + slack


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    id: str
    rooms: tuple[str, str]
    x: float
    y: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """``host`` is the employee whom a guest follows everywhere; a guest without one keeps to public rooms.

    ``home`` is the room where the day begins, of no meaning for those who follow a host.
    """

    id: str
    name: str
    role: Role
    tag: str
    face: str
    home: str
    host: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagReader:
    """Reports tags in its room as metres ahead of it and to its left; ``heading`` is where ahead is."""

    id: str
    room: str
    x: float
    y: float
    heading: float
    range: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Camera:
    """Reports faces in its room by distance and angle from ``heading``, at most ``angle / 2`` to either side."""

    id: str
    room: str
    x: float
    y: float
    heading: float
    angle: float
    range: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Building:
    """A floor plan with its people and sensors, checked when made: a building that exists can be walked."""

    rooms: tuple[Room, ...]
    doors: tuple[Door, ...]
    people: tuple[Person, ...]
    readers: tuple[TagReader, ...]
    cameras: tuple[Camera, ...]

    def __post_init__(self) -> None:
        if problems := tuple(_problems(self)):
            raise PlanError(problems)

    def with_people(self, number: int) -> Building:
        """The same building for any number of people: the first ones, or as many further wings as it takes."""
        if number < 1:
            raise ValueError(f"a building needs at least one person, not {number}")
        wings = -(-number // len(self.people))
        width = max(room.x2 for room in self.rooms) - min(room.x1 for room in self.rooms)
        depth = max(room.y2 for room in self.rooms) - min(room.y1 for room in self.rooms)
        parts = [
            _wing(
                self,
                number=k + 1,
                dx=(k % WINGS_IN_A_ROW) * (width + GAP_BETWEEN_WINGS),
                dy=(k // WINGS_IN_A_ROW) * (depth + GAP_BETWEEN_WINGS),
            )
            for k in range(wings)
        ]
        return Building(
            rooms=tuple(room for part in parts for room in part.rooms),
            doors=tuple(door for part in parts for door in part.doors),
            people=tuple(person for part in parts for person in part.people)[:number],
            readers=tuple(reader for part in parts for reader in part.readers),
            cameras=tuple(camera for part in parts for camera in part.cameras),
        )


def _wing(plan: Building, *, number: int, dx: float, dy: float) -> Building:
    """A copy of the plan elsewhere. The first wing keeps its names; wing 3 of ``reader-7`` is ``reader-7/w3``."""
    if number == 1:
        return plan

    def name(plain: str) -> str:
        return f"{plain}/w{number}"

    return Building(
        rooms=tuple(
            replace(room, id=name(room.id), x1=room.x1 + dx, y1=room.y1 + dy, x2=room.x2 + dx, y2=room.y2 + dy)
            for room in plan.rooms
        ),
        doors=tuple(
            replace(
                door,
                id=name(door.id),
                rooms=(name(door.rooms[0]), name(door.rooms[1])),
                x=door.x + dx,
                y=door.y + dy,
            )
            for door in plan.doors
        ),
        people=tuple(
            replace(
                person,
                id=name(person.id),
                tag=name(person.tag),
                face=name(person.face),
                home=name(person.home),
                host=person.host and name(person.host),
            )
            for person in plan.people
        ),
        readers=tuple(
            replace(reader, id=name(reader.id), room=name(reader.room), x=reader.x + dx, y=reader.y + dy)
            for reader in plan.readers
        ),
        cameras=tuple(
            replace(camera, id=name(camera.id), room=name(camera.room), x=camera.x + dx, y=camera.y + dy)
            for camera in plan.cameras
        ),
    )


def _problems(plan: Building) -> Iterator[str]:
    for things in (plan.rooms, plan.doors, plan.people, plan.readers, plan.cameras):
        for name, times in Counter(thing.id for thing in things).items():
            if times > 1:
                yield f"`{name}` stands {times} times where ids must differ"
    rooms = {room.id: room for room in plan.rooms}
    for room in plan.rooms:
        if min(room.x2 - room.x1, room.y2 - room.y1) <= 2 * CLEARANCE:
            yield f"room `{room.id}` leaves no place to stand: its box must be wider than {2 * CLEARANCE} m both ways"
    yield from _door_problems(plan, rooms)
    yield from _people_problems(plan, rooms)
    sensors: tuple[TagReader | Camera, ...] = (*plan.readers, *plan.cameras)
    for sensor in sensors:
        where = rooms.get(sensor.room)
        if where is None:
            yield f"`{sensor.id}` hangs in `{sensor.room}`, which is no room"
        elif not where.holds(sensor.x, sensor.y):
            yield f"`{sensor.id}` hangs at ({sensor.x:g}, {sensor.y:g}), outside its room `{sensor.room}`"
        if not (sensor.range > 0 and math.isfinite(sensor.heading)):
            yield f"`{sensor.id}` needs a range above 0 and a finite heading"


def _door_problems(plan: Building, rooms: dict[str, Room]) -> Iterator[str]:
    for door in plan.doors:
        unknown = [name for name in door.rooms if name not in rooms]
        if unknown or door.rooms[0] == door.rooms[1]:
            yield f"door `{door.id}` must join two different rooms, found `{' '.join(door.rooms)}`"
        elif wall_of(door, rooms[door.rooms[0]], rooms[door.rooms[1]]) is None:
            yield (
                f"door `{door.id}` at ({door.x:g}, {door.y:g}) is not in the wall between `{door.rooms[0]}` and "
                f"`{door.rooms[1]}`, at least {CLEARANCE} m from its ends"
            )
    joined = {name for door in plan.doors for name in door.rooms}
    for name in rooms.keys() - joined:
        yield f"room `{name}` has no door"


def wall_of(door: Door, first: Room, second: Room) -> tuple[float, float] | None:
    """The unit vector from ``first`` to ``second`` through the door; None if it stands in no wall they share."""
    low, high = max(first.y1, second.y1) + CLEARANCE, min(first.y2, second.y2) - CLEARANCE
    if low <= door.y <= high:
        if door.x == first.x2 == second.x1:
            return (1.0, 0.0)
        if door.x == first.x1 == second.x2:
            return (-1.0, 0.0)
    low, high = max(first.x1, second.x1) + CLEARANCE, min(first.x2, second.x2) - CLEARANCE
    if low <= door.x <= high:
        if door.y == first.y2 == second.y1:
            return (0.0, 1.0)
        if door.y == first.y1 == second.y2:
            return (0.0, -1.0)
    return None


def _people_problems(plan: Building, rooms: dict[str, Room]) -> Iterator[str]:
    if not plan.people:
        yield "nobody is in the building"
    for what in ("tag", "face"):
        for name, times in Counter(getattr(person, what) for person in plan.people).items():
            if times > 1:
                yield f"{what} `{name}` is worn by {times} people"
    # A host comes before the guest, so that the first n people of a plan are a plan.
    hosts: set[str] = set()
    for person in plan.people:
        if person.role == "employee":
            hosts.add(person.id)
        if person.host is not None and (person.role != "guest" or person.host not in hosts):
            yield f"`{person.id}` has the host `{person.host}`; a host is an employee listed before the guest"
        # Planted situations rely on restricted rooms being empty at first.
        welcome = ("public",) if person.role == "guest" and person.host is None else ("public", "internal")
        home = rooms.get(person.home)
        if home is None or home.security not in welcome:
            yield f"`{person.id}` begins the day in `{person.home}`, which is no {' or '.join(welcome)} room"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A building from the files of a project folder, and back into files.
#
# Reads ``data/floor.xml``, ``people.csv``, ``readers.csv`` and ``cameras.csv``; finds the example project wherever
# Situ is installed. What the values mean is :mod:`simulator.floor_plan`'s business.

_Thing = TypeVar("_Thing")

_PEOPLE = ("id", "name", "role", "tag", "face", "host", "home")
_READERS = ("id", "room", "x", "y", "heading", "range")
_CAMERAS = ("id", "room", "x", "y", "heading", "angle", "range")


def example_building() -> Building:
    return load_building(Path(__file__).parents[2])


def load_building(project: Path | str) -> Building:
    """The building described in the ``data`` folder of a project; every problem of every file at once."""
    data = Path(project) / "data"
    problems: list[str] = []
    rooms, doors = _read_floor(data / "floor.xml", problems)
    people = _read_table(data / "people.csv", _PEOPLE, _person, problems)
    readers = _read_table(data / "readers.csv", _READERS, _reader, problems)
    cameras = _read_table(data / "cameras.csv", _CAMERAS, _camera, problems)
    if problems:
        raise PlanError(problems)
    return Building(rooms=rooms, doors=doors, people=people, readers=readers, cameras=cameras)


def write_building(building: Building, project: Path | str) -> None:
    """Write the files :func:`load_building` reads, so that a larger building can be looked up like the example."""
    data = Path(project) / "data"
    data.mkdir(parents=True, exist_ok=True)
    floor = ElementTree.Element("floor", id="ground")
    for room in building.rooms:
        about = {"id": room.id, "security": room.security} | ({"passage": "true"} if room.passage else {})
        box = {"x1": room.x1, "y1": room.y1, "x2": room.x2, "y2": room.y2}
        ElementTree.SubElement(
            ElementTree.SubElement(floor, "room", about), "box", {key: _plain(value) for key, value in box.items()}
        )
    for door in building.doors:
        place = {"x": _plain(door.x), "y": _plain(door.y)}
        ElementTree.SubElement(floor, "door", {"id": door.id, "between": " ".join(door.rooms)} | place)
    ElementTree.indent(floor)
    ElementTree.ElementTree(floor).write(data / "floor.xml", encoding="utf-8", xml_declaration=True)
    _write_table(data / "people.csv", _PEOPLE, building.people)
    _write_table(data / "readers.csv", _READERS, building.readers)
    _write_table(data / "cameras.csv", _CAMERAS, building.cameras)


def _read_floor(file: Path, problems: list[str]) -> tuple[tuple[Room, ...], tuple[Door, ...]]:
    try:
        floor = ElementTree.fromstring(file.read_bytes())
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
        return (), ()
    except ElementTree.ParseError as error:
        problems.append(f"{file}: is not XML: {error}")
        return (), ()

    def every(tag: str, make: Callable[[ElementTree.Element], _Thing]) -> tuple[_Thing, ...]:
        made = []
        for element in floor.iter(tag):
            try:
                made.append(make(element))
            except (KeyError, ValueError) as error:
                problems.append(f"{file}: {tag} `{element.get('id', '?')}`: {_reason(error)}")
        return tuple(made)

    return every("room", _room), every("door", _door)


def _read_table(
    file: Path, columns: Sequence[str], make: Callable[[Mapping[str, str]], _Thing], problems: list[str]
) -> tuple[_Thing, ...]:
    try:
        with file.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
        return ()
    made = []
    for line, row in enumerate(rows, start=2):
        if missing := [column for column in columns if row.get(column) is None]:
            problems.append(
                f"{file}:{line}: no value for `{'`, `'.join(missing)}`; the columns are {', '.join(columns)}"
            )
            continue
        try:
            made.append(make(row))
        except ValueError as error:
            problems.append(f"{file}:{line}: {_reason(error)}")
    return tuple(made)


def _write_table(file: Path, columns: Sequence[str], things: Sequence[Any]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        for thing in things:
            table.writerow([_plain(getattr(thing, column)) for column in columns])


def _room(element: ElementTree.Element) -> Room:
    box = element.find("box")
    if box is None:
        raise ValueError("has no <box>")
    return Room(
        id=element.attrib["id"],
        security=_one_of(SECURITY, element.attrib["security"]),
        passage=element.get("passage") == "true",
        x1=_number(box.attrib["x1"]),
        y1=_number(box.attrib["y1"]),
        x2=_number(box.attrib["x2"]),
        y2=_number(box.attrib["y2"]),
    )


def _door(element: ElementTree.Element) -> Door:
    first, second = _two(element.attrib["between"])
    return Door(
        id=element.attrib["id"],
        rooms=(first, second),
        x=_number(element.attrib["x"]),
        y=_number(element.attrib["y"]),
    )


def _person(row: Mapping[str, str]) -> Person:
    role, host = _one_of(ROLES, row["role"]), row["host"] or None
    about = {key: row[key] for key in ("id", "name", "tag", "face", "home")}
    return Person(role=role, host=host, **about)


def _reader(row: Mapping[str, str]) -> TagReader:
    numbers = {key: _number(row[key]) for key in ("x", "y", "heading", "range")}
    return TagReader(id=row["id"], room=row["room"], **numbers)


def _camera(row: Mapping[str, str]) -> Camera:
    numbers = {key: _number(row[key]) for key in ("x", "y", "heading", "angle", "range")}
    return Camera(id=row["id"], room=row["room"], **numbers)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is no finite number")
    return value


def _one_of(allowed: Sequence[_Thing], text: str) -> _Thing:
    for value in allowed:
        if value == text:
            return value
    raise ValueError(f"`{text}` is none of {', '.join(map(str, allowed))}")


def _two(text: str) -> tuple[str, str]:
    names = text.split()
    if len(names) != 2:
        raise ValueError(f"`{text}` are not the ids of two rooms with a space between")
    return names[0], names[1]


def _reason(error: KeyError | ValueError) -> str:
    return f"has no `{error.args[0]}`" if isinstance(error, KeyError) else str(error)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return "" if value is None else str(value)
