"""Which of several rules counts: the keys, and what people are told about the choice."""

from __future__ import annotations

import math

import pytest

from situ.contexts.model import IDENTITY, KEEP, Direction, Pattern, Rule
from situ.contexts.patterns import Traversal, TraversalStep, read_pattern
from situ.contexts.resolve_rules import SAYS_NOTHING, explain_choice, precedence_key, supertype_ranks
from situ.lang.problems import Problems
from situ.lang.types.model import STRING, ListOf, Named, Struct, Type
from tests.context_files import rank_rules
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


def type_of(name: str) -> Type:
    found = TYPES.get(name)
    assert found is not None
    return found


def pattern(text: str) -> Pattern:
    problems = Problems()
    found = read_pattern(text, TYPES, problems)
    assert found is not None, list(map(str, problems))
    return found


def rule(text: str, context: str = "root", order: int = 0, function: str = IDENTITY) -> Rule:
    return Rule(direction=Direction.OUT, pattern=pattern(text), function=function, context=context, order=order)


def way(event: str, *steps: tuple[str, str]) -> Traversal:
    found = type_of(event)
    assert isinstance(found, Struct)
    return Traversal(
        event=found, steps=tuple(TraversalStep(attribute=name, type=type_of(type)) for name, type in steps)
    )


AT = way("AirShipment", ("main", "Crate"), ("goods", "Drug"), ("at", "Position"))
NOTHING = (math.inf, 0, 0)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        ("Position", AT, ((0, 1, 0), NOTHING, NOTHING, NOTHING)),
        ("Shipment.Position", AT, ((0, 1, 0), (1, 1, 1), NOTHING, NOTHING)),
        ("Shipment.main.Position", AT, ((0, 1, 0), (1, 1, 1), (0, 0, 0), NOTHING)),
        ("AirShipment.Crate.goods.Position", AT, ((0, 1, 0), (0, 1, 0), (0, 1, 0), (1, 0, 1))),
        ("Shipment.main.goods(Drug).at", AT, ((0, 0, 0), (1, 1, 1), (0, 0, 0), (0, 0, 0))),
        ("Shipment", way("AirShipment"), ((1, 1, 1),)),
        ("Billable", way("Shipment", ("fee", "Odd")), ((2, 1, 1), NOTHING)),
        ("Taxed", way("Shipment", ("fee", "Odd")), ((1, 1, 2), NOTHING)),
    ],
)
def test_keys_say_distance_kind_and_order_a_level(text: str, path: Traversal, expected: tuple[object, ...]) -> None:
    assert precedence_key(pattern(text), path) == expected
    assert SAYS_NOTHING == NOTHING


def test_distance_is_the_longest_chain_and_order_a_walk_up() -> None:
    assert dict(supertype_ranks(type_of("Sample"))) == {
        type_of("Sample"): (0, 0),
        type_of("Named"): (1, 1),
        type_of("Taxed"): (1, 2),
        type_of("Billable"): (2, 3),
    }
    odd = {str(above): found for above, found in supertype_ranks(ListOf(type_of("Odd"))).items()}
    assert odd == {"[Odd]": (0, 0), "[Billable]": (2, 1), "[Taxed]": (1, 2)}
    tag = Named("Badge", Named("Tag", STRING))
    assert list(supertype_ranks(tag).values()) == [(0, 0), (1, 1), (2, 2)]


def test_types_over_many_ways_are_visited_once() -> None:
    """Forty diamonds above each other have a million million ways up."""
    top = Struct("D0", ())
    for number in range(1, 41):
        left, right = (Struct(f"{side}{number}", (), (top,)) for side in "LR")
        top = Struct(f"D{number}", (), (left, right))
    found = supertype_ranks(top)
    assert len(found) == 121
    assert max(distance for distance, _ in found.values()) == 80


def depth_of(context: str) -> int:
    return ("root", "child", "grandchild").index(context)


def test_identical_patterns_are_overridden_by_specialised_contexts_then_later_declarations() -> None:
    rules = [
        rule("Money", "root", 0),
        rule("Money", "child", 0),
        rule("Money", "child", 1),
        rule("Money", "root", 1),
        rule("StatusEvent.price", "root", 2),
        rule("StatusEvent.cost", "child", 2),
    ]
    path = way("StatusEvent", ("price", "Money"))
    ranked = rank_rules(rules, path, depth_of)
    assert [(str(each.pattern), each.context, each.order) for each in ranked] == [
        ("StatusEvent.price(Money)", "root", 2),
        ("Money", "child", 1),
        ("Money", "child", 0),
        ("Money", "root", 1),
        ("Money", "root", 0),
    ]
    assert rank_rules(reversed(rules), path, depth_of) == ranked


def test_keep_lets_win_who_would_without_the_identical_patterns_above() -> None:
    general, specific, keep = rule("Money"), rule("StatusEvent.price"), rule("StatusEvent.price", "child", 0, KEEP)
    path = way("StatusEvent", ("price", "Money"))
    assert rank_rules([general, specific], path, depth_of) == [specific, general]
    assert rank_rules([general, specific, keep], path, depth_of) == [general]
    assert rank_rules([specific, keep], path, depth_of) == []
    own = rule("StatusEvent.price", "grandchild")
    assert rank_rules([general, specific, keep, own], path, depth_of) == [own, keep, specific, general]


@pytest.mark.parametrize(
    ("a", "b", "path", "expected"),
    [
        ("DangerCheck.Position", "Position", way("DangerCheck", ("pos", "Position")), "P1 at level 0"),
        ("StatusEvent.cost", "Money", way("StatusEvent", ("cost", "Money")), "P2 at the target"),
        (
            "StatusEvent.pos(PositionWithHeight)",
            "StatusEvent.pos",
            way("StatusEvent", ("pos", "PositionWithHeight")),
            "P3 at the target",
        ),
        (
            "StatusEvent.PositionWithHeight",
            "StatusEvent.pos",
            way("StatusEvent", ("pos", "PositionWithHeight")),
            "P6: P3 at the target, before P2 at the target",
        ),
        (
            "PositionWithHeight",
            "DangerCheck.Position",
            way("DangerCheck", ("pos", "PositionWithHeight")),
            "P6: P3 at the target, before P1 at level 0",
        ),
        ("StatusEvent.pos", "DangerCheck.Position", way("DangerCheck", ("pos", "Position")), "P2 at the target"),
        ("DangerCheck.Position", "StatusEvent.Position", way("DangerCheck", ("pos", "Position")), "P3 at level 0"),
        (
            "Shipment.main.Position",
            "Shipment.Crate.Goods.Position",
            AT,
            "P5: P2 at level 1, before P1 at level 2",
        ),
        (
            "AirShipment.Position",
            "Shipment.Crate.Goods.Position",
            AT,
            "P6: P3 at level 0, before P1 at level 1",
        ),
        ("Named", "Billable", way("Shipment", ("tag", "Goods")), "P4 at the target"),
        ("Named", "Billable", way("Shipment", ("tag", "Sample")), "P4 at the target"),
        ("Taxed", "Billable", way("Shipment", ("fee", "Odd")), "P3 at the target"),
        ("Shipment.fee", "Shipment.Named", way("Shipment", ("fee", "Goods")), "P2 at the target"),
    ],
)
def test_choices_are_explained(a: str, b: str, path: Traversal, expected: str) -> None:
    winner, loser = rule(a), rule(b)
    assert rank_rules([loser, winner], path, depth_of)[0] is winner
    assert explain_choice(winner, loser, path) == expected
    assert explain_choice(loser, winner, path) == expected


def test_choice_between_identical_patterns_is_explained() -> None:
    path = way("StatusEvent", ("price", "Money"))
    assert explain_choice(rule("Money", "child"), rule("Money"), path) == "overridden in the more specialised context"
    assert explain_choice(rule("Money", order=1), rule("Money"), path) == "declared last"
