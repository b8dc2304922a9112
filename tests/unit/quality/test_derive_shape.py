"""Which shape follows from an expectation in force and from what publishers do."""

from __future__ import annotations

from typing import Any

import pytest

from situ.lang.records import replace
from situ.quality.model.declarations import BUILT_IN, Aggregate, Capability, Need, Profile
from situ.quality.model.shapes import EventFloor, Limit, Shape, Suppress, Thin
from situ.quality.shaping.derive_shape import FORGET, MINUTE, ShapeInputs, shape_in_force, shape_of_none
from tests.negotiating import can, expects, need, provides

FAST = provides("fast", rate=(1, 60, 30), confidence=(50, 90, 80))
SLOW = provides("slow", rate=(1, 60, 4), confidence=(50, 90, 80))
LEVEL = replace(BUILT_IN["imprecision"], of="level", unit="m")


def around(*profiles: Profile, **more: Any) -> ShapeInputs:
    return ShapeInputs(profiles=profiles, satisfying=frozenset(each.id for each in profiles), **more)


def thin_of(shape: Shape | None) -> Thin:
    assert shape is not None
    assert shape.thin is not None
    return shape.thin


def test_nothing_to_do() -> None:
    assert shape_in_force(expects("e", rate=(2, 60)), around(FAST), None) is None
    assert shape_in_force(expects("e", confidence=(75, 95)), around(FAST), None) is None


def test_thinned_only_where_somebody_does_more() -> None:
    wanted = expects("e", rate=(2, 10))
    assert shape_in_force(wanted, around(SLOW), None) is None
    assert thin_of(shape_in_force(wanted, around(SLOW, FAST), None)).limits == (Limit(events=10, form="quota"),)


@pytest.mark.parametrize(
    ("goal", "events", "minutes"),
    [(10, 10, 1), (0.5, 1, 2), (7.5, 15, 2), (1 / 3, 333, 1_000), (1 / 1440, 1, 1440), (1e-9, 0, 1), (0, 0, 1)],
)
def test_limits_are_whole_and_never_more_than_the_goal(goal: float, events: int, minutes: int) -> None:
    (limit,) = thin_of(shape_in_force(expects("e", rate=(0, goal)), around(FAST), None)).limits
    assert (limit.events, limit.minutes) == (events, minutes)
    assert limit.events <= goal * limit.minutes


def test_slots_where_events_come_evenly() -> None:
    wanted = expects("e", rate=(5, 10))

    def form(gaps: dict[str, int]) -> str:
        return thin_of(shape_in_force(wanted, around(FAST, gaps=gaps), None)).limits[0].form

    assert form({}) == "quota", "nobody knows"
    assert form({FAST.id: 6_000_000}) == "slot"
    assert form({FAST.id: 6_000_001}) == "quota"
    assert thin_of(shape_in_force(expects("e", rate=(0, 10)), around(FAST), None)).limits[0].form == "slot"


def test_changed_limit_holds_from_an_instant_on() -> None:
    before = shape_in_force(expects("e", rate=(0, 10)), around(FAST, mark=1), None)
    assert thin_of(before).limits == (Limit(events=10),)
    assert shape_in_force(expects("e", rate=(0, 10)), around(FAST, mark=9), before) == before
    after = shape_in_force(expects("e", rate=(0, 20)), around(FAST, mark=1_000), before)
    assert thin_of(after).limits == (Limit(events=10), Limit(events=20, since=1_000))
    again = shape_in_force(expects("e", rate=(0, 15)), around(FAST, mark=1_000), after)
    assert thin_of(again).limits == (Limit(events=10), Limit(events=15, since=1_000))
    late = shape_in_force(expects("e", rate=(0, 10)), around(FAST, mark=1_000 + FORGET), again)
    assert thin_of(late).limits == (Limit(events=15, since=1_000), Limit(events=10, since=1_000 + FORGET))
    other = expects("e", needs={"rate": need("rate", 0, 5, keep="last")})
    assert thin_of(shape_in_force(other, around(FAST, mark=2_000), late)).limits == (Limit(events=5),)


def test_limits_of_long_ago_are_forgotten_however_often_they_change() -> None:
    shape = None
    for number in range(3 * 360):
        wanted = expects("e", rate=(0, 10 + number % 2))
        shape = shape_in_force(wanted, around(FAST, mark=(number + 1) * 10_000_000), shape)
    limits = thin_of(shape).limits
    assert len(limits) == 361
    assert limits[0].since is not None
    assert limits[0].since + FORGET <= limits[-1].since, "the first of them is the one that held then"


@pytest.mark.parametrize("floor", [5e-324, 1e-300, 1e300])
def test_numbers_without_measure_do_no_harm(floor: float) -> None:
    total = Aggregate(function="sum", attribute="level", window=3_600_000_000, every=MINUTE)
    needs = {"rate": need("rate", floor), LEVEL.id: Need(about=LEVEL, lb=0, ub=30)}
    capabilities = {"rate": can("rate", 0, 1e300, 1e300), LEVEL.id: Capability(about=LEVEL, lb=0, ub=1, cv=1e300)}
    boaster = Profile(publisher="boaster", type="badge", capabilities=capabilities)
    assert shape_in_force(expects("e", needs=needs, aggregate=total), around(boaster), None) == Shape(aggregate=total)
    needs["rate"] = need("rate", floor, 1e300)
    assert shape_in_force(expects("e", needs=needs), around(FAST, boaster), None) is None
    shape = shape_in_force(expects("e", needs=needs), around(FAST), None)
    assert shape is not None
    assert [each.max_silence or 0 for each in shape.suppress] == [0]


def test_single_events() -> None:
    needs = {
        "confidence": need("confidence", 75, 95, each=True),
        "freshness": need("freshness", 0, 3, each=True, keep_missing=True),
    }
    shape = shape_in_force(expects("e", needs=needs), around(FAST), None)
    assert shape == Shape(
        each=(EventFloor(about="confidence", floor=75), EventFloor(about="freshness", floor=3, keep_missing=True))
    )


def test_selected_sources() -> None:
    wanted = expects("e", rate=(2, 60), selected=True)
    found = ShapeInputs(profiles=(FAST, SLOW), satisfying=frozenset({FAST.id}))
    assert shape_in_force(wanted, found, None) == Shape(sources=frozenset({"fast"}))
    assert shape_of_none(None) is None
    assert shape_of_none(wanted) is None
    assert shape_of_none(replace(wanted, otherwise_nothing=True)) == Shape(sources=frozenset())


def imprecise(delta: float, rate: float = 10) -> Profile:
    level = Capability(about=LEVEL, lb=0, ub=100, cv=delta)
    return Profile(publisher="p", type="t", capabilities={LEVEL.id: level, "rate": can("rate", 1, 60, rate)})


def test_tolerance_is_used_up() -> None:
    tolerant = Need(about=LEVEL, lb=0, ub=30, per="node", per_key={"node7": 5})
    wanted = expects("e", needs={LEVEL.id: tolerant, "rate": need("rate", 4, 60)})
    (found,) = (shape_in_force(wanted, around(imprecise(0)), None) or Shape()).suppress
    assert found == Suppress(attribute="level", delta=30, per="node", per_key=(("node7", 5),), max_silence=15_000_000)
    (found,) = (shape_in_force(wanted, around(imprecise(10)), None) or Shape()).suppress
    assert (found.delta, found.per_key) == (20, (("node7", 0),)), "two places add up"
    assert shape_in_force(wanted, around(imprecise(30)), None) is None, "nothing is left of it"


@pytest.mark.parametrize(("function", "delta"), [("avg", 28), ("min", 28), ("max", 28), ("sum", 8)])
def test_tolerance_of_many(function: Any, delta: float) -> None:
    aggregate = Aggregate(function=function, attribute="level", window=60_000_000, every=10_000_000)
    wanted = expects("e", needs={LEVEL.id: Need(about=LEVEL, lb=0, ub=30)}, aggregate=aggregate)
    shape = shape_in_force(wanted, around(imprecise(2, rate=10)), None)
    assert shape is not None
    assert shape.aggregate == aggregate
    assert [each.delta for each in shape.suppress] == [delta]
