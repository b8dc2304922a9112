"""Mediated subscriptions: asking root events is the same as asking what would be delivered, for generated contexts."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Any

import pytest

from situ.errors import Problems, SituError
from situ.expr.check import check_condition
from situ.expr.interpret import interpret
from situ.expr.print import print_literal
from situ.expr.runtime import FAILURES
from situ.expr.scope import event_scope
from situ.expr.tree import Node
from situ.interpretation.convert import Converter
from situ.interpretation.mediation import mediate
from situ.interpretation.model import Direction
from situ.interpretation.transformation import Transformation, transformations
from situ.types.model import BOOLEAN, DOUBLE, INT, LONG, STRING, Struct, Type, plain
from tests.transformations import ENVELOPE, Case, generated_case, make_attributes

COMPARED = {DOUBLE, INT, LONG, STRING}
EVENTS, FILTERS = 8, 4


def places(struct: Struct, path: tuple[str, ...] = (), depth: int = 0) -> Iterator[tuple[tuple[str, ...], Type]]:
    """The single values of a struct, those of structs in it included."""
    for attribute in struct.attributes:
        bare = plain(attribute.type)
        if isinstance(bare, Struct) and depth < 3:
            yield from places(bare, (*path, attribute.name), depth + 1)
        elif bare in COMPARED or bare == BOOLEAN:
            yield (*path, attribute.name), bare


def at(data: Any, path: tuple[str, ...]) -> Any:
    for step in path:
        data = data.get(step) if isinstance(data, dict) else None
    return data


class Filters:
    """Filters on a type, with constants that its events really have, or the next ones to them."""

    def __init__(self, dice: random.Random, struct: Struct, delivered: list[Any]) -> None:
        self.dice = dice
        self.places = list(places(struct))
        self.delivered = [each for each in delivered if each is not None]

    def text(self, depth: int = 2) -> str:
        if depth and self.dice.random() < 0.5:
            word = self.dice.choice(("AND", "OR"))
            both = f"({self.text(depth - 1)}) {word} ({self.text(depth - 1)})"
            return f"NOT ({both})" if self.dice.random() < 0.2 else both
        path, type = self.dice.choice(self.places)
        name = ".".join(("data", *path))
        value = at(self.dice.choice(self.delivered), path)
        if value is None:
            return f"{name} IS {self.dice.choice(('', 'NOT '))}NULL"
        if type == BOOLEAN:
            return f"{name} = {self.dice.choice(('TRUE', 'FALSE'))}"
        if type == DOUBLE and self.dice.random() < 0.5:
            value = math.nextafter(value, self.dice.choice((-math.inf, math.inf)))
        return f"{name} {self.dice.choice(('=', '<>', '<', '<=', '>', '>='))} {print_literal(value)}"


def holds(node: Node, event: Any, data: Any) -> bool:
    try:
        return interpret(node, {"event": event, "data": data}) is True
    except FAILURES:
        return False


def outcome(converter: Converter, data: Any) -> Any:
    try:
        return converter.data(ENVELOPE, data)
    except FAILURES:
        return None


def compare(seed: int, case: Case, made: Transformation, outbound: dict[str, Transformation]) -> int:
    dice = random.Random(seed)
    converter = Converter(made)
    sent = [make_attributes(dice, made.source, made.types) for _ in range(EVENTS)]
    delivered = [outcome(converter, data) for data in sent]
    filters = Filters(dice, made.target, delivered)
    if not filters.places or not filters.delivered:
        return 0
    compared = 0
    scope = event_scope(made.target, types=made.targets)
    for _ in range(FILTERS):
        where = filters.text()
        checked = check_condition(where, scope)
        if checked.node is None:
            continue  # numbers with units are compared with quantities, which this does not write
        try:
            asked = mediate("a/b", [made.target.name], where, case.context, outbound, {})
        except SituError:
            continue  # a type that the generator gave to parts only
        event = {**ENVELOPE, "type": made.source.name}
        for data, given in zip(sent, delivered, strict=True):
            if given is None:
                continue  # matched or not, it is a dead letter for this context
            received = {**ENVELOPE, "type": made.target.name}
            here, there = holds(asked[made.source.name], event, data), holds(checked.node, received, given)
            assert here == there, (seed, made.source.name, where, data, given)
            compared += 1
    return compared


def judge(seeds: range) -> int:
    compared = 0
    for seed in seeds:
        case = generated_case(seed)
        if case is None or case.direction is not Direction.OUT:
            continue
        outbound = dict(transformations(case.context, Direction.OUT, Problems()))
        for made in outbound.values():
            if made.target.name in case.context.types.events and not made.externals:
                compared += compare(seed, case, made, outbound)
    return compared


def test_asking_root_events_is_asking_what_would_be_delivered() -> None:
    assert judge(range(200)) > 1000


@pytest.mark.soak
def test_asking_root_events_is_asking_what_would_be_delivered_at_length() -> None:
    assert judge(range(200, 8_000)) > 50_000
