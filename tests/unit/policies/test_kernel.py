"""The kernel and its plan: what is forgotten when, where policies can be spread, what is refused."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from situ.policies.kernel import state as kernel_state
from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.language.syntax import ConsumptionMode
from situ.policies.model import InstancesByConcept, Observation, Policy
from situ.policies.plan import OperatorMode, plan_policy
from tests.situations import ONTOLOGY, leaf_rows, policy, saw

PLACES: InstancesByConcept = {"place": {"r1": {"floor": "f1"}, "r2": {"floor": "f1"}}, "thing": {}}
PEOPLE: InstancesByConcept = {
    **PLACES,
    "thing": {str(each): {"status": "guest" if each < 100 else "staff"} for each in range(200)},
}
ALONE = policy(
    "thing A (status = 'guest'), thing B (status = 'staff'), place R",
    "A.where = R.id",
    "not distance(A.pos, B.pos) <= 5 or not B.where = R.id",
)


class Running:
    """A kernel with its state."""

    def __init__(self, of: Policy, instances: InstancesByConcept = PEOPLE) -> None:
        self.kernel = Kernel(plan_policy(of, ONTOLOGY))
        self.state: KernelState = self.kernel.start()
        self.instances = instances
        self.late = 0

    def step(self, observations: Iterable[Observation], watermark: int) -> list[tuple[int, dict[str, str]]]:
        given = list(observations)
        rows = {each.leaf: leaf_rows(each.leaf, given, self.instances) for each in self.kernel.plan.leaves}
        self.state, found = self.kernel.step(self.state, rows, watermark, self.instances)
        self.late += found.late
        return [(each.time, dict(each.bindings)) for each in detections_of("p", found)]


def near(identity: str, time: int, x: float) -> Observation:
    return saw(identity, "pos", {"x": x, "y": 0.0}, time)


def test_a_guest_alone_is_reported_when_nobody_can_come_any_more() -> None:
    """The thesis's Table 5.3, step by step, with a window of 5."""
    running = Running(ALONE)
    assert running.step([saw("101", "where", "r1", -4), near("1", 0, 0), saw("1", "where", "r1", 0)], 1) == []
    assert running.step([saw("101", "where", "r1", 1), saw("5", "where", "r2", 2), near("5", 2, 50)], 3) == []
    assert running.step([near("105", 3, 1), near("101", 4, 1)], 5) == []
    assert running.step([near("142", 5, 51), saw("143", "where", "r2", 6)], 7) == []
    assert running.step([], 8) == [(7, {"A": "5", "R": "r2"})]
    assert running.step([], 100) == []


def test_joins_by_shared_aliases() -> None:
    """The thesis's Table 5.4."""
    of = policy("thing A, thing B, thing C, thing D", "A.near = B.id", "B.near = C.id", "C.near = D.id", window=9)
    known: InstancesByConcept = {"thing": {str(each): {} for each in range(20)}}

    def sees(*pairs: tuple[int, int]) -> list[Observation]:
        return [saw(str(one), "near", str(other), time) for time, (one, other) in enumerate(pairs)]

    found = Running(of, known).step(sees((2, 7), (3, 5), (5, 13), (15, 8), (13, 7)), 100)
    assert [bindings for _, bindings in found if len(set(bindings.values())) == 4] == [
        {"A": "3", "B": "5", "C": "13", "D": "7"}
    ]
    assert Running(of, known).step(sees((2, 7), (7, 15), (10, 8)), 100) == []


def test_what_is_late_is_counted_and_left_out() -> None:
    running = Running(policy("thing A", "A.x > 1"))
    assert running.step([saw("1", "x", 2.0, 10)], 20) == [(10, {"A": "1"})]
    assert running.step([saw("1", "x", 2.0, 19), saw("1", "x", 2.0, 20)], 30) == [(20, {"A": "1"})]
    assert running.late == 1


def test_the_same_step_can_be_taken_again() -> None:
    running = Running(ALONE)
    running.step([near("1", 0, 0), saw("1", "where", "r1", 0)], 1)
    before = running.state
    first = running.step([saw("2", "where", "r1", 2)], 20)
    running.state = before
    assert running.step([saw("2", "where", "r1", 2)], 20) == first
    assert [bindings for _, bindings in first] == [{"A": "1", "R": "r1"}, {"A": "2", "R": "r1"}]


def test_a_step_without_rows_or_anything_due_does_nothing() -> None:
    running = Running(ALONE)
    running.step([near("1", 0, 0), saw("1", "where", "r1", 0)], 1)
    before = running.state
    running.step([], 5)
    assert running.state.buffers is before.buffers
    assert running.step([], 6) == [(5, {"A": "1", "R": "r1"})]


@pytest.mark.parametrize("consumption", ["chronicle", "recent", "all"])
def test_what_is_remembered_does_not_grow(consumption: str) -> None:
    """An endless trace with identities that come and go: after a while the state is as large as before."""
    of = policy(
        "thing A (status = 'guest'), thing B, place R",
        "A.where = R.id",
        "distance(A.pos, B.pos) <= 1 or A.where = R.id -> not B.x > 3",
        "not B.x > 3 or not A.where = B.where",
        consumption=consumption,
    )
    running = Running(of)
    rows, texts, causes = [], [], []
    for start in range(0, 1200, 10):
        batch = []
        for time in range(start, start + 10):
            who = str((7 * time) % 100)
            new = f"visitor {time}"
            batch += [saw(who, "where", "r1", time), near(who, time, time % 3), near(new, time, time % 2)]
            batch += [saw(new, "x", float(time % 5), time), saw(new, "where", "r1", time)]
        running.step(batch, start + 8)
        rows.append(running.state.rows)
        texts.append(len(running.state.identities))
        causes.append(sum(len(chunk) for each in running.state.causes for chunk in each.chunks))
    assert max(rows[60:]) <= max(rows[:60])
    assert max(causes[60:]) <= max(causes[:60])
    assert max(texts) <= 2 * 400 + 1024
    assert len(running.state.reported) < 500


def test_causes_stay_those_of_their_rows_when_some_that_came_between_are_forgotten() -> None:
    """A clock that is fast keeps what came with it; what came later and is of earlier is forgotten before."""
    running = Running(policy("thing A", "A.x > 0"))
    running.step([saw(str(each), "x", 1.0, 1000 if each == 3 else 0) for each in range(4)], 1)
    running.step([saw("4", "x", 1.0, 5)], 100)
    given = [saw(str(each), "x", 1.0, 200) for each in range(8)]
    rows = {each.leaf: leaf_rows(each.leaf, given, PEOPLE) for each in running.kernel.plan.leaves}
    _, found = running.kernel.step(running.state, rows, 300, PEOPLE)
    caused = {dict(each.bindings)["A"]: each.causes for each in detections_of("p", found)}
    assert caused == {each.identity: (each.cause,) for each in given}


def test_states_of_another_plan_are_not_read() -> None:
    running = Running(ALONE)
    running.step([near("1", 0, 0), saw("1", "where", "r1", 0)], 1)
    stored = running.kernel.save(running.state)
    other = Kernel(plan_policy(policy("thing A", "A.x > 1"), ONTOLOGY))
    assert other.load(stored) is None
    read = running.kernel.load(stored)
    assert read is not None
    assert running.kernel.save(read) == stored


def test_states_of_another_version_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    running = Running(ALONE)
    with monkeypatch.context() as before:
        before.setattr(kernel_state, "VERSION", b"0")
        stored = running.kernel.save(running.state)
    assert running.kernel.load(stored) is None


# ── the plan ──


def test_policies_spread_by_an_alias_that_every_match_binds() -> None:
    plan = plan_policy(ALONE, ONTOLOGY)
    assert plan.partition == "A"
    assert plan.warning is None
    assert sorted(each.column for each in plan.leaves) == ["", "", "identity", "identity"]


def test_rows_that_a_sequence_wants_absent_with_any_identity_go_everywhere() -> None:
    of = policy("thing A, thing B, place R", "B.where = R.id", "not A.x > 4 or A.x > 1 -> not A.where = B.near")
    plan = plan_policy(of, ONTOLOGY)
    assert plan.partition in ("B", "R")
    assert all(not each.column for each in plan.leaves if each.leaf.attribute == "near")


def test_consumption_keeps_pairs_in_one_place() -> None:
    plan = plan_policy(policy("thing A, thing B", "A.x < B.x"), ONTOLOGY)
    assert plan.partition == ""
    assert plan.warning is not None
    assert plan.warning.code.code == "S240"
    assert "A.x < B.x" in plan.warning.message
    assert "consumption all" in plan.warning.hint
    spread = plan_policy(policy("thing A, thing B", "A.x < B.x", consumption="all"), ONTOLOGY)
    assert spread.partition == "A"


def test_that_every_partition_needs_all_events_is_said() -> None:
    plan = plan_policy(policy("thing A, thing B", "A.x < B.x", consumption="all"), ONTOLOGY)
    assert plan.warning is not None
    assert plan.warning.code.code == "S241", "events with an x count for A and for B"
    apart = plan_policy(policy("thing A, place R", "A.x < R.limit", consumption="all"), ONTOLOGY)
    assert apart.warning is None


def test_policies_without_an_alias_that_every_match_binds_stay_in_one_place() -> None:
    plan = plan_policy(policy("thing A, thing B", "A.x > 1 or B.x > 1"), ONTOLOGY)
    assert plan.partition == ""
    assert plan.warning is not None
    assert "no alias is bound by every match" in plan.warning.message


def test_the_plan_says_what_runs_how() -> None:
    of = policy("thing A, thing B, place R", "A.where = R.id", "A.x < B.x -> not B.x > 2", "not A.x > 3 or B.x > 1")
    operators = [(each.kind, each.runs, each.window) for each in plan_policy(of, ONTOLOGY).operators]
    assert operators == [
        ("query", OperatorMode.ENRICHED, 0),
        ("correlation", OperatorMode.IN_ORDER, 5),
        ("query", OperatorMode.ENRICHED, 0),
        ("query", OperatorMode.ENRICHED, 0),
        ("query", OperatorMode.ENRICHED, 0),
        ("followed-by", OperatorMode.COLUMNS, 5),
        ("or", OperatorMode.COLUMNS, 5),
        ("and", OperatorMode.COLUMNS, 5),
    ]


@pytest.mark.parametrize(
    ("conditions", "consumption", "grows"),
    [
        (("A.where = R.id",), "chronicle", True),
        (("A.where = R.id -> A.x > 1",), "chronicle", True),
        (("A.where = B.where",), "all", True),
        (("A.where = B.where",), "chronicle", False),
        (("A.where = B.where",), "recent", False),
        (("A.where = R.id", "not A.x > 1"), "all", False),
        (("A.where = R.id -> not A.x > 1",), "all", False),
        (("not A.where = R.id -> A.x > 1",), "all", False),
    ],
)
def test_more_events_only_bring_more_where_nothing_is_absent_and_nothing_spent(
    conditions: tuple[str, ...], consumption: str, grows: bool
) -> None:
    of = policy("thing A, thing B, place R", *conditions, consumption=ConsumptionMode(consumption))
    assert plan_policy(of, ONTOLOGY).grows is grows


def test_an_event_of_the_instant_of_the_watermark_is_told_ahead_of_others_of_that_instant() -> None:
    running = Running(policy("thing A, place R", "A.where = R.id"))

    def ahead() -> list[dict[str, str]]:
        running.state, found = running.kernel.ahead(running.state, PEOPLE)
        return [dict(each.bindings) for each in detections_of("p", found)]

    assert running.step([saw("1", "where", "r1", 5)], 5) == []
    assert ahead() == [{"A": "1", "R": "r1"}]
    assert ahead() == []
    assert running.step([saw("2", "where", "r1", 5)], 5) == []
    assert ahead() == [{"A": "2", "R": "r1"}]
    assert running.step([], 6) == []
    assert running.late == 0
