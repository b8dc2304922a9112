"""Policies against the ontology and the sources: what they become, and everything that can be wrong with them."""

from __future__ import annotations

from functools import cache

import pytest

from situ.lang.expr.emit.python import compile_test
from situ.lang.problems import Problem, render
from situ.lang.records import replace
from situ.policies.check.domain import Domain
from situ.policies.language.syntax import ConsumptionMode, When
from situ.policies.logic_tree import clause_text
from situ.policies.model import Absence, Policy, Reach, Relation, RelationKind
from situ.policies.ontology.model import ConceptAttribute
from situ.policies.plan import leaves_of, relations_of
from tests import domains
from tests.domains import DANGEROUS_GOODS, UNACCOMPANIED_GUEST, conditions
from tests.policies import OF_THE_LITERATURE


@cache
def building() -> Domain:
    return domains.building()


def policy(text: str) -> Policy:
    return domains.policy(text, building())


def only_relation(text: str) -> Relation:
    (relation,) = relations_of(policy(text))
    return relation


def found(text: str) -> tuple[Problem, ...]:
    return domains.checked(text, building())[1]


def codes(text: str) -> list[str]:
    return [problem.code.code for problem in found(text)]


def shown(text: str) -> list[str]:
    return [clause_text(clause, 5_000_000) for clause in policy(text).clauses]


# ── what policies become ──────────────────────────────────────────────────────────────────────────


def test_the_security_policy() -> None:
    checked = policy(UNACCOMPANIED_GUEST)
    assert checked.name == "unaccompanied-guest"
    assert (checked.window, checked.hold, checked.lateness) == (5_000_000, 10_000_000, -1)
    assert (checked.consumption, checked.when) == (ConsumptionMode.CHRONICLE, When.OPENING)
    assert checked.text == UNACCOMPANIED_GUEST
    assert [clause_text(clause) for clause in checked.clauses] == [
        "A is inside R",
        "A is not within 5 m of B or B is not inside R",
    ]
    inside, within, also_inside = relations_of(checked)
    assert [each.kind for each in (inside, within, also_inside)] == [
        RelationKind.QUERY,
        RelationKind.CORRELATION,
        RelationKind.QUERY,
    ]
    assert [(each.alias, each.attributes, each.event) for each in inside.sides] == [
        ("A", ("position",), "position"),
        ("R", ("area",), ""),
    ]
    coordinates = (("position", "x"), ("position", "y"))
    assert within.reach == Reach(left=coordinates, right=coordinates, distance=5.0)
    assert inside.reach is None
    guest = checked.alias("A").constraint
    assert guest is not None
    assert compile_test(guest, ("it",)).call({"id": "1", "status": "guest"}) is True
    assert compile_test(guest, ("it",)).call({"id": "1"}) is not True


def test_the_logistics_policy() -> None:
    checked = domains.policy(DANGEROUS_GOODS, domains.logistics())
    assert [each.kind for each in relations_of(checked)] == [
        RelationKind.QUERY,
        RelationKind.QUERY,
        RelationKind.CORRELATION,
    ]
    assert checked.consumption is ConsumptionMode.ALL
    assert not any(each.reach for each in relations_of(checked))  # what is compared with is no constant


def test_tests_read_the_instances_of_both_sides() -> None:
    inside = only_relation(conditions("A is inside R", concepts="person A\nroom R"))
    test = compile_test(inside.test, ("left", "right")).call
    room = {"id": "r", "area": {"x1": 0.0, "y1": 0.0, "x2": 2.0, "y2": 2.0}}
    assert test({"id": "1", "position": {"x": 1.0, "y": 1.0}}, room) is True
    assert test({"id": "1", "position": {"x": 3.0, "y": 1.0}}, room) is False


def test_units_are_those_of_the_attributes() -> None:
    near = only_relation(conditions("A is within 500 cm of B", concepts="person A\nperson B"))
    assert near.reach is not None
    assert near.reach.distance == 5.0
    fast = only_relation(conditions("A.speed > 36 [km/h]", concepts="person A"))
    test = compile_test(fast.test, ("left",)).call
    assert (test({"speed": 11.0}), test({"speed": 9.0})) == (True, False)
    assert (fast.kind, fast.right, fast.left.event) == (RelationKind.QUERY, None, "speed")


@pytest.mark.parametrize("written", ["A is within 5 m of B", "B is within 5 m of A"])
def test_symmetric_relationships_stand_in_the_order_of_the_concepts(written: str) -> None:
    relation = only_relation(conditions(written, concepts="person A\nperson B"))
    assert relation.text == "A is within 5 m of B"
    assert relation.aliases == ("A", "B")


@pytest.mark.parametrize("written", ["A is near 5 m of M", "M is near 5 m of A"])
def test_symmetric_relationships_of_different_concepts_stand_as_declared(written: str) -> None:
    relation = only_relation(conditions(written, concepts="robot M\nperson A"))
    assert relation.aliases == ("A", "M")
    assert relation.reach is not None


def test_equal_relations_are_one_however_they_are_written() -> None:
    text = conditions("A within 5 m of B or A is inside R", "B is not within 5 m A or B is inside R")
    assert [each.text for each in relations_of(policy(text))] == [
        "A within 5 m of B",
        "A is inside R",
        "B is inside R",
    ]
    assert shown(text)[1] == "A not within 5 m of B or B is inside R"


def test_more_special_concepts_have_the_relationships_of_more_general_ones() -> None:
    relation = only_relation(conditions("A is within 5 m of V", concepts="person A\nvisitor V"))
    assert (
        relation.kind is RelationKind.QUERY
    )  # events bring the position of persons; who is a visitor they do not know
    assert relation.right is not None
    assert (relation.left.event, relation.right.event) == ("position", "")


def test_events_about_members_are_events_about_the_group() -> None:
    group = only_relation(conditions("M is close 5 m of N", concepts="mobile M\nmobile N"))
    assert group.kind is RelationKind.CORRELATION


def test_measures_and_comparisons() -> None:
    relation = only_relation(conditions("distance(B, A) <= 3 m", concepts="person A\nperson B"))
    assert relation.aliases == ("A", "B")
    assert relation.reach == Reach(
        left=(("position", "x"), ("position", "y")), right=(("position", "x"), ("position", "y")), distance=3.0
    )
    assert only_relation(conditions("3 m > distance(A, B)", concepts="person A\nperson B")).reach is not None
    assert only_relation(conditions("A is within 0 m of B", concepts="person A\nperson B")).reach is None
    assert only_relation(conditions("distance(A, B) > 3 m", concepts="person A\nperson B")).reach is None
    own = only_relation(conditions("A.speed >= 1 [m/s]", concepts="person A"))
    assert (own.text, own.aliases) == ("A.speed >= 1 [m/s]", ("A",))


def test_windows_of_sequences_are_their_own_or_that_of_the_policy() -> None:
    text = conditions(
        "A is inside R followed-by within 1 min B is inside R",
        "A is inside R followed-by B is not inside R",
        options="window 7 s\nhold 20 s\nlateness 1 s\nconsumption all",
    )
    checked = policy(text)
    assert [clause[0].within for clause in checked.clauses] == [60_000_000, 7_000_000]  # type: ignore[union-attr]
    assert (checked.window, checked.hold, checked.lateness) == (7_000_000, 20_000_000, 1_000_000)
    assert codes(text) == ["S211"]


def test_leaves_are_made_of_it() -> None:
    checked = policy(UNACCOMPANIED_GUEST)
    leaves = {leaf for relation in relations_of(checked) for leaf in leaves_of(checked, relation)}
    assert len(leaves) == 4
    assert all(leaf.concept == "person" and leaf.attribute == "position" for leaf in leaves)


# ── what is refused ───────────────────────────────────────────────────────────────────────────────

PAIR = "person A\nperson B\nroom R"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("S121", conditions("A is inside R", concepts="persn A\nroom R")),
        ("S122", conditions("A is inside R", concepts="person A (staus = 'guest')\nroom R")),
        ("S122", conditions("A.sped > 3 [m/s]", concepts="person A")),
        ("S152", conditions("A is inside R", "A is within 5 m of C")),
        ("S152", conditions("C.speed > 3 [m/s]", "A is inside R")),
        ("S153", conditions("A is insied R")),
        ("S154", conditions("distnce(A, B) < 5 m")),
        ("S154", conditions("weight(A, B) < 5 m")),
        ("S155", conditions("A is within 5 m of R")),
        ("S155", conditions("R is inside A")),
        ("S155", conditions("distance(A, R) < 5 m")),
        ("S155", conditions("gap(M, A) < 5 m", concepts="person A\nrobot M")),
        ("S156", conditions("A is within B")),
        ("S157", conditions("A is inside 5 m R")),
        ("S158", conditions("A is within 5 s of B")),
        ("S158", conditions("A.speed > 'fast'")),
        ("S158", conditions("distance(A, B) < 5 kg")),
        ("S158", conditions("A is inside R", concepts="person A (status = 5)\nroom R")),
        ("S159", conditions("A is inside R", concepts="person A (status = 'guest', status = 'employee')\nroom R")),
        (
            "S159",
            conditions(
                "A is inside R", concepts="person A (status in ('a', 'b'), status != 'a', status != 'b')\nroom R"
            ),
        ),
        ("S159", conditions("A is inside R", concepts="person A\nroom R (floor > '5', floor < '3')")),
        ("S159", conditions("A is within -1 m of B")),
        ("S159", conditions("distance(A, B) < 0 m")),
        ("S159", conditions("A is inside R", "A.status = 'guest'", "A.status = 'employee'")),
        ("S159", conditions("A is inside R and A.host > 'm'", "A.host < 'd'")),
        ("S159", conditions("A is inside R", "A.status = 'x'", concepts="person A (status = 'guest')\nroom R")),
        ("S160", conditions("A is inside R", concepts="person A (speed > 3 [m/s])\nroom R")),
        ("S161", conditions("A.speed > A.pace")),
        ("S162", conditions("A is inside R followed-by A.status = 'guest'")),
        ("S163", conditions("A.speed > 3 [m/s]", "D leads R", concepts="person A\ndoor D\nroom R")),
        ("S164", conditions("A visits B")),
        ("S164", conditions("A is not inside R")),
        ("S164", conditions("A is not inside R followed-by B is not inside R")),
        ("S164", conditions("A is inside R or A is not inside R")),
        ("S165", conditions("A is inside R", concepts="person A\nperson A\nroom R")),
        ("S166", conditions("5 m < 6 m", "A is inside R")),
        ("S166", conditions("distance(A, B) < distance(B, C)", concepts="person A\nperson B\nperson C")),
        ("S167", conditions("A is within 5 m of A")),
        ("S167", conditions("distance(A, A) < 5 m")),
        ("S150", conditions(" or ".join(f"A is within {n} m of B and B is within {n} cm of A" for n in range(1, 20)))),
        ("S151", conditions("A is inside R", "A is not inside R")),
        ("S210", conditions("A is inside R")),
        ("S211", conditions("A is inside R", concepts="person A\nroom R", options="consumption recent")),
    ],
)
def test_problems(code: str, text: str) -> None:
    assert code in codes(text)


@pytest.mark.parametrize(
    "lines",
    [
        ("A.speed > 5 [m/s]", "A.speed < 3 [m/s]"),  # one after the other
        ("A is inside R", "A.status = 'guest' or A.status = 'employee'"),
        ("A is inside R", "A.status = 'guest'", "B.status = 'employee'", "B is inside R"),
        ("A is inside R", "A.status = 'guest'", "A.host = 'employee'"),
    ],
)
def test_what_can_be_met_together(lines: tuple[str, ...]) -> None:
    assert "S159" not in codes(conditions(*lines))


@pytest.mark.parametrize(
    ("constraint", "column", "said"),
    [
        ("status in ('a', 5)", 22, "Text stands in single quotes."),
        ("status = TRUE", 20, "Text stands in single quotes."),
        ("desk = 'a'", 18, "Write what is expected there"),
    ],
)
def test_every_value_that_does_not_fit_has_a_hint(constraint: str, column: int, said: str) -> None:
    text = conditions("A is inside R", concepts=f"person A ({constraint})\nroom R")
    (problem,) = (each for each in found(text) if each.code.code == "S158")
    assert problem.location.column == column
    assert said in problem.hint


def test_among_values_that_are_listed_the_one_that_does_not_fit_is_shown() -> None:
    text = conditions("M is within 5 m of R", concepts="robot M (load in (1, 'x', 2.5))\nroom R")
    assert "found string, expected double" in message(text, "S158")


def test_a_value_that_would_count_again_too_often_is_refused() -> None:
    day = 24 * 3600 * 1_000_000
    kept = {ConceptAttribute(concept="person", attribute="position"): ("seen", 30 * day)}
    domain = replace(domains.building(), kept=kept)
    often = conditions("A is inside R", concepts="person A\nroom R", options="window 1 ms")
    (problem,) = domains.checked(often, domain)[1]
    assert problem.code.code == "S168"
    assert problem.location is not None
    assert "`seen` keeps values for 30 d, and each would count again after every 1 ms: 2,592,000,000" in problem.message
    assert domains.checked(often.replace("1 ms", "5 s"), domain)[1] == ()


def test_conditions_that_exclude_each_other_are_named() -> None:
    text = conditions("A is inside R", "A.host = 'x'", "A.host = 'y'", concepts="person A (status = 'guest')\nroom R")
    assert "`person A (status = 'guest') and A.host = 'x' and A.host = 'y'` can never be true." in message(text, "S159")


def message(text: str, code: str) -> str:
    return next(render(problem) for problem in found(text) if problem.code.code == code)


def test_all_problems_come_at_once_each_at_its_place() -> None:
    text = """policy many
concepts
  persn A
  person B (staus = 'guest', speed > 3 [m/s])
  room R
conditions
  A is inside R
  B is insied R or C is inside R
  B is within 5 s of B
  B is inside R followed-by B.status = 'x'
actions
  raise alarm
"""
    places = [(problem.code.code, problem.location.line, problem.location.column) for problem in found(text)]
    assert places == [
        ("S121", 3, 3),
        ("S122", 4, 13),
        ("S160", 4, 30),
        ("S153", 8, 8),
        ("S152", 8, 20),
        ("S167", 9, 22),
    ]


def test_problems_inside_values_point_into_them() -> None:
    assert message(conditions("A is within 5 s of B"), "S158") == (
        "p.dpl:7:15: error S158: `A is within 5 s of B` does not fit what it is about.\n"
        "  |   A is within 5 s of B\n"
        "  |               ^^^\n"
        "  because X104: `distance` of `within`: a value in s and one in m do not go together.\n"
        "  hint: They measure different things and cannot be converted."
    )


def test_what_would_have_to_be_event_based_is_named() -> None:
    text = conditions("V is inside R", concepts="visitor V\nroom R")
    (problem,) = found(text)
    assert problem.message == (
        "Nothing can trigger this policy: no condition that is not negated has an event-based attribute."
    )
    assert problem.hint == (
        "A push source would have to feed `visitor.position` or `room.area`. "
        "Events bring `person.position`, but not every person is a visitor."
    )


def test_remedies_can_be_taken_as_they_are() -> None:
    assert "as in `A is within 5 m of B`" in message(conditions("A is within B"), "S156")
    assert "`A.speed > 3 [m/s]`" in message(
        conditions("A is inside R", concepts="person A (speed > 3 [m/s])\nroom R"), "S160"
    )
    assert "It joins `person` and `person`." in message(conditions("A is within 5 m of R"), "S155")


def test_a_concept_in_place_of_its_alias() -> None:
    (problem,) = [each for each in found(conditions("person is inside R", "B is inside R")) if each.is_error]
    assert (problem.code.code, problem.hint) == ("S152", "Did you mean `A` or `B`?")


# ── names in any case ─────────────────────────────────────────────────────────────────────────────

PRINTED = """
version: 1
concepts:
  person: {id: string, status: string, position: Point m, gaze: string}
  room: {id: string, security: string, status: string, area: Box m, building: string}
  building: {id: string, securityStaff: string}
  exhibit: {id: string}
  truck: {id: string}
  substance: {id: string, dangerous: string, class: int, truck: string, position: Point m}
relationships:
  inside:
    - {between: [person.position, room.area], function: inside}
    - {between: [substance.truck, truck.id], function: "="}
  within: {between: [person.position, person.position], function: within, parameter: {name: distance, unit: m}, symmetric: true}
  facing: {between: [person.gaze, exhibit.id], function: "="}
  belongsTo: {between: [room.building, building.id], function: "="}
measures:
  distance: {between: [substance.position, substance.position], function: distance, unit: m}
  minimumDistance: {between: [substance.class, substance.class], function: apart, unit: m}
"""  # noqa: E501


@cache
def printed() -> Domain:
    fed = ("person.position", "person.gaze", "substance.truck", "substance.position")
    return domains.domain(PRINTED, fed, domains.LOGISTICS_FUNCTIONS)


@pytest.mark.parametrize("name", OF_THE_LITERATURE)
def test_policies_of_the_literature_are_understood_as_they_are_printed(name: str) -> None:
    found, problems = domains.checked(OF_THE_LITERATURE[name], printed())
    assert found is not None, [render(each) for each in problems]


def test_names_are_found_in_any_case() -> None:
    """What is stored is what was written; what is the same is the same however it is written."""
    text = conditions(
        "a IS INSIDE r", "b.SPEED > 1 and b.Speed > 1", concepts="Person a (STATUS = 'x')\nPERSON b\nroom r"
    )
    found = policy(text)
    assert [clause_text(each) for each in found.clauses] == ["a is inside r", "b.speed > 1", "b.speed > 1"]
    assert [(each.concept, each.text) for each in found.aliases][:2] == [("person", "status = 'x'"), ("person", "")]
    assert "PERSON" in found.text
    assert "b.Speed > 1" in found.text
    assert len(relations_of(found)) == 2


def test_measures_are_found_in_any_case() -> None:
    text = conditions("DISTANCE(A, B) < 5 m")
    assert shown(text) == ["distance(A, B) < 5 m"]


def test_names_that_differ_only_in_case_are_told_apart_by_it() -> None:
    twice = domains.BUILDING.replace(
        "  visits:", "  Inside: {between: [person.position, room.area], function: inside}\n  visits:"
    )
    domain = domains.domain(twice, domains.BUILDING_FED)
    assert [
        clause_text(each) for each in domains.policy(conditions("A is Inside R", "B is inside R"), domain).clauses
    ] == [
        "A is Inside R",
        "B is inside R",
    ]
    problems = domains.checked(conditions("A is INSIDE R", "B is inside R"), domain)[1]
    assert [each.code.code for each in problems] == ["S153"]
    assert "`Inside`" in str(problems[0].hint)


# ── negated comparisons ───────────────────────────────────────────────────────────────────────────


def test_a_negated_comparison_is_an_absence_and_another_sign_is_not() -> None:
    found = policy(conditions("A is inside R", "not A.speed > 5 [m/s]"))
    assert [clause_text(each) for each in found.clauses] == ["A is inside R", "not A.speed > 5 [m/s]"]
    assert [isinstance(part, Absence) for part in found.conditions] == [False, True]
    other = policy(conditions("A is inside R", "A.speed <= 5 [m/s]"))
    assert not any(isinstance(part, Absence) for part in other.conditions)


def test_a_comparison_and_its_negation_contradict() -> None:
    assert codes(conditions("A.speed > 5 [m/s]", "not A.speed > 5 [m/s]", concepts="person A")) == ["S151"]


# ── dead policies ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("lines", "place", "said"),
    [
        (
            ["A is inside R followed-by within 10 s not A.speed > 3 [m/s] followed-by A is inside R"],
            "7:3",
            "`A is inside R` comes after the 10 s in which something is absent, and has to come within 5 s",
        ),
        (
            ["A is inside R followed-by A.speed > 1 [m/s] followed-by within 20 s not A.speed > 3 [m/s]"],
            "7:29",
            "its steps lie further apart than the 5 s of the window in which all of it has to happen",
        ),
        (
            ["A is inside R followed-by A.speed > 3 [m/s]", "A is not inside R"],
            "8:3",
            "`A is inside R` has to be absent, and is among what has to happen",
        ),
        (
            ["A is inside R followed-by (A.speed > 3 [m/s] and not A.speed > 3 [m/s])"],
            "7:3",
            "`A.speed > 3 [m/s]` has to be absent where it has to happen",
        ),
        (
            ["A is inside R", "(A.speed > 3 [m/s] and not A.speed > 3 [m/s]) or A.pace > 1 [m/s]"],
            "8:4",
            "`A.speed > 3 [m/s]` has to be absent, and is among what has to happen",
        ),
    ],
)
def test_what_can_never_be_met_is_warned_about(lines: list[str], place: str, said: str) -> None:
    (problem,) = found(conditions(*lines, concepts="person A\n\nroom R", options="window 5 s"))
    assert (problem.code.code, problem.is_error) == ("S212", False)
    assert str(problem.location) == f"p.dpl:{place}"
    assert problem.message == f"This can never be met: {said}."


@pytest.mark.parametrize(
    "lines",
    [
        ["A is inside R followed-by within 3 s not A.speed > 3 [m/s] followed-by A is inside R"],
        ["A is inside R followed-by A is inside R followed-by A is inside R"],
        ["A is inside R followed-by within 60 s A.speed > 3 [m/s]", "A is not inside R"],
        ["A is inside R followed-by A is not inside R"],
        ["A is not inside R followed-by A is inside R"],
        ["A is inside R followed-by A.speed > 3 [m/s] followed-by A is inside R", "not A.pace > 1 [m/s]"],
    ],
)
def test_what_can_be_met_is_not(lines: list[str]) -> None:
    assert found(conditions(*lines, concepts="person A\nroom R", options="window 5 s")) == ()


def test_comparisons_that_no_value_decides_are_warned_about() -> None:
    oven = domains.domain(
        "version: 1\nconcepts: {oven: {id: string, heat: double degC, count: int}}", ("oven.heat", "oven.count")
    )

    def said(line: str) -> list[tuple[str, str]]:
        problems = domains.checked(conditions(line, concepts="oven A"), oven)[1]
        return [(each.code.code, each.message) for each in problems]

    coldest = "nothing is colder than -273.15 degC"
    assert said("A.heat < -300 °C") == [
        ("S213", f"`A.heat < -300 °C` is untrue of every value of `A.heat`: {coldest}.")
    ]
    assert said("A.heat > -500 °F") == [("S213", f"`A.heat > -500 °F` is true of every value of `A.heat`: {coldest}.")]
    assert said("A.count < 3000000000") == [
        ("S213", "`A.count < 3000000000` is true of every value of `A.count`: it is of type int.")
    ]
    assert said("A.count > 3000000000") == [("S159", "`A.count > 3000000000` can never be true.")]
    assert said("A.heat > -273 °C") == said("A.heat < 3 K") == said("A.count < 2000000000") == []
