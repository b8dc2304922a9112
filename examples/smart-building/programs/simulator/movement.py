"""A building as numpy tables, so that thousands of people take a step in a handful of array operations.

Rooms, doors, people and sensors become indices in the order of the plan; ragged lists (the doors of a room, its
sensors) become tables padded with -1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from math import sqrt
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from simulator.deterministic_math import Bits, Integers, Reals, below, draw, heading_vector, stream, unit
from simulator.floor_plan import CLEARANCE, Building, Camera, TagReader, wall_of

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


def _sensors(sensors: Sequence[TagReader | Camera], room_index: dict[str, int]) -> Sensors:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How people move: a seeded random walk from room to room, in straight legs at an even pace.
#
# A step takes one person through one door: to the spot in front of it, through it, on to some spot in the next room,
# where the person pauses unless the room is a passage. Rooms are boxes, so a straight leg inside a room meets no wall.
# A guest with a host walks the host's steps, a moment later.
#
# Time is in whole microseconds from the beginning of the simulation. A person's walk depends on the seed, the
# building, its errands and closed rooms alone: neither on who else is walked nor on how far at a time.

SECOND = 1_000_000
SLOWEST, FASTEST = 1.0, 1.4
SHORTEST_PAUSE, LONGEST_PAUSE = 5 * SECOND, 45 * SECOND
LAG = 800_000
"""How far behind the host a guest walks: about a metre."""
BEFORE_THE_BEGINNING = -10 * SECOND
_DRAWS_PER_STEP = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Someone leaves for a room at or soon after a time, stays there, and then strolls on."""

    person: int
    room: int
    depart: int
    stay: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """Nobody who strolls sets out for this room in this time."""

    room: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Legs:
    """Straight movements, one a row, by walker and then time: at t in [start, end) the walker is at
    ``(x, y) + velocity * (t - start)`` in ``room``. ``door`` is the door passed at ``start``, if one is."""

    walker: Integers
    start: Integers
    end: Integers
    x: Reals
    y: Reals
    velocity_x: Reals
    velocity_y: Reals
    room: Integers
    door: Integers

    def only(self, rows: Flags | Integers) -> Legs:
        return Legs(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})

    @staticmethod
    def joined(parts: Iterable[Legs]) -> Legs:
        several = list(parts)
        return Legs(**{f.name: np.concatenate([getattr(part, f.name) for part in several]) for f in fields(Legs)})


class Walk:
    """Where some people of a building are, further and further on in time; ``people[i]`` is walker i."""

    def __init__(
        self,
        layout: Layout,
        seed: int,
        people: Integers,
        *,
        errands: Iterable[Errand] = (),
        closures: Iterable[Closure] = (),
    ) -> None:
        self._layout = layout
        leader = np.where(layout.host[people] == NOBODY, people, layout.host[people])
        self._lag = np.where(layout.host[people] == NOBODY, 0, LAG)
        self._anywhere = layout.employee[leader]
        self._starts: Bits = stream(seed, "walk", size=len(layout.building.people))[leader]
        self._errands = _Errands(layout, people, errands)
        self._closed = _closing_times(len(layout.building.rooms), closures)

        rooms = {room.id: index for index, room in enumerate(layout.building.rooms)}
        homes = np.array([rooms[person.home] for person in layout.building.people], dtype=np.int64)
        self._room = homes[leader]
        self._door = layout.doors_of[self._room, 0]
        self._step = np.zeros(len(people), dtype=np.int64)
        bits = [draw(self._starts, self._step + k) for k in range(_DRAWS_PER_STEP)]
        self._x, self._y = _spot(layout, self._room, bits[1], bits[2])
        self._now = np.full(len(people), BEFORE_THE_BEGINNING, dtype=np.int64)
        wait = self._errands.hurry(np.arange(len(people)), self._now, _pause(bits[3]))
        self._kept = Legs(
            walker=np.arange(len(people), dtype=np.int64),
            start=self._now + self._lag,
            end=self._now + wait + self._lag,
            x=self._x.copy(),
            y=self._y.copy(),
            velocity_x=np.zeros(len(people)),
            velocity_y=np.zeros(len(people)),
            room=self._room.copy(),
            door=np.full(len(people), NOBODY, dtype=np.int64),
        )
        self._now = self._now + wait

    def advance(self, until: int) -> Legs:
        """The legs of everybody from where the last call ended up to ``until``, and on to their own ends."""
        made = [self._kept]
        while len(walkers := np.flatnonzero(self._now + self._lag < until)):
            made.append(self._take_step(walkers))
        legs = Legs.joined(made)
        legs = legs.only(np.argsort(legs.walker, kind="stable"))
        self._kept = legs.only(legs.end > until)
        return legs

    def _take_step(self, walkers: Integers) -> Legs:
        layout, room = self._layout, self._room[walkers]
        self._step[walkers] += 1
        counter = self._step[walkers] * _DRAWS_PER_STEP
        bits = [draw(self._starts[walkers], counter + k) for k in range(_DRAWS_PER_STEP)]
        now = self._now[walkers]

        door = self._errands.door(walkers, now, room, otherwise=self._stroll(walkers, now, room, bits[0]))
        far = (layout.door_rooms[door, 0] == room).astype(np.int64)
        entered = layout.door_rooms[door, far]
        passing = layout.passage[entered]
        front, gate, behind = layout.door_front[door, 1 - far], layout.door_at[door], layout.door_front[door, far]
        spot_x, spot_y = _spot(layout, entered, bits[1], bits[2])
        spot = np.stack((np.where(passing, behind[:, 0], spot_x), np.where(passing, behind[:, 1], spot_y)), axis=1)

        # x and y of the six corners of the step; the last two are the same spot, where the pause is.
        here = np.stack((self._x[walkers], self._y[walkers]), axis=1)
        way = np.stack((here, front, gate, behind, spot, spot), axis=1)
        moves = way[:, 1:] - way[:, :-1]
        length = np.sqrt(moves[:, :, 0] * moves[:, :, 0] + moves[:, :, 1] * moves[:, :, 1])
        pace = SLOWEST + (FASTEST - SLOWEST) * unit(bits[0] << np.uint64(32))
        lasting = np.floor(length / pace[:, None] * SECOND).astype(np.int64) + 1
        lasting[passing, 3] = 0
        lasting[:, 4] = 0
        arrived = now + lasting.sum(axis=1)
        lasting[:, 4] = np.where(passing, 0, self._errands.stay(walkers, arrived, entered, _pause(bits[3])))

        end = now[:, None] + np.cumsum(lasting, axis=1)
        nothing = np.full_like(door, NOBODY)
        velocity = moves / np.maximum(lasting, 1)[:, :, None]
        self._room[walkers], self._door[walkers] = entered, door
        self._x[walkers], self._y[walkers], self._now[walkers] = spot[:, 0], spot[:, 1], end[:, -1]
        legs = Legs(
            walker=np.repeat(walkers, 5),
            start=(end - lasting + self._lag[walkers, None]).ravel(),
            end=(end + self._lag[walkers, None]).ravel(),
            x=way[:, :-1, 0].ravel(),
            y=way[:, :-1, 1].ravel(),
            velocity_x=velocity[:, :, 0].ravel(),
            velocity_y=velocity[:, :, 1].ravel(),
            room=np.stack((room, room, entered, entered, entered), axis=1).ravel(),
            door=np.stack((nothing, nothing, door, nothing, nothing), axis=1).ravel(),
        )
        return legs.only(legs.end > legs.start)

    def _stroll(self, walkers: Integers, now: Integers, room: Integers, bits: Bits) -> Integers:
        """Any door that leads where one may go; out of a passage not the door one came in by; else back."""
        layout = self._layout
        doors = layout.doors_of[room]
        far = (layout.door_rooms[doors, 0] == room[:, None]).astype(np.int64)
        beyond = layout.door_rooms[doors, far]
        open_to = (doors != NOBODY) & (self._anywhere[walkers, None] | layout.public[beyond])
        open_to &= ~(layout.passage[room, None] & (doors == self._door[walkers, None]))
        for start, end in self._closed:
            open_to &= ~((start[beyond] <= now[:, None]) & (now[:, None] < end[beyond]))
        choices: Integers = open_to.sum(axis=1)
        chosen = (np.cumsum(open_to, axis=1) > below(bits, np.maximum(choices, 1))[:, None]).argmax(axis=1)
        picked: Integers = np.where(choices > 0, doors[np.arange(len(walkers)), chosen], self._door[walkers])
        return picked


class _Errands:
    """What walkers have to do besides strolling, and how it bends their steps. Empty for nearly everybody."""

    def __init__(self, layout: Layout, people: Integers, errands: Iterable[Errand]) -> None:
        walker_of = {person: walker for walker, person in enumerate(people.tolist())}
        self._left: dict[int, list[Errand]] = {}
        for errand in sorted(errands, key=lambda errand: -errand.depart):
            if errand.person in walker_of:
                self._left.setdefault(walker_of[errand.person], []).append(errand)
        self._ways = {e.room: way_to(layout, e.room) for several in self._left.values() for e in several}
        self._busy = np.zeros(len(people), dtype=np.bool_)
        self._busy[list(self._left)] = True

    def door(self, walkers: Integers, now: Integers, room: Integers, *, otherwise: Integers) -> Integers:
        """The door to take: towards the errand if it is time for it."""
        doors = otherwise.copy()
        for row in np.flatnonzero(self._busy[walkers]):
            errand = self._left[int(walkers[row])][-1]
            if errand.depart <= now[row]:
                doors[row] = self._ways[errand.room].get(int(room[row]), doors[row])
        return doors

    def stay(self, walkers: Integers, arrived: Integers, room: Integers, pause: Integers) -> Integers:
        """How long to stay in a room just reached: as the errand says in its room, elsewhere until it is time."""
        stays = self.hurry(walkers, arrived, pause)
        for row in np.flatnonzero(self._busy[walkers]):
            walker = int(walkers[row])
            errand = self._left[walker][-1]
            if errand.depart <= arrived[row] and errand.room == room[row]:
                stays[row] = errand.stay
                self._left[walker].pop()
                self._busy[walker] = bool(self._left[walker])
        return stays

    def hurry(self, walkers: Integers, arrived: Integers, pause: Integers) -> Integers:
        pauses = pause.copy()
        for row in np.flatnonzero(self._busy[walkers]):
            depart = self._left[int(walkers[row])][-1].depart
            pauses[row] = min(pauses[row], max(0, depart - int(arrived[row])))
        return pauses


def _spot(layout: Layout, room: Integers, across: Bits, up: Bits) -> tuple[Reals, Reals]:
    box = layout.box[room]
    return (
        box[:, 0] + (box[:, 2] - box[:, 0]) * unit(across),
        box[:, 1] + (box[:, 3] - box[:, 1]) * unit(up),
    )


def _pause(bits: Bits) -> Integers:
    return SHORTEST_PAUSE + below(bits, LONGEST_PAUSE - SHORTEST_PAUSE)


def _closing_times(rooms: int, closures: Iterable[Closure]) -> list[tuple[Integers, Integers]]:
    """By room, the first closing time, the second, …; as many tables as the busiest room has closures."""
    tables: list[tuple[Integers, Integers]] = []
    used: dict[int, int] = {}
    for closure in closures:
        turn = used.get(closure.room, 0)
        used[closure.room] = turn + 1
        if turn == len(tables):
            tables.append((np.zeros(rooms, dtype=np.int64), np.zeros(rooms, dtype=np.int64)))
        tables[turn][0][closure.room], tables[turn][1][closure.room] = closure.start, closure.end
    return tables


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Situations that are known beforehand: guests who go alone into a restricted room.
#
# A guest without a host gets an errand there, and nobody else sets out for the room early enough to still be in it.
# Guests' walks do not depend on other people's, so the times are known before anybody else has taken a step.

SHORTEST_STAY, LONGEST_STAY = 12 * SECOND, 30 * SECOND
QUIET = 10 * SECOND
"""How long before and after a visit nobody else is in the room: no window of less than this sees company."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Visit:
    """A guest is in a restricted room, alone, from ``entered`` to ``left``."""

    guest: int
    room: int
    entered: int
    left: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Planted:
    visits: tuple[Visit, ...] = ()
    errands: tuple[Errand, ...] = ()
    closures: tuple[Closure, ...] = ()


def plant(layout: Layout, seed: int, number: int, duration: int) -> Planted:
    """Spread ``number`` visits evenly over rooms and over ``duration``; each begins and ends within it."""
    if number == 0:
        return Planted()
    guests = _guests_by_room(layout)
    if not guests:
        raise ValueError("no situation can be planted: it takes a guest without host who can reach a restricted room")
    rounds = -(-number // len(guests))
    chance = stream(seed, "planting", size=number)
    late = below(draw(chance, np.zeros(number, dtype=np.int64)), max(1, duration // rounds // 10))
    stay = below(draw(chance, np.ones(number, dtype=np.int64)), LONGEST_STAY - SHORTEST_STAY)
    errands = []
    for index in range(number):
        turn, place = divmod(index, len(guests))
        room, candidates = guests[place]
        errands.append(
            Errand(
                person=candidates[(turn * len(guests) + place) % len(candidates)],
                room=room,
                depart=turn * duration // rounds + int(late[index]),
                stay=SHORTEST_STAY + int(stay[index]),
            )
        )
    visits = _visits(layout, seed, errands, duration)
    if len(visits) < number:
        raise ValueError(
            f"only {len(visits)} of {number} situations end within {duration / SECOND:g} s; "
            "give a longer duration, more people or fewer situations"
        )
    early = _longest_absence(layout) + QUIET
    closures = tuple(Closure(room=v.room, start=v.entered - early, end=v.left + QUIET) for v in visits)
    return Planted(visits=visits, errands=tuple(errands), closures=closures)


def _guests_by_room(layout: Layout) -> list[tuple[int, list[int]]]:
    """The restricted rooms behind a single door, with the guests who can go there alone."""
    rooms = {room.id: index for index, room in enumerate(layout.building.rooms)}
    alone = np.flatnonzero(~layout.employee & (layout.host == NOBODY)).tolist()
    living: dict[int, list[int]] = {}
    for guest in alone:
        living.setdefault(rooms[layout.building.people[guest].home], []).append(guest)
    found = []
    for room in np.flatnonzero(layout.restricted & ((layout.doors_of != NOBODY).sum(axis=1) == 1)).tolist():
        # Sorted, since the order in which the rooms around are found says nothing about the guests.
        candidates = sorted(guest for home in way_to(layout, room) for guest in living.get(home, ()))
        if candidates:
            found.append((room, candidates))
    return found


def _visits(layout: Layout, seed: int, errands: list[Errand], duration: int) -> tuple[Visit, ...]:
    guests = np.array(sorted({errand.person for errand in errands}), dtype=np.int64)
    legs = Walk(layout, seed, guests, errands=errands).advance(duration)
    inside = layout.restricted[legs.room]
    before = np.concatenate(([False], inside[:-1] & (legs.walker[1:] == legs.walker[:-1])))
    after = np.concatenate((inside[1:] & (legs.walker[1:] == legs.walker[:-1]), [False]))
    first, last = np.flatnonzero(inside & ~before), np.flatnonzero(inside & ~after)
    visits = [
        Visit(
            guest=int(guests[legs.walker[a]]), room=int(legs.room[a]), entered=int(legs.start[a]), left=int(legs.end[b])
        )
        for a, b in zip(first, last, strict=True)
        if legs.end[b] < duration
    ]
    return tuple(sorted(visits, key=lambda visit: (visit.entered, visit.guest)))


def _longest_absence(layout: Layout) -> int:
    """The longest time from setting out for a room until one has left it again, a follower included."""
    longest = max(sqrt((r.x2 - r.x1) ** 2 + (r.y2 - r.y1) ** 2) for r in layout.building.rooms)
    return int(3 * longest / SLOWEST * SECOND) + LONGEST_PAUSE + LAG + SECOND
