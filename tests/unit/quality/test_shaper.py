"""Filters of a subscription, by example."""

from __future__ import annotations

import sys

import pytest

from situ.quality.model.declarations import Aggregate
from situ.quality.model.shapes import UNSHAPED, EventFloor, Limit, Shape, Suppress, Thin
from situ.quality.shaping import suppress, thin
from situ.quality.shaping import suppress as kept
from situ.quality.shaping.aggregate import evaluate
from situ.quality.shaping.shaper import Shaper
from situ.quality.shaping.thin import window_at, window_of
from situ.quality.shaping.watermark import LatenessBounds
from tests.histories import MINUTE, SECOND, START, event, read

PATIENT = LatenessBounds(lateness=2 * SECOND, idle=10 * SECOND)


def shaper(shape: Shape) -> Shaper:
    return Shaper("desk/readings", shape, PATIENT, read)


def seconds(rows: list[object]) -> list[float]:
    return [(row.time - START) / SECOND for row in rows]  # type: ignore[attr-defined]


def test_ten_a_minute_keeps_the_first_of_each_slot() -> None:
    """W6 of the spec."""
    found = shaper(Shape(thin=Thin(limits=(Limit(events=10),))))
    times = (0, 1, 5.999, 6, 6.5, 13)
    start = 4 * SECOND  # where a slot of six seconds begins
    rows = [event(number, start + round(time * SECOND)) for number, time in enumerate(times)]
    assert [each - 4 for each in seconds(found.take(rows))] == [0, 6, 13]
    assert found.dropped == {"rate": 3}


def test_a_quota_takes_the_first_of_a_window() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=2, form="quota"),))))
    rows = [event(number, time * SECOND) for number, time in enumerate((0, 1, 2, 39, 40, 41, 42))]
    assert seconds(found.take(rows)) == [0, 1, 40, 41], "a minute begins at 40"


def test_a_delivered_fifty_stands_for_twenty_to_eighty() -> None:
    """W5 of the spec."""
    found = shaper(Shape(suppress=(Suppress(attribute="value", delta=30),)))
    rows = [event(number, number * SECOND, value=value) for number, value in enumerate((50, 79, 81, 60))]
    assert [read(row)["value"] for row in found.take(rows)] == [50, 81]
    assert [read(row)["value"] for row in found.adopt(Shape(suppress=(Suppress(attribute="value", delta=10),)))] == [60]
    assert found.adopt(Shape(suppress=(Suppress(attribute="value", delta=40),))) == []
    assert found.dropped == {"imprecision": 1}


def test_the_end_of_suppression_tells_what_it_held_back() -> None:
    found = shaper(Shape(suppress=(Suppress(attribute="value", delta=30),)))
    found.take([event(0, 0, value=50), event(1, SECOND, value=55)])
    assert [read(row)["value"] for row in found.adopt(UNSHAPED)] == [55]


def test_what_is_older_than_the_latest_never_passes() -> None:
    """It would set the value back from which the tolerance is counted."""
    found = shaper(Shape(suppress=(Suppress(attribute="value", delta=10),)))
    rows = [event(0, 10 * SECOND, value=50), event(1, 12 * SECOND, value=55), event(2, 11 * SECOND, value=70)]
    assert [read(row)["value"] for row in found.take(rows)] == [50]


def test_somebody_who_is_silent_for_long_is_heard() -> None:
    found = shaper(Shape(suppress=(Suppress(attribute="value", delta=10, max_silence=5 * SECOND),)))
    assert seconds(found.take([event(n, n * 2 * SECOND, value=1) for n in range(7)])) == [0, 6, 12]


def test_single_keys_may_ask_for_less() -> None:
    shape = Shape(suppress=(Suppress(attribute="value", delta=30, per="room", per_key=(("a", 5.0), ("b", 90.0))),))
    found = shaper(shape)
    rows = [event(2 * n + m, n * SECOND, value=10 * n, room=room) for n in range(5) for m, room in enumerate("ab")]
    passed = found.take(rows)
    assert [read(row)["room"] for row in passed] == ["a", "b", "a", "a", "a", "a", "b"]
    assert [found.imprecision(row) for row in passed[:2]] == ["5", "30"]


def test_a_source_is_known_by_its_name_with_its_client_or_without() -> None:
    deltas = (("node7", 5.0), ("plant/node8", 6.0))
    found = shaper(Shape(suppress=(Suppress(attribute="value", delta=30, per_key=deltas),)))
    sources = ("plant/node7", "plant/node8", "plant/node9", "other/node7")
    assert [found.imprecision(event(0, 0, source=each)) for each in sources] == ["5", "6", "30", "30"]


def test_events_say_how_far_they_may_be_from_the_truth() -> None:
    one, two = Suppress(attribute="value", delta=0.1), Suppress(attribute="humidity", delta=5)
    assert shaper(Shape(suppress=(one,))).imprecision(event(0, 0)) == "0.1"
    assert shaper(Shape(suppress=(one, two))).imprecision(event(0, 0)) == "value=0.1,humidity=5"
    assert shaper(Shape(suppress=(Suppress(attribute="value", delta=0),))).imprecision(event(0, 0)) == ""
    assert shaper(UNSHAPED).imprecision(event(0, 0)) == ""


def test_the_last_of_a_window_waits_until_the_window_is_settled() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=1),), keep="last")))
    assert found.take([event(0, 10 * SECOND), event(1, 20 * SECOND), event(2, 15 * SECOND)]) == []
    assert found.take([event(3, 40 * SECOND), event(4, 41 * SECOND)]) == [], "somebody may come a little late"
    assert seconds(found.take([event(5, 42 * SECOND)])) == [20]
    assert found.take([event(6, 30 * SECOND)]) == []
    assert found.holds
    assert found.dropped == {"rate": 5}


def test_who_waits_is_let_go_in_silence() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=1),), keep="best")))
    found.take([event(0, SECOND, confidence=80.0), event(1, 2 * SECOND, confidence=90.0), event(2, 3 * SECOND)])
    assert found.tick(START + 12 * SECOND) == []
    assert found.tick(START + 41 * SECOND) == [], "the minute ends at 40, and two seconds are granted"
    assert seconds(found.tick(START + 42 * SECOND)) == [2]
    assert not found.holds
    assert found.take([event(3, 39 * SECOND, received=43 * SECOND)]) == []


def test_sources_are_not_told_apart_across() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=1),), across=True)))
    rows = [event(0, 12 * SECOND, source="a"), event(1, 11 * SECOND, source="b"), event(2, 43 * SECOND, source="a")]
    assert seconds(found.take(rows)) == [11]


def test_what_comes_for_a_window_that_is_forgotten_is_late() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=60),))))
    assert seconds(found.take([event(0, 10 * SECOND), event(1, 7 * SECOND), event(2, 4 * SECOND)])) == [10, 7]
    assert found.dropped == {"late": 1}


def test_a_limit_holds_for_windows_that_start_at_its_instant_or_later() -> None:
    limits = (Limit(events=1), Limit(events=60, since=START + 45 * SECOND, until=START + 50 * SECOND))
    assert window_at(START + 44 * SECOND, limits) == window_of(START + 44 * SECOND, limits[0])
    assert window_at(START + 45 * SECOND, limits) == window_of(START + 45 * SECOND, limits[1])
    assert window_at(START + 50 * SECOND, limits) is None
    later = (Limit(events=1), Limit(events=1, minutes=2, since=START + 41 * SECOND))
    assert window_at(START + 99 * SECOND, later) == window_of(START + 99 * SECOND, limits[0]), "it began before"
    assert window_at(START + 161 * SECOND, later) == window_of(START + 161 * SECOND, later[1])


def test_windows_are_whole_numbers_far_from_the_epoch() -> None:
    far = 253_402_300_799 * SECOND
    window = window_of(far, Limit(events=7))
    assert window.start <= far < window.end
    assert window_of(window.end, Limit(events=7)).number == window.number + 1
    assert window_of(window.end - 1, Limit(events=7)).number == window.number


def test_the_average_is_weighted_by_time() -> None:
    assert evaluate("avg", [(10, 4.0), (15, 8.0)], (3, 2.0, None), 0, 20) == (10 * 2 + 5 * 4 + 5 * 8) / 20
    assert evaluate("avg", [(10, 4.0), (15, 8.0)], None, 0, 20) == 6
    assert evaluate("min", [(10, 4.0)], (-3, 2.0, None), 0, 20) == 2
    assert evaluate("min", [(0, 4.0)], (-3, 2.0, None), 0, 20) == 4, "the value before did not hold at all"
    assert evaluate("sum", [(10, 4.0), (15, 8.0)], (-3, 2.0, None), 0, 20) == 12


def test_what_no_number_can_hold_is_the_largest() -> None:
    most = sys.float_info.max
    assert evaluate("sum", [(10, most), (15, most)], None, 0, 20) == most
    assert evaluate("sum", [(10, -most), (15, -most), (16, 1.0)], None, 0, 20) == -most
    assert evaluate("sum", [(10, most), (15, most), (16, -most)], None, 0, 20) == most
    assert evaluate("avg", [(0, most), (10, most)], None, 0, 20) == most
    assert evaluate("avg", [(0, most), (10, -most)], None, 0, 20) == 0


def test_one_event_is_made_of_many() -> None:
    aggregate = Aggregate(function="avg", attribute="value", window=60 * SECOND, every=10 * SECOND)
    found = shaper(Shape(aggregate=aggregate))
    made = found.take([event(0, 0, value=10), event(1, 5 * SECOND, value=20, confidence=70.0), event(2, 13 * SECOND)])
    assert made == [], "who says nothing of the attribute moves nothing"
    (one,) = found.take([event(3, 12 * SECOND, value=90)])
    assert (read(one)["value"], one.time - START, one.confidence) == (15, 10 * SECOND, 70.0)
    assert (one.client, one.source, one.pos) == ("plant", "s1", 0)
    assert one.incarnation > 1
    assert [each.time - START for each in found.tick(START + 2 * MINUTE)] == [n * 10 * SECOND for n in range(2, 8)]
    assert found.dropped == {"aggregated": 4}


def test_the_oldest_keys_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (kept, thin, suppress):
        monkeypatch.setattr(module, "MOST_KEYS", 2)
    rows = [event(n, SECOND * n, value=1, source=source) for n, source in enumerate("abca")]
    assert len(shaper(Shape(suppress=(Suppress(attribute="value", delta=9),))).take(rows)) == 4
    assert len(shaper(Shape(thin=Thin(limits=(Limit(events=1),)))).take(rows)) == 4


def test_a_shape_that_changes_lets_go_who_waits() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=1),), keep="last")))
    found.take([event(0, 10 * SECOND), event(1, 20 * SECOND)])
    assert seconds(found.adopt(Shape(thin=Thin(limits=(Limit(events=1),))))) == [20]
    assert not found.holds


def test_limits_change_and_what_is_known_of_windows_stays() -> None:
    found = shaper(Shape(thin=Thin(limits=(Limit(events=1),))))
    found.take([event(0, 10 * SECOND)])
    changed = Thin(limits=(Limit(events=1), Limit(events=60, since=START + 40 * SECOND)))
    assert found.adopt(Shape(thin=changed)) == []
    assert seconds(found.take([event(1, 11 * SECOND), event(2, 41 * SECOND), event(3, 42 * SECOND)])) == [41, 42]


def test_age_is_that_of_the_instant_that_is_given() -> None:
    found = shaper(Shape(each=(EventFloor(about="freshness", floor=1.5),)))
    rows = [event(0, 0, received=2 * SECOND), event(1, SECOND, received=2 * SECOND)]
    assert seconds(found.take(rows)) == [1]
    assert found.take(rows, START + 3 * SECOND) == []
    assert found.dropped == {"freshness": 3}
