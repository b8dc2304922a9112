"""Contexts: what is written loads to what it means, and everything that is wrong is said, each fault once."""

from __future__ import annotations

import json

from situ.interpretation.load import contexts_from_json
from situ.interpretation.model import Direction
from tests.context_files import LOGISTICS, SOURCES, load


def test_a_project_in_four_contexts_loads_without_a_remark() -> None:
    contexts, problems = load(LOGISTICS)
    assert [str(problem) for problem in problems] == []
    assert list(contexts.by_id) == ["root", "us", "europe", "german"]
    us, german = contexts.by_id["us"], contexts.by_id["german"]
    assert [str(rule) for rule in us.rules][:2] == ["Position -> to_latlon", "DangerCheck.Position -> identity"]
    assert us.mappings[1].source == contexts.root.types.event("PositionUpdate")
    assert us.mappings[1].target == us.types.event("PositionUpdate") != us.mappings[1].source
    assert german.parent is contexts.by_id["europe"]
    assert [mapping.direction for mapping in contexts.by_id["europe"].mappings] == [Direction.OUT, Direction.IN]


def test_the_canonical_form_reads_back() -> None:
    contexts, _ = load(LOGISTICS)
    form = json.loads(json.dumps(contexts.as_json(), sort_keys=True))
    again = contexts_from_json(form, contexts.root.types, {}, sources=SOURCES)
    assert again == contexts
    assert again.as_json() == contexts.as_json()
