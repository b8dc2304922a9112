"""Routing: groups, addressees, snapshots, and where the index files what."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import msgspec
import pytest

from situ.event.lines import dead_letter, decode_line
from situ.event.row import BadRow, Row
from situ.explain.subscription import explain_filter_match
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.scope import event_scope
from situ.lang.expr.simplify import simplify
from situ.lang.problems import SituError
from situ.lang.types.model import BOOLEAN, DOUBLE, INT, STRING, Attribute, Struct
from situ.lang.types.table import Types
from situ.routing import Subscription
from situ.routing.delivery_groups import DeliveryTargets, SharedMap, group_id, group_of, merge
from situ.routing.filter_index import Intervals
from situ.routing.normal_form import IsAbsent, IsPresent, NoneOf, OneOf, Opaque, Prefix, RangeBound, normal_form
from situ.routing.routing_table import RoutedRows, RoutingTable, compile_routing
from tests.oracles.routing import match_all

SEEN = Struct(
    "Seen",
    (
        Attribute(name="tag", type=STRING),
        Attribute(name="room", type=STRING, optional=True),
        Attribute(name="floor", type=INT),
        Attribute(name="speed", type=DOUBLE),
        Attribute(name="new", type=BOOLEAN, optional=True),
    ),
)
TRACKED = Struct("Tracked", (*SEEN.attributes, Attribute(name="by", type=STRING)), (SEEN,))
OTHER = Struct("Other", (Attribute(name="x", type=DOUBLE),))
TYPES = Types(
    types={each.name: each for each in (SEEN, TRACKED, OTHER)}, events=frozenset({"Seen", "Tracked", "Other"})
)


def want(id: str, where: str = "", *types: str, durable: bool = False) -> Subscription:
    client, name = id.split("/")
    return Subscription(client=client, name=name, types=types or ("Seen",), where=where, durable=durable)


def routing(*wanted: Subscription, previous: RoutingTable | None = None) -> RoutingTable:
    return compile_routing(
        types=TYPES, functions={}, subscriptions={each.id: each for each in wanted}, previous=previous
    )


def seen(type: str = "Seen", client: str = "p", **data: Any) -> Row:
    values = {"tag": "T1", "floor": 2, "speed": 1.5, **({"by": "x"} if type == "Tracked" else {}), **data}
    text = msgspec.json.encode(values)
    return Row(1, client, 1, 1, "root", 0, "a", client, type, 0, "", None, "", text)


def test_groups_and_clients_in_the_order_of_rows() -> None:
    known = routing(
        want("b/x", "floor = 2"),
        want("b/a", "speed > 1"),
        want("a/x"),
        want("c/d", "floor = 2", durable=True),
        want("d/d", "floor = 2", durable=True),
        want("e/d", "tag LIKE 'T%'", "Seen", "Tracked", durable=True),
    )
    first, second = group_id(("Seen",), "floor = 2"), group_id(("Seen", "Tracked"), "tag LIKE 'T%'")
    rows = [seen(), seen(floor=3, tag="U"), seen("Tracked", speed=0.0)]
    assert known.route(rows) == RoutedRows(
        [(0, group) for group in sorted((first, second))] + [(2, group) for group in sorted((first, second))],
        [(0, "a", "x"), (0, "b", "a,x"), (1, "a", "x"), (1, "b", "a"), (2, "a", "x"), (2, "b", "x")],
    )
    assert known.groups[first].subscriptions == ("c/d", "d/d")
    assert known.groups[second].types == ("Seen", "Tracked")


def test_a_filter_that_does_not_type_is_refused() -> None:
    with pytest.raises(SituError, match="INT602"):
        routing(want("e/d", "tag LIKE 'T%'", "Other"))
    with pytest.raises(SituError, match="INT601"):
        routing(want("e/d", "", "Nothing"))


def test_clients_get_no_events_of_their_own() -> None:
    known = routing(want("p/all"), want("q/all"), want("p/kept", durable=True))
    assert known.route([seen()]).live == [(0, "q", "all")]
    assert known.route_one(seen()).live == [(0, "q", "all")]
    assert len(known.route([seen()]).durable) == 1  # a group may have others; the client drops its own
    assert known.matches("p/all", seen())


def test_events_of_unknown_types_and_unwanted_ones_go_nowhere() -> None:
    known = routing(want("a/x", "floor = 9"))
    assert known.route([seen(), seen("Gone"), seen("Other", x=1.0)]) == RoutedRows()
    assert known.route_one(seen("Gone")) == RoutedRows()
    assert not known.matches("a/x", seen("Gone"))
    assert routing().route([seen()]) == RoutedRows()
    assert routing(want("a/x")).route([]) == RoutedRows()


def test_supertypes_want_subtypes_once() -> None:
    known = routing(want("a/x", "floor = 2", "Seen", "Tracked"))
    assert known.route([seen("Tracked")]).live == [(0, "a", "x")]
    assert known.route_one(seen("Tracked")).live == [(0, "a", "x")]


def test_dead_letters_reach_their_sender_too() -> None:
    known = routing(want("p/dead", "code = 'E701'", "situ.deadletter"))
    errors = (("E701", "", "no JSON", "write JSON"),)
    bad = BadRow(pos=1, client="p", incarnation=1, seq=1, context="root", recv=0, ad="", stage="decode", errors=errors,
              original=b"{")  # fmt: skip
    assert known.route_one(decode_line(dead_letter(bad, 5))).live == [(0, "p", "dead")]


def test_group_ids_never_change() -> None:
    """Consumers on the bus hang from them, over restarts and releases."""
    assert group_of(want("a/b", "floor = 2", durable=True)) == "1baebef196c9376b"
    assert group_id(("A",), "x  =  1") == group_id(("A",), "x = 1")
    assert group_id(("A", "B"), "") == group_id(("B", "A"), "")
    assert group_id(("A",), "x = 1") != group_id(("A",), "x = 2")


def test_equal_filters_are_one() -> None:
    known = routing(
        *(
            want(f"c{number}/a", text)
            for number, text in enumerate(("floor = 2", "2 = floor", "floor  =  2", "floor IN (2)"))
        )
    )
    assert len(known.wanted.filters) == 1
    assert len(known.route_one(seen()).live) == 4


def test_a_snapshot_keeps_what_did_not_change() -> None:
    many = [want(f"c{number}/a", f"tag = 'T{number}'") for number in range(200)]
    first = routing(*many)
    first.route([seen()])
    assert routing(*many, previous=first) is first
    second = routing(*many[1:], want("new/a", "tag = 'T1' AND floor = 2"), previous=first)
    kept = set(first.wanted.filters.values()) & set(second.wanted.filters.values())
    assert len(kept) == 199
    assert second.route_one(seen()).live == [(0, "c1", "a"), (0, "new", "a")]
    assert first.route_one(seen()).live == [(0, "c1", "a")]
    assert second.route_one(seen(tag="T0")).live == []
    assert first.route_one(seen(tag="T0")).live == [(0, "c0", "a")]
    third = routing(*many, previous=second)
    assert third.route_one(seen(tag="T0")).live == [(0, "c0", "a")]


def test_segments_stay_few_however_filters_come_and_go() -> None:
    known = routing()
    known.route([seen()])
    wanted: list[Subscription] = []
    for number in range(300):
        wanted.append(want(f"c{number}/a", f"tag = 'T{number}'"))
        known = routing(*wanted, previous=known)
    index = known._indexes["Seen"]
    assert len(index.segments) <= 8
    assert index.filters == 300
    for number in range(0, 300, 7):
        assert known.route_one(seen(tag=f"T{number}")).live == [(0, f"c{number}", "a")]
    while wanted:
        del wanted[:10]
        known = routing(*wanted, previous=known)
    assert known._indexes["Seen"].filters == 0
    assert len(known.wanted.meaning.texts) <= 1300


def test_other_types_give_a_snapshot_of_their_own() -> None:
    first = routing(want("a/x", "floor = 2"))
    narrower = Types(types={"Seen": SEEN}, events=frozenset({"Seen"}))
    subscriptions = dict(first.subscriptions)
    second = compile_routing(types=narrower, functions={}, subscriptions=subscriptions, previous=first)
    assert second.wanted.meaning.types == narrower
    assert second.route([seen(), seen("Tracked")]).live == [(0, "a", "x")]


def test_null_and_failure_are_no_match() -> None:
    known = routing(
        want("a/null", "room = 'lab'"),
        want("b/not", "NOT (room = 'lab')"),
        want("c/fails", "1 / (floor - 2) > 0"),
        want("d/either", "1 / (floor - 2) > 0 OR tag = 'T1'"),
        want("e/absent", "room IS NULL"),
    )
    assert known.route([seen()]).live == [(0, "d", "either"), (0, "e", "absent")]
    assert known.route([seen(room="hall", floor=3)]).live == [(0, "b", "not"), (0, "c", "fails"), (0, "d", "either")]


def test_what_cannot_be_looked_up_is_counted() -> None:
    known = routing(want("a/x", "length(tag) > 1"), want("b/x", "floor = 2"), want("c/x", "floor <> 2"))
    known.route([seen()])
    assert known.scanned == 2


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("tag = 'T1'", "the value of `data.tag`"),
        ("room IN ('a', 'b') AND length(tag) > 0", "the value of `data.room`"),
        ("tag IN (" + ", ".join(f"'T{n}'" for n in range(50)) + ")", "the value of `data.tag`"),
        ("tag LIKE 'T%'", "the beginning of `data.tag`"),
        ("floor > 1 AND floor < 9", "the range that `data.floor` lies in"),
        ("room IS NULL", "the absence of `data.room`"),
        ("", "its type alone"),
        ("type IS Seen", "its type alone"),
        ("length(tag) > 0", "nothing: it is tested against every event of the type"),
        ("event.source = 'p'", "the value of `event.source`"),
        ("new AND tag = 'T1'", "the value of `data.tag`"),
        ("floor > 1 AND tag LIKE 'T%'", "the beginning of `data.tag`"),
    ],
)
def test_filters_are_filed_under_what_selects_most(where: str, found: str) -> None:
    explained = explain_filter_match(routing(want("a/x", where)), "a/x", seen())
    assert explained.found_by == (found,)


def test_constants_of_all_filters_tell_what_selects() -> None:
    """Three kinds of rooms, a hundred tags: tags it is, whichever stands first."""
    wanted = [want(f"c{n}/a", f"room = 'r{n % 3}' AND tag = 'T{n}' AND speed > {n}") for n in range(100)]
    known = routing(*wanted)
    assert {explain_filter_match(known, each.id, seen()).found_by for each in wanted} == {("the value of `data.tag`",)}


def test_an_explanation_names_parts_and_values() -> None:
    known = routing(want("a/x", "floor = 2 AND (room = 'lab' OR speed > 3) AND 1 / (floor - 2) > 0", "Seen"))
    explained = explain_filter_match(known, "a/x", seen("Tracked"))
    assert (explained.matched, explained.type, explained.joined) == (False, "Seen", "AND")
    assert [(part.text, part.outcome) for part in explained.parts] == [
        ("floor = 2", "true"),
        ("room = 'lab' OR speed > 3.0", "null"),
        ("1.0 / (floor - 2) > 0.0", "fails"),
    ]
    assert explained.parts[1].values == {"room": "NULL", "speed": "1.5"}
    assert explain_filter_match(known, "a/x", seen("Other", x=1.0)).type == ""
    assert explain_filter_match(routing(want("a/x", "floor = 2")), "a/x", seen()).matched
    with pytest.raises(KeyError):
        explain_filter_match(known, "a/nothing", seen())


def test_the_reference_knows_nothing_of_unknown_types() -> None:
    wanted = {"a/x": want("a/x", "floor = 2")}
    assert match_all(seen(), types=TYPES, functions={}, subscriptions=wanted) == {"a/x"}
    assert match_all(seen("Gone"), types=TYPES, functions={}, subscriptions=wanted) == frozenset()


# ── normal form ───────────────────────────────────────────────────────────────────────────────────

TAG, ROOM, FLOOR, NEW = (("data", name) for name in ("tag", "room", "floor", "new"))


def form(text: str) -> Any:
    return normal_form(simplify(check_condition(text, event_scope(SEEN, types=TYPES)).tree()))


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("tag = 'a'", ((OneOf(TAG, ("a",)),),)),
        ("tag IN ('a', 'b')", ((OneOf(TAG, ("a", "b")),),)),
        ("5 <= floor", ((RangeBound(FLOOR, 5, upper=False, open=False),),)),
        ("NOT (floor < 5)", ((RangeBound(FLOOR, 5, upper=False, open=False),),)),
        ("floor BETWEEN 1 AND 2", ((RangeBound(FLOOR, 1, False, False), RangeBound(FLOOR, 2, True, False)),)),
        ("new", ((OneOf(NEW, (True,)),),)),
        ("new IS TRUE", ((OneOf(NEW, (True,)),),)),
        ("new IS FALSE", ((OneOf(NEW, (False,)),),)),
        ("new IS NOT TRUE", ((OneOf(NEW, (False,)),), (IsAbsent(NEW),))),
        ("NOT new", ((OneOf(NEW, (False,)),),)),
        ("room IS NULL", ((IsAbsent(ROOM),),)),
        ("room IS NOT NULL", ((IsPresent(ROOM),),)),
        ("tag <> 'a'", ((NoneOf(TAG, ("a",)),),)),
        ("tag NOT IN ('a', 'b')", ((NoneOf(TAG, ("a", "b")),),)),
        ("(new AND floor < 5) IS FALSE", ((OneOf(NEW, (False,)),), (RangeBound(FLOOR, 5, upper=False, open=False),))),
        ("(new OR floor < 5) IS FALSE", ((OneOf(NEW, (False,)), RangeBound(FLOOR, 5, upper=False, open=False)),)),
        ("tag LIKE 'ab%'", ((Prefix(TAG, "ab"),),)),
        ("tag LIKE 'ab'", ((OneOf(TAG, ("ab",)),),)),
        ("tag LIKE ''", ((OneOf(TAG, ("",)),),)),
        ("starts_with(tag, 'ab')", ((Prefix(TAG, "ab"),),)),
        ("TRUE", ((),)),
        ("FALSE", ()),
        ("tag = NULL", ()),
        (
            "(tag = 'a' OR floor = 1) AND new",
            ((OneOf(TAG, ("a",)), OneOf(NEW, (True,))), (OneOf(FLOOR, (1,)), OneOf(NEW, (True,)))),
        ),
    ],
)
def test_atoms(text: str, found: Any) -> None:
    assert form(text) == found


@pytest.mark.parametrize("text", ["tag LIKE '%a'", "length(tag) = 2", "floor + floor > 2", "room = tag"])
def test_other_conditions_are_opaque(text: str) -> None:
    ((atom,),) = form(text)
    assert isinstance(atom, Opaque)


@pytest.mark.parametrize(("text", "start"), [("tag LIKE 'ab%c'", "ab"), ("tag LIKE 'a_b%'", "a")])
def test_a_pattern_that_asks_for_more_than_a_beginning_knows_the_whole(text: str, start: str) -> None:
    ((atom,),) = form(text)
    assert isinstance(atom, Prefix)
    assert atom.text == start
    assert not atom.exact
    assert atom.whole == simplify(check_condition(text, event_scope(SEEN, types=TYPES)).tree())


def test_too_many_alternatives_are_one_condition() -> None:
    pairs = " AND ".join(f"(tag = 'a{n}' OR floor = {n})" for n in range(4))
    assert len(form(pairs)) == 16
    ((atom,),) = form(f"({pairs}) AND (tag = 'b' OR floor = 9)")
    assert isinstance(atom, Opaque)
    assert len(form(" OR ".join(f"length(tag) = {n}" for n in range(16)))) == 16
    assert len(form(" OR ".join(f"length(tag) = {n}" for n in range(17)))) == 1


# ── intervals ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["double", "int", "text"])
def test_intervals_hold_what_lies_in_them(kind: str) -> None:
    dice = random.Random(kind)
    values: list[Any] = [dice.randrange(-20, 20) for _ in range(200)]
    dtype: Any = None
    if kind == "double":
        import numpy as np

        values = [value / 4 for value in values] + [math.nextafter(1.0, 2), -0.0, 1e308, 5e-324]
        dtype = np.float64
    elif kind == "int":
        import numpy as np

        values += [2**63 - 1, -(2**63)]
        dtype = np.int64
    else:
        values = [f"t{value}" for value in values] + [""]
    for count in (0, 1, 2, 40):
        ranges = []
        for number in range(count):
            low = None if dice.random() < 0.2 else (dice.choice(values), dice.random() < 0.5)
            high = None if dice.random() < 0.2 else (dice.choice(values), dice.random() < 0.5)
            ranges.append((low, high, number))
        tree = Intervals(ranges, dtype)
        expected = [
            sorted(
                number
                for low, high, number in ranges
                if (low is None or value > low[0] or (value == low[0] and not low[1]))
                and (high is None or value < high[0] or (value == high[0] and not high[1]))
            )
            for value in values
        ]
        assert [sorted(tree.at(value)) for value in values] == expected
        found: list[list[int]] = [[] for _ in values]
        for place, items in tree.at_each(values):
            found[place] += items
        assert [sorted(each) for each in found] == expected


# ── targets ───────────────────────────────────────────────────────────────────────────────────────


def test_targets_merge_each_once_and_in_order() -> None:
    one = DeliveryTargets(("b", "c"), (("x", "a,c"), ("z", "d")))
    two = DeliveryTargets(("a", "b"), (("x", "b,c"), ("y", "e")))
    for order in itertools.permutations((one, two)):
        assert merge(order) == DeliveryTargets(("a", "b", "c"), (("x", "a,b,c"), ("y", "e"), ("z", "d")))


# ── indexes that types share ──────────────────────────────────────────────────────────────────────


def found(of: RoutingTable, *rows: Row) -> list[tuple[int, str]]:
    return [(place, f"{client}/{names}") for place, client, names in of.route(rows).live]


def test_a_subtype_shares_the_index_of_its_supertype_as_long_as_the_same_is_asked_of_it() -> None:
    first = routing(want("a/floor", "floor = 2"))
    rows = [seen(), seen("Tracked"), seen(floor=3), seen("Tracked", floor=3)]
    assert found(first, *rows) == [(0, "a/floor"), (1, "a/floor")]
    assert len({id(index) for index in first._indexes.values()}) == 1
    more = routing(want("a/floor", "floor = 2"), want("b/by", "by = 'x'", "Tracked"), previous=first)
    assert found(more, *rows) == [(0, "a/floor"), (1, "a/floor"), (1, "b/by"), (3, "b/by")]
    again = routing(want("a/floor", "floor = 2"), previous=more)
    assert found(again, *rows) == found(first, *rows)


def test_types_do_not_share_an_index_if_a_filter_asks_for_the_type() -> None:
    asked = routing(want("a/typed", "event.type = 'Tracked'"), want("a/fast", "speed > 1"))
    rows = [seen(), seen("Tracked"), seen("Tracked", speed=0.5)]
    assert found(asked, *rows) == [(0, "a/fast"), (1, "a/fast,typed"), (2, "a/typed")]


def test_types_do_not_share_an_index_if_what_is_read_of_them_differs() -> None:
    stricter = Struct(
        "Stricter", (*SEEN.attributes[:1], Attribute(name="room", type=STRING), *SEEN.attributes[2:]), (SEEN,)
    )
    types = Types(types={each.name: each for each in (SEEN, stricter)}, events=frozenset({"Seen", "Stricter"}))
    wanted = [want("a/room", "room IS NULL"), want("a/tag", "tag = 'T1'")]
    both = compile_routing(types=types, functions={}, subscriptions={each.id: each for each in wanted})
    rows = [seen(), seen("Stricter", room="r"), seen(room="r")]
    assert found(both, *rows) == [(0, "a/room,tag"), (1, "a/tag"), (2, "a/tag")]
    assert len({id(index) for index in both._indexes.values()}) == 2


# ── mappings that share what stayed the same ──────────────────────────────────────────────────────


def test_a_changed_mapping_leaves_the_one_before_as_it_was() -> None:
    first = SharedMap({"a": 1, "b": 2})
    second = first.changed({"c": 3, "b": 4}, ["a", "nobody"])
    assert dict(first) == {"a": 1, "b": 2}
    assert dict(second) == {"b": 4, "c": 3}
    assert list(second) == ["b", "c"]
    assert (len(first), len(second)) == (2, 2)
    assert second.changed({}) is second
    assert "a" not in second
    with pytest.raises(KeyError):
        second["a"]
    assert repr(second) == "SharedMap({'b': 4, 'c': 3})"


def test_a_mapping_may_hold_none_and_what_is_dropped_and_put_is_there() -> None:
    known: SharedMap[str, None] = SharedMap[str, None]().changed({"a": None})
    assert "a" in known
    assert known["a"] is None
    assert list(known.changed({"a": None}, ["a"])) == ["a"]
    assert list(known.changed({}, ["a"]).changed({"a": None})) == ["a"]
    assert len(known.changed({}, ["a", "a"])) == 0


def test_after_many_changes_it_is_what_a_dictionary_would_be() -> None:
    dice, expected = random.Random(4), dict[int, int]()
    known: SharedMap[int, int] = SharedMap()
    for step in range(2_000):
        put = {dice.randrange(300): step for _ in range(dice.choice((0, 1, 1, 3)))}
        drop = [dice.randrange(300) for _ in range(dice.choice((0, 0, 1, 2)))]
        known = known.changed(put, drop)
        expected = {key: value for key, value in expected.items() if key not in drop or key in put} | put
        assert len(known) == len(expected)
    assert dict(known) == expected


def test_a_table_takes_changes_without_a_look_at_the_rest() -> None:
    first = routing(want("a/x", "floor = 2"), want("b/y", "floor = 3"))
    assert first.route([seen()]).live == [(0, "a", "x")]
    second = first.updated({"c/z": want("c/z", "floor = 2"), "b/y": want("b/y", "speed > 1")}, ["a/x", "nobody/n"])
    assert second.route([seen()]).live == [(0, "b", "y"), (0, "c", "z")]
    assert second.subscriptions == routing(want("b/y", "speed > 1"), want("c/z", "floor = 2")).subscriptions
    assert first.route([seen()]).live == [(0, "a", "x")]
    assert second.updated({"c/z": want("c/z", "floor = 2")}, ["nobody/n"]) is second
