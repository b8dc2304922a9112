"""The place in the file of a character inside a scalar: the mark § must be found where it was written."""

from __future__ import annotations

import pytest

from situ.lang.documents import MappingNode, Node, ScalarNode, SequenceNode, parse_json, parse_yaml
from situ.lang.documents.nodes import place_map

MARK = "§"

YAML = {
    "plain": "where: at.x § 5",
    "plain in a list": "- one\n- two §\n",
    "plain in brackets": "a: [one, t§o, three]",
    "plain key": "k§y: 1",
    "plain behind a wide character": "a: 😀😀 §",
    "plain behind a tab": "a: x\ty §",
    "plain over lines": "a: one\n  two § three\n  four",
    "plain over lines, at the start of a line": "a: one\n  § two",
    "plain over lines, at the end of a line": "a: one §   \n  two",
    "plain over empty lines": "a: one\n\n\n    two\n\n  three §",
    "plain over lines that end CRLF": "a: one\r\n  two\r\n\r\n  thr§e\r\n",
    "plain in brackets over lines": "a: [one\n two §, x]",
    "single quoted": "a: 'one § two'",
    "single quoted behind quotes": "a: 'it''s ''§'''",
    "single quoted over lines": "a: 'one  \n   it''s\n\n   two §'",
    "single quoted beginning with blanks": "a: '   §'",
    "single quoted beginning with a break": "a: '\n  §'",
    "single quoted ending with a break": "a: '§\n  '",
    "single quoted with tabs": "a: 'x\t\t§'",
    "single quoted with a backslash": "a: 'C:\\§'",
    "single quoted key": "'it''s §': 1",
    "double quoted": 'a: "one § two"',
    "double quoted behind a quote": 'a: "say \\"§\\""',
    "double quoted behind short escapes": r'a: "\0x\a\b\t\n\v\f\r\e\ \"\/\\\N\_\L\P§"'.replace(r"\0x", ""),
    "double quoted behind numbered escapes": r'a: "\x41\u00e9\U0001F600§"',
    "double quoted behind an escaped tab": 'a: "\\\t§"',
    "double quoted over lines": 'a: "one\n  two\n\n  \\x41 §"',
    "double quoted with an escaped break": 'a: "one \\\n    two§"',
    "double quoted with an escaped break and empty lines": 'a: "one \\\n\n\n    two§"',
    "double quoted with an escaped break and blank": 'a: "one\\\n  \\  two§"',
    "double quoted over lines that end CRLF": 'a: "one\r\n  two \\\r\n  three\r\n\r\n  f§ur"\r\n',
    "double quoted with blanks before the break": 'a: "one \t \n \t two §"',
    "literal": "a: |\n  one\n  two §\n",
    "literal, more indented": "a: |\n  one\n      two §\n  three\n",
    "literal behind empty lines": "a: |\n\n\n  one\n\n     \n  two §\n",
    "literal, stripped": "a: |-\n  one\n  §",
    "literal, kept": "a: |+\n  §\n\n\n",
    "literal with an indentation given": "a: |2\n      one\n   two §\n",
    "literal with an indentation given, nested": "a:\n   - b: |1-\n        one\n      two §\n",
    "literal with an indentation and leading empty lines": "a: |2+\n\n    \n    one §\n\n",
    "literal with a remark in the header": "a: |  # remark\n  one §\n",
    "literal with tabs": "a: |\n  one\t\t§\n  \ttwo\n",
    "literal behind a wide character": "a: |\n  😀 §\n",
    "literal with CRLF": "a: |\r\n  one\r\n\r\n  two §\r\n",
    "literal in a list": "- |\n one\n §\n- x\n",
    "literal at the top": "|\n one\n §\n",
    "literal behind a document marker": "--- |\n one\n §\n",
    "folded": "a: >\n  one\n  two §\n  three\n",
    "folded over empty lines": "a: >\n  one\n\n  two\n\n\n  three §\n",
    "folded with more indented lines": "a: >\n  one\n    two\n    three\n\n  four\n  five §\n",
    "folded, in a more indented line": "a: >\n  one\n    two §\n  three\n",
    "folded, stripped": "a: >-\n\n  one\n  two §\n\n",
    "folded, kept": "a: >+\n  one §\n\n",
    "folded with CRLF": "a: >-\r\n  one\r\n  two\r\n\r\n  three §\r\n",
    "folded with an indentation given": "a: >1\n   one\n   two\n § three\n",
    "folded with a tab line": "a: >\n  one\n  \ttwo\n  three §\n",
}


@pytest.mark.parametrize("name", YAML)
@pytest.mark.parametrize("fast", [True, False], ids=["fast", "slow"])
def test_the_mark_is_found_where_it_was_written(name: str, fast: bool) -> None:
    text = YAML[name]
    if not fast and "\t" in text and name.startswith("plain"):
        assert parse_yaml(text, "f", fast=False).problems[0].code.code == "P102"  # the slow parser takes no tab here
        return
    document = parse_yaml(text, "file.yaml", fast=fast)
    assert document.problems == ()
    assert document.root is not None
    scalar = _marked(document.root)
    place = scalar.locate(scalar.text.index(MARK))
    before = text[: text.index(MARK)].replace("\r\n", "\n")
    assert (place.line, place.column) == (before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1)
    assert place.text[place.column - 1] == MARK
    assert place.length == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"a": "one § two"}',
        '{"a": "\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041§"}',
        '{"a": "\\ud83d\\ude00\\uD83D\\uDE00§"}',
        '{"😀": ["§"]}',
        '{"\\u0041§": 1}',
    ],
)
def test_the_mark_is_found_in_json(text: str) -> None:
    document = parse_json(text, "file.json")
    assert document.root is not None
    scalar = _marked(document.root)
    assert scalar.locate(scalar.text.index(MARK)).column == text.index(MARK) + 1


def scalar_of(text: str) -> ScalarNode:
    document = parse_yaml(text, "file.yaml")
    assert isinstance(document.root, ScalarNode)
    return document.root


def test_length_covers_what_was_written() -> None:
    scalar = scalar_of(r'"one \x41\u00e9 two"')
    assert scalar.text == "one Aé two"
    assert (scalar.locate(4, 2).column, scalar.locate(4, 2).length) == (6, len(r"\x41\u00e9"))
    assert (scalar.locate(7, 3).column, scalar.locate(7, 3).length) == (17, 3)
    assert scalar.locate(7, 100).length == 3


def test_length_ends_with_the_line() -> None:
    scalar = scalar_of("|\n one two\n three\n")
    place = scalar.locate(4, 8)
    assert (place.line, place.column, place.length) == (2, 6, 3)


def test_the_end_of_the_text_is_a_place() -> None:
    assert scalar_of("one").locate(3).column == 4
    assert scalar_of("'one'").locate(3).column == 5
    assert scalar_of("'it''s'").locate(4).column == 7
    assert scalar_of('""').locate(0).column == 2
    assert scalar_of("one").locate(99).column == 4
    assert scalar_of("one").locate(-1).column == 1
    ended = scalar_of("|-\n one\n two\n").locate(7)
    assert (ended.line, ended.column) == (3, 5)


def test_a_folded_break_is_where_the_line_ends() -> None:
    scalar = scalar_of(">-\n one\n two\n\n three\n")
    assert scalar.text == "one two\nthree"
    assert (scalar.locate(3).line, scalar.locate(3).column) == (2, 5)
    assert (scalar.locate(7).line, scalar.locate(7).column) == (4, 1)


def test_a_broken_walk_claims_no_place() -> None:
    assert place_map("'one'", "'", "other") is None
    assert place_map("no header", "|", "text") is None
    assert place_map('"\\', '"', "x") is None
    assert place_map("|\n", "|", "text") is None


def _marked(node: Node) -> ScalarNode:
    found = [scalar for scalar in _scalars(node) if MARK in scalar.text]
    assert len(found) == 1
    return found[0]


def _scalars(node: Node) -> list[ScalarNode]:
    match node:
        case ScalarNode():
            return [node]
        case SequenceNode():
            return [scalar for item in node.items for scalar in _scalars(item)]
        case MappingNode():
            return [scalar for key, value in node.entries for scalar in (key, *_scalars(value))]
