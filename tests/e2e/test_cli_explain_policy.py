"""``situ explain policy``: policies of a project and of files, as text, as JSON and as a picture."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.domains import UNACCOMPANIED_GUEST
from tests.e2e.conftest import Situ
from tests.project_files import write

FILES = {
    "situ.yaml": "version: 1\nname: building\n",
    "types/all.yaml": "version: 1\nevents: {Sighting: {who: string, at: Point m}, Alarm: {text: string}}\n",
    "ontology.yaml": """
version: 1
concepts:
  person: {id: string, status: string, position: Point m}
  room: {id: string, security: string, area: Box m}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within:
    between: [person.position, person.position]
    function: within
    parameter: {name: distance, unit: m}
    symmetric: true
""",
    "sources/all.yaml": """
version: 1
pull:
  persons: {csv: people.csv, columns: {nr: string, role: string}, concept: person, key: nr, attributes: {status: role}}
  rooms: {csv: rooms.csv, columns: {id: string, security: string, area: Box m}, concept: room, key: id}
push:
  seen: {event: Sighting, concept: person, id: who, attribute: position, value: at}
""",
    "actions.yaml": "version: 1\nactions: {raise alarm: {publish: Alarm, data: {text: alone}}}\n",
    "policies/unaccompanied-guest.dpl": UNACCOMPANIED_GUEST,
}


@pytest.fixture
def building(tmp_path: Path) -> Path:
    return write(tmp_path / "building", FILES)


def test_a_policy_of_the_project(situ: Situ, building: Path) -> None:
    ran = situ("explain", "policy", "unaccompanied-guest", "--project", building)
    assert ran.code == 0
    assert ran.out.startswith("unaccompanied-guest · window 5 s · hold 10 s")
    assert "2  A is not within 5 m of B or B is not inside R\n" in ran.out
    assert "│   ├── leaf  person A (status = 'guest')  by position (event)\n" in ran.out
    assert "partition  by A" in ran.out


def test_a_file_is_explained_as_if_it_were_part_of_the_project(situ: Situ, building: Path, tmp_path: Path) -> None:
    file, picture = tmp_path / "new.dpl", tmp_path / "pictures" / "tree.svg"
    file.write_text(UNACCOMPANIED_GUEST.replace("policy unaccompanied-guest\n", ""))
    ran = situ("explain", "policy", file, "--svg", picture, "--json", "--project", building)
    assert ran.code == 0
    assert ran.data["name"] == "new"
    assert ran.data["clauses"] == [["A is inside R"], ["A is not within 5 m of B", "B is not inside R"]]
    assert {name for leaf in ran.data["plan"]["leaves"] for name in leaf["shared"]} == {"unaccompanied-guest"}
    assert ElementTree.parse(picture).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_what_is_wrong_with_a_file_is_all_said(situ: Situ, building: Path, tmp_path: Path) -> None:
    file = tmp_path / "new.dpl"
    file.write_text(UNACCOMPANIED_GUEST.replace("inside", "insied").replace("5 m of", "5 s of"))
    ran = situ("explain", "policy", file, "--project", building)
    assert ran.code == 1
    assert [ran.err.count(code) for code in ("S153", "S158")] == [2, 1]


def test_an_unknown_policy_is_said_with_the_nearest_one(situ: Situ, building: Path) -> None:
    ran = situ("explain", "policy", "unacompanied-guest", "--project", building)
    assert ran.code == 1
    assert "Did you mean `unaccompanied-guest`?" in ran.err
