"""Situations open, go on and close."""

from __future__ import annotations

import json

import pytest

from situ.policies.lifecycle import (
    POLICY_CHANGED,
    POLICY_REMOVED,
    SituationTransition,
    carry_over,
    close,
    open_as_json,
    open_from_json,
    step,
)
from situ.policies.model import Cause, Detection
from tests.situations import policy

HOLD = 10


def detection(time: int, identity: str = "1", cause: str = "") -> Detection:
    return Detection(
        policy="p",
        bindings=(("A", identity),),
        causes=(Cause("s", cause or f"e{time}"),),
        time=time,
        activation=time,
    )


def told(transitions: list[SituationTransition]) -> list[tuple[int, str]]:
    return [(each.time, each.stage.value) for each in transitions]


def test_a_guest_who_stays_is_one_situation() -> None:
    state, transitions = step({}, [detection(0), detection(4), detection(14), detection(25)], 30, HOLD)
    assert told(transitions) == [(0, "opened"), (4, "continued"), (14, "continued"), (24, "closed"), (25, "opened")]
    first = detection(0).id
    assert [each.id for each in transitions[:4]] == [
        f"{first}.opened",
        f"{first}.c-{detection(4).id}",
        f"{first}.c-{detection(14).id}",
        f"{first}.closed",
    ]
    closed = transitions[3]
    assert (closed.situation.start, closed.situation.last, closed.end) == (0, 14, 24)
    assert (closed.situation.detections, closed.situation.causes) == (3, detection(14).causes)
    [still] = state.values()
    assert (still.id, still.start) == (detection(25).id, 25)


@pytest.mark.parametrize(("watermark", "closed"), [(9, False), (10, False), (11, True)])
def test_a_situation_is_closed_when_nothing_can_continue_it_any_more(watermark: int, closed: bool) -> None:
    state, _ = step({}, [detection(0)], 1, HOLD)
    state, transitions = step(state, [], watermark, HOLD)
    assert told(transitions) == ([(10, "closed")] if closed else [])
    assert bool(state) is not closed


def test_other_bindings_are_another_situation() -> None:
    _, transitions = step({}, [detection(0), detection(1, "2")], 2, HOLD)
    assert told(transitions) == [(0, "opened"), (1, "opened")]


def test_detections_of_one_time_are_told_in_order() -> None:
    both = sorted([detection(3, cause="a"), detection(3, cause="b")], key=lambda each: each.id)
    _, transitions = step({}, both[::-1], 5, 0)
    assert told(transitions) == [(3, "opened"), (3, "continued"), (3, "closed")]
    assert transitions[0].detection == both[0].id


def test_a_policy_that_is_removed_closes_its_situations() -> None:
    state, _ = step({}, [detection(0), detection(5, "2")], 6, HOLD)
    assert [(each.end, each.reason) for each in close(state, POLICY_REMOVED, 7, HOLD)] == [
        (7, POLICY_REMOVED),
        (7, POLICY_REMOVED),
    ]
    assert [each.end for each in close(state, POLICY_REMOVED, 3, HOLD)] == [3, 5]
    assert [each.end for each in close(state, POLICY_REMOVED, None, HOLD)] == [10, 15]


def test_a_policy_that_is_altered_keeps_situations_that_still_make_sense() -> None:
    before = policy("thing A, place R", "A.where = R.id")
    state, _ = step({}, [detection(0)], 6, HOLD)
    assert carry_over(state, before, policy("thing A, thing B", "A.near = B.id"), 7) == (state, [])
    kept, [transition] = carry_over(state, before, policy("robot A, thing B", "A.near = B.id"), 7)
    assert (kept, transition.reason, transition.end) == ({}, POLICY_CHANGED, 7)


def test_what_is_stored_is_what_was() -> None:
    state, _ = step({}, [detection(0), detection(5, "2")], 6, HOLD)
    assert open_from_json(json.loads(json.dumps(open_as_json(state)))) == state
    with pytest.raises(ValueError, match="version 1 of their form, this is 2"):
        open_from_json({"version": 2, "open": []})
