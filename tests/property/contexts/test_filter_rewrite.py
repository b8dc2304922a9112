"""Mediated subscriptions: asking root events is the same as asking what would be delivered, for generated contexts."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from situ.contexts.model import Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.filter_rewrite import rewrite_subscription
from situ.contexts.transform.transformation import Transformation, transformations
from situ.event.message import join_lines
from situ.event.row import Origin, Row
from situ.explain.subscription import explain_filter_match
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.format import print_literal
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.scope import event_scope
from situ.lang.expr.tree import Node
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.types.json_codec import encode
from situ.lang.types.model import BOOLEAN, DOUBLE, INT, LONG, STRING, Struct, Type, plain
from situ.routing.model import Subscription
from situ.routing.routing_table import RoutingTable, compile_routing
from situ.stages.decode import EventDecoder
from tests.transformations import ENVELOPE, Case, generated_case, make_attributes
from tests.volume import seeds

COMPARED = {DOUBLE, INT, LONG, STRING}
EVENTS, FILTERS = 8, 4
RECEIVED = 1_793_521_800_000_000
TIMES = 3
"""So often the events stand behind each other where they are routed together: many are looked up in columns."""


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


class Asked(NamedTuple):
    """A subscription, and for each event whether what would be delivered passes its filter; None: nothing would be."""

    subscription: Subscription
    conditions: Mapping[str, Node]
    wanted: list[bool | None]


class Conditions:
    """What was asked in the terms of the context, by the subscription."""

    def __init__(self, asked: Iterable[Asked]) -> None:
        self._by_id = {each.subscription.id: each.conditions for each in asked}

    def conditions(self, subscription: Subscription) -> Mapping[str, Node]:
        return self._by_id[subscription.id]

    def observations(self, subscription: Subscription) -> Iterable[Problem]:  # noqa: ARG002 of the protocol
        return ()


def compare(seed: int, case: Case, made: Transformation, outbound: dict[str, Transformation]) -> int:
    dice = random.Random(seed)
    converter = Converter(made)
    sent = [make_attributes(dice, made.source, made.types) for _ in range(EVENTS)]
    delivered = [outcome(converter, data) for data in sent]
    filters = Filters(dice, made.target, delivered)
    if not filters.places or not filters.delivered:
        return 0
    asked: list[Asked] = []
    scope = event_scope(made.target, types=made.targets)
    for number in range(FILTERS):
        where = filters.text()
        checked = check_condition(where, scope)
        if checked.node is None:
            continue  # numbers with units are compared with quantities, which this does not write
        try:
            conditions = rewrite_subscription("a/b", [made.target.name], where, case.context, outbound, {})
        except SituError:
            continue  # a type that the generator gave to parts only
        received = {**ENVELOPE, "type": made.target.name}
        # Of what cannot be converted nothing is said: matched or not, it is a dead letter for this context.
        wanted = [None if given is None else holds(checked.node, received, given) for given in delivered]
        subscription = Subscription(
            client="desk", name=f"s{number}", types=(made.target.name,), where=where, context="c", durable=False
        )
        asked.append(Asked(subscription, conditions, wanted))
    return hold_routed(seed, made, sent, asked)


def hold_routed(seed: int, made: Transformation, sent: list[Any], asked: list[Asked]) -> int:
    """From the bytes that a client sends through decoding, reading and the index, as both engines do it."""
    body = join_lines([line_of(made, data) for data in sent])
    intake = EventDecoder(made.types, extra="drop", ahead=timedelta(minutes=5), limit=1 << 20)
    rows = intake.decode(body, Origin(client="gate", incarnation=1, seq=1, received=RECEIVED, pos=65_536))
    assert all(isinstance(row, Row) for row in rows), rows
    kept = [row for row in rows if isinstance(row, Row)]
    routing = compile_routing(
        types=made.types,
        functions={},
        subscriptions={each.subscription.id: each.subscription for each in asked},
        mediator=Conditions(asked),
    )
    one_by_one = [routed(routing, [row]) for row in kept]
    together = routed(routing, kept * TIMES)
    compared = 0
    for each in asked:
        name = each.subscription.name
        for place, (row, wanted) in enumerate(zip(kept, each.wanted, strict=True)):
            if wanted is None:
                continue
            found = {
                "matched": routing.matches(each.subscription.id, row),
                "explained": explain_filter_match(routing, each.subscription.id, row).matched,
                "one by one": (0, name) in one_by_one[place],
                "together": (place, name) in together,
            }
            assert found == dict.fromkeys(found, wanted), (seed, made.source.name, each.subscription.where, row.data)
            compared += 1
    return compared


def line_of(made: Transformation, data: Any) -> bytes:
    event = {"specversion": "1.0", "id": ENVELOPE["id"], "source": ENVELOPE["source"], "type": made.source.name}
    written = {**event, "time": "2026-11-01T08:30:00Z", "data": encode(made.source, data, made.types)}
    return json.dumps(written).encode()


def routed(routing: RoutingTable, rows: list[Row]) -> set[tuple[int, str]]:
    """Places of rows, and the names of the subscriptions that want them."""
    found = routing.route(rows) if len(rows) > 1 else routing.route_one(rows[0])
    return {(place, name) for place, _, names in found.live for name in names.split(",")}


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


@seeds(range(50), range(8_000))
def test_asking_root_events_is_asking_what_would_be_delivered(seeds: range) -> None:
    assert judge(seeds) > 5 * len(seeds)
