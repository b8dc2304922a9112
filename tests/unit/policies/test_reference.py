"""What policies mean, in worked examples: each a policy, what events said, and what is detected when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest

from situ.policies.model import Cause, Detection, InstancesByConcept, Observation, Policy
from situ.policies.reference import HeldAbsence, MetLiteral, OccurrenceSet, detect, matches
from tests.situations import ONTOLOGY, policy, saw

W = 5
NOBODY: InstancesByConcept = {}
PLACES: InstancesByConcept = {"place": {"r1": {"limit": 1.0}, "r2": {"limit": 2.0}}}


def found(
    meant: Policy,
    *seen: Observation,
    instances: InstancesByConcept = NOBODY,
    keep: Mapping[str, int] | None = None,
    until: int | None = None,
) -> list[Detection]:
    return detect(meant, ONTOLOGY, seen, instances, keep=keep or {}, until=until)


def short(detections: Iterable[Detection]) -> list[tuple[str, int]]:
    """Bindings and times, in the order of time; those of one time by bindings."""
    return sorted([("".join(a + i for a, i in each.bindings), each.time) for each in detections], key=lambda x: x[::-1])


def ids(detections: Iterable[Detection]) -> list[list[str]]:
    """The ids of causes, detections in the order of time; those of one time by causes."""
    return [[cause.id for cause in each.causes] for each in sorted(detections, key=lambda x: (x.time, x.causes))]


# ── the two tables ────────────────────────────────────────────────────────────────────────────────────


def test_table_5_3_step_by_step() -> None:
    """A guest in a room is not alone if somebody near is in that room: two absences that are refuted only together."""
    meant = policy(
        "thing A (status = 'guest'), thing B (status = 'staff'), place R",
        "A.where = R.id",
        "not A.near = B.id or not B.where = R.id",
    )
    staff = {each: {"status": "staff"} for each in ("101", "105", "142", "143")}
    instances: InstancesByConcept = {
        "thing": {"1": {"status": "guest"}, "5": {"status": "guest"}, **staff},
        "place": {"R12": {}, "R123": {}},
    }
    steps = [
        saw("101", "where", "R12", -4),
        saw("1", "where", "R12", 0),
        saw("101", "where", "R12", 1),
        saw("5", "where", "R123", 2),
        saw("1", "near", "105", 3),
        saw("1", "near", "101", 4),
        saw("5", "near", "142", 5),
        saw("143", "where", "R123", 6),
    ]
    without_refutation = [each for each in steps if each.time != 4]
    for watermark in range(-5, 9):
        known_then = [each for each in steps if each.time < watermark]
        expected = [("A5RR123", 7)] if watermark > 7 else []
        assert short(found(meant, *known_then, instances=instances, until=watermark)) == expected, watermark
    # Only the sighting beside 101 at 4 refutes the activation at 0: 105 was not in that room.
    assert short(found(meant, *without_refutation, instances=instances)) == [("A1RR12", 5), ("A5RR123", 7)]
    # That of 101 in the room at −4 would have been enough, too: it is inside the window before the activation.
    early = [each for each in steps if each.time != 1]
    assert short(found(meant, *early, instances=instances)) == [("A5RR123", 7)]
    one_less = [*(each for each in early if each.time != -4), saw("101", "where", "R12", -6)]
    assert short(found(meant, *one_less, instances=instances)) == [("A1RR12", 5), ("A5RR123", 7)]


def test_table_5_4_joins_by_shared_aliases() -> None:
    """Occurrences of three relations come together where they agree on the aliases they share."""
    meant = policy("thing A, thing B, thing C, thing D", "A.near = B.id", "B.near = C.id", "C.near = D.id")
    everyone: InstancesByConcept = {"thing": {str(each): {} for each in range(1, 20)}}

    def near(*pairs: tuple[int, int]) -> list[Observation]:
        return [saw(str(a), "near", str(b), time) for time, (a, b) in enumerate(pairs)]

    first = near((2, 7), (3, 5), (5, 13), (15, 8), (13, 7))
    steps = {each.time: short(found(meant, *first[: each.time + 1], instances=everyone)) for each in first}
    assert [steps[time] for time in range(4)] == [[], [], [], []]
    assert steps[4] == [("A3B5C13D7", 4)]
    assert short(found(meant, *near((2, 7), (7, 15), (10, 8)), instances=everyone)) == []


# ── one event-based side, and none ────────────────────────────────────────────────────────────────────


def test_every_instance_of_the_other_side_that_fits_is_an_occurrence() -> None:
    meant = policy("thing A, place R", "A.x > R.limit")
    assert short(found(meant, saw("1", "x", 3.0, 7), instances=PLACES)) == [("A1Rr1", 7), ("A1Rr2", 7)]
    assert short(found(meant, saw("1", "x", 2.0, 7), instances=PLACES)) == [("A1Rr1", 7)]


def test_a_condition_that_is_unknown_or_fails_does_not_hold() -> None:
    assert short(found(policy("thing A", "10 / A.x > 1"), saw("1", "x", 0.0, 1), saw("1", "x", 2.0, 2))) == [("A1", 2)]
    assert found(policy("thing A", "A.x > 1"), saw("1", "x", None, 1)) == []
    # No absence is seen in it, either: only a relation that holds refutes its negation.
    meant = policy("thing A, thing B", "A.where = 'r1'", "not 10 / A.x > 1")
    assert short(found(meant, saw("1", "where", "r1", 0), saw("1", "x", 0.0, 1))) == [("A1", 5)]


def test_an_identity_no_table_knows_satisfies_no_constraint_and_has_no_attributes() -> None:
    seen = saw("9", "x", 3.0, 1)
    assert short(found(policy("thing A", "A.x > 1"), seen)) == [("A9", 1)]
    assert found(policy("thing A (status = 'guest')", "A.x > 1"), seen) == []
    assert found(policy("thing A (NOT status = 'guest')", "A.x > 1"), seen) == []
    assert short(found(policy("thing A (status IS NULL)", "A.x > 1"), seen)) == [("A9", 1)]


def test_instances_of_members_are_instances() -> None:
    meant = policy("thing A (level > 1)", "A.x > 1")
    robots: InstancesByConcept = {"robot": {"7": {"level": 2}}}
    assert short(found(meant, saw("7", "x", 3.0, 1, concept="robot"), instances=robots)) == [("A7", 1)]
    assert found(policy("robot A", "A.x > 1"), saw("7", "x", 3.0, 1, concept="thing")) == []


def test_constraints_bind_but_have_no_time_and_trigger_nothing() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "A.boss = B.id")
    staff: InstancesByConcept = {"thing": {"1": {"boss": "2"}, "2": {}}}
    [only] = found(meant, saw("1", "x", 3.0, 7), instances=staff)
    assert (short([only]), ids([only])) == ([("A1B2", 7)], [["1-x-7"]])
    assert found(meant, saw("2", "x", 3.0, 7), instances=staff) == []
    assert found(policy("thing A, thing B", "A.boss = B.id"), saw("1", "x", 3.0, 7), instances=staff) == []


def test_a_constraint_that_must_not_hold_refutes_at_any_time() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "not A.boss = B.id")
    staff: InstancesByConcept = {"thing": {"1": {"boss": "2"}, "2": {}}}
    seen = saw("1", "x", 3.0, 7), saw("2", "x", 3.0, 8)
    assert short(found(meant, *seen, instances=staff)) == [("A2", 13)]


# ── two event-based sides ─────────────────────────────────────────────────────────────────────────────

CLOSE = "abs(A.x - B.x) <= 1"


@pytest.mark.parametrize(("apart", "expected"), [(0, 1), (W - 1, 1), (W, 1), (W + 1, 0)])
def test_pairs_are_at_most_a_window_apart(apart: int, expected: int) -> None:
    meant = policy("thing A, robot B", CLOSE)
    seen = saw("1", "x", 1.0, 0), saw("2", "x", 1.0, apart, concept="robot")
    reverse = saw("1", "x", 1.0, apart), saw("2", "x", 1.0, 0, concept="robot")
    # A robot is a thing: what it says is of both sides, so the pair can be the other way round as well.
    for events in (seen, reverse):
        assert len(found(meant, *events)) == expected
        assert all(each.time == apart for each in found(meant, *events))


def modes(condition: str, *seen: Observation, aliases: str = "thing A, place B") -> dict[str, list[list[str]]]:
    """The ids of the causes of what is found, by mode."""
    return {
        mode: ids(found(policy(aliases, condition, consumption=mode), *seen)) for mode in ("chronicle", "recent", "all")
    }


def test_three_modes_on_one_trace() -> None:
    trace = (
        saw("1", "x", 1.0, 0, id="a0"),
        saw("1", "x", 1.0, 1, id="a1"),
        saw("2", "x", 1.0, 2, id="a2"),
        saw("r", "temp", 1.0, 3, id="b3"),
        saw("r", "temp", 1.0, 4, id="b4"),
        saw("r", "temp", 9.0, 4, id="b5"),
    )
    assert modes("A.x = B.temp", *trace) == {
        "chronicle": [["a0", "b3"], ["a1", "b4"]],
        "recent": [["a2", "b3"], ["a1", "b4"]],
        "all": [["a0", "b3"], ["a1", "b3"], ["a2", "b3"], ["a0", "b4"], ["a1", "b4"], ["a2", "b4"]],
    }


def test_recent_forgets_what_else_the_partner_said() -> None:
    trace = (
        saw("1", "x", 1.0, 0, id="a0"),
        saw("1", "x", 1.0, 1, id="a1"),
        saw("r", "temp", 1.0, 3, id="b3"),
        saw("r", "temp", 1.0, 4, id="b4"),
    )
    assert modes("A.x = B.temp", *trace)["recent"] == [["a1", "b3"]]
    assert modes("A.x = B.temp", *trace)["chronicle"] == [["a0", "b3"], ["a1", "b4"]]


def test_a_spent_event_is_not_kept() -> None:
    trace = (
        saw("1", "x", 1.0, 0, id="a0"),
        saw("r", "temp", 1.0, 1, id="b1"),
        saw("2", "x", 1.0, 2, id="a2"),
    )
    assert modes("A.x = B.temp", *trace)["chronicle"] == [["a0", "b1"]]
    assert modes("A.x = B.temp", *trace)["recent"] == [["a0", "b1"]]
    assert len(modes("A.x = B.temp", *trace)["all"]) == 2


def test_an_event_of_both_sides_acts_for_the_left_first_and_is_spent_once() -> None:
    trace = (saw("1", "x", 1.0, 0, id="e0"), saw("2", "x", 1.0, 1, id="e1"), saw("3", "x", 1.0, 2, id="e2"))
    meant = {
        mode: short(found(policy("thing A, thing B", "A.x = B.x", consumption=mode), *trace))
        for mode in ("chronicle", "recent", "all")
    }
    # e1 finds e0 kept on the right. Both are spent on both sides, so e2 finds nobody.
    assert meant["chronicle"] == meant["recent"] == [("A2B1", 1)]
    assert meant["all"] == [("A1B2", 1), ("A2B1", 1), ("A1B3", 2), ("A2B3", 2), ("A3B1", 2), ("A3B2", 2)]


def test_an_event_acts_for_the_right_if_the_left_finds_nobody() -> None:
    trace = saw("1", "x", 1.0, 0), saw("2", "x", 2.0, 1)
    assert short(found(policy("thing A, thing B", "A.x < B.x"), *trace)) == [("A1B2", 1)]
    assert short(found(policy("thing A, thing B", "A.x > B.x"), *trace)) == [("A2B1", 1)]


def test_an_event_never_pairs_with_itself_but_one_identity_may_be_both() -> None:
    meant = policy("thing A, thing B", "A.x = B.x", consumption="all")
    assert found(meant, saw("1", "x", 1.0, 0)) == []
    assert short(found(meant, saw("1", "x", 1.0, 0), saw("1", "x", 1.0, 3))) == [("A1B1", 3)]
    # One event through two push sources is one event.
    twice = saw("1", "x", 1.0, 0, id="e"), saw("2", "x", 1.0, 0, id="e", push="other")
    assert found(meant, *twice) == []


def test_ties_are_ordered_by_id_and_source() -> None:
    meant = policy("thing A, place B", "A.x = B.temp")
    tied = saw("2", "x", 1.0, 0, id="b"), saw("1", "x", 1.0, 0, id="a"), saw("r", "temp", 1.0, 0, id="c")
    assert short(found(meant, *tied)) == [("A1Br", 0)]
    sources = (
        saw("2", "x", 1.0, 0, id="a", source="t"),
        saw("1", "x", 1.0, 0, id="a", source="s"),
        saw("r", "temp", 1.0, 0, id="c"),
    )
    assert short(found(meant, *sources)) == [("A1Br", 0)]


def test_inside_a_negation_any_pair_counts() -> None:
    """The only partner of 2 is spent on 1, and yet 2 is not without one."""
    meant = policy("thing A, place B", "A.where = 'r1'", "not A.x = B.temp")
    pairs = saw("1", "x", 1.0, 0), saw("r", "temp", 1.0, 1), saw("2", "x", 1.0, 2)
    seen = [saw(each, "where", "r1", 3) for each in ("1", "2", "3")]
    assert short(found(meant, *pairs, *seen)) == [("A3", 8)]


# ── sequences ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("apart", "holds"), [(-1, False), (0, False), (1, True), (W, True), (W + 1, False)])
def test_followed_by(apart: int, holds: bool) -> None:
    meant = policy("thing A", "A.where = 'r1' -> A.where = 'r2'")
    seen = saw("1", "where", "r1", 10), saw("1", "where", "r2", 10 + apart)
    assert short(found(meant, *seen)) == ([("A1", 10 + apart)] if holds else [])
    assert found(meant, seen[0], saw("2", "where", "r2", 11)) == []


@pytest.mark.parametrize(("apart", "refuted"), [(-1, False), (0, False), (1, True), (W, True), (W + 1, False)])
def test_followed_by_not(apart: int, refuted: bool) -> None:
    meant = policy("thing A", "A.where = 'r1' -> not A.where = 'r2'")
    seen = saw("1", "where", "r1", 10), saw("1", "where", "r2", 10 + apart)
    assert short(found(meant, *seen)) == ([] if refuted else [("A1", 15)])
    assert short(found(meant, seen[0], saw("2", "where", "r2", 11))) == [("A1", 15)]


@pytest.mark.parametrize(("apart", "refuted"), [(-1, False), (0, False), (1, True), (W, True), (W + 1, False)])
def test_not_followed_by(apart: int, refuted: bool) -> None:
    meant = policy("thing A", "not A.where = 'r1' -> A.where = 'r2'")
    seen = saw("1", "where", "r1", 10 - apart), saw("1", "where", "r2", 10)
    assert short(found(meant, *seen)) == ([] if refuted else [("A1", 10)])


@pytest.mark.parametrize(("apart", "refuted"), [(-1, False), (0, True), (1, True), (3, True), (4, False)])
@pytest.mark.parametrize("which", ["r1", "r2"])
def test_not_followed_by_not(apart: int, refuted: bool, which: str) -> None:
    meant = policy("thing A", "A.x > 1", "not A.where = 'r1' ->3 not A.where = 'r2'")
    seen = saw("1", "x", 3.0, 10), saw("1", "where", which, 10 + apart)
    assert short(found(meant, *seen)) == ([] if refuted else [("A1", 13)])


def test_a_chain_is_about_one_thing_in_the_middle() -> None:
    """``A → B → C`` is ``A → B`` and ``B → C`` with one B: not one that follows A and another that C follows."""
    meant = policy("thing A", "A.where = 'r1' -> A.where = 'r2' -> A.where = 'r3'", window=9)
    apart = [saw("1", "where", "r2", 0), saw("1", "where", "r1", 1), saw("1", "where", "r3", 2)]
    assert found(meant, *apart, saw("1", "where", "r2", 3)) == []
    assert ids(found(meant, *apart, saw("1", "where", "r2", 3), saw("1", "where", "r3", 4))) == [
        ["1-where-1", "1-where-3", "1-where-4"]
    ]


def test_a_sequence_may_look_further_than_the_window_of_its_policy() -> None:
    meant = policy("thing A", "A.where = 'r1' ->100 A.where = 'r2'")
    assert short(found(meant, saw("1", "where", "r1", 0), saw("1", "where", "r2", 90))) == [("A1", 90)]


def test_absence_after_something_counts_in_the_window_from_when_it_is_settled() -> None:
    meant = policy("thing A", "A.where = 'r1' ->3 not A.where = 'r2'", "A.x > 1")
    seen = saw("1", "where", "r1", 10)
    assert short(found(meant, seen, saw("1", "x", 3.0, 8))) == [("A1", 13)]
    assert found(meant, seen, saw("1", "x", 3.0, 7)) == []
    assert short(found(meant, seen, saw("1", "x", 3.0, 18))) == [("A1", 18)]


# ── steps, not texts ──────────────────────────────────────────────────────────────────────────────────


def went(*rooms: tuple[str, int], who: str = "1") -> list[Observation]:
    return [saw(who, "where", room, time) for room, time in rooms]


def test_a_step_that_is_written_again_is_another_occurrence() -> None:
    twice = policy("thing A", "A.where = 'r1' -> A.where = 'r1' -> A.where = 'r1'", window=9)
    assert found(twice, *went(("r1", 0), ("r1", 1))) == []
    assert ids(found(twice, *went(("r1", 0), ("r1", 1), ("r1", 2)))) == [["1-where-0", "1-where-1", "1-where-2"]]


def test_a_spike_and_a_second_one() -> None:
    spikes = policy("thing A", "A.x > 20 -> A.x < 10 -> A.x > 20", window=9)
    values = [saw("1", "x", value, time) for time, value in enumerate((25.0, 5.0, 30.0))]
    assert found(spikes, *values[:2]) == []
    assert ids(found(spikes, *values)) == [["1-x-0", "1-x-1", "1-x-2"]]


def test_back_where_it_came_from() -> None:
    back = policy("thing A", "A.where = 'r1' -> A.where = 'r2' -> A.where = 'r1'", window=9)
    assert short(found(back, *went(("r1", 0), ("r2", 1), ("r1", 2)))) == [("A1", 2)]
    assert found(back, *went(("r1", 0), ("r2", 1)), *went(("r1", 2), who="2")) == []


def test_what_is_distributed_is_one_occurrence() -> None:
    """``X → (Y and Z)``: one X, before both; ``X → Y`` and ``X → Z`` on two lines: any two."""
    visits = went(("r1", 0), ("r2", 2)), went(("r1", 4), ("r3", 6))
    one = policy("thing A", "A.where = 'r1' ->3 [A.where = 'r2' and A.where = 'r3']", window=9)
    two = policy("thing A", "A.where = 'r1' ->3 A.where = 'r2'", "A.where = 'r1' ->3 A.where = 'r3'", window=9)
    assert found(one, *visits[0], *visits[1]) == []
    assert short(found(two, *visits[0], *visits[1])) == [("A1", 6)]
    assert short(found(one, *visits[0], saw("1", "where", "r3", 3))) == [("A1", 3)]


def test_lines_that_read_the_same_may_be_met_by_one_occurrence_or_by_two() -> None:
    meant = policy("thing A", "A.where = 'r1'", "A.where = 'r1'")
    assert ids(found(meant, *went(("r1", 0), ("r1", 1)))) == [["1-where-0"], ["1-where-0", "1-where-1"], ["1-where-1"]]


# ── one choice for each or ────────────────────────────────────────────────────────────────────────────


def test_branches_are_not_mixed() -> None:
    meant = policy("thing A, thing B, thing C", "[A.x > 1 and B.where = 'r1'] or C.near = '2'")
    a, c = saw("1", "x", 3.0, 0), saw("3", "near", "2", 1)
    assert short(found(meant, a, c)) == [("C3", 1)]
    assert short(found(meant, a, saw("2", "where", "r1", 2))) == [("A1B2", 2)]
    assert short(found(meant, a, saw("2", "where", "r1", 2), c)) == [("C3", 1), ("A1B2", 2)]


def test_branches_inside_a_sequence_are_not_mixed() -> None:
    meant = policy("thing A", "A.where = 'r1' -> [A.where = 'r2' or A.where = 'r3'] -> A.where = 'r4'", window=9)
    assert found(meant, *went(("r2", 0), ("r1", 1), ("r3", 2)), *went(("r2", 0), ("r4", 3), who="2")) == []
    mixed = went(("r2", 0), ("r1", 1), ("r4", 2), ("r3", 3))  # r1 → r3 and r2 → r4, but nothing in the middle of both
    assert found(meant, *mixed) == []
    assert short(found(meant, *went(("r1", 1), ("r3", 2), ("r4", 3)))) == [("A1", 3)]


def test_an_or_that_is_written_once_is_one_choice_however_it_is_distributed() -> None:
    """Both sides of the ``and`` before it are followed by the same branch."""
    meant = policy("thing A", "[A.where = 'r1' and A.where = 'r2'] -> [A.x > 3 or A.x < 1]", window=9)
    seen = went(("r1", 0), ("r2", 2))
    assert short(found(meant, *seen, saw("1", "x", 4.0, 3))) == [("A1", 3)]
    assert found(meant, *seen, saw("1", "x", 4.0, 1)) == []
    assert found(meant, *seen, saw("1", "x", 4.0, 1), saw("1", "x", 0.0, 2)) == []


def test_a_branch_of_absences_counts_where_no_other_branch_is_met() -> None:
    meant = policy("thing A", "A.x > 1", "[A.where = 'r1' and A.near = '2'] or [not A.x > 5 and not A.where = 'r3']")
    activation = saw("1", "x", 3.0, 0)
    there, near = saw("1", "where", "r1", 1), saw("1", "near", "2", 2)
    [both] = found(meant, activation, there, near)
    assert (both.time, len(both.causes)) == (2, 3)
    [absent] = found(meant, activation, there)
    assert (absent.time, len(absent.causes)) == (5, 1)
    assert found(meant, activation, there, saw("1", "where", "r3", 3)) == []
    assert [len(each.causes) for each in found(meant, activation, saw("1", "x", 9.0, 4), there, near)] == [3, 3]


def test_a_branch_with_an_absence_of_its_own_does_not_keep_another_back() -> None:
    """It may yet be refuted: then what is absent in the other branch would be reported by nobody."""
    meant = policy("thing A", "A.x > 1", "[A.where = 'r1' and not A.near = '2'] or not A.where = 'r3'")
    activation, there, near = saw("1", "x", 3.0, 0), saw("1", "where", "r1", 1), saw("1", "near", "2", 2)
    assert ids(found(meant, activation, there, near)) == [["1-x-0"]]
    assert ids(found(meant, activation, there)) == [["1-x-0"], ["1-where-1", "1-x-0"]]


# ── absence between ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("left", "back", "holds"),
    [(-1, 3, True), (0, 3, True), (1, 3, False), (2, 3, False), (3, 3, True), (9, W, True), (9, W + 1, False)],
)
def test_nothing_between(left: int, back: int, holds: bool) -> None:
    """``x → not y → z``: z at t2 in (t1, t1 + W], and no y in (t1, t2)."""
    meant = policy("thing A", "A.where = 'r1' -> not A.x > 1 -> A.where = 'r2'")
    seen = saw("1", "where", "r1", 0), saw("1", "x", 3.0, left), saw("1", "where", "r2", back)
    assert short(found(meant, *seen)) == ([("A1", back)] if holds else [])


def test_order_is_not_lost_through_an_absence() -> None:
    meant = policy("thing A", "A.where = 'r1' -> not A.x > 1 -> A.where = 'r2'")
    assert found(meant, *went(("r2", 0), ("r1", 1))) == []
    assert found(meant, *went(("r1", 1), ("r2", 1))) == []


@pytest.mark.parametrize(
    ("left", "back", "holds"),
    [(9, 3, False), (9, 4, True), (9, W, True), (9, W + 1, False), (3, 4, False), (4, 5, True), (0, 5, True)],
)
def test_nothing_for_some_time_and_then(left: int, back: int, holds: bool) -> None:
    """``x → within 3 not y → z``: no y in (t1, t1 + 3], then z in (t1 + 3, t1 + W]."""
    meant = policy("thing A", "A.where = 'r1' ->3 not A.x > 1 -> A.where = 'r2'")
    seen = saw("1", "where", "r1", 0), saw("1", "x", 3.0, left), saw("1", "where", "r2", back)
    assert short(found(meant, *seen)) == ([("A1", back)] if holds else [])


def test_what_agrees_with_either_side_counts_between_them() -> None:
    meant = policy("thing A, thing B", "A.where = 'r1' -> not A.near = B.id -> B.where = 'r2'")
    instances: InstancesByConcept = {"thing": {"2": {}, "3": {}}}
    seen = saw("1", "where", "r1", 0), saw("2", "where", "r2", 2)
    assert short(found(meant, *seen, saw("1", "near", "3", 1), instances=instances)) == [("A1B2", 2)]
    assert found(meant, *seen, saw("1", "near", "2", 1), instances=instances) == []


def test_several_absences_between() -> None:
    meant = policy("thing A", "A.where = 'r1' ->2 not A.x > 1 -> not A.near = '2' -> A.where = 'r2'", window=9)
    seen = went(("r1", 0), ("r2", 6))
    assert short(found(meant, *seen)) == [("A1", 6)]
    assert short(found(meant, *seen, saw("1", "near", "2", 2), saw("1", "x", 3.0, 3))) == [("A1", 6)]
    assert found(meant, *seen, saw("1", "near", "2", 3)) == []
    assert found(meant, *seen, saw("1", "x", 3.0, 2)) == []


def test_absences_at_the_end_and_at_the_beginning_lie_one_behind_the_other() -> None:
    after = policy("thing A", "A.where = 'r1' ->2 not A.x > 1 ->3 not A.near = '2'")
    assert short(found(after, *went(("r1", 0)))) == [("A1", 5)]
    assert short(found(after, *went(("r1", 0)), saw("1", "near", "2", 2), saw("1", "x", 3.0, 3))) == [("A1", 5)]
    assert found(after, *went(("r1", 0)), saw("1", "near", "2", 5)) == []
    before = policy("thing A", "not A.x > 1 ->2 not A.near = '2' ->3 A.where = 'r1'")
    assert short(found(before, *went(("r1", 9)), saw("1", "near", "2", 5), saw("1", "x", 3.0, 6))) == [("A1", 9)]
    assert found(before, *went(("r1", 9)), saw("1", "near", "2", 6)) == []
    assert found(before, *went(("r1", 9)), saw("1", "x", 3.0, 4)) == []


# ── matches ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("apart", "expected"), [(W, 1), (W + 1, 0)])
def test_a_match_spans_at_most_a_window(apart: int, expected: int) -> None:
    meant = policy("thing A", "A.x > 1", "A.where = 'r1'")
    assert len(found(meant, saw("1", "x", 3.0, 0), saw("1", "where", "r1", apart))) == expected


@pytest.mark.parametrize(("time", "refuted"), [(4, False), (5, True), (10, True), (15, True), (16, False)])
def test_absence_is_looked_for_a_window_before_and_after(time: int, refuted: bool) -> None:
    meant = policy("thing A", "A.x > 1", "not A.where = 'r1'")
    seen = saw("1", "x", 3.0, 10), saw("1", "where", "r1", time)
    assert short(found(meant, *seen)) == ([] if refuted else [("A1", 15)])
    assert found(meant, seen[0], until=15) == []
    assert short(found(meant, seen[0], until=16)) == [("A1", 15)]


def test_two_absences_in_one_clause_need_one_counterexample_for_both() -> None:
    meant = policy("thing A, thing B, place R", "A.x > 1", "not A.near = B.id or not B.where = R.id")
    instances: InstancesByConcept = {"thing": {"2": {}, "3": {}}, "place": {"r1": {}}}
    activation = saw("1", "x", 3.0, 0)
    near, there, elsewhere = saw("1", "near", "2", 1), saw("2", "where", "r1", 2), saw("3", "where", "r1", 2)
    assert found(meant, activation, near, there, instances=instances) == []
    assert short(found(meant, activation, near, elsewhere, instances=instances)) == [("A1", 5)]
    assert short(found(meant, activation, near, instances=instances)) == [("A1", 5)]


def test_a_clause_that_is_met_is_not_reported_again_as_held() -> None:
    meant = policy("thing A", "A.x > 1", "A.where = 'r1' or not A.near = '2'")
    activation, met = saw("1", "x", 3.0, 0), saw("1", "where", "r1", 5)
    [only] = found(meant, activation, met)
    assert (only.time, len(only.causes)) == (5, 2)
    [held] = found(meant, activation, saw("1", "where", "r1", 6))
    assert (held.time, len(held.causes)) == (5, 1)
    # Beside an activation that it does not fit it is as if it were not there.
    assert short(found(meant, activation, saw("2", "where", "r1", 1))) == [("A1", 5)]


def test_a_mixed_clause_waits_until_none_of_its_positive_literals_can_be_met() -> None:
    meant = policy("thing A", "A.x > 1", "A.where = 'r1' or not A.near = '2' ->2 not A.near = '3'")
    activation = saw("1", "x", 3.0, 0)
    assert short(found(meant, activation)) == [("A1", 5)]
    assert short(found(meant, activation, until=5)) == []
    [only] = found(meant, activation, saw("1", "where", "r1", 4))
    assert (only.time, len(only.causes)) == (4, 2)


def test_what_is_found_twice_is_one_detection_at_the_earlier_time() -> None:
    meant = policy("thing A, thing B", "A.x > 1 or A.x > 2", "not A.near = B.id or A.x > 2")
    [only] = found(meant, saw("1", "x", 3.0, 0))
    assert (only.time, only.activation) == (0, 0)


def test_two_aliases_may_be_one_identity() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "B.where = 'r1'")
    assert short(found(meant, saw("1", "x", 3.0, 0), saw("1", "where", "r1", 1))) == [("A1B1", 1)]


def test_a_match_says_how_each_condition_was_met() -> None:
    meant = policy("thing A", "A.x > 1", "not A.where = 'r1'")
    [match] = matches(OccurrenceSet(meant, ONTOLOGY, [saw("1", "x", 3.0, 0)], NOBODY, {}))
    first, second = match.way
    assert isinstance(first, MetLiteral)
    assert first.literal == meant.clauses[0][0]
    assert first.occurrence.causes == {Cause("s", "1-x-0")}
    assert isinstance(second, HeldAbsence)


# ── identities ────────────────────────────────────────────────────────────────────────────────────────


def test_who_is_who_needs_no_table() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "B.where = 'r1'", "A.id = B.id")
    seen = saw("1", "x", 3.0, 0), saw("1", "where", "r1", 1), saw("2", "where", "r1", 2)
    assert short(found(meant, *seen)) == [("A1B1", 1)]
    assert short(found(meant, *seen, instances={"thing": {"2": {}}})) == [("A1B1", 1)]


def test_who_is_not_who_needs_no_table() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "B.where = 'r1'", "not A.id = B.id")
    seen = saw("1", "x", 3.0, 0), saw("1", "where", "r1", 1), saw("2", "where", "r1", 2)
    assert short(found(meant, *seen)) == [("A1B2", 7)]


def test_who_nobody_speaks_of_is_looked_for_in_tables_only() -> None:
    meant = policy("thing A, thing B", "A.x > 1", "A.id = B.id")
    seen = saw("1", "x", 3.0, 0), saw("2", "x", 0.0, 1)
    assert found(meant, *seen) == []
    assert short(found(meant, *seen, instances={"thing": {"1": {}, "2": {}}})) == [("A1B1", 0)]


def test_properties_are_still_asked_of_whoever_is_named() -> None:
    meant = policy("thing A, thing B (status = 'guest')", "A.x > 1", "A.id = B.id or B.x > 9")
    assert found(meant, saw("1", "x", 3.0, 0)) == []
    assert short(found(meant, saw("1", "x", 3.0, 0), instances={"thing": {"1": {"status": "guest"}}})) == [("A1B1", 0)]


# ── values that are kept ──────────────────────────────────────────────────────────────────────────────


def kept(*seen: Observation, age: int, **options: Any) -> list[tuple[list[str], int]]:
    meant = policy("thing A", "A.where = 'r1'", **options)
    return [([cause.id for cause in each.causes], each.time) for each in found(meant, *seen, keep={"where": age})]


def test_a_kept_value_is_repeated_after_each_window_up_to_its_age() -> None:
    seen = saw("1", "where", "r1", 10, id="e")
    assert kept(seen, age=4) == [(["e"], 10)]
    assert kept(seen, age=5) == [(["e"], 10), (["e+1"], 15)]
    assert kept(seen, age=14) == [(["e"], 10), (["e+1"], 15), (["e+2"], 20)]


@pytest.mark.parametrize(("time", "repeated"), [(14, False), (15, False), (16, True)])
def test_a_kept_value_stands_until_it_is_replaced(time: int, repeated: bool) -> None:
    seen = saw("1", "where", "r1", 10, id="e"), saw("1", "where", "r2", time, id="f")
    assert kept(*seen, age=9) == [(["e"], 10), *([(["e+1"], 15)] if repeated else [])]


def test_another_source_or_identity_replaces_nothing() -> None:
    others = saw("1", "where", "r2", 12, push="other"), saw("2", "where", "r2", 12), saw("1", "x", 1.0, 12)
    assert kept(saw("1", "where", "r1", 10, id="e"), *others, age=9) == [(["e"], 10), (["e+1"], 15)]


def test_a_kept_value_takes_part_as_if_it_were_repeated() -> None:
    meant = policy("thing A", "A.x > 1", "A.where = 'r1'")
    seen = saw("1", "where", "r1", 0, id="e"), saw("1", "x", 3.0, 23)
    assert found(meant, *seen) == []
    [first, second] = found(meant, *seen, keep={"where": 100})
    assert [(first.time, first.causes[-1].id), (second.time, second.causes[-1].id)] == [(23, "e+4"), (25, "e+5")]
