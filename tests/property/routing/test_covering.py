"""Generated filters: who is said to cover really does, most coverings are found, and nobody is told too little."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from situ.lang.expr.limits import DEFAULT_LIMITS
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node
from situ.lang.tags import TagSet
from situ.lang.types.model import supertypes
from situ.routing.covering import CoveringTable, WantedEvents, covers, wanted_events
from situ.routing.filter import Filter, read_filter
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.visibility_plan import compile_visibility, number_filters, sees_as_much
from tests.oracles.visibility import visible
from tests.scopes import make_event, make_graph, make_tags
from tests.types_files import types_of
from tests.volume import cases, examples

TYPES = types_of(
    """
    types:
      Place: {x: double}
    events:
      Thing: {room: optional string, floor: int, weight: double, locked: optional boolean, at: optional Place}
      Door(Thing): {}
      Gate(Door): {}
      Lamp(Thing): {}
    """
)
NAMES = ("Thing", "Door", "Gate", "Lamp")
ATOMS = (
    *(f"room {op} '{text}'" for op in ("=", "<>", "<", ">=") for text in ("a", "ab", "b")),
    "room IN ('a', 'b')",
    "room NOT IN ('ab', 'b')",
    "room LIKE 'a%'",
    "room LIKE 'ab%'",
    "room LIKE 'a%b'",
    "room LIKE '%b'",
    "room IS NULL",
    "room IS NOT NULL",
    *(f"floor {op} {number}" for op in ("=", "<>", "<", "<=", ">", ">=") for number in (1, 2, 3)),
    "floor BETWEEN 1 AND 2",
    "floor IN (1, 3)",
    *(f"weight {op} {number}" for op in ("=", "<>", "<", "<=", ">", ">=") for number in (0.5, 1.5)),
    "locked",
    "NOT locked",
    "locked IS NOT TRUE",
    "locked IS NULL",
    "at IS NULL",
    "at IS NOT NULL",
    "at.x > 0.5",
    "at.x IS NULL",
    "type IS Door",
    "NOT type IS Gate",
    "event.type = 'Lamp'",
    "floor * 2 > 3",
    "length(room) > 1",
    "1 / (floor - 2) > 0",
)
# A value of each kind that constants tell apart: below, at, between and above all of them.
DOMAIN: tuple[tuple[str, Mapping[str, Any]], ...] = tuple(
    (type, {"room": room, "floor": floor, "weight": weight, "locked": locked, "at": at})
    for type, room, floor, weight, locked, at in itertools.product(
        NAMES,
        (None, "", "a", "aa", "ab", "aab", "abb", "b", "c"),
        (0, 1, 2, 3, 4),
        (0.0, 0.5, 1.0, 1.5, 2.0),
        (None, True, False),
        (None, {"x": 0.0}, {"x": 1.0}),
    )
)
SAMPLE = random.Random(5).sample(DOMAIN, 1_200)


@cache
def node(type: str, where: str) -> Node:
    event = TYPES.event(type)
    assert event is not None
    return simplify(read_filter("a/b", event, where, TYPES, {}, DEFAULT_LIMITS))


@cache
def above(type: str) -> frozenset[str]:
    event = TYPES.event(type)
    assert event is not None
    return frozenset(str(each) for each in supertypes(event))


Interest = tuple[tuple[str, ...], str]
"""Types, and a filter on them."""


@cache
def read(interest: Interest) -> WantedEvents:
    types, where = interest
    return wanted_events({type: node(type, where) for type in types}, TYPES)


@cache
def truth(interest: Interest) -> frozenset[int]:
    """The events of the domain that are wanted, by trying them."""
    types, where = interest
    filters = [Filter(type, node(type, where)) for type in types]
    return frozenset(
        place
        for place, (type, data) in enumerate(SAMPLE)
        if any(each.type in above(type) and each.test({"type": type}, data) for each in filters)
    )


def where(dice: random.Random, depth: int = 2) -> str:
    if depth == 0 or dice.random() < 0.3:
        return dice.choice(ATOMS)
    word = dice.choice((" AND ", " AND ", " OR "))
    text = word.join(f"({where(dice, depth - 1)})" for _ in range(2))
    return f"NOT ({text})" if dice.random() < 0.15 else text


WHERE = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: (
        st.builds(lambda one, word, two: f"({one}) {word} ({two})", inner, st.sampled_from(("AND", "OR")), inner)
        | inner.map(lambda each: f"NOT ({each})")
    ),
    max_leaves=5,
)
INTEREST = st.tuples(st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True).map(tuple), WHERE)


@examples(150, 20_000)
@given(one=INTEREST, other=INTEREST, joined=st.sampled_from(("", "AND", "OR")))
def test_who_is_said_to_cover_wants_all_of_it(one: Interest, other: Interest, joined: str) -> None:
    if joined:  # so that many do follow from each other
        other = other[0], f"({one[1]}) {joined} ({other[1]})"
    for wider, narrower in ((one, other), (other, one)):
        if covers(read(wider), read(narrower)):
            assert truth(narrower) <= truth(wider)


@cases(4_000, 100_000)
def test_most_of_what_follows_is_found(cases: int) -> None:
    """Of pairs of filters of which one follows from the other on the whole domain, the share that is found."""
    dice = random.Random(11)
    texts = [where(dice, dice.choice((0, 1, 1, 2))) for _ in range(150)]
    true = found = 0
    for _ in range(cases):
        wider, narrower = (("Thing",), dice.choice(texts)), (("Thing",), dice.choice(texts))
        wanted = truth(narrower)
        said = covers(read(wider), read(narrower))
        follows = wanted <= truth(wider)
        assert follows or not said, (wider, narrower)
        if follows and wanted and wider != narrower:
            true += 1
            found += said
    print(f"{found} of {true} implications found: {found / true:.1%}")
    assert true > cases / 50
    assert found / true > 0.75


# ── the table of one neighbour ────────────────────────────────────────────────────────────────────

SETS = st.frozensets(st.integers(0, 4), max_size=4)
CHANGES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from("abcdefgh"), SETS, max_size=3), st.sets(st.sampled_from("abcdefgh"), max_size=2)
    ),
    max_size=12,
)


def cautious(wider: frozenset[int], narrower: frozenset[int]) -> bool:
    """Says yes only sometimes, and so that what covers a coverer is not always said to cover."""
    return wider >= narrower and (len(wider) + 2 * len(narrower)) % 3 > 0


@pytest.mark.parametrize("relation", [frozenset.issuperset, cautious, None])
@given(changes=CHANGES)
def test_what_was_sent_covers_all_entries_at_every_instant(
    relation: Any, changes: list[tuple[dict[str, frozenset[int]], set[str]]]
) -> None:
    table: CoveringTable[frozenset[int]] = CoveringTable(relation)
    wanted: dict[str, frozenset[int]] = {}
    neighbour: dict[str, frozenset[int]] = {}
    for add, remove in changes:
        before = table
        table, change = table.changed(add, remove - add.keys())
        wanted = {id: entry for id, entry in wanted.items() if id not in remove - add.keys()} | add
        neighbour = {id: entry for id, entry in neighbour.items() if id not in change.remove} | dict(change.add)
        assert before.sent.keys() >= set(change.remove), "what is taken back was told"
        assert table.entries == wanted
        assert neighbour == table.sent
        assert frozenset().union(*neighbour.values()) == frozenset().union(*wanted.values())
    if relation is frozenset.issuperset:
        assert table.sent.keys() == least(wanted), "it depends on the entries alone, not on how they came"


def least(entries: Mapping[str, frozenset[int]]) -> set[str]:
    """The entries that none other covers; of equal ones the first."""
    return {
        id
        for id, entry in entries.items()
        if not any(other > entry or (other == entry and name < id) for name, other in entries.items())
    }


@cases(12, 600)
def test_a_neighbour_that_is_told_less_gets_every_event(cases: int) -> None:
    """Covering on and off: the same events of the domain are wanted of the neighbour."""
    remembered = 0
    for seed in range(cases):
        dice = random.Random(seed)
        interests = {
            f"i{number}": (
                tuple(sorted(dice.sample(NAMES, dice.choice((1, 1, 2))))),
                where(dice, dice.choice((0, 1, 2))),
            )
            for number in range(25)
        }
        table: CoveringTable[WantedEvents] = CoveringTable(covers)
        for id, interest in interests.items():
            table, _ = table.changed({id: read(interest)})
        for id in dice.sample(sorted(interests), 8):
            del interests[id]
            table, _ = table.changed(remove=(id,))
            told = frozenset[int]().union(*(truth(interests[each]) for each in table.sent))
            assert told == frozenset[int]().union(*(truth(each) for each in interests.values()))
        remembered += len(table.remembered)
    assert remembered > cases, "something must have been covered, or nothing was tested"


# ── scopes ────────────────────────────────────────────────────────────────────────────────────────


@cases(40, 4_000)
def test_whoever_sees_as_much_sees_every_event(cases: int) -> None:
    said = 0
    for seed in range(cases):
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=3, most_scopes=5)
        ads = [make_tags(dice, graph) for _ in range(3)]
        subs = [make_tags(dice, graph) for _ in range(6)]
        plan = compile_visibility(graph, ads, subs, number_filters(graph, NO_NUMBERS))
        advertised = {name: {each.tag(name) for each in ads} for name in graph.dimensions}
        events = [make_event(dice) for _ in range(4)]
        for wider, narrower in itertools.permutations(subs, 2):
            if sees_as_much(plan.dimensions, advertised, wider, narrower):
                said += wider != narrower
                for ad, event in itertools.product(ads, events):
                    assert visible(graph, event, ad, narrower) <= visible(graph, event, ad, wider), seed
    assert said > cases


def test_of_tags_that_no_plan_knows_nothing_is_said() -> None:
    dice = random.Random(3)
    graph = make_graph(dice, most_dimensions=1, most_scopes=4)
    (name,) = graph.dimensions
    one, other = (TagSet.of({name: scope}) for scope in list(graph.dimensions[name].scopes)[:2])
    plan = compile_visibility(graph, [one], [one], number_filters(graph, NO_NUMBERS))
    anyone = TagSet.of({name: "any"})
    assert sees_as_much(plan.dimensions, {name: {one.tag(name)}}, anyone, one)
    assert not sees_as_much(plan.dimensions, {name: {one.tag(name)}}, anyone, other)
    assert not sees_as_much(plan.dimensions, {name: {other.tag(name)}}, anyone, one)
    nowhere = TagSet.of({name: "nowhere"})
    assert sees_as_much(plan.dimensions, {name: {one.tag(name)}}, one, nowhere)
    assert not sees_as_much(plan.dimensions, {name: {one.tag(name)}}, nowhere, one)
