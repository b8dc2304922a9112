"""Situations that are known beforehand: guests who go alone into a restricted room.

A guest without a host gets an errand there, and nobody else sets out for the room early enough to still be in it.
Guests' walks do not depend on other people's, so the times are known before anybody else has taken a step.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

import numpy as np

from situ.testing.building.chance import below, draw, stream
from situ.testing.building.layout import NOBODY, Layout, way_to
from situ.testing.building.walk import LAG, LONGEST_PAUSE, SECOND, SLOWEST, Closure, Errand, Walk

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
