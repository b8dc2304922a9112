"""The course of advice to one profile, and the ledger that it follows from."""

from __future__ import annotations

import json

import pytest

from situ.quality.model.allocation_problem import Target
from situ.quality.model.declarations import Mode, Point, Profile
from situ.quality.negotiation.advice import FIRST_FREEZE, LONGEST_FREEZE, REST, AdviceCourse, Ledger, improves, lowers
from tests.negotiating import in_modes, provides

READER = provides("reader", rate=(1, 60, 2), freshness=(1, 100, 50))
RAISED = Target(values={"rate": 5.0, "freshness": 20.0})


def never(id: str, point: Point) -> bool:
    return False


def sent() -> AdviceCourse:
    course = AdviceCourse()
    course.send(READER, RAISED, now=100.0, number=1)
    return course


def test_frozen_longer_each_time_up_to_a_day() -> None:
    course, lengths = AdviceCourse(), []
    for number in range(12):
        course.send(READER, RAISED, now=0.0, number=number)
        course.expire(now=0.0)
        assert course.until is not None
        lengths.append(course.until)
        course.thaw()
    assert lengths[:4] == [REST, FIRST_FREEZE, 2 * FIRST_FREEZE, 4 * FIRST_FREEZE]
    assert lengths[-1] == LONGEST_FREEZE
    assert lengths == sorted(lengths)


def test_who_answers_is_not_frozen() -> None:
    course = sent()
    course.expire(now=0.0)
    course.send(READER, RAISED, now=1.0, number=2)
    course.refuse(READER, {"rate": 4.0})
    assert course.failures == 0
    assert course.limits == {"rate": 4.0, "freshness": 50}, "of what it says nothing about it does what it does"


def test_own_change_is_a_new_beginning() -> None:
    course = sent()
    course.fail(READER, {}, now=0.0)
    course.fail(READER, {}, now=0.0)
    assert course.is_frozen
    assert course.holds_back
    course.forget()
    assert not course.holds_back
    assert course.failures == 0


def test_accepted_has_to_show_in_time_or_event_time() -> None:
    course = sent()
    assert not course.is_late(1_000.0, None), "nobody accepted it"
    course.accept(now=200.0, mark=1_000_000_000)
    assert not course.is_late(379.9, 1_179_999_999)
    assert course.is_late(380.0, None)
    assert course.is_late(200.0, 1_180_000_000)


def test_course_outlives_a_restart() -> None:
    course = sent()
    course.refuse(READER, {"rate": 4.0})
    course.barred.add("fast")
    course.come_to_nothing(now=5.0)
    course.send(READER, RAISED, now=6.0, number=9)
    course.accept(now=7.0, mark=12)
    course.unproven, course.relax_at = {"rate": 5.0}, 70.0
    assert AdviceCourse.from_json(json.loads(json.dumps(course.as_json()))) == course


# ── the ledger ──


def test_best_of_baseline_and_claims() -> None:
    ledger = Ledger()
    ledger.claim(READER, "a", Target(values={"rate": 5.0, "freshness": 20.0}))
    ledger.claim(READER, "b", Target(values={"rate": 30.0}))
    assert dict(ledger.target(READER, never).values) == {"rate": 30, "freshness": 20}
    assert ledger.release("b")
    assert not ledger.release("b")
    assert dict(ledger.target(READER, never).values) == {"rate": 5, "freshness": 20}
    assert dict(improves(ledger.target(READER, never), READER).values) == {"rate": 5, "freshness": 20}
    raised = provides("reader", rate=(1, 60, 30), freshness=(1, 100, 20))
    assert dict(lowers(ledger.target(raised, never), raised).values) == {"rate": 5}
    assert ledger.release("a")
    assert dict(lowers(ledger.target(raised, never), raised).values) == {"rate": 2, "freshness": 50}
    assert not ledger.claimed(raised, never)
    ledger.settle(READER)
    assert not ledger


def test_own_change_sets_the_baseline() -> None:
    ledger = Ledger()
    ledger.claim(READER, "a", RAISED)
    after = provides("reader", rate=(1, 60, 3), freshness=(1, 100, 50))
    ledger.rebase(READER, after)
    assert ledger.baseline == {"rate": 3, "freshness": 50}
    ledger.rebase(after, provides("reader", rate=(1, 60, 3)))
    assert ledger.baseline == {"rate": 3}
    assert dict(ledger.claims["a"].values) == {"rate": 5}
    ledger.rebase(after, Profile(publisher="reader", type="badge"))
    assert not ledger


@pytest.mark.parametrize(
    ("claims", "mode"),
    [
        ({}, "eco"),
        ({"mid": 10}, "mid"),
        ({"fast": 60}, "fast"),
        ({"mid": 10, "fast": 60}, "fast"),
        ({"fast": 2}, "eco"),
        ({"fast": 5}, "mid"),
    ],
)
def test_cheapest_mode_in_which_nobody_loses(claims: dict[str, float], mode: str) -> None:
    modes = [
        Mode(name=name, values={"rate": rate}, cost=rate) for name, rate in (("eco", 2), ("mid", 10), ("fast", 60))
    ]
    profile = in_modes("plant", "eco", *modes)
    ledger = Ledger(mode="eco")
    for claimed, rate in claims.items():
        ledger.claim(profile, str(rate), Target(mode=claimed))

    def meets(id: str, point: Point) -> bool:
        return point["rate"] >= float(id)

    assert ledger.target(in_modes("plant", "fast", *modes), meets).mode == mode
