"""The air in the rooms: people warm it, and breathe.

Each room reports every half minute. Temperature and carbon dioxide approach what the number of people then present
would settle at, a fraction of the way each time.
"""

from __future__ import annotations

import numpy as np

from situ.testing.building.chance import Integers, below, draw, error, stream, unit
from situ.testing.building.layout import Layout
from situ.testing.building.signals import Readings
from situ.testing.building.walk import SECOND, Legs

PERIOD = 30 * SECOND
FRESH_AIR = 420.0
EACH_PERSON_PPM = 9000.0
EACH_PERSON_DEGREES = 24.0
"""Per person and square metre of the room, where things settle."""
PACE = 0.05


class Climate:
    """The state of the air of every room, carried from one block of time to the next."""

    def __init__(self, layout: Layout, seed: int) -> None:
        rooms = len(layout.building.rooms)
        self._chance = stream(seed, "climate", size=rooms)
        nothing = np.zeros(rooms, dtype=np.int64)
        self._moment = below(draw(self._chance, nothing), PERIOD)
        self._usual = 20.0 + 2.0 * unit(draw(self._chance, nothing + 1))
        self._temperature = self._usual.copy()
        self._carbon_dioxide = np.full(rooms, FRESH_AIR)
        self._area = np.array([(room.x2 - room.x1) * (room.y2 - room.y1) for room in layout.building.rooms])

    def readings(self, legs: Legs, start: int, end: int) -> Readings:
        """The reports of [start, end), which must follow upon the last such time asked for."""
        first, last = _round(self._moment, start), _round(self._moment, end)
        low, high = int(first.min()), int(last.max())
        if low == high:
            return _reports([], [], [])
        present = self._present(legs, first, last, low, high)
        rooms, times, measured = [], [], []
        for turn in range(low, high):
            reporting = np.flatnonzero((first <= turn) & (turn < last))
            self._breathe(reporting, present[turn - low, reporting])
            rooms.append(reporting)
            times.append(turn * PERIOD + self._moment[reporting])
            measured.append(self._measure(reporting, turn))
        return _reports(times, rooms, measured)

    def _present(self, legs: Legs, first: Integers, last: Integers, low: int, high: int) -> Integers:
        """How many people are in each room when it reports, by turn and room."""
        moment, earliest, latest = self._moment[legs.room], first[legs.room], last[legs.room]
        begin = np.clip(_round(moment, legs.start), earliest, latest)
        count = np.clip(_round(moment, legs.end), earliest, latest) - begin
        leg = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(leg)) - np.repeat(np.cumsum(count) - count, count)
        cell = (begin[leg] + place - low) * len(self._moment) + legs.room[leg]
        counted = np.bincount(cell, minlength=(high - low) * len(self._moment))
        return counted.reshape(high - low, len(self._moment))

    def _breathe(self, rooms: Integers, people: Integers) -> None:
        crowd = people / self._area[rooms]
        warmth = self._usual[rooms] + EACH_PERSON_DEGREES * crowd
        self._temperature[rooms] += PACE * (warmth - self._temperature[rooms])
        air = FRESH_AIR + EACH_PERSON_PPM * crowd
        self._carbon_dioxide[rooms] += PACE * (air - self._carbon_dioxide[rooms])

    def _measure(self, rooms: Integers, turn: int) -> Integers:
        """Tenths of °C, of % and of ppm."""
        bits = draw(self._chance[rooms], np.full(len(rooms), turn + 2))
        temperature = self._temperature[rooms]
        humidity = 45.0 - 1.5 * (temperature - 21.0) + 0.5 * error(bits, 0)
        carbon_dioxide = self._carbon_dioxide[rooms] + 10.0 * error(bits, 1)
        tenths = np.rint(10.0 * np.stack((temperature, np.clip(humidity, 0.0, 100.0), carbon_dioxide)))
        return tenths.astype(np.int64)


def _round(moment: Integers, time: Integers | int) -> Integers:
    """The number of the first report not before ``time``."""
    return -((moment - time) // PERIOD)


def _reports(times: list[Integers], rooms: list[Integers], measured: list[Integers]) -> Readings:
    nothing = np.zeros(0, dtype=np.int64)
    time, room = np.concatenate([nothing, *times]), np.concatenate([nothing, *rooms])
    values = np.concatenate([np.zeros((3, 0), dtype=np.int64), *measured], axis=1)
    order = np.lexsort((room, time))
    return Readings(
        time=time[order],
        sensor=room[order],
        subject=np.zeros_like(room),
        values=(values[0, order], values[1, order], values[2, order]),
    )
