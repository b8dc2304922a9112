"""Strategies that other packages bring."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.project.check import check_folder
from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.model.allocation_problem import AllocationProblem
from situ.quality.model.declarations import Strategy
from situ.router.strategy_plugins import known_strategies, load_strategies
from tests.project_files import write

MODULE = """
from situ.quality.model.allocation_problem import AllocationPlan

def decide(problem):
    return AllocationPlan(cost=problem.strategy.options["price"])
"""
ENTRIES = """
[situ.strategies]
night = ours:decide
pareto = ours:decide
"""
PROJECT = {
    "situ.yaml": "name: test\n",
    "types/all.yaml": "events: {Tick: {}}\n",
    "quality/all.yaml": "strategy: {default: {name: night, price: 3}}\n",
}


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = tmp_path / "site"
    write(
        site,
        {
            "ours.py": MODULE,
            "ours-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: ours\nVersion: 1.0\n",
            "ours-1.0.dist-info/entry_points.txt": ENTRIES,
        },
    )
    monkeypatch.syspath_prepend(str(site))


def test_what_is_built_in_is_there_and_stays(installed: None) -> None:
    assert known_strategies() == (*BUILT_IN_STRATEGIES, "night")
    found = load_strategies()
    assert found["pareto"] is BUILT_IN_STRATEGIES["pareto"]
    problem = AllocationProblem(
        expectations=(), profiles={}, pools={}, relevant={}, strategy=Strategy(options={"price": 3.0})
    )
    assert found["night"](problem).cost == 3.0


def test_what_fails_is_told(installed: None, caplog: pytest.LogCaptureFixture) -> None:
    problem = AllocationProblem(expectations=(), profiles={}, pools={}, relevant={})
    with pytest.raises(KeyError):
        load_strategies()["night"](problem)
    assert "The strategy night failed; pareto decides in its place." in caplog.text
    assert "KeyError: 'price'" in caplog.text


def test_a_project_may_name_it(installed: None, tmp_path: Path) -> None:
    checked = check_folder(write(tmp_path / "project", PROJECT))
    assert not checked.problems
    assert checked.deployment is not None
    assert checked.deployment.quality.strategy_for("Tick").options == {"price": 3}


def test_a_project_may_not_name_what_is_not_there(tmp_path: Path) -> None:
    checked = check_folder(write(tmp_path / "project", PROJECT))
    assert [each.code.code for each in checked.problems] == ["Q115"]
