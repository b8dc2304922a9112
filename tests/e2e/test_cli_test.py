"""``situ test``: tests of policies run, and what was expected stands beside what was found."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.conftest import Situ

FILES = {
    "situ.yaml": "version: 1\nname: building\n",
    "types/events.yaml": "events:\n  Sighting: {who: string, at: Point m}\n",
    "ontology.yaml": """
concepts:
  person: {id: string, status: string, position: Point m}
  room: {id: string, security: string, area: Box m}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within: {between: [person.position, person.position], function: within, parameter: {name: limit, unit: m}}
""",
    "sources/building.yaml": """
pull:
  persons: {csv: people.csv, columns: {nr: string, role: string}, concept: person, key: nr, attributes: {status: role}}
  rooms: {csv: rooms.csv, columns: {id: string, security: string, area: Box m}, concept: room, key: id}
push:
  seen: {event: Sighting, concept: person, id: who, attribute: position, value: at}
""",
    "people.csv": "nr,role\ng1,guest\ng2,guest\ne1,employee\n",
    "policies/unaccompanied-guest.dpl": """policy unaccompanied-guest
window 5 s
concepts
  person A (status = 'guest')
  person B (status = 'employee')
  room   R (security = 'restricted')
conditions
  A is inside R
  A is not within 5 m of B or B is not inside R
actions
  log "alone"
""",
    "policies/unaccompanied-guest.test.yaml": """
given:
  events:
    - {at: 0 s, type: Sighting, data: {who: g1, at: {x: 1, y: 1}}}
    - {at: 1 s, type: Sighting, data: {who: g2, at: {x: 11, y: 1}}}
    - {at: 2 s, type: Sighting, data: {who: e1, at: {x: 12, y: 1}}}
  pull:
    persons: {file: ../people.csv}
    rooms:
      - {id: r1, security: restricted, area: {x1: 0, y1: 0, x2: 9, y2: 9}}
      - {id: r2, security: restricted, area: {x1: 10, y1: 0, x2: 19, y2: 9}}
expect:
  - {at: 5 s, bindings: {A: g1, R: r1}}
""",
}


@pytest.fixture
def building(tmp_path: Path) -> Path:
    folder = tmp_path / "building"
    for name, content in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    return folder


def rewrite(building: Path, old: str, new: str) -> None:
    file = building / "policies" / "unaccompanied-guest.test.yaml"
    assert old in file.read_text()
    file.write_text(file.read_text().replace(old, new))


@pytest.mark.parametrize("engine", ["edge", "reference"])
def test_a_test_that_passes_is_a_line(situ: Situ, building: Path, engine: str) -> None:
    ran = situ("test", "--engine", engine, cwd=building / "policies")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == "passed  policies/unaccompanied-guest.test.yaml\n1 test · all passed\n"
    named = situ("test", "unaccompanied-guest", "-v", "-q", cwd=building)
    assert (named.code, named.out.splitlines()[0]) == (0, "passed  policies/unaccompanied-guest.test.yaml")
    assert [line.split() for line in named.out.splitlines()[1:3]] == [
        ["policy", "expected", "found"],
        "ok unaccompanied-guest 5 s, A = g1, R = r1 5 s, A = g1, R = r1".split(),
    ]


def test_spark_judges_as_the_edge_does(situ: Situ, building: Path) -> None:
    right = (building / "policies" / "unaccompanied-guest.test.yaml").read_text()
    wrong = right.replace("- {at: 5 s, bindings: {A: g1, R: r1}}", "- {policy: unaccompanied-guest, bindings: {A: g2}}")
    assert wrong != right
    (building / "policies" / "wrong.test.yaml").write_text(wrong)
    (building / "policies" / "broken.test.yaml").write_text("given: {}\n")
    at_edge, on_spark = (situ("test", "--json", "--engine", engine, cwd=building) for engine in ("edge", "spark"))
    assert (on_spark.code, on_spark.data) == (1, at_edge.data)
    assert [each["passed"] for each in on_spark.data["tests"]] == [False, True, False]


def test_without_java_it_says_what_to_do(situ: Situ, building: Path, tmp_path: Path) -> None:
    ran = situ("test", "--engine", "spark", cwd=building, env={"JAVA_HOME": str(tmp_path / "nowhere")})
    assert (ran.code, ran.out) == (5, "")
    assert "error N103: The Spark engine cannot start: no Java runtime was found" in ran.err


def test_what_differs_is_shown_beside_each_other(situ: Situ, building: Path) -> None:
    rewrite(building, "{at: 5 s, bindings: {A: g1, R: r1}}", "{at: 5 s, bindings: {A: g2}}\n  - {at: 6 s, closed: 9 s}")
    ran = situ("test", cwd=building)
    assert (ran.code, ran.err) == (1, "")
    lines = ran.out.splitlines()
    assert lines[0] == "FAILED  policies/unaccompanied-guest.test.yaml"
    assert [line.split()[0] for line in lines[2:4]] == ["no", "no"]
    assert "A = g2" in ran.out
    assert "nothing" in ran.out
    assert lines[-1] == "1 test · 1 failed"


def test_tables_that_a_failed_test_does_not_give_are_named(situ: Situ, building: Path) -> None:
    rewrite(building, "    persons: {file: ../people.csv}\n", "")
    ran = situ("test", cwd=building)
    assert ran.code == 1
    assert "no rows are given of `persons`: write them under `given`, `pull`" in ran.out
    assert situ("test", "--json", cwd=building).data["tests"][0]["empty"] == ["persons"]


def test_the_answer_for_programs(situ: Situ, building: Path) -> None:
    rewrite(building, "{A: g1, R: r1}", "{A: g2}")
    ran = situ("test", "--json", cwd=building)
    assert ran.code == 1
    [test] = ran.data["tests"]
    assert (test["file"], test["passed"], test["late"]) == ("policies/unaccompanied-guest.test.yaml", False, [])
    [line] = test["lines"]
    assert line["expected"]["bindings"] == {"A": "g2"}
    assert line["found"]["bindings"] == {"A": "g1", "R": "r1"}
    assert line["found"]["at"] == "5 s"


def test_late_events_are_named(situ: Situ, building: Path) -> None:
    rewrite(building, "{who: e1, at: {x: 12, y: 1}}}", "{who: e1, at: {x: 12, y: 1}}, received: 30 s}")
    ran = situ("test", cwd=building)
    assert ran.code == 1
    assert "late, not looked at: e3, Sighting at 2 s, received at 30 s" in ran.out


def test_a_test_that_is_not_understood_has_a_place(situ: Situ, building: Path) -> None:
    rewrite(building, "type: Sighting, data: {who: g1,", "type: Siting, data: {who: g1,")
    ran = situ("test", cwd=building)
    assert ran.code == 1
    assert ran.out.startswith(
        "FAILED  policies/unaccompanied-guest.test.yaml\npolicies/unaccompanied-guest.test.yaml:4:"
    )
    assert "error INT701" in ran.out


def test_files_stay_inside_the_project_and_have_a_form(situ: Situ, building: Path) -> None:
    (building.parent / "people.csv").write_text(FILES["people.csv"])
    rewrite(building, "../people.csv", "../../people.csv")
    assert "cannot stand for a list here: it is outside of the project" in situ("test", cwd=building).out
    rewrite(building, "../../people.csv", "people.txt")
    assert "error S197" in situ("test", cwd=building).out


def test_wrong_usage(situ: Situ, building: Path) -> None:
    assert situ("test", "nobody", cwd=building).code == 1
    assert "S195" in situ("test", "unaccompanied-gest", cwd=building).err
    assert situ("test", "policies/none.test.yaml", cwd=building).code == 2
    assert situ("test", "--engine", "steam", cwd=building).code == 2
    (building / "policies" / "unaccompanied-guest.test.yaml").unlink()
    ran = situ("test", cwd=building)
    assert (ran.code, ran.out) == (0, "There are no tests: put them beside policies, as policies/NAME.test.yaml.\n")


def test_what_a_test_gives_can_be_explained(situ: Situ, building: Path) -> None:
    [test] = situ("test", "--json", cwd=building).data["tests"]
    id = test["lines"][0]["found"]["situation"]
    ran = situ("explain", "detection", id[:8], "--test", "unaccompanied-guest", cwd=building)
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith(
        f"unaccompanied-guest: A = g1, R = r1\n  detection {id}\n  activated at 0 s, settled at 5 s\n"
    )
    assert "    A is not within 5 m of B: nothing to the contrary" in ran.out
    about = ("explain", "miss", "--policy", "unaccompanied-guest", "--test", "unaccompanied-guest", "--bind")
    missed = situ(*about, "A=g2", "--at", "6s", "--json", cwd=building)
    assert missed.code == 0
    assert missed.data["failed"] == [
        {
            "clause": "A is not within 5 m of B or B is not inside R",
            "refuted": ["A is not within 5 m of B", "B is not inside R"],
            "lacks": [],
        }
    ]
    assert situ(*about, "A=g1", "--at", "5s", cwd=building).code == 1  # it was detected
    assert situ(*about, "A", "--at", "5s", cwd=building).code == 2
    assert "S152" in situ(*about, "Q=g1", "--at", "5s", cwd=building).err
    assert "S198" in situ("explain", "detection", "abc", "--test", "unaccompanied-guest", cwd=building).err
