"""``explain transform --why`` says of each dynamic type which rule is reached there, and which is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from situ.cli.app import run
from situ.contexts.resolve_rules import ResolvedPlace, RuleSet, resolve_event_type
from situ.explain.transform import RuleCandidates
from situ.lang.types.model import Struct
from situ.lang.types.table import Types
from tests.project_files import write
from tests.transformations import generated_case

FILES = {
    "situ.yaml": "version: 1\nname: p\n",
    "types/t.yaml": """
version: 1
types:
  A: {p: double}
  B(A): {r: double}
  C(A): {r: string}
events:
  E: {k: A}
""",
    "contexts/c.yaml": """
version: 1
context: c
rules:
  out: [double -> twice, B -> flat]
functions:
  twice: double -> double = value * 2
  flat: B -> A = struct(value.p + value.r AS p)
""",
}


def told(folder: Path, attribute: str, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, str, list[str]]]:
    """Of each place its last type but one, what becomes of it, and which rules count."""
    arguments = ["explain", "transform", "--context", "c", "--out", "E", "--why", attribute, "--json"]
    assert run([*arguments, "--project", str(folder)]) == 0
    places = json.loads(capsys.readouterr().out)["places"]
    return [
        (each["levels"][-1], each["outcome"], [rule["rule"] for rule in each["candidates"] if rule["counts"]])
        for each in places
    ]


def test_below_a_converted_subtype_no_rule_is_reached(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, FILES)
    assert told(tmp_path, "k.p", capsys) == [
        ("level 1 (A)", "converted by twice", ["double -> twice"]),
        ("level 1 (B)", "part of k, converted by flat as a whole", []),
        ("level 1 (C)", "converted by twice", ["double -> twice"]),
    ]
    assert [(outcome, rules) for _, outcome, rules in told(tmp_path, "k", capsys)] == [
        ("attribute by attribute", []),
        ("converted by flat", ["B -> flat"]),
        ("attribute by attribute", []),
    ]


def reached(place: ResolvedPlace) -> set[tuple[str, str]]:
    found = {(str(place.path), str(place.path.types))}
    return found.union(*(reached(each) for each in place.below))


def paths(event: Struct, rules: RuleSet, types: Types) -> set[str]:
    def below(place: ResolvedPlace) -> set[str]:
        return {str(place.path)}.union(*(below(each) for each in place.below))

    return below(resolve_event_type(event, rules, types, covered=True))


def test_what_is_said_to_be_converted_as_a_part_is_never_reached() -> None:
    """Held against the walk that makes the transformation, which stops where a rule converts a whole value."""
    parts = 0
    for seed in range(120):
        case = generated_case(seed)
        if case is None:
            continue
        rules = RuleSet.of(case.context, case.direction)
        for event in case.events:
            candidates = RuleCandidates(case.context, case.direction, event)
            walked = reached(resolve_event_type(event, rules, case.types))
            for place in (each for path in paths(event, rules, case.types) for each in candidates.places(path)):
                if place.path.event != event:
                    continue
                is_reached = (str(place.path), str(place.path.types)) in walked
                assert (candidates.whole(place) is None) == is_reached, (seed, str(place.path))
                parts += not is_reached
    assert parts > 50
