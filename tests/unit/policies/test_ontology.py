"""Ontologies: what is written, what it means, and everything that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from textwrap import dedent
from typing import Any

import pytest

from situ.lang.expr.emit.python import compile_test, compile_value
from situ.lang.expr.scope import Definition
from situ.lang.problems import render
from situ.lang.types.model import BOOLEAN, DOUBLE
from situ.lang.units import Units
from situ.policies.ontology.load import ontology_as_json, ontology_from_json
from situ.policies.ontology.model import ConceptAttribute, Ontology
from tests.ontologies import BUILDING, NO_TYPES, faults, functions_of, load, ontology_of
from tests.types_files import types_of

METRE = Units().parse("m")
CONCEPTS = """
    concepts:
      person: {id: string, status: string, position: Point m, speed: double km/h, groups: "[string]"}
      robot: {id: string, position: Point m, at: GeoPoint, group: string}
      room: {id: string, area: Box m, limit: double m/s}
"""


def judge(definition: Definition) -> Callable[[Mapping[str, Any]], bool]:
    names = [name for name, _ in definition.parameters]
    test = compile_test(definition.body, names).call
    return lambda values: test(*(values[name] for name in names))


def part(text: str, more: str) -> str:
    return dedent(text) + dedent(more)


class TestConcepts:
    def test_attributes_are_written_as_in_types_and_may_all_be_unknown_but_the_identity(self) -> None:
        person = ontology_of().concepts["person"]
        assert [(each.name, str(each.type), str(each.unit), each.optional) for each in person.attributes] == [
            ("id", "string", "", False),
            ("status", "string", "", True),
            ("position", "Point", "m", True),
        ]

    def test_types_of_the_project_can_be_used(self) -> None:
        types = types_of("types: {PersonId(string): {}, Seat: {row: int}}")
        person = ontology_of("concepts: {person: {id: PersonId, seat: Seat}}", types=types).concepts["person"]
        assert [str(each.type) for each in person.attributes] == ["PersonId", "Seat"]

    def test_a_more_special_concept_has_all_attributes_and_is_a_member(self) -> None:
        concepts = ontology_of().concepts
        assert [each.name for each in concepts["visitor"].attributes] == ["id", "status", "position", "host"]
        assert concepts["person"].members == ("person", "visitor")
        assert concepts["visitor"].members == ("visitor",)

    def test_several_more_general_concepts_over_several_levels(self) -> None:
        concepts = ontology_of(
            """
            concepts:
              thing: {id: string}
              person(thing): {name: string}
              driver(person, insured): {}
              insured(thing): {policy: string}
            """
        ).concepts
        assert [each.name for each in concepts["driver"].attributes] == ["id", "name", "policy"]
        assert concepts["thing"].members == ("thing", "driver", "insured", "person")

    def test_a_group_has_what_its_members_have_in_common(self) -> None:
        concepts = ontology_of(part(CONCEPTS, "groups: {mobile: [person, robot], any: [mobile, room]}")).concepts
        assert [each.name for each in concepts["mobile"].attributes] == ["id", "position"]
        assert concepts["mobile"].members == ("mobile", "person", "robot")
        assert concepts["any"].members == ("any", "mobile", "person", "robot", "room")
        assert concepts["mobile"].group
        assert not concepts["person"].group

    def test_members_of_a_group_are_those_below_its_members_too(self) -> None:
        text = "concepts: {a: {id: string}, b(a): {}, c: {id: string}}\ngroups: {g: [a, c]}"
        assert ontology_of(text).concepts["g"].members == ("g", "a", "b", "c")

    def test_a_part_names_its_containers_at_every_depth(self) -> None:
        found = ontology_of(
            """
            concepts:
              building: {id: string}
              floor: {id: string, building: string}
              room: {id: string}
              lab(room): {}
            containers: {room: floor, floor: building}
            """
        )
        assert [each.name for each in found.concepts["room"].attributes] == ["id", "floor", "building"]
        assert [each.name for each in found.concepts["lab"].attributes] == ["id", "floor", "building"]
        assert dict(found.containers) == {"floor": "building", "lab": "floor", "room": "floor"}
        assert [(str(each.left), str(each.right)) for each in found.relationships["part"]] == [
            ("floor.building", "building.id"),
            ("room.floor", "floor.id"),
            ("room.building", "building.id"),
        ]


class TestRelationships:
    def test_a_relationship_is_a_condition_over_two_values(self) -> None:
        (inside,) = ontology_of().relationships["inside"]
        assert (inside.left, inside.right) == (
            ConceptAttribute(concept="person", attribute="position"),
            ConceptAttribute(concept="room", attribute="area"),
        )
        assert [name for name, _ in inside.test.parameters] == ["left", "right"]
        assert inside.test.result.type == BOOLEAN
        holds = judge(inside.test)
        area = {"x1": 0.0, "y1": 0.0, "x2": 4.0, "y2": 3.0}
        assert holds({"left": {"x": 1.0, "y": 1.0}, "right": area})
        assert not holds({"left": {"x": 5.0, "y": 1.0}, "right": area})
        assert not holds({"left": None, "right": area})

    def test_the_parameter_is_a_third_variable_in_its_unit(self) -> None:
        (within,) = ontology_of().relationships["within"]
        name, variable = within.test.parameters[2]
        assert (name, variable.type, variable.unit) == ("distance", DOUBLE, METRE)
        assert within.symmetric
        holds = judge(within.test)
        here, there = {"x": 0.0, "y": 0.0}, {"x": 3.0, "y": 4.0}
        assert holds({"left": here, "right": there, "distance": 5.0})
        assert not holds({"left": here, "right": there, "distance": 4.9})

    def test_units_of_attributes_are_brought_together(self) -> None:
        text = part(CONCEPTS, "relationships: {exceeds: {between: [person.speed, room.limit], function: '>'}}")
        (exceeds,) = ontology_of(text).relationships["exceeds"]
        holds = judge(exceeds.test)
        assert holds({"left": 36.5, "right": 10.0})
        assert not holds({"left": 35.9, "right": 10.0})

    def test_membership(self) -> None:
        text = part(CONCEPTS, "relationships: {member: {between: [robot.group, person.groups], function: in}}")
        (member,) = ontology_of(text).relationships["member"]
        holds = judge(member.test)
        assert holds({"left": "a", "right": ["b", "a"]})
        assert not holds({"left": "c", "right": ["b", "a"]})

    def test_a_function_of_the_project(self) -> None:
        functions = "functions: {near: '(a: Point m, b: Point m, limit: double m) -> boolean = distance(a, b) < limit'}"
        text = part(
            CONCEPTS,
            "relationships: {near: {between: [person.position, robot.position], function: near, "
            "parameter: {name: limit, unit: cm}}}",
        )
        (near,) = ontology_of(text, functions=functions).relationships["near"]
        holds = judge(near.test)
        here, there = {"x": 0.0, "y": 0.0}, {"x": 3.0, "y": 4.0}
        assert holds({"left": here, "right": there, "limit": 501.0})
        assert not holds({"left": here, "right": there, "limit": 499.0})

    def test_one_name_for_several_pairs_of_concepts(self) -> None:
        text = part(
            CONCEPTS,
            """
            relationships:
              inside:
                - {between: [person.position, room.area], function: inside}
                - {between: [robot.position, room.area], function: inside}
            """,
        )
        assert [str(each.left) for each in ontology_of(text).relationships["inside"]] == [
            "person.position",
            "robot.position",
        ]

    def test_a_relationship_of_a_group_is_one_of_what_all_members_have(self) -> None:
        text = part(
            CONCEPTS,
            """
            groups: {mobile: [person, robot]}
            relationships: {inside: {between: [mobile.position, room.area], function: inside}}
            """,
        )
        found = ontology_of(text)
        (inside,) = found.relationships["inside"]
        assert inside.left.concept == "mobile"
        assert {"person", "robot"} <= set(found.concepts["mobile"].members)

    def test_members_that_differ_get_relationships_of_their_own(self) -> None:
        text = """
            concepts:
              person: {id: string, at: Point m}
              ship: {id: string, at: GeoPoint}
              dock: {id: string, at: Point m}
            groups: {mobile: [person, ship], places: [mobile, dock]}
            relationships:
              near: {between: [mobile.at, mobile.at], function: within, parameter: {name: d, unit: m}, symmetric: true}
        """
        found, problems = load(text)
        assert [(each.left.concept, each.right.concept) for each in found.relationships["near"]] == [
            ("person", "person"),
            ("ship", "ship"),
        ]
        assert [each.code.code for each in problems] == ["S127"]
        assert "`person.at` (Point m) and `ship.at` (GeoPoint)" in problems[0].message


class TestMeasures:
    def test_a_measure_gives_a_value_in_its_unit(self) -> None:
        (distance,) = ontology_of(
            BUILDING.replace("function: distance, unit: m", "function: distance, unit: cm")
        ).measures["distance"]
        assert (distance.value.result.type, str(distance.value.result.unit)) == (DOUBLE, "cm")
        value = compile_value(distance.value.body, ("left", "right")).call
        assert value({"x": 0.0, "y": 0.0}, {"x": 3.0, "y": 4.0}) == 500.0

    def test_without_a_unit_it_is_that_of_the_function(self) -> None:
        functions = "functions: {gap: '(a: string, b: string) -> double m = 3 m'}"
        text = part(CONCEPTS, "measures: {least: {between: [person.status, robot.group], function: gap}}")
        (least,) = ontology_of(text, functions=functions).measures["least"]
        assert str(least.value.result.unit) == "m"


class TestJson:
    @pytest.mark.parametrize(
        "text",
        [
            BUILDING,
            part(CONCEPTS, "groups: {mobile: [person, robot]}\ncontainers: {robot: room}"),
            "concepts: {a: {id: string}, b(a): {x: {type: int, optional: true}}, 'c(b, a)': {}}",
            "",
        ],
    )
    def test_the_same_ontology_comes_back(self, text: str) -> None:
        found = ontology_of(text)
        again = ontology_from_json(ontology_as_json(found), NO_TYPES)
        assert again == found
        assert hash(again) == hash(found)

    def test_with_functions(self) -> None:
        functions = "functions: {near: '(a: Point m, b: Point m) -> boolean = distance(a, b) < 3 m'}"
        text = part(CONCEPTS, "relationships: {near: {between: [person.position, robot.position], function: near}}")
        found = ontology_of(text, functions=functions)
        assert ontology_from_json(ontology_as_json(found), NO_TYPES, functions_of(functions).callable) == found

    def test_what_was_written_otherwise_is_equal(self) -> None:
        one = ontology_of("concepts: {b: {id: string}, a: {id: string, x: optional double m}}")
        other = ontology_of("concepts: {a: {id: string, x: {type: double, unit: m}}, b: {id: string}}")
        assert one == other

    def test_something_else_is_refused(self) -> None:
        values: tuple[Any, ...] = ({"concepts": {"a": {"attributes": []}}}, {"concepts": {"a": 1}}, [])
        for value in values:
            with pytest.raises(ValueError, match=r"[a-z]"):
                ontology_from_json(value, NO_TYPES)

    def test_an_empty_ontology(self) -> None:
        assert ontology_from_json(ontology_as_json(Ontology()), NO_TYPES) == ontology_of("")


class TestWhatIsWrong:
    @pytest.mark.parametrize(
        ("text", "found"),
        [
            ("concepts: {person: {name: string}}", ["1:12 S120"]),
            ("concepts: {person: {id: int}}", ["1:21 S120"]),
            ("concepts: {visitor(persn): {id: string}, person: {id: string}}", ["1:20 S121"]),
            ("concepts: {a(b): {id: string}, b(a): {id: string}}", ["1:34 S123"]),
            ("concepts: {a: {id: string, x: {type: int, default: 3}}}", ["1:52 S124"]),
            ("concepts: {a: {id: string, x: Nonsense}}", ["1:31 INT101"]),
            ("concepts: {a: {id: string, x: int}, b(a): {x: string}}", ["1:44 INT103"]),
            ("concepts: {is: {id: string}}", ["1:12 INT110"]),
            ("concepts: {a.b: {id: string}}", ["1:12 INT110"]),
            ("concepts: {a: {id: string}}\ngroups: {a: [a]}", ["2:10 INT106"]),
            ("concepts: {a: {id: string}}\ngroups: {g: [h], h: [g, b]}", ["2:22 S123", "2:25 S121"]),
            ("concepts: {a: {id: string}}\ngroups: {g: []}", ["2:13 P105"]),
            ("concepts: {a: {id: string}}\ngroups: {g: [a, a]}", ["2:17 INT106"]),
            ("concepts: {a: {id: string}}\ncontainers: {a: b}", ["2:17 S121"]),
            ("concepts: {a: {id: string}, b: {id: string}}\ncontainers: {a: b, b: a}", ["2:23 S123"]),
            ("concepts: {a: {id: string}, b(a): {}}\ncontainers: {a: b}", ["2:17 S123"]),
            ("concepts: {a: {id: string, b: int}, b: {id: string}}\ncontainers: {a: b}", ["1:12 S131"]),
            ("concept: {}", ["1:1 P103"]),
        ],
    )
    def test_concepts(self, text: str, found: list[str]) -> None:
        assert faults(text) == found

    @pytest.mark.parametrize(
        ("body", "found"),
        [
            ("{function: inside}", ["P104"]),
            ("{between: [person.position, room.area]}", ["P104"]),
            ("{between: [person.position], function: inside}", ["S125"]),
            ("{between: [person, room.area], function: inside}", ["S125"]),
            ("{between: [persn.position, room.area], function: inside}", ["S121"]),
            ("{between: [person.positon, room.area], function: inside}", ["S122"]),
            ("{between: [person.position, room.area], function: insidee}", ["S126"]),
            ("{between: [person.status, room.area], function: inside}", ["S127"]),
            ("{between: [person.position, room.area], function: distance}", ["S127"]),
            ("{between: [person.speed, room.area], function: '<'}", ["S127"]),
            ("{between: [person.position, person.speed], function: '='}", ["S127"]),
            ("{between: [person.position, robot.position], function: within}", ["S129"]),
            ("{between: [person.position, room.area], function: inside, parameter: {name: d, unit: m}}", ["S129"]),
            ("{between: [person.position, robot.position], function: within, parameter: {name: left}}", ["S129"]),
            (
                "{between: [person.position, robot.position], function: within, parameter: {name: d, unit: s}}",
                ["S127"],
            ),
            (
                "{between: [person.position, robot.position], function: within, parameter: {name: d, unit: mm3x}}",
                ["INT105"],
            ),
            ("{between: [person.position, room.area], function: three}", ["S129"]),
        ],
    )
    def test_relationships(self, body: str, found: list[str]) -> None:
        functions = "functions: {three: '(a: int, b: int, c: int, d: int) -> boolean = TRUE'}"
        text = part(CONCEPTS, f"relationships: {{r: {body}}}")
        assert [each.split()[1] for each in faults(text, functions=functions)] == found
        assert all(each.hint for each in load(text, functions=functions)[1])

    def test_two_relationships_of_one_name_must_not_meet(self) -> None:
        text = """
            concepts:
              person: {id: string, position: Point m}
              visitor(person): {}
              room: {id: string, area: Box m, door: Point m}
            relationships:
              inside:
                - {between: [person.position, room.area], function: inside}
                - {between: [visitor.position, room.area], function: inside}
              near:
                - {between: [person.position, room.door], function: '=', symmetric: true}
        """
        found = load(text)[1]
        assert [each.code.code for each in found] == ["S128", "S127"]
        assert all(each.hint for each in found)
        assert "ontology.yaml:7:3" in found[0].message

    def test_a_symmetric_one_meets_its_mirror_image(self) -> None:
        text = part(
            CONCEPTS,
            """
            relationships:
              near:
                - {between: [person.position, robot.position], function: within, parameter: {name: d, unit: m}}
                - {between: [robot.position, person.position], function: within, parameter: {name: d, unit: m},
                   symmetric: true}
            """,
        )
        assert [each.split()[1] for each in faults(text)] == ["S128"]

    def test_what_containers_declare_is_not_declared_again(self) -> None:
        text = """
            concepts: {room: {id: string}, floor: {id: string}}
            containers: {room: floor}
            relationships: {part: {between: [room.floor, floor.id], function: '='}}
        """
        found = load(text)[1]
        assert [each.code.code for each in found] == ["S128"]
        assert "`containers:` (room)" in found[0].message

    def test_measures(self) -> None:
        functions = """
            functions:
              middle: "(a: Point m, b: Point m) -> Point m = struct(a.x AS x, b.y AS y)"
        """
        text = part(
            CONCEPTS,
            """
            measures:
              middle: {between: [person.position, robot.position], function: middle}
              distance: {between: [person.position, robot.position], function: distance, unit: s}
              size-of: {between: [person.position, robot.position], function: distance}
              near: {between: [person.position, robot.position], function: within}
              twice:
                - {between: [person.position, robot.position], function: distance}
                - {between: [person.position, robot.position], function: distance, unit: m}
            """,
        )
        assert [each.split()[1] for each in faults(text, functions=functions)] == [
            "S130",
            "S127",
            "INT110",
            "S129",
            "S128",
        ]

    def test_everything_is_said_at_once_and_nothing_twice(self) -> None:
        text = """
            concepts:
              person: {id: string, position: Pointt}
              room: {area: Box m}
            relationships:
              inside: {between: [person.position, room.area], function: inside}
              near: {between: [person.where, room.area], function: inside}
        """
        assert faults(text) == ["3:34 INT101", "4:3 S120", "7:20 S122"]

    def test_the_message(self) -> None:
        text = part(CONCEPTS, "relationships: {inside: {between: [person.status, room.area], function: inside}}")
        assert render(load(text)[1][0]).splitlines()[0] == (
            "ontology.yaml:6:73: error S127: `inside` cannot be used for `inside` between `person.status` (string) and "
            "`room.area` (Box m)."
        )
