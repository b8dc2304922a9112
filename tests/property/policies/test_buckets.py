"""Generated policies and traces, as tasks of Spark work them: what is found is what policies mean."""

from __future__ import annotations

from pathlib import Path

from situ.policies.reference import detect
from tests.buckets import found_in_buckets
from tests.situations import generate
from tests.volume import seeds


def hold_equal(seeds: range, folder: Path) -> None:
    some = 0
    for seed in seeds:
        case = generate(seed)
        expected = detect(case.policy, case.ontology, case.observations, case.instances, keep=case.keep)
        assert found_in_buckets(case, folder / str(seed)) == expected, (seed, case.text)
        some += bool(expected)
    assert some > len(seeds) / 4


@seeds(range(5000, 5018), range(20_000, 30_000))
def test_buckets_find_what_policies_mean(tmp_path: Path, seeds: range) -> None:
    hold_equal(seeds, tmp_path)
