"""Skylines and states: the worked examples, and what generated cases do not reach."""

from __future__ import annotations

import math

import pytest

from situ.quality.match.match_index import MatchIndex
from situ.quality.match.point_matrix import PropertyColumns, floors_of
from situ.quality.match.pools import Pool
from situ.quality.match.satisfaction import Satisfaction
from situ.quality.model.declarations import Capability, Expectation, Need, Profile, QualityProperty
from tests.offered import witness

A = QualityProperty(name="a", lo=0, hi=10, maximise=False)
B = QualityProperty(name="b", lo=0, hi=10, maximise=False)
RATE = QualityProperty(name="rate", lo=0, hop="worst")
POOL = frozenset({"here"})

PUBLISHERS = {
    "P1": ((1, 6, 3), (5, 9, 6)),
    "P2": ((4, 10, 6), (1, 5, 2)),
    "P3": ((5, 10, 7), (6, 9, 7)),
    "P4": ((4, 9, 8), (2, 9, 5)),
    "P5": ((3, 9, 5), (6, 9, 8)),
}
ASKED = {
    "X1": ((1, 2), (4, 6)),
    "X2": ((5, 7), (1, 3)),
    "X3": ((2, 4), (5, 7)),
    "X4": ((1, 2), (1, 3)),
    "X5": ((3, 5), (1, 3)),
}


def publisher(name: str) -> Profile:
    ranges = zip((A, B), PUBLISHERS[name], strict=True)
    return Profile(
        publisher=name,
        type="t",
        capabilities={about.id: Capability(about=about, lb=lb, ub=ub, cv=cv) for about, (lb, ub, cv) in ranges},
    )


def expectation(name: str) -> Expectation:
    bounds = zip((A, B), ASKED[name], strict=True)
    needs = {about.id: Need(about=about, lb=lb, ub=ub) for about, (lb, ub) in bounds}
    return Expectation(id=name, subscription=f"{name}/s", needs=needs)


def rate(name: str, lb: float, cv: float, ub: float) -> Profile:
    return Profile(publisher=name, type="t", capabilities={RATE.id: Capability(about=RATE, lb=lb, ub=ub, cv=cv)})


def wanting(id: str, lb: float, ub: float = math.inf) -> Expectation:
    return Expectation(id=id, subscription=f"{id}/s", needs={RATE.id: Need(about=RATE, lb=lb, ub=ub)})


def members(pool: Pool) -> tuple[set[str], set[str]]:
    return ({id for id, _ in pool.now.members.keys}, {id for id, _ in pool.able.members.keys})


def test_two_brokers_keep_the_same_two_publishers_in_both_skylines() -> None:
    pool = Pool()
    for name in ("P1", "P2", "P3"):
        pool.put(publisher(name))
    assert members(pool) == ({"P1/t", "P2/t"}, {"P1/t", "P2/t"})
    for name in ("P4", "P5"):
        pool.put(publisher(name))
    assert members(pool) == ({"P1/t", "P2/t"}, {"P1/t", "P2/t"})
    assert pool.now._guards[("P4/t", 0)] == ("P2/t", 0)
    assert pool.now._guards[("P5/t", 0)] == ("P1/t", 0)


def test_five_expectations_of_five_publishers() -> None:
    standing = MatchIndex()
    standing.put_many([(publisher(name), "here") for name in PUBLISHERS], [(expectation(name), POOL) for name in ASKED])
    assert standing.states() == {
        "X1": Satisfaction.SATISFIABLE,
        "X2": Satisfaction.SATISFIED,
        "X3": Satisfaction.SATISFIED,
        "X4": Satisfaction.UNSATISFIED,
        "X5": Satisfaction.SATISFIABLE,
    }
    assert standing.candidates("X2")[0] == ("P2/t",)
    assert standing.candidates("X3")[0] == ("P1/t",)
    assert standing.candidates("X1") == ((), ("P1/t",))
    assert standing.candidates("X5") == ((), ("P2/t", "P4/t"))
    assert standing.candidates("X4") == ((), ())


def test_by_current_values_alone_a_need_of_80_would_look_unsatisfied_and_by_reach_alone_one_of_40_satisfiable() -> None:
    pool = Pool()
    pool.put(rate("A", 40, 50, 50))
    pool.put(rate("B", 10, 30, 100))
    assert members(pool) == ({"A/t"}, {"B/t"})
    standing = MatchIndex()
    standing.put_many(
        [(rate("A", 40, 50, 50), "here"), (rate("B", 10, 30, 100), "here")],
        [(wanting("eighty", 80), POOL), (wanting("forty", 40), POOL)],
    )
    assert standing.state("eighty") is Satisfaction.SATISFIABLE
    assert witness(standing, "eighty") == "B/t"
    assert standing.state("forty") is Satisfaction.SATISFIED
    assert witness(standing, "forty") == "A/t"


def test_a_profile_that_dominates_but_is_in_another_pool_hides_nobody() -> None:
    standing = MatchIndex()
    standing.put_profile(rate("best", 100, 100, 100), "elsewhere")
    standing.put_profile(rate("good", 10, 10, 10), "here")
    standing.put_expectation(wanting("x", 10), POOL)
    standing.put_expectation(wanting("y", 50), POOL)
    standing.put_expectation(wanting("z", 50), POOL | {"elsewhere"})
    assert [standing.state(id) for id in "xyz"] == [
        Satisfaction.SATISFIED,
        Satisfaction.UNSATISFIED,
        Satisfaction.SATISFIED,
    ]


def test_an_empty_need_is_satisfied_by_whoever_is_there() -> None:
    standing = MatchIndex()
    nothing = Expectation(id="x", subscription="x/s")
    assert standing.put_expectation(nothing, POOL) == {"x"}
    assert standing.state("x") is Satisfaction.UNSATISFIED
    assert standing.put_profile(Profile(publisher="p", type="t"), "here") == {"x"}
    assert standing.state("x") is Satisfaction.SATISFIED
    assert standing.drop_profile("p/t") == {"x"}


def test_whoever_asks_for_a_property_at_its_worst_wants_it_to_be_there() -> None:
    standing = MatchIndex()
    worst = Expectation(
        id="x",
        subscription="x/s",
        needs={A.id: Need(about=A, lb=0, ub=math.inf), RATE.id: Need(about=RATE, lb=0, ub=9)},
    )
    standing.put_expectation(worst, POOL)
    standing.put_profile(rate("p", 1, 1, 1), "here")
    assert standing.state("x") is Satisfaction.UNSATISFIED
    both = {
        A.id: Capability(about=A, lb=0, ub=math.inf, cv=math.inf),
        RATE.id: Capability(about=RATE, lb=0, ub=0, cv=0),
    }
    standing.put_profile(Profile(publisher="q", type="t", capabilities=both), "here")
    assert standing.state("x") is Satisfaction.SATISFIED


def test_floors_of_many_are_the_floors_of_each() -> None:
    asking = [expectation(name) for name in ASKED] + [wanting("low", -math.inf), wanting("high", math.inf)]
    columns = PropertyColumns()
    (floors,) = floors_of(asking).of(range(len(asking)), columns)
    assert floors.tolist() == columns.matrix([each.asked for each in asking]).tolist()


def test_what_is_gone_leaves_nothing_behind() -> None:
    standing = MatchIndex()
    for _ in range(3):
        standing.put_many([(rate("p", 1, 1, 1), "here")], [(wanting("x", 1), POOL)])
        standing.drop_expectation("x")
        standing.drop_profile("p/t")
        assert not standing.states()
        with pytest.raises(KeyError):
            standing.state("x")
    standing.put_profile(rate("q", 1, 1, 1), "here")
    standing.put_expectation(wanting("y", 1), POOL)
    assert witness(standing, "y") == "q/t"
