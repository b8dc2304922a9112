"""Whatever is written, ontologies and sources of concepts are loaded or refused; what is right reads back as it was."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from situ.lang.documents import parse_json
from situ.lang.problems import Problems
from situ.policies.ontology.load import load_ontology, ontology_as_json, ontology_from_json
from situ.policies.source_coverage import check_sources
from situ.sources import load_pushes, load_sources
from tests.types_files import types_of
from tests.volume import examples

TYPES = types_of("types: {Key(string): {}}\nevents: {E: {a: string, b: Point m, c: {type: int, optional: true}}}")
NAMES = st.sampled_from(["a", "b", "c", "d", "a(b)", "b(a)", "c(a, b)", "is", "", "x.y", "id", "z-z"])
WORDS = st.sampled_from(
    [
        "a",
        "b.id",
        "a.p",
        "c.p",
        "string",
        "Key",
        "Point m",
        "Box m",
        "double m",
        "inside",
        "within",
        "=",
        "in",
        "s",
        "E",
        "last 1 s",
        "",
    ]
)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(WORDS, st.none(), st.booleans(), st.integers(-3, 3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=3)),
    max_leaves=6,
)
ATTRIBUTES = st.dictionaries(st.sampled_from(["id", "p", "q"]), st.one_of(WORDS, VALUES), max_size=3)
RELATED = st.one_of(
    st.fixed_dictionaries(
        {"between": st.one_of(st.lists(WORDS, max_size=3), VALUES), "function": WORDS},
        optional={"parameter": VALUES, "symmetric": st.one_of(st.booleans(), VALUES), "unit": WORDS},
    ),
    VALUES,
)
ONTOLOGIES = st.fixed_dictionaries(
    {},
    optional={
        "concepts": st.dictionaries(NAMES, st.one_of(ATTRIBUTES, VALUES), max_size=4),
        "groups": st.dictionaries(NAMES, st.one_of(st.lists(NAMES, max_size=3), VALUES), max_size=2),
        "containers": st.dictionaries(NAMES, st.one_of(NAMES, VALUES), max_size=3),
        "relationships": st.dictionaries(NAMES, st.one_of(RELATED, st.lists(RELATED, max_size=2)), max_size=2),
        "measures": st.dictionaries(NAMES, RELATED, max_size=2),
        "more": VALUES,
    },
)
PULL = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            key: st.one_of(WORDS, VALUES)
            for key in ("csv", "xml", "rows", "columns", "key", "concept", "attributes", "as_of", "max_age")
        },
    ),
    VALUES,
)
PUSH = st.one_of(
    st.fixed_dictionaries(
        {},
        optional={
            key: st.one_of(WORDS, VALUES)
            for key in ("event", "concept", "id", "attribute", "value", "lateness", "idle", "keep")
        },
    ),
    VALUES,
)


@given(ONTOLOGIES)
def test_an_ontology_is_loaded_or_refused(written: dict[str, Any]) -> None:
    problems = Problems()
    found = load_ontology([parse_json(json.dumps(written), "ontology.yaml")], TYPES, {}, problems)
    assert all(each.location is not None and each.message for each in problems)
    if not problems.errors:
        assert ontology_from_json(json.loads(json.dumps(ontology_as_json(found))), TYPES) == found


@given(ONTOLOGIES, st.dictionaries(NAMES, PULL, max_size=2), st.dictionaries(NAMES, PUSH, max_size=2))
@examples(20, 10_000)
def test_sources_of_concepts_are_loaded_or_refused(written: dict[str, Any], pull: Any, push: Any) -> None:
    problems = Problems()
    ontology = load_ontology([parse_json(json.dumps(written), "ontology.yaml")], TYPES, {}, problems)
    document = parse_json(json.dumps({"pull": pull, "push": push}), "sources/a.yaml")
    sources, pushes = load_sources([document], TYPES, problems), load_pushes([document], TYPES, problems)
    check_sources(ontology, sources, pushes, TYPES, problems)
    assert all(each.message for each in problems)
