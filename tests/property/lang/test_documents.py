"""Any text whatever gives nodes or problems; what was written is read, and found where it was written."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from situ.lang.documents import (
    Document,
    DocumentLimits,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    parse_json,
    parse_yaml,
    substitute,
    to_data,
)
from situ.lang.documents.nodes import place_map
from situ.lang.problems import Problems, render

PIECES = [
    "a", "b c", "é", "😀", "1", "1e999", "true", "~", "k: ", "k: '", 'k: "', "${A}", "${", "$${",
    "\n", "\n\n", "\r\n", "\r", " ", "  ", "\t", "\n  ", "\n    ", "\n- ", "\n  - ",
    "'", "''", '"', "\\n", '\\"', "\\\\", "\\", "\\\n", "\\x41", "\\u00e9", "\\ud83d", "\\UFFFFFFFF", "\\0",
    ":", ": ", "#", " #", "-", "- ", "? ", "{", "}", "[", "]", ",", "|", "|-\n", "|2\n", ">\n", ">+\n",
    "%", "%YAML 1.2\n", "&a ", "*a", "!t ", "!!str ", "<<: ", "---\n", "...\n", "@", "`",
    "\0", "\x1b", "\x85", "\u2028", "\ufeff", "\ud800",
]  # fmt: skip
yaml_like = st.lists(st.sampled_from(PIECES), max_size=30).map("".join)
anything = st.one_of(yaml_like, st.text(), yaml_like.map(lambda text: text.encode(errors="surrogatepass")), st.binary())
small = DocumentLimits(size=2_000, depth=6, nodes=30, problems=5)


@given(anything, st.booleans(), st.sampled_from([DocumentLimits(), small]))
@example('"\\', False, DocumentLimits())
@example('k: "\\UFFFFFFFF"', False, DocumentLimits())
def test_any_yaml_gives_nodes_or_problems(data: str | bytes, fast: bool, limits: DocumentLimits) -> None:
    document = parse_yaml(data, "any.yaml", limits, fast=fast)
    check(document, limits)


@given(anything, st.sampled_from([DocumentLimits(), small]))
def test_any_json_gives_nodes_or_problems(data: str | bytes, limits: DocumentLimits) -> None:
    document = parse_json(data, "any.json", limits)
    check(document, limits)


def check(document: Document, limits: DocumentLimits) -> None:
    assert document.root is not None or document.problems
    assert len(document.problems) <= limits.problems + 1
    for problem in document.problems:
        assert problem.location is not None
        assert problem.location.line >= 1
        assert 1 <= problem.location.column <= len(problem.location.text) + 1
        render(problem).encode()
        assert problem.hint
    if document.root is None:
        return
    json.dumps(to_data(document.root), allow_nan=False).encode()
    for scalar in scalars(document.root):
        scalar.text.encode()
        check_places(scalar)
    replaced = substitute(document.root, {"A": "1"}, Problems(), limits)
    for scalar in scalars(replaced):
        for offset in range(len(scalar.text) + 1):
            assert scalar.locate(offset).column >= 1


def check_places(scalar: ScalarNode) -> None:
    raw = scalar.source.text[scalar.start : scalar.end]
    places = place_map(raw, scalar.style, scalar.text)
    assert places is not None
    assert len(places) == len(scalar.text) + 1
    assert all(before < after for before, after in pairwise(places))
    for character, place in zip(scalar.text, places, strict=False):
        written = raw[place]
        assert written == character or written == "\\" or (character in " \n" and written in " \t\r\n")


text = st.text(st.characters(codec="utf-8", exclude_characters="\0"))
words = st.text(st.sampled_from("ab é😀'\"\\:#-{}[],&*!|>%@`\n\t$?=<1"))


@given(
    st.lists(st.one_of(text, words), max_size=5),
    st.sampled_from([None, "'", '"', "|", ">"]),
    st.integers(3, 40),
    st.booleans(),
)
def test_what_is_written_is_read_and_found(written: list[str], style: str | None, width: int, crlf: bool) -> None:
    dumped = yaml.safe_dump({"key": written}, default_style=style, width=width, allow_unicode=True)
    if crlf:
        dumped = dumped.replace("\n", "\r\n")
    document = parse_yaml(dumped, "f")
    if document.root is None:  # PyYAML writes some line breaks of YAML 1.1 as they are, and tags
        assert document.problems[0].code.code in ("P114", "P107")
        return
    assert to_data(document.root) == {"key": written}
    for scalar in scalars(document.root):
        check_places(scalar)


names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=100)  # YAML: 1,024 with escapes
plain_data = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False), text),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(names, inner, max_size=4)),
    max_leaves=20,
)


@given(plain_data, st.sampled_from([None, 2]), st.booleans())
def test_json_as_written_by_the_standard_library_is_read(data: Any, indent: int | None, ascii_only: bool) -> None:
    written = json.dumps(data, indent=indent, ensure_ascii=ascii_only)
    document = parse_json(written, "f")
    assert document.problems == ()
    assert document.root is not None
    assert to_data(document.root) == data
    for scalar in scalars(document.root):
        check_places(scalar)


JSON_PIECES = [
    '"',
    '"a"',
    '"b"',
    "\\",
    "\\u0041",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "1",
    "0",
    "-",
    ".",
    "e5",
    "true",
    "null",
    "NaN",
    " ",
    "\n",
]


@given(st.lists(st.sampled_from(JSON_PIECES), max_size=12).map("".join))
def test_json_is_accepted_where_the_standard_library_accepts_it(written: str) -> None:
    try:
        expected = json.loads(written, parse_constant=_refuse, object_pairs_hook=_once, parse_float=_finite)
    except ValueError:
        assert parse_json(written, "f").problems
    else:
        document = parse_json(written, "f")
        assert document.problems == ()
        assert document.root is not None
        assert to_data(document.root) == expected


@given(plain_data)
@pytest.mark.parametrize("fast", [True, False])
def test_yaml_reads_json(fast: bool, data: Any) -> None:
    """JSON whose characters are escaped is YAML, except for pairs of surrogates."""
    written = json.dumps(data, indent=1).replace(": ", ":  ")
    if "\\ud" in written or "\\u0000" in written:
        return
    document = parse_yaml(written, "f", fast=fast)
    assert document.problems == ()
    assert document.root is not None
    assert to_data(document.root) == json.loads(written)


def scalars(node: Node) -> list[ScalarNode]:
    match node:
        case ScalarNode():
            return [node]
        case SequenceNode():
            return [scalar for item in node.items for scalar in scalars(item)]
        case MappingNode():
            return [scalar for key, value in node.entries for scalar in (key, *scalars(value))]


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) != len(pairs):
        raise ValueError("twice")
    return dict(pairs)


def _finite(number: str) -> float:
    if not math.isfinite(float(number)):
        raise ValueError(number)
    return float(number)
