"""Subscriptions in the terms of a context: what they ask of root events, exactly."""

from __future__ import annotations

import math

import pytest

from situ.contexts.load import load_contexts
from situ.contexts.model import Context, Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.filter_rewrite import rewrite_subscription
from situ.contexts.transform.transformation import transformations
from situ.lang.documents import parse_yaml
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.format import print_expression
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import event_scope
from situ.lang.expr.tree import Node
from situ.lang.problems import Problems, SituError
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types

TYPES = """
version: 1
types:
  Place: {x: double m, y: double m}
  Far(Place): {z: double m}
events:
  Update: {distance: double m, place: Place, note: optional string, count: int}
  Special(Update): {extra: string}
  Quiet: {text: string}
"""
US = """
version: 1
context: us
extends: root
types:
  Spot: {x: double yd, y: double yd}
events:
  Update: {distance: double yd, at: Spot, remark: optional string, count: int}
maps:
  - out: Update -> Update
    attributes: {at: place, remark: note}
functions:
  to_yards: double m -> double yd = value * 1.09
"""


@pytest.fixture(scope="module")
def types() -> Types:
    problems = Problems()
    loaded = load_types([parse_yaml(TYPES, "types/all.yaml")], problems)
    assert not problems.errors, problems.errors
    return loaded


@pytest.fixture(scope="module")
def us(types: Types) -> Context:
    problems = Problems()
    loaded = load_contexts([parse_yaml(US, "contexts/us.yaml")], types, {}, problems)
    assert not problems.errors, problems.errors
    found = loaded.get("us")
    assert found is not None
    return found


def asked(us: Context, where: str, *wanted: str) -> dict[str, Node]:
    problems = Problems()
    outbound = transformations(us, Direction.OUT, problems)
    assert not problems.errors, problems.errors
    return dict(rewrite_subscription("desk/us", wanted or ("Update",), where, us, outbound, {}))


def test_a_linear_function_moves_to_the_constant_exactly(us: Context) -> None:
    conditions = asked(us, "distance > 109")
    shown = {type: print_expression(node) for type, node in conditions.items()}
    assert shown == {
        "Update": "event.type = 'Update' AND distance >= 100.0 m",
        "Special": "distance >= 100.0 m",
    }


@pytest.mark.parametrize("where", ["distance > 109", "distance <= 109", "distance = 109", "NOT distance < 54.5"])
def test_thresholds_agree_with_what_would_be_delivered_to_the_last_bit(us: Context, where: str) -> None:
    outbound = transformations(us, Direction.OUT, Problems())
    converter = Converter(outbound["Update"])
    direct = asked_of_delivered(us, where)
    node = asked(us, where)["Update"]
    values = [50.0, 100.0, 109.0 / 1.09]
    for start in list(values):
        below = above = start
        for _ in range(5):
            below, above = math.nextafter(below, -math.inf), math.nextafter(above, math.inf)
            values += [below, above]
    for value in values:
        data = {"distance": value, "place": {"x": 1.0, "y": 2.0}, "count": 1}
        event = {"type": "Update", "id": "a", "source": "s"}
        delivered = converter.data(event, data)
        assert holds(node, event, data) == holds(direct, event, delivered), value


def asked_of_delivered(us: Context, where: str) -> Node:
    event = us.types.event("Update")
    assert event is not None
    return check_condition(where, event_scope(event, types=us.types)).tree()


def holds(node: Node, event: object, data: object) -> bool:
    try:
        return interpret(node, {"event": event, "data": data}) is True
    except FAILURES:
        return False


def test_renamed_attributes_are_found_where_they_come_from(us: Context) -> None:
    node = asked(us, "remark = 'x' AND count > 3")["Special"]
    text = print_expression(node)
    assert "note = 'x'" in text
    assert "count > 3" in text


def test_the_type_in_a_filter_is_the_one_that_is_delivered(us: Context) -> None:
    assert print_expression(asked(us, "event.type = 'Update'")["Special"]).lower() == "true"


def test_an_event_type_that_passes_can_be_subscribed_to(us: Context) -> None:
    assert print_expression(asked(us, "text = 'x'", "Quiet")["Quiet"]) == "text = 'x'"


def test_what_is_not_delivered_cannot_be_subscribed_to(us: Context) -> None:
    with pytest.raises(SituError) as refused:
        asked(us, "", "Special")
    assert [each.code.code for each in refused.value.problems] == ["INT601"]
    assert "no event type `Special` that is delivered in the context `us`" in str(refused.value)


def test_a_filter_is_checked_in_the_terms_of_the_context(us: Context) -> None:
    with pytest.raises(SituError) as refused:
        asked(us, "note = 'x'")
    assert [each.code.code for each in refused.value.problems] == ["INT602"]
