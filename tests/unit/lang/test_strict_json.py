"""JSON text → nodes: strict, positioned, never recursive."""

from __future__ import annotations

import pytest

from situ.lang.documents import DocumentLimits, MappingNode, ScalarNode, parse_json, to_data
from situ.lang.problems import render


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", None), ("true", True), (" false ", False),
        ("0", 0), ("-0", 0), ("12", 12), ("-1.5e+3", -1500.0), ("1E2", 100.0),
        ('""', ""), ('"a\\u0062\\n\\"\\\\\\/"', 'ab\n"\\/'), ('"\\ud83d\\ude00"', "😀"),
        ('"\u2028\x7f"', "\u2028\x7f"), ('"\\u0000"', "\0"),
        ("[]", []), ("{}", {}), ('[1, [2, {"a": [3]}], {}]', [1, [2, {"a": [3]}], {}]),
        ('{"a": {"b": []}, "c": "d"}', {"a": {"b": []}, "c": "d"}),
        ("\ufeff{}", {}), (b'\xef\xbb\xbf{"\xc3\xa9": 1}', {"é": 1}), ("\r\n\t [1\r,\n2]\n", [1, 2]),
    ],
)  # fmt: skip
def test_values(text: str | bytes, expected: object) -> None:
    document = parse_json(text, "file.json")
    assert document.problems == ()
    assert document.root is not None
    assert to_data(document.root) == expected


def test_nodes_are_those_of_yaml() -> None:
    document = parse_json('{\n  "a": [1, "x"],\n  "b": {"c": null}\n}', "file.json")
    assert isinstance(document.root, MappingNode)
    inner = document.root.get("b")
    assert isinstance(inner, MappingNode)
    assert inner.under is not None
    assert (inner.under.text, inner.location.line, inner.location.column) == ("b", 3, 8)
    assert inner.location.length == len('{"c": null}')
    nothing = inner.get("c")
    assert isinstance(nothing, ScalarNode)
    assert not nothing.quoted


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", (1, 1), "found the end of the text"),
        ("   \n", (2, 1), "found the end of the text"),
        ("{", (1, 2), "expected a name in double quotes, found the end of the text"),
        ("[1", (1, 3), "expected `,` or `]`, found the end of the text"),
        ("[1,]", (1, 4), "expected a value, found `]`"),
        ("[,1]", (1, 2), "expected a value, found `,`"),
        ("[1 2]", (1, 4), "expected `,` or `]`, found `2`"),
        ("[1}", (1, 3), "expected `,` or `]`, found `}`"),
        ("{]", (1, 2), "expected a name"),
        ("]", (1, 1), "expected a value, found `]`"),
        ('{"a": 1,}', (1, 9), "expected a name in double quotes, found `}`"),
        ('{"a" 1}', (1, 6), "expected `:`, found `1`"),
        ('{"a": }', (1, 7), "expected a value, found `}`"),
        ('{"a": 1 "b": 2}', (1, 9), "expected `,` or `}`"),
        ("{a: 1}", (1, 2), "found `a`"),
        ("{'a': 1}", (1, 2), "found `'`"),
        ("{1: 1}", (1, 2), "expected a name"),
        ("1 2", (1, 3), "something follows"),
        ("{}\n{}", (2, 1), "something follows"),
        ("NaN", (1, 1), "found `NaN`"),
        ("[Infinity]", (1, 2), "found `Infinity`"),
        ("-Infinity", (1, 1), "this is no number"),
        ("True", (1, 1), "found `True`"),
        ("truefalse", (1, 1), "found `truefalse`"),
        ("undefined", (1, 1), "found `undefined`"),
        ("01", (1, 1), "this is no number"),
        ("1.", (1, 1), "this is no number"),
        (".5", (1, 1), "found `.`"),
        ("+1", (1, 1), "found `+`"),
        ("-", (1, 1), "this is no number"),
        ("1e", (1, 1), "this is no number"),
        ("0x1F", (1, 1), "this is no number"),
        ("1_000", (1, 2), "something follows"),
        ('"open', (1, 1), "never closed"),
        ('["a\nb"]', (1, 4), "U+000A cannot stand in text"),
        ('["a\tb"]', (1, 4), "U+0009 cannot stand in text"),
        ('"a\0"', (1, 3), "U+0000 cannot stand in text"),
        ('"\\x41"', (1, 2), "`\\x` is no escape"),
        ('"\\u12"', (1, 2), "`\\u` is no escape"),
        ('"\\', (1, 2), "is no escape"),
        ('"\\ud800"', (1, 1), "half of a surrogate pair"),
        ('"\\ude00\\ud83d"', (1, 1), "half of a surrogate pair"),
        ('"\ud800"', (1, 1), "half of a surrogate pair"),
        ("\ud800", (1, 1), "U+D800"),
        ("[1] // remark", (1, 5), "something follows"),
        ("/* remark */ 1", (1, 1), "found `/`"),
        ("\xa0 1", (1, 1), "U+00A0"),
        ("[1\u2003]", (1, 3), "U+2003"),
    ],
)  # fmt: skip
def test_syntax_is_strict(text: str, place: tuple[int, int], reason: str) -> None:
    document = parse_json(text, "file.json")
    assert document.root is None
    (problem,) = document.problems
    assert problem.code.code == "P112"
    assert reason in problem.message
    assert problem.hint
    assert problem.location is not None
    assert (problem.location.line, problem.location.column) == place
    assert render(problem).encode()


def test_a_name_stands_once() -> None:
    document = parse_json('{"a": 1,\n "\\u0061": {"b": 1, "b": 2}, "c": 3}', "file.json")
    assert [(p.code.code, p.values["line"]) for p in document.problems] == [("P106", 1), ("P106", 2)]
    assert document.root is not None
    assert to_data(document.root) == {"a": 1, "c": 3}


@pytest.mark.parametrize("number", ["1e999", "-1e999", "9" * 401, "1" + "0" * 500 + ".0"])
def test_a_number_is_finite(number: str) -> None:
    document = parse_json(f"[{number}]", "file.json")
    assert [problem.code.code for problem in document.problems] == ["P115"]
    assert document.root is None


def test_bytes_are_utf8() -> None:
    (problem,) = parse_json(b'{"a":\n "\xff"}', "file.json").problems
    assert problem.code.code == "P110"
    assert str(problem.location) == "file.json:2:3"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000])
def test_nesting_is_bounded_without_recursion(text: str) -> None:
    (problem,) = parse_json(text, "file.json").problems
    assert problem.code.code == "P108"


def test_size_and_number_of_values_are_bounded() -> None:
    assert parse_json("[1, 2]", "f", DocumentLimits(nodes=3)).problems == ()
    assert parse_json("[1, 2, 3]", "f", DocumentLimits(nodes=3)).problems[0].code.code == "P108"
    assert parse_json("[1, 2]", "f", DocumentLimits(size=5)).problems[0].code.code == "P108"
