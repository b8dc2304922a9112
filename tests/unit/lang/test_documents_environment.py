"""``${NAME}`` in values."""

from __future__ import annotations

import pytest

from situ.lang.documents import DocumentLimits, MappingNode, Node, ScalarNode, parse_yaml, substitute, to_data
from situ.lang.problems import Problems

ENVIRONMENT = {"HOST": "example.org", "PORT": "4222", "EMPTY": "", "TRICK": "${HOST}", "_x1": "one", "YES": "true"}


def substituted(text: str, limits: DocumentLimits | None = None) -> tuple[Node, Problems]:
    root = parse_yaml(text, "situ.yaml").root
    assert root is not None
    problems = Problems()
    return substitute(root, ENVIRONMENT, problems, limits or DocumentLimits()), problems


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("nats://${HOST}:${PORT}", "nats://example.org:4222"),
        ("${HOST}", "example.org"),
        ("${HOST}${HOST}", "example.orgexample.org"),
        ("'${PORT}'", "4222"),
        ("${PORT}", 4222),
        ("1${PORT}", 14222),
        ("${YES}", True),
        ("${EMPTY}", None),
        ("'${EMPTY}'", ""),
        ("a${EMPTY}b", "ab"),
        ("${_x1}", "one"),
        ("$${HOST}", "${HOST}"),
        ("$$${HOST}", "$${HOST}"),
        ("$${HOST}${PORT}", "${HOST}4222"),
        ("${TRICK}", "${HOST}"),
        ("$HOST and $ and $$", "$HOST and $ and $$"),
        ("100 $", "100 $"),
    ],
)
def test_values(text: str, expected: object) -> None:
    node, problems = substituted(f"key: {text}\n")
    assert to_data(node) == {"key": expected}
    assert list(problems) == []


def test_everywhere_but_in_keys() -> None:
    node, problems = substituted("'${HOST}': [1, {a: '${PORT}'}]\nb: {c: ['${HOST}']}\n")
    assert to_data(node) == {"${HOST}": [1, {"a": "4222"}], "b": {"c": ["example.org"]}}
    assert list(problems) == []


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("a: 1\nb: x ${NONE} y\n", "P109", (2, 6, 7)),
        ('b: "\\x41\\t${NONE}"\n', "P109", (1, 11, 7)),
        ("b: |\n  one\n  two ${NONE}\n", "P109", (3, 7, 7)),
        ("b: x ${}\n", "P113", (1, 6, 3)),
        ("b: ${1A}\n", "P113", (1, 4, 5)),
        ("b: ${A-b} c\n", "P113", (1, 4, 6)),
        ("b: ${HOST\n", "P113", (1, 4, 6)),
        ("b: ${HOST:-default}\n", "P113", (1, 4, 16)),
    ],
)
def test_a_reference_that_cannot_be_replaced_stays(text: str, code: str, place: tuple[int, int, int]) -> None:
    node, problems = substituted(text)
    (problem,) = problems
    assert problem.code.code == code
    assert problem.hint
    assert problem.location is not None
    assert (problem.location.line, problem.location.column, problem.location.length) == place
    assert node == parse_yaml(text, "situ.yaml").root


def test_all_problems_at_once() -> None:
    _, problems = substituted("a: ${ONE} ${TWO} ${HOST}\nb: ${THREE}\n")
    assert [problem.values["name"] for problem in problems] == ["ONE", "TWO", "THREE"]


def test_places_lead_back_to_the_file() -> None:
    node, _ = substituted("where: host = '${HOST}' AND § > 5\n")
    assert isinstance(node, MappingNode)
    scalar = node.get("where")
    assert isinstance(scalar, ScalarNode)
    assert scalar.substituted
    assert scalar.location.column == 8
    assert scalar.locate(scalar.text.index("§")).column == 29
    inside = scalar.locate(scalar.text.index("org"), 3)
    assert (inside.column, inside.length) == (16, len("${HOST}"))
    across = scalar.locate(scalar.text.index("= '"), 10)
    assert (across.column, across.length) == (13, 3)
    assert scalar.locate(len(scalar.text)).column == 34


def test_places_around_an_empty_replacement() -> None:
    node, _ = substituted("a: x${EMPTY}§\n")
    assert isinstance(node, MappingNode)
    scalar = node.get("a")
    assert isinstance(scalar, ScalarNode)
    assert scalar.locate(1).column == 13
    assert scalar.locate(0).column == 4


def test_growth_is_bounded() -> None:
    limits = DocumentLimits(size=24)
    node, problems = substituted("[ '${HOST}', '${HOST}', '${HOST}' ]", limits)
    assert to_data(node) == ["example.org", "example.org", "${HOST}"]
    assert [problem.code.code for problem in problems] == ["P108"]


def test_reports_are_bounded() -> None:
    _, problems = substituted("a: '" + "${NONE} " * 5_000 + "'", DocumentLimits(problems=10))
    assert [problem.code.code for problem in problems] == ["P109"] * 10 + ["P116"]


def test_half_a_character_does_not_come_in() -> None:
    root = parse_yaml("a: ${BAD}", "situ.yaml").root
    assert root is not None
    problems = Problems()
    substitute(root, {"BAD": "x\udcff"}, problems)
    assert [problem.code.code for problem in problems] == ["P114"]
