"""Generated policies and traces: the number of partitions may change after any batch, and nothing else does."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pyarrow as pa

from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.kept_values import KeptValuesKernel, plan_kept_values
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.state import KernelState
from situ.policies.model import Detection, Observation, sort_detections
from situ.policies.plan import Leaf, partition_rows, plan_policy
from situ.policies.reference import detect
from tests.property.policies.test_kept_values import pushes
from tests.situations import Case, batches, generate, leaf_rows
from tests.volume import seeds

COUNTS = (1, 1, 2, 3, 5)


class Spread:
    """The kernels of a policy in some partitions, with what each remembers."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.plan, self._keeping = plan_kept_values(plan_policy(case.policy, case.ontology), pushes(case))
        self.kernels = self._made(1)
        self.states: list[KernelState] = [kernel.start() for kernel in self.kernels]

    def _made(self, count: int) -> Sequence[Kernel]:
        places = range(count)
        if self._keeping:
            return [KeptValuesKernel(self.plan, self._keeping, partition=each, partitions=count) for each in places]
        return [Kernel(self.plan, partition=each, partitions=count) for each in places]

    def change(self, count: int, dice: random.Random) -> None:
        """Go on in so many partitions, by way of what is stored, now and then."""
        one = self._made(1)[0]
        whole = one.united(self.states)
        if dice.random() < 0.5:
            whole = stored(one, whole)
        self.kernels = self._made(count)
        self.states = [kernel.share(whole) for kernel in self.kernels]
        if dice.random() < 0.5:
            self.states = [stored(kernel, state) for kernel, state in zip(self.kernels, self.states, strict=True)]

    def step(self, portions: Sequence[Sequence[Observation]], watermark: int, dice: random.Random) -> list[Detection]:
        """Each partition gets its rows of these portions, in an order of its own, as those of several tasks come."""
        case, count = self.case, len(self.kernels)
        spread: list[dict[Leaf, list[pa.RecordBatch]]] = [{} for _ in self.kernels]
        for some in portions:
            for each in self.plan.leaves:
                rows = leaf_rows(each.leaf, some, case.instances, case.ontology)
                for place, part in enumerate(partition_rows(self.plan, each.leaf, rows, count)):
                    spread[place].setdefault(each.leaf, []).append(part)
        found: list[Detection] = []
        for place, kernel in enumerate(self.kernels):
            order = dice.sample(range(len(portions)), len(portions))
            given = {leaf: pa.concat_batches([parts[at] for at in order]) for leaf, parts in spread[place].items()}
            self.states[place], result = kernel.step(self.states[place], given, watermark, case.instances)
            assert result.late == 0
            found += detections_of(case.policy.name, result)
            if count == 1 and dice.random() < 0.5:  # as the edge does it
                self.states[place], ahead = kernel.ahead(self.states[place], case.instances)
                found += detections_of(case.policy.name, ahead)
        return found


def stored(kernel: Kernel, state: KernelState) -> KernelState:
    read = kernel.load(kernel.save(state))
    assert read is not None
    return read


def detected(case: Case, dice: random.Random) -> tuple[list[Detection], int]:
    """What is detected, and how many partitions there were at most."""
    spread, most, found = Spread(case), 1, list[Detection]()
    for batch in batches(case, dice):
        cut = dice.randrange(len(batch.observations) + 1)
        portions = (batch.observations[:cut], batch.observations[cut:])
        found += spread.step(portions, batch.watermark, dice)
        if dice.random() < 0.6:
            spread.change(dice.choice(COUNTS), dice)
            most = max(most, len(spread.kernels))
    return sort_detections(found), most


def hold_equal(seeds: range) -> None:
    several = 0
    for seed in seeds:
        case = generate(seed)
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        found, most = detected(case, random.Random(seed))
        assert [each.id for each in found] == [each.id for each in expected], (seed, case.text)
        assert found == expected, (seed, case.text)
        several += most > 1 and bool(expected)
    assert several > len(seeds) / 5


@seeds(range(6000, 6012), range(60_000, 70_000))
def test_what_is_remembered_goes_from_any_number_of_partitions_to_any_other(seeds: range) -> None:
    hold_equal(seeds)


@seeds(range(6000, 6006), range(6000, 6020))
def test_going_to_and_fro_leaves_no_more_behind_than_was_there(seeds: range) -> None:
    """Nothing grows with the number of changes: rows, texts and events that nobody asks for are left out."""
    for seed in seeds:
        case, dice = generate(seed), random.Random(seed)
        spread = Spread(case)
        every = batches(case, dice)
        for batch in every[: len(every) // 2]:
            spread.step([batch.observations], batch.watermark, dice)
        spread.change(1, dice)
        (before,) = spread.states
        for count in (4, 2, 5, 3, 1):
            spread.change(count, dice)
        (after,) = spread.states
        assert after.rows == before.rows
        assert [sum(map(len, each.chunks)) for each in after.causes] == [
            sum(map(len, each.chunks)) for each in before.causes
        ]
        assert set(after.identities.texts) == set(before.compacted().identities.texts)
        assert after.reported == before.reported
