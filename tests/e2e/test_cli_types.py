"""``situ types``: in from JSON Schema, out to JSON Schema, Spark and Arrow."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.e2e.conftest import Situ

ORDER = {
    "title": "Order",
    "type": "object",
    "properties": {
        "id": {"type": "string", "pattern": "^O-"},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
        "placed": {"type": "string", "format": "date-time"},
    },
    "required": ["id", "lines"],
    "$defs": {"Line": {"type": "object", "properties": {"qty": {"type": "integer"}}, "required": ["qty"]}},
}


@pytest.fixture
def schema(tmp_path: Path) -> Path:
    file = tmp_path / "order.schema.json"
    file.write_text(json.dumps(ORDER, indent=2))
    return file


def test_a_schema_becomes_types_and_what_is_lost_is_said(situ: Situ, schema: Path) -> None:
    ran = situ("types", "import", schema)
    assert ran.code == 0
    assert ran.out == (
        "version: 1\n"
        "types:\n"
        "  Line: {qty: long}\n"
        "events:\n"
        "  Order: {id: string, lines: [Line], placed: optional timestamp}\n"
    )
    assert ran.err.startswith(f"{schema}:7:7: warning INT122: Types do not check `pattern` here.\n")


def test_imported_types_can_be_used_at_once(situ: Situ, schema: Path, project: Path) -> None:
    out = project / "types" / "orders.yaml"
    ran = situ("types", "import", schema, "--out", out)
    assert (ran.code, ran.out) == (0, "")
    assert ran.err.endswith(f"Wrote 2 types to {out}. Now run `situ check`.\n")
    assert situ("check", "--quiet", "--project", project).code == 0
    shown = situ("explain", "types", "Order", "--project", project)
    assert shown.out.startswith("Order · event\n")


def test_nothing_is_overwritten_unless_told_so(situ: Situ, schema: Path, tmp_path: Path) -> None:
    out = tmp_path / "orders.yaml"
    out.write_text("precious\n")
    ran = situ("types", "import", schema, "--out", out, "--quiet")
    assert (ran.code, ran.out) == (3, "")
    assert f"{out}:1:1: error P163: There is a file of this name already.\n" in ran.err
    assert out.read_text() == "precious\n"
    assert situ("types", "import", schema, "--out", out, "--force").code == 0
    assert out.read_text().startswith("version: 1\n")


def test_a_schema_without_title_is_named_after_its_file(situ: Situ, tmp_path: Path) -> None:
    file = tmp_path / "2-door-events.schema.json"
    file.write_text('{"type": "object", "properties": {"door": {"type": "string"}}}')
    assert situ("types", "import", file, "--json").data["types"]["events"] == ["Imported2DoorEvents"]
    assert situ("types", "import", file, "--name", "Door", "--json").data["types"]["events"] == ["Door"]


def test_what_is_no_schema_is_told_with_its_place(situ: Situ, tmp_path: Path) -> None:
    file = tmp_path / "broken.json"
    for content, code in (
        (b'{"type": "object",}', "P112"),
        (b"\x89PNG\r\n\x1a\n", "P110"),
        (b'{"oneOf": []}', "INT120"),
        (b"", "P112"),
    ):
        file.write_bytes(content)
        ran = situ("types", "import", file)
        assert (ran.code, ran.out) == (1, ""), content
        assert f"error {code}: " in ran.err
        assert ran.err.startswith(f"{file}:1:")
    assert situ("types", "import", tmp_path / "none.json").code == 2
    assert situ("types", "import", tmp_path).code == 2


def test_exported_json_schema_holds_for_events_and_comes_back(situ: Situ, tmp_path: Path) -> None:
    ran = situ("types", "export", "Sighting", "--project", situ.example)
    assert (ran.code, ran.err) == (0, "")
    validator = jsonschema.Draft202012Validator(ran.data)
    assert validator.is_valid({"who": "p1", "at": {"x": 1, "y": 2}})
    assert not validator.is_valid({"who": "p1", "at": {"x": "1", "y": 2}})
    file = tmp_path / "all.json"
    assert situ("types", "export", "--out", file, "--project", situ.example).code == 0
    imported = situ("types", "import", file, "--json").data
    assert imported["problems"] == []
    assert imported["types"]["events"] == sorted(
        ["Alarm", "BadgeShown", "DoorUsed", "RoomClimate", "RoomEvent", "Sighting"]
    )


def test_spark_and_arrow_schemas(situ: Situ) -> None:
    one = situ("types", "export", "DoorUsed", "--format", "spark", "--project", situ.example)
    assert (one.code, one.out) == (0, "`room` STRING, `door` STRING\n")
    every = situ("types", "export", "--format", "spark", "--json", "--project", situ.example).data
    assert len(every) == 6
    assert every["Sighting"] == "`who` STRING, `at` STRUCT<`x`: DOUBLE, `y`: DOUBLE>"
    arrow = situ("types", "export", "--format", "arrow", "--project", situ.example)
    assert arrow.code == 0
    assert "-- RoomClimate\nroom: string\n" in arrow.out
    assert "situ.unit: 'degC'\n" in arrow.out


def test_what_cannot_be_exported(situ: Situ) -> None:
    unknown = situ("types", "export", "Sightng", "--project", situ.example)
    assert (unknown.code, unknown.out) == (1, "")
    assert "error INT101: There is no type `Sightng`.\n  hint: Did you mean `Sighting`?" in unknown.err
    named = situ("types", "export", "RoomId", "--project", situ.example)
    assert (named.code, named.out) == (2, "")
    assert "error P105: Expected a struct, found the primitive `RoomId`.\n" in named.err
