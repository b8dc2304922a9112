"""A building as numpy tables, so that thousands of people take a step in a handful of array operations.

Rooms, doors, people and sensors become indices in the order of the plan; ragged lists (the doors of a room, its
sensors) become tables padded with -1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from situ.testing.building.angles import heading_vector
from situ.testing.building.chance import Integers, Reals
from situ.testing.building.plan import CLEARANCE, Building, Camera, Reader, wall_of

Flags: TypeAlias = NDArray[np.bool_]

NOBODY = -1
"""Pads tables, and stands for no door, no host, no sensor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensors:
    """Where sensors of one kind hang and what they cover. ``half_angle`` is 180 where they look all around."""

    x: Reals
    y: Reals
    heading: Reals
    cosine: Reals
    sine: Reals
    range: Reals
    half_angle: Reals
    in_room: Integers


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    building: Building
    box: Reals
    """By room: x1, y1, x2, y2, drawn in by the distance people keep from walls."""
    passage: Flags
    public: Flags
    restricted: Flags
    doors_of: Integers
    """By room: its doors."""
    door_rooms: Integers
    """By door: its two rooms."""
    door_at: Reals
    """By door: x, y."""
    door_front: Reals
    """By door and side: the x, y from where people go straight through."""
    employee: Flags
    host: Integers
    """By person: whom it follows."""
    readers: Sensors
    cameras: Sensors


def lay_out(building: Building) -> Layout:
    room_index = {room.id: index for index, room in enumerate(building.rooms)}
    person_index = {person.id: index for index, person in enumerate(building.people)}
    doors_of: list[list[int]] = [[] for _ in building.rooms]
    fronts = np.empty((len(building.doors), 2, 2))
    for index, door in enumerate(building.doors):
        sides = [room_index[name] for name in door.rooms]
        for side in sides:
            doors_of[side].append(index)
        wall = wall_of(door, building.rooms[sides[0]], building.rooms[sides[1]])
        assert wall is not None, "a building is checked when it is made"
        for side, way in ((0, -CLEARANCE), (1, CLEARANCE)):
            fronts[index, side] = (door.x + way * wall[0], door.y + way * wall[1])
    inner = [(r.x1 + CLEARANCE, r.y1 + CLEARANCE, r.x2 - CLEARANCE, r.y2 - CLEARANCE) for r in building.rooms]
    return Layout(
        building=building,
        box=np.array(inner),
        passage=_flags(room.passage for room in building.rooms),
        public=_flags(room.security == "public" for room in building.rooms),
        restricted=_flags(room.security == "restricted" for room in building.rooms),
        doors_of=_padded(doors_of),
        door_rooms=np.array([[room_index[name] for name in door.rooms] for door in building.doors], dtype=np.int64),
        door_at=np.array([(door.x, door.y) for door in building.doors]),
        door_front=fronts,
        employee=_flags(person.role == "employee" for person in building.people),
        host=np.array([person_index[p.host] if p.host else NOBODY for p in building.people], dtype=np.int64),
        readers=_sensors(building.readers, room_index),
        cameras=_sensors(building.cameras, room_index),
    )


def way_to(layout: Layout, room: int) -> dict[int, int]:
    """The door to take, from each room from where ``room`` can be reached through public rooms alone."""
    doors = {room: NOBODY}
    waiting = deque([room])
    while waiting:
        here = waiting.popleft()
        for door in layout.doors_of[here]:
            if door == NOBODY:
                continue
            first, second = layout.door_rooms[door].tolist()
            there = second if first == here else first
            if there not in doors and layout.public[there]:
                doors[there] = int(door)
                waiting.append(there)
    del doors[room]
    return doors


def _sensors(sensors: Sequence[Reader | Camera], room_index: dict[str, int]) -> Sensors:
    in_room: list[list[int]] = [[] for _ in room_index]
    for index, sensor in enumerate(sensors):
        in_room[room_index[sensor.room]].append(index)
    vectors = [heading_vector(sensor.heading) for sensor in sensors]
    return Sensors(
        x=np.array([sensor.x for sensor in sensors]),
        y=np.array([sensor.y for sensor in sensors]),
        heading=np.array([sensor.heading % 360.0 for sensor in sensors]),
        cosine=np.array([cosine for cosine, _ in vectors]),
        sine=np.array([sine for _, sine in vectors]),
        range=np.array([sensor.range for sensor in sensors]),
        half_angle=np.array([s.angle / 2 if isinstance(s, Camera) else 180.0 for s in sensors]),
        in_room=_padded(in_room),
    )


def _padded(lists: Sequence[Sequence[int]]) -> Integers:
    table = np.full((len(lists), max(map(len, lists), default=0)), NOBODY, dtype=np.int64)
    for row, items in enumerate(lists):
        table[row, : len(items)] = items
    return table


def _flags(values: Iterable[bool]) -> Flags:
    return np.fromiter(values, dtype=np.bool_)
