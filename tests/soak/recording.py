"""What the sensors of a large smart building send, recorded beforehand as the messages of a few gateways.

People walk as the simulator lets them, in as many wings as they need; some guests go alone into restricted rooms, and
nobody else does. A gateway is the client of many readers or cameras, whose events it passes on as they are. Of a few
rooms all that was seen in them is kept apart, in the building's terms, so that what a policy means can be worked out by
its definition.
"""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from shutil import copytree, ignore_patterns
from typing import Any
from zlib import crc32

from simulator import example_building, simulate
from simulator.floor_plan import write_building
from simulator.simulation import GuestAlone, Simulation

from situ.event.message import join_lines
from situ.policies.model import Cause, Observation
from situ.project.create import example_folder

READERS = tuple(f"readers-{number}" for number in range(1, 6))
CAMERAS = tuple(f"cameras-{number}" for number in range(1, 4))
GATEWAYS = (*READERS, *CAMERAS)
TAGS, MEMBER = (
    "{tenancy: house, area: public, network: sensor-net}",
    "{tenancy: [house], area: [public], network: [sensor-net]}",
)
PER_MESSAGE = 500
LINGER = 100_000
"""Microseconds for which a gateway gathers events at most."""
BEYOND = 60
"""Seconds that people walk on after the recording has ended: who goes astray in its middle need not be back."""
NOTICED = 15
"""Seconds of a visit that must be in the recording, else nothing of it need be told."""
SLICE = timedelta(milliseconds=50)
TYPES = ("TagSeen", "FaceSeen")
_HEAD = struct.Struct("<qHHI")
_FOOT = 0.3048


@dataclass(frozen=True, slots=True)
class Recorded:
    """One message: when it is due, in microseconds from the beginning; who sends it, and how many events it has."""

    due: int
    gateway: int
    count: int
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Recording:
    """A project with the building's tables, its messages in a file, and what is known of them."""

    folder: Path
    messages: Path
    start: int
    """Event time at the beginning, in microseconds since 1970."""
    seconds: float
    events: int
    truth: tuple[GuestAlone, ...]
    """Who goes astray, in the recording or after it."""
    rooms: Mapping[str, dict[str, Any]]
    """Those of which all is known, as instances."""
    people: Mapping[str, dict[str, Any]]
    seen: tuple[Observation, ...]
    """What was seen in these rooms."""

    @property
    def noticed(self) -> tuple[GuestAlone, ...]:
        """Those who must be told of."""
        last = datetime.fromtimestamp(self.start / 1e6 + self.seconds - NOTICED, UTC)
        return tuple(each for each in self.truth if each.entered <= last)


def read_messages(file: Path) -> Iterator[Recorded]:
    with file.open("rb") as stored:
        while head := stored.read(_HEAD.size):
            due, gateway, count, size = _HEAD.unpack(head)
            yield Recorded(due, gateway, count, stored.read(size))


def record(
    folder: Path,
    *,
    rate: float,
    seconds: float,
    seed: int = 7,
    rooms: int = 6,
    situ: str = "",
    start: datetime | None = None,
) -> Recording:
    """Make the project, and record about ``rate`` events a second; everybody is seen about twice a second.

    It happens from ``start`` on, which is now unless told.
    """
    simulation = _planted(rate, seconds, seed, start or datetime.now(UTC).replace(microsecond=0))
    project = folder / "project"
    _write_project(project, simulation, situ)
    watched = _Watched(simulation, rooms)
    file, events = folder / "messages", 0
    with file.open("wb") as stored:
        for message in _messages(simulation, seconds, watched):
            stored.write(_HEAD.pack(message.due, message.gateway, message.count, len(message.body)))
            stored.write(message.body)
            events += message.count
    return Recording(
        folder=project,
        messages=file,
        start=_instant(simulation.start),
        seconds=seconds,
        events=events,
        truth=simulation.truth,
        rooms=watched.rooms,
        people=watched.people,
        seen=tuple(watched.seen),
    )


def _planted(rate: float, seconds: float, seed: int, start: datetime) -> Simulation:
    """With as many guests astray as there can be in so short a time, up to one in two seconds."""
    most = int((seconds + BEYOND) / 2)
    for wanted in (most // share for share in (1, 2, 3, 4, 6, 8, 12, 20, 30)):
        try:
            return simulate(
                example_building(),
                seed=seed,
                persons=max(int(rate / 2), 60),
                duration=timedelta(seconds=seconds + BEYOND),
                start=start,
                rate=rate,
                types=TYPES,
                situations=wanted,
            )
        except ValueError as error:
            reason = error
    raise ValueError(f"nobody can go astray: {reason}")


def _write_project(project: Path, simulation: Simulation, situ: str) -> None:
    copytree(example_folder(), project, ignore=ignore_patterns(".situ", "__pycache__"))
    write_building(simulation.building, project)
    kinds = [(READERS, "readers", "TagSeen"), (CAMERAS, "cameras", "FaceSeen")]
    clients = [
        f"  {name}: {{context: {context}, scopes: {TAGS}, advertisements: {{seen: {{type: {type}}}}}}}"
        for names, context, type in kinds
        for name in names
    ]
    (project / "clients" / "sensors.yaml").write_text("\n".join(["version: 1", "clients:", *clients, ""]))
    members = [f"  {name}: {MEMBER}" for name in GATEWAYS]
    scopes = project / "scopes.yaml"
    scopes.write_text(scopes.read_text().replace("\nclients:\n", "\n".join(["\nclients:", *members, ""]), 1))
    with (project / "situ.yaml").open("a") as settings:
        settings.write(situ)


def _messages(simulation: Simulation, seconds: float, watched: _Watched) -> Iterator[Recorded]:
    """In the order in which they are due: a message is when the last of its events is."""
    gathered: list[list[bytes]] = [[] for _ in GATEWAYS]
    since = [0] * len(GATEWAYS)
    now = 0

    def message(gateway: int) -> Recorded:
        lines, gathered[gateway] = gathered[gateway], []
        return Recorded(now, gateway, len(lines), join_lines(lines))

    for arrivals, text in simulation.timed_lines(span=SLICE):
        if arrivals[-1] > seconds * 1e6:
            break
        now = int(arrivals[-1])
        for line in text.splitlines():
            gateway = gateway_of(line)
            watched.see(line, GATEWAYS[gateway])
            if not gathered[gateway]:
                since[gateway] = now
            gathered[gateway].append(line)
            if len(gathered[gateway]) == PER_MESSAGE:
                yield message(gateway)
        for gateway in range(len(GATEWAYS)):
            if gathered[gateway] and now - since[gateway] >= LINGER:
                yield message(gateway)
    for gateway in range(len(GATEWAYS)):
        if gathered[gateway]:
            yield message(gateway)


def gateway_of(line: bytes) -> int:
    """That of the sensor: what a sensor sees stays in order."""
    name = line.split(b'"source":"', 1)[1].split(b'"', 1)[0]
    if name.startswith(b"reader"):
        return crc32(name) % len(READERS)
    return len(READERS) + crc32(name) % len(CAMERAS)


class _Watched:
    """Rooms of which all that is seen in them is kept: some where guests go astray, and some where nobody does."""

    def __init__(self, simulation: Simulation, count: int) -> None:
        building = simulation.building
        astray = list(dict.fromkeys(each.room for each in simulation.truth))
        others = [room.id for room in building.rooms if room.security == "restricted" and room.id not in astray]
        chosen = {*astray[: count - count // 3], *others[: count // 3]}
        self.rooms: dict[str, dict[str, Any]] = {
            room.id: {
                "id": room.id,
                "security": room.security,
                "area": {"x1": room.x1, "y1": room.y1, "x2": room.x2, "y2": room.y2},
            }
            for room in building.rooms
            if room.id in chosen
        }
        self.people: dict[str, dict[str, Any]] = {}
        self.seen: list[Observation] = []
        # Those next door count, too: they see who stands in the door.
        wings = {_wing(room) for room in chosen}
        sensors = (*building.readers, *building.cameras)
        self._sensors = {each.id.encode(): each for each in sensors if _wing(each.room) in wings}
        self._people = {each.id: each for each in building.people}
        self._who = {each.tag: each.id for each in building.people} | {each.face: each.id for each in building.people}

    def see(self, line: bytes, gateway: str) -> None:
        name = line.split(b'"source":"', 1)[1].split(b'"', 1)[0]
        sensor = self._sensors.get(name)
        if sensor is None:
            return
        event = json.loads(line)
        data = event["data"]
        # Worked out in the order of the contexts: at a door the last digit decides on which side somebody is.
        if event["type"] == "TagSeen":
            who, dx, dy, heading = data["tag"], data["cartesian"]["dx"], data["cartesian"]["dy"], sensor.heading
            cosine, sine = math.cos(math.radians(heading)), math.sin(math.radians(heading))
            x, y = sensor.x + 0.01 * (dx * cosine - dy * sine), sensor.y + 0.01 * (dx * sine + dy * cosine)
        else:
            who, r, angle = data["face"], data["polar"]["r"], math.radians(sensor.heading + data["polar"]["theta"])
            x, y = sensor.x + _FOOT * r * math.cos(angle), sensor.y + _FOOT * r * math.sin(angle)
        person = self._people[self._who[who]]
        self.people[person.id] = {"id": person.id, "name": person.name, "status": person.role}
        self.seen.append(
            Observation(
                push="seen",
                concept="person",
                identity=person.id,
                attribute="position",
                value={"x": x, "y": y},
                time=_instant(datetime.fromisoformat(event["time"])),
                cause=Cause(f"{gateway}/{event['source']}", event["id"]),
            )
        )


def _wing(name: str) -> str:
    """``w3`` of ``lab/w3``; nothing of what is in the first."""
    return name.partition("/")[2]


def _instant(at: datetime) -> int:
    return (at - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
