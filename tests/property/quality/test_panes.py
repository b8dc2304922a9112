"""Panes measured apart add up to the one measured together, in any order, and have a form that says all of it."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from situ.quality.measurement.panes import (
    GROWTH,
    LENGTH,
    Pane,
    SequenceRange,
    Sketch,
    bucket_of,
    merge_panes,
    middle_of,
    pane_of,
)

sketches = st.lists(st.integers(-5, 10**10), max_size=5).map(Sketch.of)
numbers = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(1, 50)).map(
    lambda each: SequenceRange(min(each[:2]), max(each[:2]), each[2])
)
counts = st.integers(0, 1_000)
panes = st.builds(
    Pane,
    publisher=st.sampled_from(("p", "q")),
    type=st.sampled_from(("a", "b")),
    start=st.sampled_from((0, LENGTH)),
    events=counts,
    last=st.none() | st.integers(0, LENGTH),
    confidence=counts.map(float),
    confident=counts,
    latency=sketches,
    freshness=sketches,
    ahead=counts,
    numbers=st.dictionaries(st.integers(1, 3), numbers, max_size=2),
    gap=st.none() | counts,
    disordered=counts,
    disordered_across=counts,
    accepted=counts,
    delivered=counts,
)


@given(st.lists(panes, max_size=8), st.randoms(use_true_random=False))
def test_order_does_not_matter(some: list[Pane], chance: object) -> None:
    mixed = list(some)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    assert merge_panes(mixed) == merge_panes(some)


@given(st.lists(panes, max_size=8), st.integers(0, 8))
def test_parts_add_up(some: list[Pane], cut: int) -> None:
    parts = [*merge_panes(some[:cut]).values(), *merge_panes(some[cut:]).values()]
    assert merge_panes(parts) == merge_panes(some)


@given(panes)
def test_form(pane: Pane) -> None:
    assert Pane.from_json(json.loads(json.dumps(pane.as_json()))) == pane


@given(st.lists(st.integers(1, 10**11), min_size=1, max_size=60), st.sampled_from((0.5, 0.9, 0.95, 1.0)))
def test_quantiles_are_right_but_for_the_width_of_a_bucket(durations: list[int], share: float) -> None:
    exact = sorted(durations)[max(-(-int(share * 100) * len(durations) // 100), 1) - 1]
    found = Sketch.of(durations).quantile(share)
    assert found is not None
    assert exact / GROWTH <= found <= exact * GROWTH


@given(st.integers(1, 10**12))
def test_buckets(duration: int) -> None:
    assert abs(middle_of(bucket_of(duration)) / duration - 1) <= 0.026
    assert pane_of(duration) <= duration < pane_of(duration) + LENGTH


def test_no_duration_at_all() -> None:
    assert Sketch().quantile(0.95) is None
    assert Sketch.of([0, -7]).quantile(0.95) == 0
