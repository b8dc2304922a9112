"""Actions: what is built in, what declaring changes, and what the cheapest of several costs."""

from __future__ import annotations

from situ.lang.records import replace
from situ.quality.model.allocation_problem import NO_ACTIONS, PublisherActions
from situ.quality.model.costs import UNAFFORDABLE, ConstantCost, PiecewiseCost
from situ.quality.model.declarations import BUILT_IN, PublisherAction

RATE, LATENCY = BUILT_IN["rate"], BUILT_IN["latency"]
THIN = PublisherAction(property="rate", direction="down", action="thin", cost=ConstantCost(0.5))
ADAPT_DOWN = PublisherAction(property="rate", direction="down", action="adaptPublisher", cost=ConstantCost(1.0))


def names(found: tuple[PublisherAction, ...]) -> list[str]:
    return [each.action for each in found]


def test_publishers_can_be_asked_for_what_they_determine() -> None:
    assert names(NO_ACTIONS.adapting(RATE, "up")) == ["adaptPublisher"]
    assert names(NO_ACTIONS.adapting(RATE, "down")) == ["adaptPublisher"]
    assert names(NO_ACTIONS.adapting(LATENCY, "down")) == []


def test_who_declares_asking_says_what_it_costs_and_others_stand_beside_it() -> None:
    both = PublisherAction(
        property="rate", direction="down", action="adaptPublisher then thin", steps=("adaptPublisher", "thin")
    )
    assert PublisherActions((ADAPT_DOWN,)).adapting(RATE, "down") == (ADAPT_DOWN,)
    assert names(PublisherActions((both,)).adapting(RATE, "down")) == ["adaptPublisher then thin", "adaptPublisher"]
    assert names(PublisherActions((both,)).adapting(RATE, "up")) == ["adaptPublisher"], (
        "declared for the other direction"
    )


def test_to_shape_a_stream_moves_no_publisher() -> None:
    assert names(PublisherActions((THIN,)).adapting(RATE, "down")) == ["adaptPublisher"]
    assert PublisherActions((THIN,)).cost_of_adapting(RATE, 60.0, 10.0) == 0.0


def test_a_property_that_the_middleware_alone_determines_cannot_be_improved() -> None:
    assert NO_ACTIONS.can_improve(RATE)
    assert not NO_ACTIONS.can_improve(LATENCY)
    assert PublisherActions(
        (PublisherAction(property="latency", direction="down", action="adaptPublisher"),)
    ).can_improve(LATENCY)
    assert not PublisherActions(
        (PublisherAction(property="latency", direction="up", action="adaptPublisher"),)
    ).can_improve(LATENCY)


def test_what_adapting_costs_depends_on_the_target() -> None:
    rising = replace(ADAPT_DOWN, direction="up", cost=PiecewiseCost(((0.0, 0.0), (60.0, 6.0))))
    dear = PublisherAction(
        property="rate", direction="up", action="adapt slowly", steps=("adaptPublisher",), cost=ConstantCost(2.0)
    )
    actions = PublisherActions((rising, dear))
    assert actions.cost_of_adapting(RATE, 2.0, 10.0) == 1.0
    assert actions.cost_of_adapting(RATE, 2.0, 40.0) == 2.0, "the sequence is cheaper there"
    assert actions.cost_of_adapting(RATE, 10.0, 2.0) == 0.0, "built in, at no cost"
    assert actions.cost_of_adapting(RATE, 2.0, 2.0) == 0.0
    assert actions.cost_of_adapting(LATENCY, 9.0, 2.0) == UNAFFORDABLE
    assert set(actions.knots_of_adapting(RATE)) == {0.0, 60.0}
