"""Generated subscriptions and events: the index gives what evaluating every subscription gives."""

from __future__ import annotations

import decimal
import random
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from situ.event.instants import microseconds
from situ.event.row import Row
from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node
from situ.lang.problems import SituError
from situ.lang.types.json_codec import encode
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    POINT,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    plain,
)
from situ.lang.types.table import Types
from situ.routing import Subscription
from situ.routing.delivery_groups import group_of
from situ.routing.filter import FilterTemplates, read_filter
from situ.routing.routing_table import RoutedRows, RoutingTable, compile_routing
from tests.expressions import LINE, ROW, UNITS, Generator, make_row
from tests.oracles.routing import NaiveRouting
from tests.volume import cases

THING = Struct(
    "Thing",
    (
        Attribute(name="id", type=STRING),
        Attribute(name="room", type=STRING, optional=True),
        Attribute(name="floor", type=INT),
        Attribute(name="weight", type=LONG, optional=True),
        Attribute(name="celsius", type=DOUBLE),
        Attribute(name="at", type=POINT, unit=UNITS.parse("m"), optional=True),
        Attribute(name="open", type=BOOLEAN),
        Attribute(name="locked", type=BOOLEAN, optional=True),
        Attribute(name="price", type=Decimal(8, 2), optional=True),
        Attribute(name="since", type=TIMESTAMP),
        Attribute(name="day", type=DATE, optional=True),
        Attribute(name="lasting", type=DURATION, optional=True),
        Attribute(name="raw", type=BYTES, optional=True),
        Attribute(name="tags", type=ListOf(STRING), optional=True),
    ),
)
DOOR = Struct("Door", (*THING.attributes, Attribute(name="leaves", type=INT, optional=True)), (THING,))
GATE = Struct("Gate", (*DOOR.attributes, Attribute(name="height", type=DOUBLE, unit=UNITS.parse("m"))), (DOOR,))
LAMP = Struct("Lamp", (*THING.attributes, Attribute(name="lumen", type=DOUBLE)), (THING,))
TYPES = Types(
    types={each.name: each for each in (THING, DOOR, GATE, LAMP, ROW, LINE)},
    events=frozenset({"Thing", "Door", "Gate", "Lamp", "Row"}),
    units=UNITS,
)
EVENTS = (THING, DOOR, GATE, LAMP)
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Users:
    """Filters as people write them, and events that some of them want."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)

    def atom(self) -> str:
        dice = self.dice
        text, number = f"'r{dice.randrange(6)}'", dice.randrange(6)
        instant = f"TIMESTAMP '2026-11-15T12:00:0{number}Z'"
        return dice.choice(
            (
                lambda: f"id = 'i{dice.randrange(20)}'",
                lambda: f"room = {text}",
                lambda: f"room <> {text}",
                lambda: f"room IN ('r1', {text}, 'r9')",
                lambda: f"room NOT IN ('r1', {text})",
                lambda: f"floor = {number}",
                lambda: f"{number} < floor",
                lambda: f"floor {dice.choice(('<', '<=', '>', '>=', '<>'))} {number}",
                lambda: f"floor BETWEEN {number - 1} AND {number}",
                lambda: f"floor NOT BETWEEN {number - 1} AND {number}",
                lambda: f"weight > {number}",
                lambda: f"weight IN ({number}, 2, 9223372036854775807)",
                lambda: f"celsius > {number}.5 AND celsius <= {number + 2}",
                lambda: f"celsius = {number}",
                lambda: f"celsius * 1.8 + 32 < {32 + number}",
                lambda: f"at.x < {number} m",
                lambda: f"at.x > {number} ft AND at.y < 300 cm",
                lambda: "at IS NULL",
                lambda: "at IS NOT NULL",
                lambda: "room IS NULL",
                lambda: "open",
                lambda: "NOT open",
                lambda: "locked",
                lambda: "NOT locked",
                lambda: "locked IS TRUE",
                lambda: "locked IS NOT TRUE",
                lambda: "locked = FALSE",
                lambda: f"price >= {number}.25",
                lambda: f"price = {number}",
                lambda: f"since >= {instant}",
                lambda: f"since = {instant}",
                lambda: f"event.time < {instant}",
                lambda: f"event.time = {instant}",
                lambda: f"event.confidence > {10 * number} [%]",
                lambda: "event.confidence IS NULL",
                lambda: f"event.source = 'reader-{number}'",
                lambda: "event.source LIKE 'reader-%'",
                lambda: f"event.id LIKE 'x{number}%'",
                lambda: "day = DATE '2026-11-15'",
                lambda: f"day > DATE '2026-11-1{number}'",
                lambda: f"lasting < DURATION 'PT{number}S'",
                lambda: f"id LIKE 'i{number}%'",
                lambda: "id LIKE 'i1_'",
                lambda: f"id LIKE '%{number}'",
                lambda: f"room LIKE 'r{number}'",
                lambda: f"starts_with(id, 'i{number}')",
                lambda: "NOT (id LIKE 'i1%')",
                lambda: "type IS Door",
                lambda: "NOT (type IS Gate)",
                lambda: f"length(id) > {number}",
                lambda: f"1 / (floor - {number}) > 0",
                lambda: f"exists(tags, x -> x = {text})",
                lambda: "raw IS NOT NULL",
                lambda: "TRUE",
                lambda: "FALSE",
            )
        )()

    def where(self, depth: int = 2) -> str:
        dice = self.dice
        if depth == 0 or dice.random() < 0.35:
            return self.atom()
        word = dice.choice((" AND ", " AND ", " OR "))
        return word.join(f"({self.where(depth - 1)})" for _ in range(dice.choice((2, 2, 3))))

    def subscription(self, number: int) -> Subscription:
        dice = self.dice
        types = tuple(sorted(dice.sample([each.name for each in EVENTS], dice.choice((1, 1, 1, 2)))))
        where = "" if dice.random() < 0.05 else self.where()
        client = f"c{dice.randrange(8)}"
        return Subscription(client=client, name=f"s{number}", types=types, where=where, durable=dice.random() < 0.5)

    def row(self, number: int) -> Row:
        dice = self.dice
        event = dice.choice(EVENTS)
        data: dict[str, Any] = {}
        for each in event.attributes:
            if not (each.optional and dice.random() < 0.4):
                data[each.name] = self.value(each)
        return row_of(event, data, number, dice)

    def value(self, attribute: Attribute) -> Any:
        dice = self.dice
        match attribute.name:
            case "id":
                return f"i{dice.randrange(20)}"
            case "room":
                return dice.choice(("r0", "r1", "r2", "r3", "r9", "", "R1"))
            case "at":
                return {"x": dice.randrange(8) * 0.5, "y": dice.choice((0.0, 3.0, -0.0, 1e300))}
            case "price":
                return dice.choice([decimal.Decimal(text) for text in ("0.00", "1.25", "3.25", "5.00")])
            case "since":
                return NOON + timedelta(seconds=dice.randrange(6))
            case "day":
                return NOON.date() + timedelta(days=dice.randrange(-3, 3))
            case "lasting":
                return timedelta(seconds=dice.randrange(-1, 6))
            case "tags":
                return dice.choice(([], ["r1"], ["r2", None]))
            case "raw":
                return b"x"
        bare = plain(attribute.type)
        if bare == BOOLEAN:
            return dice.random() < 0.5
        return dice.choice((0.0, 1.0, 2.5, 5.0, -3.25)) if bare == DOUBLE else dice.choice((-1, 0, 1, 2, 3, 2**31 - 1))


def row_of(event: Struct, data: dict[str, Any], number: int, dice: random.Random) -> Row:
    return Row(
        pos=number,
        client=f"c{dice.randrange(8)}",
        incarnation=1,
        seq=number + 1,
        context="root",
        recv=microseconds(NOON),
        id=f"x{dice.randrange(10)}{number}",
        source=dice.choice(("reader-1", "reader-2", "other")),
        type=event.name,
        time=microseconds(NOON + timedelta(seconds=dice.randrange(6))),
        ad="",
        confidence=dice.choice((None, 10.0, 30.0, 100.0)),
        ext="",
        data=msgspec.json.encode(encode(event, data, TYPES)),
    )


def compiled(subscriptions: Mapping[str, Subscription], previous: RoutingTable | None = None) -> RoutingTable:
    return compile_routing(types=TYPES, functions={}, subscriptions=subscriptions, previous=previous)


def expected(rows: Sequence[Row], subscriptions: Mapping[str, Subscription]) -> RoutedRows:
    """What is delivered, by the obvious evaluation of every subscription."""
    reference = NaiveRouting(types=TYPES, functions={}, subscriptions=subscriptions)
    routed = RoutedRows()
    for place, row in enumerate(rows):
        wanting = [subscriptions[id] for id in reference.match(row)]
        for group in sorted({group_of(each) for each in wanting if each.durable}):
            routed.durable.append((place, group))
        for client in sorted({each.client for each in wanting if not each.durable and each.client != row.client}):
            names = sorted(each.name for each in wanting if not each.durable and each.client == client)
            routed.live.append((place, client, ",".join(names)))
    return routed


def one_by_one(routing: RoutingTable, rows: Sequence[Row]) -> RoutedRows:
    routed = RoutedRows()
    for place, row in enumerate(rows):
        found = routing.route_one(row)
        routed.durable.extend((place, group) for _, group in found.durable)
        routed.live.extend((place, client, names) for _, client, names in found.live)
    return routed


def by_id(subscriptions: Sequence[Subscription]) -> dict[str, Subscription]:
    return {each.id: each for each in subscriptions}


@pytest.mark.parametrize(
    "seed", [0, 2, 5, *(pytest.param(n, marks=pytest.mark.soak) for n in (1, 3, 4, *range(6, 12)))]
)
def test_routing_is_evaluating_everything(seed: int) -> None:
    users = Users(seed)
    subscriptions = by_id([users.subscription(number) for number in range(1 if seed == 0 else 15 * seed)])
    rows = [users.row(number) for number in range(120)]
    routing = compiled(subscriptions)
    wanted = expected(rows, subscriptions)
    assert routing.route(rows) == wanted
    assert one_by_one(routing, rows) == wanted
    reference = NaiveRouting(types=TYPES, functions={}, subscriptions=subscriptions)
    for row in rows[:20]:
        assert {id for id in subscriptions if routing.matches(id, row)} == reference.match(row)


@cases(75, 250)
def test_one_filter_at_a_time(cases: int) -> None:
    """A wrong answer cannot hide behind other filters of the same subscriber."""
    users = Users(99)
    rows = [users.row(number) for number in range(60)]
    matched = 0
    for number in range(cases):
        subscriptions = by_id([users.subscription(number)])
        routed = compiled(subscriptions).route(rows)
        assert routed == expected(rows, subscriptions), subscriptions
        matched += bool(routed.durable or routed.live)
    assert matched > cases / 4


@pytest.mark.parametrize("part", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 3))])
def test_any_expression_of_the_language(part: int) -> None:
    subscriptions: dict[str, Subscription] = {}
    for seed in range(part * 150, part * 150 + 150):
        text = Generator(seed).of("boolean", random.Random(seed).randrange(1, 4))
        each = Subscription(client="c", name=f"s{seed}", types=("Row",), where=text)
        try:
            read_filter(each.id, ROW, text, TYPES, {}, DEFAULT_LIMITS)
        except SituError:
            continue  # a constant part that always fails is refused
        subscriptions[each.id] = each
    assert len(subscriptions) > 120
    dice = random.Random(part)
    rows = [row_of(ROW, make_row(dice), number, dice) for number in range(60)]
    routing = compiled(subscriptions)
    wanted = expected(rows, subscriptions)
    assert routing.route(rows) == wanted
    assert one_by_one(routing, rows) == wanted


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.soak) for n in range(1, 4))])
def test_a_changed_snapshot_is_a_fresh_one(seed: int) -> None:
    users = Users(500 + seed)
    rows = [users.row(number) for number in range(50)]
    subscriptions: dict[str, Subscription] = {}
    routing = compiled(subscriptions)
    earlier: list[tuple[RoutingTable, RoutedRows]] = []
    for step in range(40):
        changed = dict(subscriptions)
        for id in users.dice.sample(sorted(changed), min(len(changed), users.dice.randrange(3))):
            del changed[id]
        for number in range(users.dice.choice((0, 1, 1, 2, 6))):
            new = users.subscription(1000 * step + number)
            changed[new.id] = new
        if changed and users.dice.random() < 0.3:  # the same name asks for something else
            old = changed[users.dice.choice(sorted(changed))]
            other = users.subscription(0)
            changed[old.id] = Subscription(
                client=old.client, name=old.name, types=other.types, where=other.where, durable=other.durable
            )
        put = {id: each for id, each in changed.items() if subscriptions.get(id) != each}
        drop = subscriptions.keys() - changed.keys()
        subscriptions = changed
        routing = routing.updated(put, drop) if step % 2 else compiled(subscriptions, routing)
        fresh = compiled(subscriptions)
        assert routing.groups == fresh.groups
        routed = routing.route(rows)
        assert routed == fresh.route(rows)
        earlier.append((routing, routed))
    assert routed == expected(rows, subscriptions)
    for snapshot, before in earlier[::5]:  # what was made later changed nothing of it
        assert snapshot.route(rows) == before


@cases(100, 400)
def test_a_filter_by_its_shape_is_the_filter_read(cases: int) -> None:
    users, shapes, marked = Users(7), FilterTemplates(), 0

    def read(where: str) -> Node:
        nonlocal marked
        marked += "\ue000" in where
        return simplify(read_filter("a/b", THING, where, TYPES, {}, DEFAULT_LIMITS))

    for _ in range(cases):
        where = users.where()
        expected = read(where)
        shapes.node("Thing", where, read)
        # A second time it is put together; constants that turn out to be equal are only then found to be.
        assert simplify(shapes.node("Thing", where, read)) == expected, where
    assert marked > cases / 8


@pytest.mark.parametrize(
    "where",
    [
        "'r1' = room AND room <> 'r1'",
        "'a' = 'b' OR room = 'a'",
        "room || 'a' = 'ra' AND 'x' || 'y' = 'xy'",
        "CASE WHEN room = 'a' THEN 'x' ELSE 'y' END = 'x'",
        "upper('a') = 'A' AND room = 'a'",
        "room IN ('a', 'a', 'b') AND room IN ('a', NULL)",
        "room = 'it''s' OR `room` = 'a'",
        "since = TIMESTAMP '2026-11-15T12:00:00Z' OR room = 'a'",
        "room LIKE 'a%' AND room IN ('ab', 'b')",
        "room = 'a' AND room = '\ue0000\ue000'",
        "room > 'a' AND (room = 'b')",
        "room = 'back\\slash' OR room = 'new\nline'",
    ],
)
def test_texts_that_matter_are_read(where: str) -> None:
    shapes = FilterTemplates()
    for other in ("'zz'", "'q'", "'x'"):
        text = where.replace("'a'", other)

        def read(where: str) -> Node:
            return simplify(read_filter("a/b", THING, where, TYPES, {}, DEFAULT_LIMITS))

        for _ in range(2):
            assert simplify(shapes.node("Thing", text, read)) == read(text)
