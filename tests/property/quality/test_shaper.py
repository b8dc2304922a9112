"""Filters of a subscription say what the slow reference says: whatever the batches, the disorder, and who shares them.

A hundred histories in every run, twenty thousand and more in `make soak`.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import groupby, pairwise

import pytest

from situ.event.row import Row
from situ.lang.records import replace
from situ.quality.model.declarations import Aggregate
from situ.quality.model.shapes import EventFloor, Limit, Shape, Suppress, Thin
from situ.quality.shaping.shaper import LATE, REASONS, Shaper, shape_of
from situ.quality.shaping.suppress import LastPassed
from situ.quality.shaping.watermark import LatenessBounds
from tests.histories import MINUTE, SECOND, START, history, portions, read
from tests.oracles import shaping as reference
from tests.volume import cases

NORMAL, LONG = 100, 20_000
CASES = cases(NORMAL, LONG)
FAR = START + 10**14


def patience_of(dice: random.Random) -> LatenessBounds:
    return LatenessBounds(lateness=dice.choice([0, 2, 20]) * SECOND, idle=10 * SECOND)


def run(
    shape: Shape, rows: Sequence[Row], patience: LatenessBounds, dice: random.Random, *, to_the_end: bool
) -> list[Row]:
    """What the filters give, in batches; now and then they are written down and read again."""
    shaper = Shaper("desk/s", shape, patience, read)
    found: list[Row] = []
    dropped = 0
    for some in portions(dice, rows):
        if dice.random() < 0.3:
            stored = json.loads(json.dumps(shaper.as_json()))
            assert shape_of(stored) == shape
            dropped += sum(shaper.dropped.values())
            shaper = Shaper("desk/s", shape, patience, read)
            shaper.restore(stored)
            assert json.loads(json.dumps(shaper.as_json())) == stored
        found += shaper.take(some)
    if to_the_end:
        found += shaper.tick(FAR)
        assert not shaper.holds
        if shape.aggregate is None:
            assert len(found) + dropped + sum(shaper.dropped.values()) == len(rows)
    assert set(shaper.dropped) <= set(REASONS)
    return found


def apart(shape: Shape, rows: Sequence[Row], patience: LatenessBounds, dice: random.Random) -> list[Row]:
    """The same if each client is somebody else's to work on."""
    clients = {row.client for row in rows}
    return [
        row
        for client in clients
        for row in run(shape, [row for row in rows if row.client == client], patience, dice, to_the_end=True)
    ]


def ids(rows: Sequence[Row]) -> list[str]:
    return [row.id for row in rows]


def make_limit(dice: random.Random, since: int | None = None) -> Limit:
    form = dice.choice(["slot", "quota"])
    return Limit(events=dice.choice([1, 2, 7, 10, 60]), minutes=dice.choice([1, 1, 2]), form=form, since=since)


def make_limits(dice: random.Random) -> tuple[Limit, ...]:
    if dice.random() < 0.5:
        return (make_limit(dice),)
    changes = sorted(START + dice.randint(0, 5 * MINUTE) for _ in range(dice.randint(1, 2)))
    limits = [*([make_limit(dice)] if dice.random() < 0.6 else []), *(make_limit(dice, since) for since in changes)]
    if dice.random() < 0.4:
        last = limits.pop()
        until = (last.since or START) + dice.randint(0, 4 * MINUTE)
        limits.append(Limit(events=last.events, form=last.form, minutes=last.minutes, since=last.since, until=until))
    return tuple(limits)


def make_thin(dice: random.Random) -> Thin:
    keep = dice.choice(["first", "first", "last", "best"])
    return Thin(limits=make_limits(dice), per=dice.choice(["", "room"]), across=dice.random() < 0.3, keep=keep)


@CASES
def test_thinning_keeps_whom_the_reference_keeps(cases: int) -> None:
    kept = late = waited = 0
    for seed in range(cases):
        dice = random.Random(seed)
        patience, thin = patience_of(dice), make_thin(dice)
        rows = history(dice, lateness=patience.lateness)
        expected = reference.thinned(rows, thin, patience.lateness, read)
        shape = Shape(thin=thin)
        found = run(shape, rows, patience, dice, to_the_end=True)
        waits = thin.across or thin.keep != "first"
        assert (sorted(ids(found)) if waits else ids(found)) == ids(expected), seed
        if not thin.across:
            assert sorted(ids(apart(shape, rows, patience, dice))) == ids(expected), seed
        whole = Shaper("desk/s", shape, patience, read)
        whole.take(rows)
        kept, late, waited = kept + len(expected), late + whole.dropped[LATE], waited + whole.holds
    assert kept > cases
    assert late > cases / 20
    assert waited > cases / 20


@CASES
def test_thinning_in_order_keeps_to_its_bounds(cases: int) -> None:
    """Slots: at most a + 1 in any b minutes, one in each if no gap exceeds a slot. Quota: the first a of a window."""
    every_slot = 0
    for seed in range(cases):
        dice = random.Random(seed)
        limit = make_limit(dice)
        rows = sorted(history(dice, lateness=0), key=lambda row: row.time)
        rows = [replace(row, recv=row.time) for row in rows]
        thin = Thin(limits=(limit,))
        found = run(Shape(thin=thin), rows, LatenessBounds(lateness=0, idle=SECOND), dice, to_the_end=True)
        for source in {row.source for row in rows}:
            own = [row.time for row in rows if row.source == source]
            kept = [row.time for row in found if row.source == source]
            length = limit.minutes * MINUTE
            most = limit.events + 1 if limit.form == "slot" else 2 * limit.events
            assert all(sum(at <= time < at + length for time in kept) <= most for at in own), seed
            if limit.form == "quota":
                for window, times in groupby(own, key=lambda time: time // length):
                    assert sum(time // length == window for time in kept) == min(limit.events, len(list(times))), seed
                continue
            gaps = [after - before for before, after in pairwise(own)]
            if gaps and max(gaps) * limit.events <= length:
                slots = range(own[0] * limit.events // length, own[-1] * limit.events // length + 1)
                assert [time * limit.events // length for time in kept] == list(slots), seed
                every_slot += len(slots) > 2
    assert every_slot > cases / 100


@CASES
def test_what_is_not_good_enough_is_dropped_as_the_reference_says(cases: int) -> None:
    for seed in range(cases):
        dice = random.Random(seed)
        patience = patience_of(dice)
        rows = history(dice, lateness=patience.lateness)
        each = (
            EventFloor(about="confidence", floor=dice.choice([0, 75, 80.5, 100]), keep_missing=dice.random() < 0.5),
            EventFloor(about="freshness", floor=dice.choice([0, 0.5, 1.25, 20])),
        )
        sources = dice.choice([None, frozenset({"p"}), frozenset()])
        expected = reference.selected(rows, sources)
        for one in each:
            expected = reference.good(expected, one)
        shape = Shape(sources=sources, each=each)
        assert ids(run(shape, rows, patience, dice, to_the_end=True)) == ids(expected), seed
        now = START + 60 * SECOND
        aged = Shaper("desk/s", Shape(each=each[1:]), patience, read).take(rows, now)
        assert ids(aged) == ids(reference.good(rows, each[1], now)), seed


def make_suppress(dice: random.Random, per: str) -> Suppress:
    keys = ("a", "p-1", "q-0")
    return Suppress(
        attribute="value",
        delta=dice.choice([0, 1, 5, 12.5, 30]),
        per=per,
        per_key=tuple((key, dice.choice([0.0, 3.0, 50.0])) for key in keys if dice.random() < 0.2),
        max_silence=dice.choice([None, None, 0, 7 * SECOND]),
    )


@CASES
def test_suppression_lets_through_what_the_reference_lets_through(cases: int) -> None:
    lowered = 0
    for seed in range(cases):
        dice = random.Random(seed)
        patience, per = patience_of(dice), dice.choice(["", "room"])
        rows = history(dice, lateness=patience.lateness)
        first = make_suppress(dice, per)
        changes = {dice.randint(0, len(rows)): make_suppress(dice, per) for _ in range(dice.randint(0, 3))}
        shaper = Shaper("desk/s", Shape(suppress=(first,)), patience, read)
        found: list[Row] = []
        for place in range(len(rows) + 1):
            if place in changes:
                told = shaper.adopt(Shape(suppress=(changes[place],)))
                found, lowered = found + told, lowered + len(told)
            if dice.random() < 0.1:
                stored = json.loads(json.dumps(shaper.as_json()))
                shaper = Shaper("desk/s", shape_of(stored), patience, read)
                shaper.restore(stored)
                assert shaper.adopt(shaper.shape) == [], "whoever goes on with the same δ has nothing to add"
            found += shaper.take(rows[place : place + 1])
        expected = reference.suppressed(rows, first, read, changes)
        assert ids(found) == ids(expected), seed
    assert lowered > cases / 20


@CASES
def test_the_latest_is_never_further_away_than_two_places_together_allow(cases: int) -> None:
    """The publisher suppresses with its share, the router with the rest; both change while events come."""
    suppressed = 0
    for seed in range(cases):
        dice = random.Random(seed)
        at_publisher: LastPassed[int] | None = None
        at_router: LastPassed[int] | None = None
        share, whole = 0, 0
        delivered: int | None = None
        for time in range(dice.randint(1, 60)):
            value = dice.randint(0, 60)
            if dice.random() < 0.2:
                share, whole = (each := sorted(dice.randint(0, 40) for _ in range(2)))[0], each[1]
                passing = at_publisher.lowered(share) if at_publisher is not None else None
                if passing is not None and at_router is not None:
                    delivered = _after(at_router, passing, time - 1, whole - share, delivered)
                if at_router is not None and (held := at_router.lowered(whole - share)) is not None:
                    delivered = held
            if at_publisher is None:
                at_publisher, at_router, delivered = LastPassed(value, time, time), LastPassed(value, time, time), value
            elif at_publisher.passes(value, time, value, share, None):
                assert at_router is not None
                delivered = _after(at_router, value, time, whole - share, delivered)
            else:
                suppressed += 1
            assert delivered is not None
            assert abs(value - delivered) <= whole, seed
    assert suppressed > cases


def _after(told: LastPassed[int], value: int, time: int, delta: float, delivered: int | None) -> int | None:
    return value if told.passes(value, time, value, delta, None) else delivered


@CASES
def test_aggregates_are_what_the_reference_makes_of_all_events(cases: int) -> None:
    made = 0
    for seed in range(cases):
        dice = random.Random(seed)
        patience = patience_of(dice)
        rows = history(dice, lateness=patience.lateness)
        every = dice.choice([1, 10, 30]) * SECOND
        function = dice.choice(["avg", "min", "max", "sum"])
        aggregate = Aggregate(
            function=function,
            attribute="value",
            window=every * dice.choice([1, 2, 6]) + dice.choice([0, 7]),
            every=every,
        )
        expected = reference.aggregated(rows, aggregate, patience.lateness, read)
        found = run(Shape(aggregate=aggregate), rows, patience, dice, to_the_end=True)
        results = sorted((row.client, row.source, row.time, row) for row in found)
        assert [each[:3] for each in results] == sorted(each[:3] for each in expected), seed
        for (*_, row), (*_, value) in zip(results, sorted(expected), strict=True):
            assert _value(row) == pytest.approx(float(_rounded(value)), rel=1e-12), seed
        assert len({row.id for row in found}) == len({row.key for row in found}) == len(found)
        again = apart(Shape(aggregate=aggregate), rows, patience, dice)
        assert sorted((row.id, row.key, row.data) for row in again) == sorted(
            (row.id, row.key, row.data) for row in found
        ), seed
        made += len(found)
    assert made > cases


def _value(row: Row) -> float:
    return float(read(row)["value"])


def _rounded(value: Fraction) -> int:
    """Values of the histories are whole numbers, and so are those that are made of them."""
    return round(value)


@CASES
def test_filters_stand_one_behind_the_other(cases: int) -> None:
    """Thinned is what is precise enough to be told, of what is good enough, of who is selected."""
    passed = 0
    for seed in range(cases):
        dice = random.Random(seed)
        patience = patience_of(dice)
        rows = history(dice, lateness=patience.lateness)
        shape = Shape(
            sources=frozenset({"p"}),
            each=(EventFloor(about="confidence", floor=60, keep_missing=True),),
            suppress=(make_suppress(dice, ""),),
            thin=Thin(limits=(make_limit(dice),)),
        )
        expected: Sequence[Row] = reference.good(reference.selected(rows, shape.sources), shape.each[0])
        expected = reference.suppressed(expected, shape.suppress[0], read)
        assert shape.thin is not None
        expected = reference.thinned(expected, shape.thin, patience.lateness, read)
        assert ids(run(shape, rows, patience, dice, to_the_end=True)) == ids(expected), seed
        passed += len(expected)
    assert passed > cases


@pytest.mark.parametrize(
    "broken",
    [
        lambda rows, thin, lateness, read: reference.thinned(rows[::-1], thin, lateness, read),
        lambda rows, thin, lateness, read: reference.thinned(rows, thin, lateness + SECOND, read),
        lambda rows, thin, lateness, read: rows,
    ],
)
def test_a_reference_that_says_something_else_is_found_out(broken: Callable[..., list[Row]]) -> None:
    differ = 0
    for seed in range(NORMAL):
        dice = random.Random(seed)
        patience, thin = patience_of(dice), make_thin(dice)
        rows = history(dice, lateness=patience.lateness)
        found = run(Shape(thin=thin), rows, patience, dice, to_the_end=True)
        differ += sorted(ids(found)) != sorted(ids(broken(rows, thin, patience.lateness, read)))
    assert differ
