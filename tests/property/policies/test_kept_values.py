"""Values that are kept: repeating them step by step gives what the reference gives for all events at once."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest

from situ.policies.kernel import kept_values as keeping_module
from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.kept_values import KeptRows, KeptValues, KeptValuesKernel, KeptValuesState, plan_kept_values
from situ.policies.kernel.state import KernelState
from situ.policies.model import Detection, sort_detections
from situ.policies.plan import Leaf, plan_policy
from situ.policies.reference import detect
from situ.sources.model import Push
from tests.situations import ONTOLOGY, Case, batches, generate, leaf_rows, policy, saw
from tests.volume import seeds


def pushes(case: Case) -> dict[str, Push]:
    found = {}
    for name, age in case.keep.items():
        attribute = name.removeprefix("robot-")
        concept = "robot" if name != attribute else "place" if attribute == "temp" else "thing"
        found[name] = push(name, concept, attribute, age)
    return found


def push(name: str, concept: str, attribute: str, age: int) -> Push:
    return Push(
        name=name,
        event="Event",
        concept=concept,
        id=("id",),
        attribute=attribute,
        value=("value",),
        keep=timedelta(microseconds=age),
    )


def detected(case: Case, dice: random.Random) -> list[Detection]:
    plan, keeping = plan_kept_values(plan_policy(case.policy, case.ontology), pushes(case))
    kernel = KeptValuesKernel(plan, keeping)
    state: KernelState = kernel.start()
    found: list[Detection] = []
    for batch in batches(case, dice):
        rows = {
            each.leaf: leaf_rows(each.leaf, batch.observations, case.instances, case.ontology) for each in plan.leaves
        }
        if not batch.observations and (state.due is None or batch.watermark <= state.due):
            quiet, result = kernel.step(state, {}, batch.watermark, case.instances)
            assert result.batch.num_rows == 0  # nothing is due
            state = quiet
            continue
        state, result = kernel.step(state, rows, batch.watermark, case.instances)
        assert result.late == 0
        assert not len(kernel.ahead(state, case.instances)[1])  # another value may come at the same instant
        found += detections_of(case.policy.name, result)
        if dice.random() < 0.3:
            read = kernel.load(kernel.save(state))
            assert read is not None
            assert read.due == state.due
            state = read
    assert isinstance(state, KeptValuesState)
    end = state.watermark
    assert keeping.step(state.kept, {}, end, end)[0] == KeptRows({}, None)  # nothing is kept for ever
    return sort_detections(found)


def with_kept_values(seeds: range) -> list[Case]:
    return [case for case in map(generate, seeds) if case.keep]


def held_equal(cases: list[Case]) -> int:
    """How many of them had repetitions among their causes."""
    repeated = 0
    for case in cases:
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        assert detected(case, random.Random(case.seed)) == expected, (case.seed, case.text)
        repeated += any("+" in cause.id for each in expected for cause in each.causes)
    return repeated


@seeds(range(2_000, 2_025), range(20_000, 25_000))
def test_equals_the_reference(seeds: range) -> None:
    assert held_equal(with_kept_values(seeds)) > len(seeds) / 50


@seeds(range(2_000, 2_025), range(2_000, 2_120))
def test_repeating_a_few_at_a_time_changes_nothing(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    monkeypatch.setattr(keeping_module, "MOST", 3)
    assert held_equal(with_kept_values(seeds)) > len(seeds) / 50


def test_a_long_silence_takes_no_more_memory_than_a_short_one() -> None:
    of = policy("thing A, thing B", "A.x > 1", "B.near = 'x'", window=1)
    plan, kept = plan_kept_values(plan_policy(of, ONTOLOGY), {"x": push("x", "thing", "x", 2_000_000)})
    kernel = KeptValuesKernel(plan, kept)
    said = [saw("1", "x", 2.0, 0), saw("2", "near", "x", 1_000_000)]
    rows = {each.leaf: leaf_rows(each.leaf, said, {}) for each in plan.leaves}
    most = 0

    class Watched(KeptValues):
        def step(self, *given: Any) -> Any:
            nonlocal most
            after, made = super().step(*given)
            most = max(most, sum(map(len, made.values())))
            return after, made

    kernel._keeping = Watched(kept.leaves, {"x": push("x", "thing", "x", 2_000_000)}, 1)
    _, found = kernel.step(kernel.start(), rows, 3_000_000, {})
    assert [each.time for each in detections_of("p", found)] == [1_000_000, 1_000_000, 1_000_001]
    assert most < 300_000


def test_nothing_is_done_for_sources_that_keep_nothing() -> None:
    leaf = Leaf(concept="thing", attribute="x")
    assert not KeptValues([leaf], {"x": push("x", "thing", "x", 0)}, 5)
    assert not KeptValues([leaf], {"x": push("x", "thing", "x", 4)}, 5)
    assert KeptValues([leaf], {"x": push("x", "thing", "x", 5)}, 5)


def test_repetitions_come_with_the_watermark_that_passes_them() -> None:
    leaf = Leaf(concept="thing", attribute="x")
    keeping = KeptValues([leaf], {"x": push("x", "thing", "x", 12)}, 5)
    rows = {leaf: leaf_rows(leaf, [saw("1", "x", 1.0, 10, id="e")], {})}
    times: dict[int, list[tuple[int, str]]] = {}
    kept, before = KeptRows(), 0
    for watermark in (8, 15, 16, 20, 21, 30):
        kept, given = keeping.step(kept, rows if watermark == 8 else {}, before, watermark)
        times[watermark] = [(row["time"], row["id"]) for row in given[leaf].to_pylist()] if leaf in given else []
        before = watermark
    assert times == {8: [(10, "e")], 15: [], 16: [(15, "e+1")], 20: [], 21: [(20, "e+2")], 30: []}
    assert kept == KeptRows({}, None)
