"""What sensors make of people who walk by: tags and faces in the sensors' own terms, doors, and plain positions.

Each person is noticed once an interval, at a moment of its own, by every sensor of the room that covers the spot.
Errors of measurement are bounded: see the constants. Rooms' climate is :mod:`situ.testing.building.climate`.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from situ.testing.building.angles import bearing, half_turn
from situ.testing.building.chance import Bits, Integers, Reals, below, draw, error, stream
from situ.testing.building.layout import NOBODY, Layout, Sensors
from situ.testing.building.signals import Readings, joined
from situ.testing.building.walk import Legs

READER_ERROR = 0.10
"""Metres, at most, ahead and to the left."""
CAMERA_ERROR_DISTANCE = 0.10
CAMERA_ERROR_ANGLE = 0.5
METRES_PER_FOOT = 0.3048


def moments(seed: int, people: int, interval: int) -> Integers:
    """When in each interval a person is noticed, in µs."""
    return below(stream(seed, "moment", size=people), interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """Where everybody is, once an interval, in time order."""

    time: Integers
    person: Integers
    tick: Integers
    x: Reals
    y: Reals
    room: Integers

    def until(self, end: int) -> Samples:
        rows = slice(int(np.searchsorted(self.time, end)))
        return Samples(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def sample(legs: Legs, people: Integers, moment: Integers, interval: int, first: int, last: int) -> Samples:
    """Positions in the intervals ``first`` … ``last - 1``. Walker i is ``people[i]``, noticed ``moment[i]`` µs into
    each interval; ``moment`` must be sorted, which makes the samples so without sorting."""
    offset = moment[legs.walker]
    begin = np.clip(-((offset - legs.start) // interval), first, last)
    count = np.clip(-((offset - legs.end) // interval), first, last) - begin
    # Everybody has exactly one leg in every interval: by walker, then interval; transposed, by time.
    leg = np.repeat(np.arange(len(count), dtype=np.int32), count).reshape(len(people), last - first).T.ravel()
    ticks = np.arange(first, last, dtype=np.int64)
    time = np.add.outer(ticks * interval, moment).ravel()
    elapsed = (time - legs.start[leg]).astype(np.float64)
    return Samples(
        time=time,
        person=np.tile(people, last - first),
        tick=np.repeat(ticks, len(people)),
        x=legs.x[leg] + legs.velocity_x[leg] * elapsed,
        y=legs.y[leg] + legs.velocity_y[leg] * elapsed,
        room=legs.room[leg],
    )


class Eyes:
    """All readers and cameras of a building."""

    def __init__(self, layout: Layout, seed: int) -> None:
        self._layout = layout
        people = len(layout.building.people)
        self._reader_chance = [
            stream(seed, f"reader {turn}", size=people) for turn in range(layout.readers.in_room.shape[1])
        ]
        self._camera_chance = [
            stream(seed, f"camera {turn}", size=people) for turn in range(layout.cameras.in_room.shape[1])
        ]

    def tags(self, samples: Samples) -> Readings:
        """Tenths of centimetres ahead of the reader and to its left."""
        sensors, parts = self._layout.readers, []
        for turn, chance in enumerate(self._reader_chance):
            rows, sensor, dx, dy = _in_range(sensors, sensors.in_room[:, turn], samples)
            bits = _bits(chance, samples, rows)
            cosine, sine = sensors.cosine[sensor], sensors.sine[sensor]
            ahead = cosine * dx + sine * dy + READER_ERROR * error(bits, 0)
            left = cosine * dy - sine * dx + READER_ERROR * error(bits, 1)
            parts.append(_readings(samples, rows, sensor, _whole(ahead * 1000.0), _whole(left * 1000.0)))
        return _in_time(parts)

    def faces(self, samples: Samples) -> Readings:
        """Hundredths of feet from the camera, and of degrees from where it looks, counter-clockwise."""
        sensors, parts = self._layout.cameras, []
        for turn, chance in enumerate(self._camera_chance):
            rows, sensor, dx, dy = _in_range(sensors, sensors.in_room[:, turn], samples)
            aside = half_turn(bearing(dx, dy) - sensors.heading[sensor])
            seen = np.abs(aside) <= sensors.half_angle[sensor]
            rows, sensor, dx, dy, aside = rows[seen], sensor[seen], dx[seen], dy[seen], aside[seen]
            bits = _bits(chance, samples, rows)
            distance = np.sqrt(dx * dx + dy * dy) + CAMERA_ERROR_DISTANCE * error(bits, 0)
            angle = aside + CAMERA_ERROR_ANGLE * error(bits, 1)
            feet = np.maximum(distance, 0.0) / METRES_PER_FOOT
            parts.append(_readings(samples, rows, sensor, _whole(feet * 100.0), _whole(angle * 100.0)))
        return _in_time(parts)


def doors(legs: Legs, people: Integers, start: int, end: int) -> Readings:
    """Who goes through which door into which room; a door does not know who."""
    rows = np.flatnonzero((legs.door != NOBODY) & (legs.start >= start) & (legs.start < end))
    # By time, then by person: an order that does not depend on how people are spread over the interval.
    rows = rows[np.lexsort((people[legs.walker[rows]], legs.start[rows]))]
    return Readings(time=legs.start[rows], sensor=legs.door[rows], subject=legs.room[rows], values=())


def positions(samples: Samples) -> Readings:
    """Hundredths of metres in the building, without error."""
    values = (_whole(samples.x * 100.0), _whole(samples.y * 100.0))
    return Readings(time=samples.time, sensor=np.zeros_like(samples.time), subject=samples.person, values=values)


def _in_range(sensors: Sensors, in_room: Integers, samples: Samples) -> tuple[Integers, Integers, Reals, Reals]:
    """The samples within range of the one sensor that each room has here: rows, sensors, and the way from them."""
    sensor = in_room[samples.room]
    rows = np.flatnonzero(sensor != NOBODY)
    sensor = sensor[rows]
    dx, dy = samples.x[rows] - sensors.x[sensor], samples.y[rows] - sensors.y[sensor]
    near = np.flatnonzero(dx * dx + dy * dy <= sensors.range[sensor] * sensors.range[sensor])
    return rows[near], sensor[near], dx[near], dy[near]


def _bits(chance: Bits, samples: Samples, rows: Integers) -> Bits:
    return draw(chance[samples.person[rows]], samples.tick[rows])


def _whole(values: Reals) -> Integers:
    return np.rint(values).astype(np.int64)


def _readings(samples: Samples, rows: Integers, sensor: Integers, *values: Integers) -> Readings:
    return Readings(time=samples.time[rows], sensor=sensor, subject=samples.person[rows], values=values)


def _in_time(parts: list[Readings]) -> Readings:
    """Several sensors of a room may see one person at once: by time, then by the sensors' order in the room."""
    if not parts:
        nothing = np.zeros(0, dtype=np.int64)
        return Readings(time=nothing, sensor=nothing, subject=nothing, values=(nothing, nothing))
    if len(parts) == 1:
        return parts[0]
    together = joined(parts)
    return together.only(np.argsort(together.time, kind="stable"))
