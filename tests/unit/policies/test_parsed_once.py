"""Each policy is parsed and checked once in a process, however many read it: check, registry, engines, explanations."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from situ.explain.policy import explain_policy, find_policy
from situ.lang.problems import Problems
from situ.model import Deployment
from situ.policies import load
from situ.policies.language import parse
from situ.project.apply import apply_folder
from situ.project.check import check_folder
from situ.registry import Registry, open_registry
from situ.registry.object_files import policy_document
from situ.stages.detect.detection_plan import DetectionPlan

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"
ADDED = """policy added
window 1 min
concepts
  person A
  room R
conditions
  A is inside R
actions
  log seen
"""


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the text of each file was taken apart."""
    counts: Counter[str] = Counter()
    split = parse.split_statements

    def counting(source: Any, problems: Problems, most: int) -> Any:
        counts[source.file] += 1
        return split(source, problems, most)

    monkeypatch.setattr(parse, "split_statements", counting)
    parse._parse.cache_clear()
    monkeypatch.setattr(load, "_last", None)
    return counts


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each policy was checked against its domain."""
    counts: Counter[str] = Counter()
    check = load.check_policy

    def counting(text: Any, domain: Any, problems: Problems, *, name: str) -> Any:
        counts[name] += 1
        return check(text, domain, problems, name=name)

    monkeypatch.setattr(load, "check_policy", counting)
    return counts


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = shutil.copytree(EXAMPLE, tmp_path / "project", ignore=shutil.ignore_patterns(".situ"))
    (folder / "policies" / "second.dpl").write_text(ADDED.replace("policy added", "policy second"))
    return folder


def test_a_check_and_an_explanation_parse_each_once(project: Path, parsed: Counter[str], checked: Counter[str]) -> None:
    deployment = check_folder(project).deployment
    assert deployment is not None
    for name in deployment.policies:
        explain_policy(find_policy(name, deployment), deployment.ontology, deployment.policies.values())
    assert len(parsed) == len(deployment.policies)
    assert checked.keys() == deployment.policies.keys()
    assert set(parsed.values()) == set(checked.values()) == {1}


def test_a_run_takes_what_the_check_has_made(project: Path, parsed: Counter[str], checked: Counter[str]) -> None:
    deployment = check_folder(project).deployment
    assert deployment is not None
    with open_registry(project, deployment.settings) as registry:
        apply_folder(project, deployment, registry, who="ann")
        read_back = stored(registry)
        plan(read_back)
        registry.add("policy", "added", policy_document("added", ADDED, "added.dpl"), who="ann")
        plan(stored(registry))
    assert set(parsed.values()) == {1}, parsed
    assert set(checked.values()) == {1}, checked
    assert parsed.keys() == {*(each.location.file for each in deployment.policies.values()), "added.dpl"}


def stored(registry: Registry) -> Deployment:
    """The deployment as another part of the process reads it from the bus."""
    return Deployment.from_json(registry.current().as_json())


def plan(deployment: Deployment) -> DetectionPlan:
    return DetectionPlan(
        deployment.policies.values(),
        deployment.ontology,
        deployment.push,
        {},
        deployment.types,
        deployment.settings.defaults,
    )
