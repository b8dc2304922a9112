"""The joins of the kernel: partners are those that looking at every pair finds, whatever the numbers are like."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from situ.policies.kernel.detections import detections_of
from situ.policies.kernel.kernel import Kernel
from situ.policies.kernel.table import distinct, each_once, range_join
from situ.policies.plan import plan_policy
from situ.policies.reference import detect
from tests.situations import ONTOLOGY, leaf_rows, policy, saw


def every_pair(
    keys: list[np.ndarray], first: np.ndarray, last: np.ndarray, others: list[np.ndarray], times: np.ndarray
) -> set[tuple[int, int]]:
    return {
        (row, other)
        for row in range(len(first))
        for other in range(len(times))
        if first[row] <= times[other] <= last[row]
        and all(mine[row] == theirs[other] for mine, theirs in zip(keys, others, strict=True))
    }


@pytest.mark.parametrize("span", [3, 1_000, 1 << 60], ids=["few instants", "many instants", "instants far apart"])
@pytest.mark.parametrize("most", [2, 1 << 38], ids=["few keys", "large keys"])
@pytest.mark.parametrize("columns", [0, 1, 2, 3])
def test_partners_are_those_of_every_pair(span: int, most: int, columns: int) -> None:
    dice = np.random.default_rng(span % 97 + most % 89 + columns)
    pool = [dice.integers(0, most, 4) for _ in range(columns)]
    for _ in range(20):
        left, right = int(dice.integers(0, 12)), int(dice.integers(0, 12))
        keys = [dice.choice(each, left) for each in pool]
        others = [dice.choice(each, right) for each in pool]
        times = np.sort(dice.integers(-span, span, right))
        first = dice.integers(-span, span, left)
        last = first + dice.integers(-2, span, left)
        found = range_join(keys, first, last, others, times)
        pairs = set(zip(*(each.tolist() for each in found.pairs()), strict=True))
        assert pairs == every_pair(keys, first, last, others, times)
        assert len(pairs) == found.total
        assert found.some().tolist() == sorted({row for row, _ in pairs})
        in_parts = [set(zip(*(each.tolist() for each in part.pairs()), strict=True)) for part in found.parts(3)]
        assert set().union(*in_parts) == pairs
        assert sum(map(len, in_parts)) == len(pairs)


def test_of_equal_rows_one_is_taken() -> None:
    columns = [np.array([5, 5, -1, 5, -1]), np.array([1 << 40, 2, 7, 2, 7])]
    rows = [(columns[0][row], columns[1][row]) for row in distinct(columns)]
    assert sorted(rows) == [(-1, 7), (5, 2), (5, 1 << 40)]
    assert each_once(np.array([3, 1, 3]), 5).tolist() == [1, 3]


@pytest.mark.parametrize("consumption", ["chronicle", "all"])
@pytest.mark.parametrize("origin", [0.0, -50_000.0, 1e7, 1e12], ids=str)
def test_squares_find_every_pair_of_points_in_reach(origin: float, consumption: str) -> None:
    """Points on the borders of squares, at negative coordinates, and so far out that squares are of no use."""
    of = policy("thing A, thing B", "A.x > 0", "distance(A.pos, B.pos) <= 2", consumption=consumption, window=1000)
    steps = (0.0, 1.0, 2.0, 2.5, 4.0, 4096 * 2.0)
    seen = [
        saw(str(number), "pos", {"x": origin + x, "y": origin + y}, number)
        for number, (x, y) in enumerate((x, y) for x in steps for y in steps)
    ]
    moving = [saw(str(number), "x", 1.0, number) for number in range(0, len(seen), 5)]
    observed, known = [*seen, *moving], dict[str, dict[str, dict[str, Any]]]()
    plan = plan_policy(of, ONTOLOGY)
    kernel = Kernel(plan)
    rows = {each.leaf: leaf_rows(each.leaf, observed, known) for each in plan.leaves}
    _, found = kernel.step(kernel.start(), rows, 10_000, known)
    expected = detect(of, ONTOLOGY, observed, known)
    assert expected
    assert detections_of("p", found) == expected


@pytest.mark.parametrize("origin", [0.0, -50_000.0, 2e8], ids=str)
@pytest.mark.parametrize("chosen", [(), ("7",), ("7", "28", "90")], ids=len)
def test_few_points_find_all_of_many_that_are_near(chosen: tuple[str, ...], origin: float) -> None:
    """Also where one of them is so far out that squares are of no use to it, or has no place at all."""
    of = policy("thing A (level > 1), thing B", "distance(A.pos, B.pos) <= 2", consumption="all", window=1000)
    where = [{"x": origin + x * 0.7, "y": origin + y * 0.7} for x in range(10) for y in range(9)]
    points: list[dict[str, float] | None] = [*where, {"x": 1e12, "y": 1e12}, None, {"x": 1e12 + 1, "y": 1e12}]
    observed = [saw(str(number), "pos", point, number) for number, point in enumerate(points)]
    known: dict[str, dict[str, dict[str, Any]]] = {"thing": {each: {"level": 2} for each in chosen}}
    plan = plan_policy(of, ONTOLOGY)
    kernel = Kernel(plan)
    rows = {each.leaf: leaf_rows(each.leaf, observed, known) for each in plan.leaves}
    _, found = kernel.step(kernel.start(), rows, 10_000, known)
    expected = detect(of, ONTOLOGY, observed, known)
    assert bool(expected) == bool(chosen)
    assert detections_of("p", found) == expected
