"""Actions: what is built in, what declaring changes, and which of several is taken."""

from __future__ import annotations

from dataclasses import replace

from situ.quality.actions import NO_ACTIONS, Actions, steps_of, to_undo
from situ.quality.cost import UNAFFORDABLE, Constant, Points
from situ.quality.declared import Action
from situ.quality.property import BUILT_IN

RATE, LATENCY = BUILT_IN["rate"], BUILT_IN["latency"]
IMPRECISION = replace(BUILT_IN["imprecision"], of="level")
THIN = Action(property="rate", direction="down", action="thin", cost=Constant(0.5))
ADAPT_DOWN = Action(property="rate", direction="down", action="adaptPublisher", cost=Constant(1.0))


def names(found: tuple[Action, ...]) -> list[str]:
    return [each.action for each in found]


def test_what_is_built_in_fits_the_property_and_the_direction() -> None:
    assert names(NO_ACTIONS.alternatives(RATE, "up")) == ["adaptPublisher"]
    assert names(NO_ACTIONS.alternatives(RATE, "down")) == ["adaptPublisher", "thin"]
    assert names(NO_ACTIONS.alternatives(IMPRECISION, "up")) == ["adaptPublisher", "suppress"]
    assert names(NO_ACTIONS.alternatives(LATENCY, "down")) == []


def test_a_property_that_the_middleware_alone_determines_cannot_be_improved() -> None:
    assert NO_ACTIONS.can_improve(RATE)
    assert not NO_ACTIONS.can_improve(LATENCY)
    assert Actions((Action(property="latency", direction="down", action="adaptPublisher"),)).can_improve(LATENCY)
    assert not Actions((Action(property="latency", direction="up", action="adaptPublisher"),)).can_improve(LATENCY)


def test_the_cheapest_permitted_action_is_taken() -> None:
    actions = Actions((ADAPT_DOWN, THIN))
    chosen = actions.choose(RATE, 60.0, 10.0)
    assert chosen is not None
    assert (chosen.action, chosen.cost) == (THIN, 0.5)
    saving = actions.choose(RATE, 60.0, 10.0, operating=-5.0)
    assert saving is not None
    assert (saving.action, saving.cost) == (ADAPT_DOWN, -4.0), "what it saves the publisher counts"
    kept = actions.choose(RATE, 60.0, 10.0, operating=-5.0, permitted=lambda each: each.action == "thin")
    assert kept is not None
    assert kept.action == THIN


def test_of_equally_cheap_actions_that_declared_first_is_taken() -> None:
    same = replace(THIN, cost=Constant(1.0))
    for declared in ((same, ADAPT_DOWN), (ADAPT_DOWN, same)):
        chosen = Actions(declared).choose(RATE, 60.0, 10.0)
        assert chosen is not None
        assert chosen.action == declared[0]


def test_nothing_is_chosen_where_nothing_moves_or_nothing_is_permitted() -> None:
    assert NO_ACTIONS.choose(RATE, 10.0, 10.0) is None
    assert NO_ACTIONS.choose(RATE, 10.0, 20.0, permitted=lambda _: False) is None
    assert NO_ACTIONS.choose(LATENCY, 10.0, 5.0) is None


def test_what_adapting_costs_depends_on_the_target() -> None:
    rising = replace(ADAPT_DOWN, direction="up", cost=Points(((0.0, 0.0), (60.0, 6.0))))
    dear = Action(property="rate", direction="up", action="adapt slowly", steps=("adaptPublisher",), cost=Constant(2.0))
    actions = Actions((rising, dear))
    assert actions.cost_of_adapting(RATE, 2.0, 10.0) == 1.0
    assert actions.cost_of_adapting(RATE, 2.0, 40.0) == 2.0, "the sequence is cheaper there"
    assert actions.cost_of_adapting(RATE, 10.0, 2.0) == 0.0, "built in, at no cost"
    assert actions.cost_of_adapting(RATE, 2.0, 2.0) == 0.0
    assert actions.cost_of_adapting(LATENCY, 9.0, 2.0) == UNAFFORDABLE
    assert set(actions.knots_of_adapting(RATE)) == {0.0, 60.0}


def test_steps_that_were_done_are_undone_in_reverse() -> None:
    sequence = Action(property="rate", direction="down", action="a, b, c", steps=("a", "b", "c"))
    assert steps_of(sequence) == ("a", "b", "c")
    assert to_undo(sequence, 2) == ("b", "a")
    assert to_undo(sequence, 0) == ()
    assert steps_of(THIN) == ("thin",)
