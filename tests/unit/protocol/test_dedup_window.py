"""Windows over keys, against a set that forgets nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from situ.protocol.dedup_window import DedupWindow

numbers = st.lists(st.tuples(st.sampled_from(["a", "b"]), st.integers(1, 3), st.integers(1, 60)), max_size=200)


@given(numbers)
def test_within_its_size_a_window_forgets_nothing(keys: list[tuple[str, int, int]]) -> None:
    window = DedupWindow(below=64)
    seen: set[tuple[str, int, int]] = set()
    for key in keys:
        assert window.has(*key) == (key in seen)
        assert window.add(*key) == (key not in seen)
        seen.add(key)
    assert window.too_old == 0


@given(numbers)
def test_what_is_below_a_window_counts_as_seen(keys: list[tuple[str, int, int]]) -> None:
    window = DedupWindow(below=8)
    seen: set[tuple[str, int, int]] = set()
    for client, incarnation, seq in keys:
        highest = max((each[2] for each in seen if each[:2] == (client, incarnation)), default=0)
        expected = (client, incarnation, seq) not in seen and highest - seq < 8
        assert window.add(client, incarnation, seq) == expected
        if expected:
            seen.add((client, incarnation, seq))


@given(numbers)
def test_a_window_is_restored_as_it_was(keys: list[tuple[str, int, int]]) -> None:
    window = DedupWindow(below=16)
    for key in keys:
        window.add(*key)
    again = DedupWindow(below=16)
    for row in window.rows():
        again.restore(*row)
    assert list(again.rows()) == list(window.rows())
    assert [again.has(*key) for key in keys] == [True] * len(keys)


def test_what_should_not_happen_is_counted() -> None:
    window = DedupWindow(below=4)
    assert [window.add("a", 1, seq) for seq in (1, 10, 9, 9, 2)] == [True, True, True, False, False]
    assert (window.out_of_order, window.too_old) == (1, 1)


def test_far_ahead_is_cheap() -> None:
    window = DedupWindow()
    assert window.add("a", 1, 2**63)
    assert window.has("a", 1, 5)
    assert not window.has("a", 1, 2**63 - 1)
