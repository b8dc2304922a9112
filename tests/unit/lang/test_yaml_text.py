"""YAML text → nodes: values, places, what is refused."""

from __future__ import annotations

import time

import pytest

from situ.lang.documents import (
    Document,
    DocumentLimits,
    MappingNode,
    Node,
    ScalarNode,
    SequenceNode,
    parse_yaml,
    to_data,
)
from situ.lang.problems import Location


def root(text: str | bytes) -> Node:
    document = parse_yaml(text, "file.yaml")
    assert document.problems == ()
    assert document.root is not None
    return document.root


def value(text: str) -> object:
    node = root(f"key: {text}\n")
    assert isinstance(node, MappingNode)
    found = node.get("key")
    assert isinstance(found, ScalarNode)
    return found.value


def codes(document: Document) -> list[str]:
    return [problem.code.code for problem in document.problems]


def only_place(text: str | bytes, code: str) -> tuple[int, int]:
    document = parse_yaml(text, "file.yaml")
    assert codes(document) == [code]
    place = document.problems[0].location
    assert place is not None
    return place.line, place.column


class TestScalars:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("true", True), ("True", True), ("TRUE", True), ("false", False), ("False", False), ("FALSE", False),
            ("null", None), ("Null", None), ("NULL", None), ("~", None), ("", None),
            ("0", 0), ("-0", 0), ("42", 42), ("+42", 42), ("-42", -42), ("0o17", 15), ("0xFf", 255),
            ("1.5", 1.5), ("-1.5e3", -1500.0), (".5", 0.5), ("5.", 5.0), ("1e3", 1000.0), ("1E-2", 0.01), ("+.5", 0.5),
        ],
    )  # fmt: skip
    def test_values_of_the_core_schema(self, text: str, expected: object) -> None:
        found = value(text)
        assert found == expected
        assert type(found) is type(expected)

    @pytest.mark.parametrize(
        "text",
        [
            "on", "off", "yes", "no", "y", "n", "On", "NO", "tRUE", "nULL", "inf", "nan", "=", "<<", ".", "+",
            "010", "-010", "00", "010.5", "1_000", "1,5", "1.2.3", "--1", "0b101", "0o8", "0xg", "-0x1F",
            "1e", "e1", "1.5e", "12:30:00", "190:20", "2026-11-01", "2026-11-01T12:00:00Z", "5 s", "90 km/h",
            "\u0663", "\uff11\uff12", ".inf", "-.inf", ".nan", ".NaN", "1e999", "-1e999",
        ],
    )  # fmt: skip
    def test_all_else_is_text(self, text: str) -> None:
        assert value(text) == text

    @pytest.mark.parametrize("text", ["'true'", '"42"', "'null'", '""', "|\n  42", ">-\n  true"])
    def test_quoted_is_always_text(self, text: str) -> None:
        assert isinstance(value(text), str)

    def test_the_text_stays_beside_the_value(self) -> None:
        node = root("1.10")
        assert isinstance(node, ScalarNode)
        assert (node.text, node.value, node.quoted) == ("1.10", 1.1, False)

    def test_the_longest_number(self) -> None:
        assert value("9" * 400) == int("9" * 400)
        assert value("9" * 401) == "9" * 401
        assert value("0." + "3" * 399) == "0." + "3" * 399


class TestStructure:
    def test_nested(self) -> None:
        text = (
            "clients:\n  desk:\n    types: [A, B]\n    where: at.x < 5 m\n  reader: {on: true}\nempty: []\nnone: {}\n"
        )
        assert to_data(root(text)) == {
            "clients": {"desk": {"types": ["A", "B"], "where": "at.x < 5 m"}, "reader": {"on": True}},
            "empty": [],
            "none": {},
        }

    def test_order_is_kept(self) -> None:
        node = root("z: 1\na: 2\nm: 3\n")
        assert isinstance(node, MappingNode)
        assert [key.text for key, _ in node.entries] == ["z", "a", "m"]

    def test_mapping_by_name(self) -> None:
        node = root("a: 1\nb: [x]\n")
        assert isinstance(node, MappingNode)
        assert "a" in node
        assert "c" not in node
        assert isinstance(node.get("b"), SequenceNode)
        assert node.get("c") is None
        key = node.key("b")
        assert key is not None
        assert (key.location.line, key.location.column) == (2, 1)
        assert node.key("c") is None

    def test_collections_know_the_key_they_stand_under(self) -> None:
        node = root("a:\n  b: [x, {c: 1}]\n")
        assert isinstance(node, MappingNode)
        assert node.under is None
        inner = node.get("a")
        assert isinstance(inner, MappingNode)
        assert inner.under is not None
        assert inner.under.text == "a"
        items = inner.get("b")
        assert isinstance(items, SequenceNode)
        assert items.under is not None
        assert items.under.text == "b"
        last = items.items[1]
        assert isinstance(last, MappingNode)
        assert last.under is None

    @pytest.mark.parametrize(
        "text", ["", "\n\n", "# only a remark\n", "---\n", "---\n...\n", "null", "\ufeff", b"\xef\xbb\xbf"]
    )
    def test_an_empty_document_is_nothing(self, text: str | bytes) -> None:
        node = root(text)
        assert isinstance(node, ScalarNode)
        assert node.value is None
        assert str(node.location) == f"file.yaml:{node.location.line}:{node.location.column}"

    @pytest.mark.parametrize("text", ["---\na: 1\n", "a: 1\n...\n", "# x\n---\na: 1\n...\n# y\n", "\ufeffa: 1\n"])
    def test_document_markers_and_byte_order_mark(self, text: str) -> None:
        assert to_data(root(text)) == {"a": 1}
        assert to_data(root(text.encode())) == {"a": 1}

    def test_places_do_not_count_in_equality(self) -> None:
        assert root("a: [1, x]\n") == root("# remark\n\na:\n  - 1\n  - 'x'\n")
        assert hash(root("a: [1, x]")) == hash(root("{a: [1, x]}"))
        assert root("a: 1") != root("a: 1.0")
        assert root("a: 1") != root("a: '1'")


class TestPlaces:
    def test_of_every_kind_of_node(self) -> None:
        text = "# remark\nname: demo\nlist:\n  - one\n  - {a: 1, b: two}\n"
        node = root(text)
        assert isinstance(node, MappingNode)
        assert node.location == Location(file="file.yaml", line=2, column=1, length=10, text="name: demo")
        items = node.get("list")
        assert isinstance(items, SequenceNode)
        assert (items.location.line, items.location.column, items.location.length) == (4, 3, 5)
        braces = items.items[1]
        assert isinstance(braces, MappingNode)
        assert braces.location == Location(file="file.yaml", line=5, column=5, length=14, text="  - {a: 1, b: two}")
        two = braces.get("b")
        assert two is not None
        assert (two.location.column, two.location.length) == (15, 3)

    def test_of_nothing(self) -> None:
        node = root("a:\nb: 1\n")
        assert isinstance(node, MappingNode)
        nothing = node.get("a")
        assert nothing is not None
        assert (nothing.location.line, nothing.location.column, nothing.location.length) == (1, 3, 1)

    @pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
    def test_lines_end_as_editors_end_them(self, newline: str) -> None:
        node = root(newline.join(["a: 1", "", "b: 😀", "c: last"]))
        assert isinstance(node, MappingNode)
        key = node.key("c")
        assert key is not None
        assert key.location == Location(file="file.yaml", line=4, column=1, length=1, text="c: last")
        face = node.get("b")
        assert face is not None
        assert (face.location.line, face.location.column, face.location.length) == (3, 4, 1)

    def test_a_line_is_shared_by_all_places_in_it(self) -> None:
        node = root("[" + "x, " * 1000 + "y]")
        assert isinstance(node, SequenceNode)
        assert node.items[0].location.text is node.items[-1].location.text

    def test_a_byte_order_mark_takes_no_column(self) -> None:
        node = root("\ufeffname: demo")
        assert isinstance(node, MappingNode)
        assert node.location.column == 1
        assert node.location.text == "name: demo"


class TestRefused:
    """Hostile files have their own tests; here is what a place or a rule needs to be checked for."""

    @pytest.mark.parametrize(
        ("text", "code", "place"),
        [
            ("a:\n\tb: 1\n", "P102", (2, 1)),
            ("a: 'x\n", "P102", (1, 4)),
            ("a: [1, 2\n", "P102", (1, 4)),
            ("a: 1\nb: 2\na: 3\n", "P106", (3, 1)),
            ("a: &x 1\n", "P107", (1, 4)),
            ("a: !!int 1\n", "P107", (1, 4)),
            ("a: *x\n", "P107", (1, 4)),
            ("b:\n  <<: {a: 1}\n", "P107", (2, 3)),
            ("%YAML 1.2\n---\na: 1\n", "P107", (1, 1)),
            (b"a: 1\nb: \xff\n", "P110", (2, 4)),
            ("a: 1\nb: \x07\n", "P114", (2, 4)),
            ("a: \ud800\n", "P114", (1, 4)),
            ("a: 1\n---\nb: 1\n", "P117", (2, 1)),
            ("a: 1\n2: 1\n", "P118", (2, 1)),
        ],
    )
    def test_at_its_place(self, text: str | bytes, code: str, place: tuple[int, int]) -> None:
        assert only_place(text, code) == place

    def test_the_second_of_two_keys_names_the_line_of_the_first(self) -> None:
        document = parse_yaml("a: 1\n\nb: 2\na: 3\n", "file.yaml")
        assert document.problems[0].values == {"name": "a", "line": 1}
        assert document.root is not None
        assert to_data(document.root) == {"a": 1, "b": 2}

    def test_a_merge_key_in_quotes_is_a_name(self) -> None:
        assert to_data(root('"<<": 1')) == {"<<": 1}

    def test_an_alias_is_reported_once_for_all_its_places(self) -> None:
        document = parse_yaml("[*a, *a, *b, *a]", "file.yaml")
        assert [problem.values["feature"] for problem in document.problems] == ["the alias `*a`", "the alias `*b`"]
        assert document.root is None

    def test_no_root_without_certain_meaning(self) -> None:
        assert parse_yaml("a: &x 1", "f").root is not None
        for text in ("a: *x", "a: !x 1", "<<: {}", "a: [", "a: \0", "%X\n---\na: 1"):
            assert parse_yaml(text, "f").root is None

    def test_an_anchored_value_keeps_its_exact_place(self) -> None:
        document = parse_yaml("a: &x 'b§'\n", "f")
        assert isinstance(document.root, MappingNode)
        scalar = document.root.get("a")
        assert isinstance(scalar, ScalarNode)
        assert scalar.locate(1).column == 9

    def test_the_value_of_a_refused_key_is_still_checked(self) -> None:
        assert codes(parse_yaml("1: {a: 1, a: 2}", "f")) == ["P118", "P106"]
        assert codes(parse_yaml("b: 1\nb: {a: 1, a: 2}", "f")) == ["P106", "P106"]
        assert codes(parse_yaml("? {a: 1, a: 2}\n: {b: 1, b: 2}\n", "f")) == ["P106", "P118", "P106"]


class TestLimits:
    def test_size_counts_bytes_or_characters(self) -> None:
        limits = DocumentLimits(size=5)
        assert codes(parse_yaml("ééééé", "f", limits)) == []
        assert codes(parse_yaml("éééééé", "f", limits)) == ["P108"]
        assert codes(parse_yaml("ééé".encode(), "f", limits)) == ["P108"]

    def test_depth(self) -> None:
        limits = DocumentLimits(depth=3)
        assert codes(parse_yaml("[[[1]]]", "f", limits)) == []
        assert codes(parse_yaml("[[[[1]]]]", "f", limits)) == ["P108"]
        assert codes(parse_yaml("a: {b: [1]}", "f", limits)) == []
        assert codes(parse_yaml("a: {b: [c: 1]}", "f", limits)) == ["P108"]

    def test_nodes_count_keys_and_collections(self) -> None:
        assert codes(parse_yaml("{a: [1, 2]}", "f", DocumentLimits(nodes=5))) == []
        assert codes(parse_yaml("{a: [1, 2]}", "f", DocumentLimits(nodes=4))) == ["P108"]

    def test_problems(self) -> None:
        document = parse_yaml("{a: 1, a: 2, a: 3, a: 4}", "f", DocumentLimits(problems=2))
        assert codes(document) == ["P106", "P106", "P116"]
        assert document.root is None

    @pytest.mark.parametrize("depth", [0, 129])
    def test_a_depth_that_walks_cannot_follow_is_no_limit(self, depth: int) -> None:
        with pytest.raises(ValueError, match="depth"):
            DocumentLimits(depth=depth)

    def test_walks_follow_the_deepest_document(self) -> None:
        document = parse_yaml("[" * 128 + "]" * 128, "f", DocumentLimits(depth=128))
        assert document.root is not None
        assert str(to_data(document.root)) == "[" * 128 + "]" * 128
        assert document.root == parse_yaml("[" * 128 + "]" * 128, "f", DocumentLimits(depth=128)).root
        assert "items" in repr(document.root)


CORPUS = [
    "a: 1\nb:\n- x\n- y: z\n  w: |\n    text\n\n    more\n- - nested\n",
    "'single': \"double\\n\\u00e9\"\nfolded: >-\n  one\n  two\n\n  three\nplain: goes\n  on here\n",
    "{a: [1, 2, {b: c}], 'd': \"e\", f: ~}\n",
    "? explicit\n: value\n? other\n",
    "key:\n  - a\n  -\n  - b\nlast:\n",
    "--- # remark\nx: 'it''s'\r\ny: >+\r\n  kept\r\n\r\n",
    "a: 😀\nüber: ñ\n",
    "- |2\n   indented\n  less\n- >1-\n  folded\n",
]


@pytest.mark.parametrize("text", CORPUS)
def test_both_parsers_read_alike(text: str) -> None:
    fast, slow = parse_yaml(text, "f"), parse_yaml(text, "f", fast=False)
    assert fast.root is not None
    assert fast.root == slow.root
    assert _places(fast.root) == _places(slow.root)
    assert fast.problems == slow.problems == ()


def test_a_folder_of_five_hundred_files_is_read_in_seconds() -> None:
    client = (
        "  desk-{n}:\n    context: us\n    scopes: {{tenant: security, rest: any}}\n"
        '    subscriptions: {{sightings: {{types: [Sighting, Reading], where: "at.x < 5 m", durable: true}}}}\n'
    )
    text = "version: 1\nclients:\n" + "".join(client.format(n=number) for number in range(12))
    assert text.count("\n") == 50
    start = time.process_time()
    for number in range(500):
        assert parse_yaml(text, f"clients/{number}.yaml").problems == ()
    assert time.process_time() - start < 5  # on two cores that others use, too


def _places(node: Node) -> list[Location]:
    match node:
        case ScalarNode():
            return [node.location]
        case SequenceNode():
            return [node.location, *(place for item in node.items for place in _places(item))]
        case MappingNode():
            inner = (place for key, child in node.entries for place in (key.location, *_places(child)))
            return [node.location, *inner]
