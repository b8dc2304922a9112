"""How people move: a seeded random walk from room to room, in straight legs at an even pace.

A step takes one person through one door: to the spot in front of it, through it, on to some spot in the next room,
where the person pauses unless the room is a passage. Rooms are boxes, so a straight leg inside a room meets no wall.
A guest with a host walks the host's steps, a moment later.

Time is in whole microseconds from the beginning of the simulation. A person's walk depends on the seed, the building,
its errands and closed rooms alone: neither on who else is walked nor on how far at a time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import numpy as np

from situ.testing.building.chance import Bits, Integers, Reals, below, draw, stream, unit
from situ.testing.building.layout import NOBODY, Flags, Layout, way_to

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
