"""Policies as text: what they read as, where their parts stand, and that hostile ones are refused at once."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta

import pytest

from situ.lang.problems import SituError
from situ.policies.language.format import format_policy
from situ.policies.language.parse import parse_condition, parse_policy
from situ.policies.language.print import print_condition, print_policy
from situ.policies.language.syntax import (
    AllOf,
    AnyOf,
    AttributeOf,
    Comparison,
    ConsumptionMode,
    FollowedBy,
    MeasureOf,
    Name,
    RelationText,
    ValueText,
    When,
)
from tests.policies import OF_THE_LITERATURE, SECURITY, policy

GUEST = """\
# Guests are accompanied.
policy unaccompanied-guest
window 5 s
lateness 2s
hold 1 min
consumption recent
concepts
  person A (status = 'guest')
  person B (status = 'employee')
  room   R (security = 'restricted')
conditions
  A is inside R
  A is not within 5 m of B or B is not inside R
actions on every detection
  raise alarm
  suspend policy night-watch
"""


@pytest.mark.parametrize("name", OF_THE_LITERATURE)
def test_policies_of_the_literature_read_and_print(name: str) -> None:
    found = parse_policy(OF_THE_LITERATURE[name], f"{name}.dpl")
    printed = print_policy(found)
    assert parse_policy(printed, "printed.dpl") == found
    assert print_policy(parse_policy(printed, "printed.dpl")) == printed


def test_everything_a_policy_can_say() -> None:
    found = parse_policy(GUEST, "guest.dpl")
    assert found.name == Name("unaccompanied-guest")
    assert (found.window, found.lateness, found.hold) == (
        timedelta(seconds=5),
        timedelta(seconds=2),
        timedelta(minutes=1),
    )
    assert (found.consumption, found.when) == (ConsumptionMode.RECENT, When.EVERY_DETECTION)
    assert [(each.concept.text, each.alias.text) for each in found.concepts] == [
        ("person", "A"),
        ("person", "B"),
        ("room", "R"),
    ]
    assert found.conditions == AllOf(
        (
            relation("A", "inside", "R"),
            AnyOf((relation("A", "within", "B", negated=True, of="5 m"), relation("B", "inside", "R", negated=True))),
        ),
        lines=True,
    )
    assert [[word.text for word in action.words] for action in found.actions] == [
        ["raise", "alarm"],
        ["suspend", "policy", "night-watch"],
    ]


def test_what_is_not_written_is_none() -> None:
    found = parse_policy(SECURITY, "security.dpl")
    assert (found.name, found.window, found.lateness, found.hold, found.consumption, found.when) == (None,) * 6


def test_parts_have_places() -> None:
    found = parse_policy(GUEST, "guest.dpl")
    assert str(found.concepts[1].properties[0].value.location) == "guest.dpl:9:22"
    assert isinstance(found.conditions, AllOf)
    either = found.conditions.parts[1]
    assert isinstance(either, AnyOf)
    first = either.parts[0]
    assert isinstance(first, RelationText)
    assert first.location is not None
    assert (first.location.line, first.location.column, first.location.length) == (13, 3, 24)
    assert first.location.text == "  A is not within 5 m of B or B is not inside R"
    assert str(first.relationship.location) == "guest.dpl:13:12"
    assert str(found.actions[1].words[2].location) == "guest.dpl:16:18"


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("A is inside R", "A is inside R"),
        ("A inside R", "A inside R"),
        ("a IS NOT inside b", "a is not inside b"),
        ("A not inside R", "A not inside R"),
        ("A is part of R", "A is part of R"),
        ("A within 5m B", "A within 5 m of B"),
        ("A is within 5 of B", "A is within 5 of B"),
        ("A is faster 90 [ km/h ] than", "A is faster 90 [km/h] of than"),
        ("A is called 'x''y' of B", "A is called 'x''y' of B"),
        ("(((A is in R)))", "A is in R"),
        ("A is in R or A is in Q and A is in S", "A is in R or A is in Q and A is in S"),
        ("(A is in R or A is in Q) and A is in S", "(A is in R or A is in Q) and A is in S"),
        ("(A is in R or A is in Q) or A is in S", "(A is in R or A is in Q) or A is in S"),
        ("A is in R followed-by A is in Q or A is in S", "A is in R followed-by A is in Q or A is in S"),
        ("A is in R FOLLOWED-BY within 10s A is in Q", "A is in R followed-by within 10 s A is in Q"),
        ("(A in R followed-by A in Q) followed-by A in S", "A in R followed-by A in Q followed-by A in S"),
        ("A in R followed-by (A in Q followed-by A in S)", "A in R followed-by (A in Q followed-by A in S)"),
        ("distance(A,B)<minimumDistance( A , B )", "distance(A, B) < minimumDistance(A, B)"),
        ("A.age >= 18", "A.age >= 18"),
        ("5 °C < A.temperature", "5 °C < A.temperature"),
        ("A.since != date '2026-11-01'", "A.since != DATE '2026-11-01'"),
        ("A.awake = true", "A.awake = TRUE"),
        ("within is within 5 m of in", "within is within 5 m of in"),
        ("A is with B", "A is with B"),
        ("A is\n  in\tR", "A is in R"),
    ],
)  # fmt: skip
def test_conditions(text: str, printed: str) -> None:
    found = parse_condition(text)
    assert print_condition(found) == printed
    assert parse_condition(printed) == found


def test_binding_strength() -> None:
    assert parse_condition("A x B or A y B and A z B followed-by A u B") == AnyOf(
        (
            relation("A", "x", "B"),
            AllOf((relation("A", "y", "B"), FollowedBy(relation("A", "z", "B"), relation("A", "u", "B")))),
        )
    )


def test_a_line_break_is_and_and_binds_weakest() -> None:
    found = parse_policy(policy(conditions="A x B or A y B\nA z B"), "a.dpl")
    assert found.conditions == AllOf(
        (AnyOf((relation("A", "x", "B"), relation("A", "y", "B"))), relation("A", "z", "B")), lines=True
    )


@pytest.mark.parametrize(
    "conditions",
    [
        "A x B or\nA y B",
        "A x B or  # why\n\n# because\nA y B",
        "(A x B\nor A y B)",
        "(\nA x B or A y B\n)",
        "A x B OR\r\nA y B",
    ],
)
def test_a_line_break_is_a_blank_in_parentheses_and_behind_operators(conditions: str) -> None:
    found = parse_policy(policy(conditions=conditions), "a.dpl")
    assert found.conditions == AnyOf((relation("A", "x", "B"), relation("A", "y", "B")))


def test_a_sequence_goes_on_behind_its_duration() -> None:
    found = parse_policy(policy(conditions="A x B followed-by within 10 s\nA y B"), "a.dpl")
    assert found.conditions == FollowedBy(relation("A", "x", "B"), relation("A", "y", "B"), timedelta(seconds=10))


def test_operands() -> None:
    assert parse_condition("distance(A, B) < A.reach") == Comparison(
        MeasureOf(Name("distance"), Name("A"), Name("B")), "<", AttributeOf(Name("A"), Name("reach"))
    )
    assert parse_condition("A.speed > 90 [km/h]") == Comparison(
        AttributeOf(Name("A"), Name("speed")), ">", ValueText("90 [km/h]")
    )


def test_properties_in_both_forms() -> None:
    with_words = "person A with property status = 'guest' and age > 5 and name in ('a','b')"
    in_parentheses = "person A (status='guest' age>5, name IN ('a', 'b'))"
    first, second = (parse_policy(policy(concepts=text), "a.dpl").concepts for text in (with_words, in_parentheses))
    assert first == second
    assert [(each.operator, each.value.text) for each in first[0].properties] == [
        ("=", "'guest'"),
        (">", "5"),
        ("in", "('a', 'b')"),
    ]


def test_words_of_the_language_are_names_where_they_can_be() -> None:
    text = policy(concepts="window W\npolicy P", conditions="W is open P", actions="open window\nclose window")
    found = parse_policy(text, "a.dpl")
    assert [each.concept.text for each in found.concepts] == ["window", "policy"]
    assert [print_condition(found.conditions)] == ["W is open P"]


def test_a_section_may_begin_on_its_line() -> None:
    text = "CONCEPTS person A room R\nconditions A is inside R\nactions raise alarm\n"
    assert print_policy(parse_policy(text, "a.dpl")) == (
        "concepts\n  person A\n  room   R\nconditions\n  A is inside R\nactions\n  raise alarm\n"
    )


def test_tabs_and_foreign_line_ends_are_blanks() -> None:
    text = SECURITY.replace("  ", "\t").replace("\n", "\r\n")
    assert parse_policy("\ufeff" + text, "a.dpl") == parse_policy(SECURITY, "b.dpl")


# ── form ──────────────────────────────────────────────────────────────────────────────────────────

UNTIDY = """\


# top

policy unaccompanied-guest # name
# about the window
WINDOW 5s
concepts person A (status='guest')   # a guest
  # employees
\tperson B with property status='employee' and   # inside
     # inside, too
     age > 5 # behind
  room R (security in ('restricted','# x'))


conditions
  A IS inside R AND
    A within 5m B
  A is not within 5m of B or B is not inside R or A is not within 10m of B or B is not inside R
# before the actions
actions   on every   detection # when
  raise   alarm

# the end"""

TIDY = """\
# top

policy unaccompanied-guest  # name
# about the window
window 5 s
concepts
  person A (status = 'guest')  # a guest
  # employees
  # inside
  # inside, too
  person B (status = 'employee', age > 5)  # behind
  room   R (security in ('restricted', '# x'))

conditions
  A is inside R and A within 5 m of B
  A is not within 5 m of B or B is not inside R or A is not within 10 m of B or B is not inside R
# before the actions
actions on every detection  # when
  raise alarm

  # the end
"""


def test_form() -> None:
    assert format_policy(UNTIDY, "policies/a.dpl") == TIDY
    assert format_policy(TIDY, "policies/a.dpl") == TIDY


def test_long_conditions_go_on_behind_their_operator() -> None:
    text = policy(conditions=" or ".join(["A is not within 5 m of B"] * 5))
    tidied = format_policy(text, "policies/a.dpl")
    assert max(map(len, tidied.splitlines())) < 50
    assert parse_policy(tidied, "a.dpl") == parse_policy(text, "a.dpl")


def test_what_is_not_right_stays_as_it_is() -> None:
    assert format_policy("concepts\n  person\n", "policies/a.dpl") == "concepts\n  person\n"


# ── hostile ───────────────────────────────────────────────────────────────────────────────────────

HOSTILE: dict[str, tuple[Callable[[], str | bytes], str]] = {
    "not UTF-8": (lambda: policy(conditions="A is inside R").encode() + b"\xff", "P110"),
    "UTF-16": (lambda: SECURITY.encode("utf-16"), "P110"),
    "zeros": (lambda: "\x00" * 50_000, "S105"),
    "too large": (lambda: SECURITY + "#" * 300_000, "P108"),
    "parentheses": (lambda: policy(conditions="(" * 25_000), "S119"),
    "parentheses, closed": (lambda: policy(conditions="(" * 15_000 + "A is in R" + ")" * 15_000), "S119"),
    "lines of parentheses": (lambda: policy(conditions="(\n" * 15_000), "S119"),
    "parentheses never closed": (lambda: policy(conditions="A is in R (\n" * 3_750), "S119"),
    "one parenthesis a line": (lambda: policy(conditions="\n".join(["()"] * 12_500)), "S105"),
    "closing parentheses": (lambda: policy(conditions=")\n" * 15_000), "S110"),
    "sequence": (lambda: policy(conditions="A is in R followed-by " * 2_000 + "A is in R"), "S119"),
    "not": (lambda: policy(conditions="not (" * 10_000), "S119"),
    "nots": (lambda: policy(conditions="not " * 15_000), "S116"),
    "quotes": (lambda: policy(conditions="'" * 50_001), "S110"),
    "double quotes": (lambda: policy(conditions='"' * 50_000), "S109"),
    "ands": (lambda: policy(conditions="and " * 15_000), "S105"),
    "unknown options": (lambda: "x\n" * 25_000, "S114"),
    "policies": (lambda: "policy a\n" * 6_250, "S118"),
    "sections": (lambda: "concepts\n" * 6_250, "S107"),
    "a word": (lambda: "x" * 62_500, "S114"),
    "a name": (lambda: "policy " + "x" * 62_500, "S117"),
    "a number": (lambda: policy(options="window " + "9" * 62_500 + " s"), "S114"),
    "slashes": (lambda: policy(conditions="A.x > 5 m" + "/m" * 25_000), "S105"),
    "dots": (lambda: policy(conditions="A" + ".x" * 25_000), "S105"),
    "blanks": (lambda: " " * 62_500, "S106"),
    "commas": (lambda: policy(concepts="person A (" + "," * 50_000 + ")"), "S105"),
    "an aliasless list": (lambda: policy(concepts="x " * 25_001), "S115"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_text_is_refused_at_once(name: str) -> None:
    make, code = HOSTILE[name]
    data = make()
    start = time.process_time()
    with pytest.raises(SituError) as refused:
        parse_policy(data, "hostile.dpl")
    seconds = time.process_time() - start
    problems = refused.value.problems
    assert code in {problem.code.code for problem in problems}
    assert all(problem.location is not None and problem.hint for problem in problems)
    assert len(problems) <= 130
    assert seconds < 3, "a bound with room for a slow machine; a tenth of a second on a common one"


def test_a_long_policy_is_read() -> None:
    text = policy(conditions="\n".join(f"A is inside R or B is within {number} m of A" for number in range(1_000)))
    start = time.process_time()
    assert len(parse_policy(text, "long.dpl").conditions.parts) == 1_000
    assert time.process_time() - start < 3


def relation(left: str, name: str, right: str, *, negated: bool = False, of: str = "") -> RelationText:
    return RelationText(Name(left), Name(name), Name(right), negated=negated, parameter=ValueText(of) if of else None)
