"""Pauses between steps of detection."""

from __future__ import annotations

import pytest

from situ.edge.detect import LENT, LONGEST, StepPacing


@pytest.mark.parametrize("took", [0.0003, 0.001, 0.004])
def test_steps_that_come_singly_do_not_pause(took: float) -> None:
    pausing, now = StepPacing(), 100.0
    for _ in range(1000):
        now += 3 * took
        assert pausing.after(took, now) == 0.0


@pytest.mark.parametrize("took", [0.0001, 0.001, 0.002])
def test_steps_that_follow_each_other_take_half_of_the_time(took: float) -> None:
    pausing, now = StepPacing(), 100.0
    for _ in range(1000):
        now += took
        now += pausing.after(took, now)
    assert 1000 * took / (now - 100.0) < 0.55


def test_long_steps_pause_for_a_moment() -> None:
    pausing, now = StepPacing(), 100.0
    for _ in range(100):
        now += 0.05
        pause = pausing.after(0.05, now)
        assert pause == LONGEST
        now += pause


def test_what_was_lent_is_paid_back_by_waiting() -> None:
    pausing = StepPacing()
    assert pausing.after(2 * LENT, 100.0) == LONGEST
    assert pausing.after(0.001, 101.0) == 0.0
