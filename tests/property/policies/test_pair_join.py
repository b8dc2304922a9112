"""Pairs that an index finds are those that meeting each with each finds, and so are those on which a test fails."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.vectors import Batch, below, column
from situ.lang.expr.simplify import simplify
from situ.policies.enrichment.index_join import GridIndex, IndexJoin, locator_of
from tests.property.lang.test_masks import TESTS, make_place, place_scope

MORE = (
    "inside(left.p, right.b) AND left.r < right.r",
    "inside(right.p, left.b)",
    "left.r >= right.r AND left.r <= right.r + 1",
    "left.r > right.b.x1 AND left.r < right.b.x2 AND left.m > 1 m",
    "distance(left.p, right.p) < right.r AND left.name <> right.name",
    "100 m >= distance(right.gp, left.gp)",
    "within(left.gp, right.gp, 2000 [km])",
    "within(left.gp, right.gp, 20000 [km])",
    "left.r = right.r",
    "left.r / 2 = right.r - 1",
    "left.name = right.name AND 1 / left.r > right.r",
    "inside(left.p, right.g) AND 1 / right.r > left.r",
    "within(left.p, right.p, right.r / left.r)",
)


def batch(mask: Any, variable: str, rows: list[dict[str, Any]]) -> Batch:
    keys = {key: type for key, type in mask.reads.items() if key[0] == variable}
    columns = {key: column([below(row, key[1]) for row in rows], type) for key, type in keys.items()}
    return Batch(columns, len(rows))


@pytest.mark.parametrize("text", [*TESTS, *MORE])
def test_an_index_finds_what_meeting_each_with_each_finds(text: str) -> None:
    node = check(text, place_scope()).tree()
    for form in (node, simplify(node)):
        for rows, others in (("left", "right"), ("right", "left")):
            dice = random.Random(f"{text} {rows}")
            pairing = IndexJoin(form, rows, others)
            these, those = ([make_place(dice) for _ in range(count)] for count in (90, 120))
            left, right = batch(pairing.mask, rows, these), batch(pairing.mask, others, those)
            found = pairing.pairs(left, right, pairing.index(right))
            expected = pairing.pairs(left, right, None)
            assert np.array_equal(found.rows, expected.rows), (text, rows)
            assert np.array_equal(found.others, expected.others), (text, rows)
            assert found.failures == expected.failures, (text, rows)
            assert (found.failed is None) == (expected.failed is None)


INDEXED = [
    text
    for text in (*TESTS, *MORE)
    if text.startswith(("inside(left", "within", "left.name =")) and "left.r)" not in text
]


@pytest.mark.parametrize("text", INDEXED)
def test_what_is_plain_has_an_index(text: str) -> None:
    assert locator_of(simplify(check(text, place_scope()).tree()), "left", "right") is not None


def test_there_is_no_index_where_nothing_is_plain() -> None:
    for text in ("NOT inside(left.p, right.g)", "left.r > right.r", "inside(left.p, right.b) OR left.r > 1"):
        assert locator_of(check(text, place_scope()).tree(), "left", "right") is None


def test_a_grid_has_each_interval_in_every_cell_it_touches() -> None:
    dice = np.random.default_rng(3)
    for size in (1, 30, 400):
        low = dice.uniform(-5, 5, (2, size))
        high = low + dice.choice((0.0, 0.1, 3.0, -1.0, np.inf), (2, size))
        low[0, dice.random(size) < 0.1] = -np.inf
        low[1, dice.random(size) < 0.1] = np.nan
        grid = GridIndex(list(low), list(high))
        points = dice.choice((*dice.uniform(-7, 7, 40), 1e300, -1e300), (2, 200))
        pairs = {
            (int(point), int(other))
            for points_, others in grid.partners(grid.cells(list(points), None), 50)
            for point, other in zip(points_, others, strict=True)
        }
        inside = (low[:, None, :] <= points[:, :, None]) & (points[:, :, None] <= high[:, None, :])
        expected = {(int(point), int(other)) for point, other in np.argwhere(inside.all(axis=0))}
        assert expected <= pairs
        assert set(np.flatnonzero(np.isnan(low[1])).tolist()) == set(grid.missing.tolist())
