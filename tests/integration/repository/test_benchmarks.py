"""Every benchmark runs: once, small. Those that use the Spark session are in ``test_benchmarks_spark``.

The tests are made of the list that ``python -m benchmarks`` has, so a new scenario is in them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import peers
from benchmarks.__main__ import SCENARIOS
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Variant, measure
from benchmarks.peers import PeerMissing

LOCKS = Path(__file__).parents[3] / "requirements"


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    with Bench(quick=True) as bench:
        yield bench


@pytest.mark.parametrize(
    # Last those that keep a run on Spark up, which needs a part of the machine also while nothing comes.
    "scenario",
    sorted(
        (each for each in SCENARIOS if not each.spark and not each.needs),
        key=lambda each: each.variants.__module__ == "benchmarks.spark_running",
    ),
    ids=lambda each: each.name,
)
def test_a_scenario_runs_and_is_judged(scenario: Scenario, bench: Bench) -> None:
    result = measure(scenario, bench)
    assert result["variants"]
    assert all(variant["median"] > 0 for variant in result["variants"])  # type: ignore[attr-defined]


@pytest.mark.parametrize("scenario", [each for each in SCENARIOS if each.needs], ids=lambda each: each.name)
def test_what_a_scenario_needs_besides_is_in_no_lock_and_is_named_when_it_is_missing(
    scenario: Scenario, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs up to there, on a machine that has fetched nothing yet and reaches nobody."""
    monkeypatch.setenv("SITU_BENCHMARKS_CACHE", str(tmp_path))
    # Not by proxies: a process that has fetched something before has looked for them, and looks no more.
    monkeypatch.setattr(peers, "CENTRAL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    needed = scenario.needs.split(", ")
    for name, _, _ in (each.rpartition(" ") for each in needed):
        assert not any(f"{name.lower()}==" in each.read_text().lower() for each in LOCKS.glob("*.lock"))
    missing = rf"cannot fetch ({'|'.join(map(re.escape, needed))})\b"
    with Bench(quick=True) as bench, pytest.raises(PeerMissing, match=missing):
        measure(scenario, bench)
    assert not list(tmp_path.iterdir()), "what was not fetched whole is not kept"


def test_a_scenario_that_says_otherwise_of_the_session_than_it_does_is_refused() -> None:
    """Else it would start a Java of its own beside the session of the tests."""

    def scenario(*, uses: bool, says: bool) -> Scenario:
        def variants(bench: Bench) -> list[Variant]:
            return [Variant(name="a", work=lambda: 1 if not uses or bench.spark else 0)]

        return Scenario(name="x", title="", unit="", about="", variants=variants, spark=says)

    with Bench(quick=True) as bench:
        measure(scenario(uses=False, says=False), bench)
        with pytest.raises(AssertionError, match="is declared with spark=True"):
            measure(scenario(uses=True, says=False), bench)
        with pytest.raises(AssertionError, match="declared with spark=True and uses no session"):
            measure(scenario(uses=False, says=True), bench)


def test_variants_of_the_same_name_are_refused() -> None:
    """Figures are kept by name: those of one would be taken for those of the other."""
    twice = [Variant(name="a", work=lambda: 1)] * 2
    with Bench(quick=True) as bench, pytest.raises(AssertionError, match="the same name"):
        measure(Scenario(name="x", title="", unit="", about="", variants=lambda bench: twice), bench)
