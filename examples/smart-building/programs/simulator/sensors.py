"""The events of the building as columns of whole numbers, whatever they are later written as.

A measured value is kept as a whole number of its last decimal place (123 for 12.3 cm), so that text and floating-point
columns are both exact renderings of the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from simulator.deterministic_math import Bits, Integers, Reals, bearing, below, draw, error, half_turn, stream, unit
from simulator.floor_plan import Building
from simulator.movement import NOBODY, SECOND, Layout, Legs, Sensors


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """An event type: how its payload is laid out.

    ``sensor`` and ``subject`` name the attributes for who reports and who or what is reported; ``values`` the measured
    ones with their decimals, inside the attribute ``part`` if there is one. ``source`` precedes the sensor's id in the
    event's source.
    """

    type: str
    source: str = ""
    sensor: str | None = None
    subject: str | None = None
    part: str | None = None
    values: tuple[tuple[str, int], ...] = ()


TAG_SEEN = Signal(type="TagSeen", sensor="reader", subject="tag", part="cartesian", values=(("dx", 1), ("dy", 1)))
FACE_SEEN = Signal(type="FaceSeen", sensor="camera", subject="face", part="polar", values=(("r", 2), ("theta", 2)))
DOOR_USED = Signal(type="DoorUsed", source="doors/", sensor="door", subject="room")
ROOM_CLIMATE = Signal(
    type="RoomClimate",
    source="climate/",
    sensor="room",
    values=(("temperature", 1), ("humidity", 1), ("co2", 1)),
)
SIGHTING = Signal(type="Sighting", source="tracker", subject="who", part="at", values=(("x", 2), ("y", 2)))

SIGNALS = (TAG_SEEN, FACE_SEEN, DOOR_USED, ROOM_CLIMATE, SIGHTING)
SENSED = (TAG_SEEN, FACE_SEEN, DOOR_USED, ROOM_CLIMATE)
"""What sensors send. A Sighting is what their readings mean, for trying things without converting them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """Events of one type, one a row, in time order. ``time`` is µs from the beginning of the simulation."""

    time: Integers
    sensor: Integers
    subject: Integers
    values: tuple[Integers, ...]

    def __len__(self) -> int:
        return len(self.time)

    def only(self, rows: Integers) -> Readings:
        return Readings(
            time=self.time[rows],
            sensor=self.sensor[rows],
            subject=self.subject[rows],
            values=tuple(value[rows] for value in self.values),
        )


def join_readings(parts: Sequence[Readings]) -> Readings:
    return Readings(
        time=np.concatenate([part.time for part in parts]),
        sensor=np.concatenate([part.sensor for part in parts]),
        subject=np.concatenate([part.subject for part in parts]),
        values=tuple(np.concatenate(columns) for columns in zip(*(part.values for part in parts), strict=True)),
    )


def sensor_names(building: Building, signal: Signal) -> list[str]:
    """What ``Readings.sensor`` counts; a single empty name where nobody in particular reports."""
    return _SENSORS[signal](building)


def subject_names(building: Building, signal: Signal) -> list[str]:
    """What ``Readings.subject`` counts; a single empty name where the event is about its sensor."""
    return _SUBJECTS[signal](building)


def _nobody(building: Building) -> list[str]:
    return [""]


_SENSORS: Mapping[Signal, Callable[[Building], list[str]]] = {
    TAG_SEEN: lambda building: [reader.id for reader in building.readers],
    FACE_SEEN: lambda building: [camera.id for camera in building.cameras],
    DOOR_USED: lambda building: [door.id for door in building.doors],
    ROOM_CLIMATE: lambda building: [room.id for room in building.rooms],
    SIGHTING: _nobody,
}
_SUBJECTS: Mapping[Signal, Callable[[Building], list[str]]] = {
    TAG_SEEN: lambda building: [person.tag for person in building.people],
    FACE_SEEN: lambda building: [person.face for person in building.people],
    DOOR_USED: lambda building: [room.id for room in building.rooms],
    ROOM_CLIMATE: _nobody,
    SIGHTING: lambda building: [person.id for person in building.people],
}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What sensors make of people who walk by: tags and faces in the sensors' own terms, doors, and plain positions.
#
# Each person is noticed once an interval, at a moment of its own, by every sensor of the room that covers the spot.
# Errors of measurement are bounded: see the constants. Rooms' climate is :mod:`simulator.sensors`.

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


class SensorModel:
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
    together = join_readings(parts)
    return together.only(np.argsort(together.time, kind="stable"))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The air in the rooms: people warm it, and breathe.
#
# Each room reports every half minute. Temperature and carbon dioxide approach what the number of people then present
# would settle at, a fraction of the way each time.

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
