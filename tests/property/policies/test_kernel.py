"""Generated policies and traces: the kernel finds what the reference says, however the trace is cut and spread."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import astuple

import pytest

from situ.policies.kernel import absence as refuting
from situ.policies.kernel import pair_join as pairing
from situ.policies.kernel import relations as paired
from situ.policies.kernel import state as causes
from situ.policies.kernel import state as identities
from situ.policies.kernel.detections import DetectionBatch, detections_of
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.model import Detection, Observation, sort_detections
from situ.policies.plan import partition_rows, plan_policy
from situ.policies.reference import detect, with_kept
from tests.situations import Case, batches, generate, leaf_rows
from tests.volume import seeds


def expected(case: Case) -> list[tuple[Detection, int]]:
    found = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
    return [(each, each.activation) for each in found]


def assert_equal(case: Case, dice: random.Random, partitions: int = 1) -> None:
    """After each batch everything is reported that is reported before the watermark, and nothing else ever is.

    Traces are cut into batches anywhere; states are stored and read again now and then.
    """
    want = expected(case)
    for watermark, found in detected(case, dice, partitions):
        due = [(each, activation) for each, activation in want if each.time < watermark]
        assert found == due, (case.seed, partitions, case.text)


def detected(case: Case, dice: random.Random, partitions: int) -> Iterator[tuple[int, list[tuple[Detection, int]]]]:
    """What the kernel has detected after each batch, and its watermark."""
    plan = plan_policy(case.policy, case.ontology)
    kernels = [Kernel(plan, partition=number, partitions=partitions) for number in range(partitions)]
    states = [kernel.start() for kernel in kernels]
    found: list[Detection] = []
    for observations, watermark in arriving(case, dice):
        rows = {each.leaf: leaf_rows(each.leaf, observations, case.instances, case.ontology) for each in plan.leaves}
        spread = {leaf: partition_rows(plan, leaf, batch, partitions) for leaf, batch in rows.items()}
        for place, kernel in enumerate(kernels):
            given = {leaf: parts[place] for leaf, parts in spread.items()}
            states[place], result = kernel.step(states[place], given, watermark, case.instances)
            assert result.late == 0
            reported = detections_of(case.policy.name, result)
            assert [each.id for each in reported] == result.batch.column("id").to_pylist()
            as_columns = detections_of(case.policy.name, DetectionBatch(result.batch))
            assert list(map(astuple, reported)) == list(map(astuple, as_columns))
            found += reported
            if dice.random() < 0.2:
                states[place] = stored(kernel, states[place])
        yield watermark, [(each, each.activation) for each in sort_detections(found)]


def arriving(case: Case, dice: random.Random) -> list[tuple[list[Observation], int]]:
    """Batches with their watermarks. What is repeated of kept values comes just before it is decided."""
    given = set(map(id, case.observations))
    repeated = [each for each in with_kept(case.observations, case.keep, case.policy.window) if id(each) not in given]
    found, before = [], min((each.time for each in case.observations), default=0) - 1_000_000_000
    for batch in batches(case, dice):
        again = [each for each in repeated if before <= each.time < batch.watermark]
        before = max(before, batch.watermark)
        found.append(([*batch.observations, *again], batch.watermark))
    return found


def stored(kernel: Kernel, state: KernelState) -> KernelState:
    read = kernel.load(kernel.save(state))
    assert read is not None
    return read


THOUSANDS = [range(start, start + 1000) for start in range(10_000, 20_000, 1000)]


@seeds(range(50), *THOUSANDS)
def test_equals_the_reference(seeds: range) -> None:
    for seed in seeds:
        assert_equal(generate(seed), random.Random(seed))


@seeds(range(4000, 4015), range(4000, 4040))
def test_a_state_is_stored_bit_by_bit_while_steps_are_taken_from_it(seeds: range) -> None:
    for seed in seeds:
        case, dice = generate(seed), random.Random(seed)
        plan = plan_policy(case.policy, case.ontology)
        kernel = Kernel(plan)
        state, saving, meant = kernel.start(), None, kernel.start()
        for observations, watermark in arriving(case, dice):
            rows = {
                each.leaf: leaf_rows(each.leaf, observations, case.instances, case.ontology) for each in plan.leaves
            }
            if saving is None:
                saving, meant, at_once = kernel.saving(state), state, remembered(kernel, kernel.save(state))
            state, _ = kernel.step(state, rows, watermark, case.instances)
            found = None
            try:
                next(saving)
            except StopIteration as done:
                found, saving = done.value, None
            if found is not None:
                assert remembered(kernel, found) == at_once == remembered(kernel, kernel.save(meant)), seed


def remembered(kernel: Kernel, stored: bytes) -> bytes:
    """Without texts that were added meanwhile: whatever is read and stored again is stored without unused ones."""
    read = kernel.load(stored)
    assert read is not None
    return kernel.save(read)


@seeds(range(1000, 1010), *THOUSANDS)
def test_partitions_change_nothing(seeds: range) -> None:
    for seed in seeds:
        assert_equal(generate(seed), random.Random(seed), 4)


@seeds(range(2000, 2020), range(2000, 2060))
def test_looking_at_few_events_and_few_candidates_at_a_time_changes_nothing(
    monkeypatch: pytest.MonkeyPatch, seeds: range
) -> None:
    monkeypatch.setattr(paired, "SLICE", 3)
    monkeypatch.setattr(pairing, "CANDIDATES", 4)
    monkeypatch.setattr(refuting, "FEW", 0)
    monkeypatch.setattr(identities, "FEW", 0)
    monkeypatch.setattr(identities, "MANY", 0)
    for seed in seeds:
        assert_equal(generate(seed), random.Random(seed))


@seeds(range(3000, 3020), range(3000, 3060))
def test_looking_texts_and_causes_up_at_once_changes_nothing(monkeypatch: pytest.MonkeyPatch, seeds: range) -> None:
    monkeypatch.setattr(identities, "FEW", 0)
    monkeypatch.setattr(causes, "FEW_REFERENCES", 0)
    for seed in seeds:
        assert_equal(generate(seed), random.Random(seed))


def told_ahead(case: Case, dice: random.Random) -> int:
    """How many detections are found ahead; asserts that all are found that can be, each once, and no others."""
    want = expected(case)
    plan = plan_policy(case.policy, case.ontology)
    kernel = Kernel(plan)
    state, found, ahead, left = kernel.start(), list[Detection](), 0, list(case.observations)
    for batch in batches(case, dice):
        del left[: len(batch.observations)]
        rows = {
            each.leaf: leaf_rows(each.leaf, batch.observations, case.instances, case.ontology) for each in plan.leaves
        }
        state, decided = kernel.step(state, rows, batch.watermark, case.instances)
        state, more = kernel.ahead(state, case.instances)
        found += [*detections_of(case.policy.name, decided), *detections_of(case.policy.name, more)]
        # Of some events, of which more than one attribute counts, only a part has come.
        now, lacking = state.watermark, {each.cause for each in left}
        sure = [each for each, _ in want if each.time < now]
        then = [each for each, _ in want if each.time == now and plan.grows]
        assert sort_detections(found)[: len(sure)] == sure, (case.seed, case.text)
        told = sort_detections(found)[len(sure) :]
        assert [each for each in told if lacking.isdisjoint(each.causes)] == [
            each for each in then if lacking.isdisjoint(each.causes)
        ], (case.seed, case.text)
        assert all(each in then for each in told), (case.seed, case.text)
        ahead += len(more)
        if dice.random() < 0.2:
            state = stored(kernel, state)
    return ahead


@seeds(range(5000, 5200), range(5000, 7000))
def test_what_the_events_of_an_instant_complete_is_found_ahead_and_once(seeds: range) -> None:
    cases = [case for seed in seeds if not (case := generate(seed)).keep]
    growing = [case for case in cases if plan_policy(case.policy, case.ontology).grows]
    found = [told_ahead(case, random.Random(case.seed)) for case in growing]
    assert sum(map(bool, found)) > len(seeds) / 100
    assert sum(told_ahead(case, random.Random(case.seed)) for case in cases[:50] if case not in growing) == 0
