"""Generated policies and traces, as tasks of Spark work them: what is found is what policies mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from situ.lang.problems import SituError
from situ.policies.reference import detect
from situ.spark.detect import sources_of
from situ.spark.state_store import KernelStateStore
from situ.storage.state_folder import open_folder
from tests.buckets import found_in_buckets
from tests.situations import generate
from tests.volume import seeds


def hold_equal(seeds: range, folder: Path, among: Sequence[int] = ()) -> None:
    some = 0
    for seed in seeds:
        case = generate(seed)
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        assert found_in_buckets(case, folder / str(seed), among=among) == expected, (seed, case.text)
        some += bool(expected)
    assert some > len(seeds) / 4


@seeds(range(5000, 5018), range(20_000, 30_000))
def test_buckets_find_what_policies_mean(tmp_path: Path, seeds: range) -> None:
    hold_equal(seeds, tmp_path)


@seeds(range(5100, 5112), range(100_000, 110_000))
def test_any_sequence_of_divisions_and_kills_changes_nothing(tmp_path: Path, seeds: range) -> None:
    """Between any two tasks of a batch everything may be killed, where buckets become more or fewer, too."""
    hold_equal(seeds, tmp_path, among=(1, 2, 3, 5, 8))


def test_a_bucket_comes_from_those_whose_identities_it_takes() -> None:
    assert sources_of(6, 2, 8) == [0]
    assert sources_of(1, 8, 2) == [1, 3, 5, 7]
    assert sources_of(2, 3, 5) == [0, 1, 2]
    assert sources_of(4, 6, 9) == [1, 4]
    for before in range(1, 9):
        for after in range(1, 9):
            for number in range(200):
                assert number % before in sources_of(number % after, before, after)


def test_what_a_bucket_left_and_is_gone_is_told(tmp_path: Path) -> None:
    """Nothing begins anew in silence because a file is not there."""
    store = KernelStateStore(open_folder(tmp_path), 3)
    with pytest.raises(SituError, match="N101"):
        store.load_whole("7-9")
    with pytest.raises(SituError, match="N101"):
        store.add_whole("7-9", dict)
