"""Rows from real XML files: what paths find, what becomes a struct or a list, and what hostile files get."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems, SituError
from situ.lang.types.resolve import load_types
from situ.sources import Source, load_sources
from situ.tables import files as elements_module
from situ.tables.reader import TableReader
from tests.project_files import write

TYPES = load_types(
    [
        parse_yaml(
            "types: {Door: {id: string, at: Point m}, Named: {name: optional string, size: optional int}}", "t.yaml"
        )
    ],
    Problems(),
)
FLOOR = """<?xml version="1.0" encoding="UTF-8"?>
<site name="north">
  <!-- no row -->
  <floor id="ground">
    <room id="lobby" security="public" seats="8"><box x1="0" y1="0" x2="8" y2="6"/><tag>a</tag><tag> b </tag></room>
    <room id="lab" security="restricted">
      <box><x1>8</x1><y1>9</y1><x2>16</x2><y2>15.5</y2></box>
      <note>Do not <b>touch</b>!</note>
    </room>
  </floor>
  <floor id="first"><room id="attic" security=""><empty/></room></floor>
</site>
"""


def source(body: str) -> Source:
    problems = Problems()
    found = load_sources([parse_yaml(f"pull: {{s: {body}}}", "sources/a.yaml")], TYPES, problems)
    assert not list(problems), "\n".join(map(str, problems))
    return found["s"]


def read(folder: Path, columns: str, rows: str = "//room", text: str | bytes = FLOOR) -> list[dict[str, Any]]:
    (folder / "floor.xml").write_bytes(text if isinstance(text, bytes) else text.encode())
    reading = TableReader(folder, {})
    body = f'{{xml: floor.xml, rows: "{rows}", columns: {{{columns}}}}}'
    return [dict(row) for row in reading.read(source(body)).table.rows]


def refusal(folder: Path, text: str | bytes, columns: str = "id: string", rows: str = "//room") -> str:
    with pytest.raises(SituError) as caught:
        read(folder, columns, rows, text)
    assert caught.value.hint
    return str(caught.value).partition(": ")[2]


class TestPaths:
    @pytest.mark.parametrize(
        ("rows", "found"),
        [
            ("//room", ["lobby", "lab", "attic"]),
            ("/site/floor/room", ["lobby", "lab", "attic"]),
            ("site/floor[@id='first']/room", ["attic"]),
            ("//floor/room[1]", ["lobby", "attic"]),
            ("//room[box]", ["lobby", "lab"]),
            ("//floor", ["ground", "first"]),
            ("//door", []),
        ],
    )
    def test_rows(self, tmp_path: Path, rows: str, found: list[str]) -> None:
        assert [row["id"] for row in read(tmp_path, "id: string", rows)] == found

    @pytest.mark.parametrize(
        ("column", "found"),
        [
            ("{type: string, xpath: '@id'}", ["lobby", "lab", "attic"]),
            ("{type: string, xpath: ../@id}", ["ground", "ground", "first"]),
            ("{type: string, xpath: ../../@name}", ["north", "north", "north"]),
            ("{type: optional string, xpath: ../../../@name}", [None, None, None]),
            ("{type: optional double m, xpath: box/@x2}", [8.0, None, None]),
            ("{type: optional double, xpath: box/x2/text()}", [None, 16.0, None]),
            ("{type: optional string, xpath: note}", [None, "Do not touch!", None]),
            ("{type: optional int, xpath: '@seats'}", [8, None, None]),
            ("{type: optional int, xpath: empty}", [None, None, None]),
            ("{type: '[string]', xpath: tag}", [["a", "b"], [], []]),
            ("{type: '[string]', xpath: ../room/@id}", [["lobby", "lab"], ["lobby", "lab"], ["attic"]]),
        ],
    )
    def test_cells(self, tmp_path: Path, column: str, found: list[Any]) -> None:
        assert [row.get("a") for row in read(tmp_path, f"a: {column}")] == found

    def test_without_a_path_it_is_the_attribute_or_element_of_that_name(self, tmp_path: Path) -> None:
        assert read(tmp_path, "id: string, security: string, note: optional string, tag: '[string]'")[:2] == [
            {"id": "lobby", "security": "public", "tag": ["a", "b"]},
            {"id": "lab", "security": "restricted", "note": "Do not touch!", "tag": []},
        ]


class TestStructs:
    def test_of_attributes_and_of_elements(self, tmp_path: Path) -> None:
        assert [row.get("area") for row in read(tmp_path, "area: {type: optional Box m, xpath: box}")] == [
            {"x1": 0.0, "y1": 0.0, "x2": 8.0, "y2": 6.0},
            {"x1": 8.0, "y1": 9.0, "x2": 16.0, "y2": 15.5},
            None,
        ]

    def test_structs_in_structs_and_lists_of_them(self, tmp_path: Path) -> None:
        text = (
            '<r><room><door id="d1"><at x="1" y="2"/></door><door id="d2" ><at><x>3</x><y>4</y></at></door></room></r>'
        )
        assert read(tmp_path, "door: [Door]", text=text) == [
            {"door": [{"id": "d1", "at": {"x": 1.0, "y": 2.0}}, {"id": "d2", "at": {"x": 3.0, "y": 4.0}}]}
        ]

    def test_a_struct_that_is_a_list_takes_all_elements(self, tmp_path: Path) -> None:
        text = '<r><room><shape><p x="0" y="0"/><p x="4" y="0"/><p x="0" y="3"/></shape></room></r>'
        assert read(tmp_path, "shape: Polygon m", text=text) == [
            {"shape": {"points": [{"x": 0.0, "y": 0.0}, {"x": 4.0, "y": 0.0}, {"x": 0.0, "y": 3.0}]}}
        ]

    def test_an_attribute_that_is_not_there(self, tmp_path: Path) -> None:
        text = '<r><room id="a"><box x1="0" y1="0" x2="8"/></room></r>'
        assert refusal(tmp_path, text, "area: {type: Box m, xpath: box}").startswith("S112 Row 1 of the source `s`")
        assert read(tmp_path, "box: Named", text='<r><room><box name="n"/></room></r>') == [{"box": {"name": "n"}}]


def test_namespaces(tmp_path: Path) -> None:
    text = '<f:r xmlns:f="urn:f" xmlns="urn:g"><room id="a"><name>x</name></room></f:r>'
    assert read(tmp_path, "id: string, name: string", "//{*}room", text) == [{"id": "a", "name": "x"}]
    assert read(tmp_path, "id: string", "//{urn:g}room", text) == [{"id": "a"}]
    assert read(tmp_path, "id: string", "//room", text) == []


def test_encodings(tmp_path: Path) -> None:
    text = '<?xml version="1.0" encoding="{}"?><r><room id="Küche"/></r>'
    for encoding in ("utf-8", "iso-8859-1", "utf-16"):
        assert read(tmp_path, "id: string", text=text.format(encoding).encode(encoding)) == [{"id": "Küche"}]


class TestTrouble:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", "no element found"),
            ("<a>", "no element found"),
            ("<a><b></a>", "mismatched tag"),
            ("nothing", "syntax error"),
            ("<a>&nope;</a>", "undefined entity"),
            (b"<a>\xff</a>", "not well-formed (invalid token)"),
            (b"\x00\x01", "not well-formed (invalid token)"),
        ],
    )
    def test_what_is_no_xml(self, tmp_path: Path, text: str | bytes, expected: str) -> None:
        assert refusal(tmp_path, text) == f"S111 The source `s` cannot be read: line 1: {expected} (floor.xml)."

    def test_no_file(self, tmp_path: Path) -> None:
        reading = TableReader(tmp_path, {})
        with pytest.raises(SituError, match="no such file"):
            reading.read(source("{xml: gone.xml, rows: //a, columns: {id: string}}"))

    def test_something_that_is_there_twice(self, tmp_path: Path) -> None:
        text = '<r><room id="a"><name>x</name><name>y</name></room></r>'
        assert "row 1: `name` is there 2 times" in refusal(tmp_path, text, "name: string")
        assert "row 1: `*` is there 2 times" in refusal(tmp_path, text, "name: {type: string, xpath: '*'}")

    @pytest.mark.parametrize(
        "document_type",
        [
            '<!DOCTYPE r [<!ENTITY a "1234567890"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>',
            '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]>',
            '<!DOCTYPE r SYSTEM "http://example.org/r.dtd">',
            '<!DOCTYPE r [<!ENTITY % a SYSTEM "http://example.org/a"> %a;]>',
            "<!DOCTYPE r>",
        ],
    )
    def test_document_types_are_refused(self, tmp_path: Path, document_type: str) -> None:
        text = f'{document_type}<r><room id="&b;"/></r>'
        assert "it has a document type" in refusal(tmp_path, text)

    def test_a_bomb_takes_no_time(self, tmp_path: Path) -> None:
        lines = "".join(f'<!ENTITY x{n} "{f"&x{n - 1};" * 10}">' for n in range(1, 30))
        started = time.monotonic()
        refusal(tmp_path, f'<!DOCTYPE r [<!ENTITY x0 "ha">{lines}]><r><room id="&x29;"/></r>')
        assert time.monotonic() - started < 1

    def test_depth_is_bounded(self, tmp_path: Path) -> None:
        assert "more than 200 deep" in refusal(tmp_path, "<a>" * 10_000)

    def test_size_is_bounded(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(elements_module, "MOST_BYTES", 2 * 1024 * 1024)
        assert "it is larger than 2 MiB" in refusal(tmp_path, "<r>" + " " * 3_000_000 + "</r>")

    def test_the_number_of_rows_is_bounded(self, tmp_path: Path) -> None:
        write(tmp_path, {"floor.xml": FLOOR})
        reading = TableReader(tmp_path, {}, most_rows=2)
        with pytest.raises(SituError, match="it has more than 2 rows"):
            reading.read(source("{xml: floor.xml, rows: //room, columns: {id: string}}"))

    def test_cells_that_do_not_fit(self, tmp_path: Path) -> None:
        assert refusal(tmp_path, FLOOR, "security: int").startswith("S112 Row 1 of the source `s`, column `security`")
