"""A building from the files of a project folder, and back into files.

Reads ``data/floor.xml``, ``people.csv``, ``readers.csv`` and ``cameras.csv``; finds the example project wherever
Situ is installed. What the values mean is :mod:`situ.testing.building.plan`'s business.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from xml.etree import ElementTree

from situ.testing.building.plan import ROLES, SECURITY, Building, Camera, Door, Person, PlanError, Reader, Room

_Thing = TypeVar("_Thing")

_PEOPLE = ("id", "name", "role", "tag", "face", "host", "home")
_READERS = ("id", "room", "x", "y", "heading", "range")
_CAMERAS = ("id", "room", "x", "y", "heading", "angle", "range")


def example_folder() -> Path:
    """The example project: inside an installed package, else in the source tree this module belongs to."""
    package = Path(__file__).resolve().parents[2]
    places = (package / "_example" / "smart-building", package.parents[1] / "examples" / "smart-building")
    for place in places:
        if (place / "situ.yaml").is_file():
            return place
    raise FileNotFoundError(f"the example project is neither at {places[0]} nor at {places[1]}")


def example_building() -> Building:
    return load_building(example_folder())


def load_building(project: Path | str) -> Building:
    """The building described in the ``data`` folder of a project; every problem of every file at once."""
    data = Path(project) / "data"
    problems: list[str] = []
    rooms, doors = _read_floor(data / "floor.xml", problems)
    people = _read_table(data / "people.csv", _PEOPLE, _person, problems)
    readers = _read_table(data / "readers.csv", _READERS, _reader, problems)
    cameras = _read_table(data / "cameras.csv", _CAMERAS, _camera, problems)
    if problems:
        raise PlanError(problems)
    return Building(rooms=rooms, doors=doors, people=people, readers=readers, cameras=cameras)


def write_building(building: Building, project: Path | str) -> None:
    """Write the files :func:`load_building` reads, so that a larger building can be looked up like the example."""
    data = Path(project) / "data"
    data.mkdir(parents=True, exist_ok=True)
    floor = ElementTree.Element("floor", id="ground")
    for room in building.rooms:
        about = {"id": room.id, "security": room.security} | ({"passage": "true"} if room.passage else {})
        box = {"x1": room.x1, "y1": room.y1, "x2": room.x2, "y2": room.y2}
        ElementTree.SubElement(
            ElementTree.SubElement(floor, "room", about), "box", {key: _plain(value) for key, value in box.items()}
        )
    for door in building.doors:
        place = {"x": _plain(door.x), "y": _plain(door.y)}
        ElementTree.SubElement(floor, "door", {"id": door.id, "between": " ".join(door.rooms)} | place)
    ElementTree.indent(floor)
    ElementTree.ElementTree(floor).write(data / "floor.xml", encoding="utf-8", xml_declaration=True)
    _write_table(data / "people.csv", _PEOPLE, building.people)
    _write_table(data / "readers.csv", _READERS, building.readers)
    _write_table(data / "cameras.csv", _CAMERAS, building.cameras)


def _read_floor(file: Path, problems: list[str]) -> tuple[tuple[Room, ...], tuple[Door, ...]]:
    try:
        floor = ElementTree.fromstring(file.read_bytes())
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
        return (), ()
    except ElementTree.ParseError as error:
        problems.append(f"{file}: is not XML: {error}")
        return (), ()

    def every(tag: str, make: Callable[[ElementTree.Element], _Thing]) -> tuple[_Thing, ...]:
        made = []
        for element in floor.iter(tag):
            try:
                made.append(make(element))
            except (KeyError, ValueError) as error:
                problems.append(f"{file}: {tag} `{element.get('id', '?')}`: {_reason(error)}")
        return tuple(made)

    return every("room", _room), every("door", _door)


def _read_table(
    file: Path, columns: Sequence[str], make: Callable[[Mapping[str, str]], _Thing], problems: list[str]
) -> tuple[_Thing, ...]:
    try:
        with file.open(encoding="utf-8", newline="") as text:
            rows = list(csv.DictReader(text))
    except OSError as error:
        problems.append(f"{file}: cannot be read: {error.strerror}")
        return ()
    made = []
    for line, row in enumerate(rows, start=2):
        if missing := [column for column in columns if row.get(column) is None]:
            problems.append(
                f"{file}:{line}: no value for `{'`, `'.join(missing)}`; the columns are {', '.join(columns)}"
            )
            continue
        try:
            made.append(make(row))
        except ValueError as error:
            problems.append(f"{file}:{line}: {_reason(error)}")
    return tuple(made)


def _write_table(file: Path, columns: Sequence[str], things: Sequence[Any]) -> None:
    with file.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out, lineterminator="\n")
        table.writerow(columns)
        for thing in things:
            table.writerow([_plain(getattr(thing, column)) for column in columns])


def _room(element: ElementTree.Element) -> Room:
    box = element.find("box")
    if box is None:
        raise ValueError("has no <box>")
    return Room(
        id=element.attrib["id"],
        security=_one_of(SECURITY, element.attrib["security"]),
        passage=element.get("passage") == "true",
        x1=_number(box.attrib["x1"]),
        y1=_number(box.attrib["y1"]),
        x2=_number(box.attrib["x2"]),
        y2=_number(box.attrib["y2"]),
    )


def _door(element: ElementTree.Element) -> Door:
    first, second = _two(element.attrib["between"])
    return Door(
        id=element.attrib["id"],
        rooms=(first, second),
        x=_number(element.attrib["x"]),
        y=_number(element.attrib["y"]),
    )


def _person(row: Mapping[str, str]) -> Person:
    role, host = _one_of(ROLES, row["role"]), row["host"] or None
    about = {key: row[key] for key in ("id", "name", "tag", "face", "home")}
    return Person(role=role, host=host, **about)


def _reader(row: Mapping[str, str]) -> Reader:
    numbers = {key: _number(row[key]) for key in ("x", "y", "heading", "range")}
    return Reader(id=row["id"], room=row["room"], **numbers)


def _camera(row: Mapping[str, str]) -> Camera:
    numbers = {key: _number(row[key]) for key in ("x", "y", "heading", "angle", "range")}
    return Camera(id=row["id"], room=row["room"], **numbers)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"`{text}` is no finite number")
    return value


def _one_of(allowed: Sequence[_Thing], text: str) -> _Thing:
    for value in allowed:
        if value == text:
            return value
    raise ValueError(f"`{text}` is none of {', '.join(map(str, allowed))}")


def _two(text: str) -> tuple[str, str]:
    names = text.split()
    if len(names) != 2:
        raise ValueError(f"`{text}` are not the ids of two rooms with a space between")
    return names[0], names[1]


def _reason(error: KeyError | ValueError) -> str:
    return f"has no `{error.args[0]}`" if isinstance(error, KeyError) else str(error)


def _plain(value: object) -> str:
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() else repr(value)
    return "" if value is None else str(value)
