"""Nodes → typed values, with every problem collected."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from situ.lang.documents import Fields, MappingNode, Node, Reader, parse_json, parse_yaml, substitute
from situ.lang.problems import Problems, render
from situ.lang.records import replace

KEYS = ("name", "engine", "events", "ratio", "durable", "types", "clients", "batch")


def fields_of(text: str) -> tuple[Fields, Problems]:
    problems = Problems()
    fields = Reader(problems).document(parse_yaml(text, "situ.yaml"), optional=KEYS)
    assert fields is not None
    return fields, problems


def said(problems: Problems) -> list[str]:
    return [str(problem) for problem in problems]


def test_a_file_reads_as_described() -> None:
    fields, problems = fields_of(
        "version: 1\nname: demo\nengine: edge\nevents: 500\nratio: 0.5\ndurable: true\ntypes: [A, B]\n"
        "clients:\n  desk: {}\nbatch: {size: 5}\n"
    )
    assert fields.text("name") == "demo"
    assert fields.choice("engine", ("spark", "edge")) == "edge"
    assert fields.integer("events", least=1, most=500) == 500
    assert fields.number("ratio", least=0, most=1) == 0.5
    assert fields.number("events") == 500
    assert fields.boolean("durable") is True
    assert [scalar.text for scalar in fields.scalars("types")] == ["A", "B"]
    assert [key.text for key, _ in fields.entries("clients")] == ["desk"]
    batch = fields.fields("batch", required=("size",))
    assert batch is not None
    assert batch.integer("size") == 5
    assert "name" in fields
    assert "where" not in fields
    assert list(problems) == []


def test_absent_is_the_default_and_no_problem() -> None:
    fields, problems = fields_of("{}")
    assert fields.text("name") is None
    assert fields.text("name", "x") == "x"
    assert fields.choice("engine", ("spark", "edge"), "spark") == "spark"
    assert fields.integer("events", 7) == 7
    assert fields.number("ratio", 0.5) == 0.5
    assert fields.boolean("durable", True) is True
    assert fields.scalar("name") is None
    assert fields.scalars("types") == ()
    assert fields.items("types") == ()
    assert fields.entries("clients") == ()
    assert fields.fields("batch", required=("size",)) is None
    assert fields.node("name") is None
    assert list(problems) == []


def test_false_and_zero_and_empty_are_values() -> None:
    fields, problems = fields_of("durable: false\nevents: 0\nname: ''\n")
    assert fields.boolean("durable", True) is False
    assert fields.integer("events", 7) == 0
    assert fields.text("name", "x") == ""
    assert list(problems) == []


WRONG: list[tuple[str, Callable[[Fields], object], str]] = [
    ("name: 5", lambda f: f.text("name"), "Expected text, found the number `5`."),
    ("name: true", lambda f: f.text("name"), "Expected text, found `true`."),
    ("name:", lambda f: f.text("name"), "Expected text, found nothing."),
    ("name: [a]", lambda f: f.text("name"), "Expected text, found a list."),
    ("name: {a: 1}", lambda f: f.scalar("name"), "Expected text, found a mapping."),
    ("events: x", lambda f: f.integer("events"), "Expected a whole number, found the text `x`."),
    ("events: 1.0", lambda f: f.integer("events"), "Expected a whole number, found the number `1.0`."),
    ("events: true", lambda f: f.integer("events"), "Expected a whole number, found `true`."),
    ("events: '5'", lambda f: f.integer("events"), "Expected a whole number, found the text `5`."),
    ("events: 0", lambda f: f.integer("events", least=1),
     "Expected a whole number of at least 1, found the number `0`."),
    ("events: 9", lambda f: f.integer("events", most=8), "Expected a whole number of at most 8, found the number `9`."),
    ("ratio: 2", lambda f: f.number("ratio", least=0, most=1), "Expected a number from 0 to 1, found the number `2`."),
    ("ratio: false", lambda f: f.number("ratio"), "Expected a number, found `false`."),
    ("durable: yes", lambda f: f.boolean("durable"), "Expected `true` or `false`, found the text `yes`."),
    ("durable: 1", lambda f: f.boolean("durable"), "Expected `true` or `false`, found the number `1`."),
    ("types: A", lambda f: f.items("types"), "Expected a list, found the text `A`."),
    ("types: {a: 1}", lambda f: f.scalars("types"), "Expected a list, found a mapping."),
    ("types: [A, 1]", lambda f: f.scalars("types"), "Expected text, found the number `1`."),
    ("clients: [a]", lambda f: f.entries("clients"), "Expected a mapping (`key: value`), found a list."),
    ("batch: 5", lambda f: f.fields("batch"), "Expected a mapping (`key: value`), found the number `5`."),
    ("name: >\n one\n two\n" + " x" * 60, lambda f: f.items("name"),
     "Expected a list, found the text `one two" + " x" * 26 + "…`."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "read", "message"), WRONG)
def test_wrong_kinds_in_plain_words(text: str, read: Callable[[Fields], object], message: str) -> None:
    fields, problems = fields_of(text)
    assert not read(fields) or "types: [A" in text
    (problem,) = problems
    assert problem.code.code == "P105"
    assert problem.message == message


def test_a_remedy_where_quotes_are_the_trouble() -> None:
    fields, problems = fields_of("name: 5\nevents: '5'\nratio: x\n")
    fields.text("name")
    fields.integer("events")
    fields.number("ratio")
    assert [problem.hint for problem in problems] == [
        "Put it in quotes if it is meant as text.",
        "Write the number without quotes.",
        "",
    ]


@pytest.mark.parametrize("text", [".inf", "-.inf", ".nan", "1e999", "9" * 401])
def test_numbers_are_finite(text: str) -> None:
    fields, problems = fields_of(f"ratio: {text}\nevents: {text}\n")
    assert fields.number("ratio") is None
    assert fields.integer("events") is None
    assert [problem.code.code for problem in problems] == ["P115", "P115"]


def test_unknown_keys_name_the_nearest_or_all() -> None:
    problems = Problems()
    document = parse_yaml("nmae: x\nwhatever: y\n", "situ.yaml")
    Reader(problems).document(document, optional=("name", "zone"))
    near, far = problems
    assert str(near) == "situ.yaml:1:1: P103 There is no key `nmae` here."
    assert near.hint == "Did you mean `name`?"
    assert str(far) == "situ.yaml:2:1: P103 There is no key `whatever` here."
    assert far.hint == "The keys known here are `version`, `name` or `zone`."


def test_missing_keys_are_shown_at_the_parent_key() -> None:
    problems = Problems()
    read = Reader(problems)
    fields = read.document(parse_yaml("batch:\n  size: 1\n", "situ.yaml"), required=("name",), optional=("batch",))
    assert fields is not None
    fields.fields("batch", required=("events", "linger"), optional=("size",))
    assert said(problems) == [
        "situ.yaml:1:1: P104 The key `name` is missing here.",
        "situ.yaml:1:1: P104 The key `events` is missing in `batch`.",
        "situ.yaml:1:1: P104 The key `linger` is missing in `batch`.",
    ]
    assert render(list(problems)[1]).splitlines()[1:3] == ["  | batch:", "  | ^^^^^"]


def test_a_choice_names_the_nearest_or_all() -> None:
    fields, problems = fields_of("engine: sprak\nname: xyz\n")
    assert fields.choice("engine", ("spark", "edge"), "spark") == "spark"
    assert fields.choice("name", ("spark", "edge")) is None
    near, far = problems
    assert (near.code.code, near.message, near.hint) == (
        "P119",
        "`sprak` is not possible here.",
        "Did you mean `spark`?",
    )
    assert far.hint == "Possible are `spark` or `edge`."


@pytest.mark.parametrize("version", ["2", "1.0", "'1'", "0x1", "true", "one", "[1]", ""])
def test_another_version_is_refused(version: str) -> None:
    _, problems = fields_of(f"version: {version}\n")
    (problem,) = problems
    assert problem.code.code == "P111"
    assert problem.hint == "Write `version: 1`, or use a release that reads the file."


def test_a_document_that_cannot_be_read_gives_its_own_problems_only() -> None:
    problems = Problems()
    assert Reader(problems).document(parse_yaml("a: [", "f"), required=("name",)) is None
    assert [problem.code.code for problem in problems] == ["P102"]


def test_problems_of_the_text_and_of_the_content_come_together() -> None:
    problems = Problems()
    fields = Reader(problems).document(parse_yaml("name: 5\nname: x\nnmae: y\n", "f"), required=("name",))
    assert fields is not None
    fields.text("name")
    assert [problem.code.code for problem in problems] == ["P106", "P103", "P105"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "text"])
def test_a_file_is_a_mapping(text: str) -> None:
    problems = Problems()
    assert Reader(problems).document(parse_yaml(text, "f"), required=("name",)) is None
    assert [problem.code.code for problem in problems] == ["P105"]


def test_json_reads_the_same() -> None:
    problems = Problems()
    fields = Reader(problems).document(
        parse_json('{"version": 1, "name": "x", "events": "5"}', "f.json"), optional=KEYS
    )
    assert fields is not None
    assert fields.text("name") == "x"
    assert fields.integer("events") is None
    assert said(problems) == ["f.json:1:39: P105 Expected a whole number, found the text `5`."]


class TestEnvironment:
    def node(self, text: str) -> Node:
        root = parse_yaml(text, "f").root
        assert root is not None
        node = substitute(root, {"SECRET": "12345", "WORD": "hunter2"}, Problems())
        assert isinstance(node, MappingNode)
        found = node.get("key")
        assert found is not None
        return found

    def test_text_that_looks_like_a_number_is_still_text(self) -> None:
        problems = Problems()
        assert Reader(problems).text(self.node("key: ${SECRET}")) == "12345"
        assert Reader(problems).integer(self.node("key: ${SECRET}")) == 12345
        assert list(problems) == []

    def test_a_secret_is_not_shown(self) -> None:
        problems = Problems()
        read = Reader(problems)
        read.integer(self.node("key: ${WORD}"))
        read.choice(self.node("key: ${WORD}"), ("a", "hunter"))
        read.items(self.node("key: x${SECRET}"))
        read.number(self.node("key: 1e999${SECRET}"))
        document = parse_yaml("version: ${SECRET}", "f")
        assert document.root is not None
        read.document(replace(document, root=substitute(document.root, {"SECRET": "12345"}, Problems())))
        assert len(problems) == 5
        shown = "\n".join(render(problem) for problem in problems)
        assert "hunter" not in shown.replace("Possible are `a` or `hunter`", "")
        assert "12345" not in shown


def test_hints_stay_cheap_in_a_hostile_file() -> None:
    text = "\n".join(f"nam{number}: 1" for number in range(300))
    _, problems = fields_of(text)
    assert len(problems) == 300
    assert [bool(problem.values["nearest"]) for problem in problems] == [True] * 100 + [False] * 200
