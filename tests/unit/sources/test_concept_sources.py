"""Sources of concepts: tables and events that tell of instances, held against the ontology, and put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from datetime import timedelta
from textwrap import dedent
from typing import Any, ClassVar

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problem, Problems
from situ.policies.actions.load import load_actions
from situ.policies.ontology.model import ConceptAttribute, Ontology
from situ.policies.source_coverage import (
    attributes_needed,
    check_sources,
    cover_attributes,
    fed_attributes,
    provided_attributes,
)
from situ.sources import Push, Source, load_pushes, load_sources, make_table
from situ.sources.load import pushes_from_json, sources_from_json
from situ.sources.model import pushes_as_json, sources_as_json
from situ.stages.detect.detection_plan import InstanceTables
from tests.domains import UNACCOMPANIED_GUEST, building, policy
from tests.ontologies import ontology_of
from tests.types_files import types_of

TYPES = types_of(
    """
    types:
      PersonId(string): {}
      Place: {room: string, at: Point m}
    events:
      Sighting: {who: PersonId, at: Point m, nr: int, place: optional Place, noted: optional timestamp}
      Special(Sighting): {}
    """
)
ONTOLOGY = """
    concepts:
      person: {id: string, status: string, position: Point m, age: int}
      room: {id: string, security: string, area: Box m}
      visitor(person): {host: string}
    groups: {known: [person, room]}
"""


def load(text: str, ontology: str = ONTOLOGY) -> tuple[Mapping[str, Source], Mapping[str, Push], list[Problem]]:
    problems = Problems()
    document = parse_yaml(dedent(text), "sources/a.yaml")
    sources = load_sources([document], TYPES, problems)
    pushes = load_pushes([document], TYPES, problems)
    check_sources(ontology_of(ontology), sources, pushes, TYPES, problems)
    return sources, pushes, list(problems.sorted())


def faults(text: str) -> list[str]:
    return [each.code.code for each in load(text)[2]]


SEEN = "{event: Sighting, concept: person, id: who, attribute: position, value: at}"


class TestPush:
    def test_all_that_can_be_said(self) -> None:
        more = "time: noted, lateness: 2 s, idle: 10 s, keep: last 10 min"
        _, pushes, problems = load(f"push: {{seen: {SEEN[:-1]}, {more}}}}}")
        assert not problems
        assert pushes["seen"] == Push(
            name="seen",
            event="Sighting",
            concept="person",
            id=("who",),
            attribute="position",
            value=("at",),
            time=("noted",),
            lateness=timedelta(seconds=2),
            idle=timedelta(seconds=10),
            keep=timedelta(minutes=10),
        )
        assert fed_attributes(pushes.values()) == {ConceptAttribute(concept="person", attribute="position")}
        assert pushes_from_json(pushes_as_json(pushes), TYPES) == pushes

    def test_paths_lead_into_structs(self) -> None:
        _, pushes, problems = load(f"push: {{seen: {SEEN.replace('value: at', 'value: place.at')}}}")
        assert not problems
        assert pushes["seen"].value == ("place", "at")
        assert pushes["seen"].lateness is None

    @pytest.mark.parametrize(
        ("old", "new", "found"),
        [
            ("Sighting", "Sightin", ["S144"]),
            ("Sighting", "PersonId", ["S144"]),
            ("concept: person", "concept: persn", ["S121"]),
            ("concept: person", "concept: known", ["S142"]),
            ("attribute: position", "attribute: positon", ["S122"]),
            ("attribute: position", "attribute: id", ["S147"]),
            ("attribute: position", "attribute: status", ["S146"]),
            ("value: at", "value: place.att", ["S145"]),
            ("value: at", "value: who.at", ["S145"]),
            ("value: at", "value: ''", ["S145"]),
            ("id: who", "id: nr", ["S146"]),
            ("id: who, ", "", ["P104"]),
            ("value: at", "value: at, time: noticed", ["S145"]),
            ("value: at", "value: at, time: who", ["S148"]),
            ("value: at", "value: at, time: place", ["S148"]),
            (
                "event: Sighting, concept: person, id: who, attribute: position, value: at",
                "event: situ.situation.opened, concept: person, id: policy, attribute: age, value: policy, time: start",
                ["S149"],
            ),
            ("value: at", "value: at, lateness: 3", ["P121"]),
            ("value: at", "value: at, keep: 10 min", ["P105"]),
            ("value: at", "value: at, keep: last year", ["P121"]),
            ("value: at", "value: at, kep: last 1 s", ["P103"]),
        ],
    )
    def test_what_is_wrong(self, old: str, new: str, found: list[str]) -> None:
        assert faults(f"push: {{seen: {SEEN.replace(old, new)}}}") == found

    def test_names_are_names(self) -> None:
        assert faults(f"push: {{'1': {SEEN}}}") == ["INT110"]

    def test_messages_lead_on(self) -> None:
        (problem,) = load(f"push: {{seen: {SEEN.replace('value: at', 'value: place.att')}}}")[2]
        assert problem.message == ("`place.att` is not in events of type `Sighting`: Place has no attribute `att`.")
        assert problem.hint == "Did you mean `at`?"


PERSONS = "{csv: a.csv, columns: {nr: long, role: string, age: int, x: string}, key: nr, concept: person"


class TestPull:
    def test_columns_of_the_same_name_need_not_be_listed(self) -> None:
        sources, _, problems = load(f"pull: {{p: {PERSONS}, attributes: {{status: role}}}}}}")
        assert not problems
        concept = ontology_of(ONTOLOGY).concepts["person"]
        assert dict(provided_attributes(sources["p"], concept)) == {"status": "role", "age": "age"}
        assert sources_from_json(sources_as_json(sources), TYPES) == sources

    def test_an_xml_file(self) -> None:
        text = """
            pull:
              rooms:
                xml: floor.xml
                rows: //room
                columns: {id: {type: string, xpath: "@id"}, area: {type: Box m, xpath: box}, security: string}
                concept: room
                key: id
        """
        sources, _, problems = load(text)
        assert not problems
        assert sources["rooms"].rows == "//room"
        assert sources["rooms"].paths == (("area", "box"), ("id", "@id"))
        assert sources_from_json(sources_as_json(sources), TYPES) == sources

    @pytest.mark.parametrize(
        ("body", "found"),
        [
            ("{csv: a.csv, columns: {nr: string}, concept: person}", ["S140"]),
            ("{csv: a.csv, columns: {nr: string, t: string}, key: [nr, t], concept: person}", ["S140"]),
            ("{csv: a.csv, columns: {nr: double}, key: nr, concept: person}", ["S140"]),
            ("{csv: a.csv, columns: {nr: string, t: date}, key: nr, as_of: t, concept: person}", ["S140"]),
            ("{csv: a.csv, columns: {nr: string, x: string}, key: nr, concept: person, attributes: {id: x}}", ["S140"]),
            ("{csv: a.csv, columns: {nr: string}, key: nr, concept: perso}", ["S121"]),
            ("{csv: a.csv, columns: {nr: string}, key: nr, concept: known}", ["S142"]),
            ("{csv: a.csv, columns: {nr: string}, key: nr, attributes: {status: nr}}", ["P104"]),
            ("{csv: a.csv, columns: {nr: string}, key: nr, concept: person, attributes: {status: rol}}", ["S103"]),
            (
                "{csv: a.csv, columns: {nr: string, r: string}, key: nr, concept: person, attributes: {stat: r}}",
                ["S122"],
            ),
            ("{csv: a.csv, columns: {nr: string, age: string}, key: nr, concept: person}", ["S143"]),
            ("{csv: a.csv, columns: {nr: string, position: Point ft}, key: nr, concept: person}", ["S143"]),
            ("{xml: a.xml, columns: {nr: string}}", ["P104"]),
            ("{csv: a.csv, rows: a, columns: {nr: string}}", ["P103"]),
            ("{xml: a.xml, rows: 'a[', columns: {nr: string}}", ["S141"]),
            ("{xml: a.xml, rows: '//a/@b', columns: {nr: string}}", ["S141"]),
            ("{xml: a.xml, rows: 'x:a', columns: {nr: string}}", ["S141"]),
            ("{xml: a.xml, rows: a, columns: {nr: {type: string, xpath: //b}}}", ["S141"]),
            ("{xml: a.xml, rows: a, columns: {nr: {type: string, xpath: count(b)}}}", ["S141"]),
            ("{csv: a.csv, columns: {nr: {type: string, xpath: a}}}", ["P103"]),
        ],
    )
    def test_what_is_wrong(self, body: str, found: list[str]) -> None:
        assert faults(f"pull: {{p: {body}}}") == found

    def test_what_events_bring_is_not_taken_from_tables(self) -> None:
        table = "{csv: a.csv, columns: {nr: string, position: Point m}, key: nr, concept: person}"
        text = f"pull: {{p: {table}}}\npush: {{seen: {SEEN}}}"
        (problem,) = load(text)[2]
        assert (problem.code.code, problem.is_error) == ("S202", False)


# ── which tables, and what is in them ─────────────────────────────────────────────────────────────


def source(name: str, concept: str, *columns: str, key: str = "id") -> Source:
    found = load(
        f"pull: {{{name}: {{csv: a.csv, columns: {{{', '.join(columns)}}}, key: {key}, concept: {concept}}}}}",
    )[0]
    return found[name]


def ends(*texts: str) -> list[ConceptAttribute]:
    return [
        ConceptAttribute(concept=concept, attribute=attribute)
        for concept, _, attribute in (each.partition(".") for each in texts)
    ]


class TestCover:
    ontology: Ontology = ontology_of(ONTOLOGY)
    all: ClassVar = {
        "ages": source("ages", "person", "id: string", "age: int"),
        "staff": source("staff", "person", "id: string", "status: string"),
        "whole": source("whole", "person", "id: string", "status: string", "age: int"),
        "hosts": source("hosts", "visitor", "id: string", "host: string"),
    }

    def test_one_table_in_place_of_two(self) -> None:
        found = cover_attributes(
            ends("person.status", "person.age"), self.ontology, {k: v for k, v in self.all.items() if k != "hosts"}
        )
        assert dict(found.sources) == {"person": ("whole",)}
        assert not found.missing

    def test_the_first_by_name_among_equals(self) -> None:
        assert dict(cover_attributes(ends("person.age"), self.ontology, self.all).sources)["person"] == ("ages",)

    def test_more_special_concepts_have_instances_of_their_own_of_which_general_tables_know(self) -> None:
        found = cover_attributes(ends("person.status"), self.ontology, self.all)
        assert dict(found.sources) == {"person": ("staff",), "visitor": ("hosts", "staff")}
        assert found.tables == {"hosts", "staff"}

    def test_what_nobody_provides(self) -> None:
        found = cover_attributes(ends("person.position", "room.id", "visitor.host"), self.ontology, self.all)
        assert found.missing == set(ends("person.position", "room.id"))

    def test_nothing_is_read_for_nothing(self) -> None:
        assert cover_attributes([], self.ontology, self.all).tables == frozenset()


def instances(ontology: Ontology, sources: Mapping[str, Source], needed: Sequence[str], rows: Mapping[str, Any]) -> Any:
    tables = InstanceTables(ends(*needed), ontology, sources)
    assert dict(tables.keyed) == {name: {(sources[name].key, "")} for name in tables.cover.tables}
    read = {
        name: make_table(each, {column.name: [row.get(column.name) for row in rows[name]] for column in each.columns})
        for name, each in sources.items()
        if name in tables.cover.tables
    }
    found = tables.of(read)
    assert tables.of(dict(read)) is found
    for name, table in read.items():
        changed = tables.of({**read, name: copy(table)})
        assert changed is not found
        assert changed == found
    return {concept: {identity: dict(known) for identity, known in each.items()} for concept, each in found.items()}


class TestInstances:
    def test_tables_of_one_concept_are_put_together_by_identity(self) -> None:
        sources = {
            "ages": source("ages", "person", "nr: long", "age: optional int", key="nr"),
            "staff": source("staff", "person", "id: string", "status: string"),
        }
        rows = {
            "ages": [{"nr": 1, "age": 40}, {"nr": 2}],
            "staff": [{"id": "2", "status": "guest"}, {"id": "3", "status": "x"}],
        }
        assert instances(ontology_of(ONTOLOGY), sources, ["person.age", "person.status"], rows) == {
            "person": {
                "1": {"id": "1", "age": 40},
                "2": {"id": "2", "status": "guest"},
                "3": {"id": "3", "status": "x"},
            }
        }

    def test_general_tables_tell_of_special_instances(self) -> None:
        sources = {name: TestCover.all[name] for name in ("staff", "hosts")}
        rows = {
            "staff": [{"id": "1", "status": "guest"}, {"id": "2", "status": "boss"}],
            "hosts": [{"id": "1", "host": "2"}],
        }
        assert instances(ontology_of(ONTOLOGY), sources, ["visitor.status", "visitor.host"], rows) == {
            "visitor": {"1": {"id": "1", "host": "2", "status": "guest"}}
        }

    def test_containers_follow_over_any_depth(self) -> None:
        ontology = ontology_of(
            """
            concepts: {building: {id: string}, floor: {id: string}, room: {id: string}, site: {id: string}}
            containers: {room: floor, floor: building, building: site}
            """
        )
        problems = Problems()
        text = """
            pull:
              rooms: {csv: a.csv, columns: {id: string, floor: string}, key: id, concept: room}
              floors: {csv: b.csv, columns: {id: string, building: string}, key: id, concept: floor}
              buildings: {csv: c.csv, columns: {id: string, site: string}, key: id, concept: building}
        """
        sources = load_sources([parse_yaml(dedent(text), "a")], TYPES, problems)
        check_sources(ontology, sources, {}, TYPES, problems)
        assert not list(problems)
        rows = {
            "rooms": [{"id": "r1", "floor": "f1"}, {"id": "r2", "floor": "f9"}],
            "floors": [{"id": "f1", "building": "b1"}],
            "buildings": [{"id": "b1", "site": "s1"}],
        }
        found = instances(ontology, sources, ["room.site"], rows)
        assert found["room"] == {
            "r1": {"id": "r1", "floor": "f1", "building": "b1", "site": "s1"},
            "r2": {"id": "r2", "floor": "f9"},
        }


def test_policies_say_what_they_need() -> None:
    assert attributes_needed(policy(UNACCOMPANIED_GUEST, building())) == set(
        ends("person.status", "room.security", "room.area", "room.id")
    )


def test_actions_say_what_they_need() -> None:
    problems = Problems()
    text = "actions: {raise alarm: {notify: desk, text: '{A.host} {A} {policy} {1}'}}"
    actions = load_actions([parse_yaml(text, "actions.yaml")], TYPES, problems)
    assert not list(problems)
    written = policy(UNACCOMPANIED_GUEST, building())
    assert attributes_needed(written, actions) - attributes_needed(written) == set(ends("person.host"))
