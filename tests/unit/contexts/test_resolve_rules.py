"""From rules to the places they convert, and warnings about rules that do less than they seem to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

import pytest

from situ.contexts.check import check_rules
from situ.contexts.model import IDENTITY, KEEP, Context, Direction, Rule
from situ.contexts.patterns import read_pattern
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, converted_places, resolve_event_type
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.types.model import INT, Attribute, ListOf, Struct
from situ.lang.types.table import Types
from tests.types_files import types_of

TYPES = types_of("""
    types:
      Position: {}
      PositionWithHeight(Position): {}
      Money: {}
      Named: {}
      Billable: {}
      Taxed(Billable): {}
      Goods(Named, Billable): {at: Position, worth: Money}
      Drug(Goods): {}
      Sample(Named, Taxed): {}
      Odd(Billable, Taxed): {}
      Crate: {goods: Goods, spare: Position}
    events:
      StatusEvent: {pos: Position, price: Money, cost: Money}
      DangerCheck(StatusEvent): {}
      Shipment: {main: Crate, crates: [Crate], tag: Named, fee: Billable, origin: Position}
      AirShipment(Shipment): {}
""")


def context(*rules: Sequence[str], types: Types = TYPES, direction: Direction = Direction.OUT) -> Context:
    """A context a list of rules, each the child of the one before. Functions are named a, b, c in declared order."""
    letters = iter("abcdefgh")
    result: Context | None = None
    for name, texts in zip(("root", "child", "grandchild"), rules, strict=False):
        made = tuple(read_rule(text, next(letters), name, order, types, direction) for order, text in enumerate(texts))
        result = Context(id=name, parent=result, types=types, rules=made)
    assert result is not None
    return result


def read_rule(text: str, function: str, context: str, order: int, types: Types, direction: Direction) -> Rule:
    written, _, given = text.partition(" -> ")
    problems = Problems()
    pattern = read_pattern(written, types, problems)
    assert pattern is not None, list(map(str, problems))
    location = Location(file=f"contexts/{context}.yaml", line=order + 1)
    return Rule(
        direction=direction,
        pattern=pattern,
        function=given or function,
        context=context,
        order=order,
        location=location,
    )


def event(name: str, types: Types = TYPES) -> Struct:
    found = types.event(name)
    assert found is not None
    return found


def expanded(context: Context, name: str) -> ResolvedPlace:
    return resolve_event_type(event(name, context.types), RuleSet.of(context, Direction.OUT), context.types)


def winner(place: ResolvedPlace, way: str) -> str:
    """The function at a place, `–` if nobody converts it. Nobody gets below a value that is converted as a whole."""
    for step in way.split("."):
        ((name, elements, type),) = re.findall(r"^(\w+)(\[\])?(?:\((\w+)\))?$", step)
        if place.rule is not None:
            return "–"
        place = chosen(place.attributes[name], type)
        if elements:
            if place.rule is not None:
                return "–"
            place = chosen(place.elements, type)
    return place.rule.function if place.rule is not None else "–"


def chosen(places: Sequence[ResolvedPlace], type: str) -> ResolvedPlace:
    return places[0] if not type else next(place for place in places if str(place.path.type) == type)


def warnings(context: Context, direction: Direction = Direction.OUT) -> tuple[Problem, ...]:
    problems = Problems()
    check_rules(context, direction, problems)
    return problems.sorted()


def codes(context: Context) -> list[str]:
    """Each warning with the function of the rule it is about."""
    functions = {rule.location: rule.function for rule in context.rules}
    return [f"{problem.code.code} {functions[problem.location]}" for problem in warnings(context)]


# Number | rules in declared order, ` / ` before those of a child | event: place, with dynamic types | winner | warnings
TABLE = """
  1 | Position · DangerCheck.Position                            | DangerCheck: pos                     | b |
  2 | Money · StatusEvent.cost                                   | StatusEvent: cost                    | b |
  3 | StatusEvent.pos · StatusEvent.pos(PositionWithHeight)      | StatusEvent: pos(PositionWithHeight) | b |
  4 | StatusEvent.pos · StatusEvent.pos(PositionWithHeight)      | StatusEvent: pos                     | a |
  5 | StatusEvent.PositionWithHeight · StatusEvent.pos           | StatusEvent: pos(PositionWithHeight) | a |
  6 | PositionWithHeight · DangerCheck.Position                  | DangerCheck: pos(PositionWithHeight) | a | INT211 b
  7 | StatusEvent.pos · DangerCheck.Position                     | DangerCheck: pos                     | a | INT206 b
  8 | StatusEvent.Position · DangerCheck.Position                | DangerCheck: pos                     | b |
  9 | Shipment.main.Position · Shipment.Crate.Goods.Position     | Shipment: main.goods.at              | a |
 10 | Shipment.Crate.spare · Shipment.main.Position              | Shipment: main.spare                 | a |
 11 | AirShipment.Position · Shipment.Crate.Goods.Position       | AirShipment: main.goods.at           | a |
 12 | Shipment.main.Position · Shipment.Crate.Drug.Position · Shipment.main.goods.Position
                                                                 | Shipment: main.goods(Drug).at        | c |
 13 | Billable · Named                                           | Shipment: tag(Goods)                 | b |
 14 | Billable · Named                                           | Shipment: tag(Sample)                | b |
 15 | Taxed · Named                                              | Shipment: tag(Sample)                | b |
 16 | Billable · Taxed                                           | Shipment: fee(Odd)                   | b |
 17 | Shipment.fee · Shipment.Named                              | Shipment: fee(Goods)                 | a |
 18 | Position · Goods                                           | Shipment: main.goods.at              | – |
 19 | Goods · Shipment.main.goods.at                             | Shipment: main.goods.at              | – | INT206 b
 20 | [Crate] · Shipment.crates[]                                | Shipment: crates[]                   | – | INT206 b
 21 | Shipment.crates[].Position · Shipment.Crate.Position       | Shipment: crates[].spare             | a |
 22 | Shipment.crates.spare · Shipment.crates[].spare(Position)  | Shipment: crates[].spare             | b | INT207 a
 23 | Money / Money                                              | StatusEvent: price                   | b |
 24 | StatusEvent.price / Money                                  | StatusEvent: price                   | a |
 25 | StatusEvent · StatusEvent.pos                              | DangerCheck: pos                     | – | INT206 b
 26 | Crate.Position · Position                                  | Shipment: main.spare                 | b | INT205 a
"""


class Row(NamedTuple):
    number: str
    rules: list[list[str]]
    event: str
    way: str
    winner: str
    warned: str


def read_row(text: str) -> Row:
    number, rules, place, winner, warned = (cell.strip() for cell in text.split("|"))
    event, _, way = place.partition(": ")
    return Row(number, [each.split(" · ") for each in rules.split(" / ")], event, way, winner, warned)


ROWS = {
    row.number: row for row in map(read_row, re.findall(r"(?m)^ +\d[^|]*(?:\|[^|\n]*\n?[^|\n]*){3}\|[^|\n]*", TABLE))
}


def test_table_is_read_whole() -> None:
    assert list(ROWS) == [str(number) for number in range(1, 27)]


@pytest.mark.parametrize("number", ROWS)
def test_precedence_settles(number: str) -> None:
    row = ROWS[number]
    declared = context(*row.rules)
    assert winner(expanded(declared, row.event), row.way) == row.winner
    assert ", ".join(codes(declared)) == row.warned


@pytest.mark.parametrize(("number", "expected"), [("1", "ba"), ("6", "ab"), ("12", "cab"), ("23", "ba")])
def test_beaten_rules_are_known_in_order(number: str, expected: str) -> None:
    row = ROWS[number]
    places = converted_places(expanded(context(*row.rules), row.event))
    assert expected in {"".join(rule.function for rule in (place.rule, *place.beaten) if rule) for place in places}


def test_event_expands_into_places_for_every_dynamic_type() -> None:
    place = expanded(context(["Shipment.Crate.spare", "Shipment.Drug"]), "AirShipment")
    assert str(place.path) == ""
    assert place.rule is None
    assert place.elements == ()
    assert list(place.attributes) == ["main", "crates", "tag", "fee", "origin"]
    assert [str(each.path.type) for each in place.attributes["fee"]] == [
        *("Billable", "Drug", "Goods", "Odd", "Sample", "Taxed"),
    ]
    (crates,) = place.attributes["crates"]
    assert (crates.path.type, crates.attributes) == (ListOf(crates.elements[0].path.type), {})
    shown = [f"{each.path}: {each.path.type}" for each in converted_places(place)]
    assert shown == [
        *("main.goods: Drug", "main.spare: Position", "main.spare: PositionWithHeight"),
        *("crates[].goods: Drug", "crates[].spare: Position", "crates[].spare: PositionWithHeight"),
        *("tag: Drug", "fee: Drug"),
    ]


def test_lists_of_lists_are_one_level() -> None:
    types = types_of("types:\n  P: {x: double}\n  Q(P): {}\nevents:\n  E: {grid: [[P]]}\n")
    place = expanded(context(["E.grid[](Q)", "E.grid.x"], types=types), "E")
    assert [f"{each.path}: {each.path.type}" for each in converted_places(place)] == [
        "grid[][].x: double",
        "grid[][]: Q",
    ]
    whole = expanded(context(["E.grid[]", "E.grid.x"], types=types), "E")
    assert [str(each.path) for each in converted_places(whole)] == ["grid[]"]


def test_only_rules_of_the_direction_count() -> None:
    inwards = context(["Position"], direction=Direction.IN)
    assert list(converted_places(expanded(inwards, "StatusEvent"))) == []
    assert warnings(inwards) == ()


def test_children_inherit_rules_and_hide_types() -> None:
    """A rule of the parent means the parent's type, whatever the child calls the same."""
    parent = context(["Position"])
    own = types_of("types:\n  Position: {lat: double}\nevents:\n  Seen: {at: Position, of: Position}\n")
    seen = event("Seen", own)
    child = Context(id="child", parent=parent, types=Types(types={**TYPES.types, **own.types}, events=own.events))
    assert list(converted_places(resolve_event_type(seen, RuleSet.of(child, Direction.OUT), child.types))) == []
    assert (
        len(list(converted_places(resolve_event_type(event("StatusEvent"), RuleSet.of(child, Direction.OUT), TYPES))))
        == 2
    )


def test_kept_places_are_resolved_as_before() -> None:
    before = context(["Money", "StatusEvent.price"])
    kept = context(["Money", "StatusEvent.price", "StatusEvent.Position"], [f"StatusEvent.Position -> {KEEP}"])
    assert functions(expanded(kept, "StatusEvent")) == functions(expanded(before, "StatusEvent"))
    assert codes(kept) == []
    without = Context(id="child", parent=kept.parent, types=TYPES)
    assert functions(expanded(without, "StatusEvent")) == {**functions(expanded(before, "StatusEvent")), "pos": "c"}


def functions(place: ResolvedPlace) -> dict[str, str]:
    return {str(each.path): each.rule.function for each in converted_places(place) if each.rule is not None}


def wide(width: int) -> Types:
    """An event with so many places, itself included."""
    struct = Struct("Wide", tuple(Attribute(name=f"a{number}", type=INT) for number in range(width - 1)))
    return Types(types={"Wide": struct}, events=frozenset({"Wide"}))


def test_event_types_have_a_limit_of_places() -> None:
    place = expanded(context([], types=wide(10_000)), "Wide")
    assert len(place.attributes) == 9_999
    with pytest.raises(SituError, match="`Wide` has more than 10,000 places for a value") as caught:
        expanded(context([], types=wide(10_001)), "Wide")
    assert caught.value.code == "INT108"
    assert [problem.code.code for problem in warnings(context(["Wide.a0"], types=wide(10_001)))] == ["INT108"]
    assert warnings(context(["Wide.a0"], types=wide(10_000))) == ()


# ── warnings ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (
            "6",
            (
                "contexts/root.yaml:2:1: INT211 The rule `DangerCheck.Position -> b` is not applied at "
                "`DangerCheck.pos` (PositionWithHeight): `PositionWithHeight -> a` is about a subtype."
            ),
        ),
        (
            "7",
            (
                "contexts/root.yaml:2:1: INT206 The rule `DangerCheck.Position -> b` matches, but is never applied: "
                "at `DangerCheck.pos` (Position), `DangerCheck.pos` (PositionWithHeight), "
                "`StatusEvent.pos -> a` comes first."
            ),
        ),
        (
            "19",
            (
                "contexts/root.yaml:2:1: INT206 The rule `Shipment.main.goods.at -> b` matches, but is never applied: "
                "`Goods -> a` converts the whole value that `AirShipment.main.goods.at` (Position) is a part of."
            ),
        ),
        (
            "22",
            (
                "contexts/root.yaml:1:1: INT207 The rule `Shipment.crates.spare -> a` has no effect: "
                "`Shipment.crates[].spare(Position) -> b` (contexts/root.yaml:2), declared later in the same context, "
                "has the identical pattern."
            ),
        ),
        (
            "26",
            "contexts/root.yaml:1:1: INT205 The rule `Crate.Position -> a` matches no place of any event type (out).",
        ),
    ],
)
def test_warnings_say_what_happens_where(number: str, expected: str) -> None:
    assert [str(problem) for problem in warnings(context(*ROWS[number].rules))] == [expected]


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (["Odd"], []),
        (["StatusEvent.Position"], []),
        (["DangerCheck", "StatusEvent.pos"], []),  # still applied in StatusEvent itself
        (["Sample", "Shipment.tag(Sample)", "Shipment.fee(Sample)"], ["INT206 a"]),
        (["Position", "PositionWithHeight"], []),  # says nothing about the way: no exception
        (["PositionWithHeight", "StatusEvent.pos"], ["INT211 b"]),
        (["StatusEvent.PositionWithHeight", "DangerCheck.Position"], ["INT211 b"]),
        (["DangerCheck.PositionWithHeight", "StatusEvent.Position"], []),
        (["PositionWithHeight", "DangerCheck.Position", "DangerCheck.PositionWithHeight"], []),
        (["Money", "Money", "Money"], ["INT207 a", "INT207 b"]),
    ],
)
def test_rules_are_warned_about(rules: list[str], expected: list[str]) -> None:
    assert codes(context(rules)) == expected


def test_remedy_of_an_exception_that_a_subtype_escapes_works() -> None:
    (problem,) = warnings(context(["PositionWithHeight", f"DangerCheck.Position -> {IDENTITY}"]))
    assert problem.hint == (
        "If the exception is meant for the subtype as well, add the rule `DangerCheck.PositionWithHeight -> identity`."
    )


def test_hints_tell_rules_whose_head_is_no_event_from_those_that_just_match_nothing() -> None:
    types = types_of("types:\n  Lost: {x: double}\n  Lid: {l: Lost}\nevents:\n  E: {y: int}\n")
    assert [problem.hint for problem in warnings(context(["Lid.Lost", "Lost"], types=types))] == [
        "A pattern of several parts begins with the type of an event, and `Lid` is none.",
        "Take it out, or name a type or attribute that events have.",
    ]


def test_inherited_rules_are_not_warned_about_again() -> None:
    assert codes(context(["Crate.Position"], ["Money"])) == []
