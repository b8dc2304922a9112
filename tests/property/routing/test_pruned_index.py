"""Generated promises and filters: with the promises of advertisements, routing gives what it gives without."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import pytest

from situ.event.row import Row
from situ.lang.records import replace
from situ.routing import Subscription
from situ.routing import pruned_index as pruned_index_module
from situ.routing.filter import Filter
from situ.routing.filter_index import TypeIndex
from situ.routing.pruned_index import PrunedIndexes
from situ.routing.routing_table import RoutingTable, compile_routing
from tests.property.routing.test_filter_index import TYPES, Users, by_id
from tests.volume import cases


class Promises:
    """What advertisements promise, decided as subscriptions are."""

    def __init__(self, texts: dict[str, str]) -> None:
        asked = [Subscription(client=id.partition("/")[0], name="x", types=("Thing",), where=texts[id]) for id in texts]
        self._routing = compile_routing(types=TYPES, functions={}, subscriptions=by_id(asked))

    def promised(self, ad: str, type: str) -> Sequence[Filter]:
        return self._routing.filters_for(ad, type) if ad in self._routing.subscriptions else ()

    def kept(self, ad: str, row: Row) -> bool:
        return self._routing.matches(ad, row)


def publish(users: Users, promises: Promises, ads: list[str], count: int) -> Iterator[Row]:
    """Rows under advertisements, most of them as promised, some as nobody promised or before it was."""
    for number in range(count):
        ad, row = users.dice.choice(ads), users.row(number)
        for _ in range(20):
            if promises.kept(ad, row) or users.dice.random() < 0.02:
                break
            row = users.row(number)
        row.ad = users.dice.choice((ad, ad, ad, ad, "", "nobody/x"))
        yield row


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes are made at once, or generated input would have to be a thousand times as much."""
    for name in ("_FEW_TESTS", "_LOOK", "_LEAST_FILTERS"):
        monkeypatch.setattr(pruned_index_module, name, 0)
    monkeypatch.setattr(pruned_index_module, "_WORTH", 1)


@cases(6, 300)
def test_promises_change_nothing_but_what_is_tested(cases: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen: list[bool] = []
    choose = PrunedIndexes.choose

    def watched(self: PrunedIndexes, row: Row, index: TypeIndex, holds: pruned_index_module.Holds) -> TypeIndex:
        found = choose(self, row, index, holds)
        chosen.append(found is not index)
        return found

    monkeypatch.setattr(PrunedIndexes, "choose", watched)
    for seed in range(cases):
        users = Users(7_000 + seed)
        dice = users.dice
        ads = [f"p{number}/x" for number in range(4)]
        promises = Promises({ad: users.where(dice.choice((0, 0, 1))) for ad in ads})
        wanted = by_id([users.subscription(number) for number in range(40)])
        plain = compile_routing(types=TYPES, functions={}, subscriptions=wanted)
        pruned = compile_routing(types=TYPES, functions={}, subscriptions=wanted, promises=promises)
        rows = list(publish(users, promises, ads, 60))
        for step in range(4):
            for _ in range(2):  # the first time indexes are made, the second time they are there
                assert pruned.route(rows) == plain.route(rows), (seed, step)
                for row in rows[:10]:
                    assert pruned.route_one(row) == plain.route_one(row), (seed, step)
            put = by_id([users.subscription(1_000 * (step + 1) + number) for number in range(3)])
            drop = dice.sample(sorted(plain.subscriptions), 3)
            plain, pruned = plain.updated(put, drop), pruned.updated(put, drop)
    assert sum(chosen) > len(chosen) / 10, "some rows must have been looked up in a pruned index"


def asked_of(routing: RoutingTable, row: Row) -> list[str]:
    """The filters that are tested on a row, by the names of the subscriptions that hang from them."""
    found: list[str] = []
    for filter_, members in routing.wanted.members.items():
        names = [each.name for each in members.values()]

        def watched(event: object, data: object, names: list[str] = names) -> bool:
            found.extend(names)
            return False

        filter_._test = watched
    routing.route_one(row)
    return sorted(found)


def test_a_filter_that_contradicts_the_promise_is_not_tested() -> None:
    texts = {
        "below": "celsius > 1.5 AND celsius < 4.5 AND length(id) > 0 AND floor < 2",
        "above": "celsius > 1.5 AND celsius < 4.5 AND length(id) > 0 AND floor > 3",
        "other": "celsius > 1.5 AND celsius < 4.5 AND length(id) > 0",
    }
    wanted = by_id([Subscription(client="c", name=name, types=("Thing",), where=texts[name]) for name in texts])
    promises = Promises({"p/x": "floor <= 1"})
    routing = compile_routing(types=TYPES, functions={}, subscriptions=wanted, promises=promises)
    users = Users(3)
    row = next(each for each in map(users.row, range(1_000)) if promises.kept("p/x", each) and celsius(each))
    assert asked_of(routing, row) == ["above", "below", "other"]
    assert asked_of(routing, replace(row, ad="p/x")) == ["below", "other"]
    more = Subscription(client="c", name="too", types=("Thing",), where=texts["above"] + " AND floor > 4")
    assert asked_of(routing.updated({more.id: more}), replace(row, ad="p/x")) == ["below", "other"]
    broken = next(each for each in map(users.row, range(1_000)) if not promises.kept("p/x", each) and celsius(each))
    assert asked_of(routing, replace(broken, ad="p/x")) == ["above", "below", "other"], "it is not as promised"


def celsius(row: Row) -> bool:
    return b'"celsius":2.5' in row.data


def test_indexes_are_made_when_they_pay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    dice = random.Random(1)
    wanted = by_id(
        [
            Subscription(
                client=f"c{number}",
                name="s",
                types=("Thing",),
                where=f"length(id) > {number % 9} + {number} AND floor = {number % 4}",
            )
            for number in range(600)
        ]
    )
    promises = Promises({"p/x": "floor = 9", "q/x": "floor = 1"})
    routing = compile_routing(types=TYPES, functions={}, subscriptions=wanted, promises=promises)
    users = Users(5)
    rows = [replace(users.row(number), ad=dice.choice(("p/x", "q/x"))) for number in range(40)]
    expected = routing.route(rows)

    def left() -> dict[str, int]:
        assert routing._pruned is not None
        made = {name: pruning for (_, name), pruning in routing._pruned._by_ad.items()}
        return {
            name: each.pruned.filters for name, each in made.items() if each is not None and each.pruned is not None
        }

    assert left() == {}, "a few events are not enough"
    for _ in range(160):
        assert routing.route(rows) == expected
    assert left() == {"p/x": 0, "q/x": 150}
