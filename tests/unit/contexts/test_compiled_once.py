"""What is compiled of contexts is compiled once, however many ask for it: checks, mediation, explanations, engines."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from situ.contexts.model import Direction
from situ.contexts.transform import transformation
from situ.contexts.transform.transformation import transformations
from situ.lang.problems import Problems
from situ.project.check import check_folder
from situ.stages.interpret import Interpretation

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> Counter[tuple[str, Direction, str]]:
    """How often each event type was compiled in each context and direction."""
    counts: Counter[tuple[str, Direction, str]] = Counter()
    compile_one = transformation.event_steps

    def counting(context, direction, rules, mapping, found):
        counts[context.name, direction, found.source.name] += 1
        return compile_one(context, direction, rules, mapping, found)

    monkeypatch.setattr(transformation, "event_steps", counting)
    return counts


def test_a_check_compiles_every_transformation_once(compiled: Counter[tuple[str, Direction, str]]) -> None:
    checked = check_folder(EXAMPLE)
    assert checked.deployment is not None
    contexts = {context for context, _, _ in compiled}
    assert {"cameras@1", "readers@1", "us@1", "cleaning@1"} <= contexts
    assert max(compiled.values()) == 1, compiled.most_common(3)


def test_engines_take_what_the_check_compiled(compiled: Counter[tuple[str, Direction, str]]) -> None:
    deployment = check_folder(EXAMPLE).deployment
    assert deployment is not None
    compiled.clear()
    interpretation = Interpretation.of(deployment)
    assert interpretation.converter("us", Direction.OUT, "Sighting") is not None
    assert interpretation.keyed()
    assert not compiled


def test_what_was_found_when_it_was_compiled_is_told_to_all_who_ask() -> None:
    deployment = check_folder(EXAMPLE).deployment
    assert deployment is not None
    us = deployment.contexts.by_id["us"]
    told = []
    for _ in range(2):
        problems = Problems()
        transformations(us, Direction.OUT, problems)
        told.append([str(each) for each in problems])
    assert told[0]
    assert told[0] == told[1]


def test_a_context_that_is_changed_is_compiled_afresh(compiled: Counter[tuple[str, Direction, str]]) -> None:
    deployment = check_folder(EXAMPLE).deployment
    assert deployment is not None
    before = transformations(deployment.contexts.by_id["us"], Direction.OUT, Problems())
    changed = deployment.contexts.at_versions({"us": 2})
    compiled.clear()
    after = transformations(changed.by_id["us"], Direction.OUT, Problems())
    assert {context for context, _, _ in compiled} == {"us@2"}
    assert after["Sighting"].context == "us@2"
    assert after["Sighting"].plan != before["Sighting"].plan
