"""Tests of policies: how they are read, run and judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from situ.cli.project import open_project
from situ.event.instants import print_instant
from situ.explain.detection import missed_in_test
from situ.explain.match_report import miss_lines
from situ.explain.policy_match import ExplainedMiss
from situ.lang.documents import parse_yaml
from situ.lang.documents.nodes import DocumentLimits
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.resolve import load_types
from situ.policies.check.domain import Domain
from situ.policies.ontology.load import load_ontology
from situ.policies.policy_tests import (
    START,
    ExpectedSituation,
    FoundSituation,
    PolicyTest,
    PolicyTestProject,
    compare,
    differences,
    load_policy_test,
)
from situ.policies.source_coverage import fed_attributes
from situ.project.policy_tests import find_tests, load_tests, run_tests
from situ.settings.model import Defaults
from situ.sources.load import load_pushes, load_sources
from situ.sources.model import Source
from situ.sources.table import Table, make_table
from situ.stages.detect.detection_plan import DetectionPlan
from situ.stages.detect.policy_tests import PolicyTestOutcome, run_policy_test, run_policy_test_by_definition, tables_of
from tests.domains import UNACCOMPANIED_GUEST, policy
from tests.guarded import FILES
from tests.project_files import write

TYPES = """
events:
  Sighting: {who: string, at: Point m, measured: optional timestamp}
  BadgeSighting(Sighting): {badge: string}
  Entered: {who: string, place: Point m}
  Other: {who: string}
"""
ONTOLOGY = """
concepts:
  person: {id: string, status: string, position: Point m}
  room: {id: string, security: string, area: Box m}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within: {between: [person.position, person.position], function: within, parameter: {name: distance, unit: m}, symmetric: true}
"""  # noqa: E501
SOURCES = """
pull:
  persons: {csv: people.csv, columns: {nr: string, role: string}, concept: person, key: nr, attributes: {status: role}}
  rooms: {csv: rooms.csv, columns: {id: string, security: string, area: Box m}, concept: room, key: id}
push:
  seen: {event: Sighting, concept: person, id: who, attribute: position, value: at}
  entered: {event: Entered, concept: person, id: who, attribute: position, value: place, keep: last 1 min}
"""
SECOND = 1_000_000


@dataclass
class Files:
    """Files that a test names."""

    texts: Mapping[str, bytes] = field(default_factory=dict)
    tables: Mapping[str, Callable[[Source], Table]] = field(default_factory=dict)

    def text(self, file: str) -> bytes:
        return self.texts[file]

    def table(self, source: Source, file: str) -> Table:
        return self.tables[file](source)


class Project:
    def __init__(self) -> None:
        problems = Problems()
        self.types = load_types([parse_yaml(TYPES, "types.yaml")], problems)
        self.ontology = load_ontology([parse_yaml(ONTOLOGY, "ontology.yaml")], self.types, {}, problems)
        documents = [parse_yaml(SOURCES, "sources.yaml")]
        self.sources = load_sources(documents, self.types, problems)
        self.pushes = load_pushes(documents, self.types, problems)
        problems.raise_errors()
        domain = Domain(ontology=self.ontology, fed=fed_attributes(self.pushes.values()), types=self.types)
        alone = policy(UNACCOMPANIED_GUEST, domain)
        there = policy(
            "policy there\nconcepts\nperson A\nroom R\nconditions\nA is inside R\nactions\nraise alarm\n", domain
        )
        self.policies = {each.name: each for each in (alone, there)}

    def load(self, text: str, files: Files | None = None, name: str = "unaccompanied-guest") -> PolicyTest:
        problems = Problems()
        test = self.read(text, problems, files, name)
        problems.raise_errors()
        assert test is not None
        return test

    def read(
        self, text: str, problems: Problems, files: Files | None = None, name: str = "unaccompanied-guest"
    ) -> PolicyTest | None:
        around = PolicyTestProject(types=self.types, sources=self.sources, policies=self.policies)
        document = parse_yaml(text, f"policies/{name}.test.yaml")
        return load_policy_test(document, around, files or Files(), problems)

    def run(self, test: PolicyTest, how: Callable[..., PolicyTestOutcome] = run_policy_test) -> PolicyTestOutcome:
        chosen = [self.policies[name] for name in test.policies]
        detecting = DetectionPlan(chosen, self.ontology, self.pushes, self.sources, self.types, Defaults())
        return how(test, detecting, tables_of(test, detecting, self.sources), self.types)


@pytest.fixture(scope="module")
def project() -> Project:
    return Project()


GIVEN = """
given:
  events:
    - {at: 0 s, type: Sighting, data: {who: g1, at: {x: 1, y: 1}}}
    - {at: 1 s, type: Sighting, data: {who: g2, at: {x: 11, y: 1}}}
    - {at: 2 s, type: BadgeSighting, data: {who: e1, at: {x: 12, y: 1}, badge: b7}}
    - {at: 7 s, type: Sighting, data: {who: g1, at: {x: 2, y: 1}}}
  pull:
    persons: [{nr: g1, role: guest}, {nr: g2, role: guest}, {nr: e1, role: employee}]
    rooms:
      - {id: r1, security: restricted, area: {x1: 0, y1: 0, x2: 9, y2: 9}}
      - {id: r2, security: restricted, area: {x1: 10, y1: 0, x2: 19, y2: 9}}
"""


@pytest.mark.parametrize("how", [run_policy_test, run_policy_test_by_definition])
def test_a_test_passes(project: Project, how: Callable[..., PolicyTestOutcome]) -> None:
    test = project.load(GIVEN + "expect: [{at: 5 s, bindings: {A: g1, R: r1}, detections: 2, closed: 22 s}]")
    tried = project.run(test, how)
    assert [line.passed for line in compare(test.expect, tried.found)] == [True]
    assert tried.late == ()
    assert len(tried.observations) == 4


@pytest.mark.parametrize("how", [run_policy_test, run_policy_test_by_definition])
def test_the_clock_may_stand_before_all_is_settled(project: Project, how: Callable[..., PolicyTestOutcome]) -> None:
    def found(clock: str) -> list[tuple[float, int, float | None]]:
        given = GIVEN.replace("given:", f"given:\n  clock: {clock}")
        tried = project.run(project.load(given + "expect: []"), how)
        return [
            ((each.at - START) / SECOND, each.detections, each.closed and (each.closed - START) / SECOND)
            for each in tried.found
        ]

    # Engines wait for what may come late, and count silence only after their idle time.
    settled = {"18.1 s": [(5.0, 2, None)], "60 s": [(5.0, 2, 22.0)]}
    for clock, expected in settled.items():
        assert found(clock) == expected
    assert found("7.1 s") == ([(5.0, 1, None)] if how is run_policy_test_by_definition else [])


@pytest.mark.parametrize("how", [run_policy_test, run_policy_test_by_definition])
def test_events_may_say_themselves_when_something_happened(how: Callable[..., PolicyTestOutcome]) -> None:
    """A sensor that sends what it measured in one go, half a minute later; what says no time tells nothing."""
    project = Project()
    project.pushes = {**project.pushes, "seen": replace(project.pushes["seen"], time=("measured",))}
    lines = []
    for line in GIVEN.splitlines():
        if given := re.search(r"{at: (\d+) s", line):
            measured = print_instant(START + int(given[1]) * SECOND)
            lines.append(line.replace(given[0], "{at: 30 s").replace("data: {", f'data: {{measured: "{measured}", '))
        else:
            lines.append(line)
    unsaid = "    - {at: 30 s, type: Sighting, data: {who: e1, at: {x: 1, y: 1}}}\n  pull:"
    given = "\n".join(lines).replace("  pull:", unsaid)
    test = project.load(given + "\nexpect: [{at: 5 s, bindings: {A: g1, R: r1}, detections: 2, closed: 22 s}]")
    tried = project.run(test, how)
    assert [line.passed for line in compare(test.expect, tried.found)] == [True]
    assert tried.late == ()
    assert len(tried.observations) == 4


def test_events_that_come_too_late_are_named(project: Project) -> None:
    late = "    - {at: 1 s, type: Sighting, data: {who: g2, at: {x: 1, y: 1}}, received: 12 s}\n  pull:"
    test = project.load(GIVEN.replace("  pull:", late) + "expect: []")
    tried = project.run(test)
    assert [(each.id, each.type) for each in tried.late] == [("e5", "Sighting")]
    assert project.run(test, run_policy_test_by_definition).late == ()


@pytest.mark.parametrize("how", [run_policy_test, run_policy_test_by_definition])
def test_a_value_that_is_kept_stands_until_it_is_replaced(
    project: Project, how: Callable[..., PolicyTestOutcome]
) -> None:
    test = project.load(
        """
policies: [there]
given:
  events:
    - {at: 0 s, type: Entered, data: {who: g1, place: {x: 1, y: 1}}}
    - {at: 0 s, type: Entered, data: {who: g2, place: {x: 1, y: 1}}}
    - {at: 18 s, type: Entered, data: {who: g2, place: {x: 99, y: 1}}}
  pull: {rooms: [{id: r1, security: open, area: {x1: 0, y1: 0, x2: 9, y2: 9}}]}
expect:
  - {policy: there, at: 0 s, bindings: {A: g1}, detections: 13, closed: 70 s}
  - {policy: there, at: 0 s, bindings: {A: g2}, detections: 4, closed: 25 s}
"""
    )
    assert [line.passed for line in compare(test.expect, project.run(test, how).found)] == [True, True]


def test_files_stand_for_lists(project: Project) -> None:
    files = Files(
        texts={
            "events.jsonl": b'{"at": "0 s", "type": "Sighting", "data": {"who": "g1", "at": {"x": 1, "y": 1}}}\n',
            "rooms.yaml": b"- {id: r1, security: restricted, area: {x1: 0, y1: 0, x2: 9, y2: 9}}\n",
        },
        tables={"people.csv": lambda source: make_table(source, {"nr": ["g1"], "role": ["guest"]})},
    )
    test = project.load(
        """
given: {events: {file: events.jsonl}, pull: {rooms: {file: rooms.yaml}, persons: {file: people.csv}}}
expect: [{at: 5 s}]
""",
        files,
    )
    assert [line.passed for line in compare(test.expect, project.run(test).found)] == [True]


def test_which_policies_a_test_is_about(project: Project) -> None:
    assert project.load("given: {}\nexpect: []").policies == ("unaccompanied-guest",)
    assert project.load("given: {}\nexpect: [{policy: there}]", name="other").policies == ("there",)
    assert project.load("policies: [there]\ngiven: {}\nexpect: []").policies == ("unaccompanied-guest", "there")


def test_instants_and_ids_may_be_given(project: Project) -> None:
    test = project.load(
        "given: {events: [{at: 2026-11-01T08:00:00Z, type: Other, data: {who: x}, id: e, source: s}]}\nexpect: []"
    )
    [event] = test.events
    assert (event.time, event.received, event.id, event.source) == (1793520000 * SECOND,) * 2 + ("e", "s")


@pytest.mark.parametrize(
    ("text", "code", "line"),
    [
        ("given: {}\nexpect: [{policy: ther}]", "S195", 2),
        ("given: {}\npolicies: [nobody]\nexpect: []", "S195", 2),
        ("given: {}\nexpect: [{bindings: {Q: x}}]", "S152", 2),
        ("given: {pull: {person: []}}\nexpect: []", "S196", 1),
        ("given: {pull: {persons: [{nr: 5, role: guest}]}}\nexpect: []", "S112", 1),
        ("given:\n  pull: {persons: [{name: x}]}\nexpect: []", "P103", 2),
        ("given: {events: {file: events.csv}}\nexpect: []", "S197", 1),
        ("given: {events: [{at: soon, type: Other}]}\nexpect: []", "P121", 1),
        ("given: {events: [{at: 1 s, type: Othr}]}\nexpect: []", "INT701", 1),
        ("given: {events: [{at: 1 s, type: Other, data: {who: 5}}]}\nexpect: []", "INT703", 1),
        ("given: {}", "P104", 1),
    ],
)
def test_what_is_wrong_has_a_place(project: Project, text: str, code: str, line: int) -> None:
    problems = Problems()
    assert project.read(text, problems) is None
    [problem] = problems
    assert (problem.code.code, problem.location and problem.location.line) == (code, line), problem


def test_a_test_without_a_policy_is_refused(project: Project) -> None:
    with pytest.raises(SituError) as refused:
        project.load("given: {}\nexpect: []", name="there-")
    assert [(each.code.code, _nearest(each)) for each in refused.value.problems] == [("S195", ("there",))]


def _nearest(problem: Problem) -> tuple[str, ...]:
    found: tuple[str, ...] = problem.values["nearest"]
    return found


def situation(at: int, bindings: str = "1", closed: int | None = None, policy: str = "p") -> FoundSituation:
    return FoundSituation(id=f"{at}", policy=policy, at=at, bindings=(("A", bindings),), closed=closed, detections=1)


def test_every_expectation_is_held_against_what_is_most_like_it() -> None:
    near, far = situation(5), situation(9, "2")
    expected = [
        ExpectedSituation(policy="p", at=5, bindings=(("A", "1"),)),
        ExpectedSituation(policy="p", at=8, bindings=(("A", "2"),)),
        ExpectedSituation(policy="q"),
    ]
    lines = compare(expected, [far, near, situation(20, "3")])
    assert sorted((line.passed, line.expected is not None, line.found is not None) for line in lines) == [
        (False, False, True),
        (False, True, False),
        (False, True, True),
        (True, True, True),
    ]
    assert differences(expected[1], far) == ["at"]
    assert differences(ExpectedSituation(policy="p", closed=7, detections=2, bindings=(("B", "x"),)), near) == [
        "B",
        "closed",
        "detections",
    ]


def test_a_source_that_was_never_heard_of_is_waited_for_until_it_is_idle(project: Project) -> None:
    """Two publishers begin together, and the second is 8 s behind the first: nothing of it is late."""
    behind = "    - {at: 1 s, type: Entered, data: {who: g2, place: {x: 1, y: 1}}, received: 9 s}\n  pull:"
    test = project.load(GIVEN.replace("  pull:", behind) + "expect: []")
    assert project.run(test).late == ()
    assert project.run(test).found == project.run(test, run_policy_test_by_definition).found
    later = project.load(GIVEN.replace("  pull:", behind.replace("9 s}", "13 s}")) + "expect: []")
    assert [each.id for each in project.run(later).late] == ["e5"]


def sightings(count: int, room: int = 1) -> bytes:
    line = b'{"at": "%d s",%s"type": "Sighting", "data": {"who": "g1", "at": {"x": 1, "y": 1}}}\n'
    return b"".join(line % (number, b" " * room) for number in range(count))


def test_lines_of_events_are_read_to_the_last(tmp_path: Path) -> None:
    """More of them than a document may have bytes; each is counted, and nothing passes on a part of them."""
    write(
        tmp_path,
        {**FILES, "policies/unaccompanied-guest.test.yaml": "given: {events: {file: many.jsonl}}\nexpect: []\n"},
    )
    lines = sightings(600, room=8000)
    assert len(lines) > DocumentLimits().size
    (tmp_path / "policies" / "many.jsonl").write_bytes(lines)
    opened = open_project(tmp_path)
    (tested,) = load_tests(opened, find_tests(opened, []))
    assert tested.test is not None
    assert len(tested.test.events) == 600


def test_what_is_wrong_in_lines_is_shown_where_it_stands(project: Project) -> None:
    given = sightings(2) + b"\n{oops\n" + sightings(1) + sightings(1).replace(b"Sighting", b"Siting") + b'{"at": 3}\n'
    problems = Problems()
    text = "given: {events: {file: events.jsonl}}\nexpect: []\n"
    assert project.read(text, problems, Files({"events.jsonl": given})) is None
    assert sorted((each.location.file, each.location.line) for each in problems if each.location) == [
        ("events.jsonl", 4),
        ("events.jsonl", 6),
        ("events.jsonl", 7),
        ("events.jsonl", 7),
    ]


def test_of_lines_that_are_all_wrong_the_first_hundred_are_named(project: Project) -> None:
    problems = Problems()
    text = "given: {events: {file: events.jsonl}}\nexpect: []\n"
    assert project.read(text, problems, Files({"events.jsonl": b"{oops\n" * 5000})) is None
    assert len(problems) == 100


def missed(folder: Path, test: str, who: str, second: float) -> tuple[ExplainedMiss, str]:
    write(folder, {**FILES, "policies/unaccompanied-guest.test.yaml": test})
    opened = open_project(folder)
    policy = opened.deployment.policies["unaccompanied-guest"]
    (tested,) = run_tests(opened, find_tests(opened, []))
    why = missed_in_test(opened, tested, policy, {"A": who}, START + int(second * SECOND))
    return why, "\n".join(miss_lines(policy, why))


ALONE = """
given:
  events:
    - {at: 0 s, type: Sighting, data: {who: e1, at: {x: 30, y: 5}}}
    - {at: 20 s, type: Sighting, data: {who: e1, at: {x: 30, y: 5}}}
    - {at: 1 s, type: Sighting, data: {who: g1, at: {x: 5, y: 5}}, received: %s}
  pull:
    rooms: [{id: lab, security: restricted, area: {x1: 0, y1: 0, x2: 10, y2: 10}}]
    persons: [{nr: g1, role: guest}, {nr: e1, role: employee}]
%s
expect: []
"""


def test_a_miss_in_a_test_knows_what_was_late(tmp_path: Path) -> None:
    why, text = missed(tmp_path, ALONE % ("20 s", ""), "g1", 1)
    assert not why.detected
    assert "late, not looked at: 2000-01-01T00:00:01Z  test/e3" in text


def test_a_miss_in_a_test_knows_where_its_clock_stopped(tmp_path: Path) -> None:
    given = ALONE.replace("    - {at: 20 s, type: Sighting, data: {who: e1, at: {x: 30, y: 5}}}\n", "") % ("1 s", "%s")
    why, text = missed(tmp_path / "stopped", given % "  clock: 3 s", "g1", 1)
    assert not why.detected
    assert [each.time for each in why.undecided] == [START + 6 * SECOND]
    assert "is not decided yet" in text
    why, text = missed(tmp_path / "on", given % "  clock: 1 min", "g1", 1)
    assert [each.time for each in why.detected] == [START + 6 * SECOND]
