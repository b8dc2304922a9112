"""A building as plain data: rooms, doors, people, readers and cameras, and how wings are added to it.

This module owns what the words mean and what makes a plan walkable. It knows nothing of files, of time, or
of how anybody moves. Lengths are metres, angles degrees counted counter-clockwise from east.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

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
class Reader:
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
    readers: tuple[Reader, ...]
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
    sensors: tuple[Reader | Camera, ...] = (*plan.readers, *plan.cameras)
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
