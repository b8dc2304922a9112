"""Structs that are others by name only: their text is handed on unread."""

from __future__ import annotations

import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.converter import Converter
from situ.contexts.transform.json_text import with_copies
from situ.contexts.transform.transformation import Transformation, transformations
from situ.lang.expr.format import print_expression
from situ.lang.problems import Problems
from tests.context_files import load

ENVELOPE = {"id": "1", "source": "s", "type": "E", "time": None}
OWN = "types: {Own: {a: string, b: optional long}}\n"


def way(types: str, context: str) -> Transformation:
    contexts, problems = load({"types/t.yaml": types, "contexts/c.yaml": f"context: c\n{context}maps: [out: E -> F]\n"})
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    return transformations(contexts.by_id["c"], Direction.OUT, Problems())["E"]


@pytest.mark.parametrize(
    ("types", "context", "shown"),
    [
        (
            "types: {S: {a: string, b: optional long}}\nevents: {E: {n: double m, s: S}}",
            OWN + "events: {F: {n: double ft, s: Own}}\n",
            "s AS s",
        ),
        (
            "types: {S: {a: string, b: optional long}}\nevents: {E: {n: double m, s: optional S, l: '[S]'}}",
            OWN + "events: {F: {n: double ft, s: optional Own, l: '[Own]'}}\n",
            "s AS s, l AS l",
        ),
        (
            "types: {S: {b: optional long, a: string}}\nevents: {E: {n: double m, s: S}}",
            OWN + "events: {F: {n: double ft, s: Own}}\n",
            "struct(s.a AS a, s.b AS b) AS s",
        ),
        (
            "types: {S: {a: string, b: optional long, c: string}}\nevents: {E: {n: double m, s: S}}",
            OWN + "events: {F: {n: double ft, s: Own}}\n",
            "struct(s.a AS a, s.b AS b) AS s",
        ),
        (
            "types: {S: {a: string, b: optional long}, T(S): {c: string}}\nevents: {E: {n: double m, s: S}}",
            OWN + "events: {F: {n: double ft, s: Own}}\n",
            "struct(s.a AS a, s.b AS b) AS s",
        ),
        (
            "types: {S: {a: string, b: optional int}}\nevents: {E: {n: double m, s: S}}",
            OWN + "events: {F: {n: double ft, s: Own}}\n",
            "s.a AS a",
        ),
    ],
    ids=["same", "optional and listed", "other order", "more", "of a subtype", "wider"],
)
def test_what_has_the_same_text_is_copied(types: str, context: str, shown: str) -> None:
    made = way(types, context)
    assert shown in print_expression(with_copies(made.node, made.source, made.types))


def test_an_event_that_only_changes_its_name_stays_the_same_text() -> None:
    made = way("types: {S: {a: string}}\nevents: {E: {s: S}}", "types: {Own: {a: string}}\nevents: {F: {s: Own}}\n")
    assert not made.is_identity
    assert Converter(made).text(ENVELOPE, b'{"s":{"a":"x"}}') == b'{"s":{"a":"x"}}'
