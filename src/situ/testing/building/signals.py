"""The events of the building as columns of whole numbers, whatever they are later written as.

A measured value is kept as a whole number of its last decimal place (123 for 12.3 cm), so that text and floating-point
columns are both exact renderings of the same thing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from situ.testing.building.chance import Integers
from situ.testing.building.plan import Building


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


def joined(parts: Sequence[Readings]) -> Readings:
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
