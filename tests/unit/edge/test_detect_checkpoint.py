"""Which messages of the log detection has taken, and what of that is still to be written down."""

from __future__ import annotations

from situ.edge.detect_checkpoint import RECENT, TakenSteps


def test_steps_and_what_was_passed_are_written_down_once() -> None:
    taken = TakenSteps()
    taken.step(10, (1, 2))
    taken.passed(3)
    taken.passed(4)
    taken.passed(6)
    taken.step(11, ())
    taken.step(12, ())  # the clock went on, and then went on further
    taken.step(13, (5,))
    assert taken.drained() == (((10, (1, 2)), (12, ()), (13, (5,))), ((3, 4), (6, 6)))
    assert taken.drained() == ((), ())
    assert (taken.reached, taken.recent) == (6, frozenset(range(1, 7)))


def test_of_what_was_taken_long_ago_it_is_known_without_remembering_each() -> None:
    taken = TakenSteps()
    taken.know_between(1, 3 * RECENT)
    recent = taken.recent
    assert len(recent) == RECENT
    assert all(taken.is_taken(recent, seq) for seq in (1, RECENT, 2 * RECENT, 3 * RECENT))
    taken.know((3 * RECENT + 2,))
    recent = taken.recent
    assert not taken.is_taken(recent, 3 * RECENT + 1), "acknowledgements need not come in the order of the log"
    assert taken.is_taken(recent, 3 * RECENT + 2)
