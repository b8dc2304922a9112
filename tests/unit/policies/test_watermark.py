"""How far event time is settled."""

from __future__ import annotations

import json

import numpy as np
import pytest

from situ.policies.watermark import (
    SourceTimeouts,
    SourceTimes,
    WatermarkInputs,
    merge_source_times,
    source_times_as_json,
    source_times_from_json,
    source_times_of,
    waits_for,
    watermark,
)

SOURCES = {"a": SourceTimeouts(lateness=2, idle=10), "b": SourceTimeouts(lateness=3, idle=10)}


def seen(*events: tuple[int, int]) -> SourceTimes:
    found = source_times_of(np.array([time for time, _ in events]), np.array([received for _, received in events]))
    assert found is not None
    return found


def test_nothing_is_settled_before_the_first_event() -> None:
    assert watermark({}, SOURCES, 1000) is None
    assert watermark({"other": seen((1, 1))}, SOURCES, 1000) is None
    assert source_times_of(np.array([], dtype=np.int64), np.array([], dtype=np.int64)) is None


def test_the_source_that_is_least_far_counts() -> None:
    assert watermark({"a": seen((100, 101), (90, 102)), "b": seen((95, 102))}, SOURCES, 102) == 92
    assert watermark({"a": seen((100, 101)), "b": seen((120, 121))}, SOURCES, 121 - 15) == 98


@pytest.mark.parametrize(("clock", "expected"), [(110, None), (111, 98)])
def test_a_source_that_never_sent_anything_is_waited_for_until_it_is_idle(clock: int, expected: int | None) -> None:
    listening = WatermarkInputs(since=100, awaited=frozenset(SOURCES))
    heard = {"a": seen((100, 100), (99, clock))}
    assert watermark(heard, SOURCES, clock, listening=listening) == expected
    assert waits_for(heard, SOURCES, clock, listening) == ("b" if expected is None else "a")
    assert watermark(heard, SOURCES, clock, reached=50, listening=listening) == (expected or 50)


def test_publishers_that_begin_together_long_after_the_policy_are_waited_for() -> None:
    listening = WatermarkInputs(since=0, awaited=frozenset(SOURCES))
    assert watermark({"a": seen((1000, 1001), (1005, 1006))}, SOURCES, 1011, listening=listening) is None
    assert watermark({"a": seen((1000, 1001), (1005, 1006))}, SOURCES, 1012, listening=listening) == 1003


def test_what_policies_bring_is_as_far_as_they_are() -> None:
    heard = {"a": seen((100, 101))}
    assert watermark(heard, SOURCES, 101, listening=WatermarkInputs(fed={"first": 40})) == 40
    assert watermark({}, SOURCES, 101, listening=WatermarkInputs(fed={"first": 40, "other": 30})) == 30
    assert watermark(heard, SOURCES, 9_999, listening=WatermarkInputs(fed={"first": 40})) == 40, (
        "`a` is silent, they are not"
    )
    assert watermark(heard, SOURCES, 101, listening=WatermarkInputs(fed={"first": None})) is None
    assert waits_for(heard, SOURCES, 101, WatermarkInputs(fed={"first": 40})) == "policy first"
    assert waits_for(heard, SOURCES, 101, WatermarkInputs(fed={"first": None})) == "policy first"


@pytest.mark.parametrize(("clock", "expected"), [(110, 50), (111, 100)])
def test_a_silent_source_holds_nothing_back(clock: int, expected: int) -> None:
    assert watermark({"a": seen((102, 103)), "b": seen((53, 100))}, SOURCES, clock) == expected


def test_in_silence_it_follows_the_clock() -> None:
    sent = {"a": seen((100, 101))}
    assert [watermark(sent, SOURCES, clock) for clock in (111, 112, 113, 200)] == [98, 110, 111, 198]
    both = {"a": seen((100, 101)), "b": seen((99, 101))}
    assert watermark(both, SOURCES, 200) == 197


def test_in_silence_events_of_the_past_go_on_from_where_they_are() -> None:
    """Events of an hour ago that stop are not followed by an hour that passes at once."""
    sent = {"a": seen((1_000, 5_000))}
    assert watermark(sent, SOURCES, 5_010) == 998
    assert watermark(sent, SOURCES, 5_011) == 5_011 - 2 - (4_000 - 2 - 10)
    assert watermark(sent, SOURCES, 5_111) == 5_111 - 2 - (4_000 - 2 - 10)


def test_an_event_is_never_later_than_it_was_received() -> None:
    assert watermark({"a": seen((9_999, 100))}, SOURCES, 100) == 98


def test_it_never_goes_back() -> None:
    sent = {"a": seen((100, 101))}
    assert watermark(sent, SOURCES, 200) == 198
    back = merge_source_times(sent, {"a": seen((150, 201))})
    assert watermark(back, SOURCES, 201) == 148
    assert watermark(back, SOURCES, 201, reached=198) == 198
    assert watermark({}, SOURCES, 201, reached=198) == 198


def test_what_is_stored_is_what_was() -> None:
    sent = {"b": seen((100, 101)), "a": seen((99, 101))}
    assert source_times_from_json(json.loads(json.dumps(source_times_as_json(sent)))) == sent
    with pytest.raises(ValueError, match="version 1 of their form, this is None"):
        source_times_from_json({})
