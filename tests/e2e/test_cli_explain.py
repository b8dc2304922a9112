"""``situ explain``: types, expressions, functions and codes, for people and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.lang.catalogue import CODES
from situ.lang.expr.functions.table import FUNCTIONS
from tests.e2e.conftest import Ran, Situ

SIGHTING = {"specversion": "1.0", "id": "7", "source": "tracker", "type": "Sighting", "time": "2026-11-02T08:00:00Z"}


def explain(situ: Situ, *arguments: str | Path, stdin: Any = None) -> Ran:
    sent = b"" if stdin is None else json.dumps(stdin).encode()
    return situ("explain", *arguments, "--project", situ.example, stdin=sent)


# ── types ─────────────────────────────────────────────────────────────────────────────────────────


def test_all_types_are_a_tree(situ: Situ) -> None:
    ran = explain(situ, "types")
    assert ran.code == 0
    assert ran.out.startswith(
        "Events\n"
        "├── BadgeShown  who: PersonId\n"
        "├── RoomEvent  room: RoomId\n"
        "│   ├── Alarm  text: string, who: optional PersonId, lasted: optional duration\n"
        "│   ├── DoorUsed  door: DoorId\n"
        "│   └── RoomClimate  temperature: double degC, humidity: double %, co2: double ppm\n"
    )
    assert "\nNamed primitives\n├── DoorId  string\n" in ran.out
    assert "\nBuilt-in types\n" in ran.out


def test_a_type_is_a_table_that_says_what_is_inherited(situ: Situ) -> None:
    ran = explain(situ, "types", "RoomClimate")
    assert ran.code == 0
    head, rows = ran.out.split("─\n")
    assert head.startswith("RoomClimate · event\n\nsupertypes  RoomEvent\nsubtypes    none\n\nattribute ")
    assert [row.split() for row in rows.splitlines()] == [
        ["room", "RoomId", "RoomEvent"],
        ["temperature", "double", "degC"],
        ["humidity", "double", "%"],
        ["co2", "double", "ppm"],
    ]


def test_types_with_several_supertypes_defaults_and_narrowed_attributes(situ: Situ, project: Path) -> None:
    (project / "types" / "more.yaml").write_text(
        "types:\n"
        "  Left: {a: optional string, b: {type: int, default: 3}}\n"
        "  Right: {c: '[double] m'}\n"
        "  Both(Left, Right): {a: string}\n"
    )
    explained = situ("explain", "types", "Both", "--json", "--project", project).data
    attributes = {each.pop("name"): each for each in explained["attributes"]}
    assert explained["supertypes"] == ["Left", "Right"]
    assert attributes["a"]["narrows"] == "Left"
    assert attributes["a"]["optional"] is False
    assert (attributes["b"]["inherited_from"], attributes["b"]["default"]) == ("Left", 3)
    assert attributes["c"] == {
        "type": "[double]",
        "unit": "m",
        "optional": False,
        "default": None,
        "inherited_from": "Right",
        "narrows": None,
    }
    tree = situ("explain", "types", "--project", project).out
    assert tree.count("── Both  a: string\n") == 2, "below each of its supertypes"


def test_an_unknown_type_comes_with_the_nearest(situ: Situ) -> None:
    ran = explain(situ, "types", "Sightng")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == "error INT101: There is no type `Sightng`.\n  hint: Did you mean `Sighting`?\n"


# ── expressions ───────────────────────────────────────────────────────────────────────────────────


def test_an_expression_is_shown_from_its_text_to_both_engines(situ: Situ) -> None:
    ran = explain(situ, "expression", "at.x<3 ft or who like 'a%'", "--type", "Sighting")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Expression over Sighting\n"
        "\n"
        "written     at.x<3 ft or who like 'a%'\n"
        "canonical   at.x < 0.9144 m OR starts_with(who, 'a')\n"
        "simplified  at.x < 0.9144 m OR starts_with(who, 'a')\n"
        "gives       boolean\n"
        "\n"
        "Typed tree\n"
        "  OR  boolean\n"
        "  ├── <  boolean\n"
        "  │   ├── at.x  double m\n"
        "  │   └── 0.9144 m  double m\n"
        "  └── starts_with  boolean\n"
        "      ├── who  PersonId\n"
        "      └── 'a'  string\n"
        "\n"
        "Spark SQL\n"
        "  ((`data`.`at`.`x` < 0.9144D) OR startswith(`data`.`who`, 'a'))\n"
        "\n"
        "Python\n"
        "  def expression(event, data):\n"
        "      return ((data['at']['x'] < 0.9144) or (data['who']).startswith('a'))\n"
    )


def test_the_tree_says_what_may_be_null_and_what_can_fail(situ: Situ) -> None:
    ran = explain(situ, "expression", "lasted / (lasted - lasted) > 1.0", "--type", "Alarm", "--json")
    assert ran.code == 0
    explained = ran.data
    assert (explained["type"], explained["nullable"], explained["can_fail"]) == ("boolean", True, True)
    assert explained["spark"]["fails"]
    quotient = explained["tree"]["parts"][0]
    assert (quotient["node"], quotient["can_fail"]) == ("/", True)
    assert quotient["parts"][0] == {
        "node": "lasted",
        "type": "duration",
        "unit": None,
        "nullable": True,
        "can_fail": False,
        "parts": [],
    }
    shown = explain(situ, "expression", "lasted / (lasted - lasted) > 1.0", "--type", "Alarm")
    assert "\nSpark SQL, true where it fails\n" in shown.out
    assert "  /  double · may be null · can fail\n" in shown.out.replace("├── /", "  /")


def test_a_filter_is_named_by_its_subscription_and_evaluated_for_an_event(situ: Situ, tmp_path: Path) -> None:
    sample = tmp_path / "sighting.json"
    sample.write_text(json.dumps({**SIGHTING, "data": {"who": "p1", "at": {"x": 1.5, "y": 2}}}))
    ran = explain(situ, "expression", "desk/arrivals", "--event", sample)
    assert ran.code == 0
    assert ran.out.startswith("Filter of desk/arrivals over Sighting\n\nwritten     at.x < 5 m AND at.y < 6 m\n")
    assert ran.out.endswith("\nResult for event 7 of tracker\n  TRUE\n")


def test_only_the_result_for_scripts_and_data_alone_from_standard_input(situ: Situ) -> None:
    data = {"who": "p1", "at": {"x": 9, "y": 2}}
    ran = explain(situ, "expression", "desk/arrivals", "--quiet", "--event", "-", stdin=data)
    assert (ran.code, ran.out, ran.err) == (0, "FALSE\n", "")


def test_the_type_is_that_of_the_event_where_none_is_named(situ: Situ) -> None:
    event = {**SIGHTING, "data": {"who": "p1", "at": {"x": 3, "y": 4}}, "confidence": "80"}
    text = "CASE WHEN event.confidence > 70 % THEN distance(at, struct(0 m AS x, 0 m AS y)) END"
    ran = explain(situ, "expression", text, "--json", "--event", "-", stdin=event)
    assert ran.code == 0
    assert (ran.data["over"], ran.data["unit"]) == ("Sighting", "m")
    assert ran.data["outcome"] == {"sample": "event 7 of tracker", "fails": False, "value": 5.0}


def test_an_event_of_a_subtype_is_taken_for_what_it_is(situ: Situ) -> None:
    event = {**SIGHTING, "type": "DoorUsed", "data": {"room": "lab", "door": "D7"}}
    ran = explain(situ, "expression", "security/restricted", "--quiet", "--event", "-", stdin=event)
    assert (ran.code, ran.out) == (0, "TRUE\n")


def test_failure_is_a_result_with_a_reason(situ: Situ) -> None:
    data = {"room": "lab", "text": "", "lasted": "PT0S"}
    arguments = ("expression", "lasted / lasted > 1.0", "--type", "Alarm", "--event", "-")
    ran = explain(situ, *arguments, stdin=data)
    assert ran.code == 0
    assert "\nResult for data with a made-up envelope\n  fails: " in ran.out
    outcome = explain(situ, *arguments, "--json", stdin=data).data["outcome"]
    assert outcome["fails"] is True
    assert outcome["reason"]


def test_a_function_of_the_project_is_explained_with_its_parameters(situ: Situ) -> None:
    arguments = {"a": {"x": 0, "y": 0}, "b": {"x": 3, "y": 4}, "limit": 5}
    ran = explain(situ, "expression", "near", "--event", "-", stdin=arguments)
    assert ran.code == 0
    assert ran.out.startswith("Function near(a: Point m, b: Point m, limit: double m) -> boolean\n")
    assert "\n  def expression(a, b, limit):\n" in ran.out
    assert ran.out.endswith("\nResult for these arguments\n  TRUE\n")


def test_constants_need_no_type(situ: Situ) -> None:
    ran = explain(situ, "expression", "2.0 km + 3.0 m > 2.0 km", "--json")
    assert ran.code == 0
    assert (ran.data["simplified"], ran.data["over"]) == ("TRUE", None)
    assert ran.data["outcome"]["value"] is True


def test_a_text_that_begins_like_an_option_stands_behind_two_dashes(situ: Situ) -> None:
    ran = situ("explain", "expression", "--type", "Sighting", "--project", situ.example, "--json", "--", "-at.x > 5 m")
    assert (ran.code, ran.data["simplified"]) == (0, "at.x < -5.0 m")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("at.x <", "--type", "Sighting"), "X101", "expression:1:6: error X101: "),
        (("at.x < 5 s", "--type", "Sighting"), "X104", "  | at.x < 5 s\n  |        ^^^\n"),
        (("__import__('os')", "--type", "Sighting"), "X102", "error "),
        (("at.x", "--type", "Sightin"), "INT101", "Did you mean `Sighting`?"),
        (("at.x",), "P165", "`--type TYPE`"),
        (("desk/arrival",), "P164", "Did you mean `desk/arrivals`?"),
    ],
)
def test_a_bad_expression_is_shown_with_place_and_hint(
    situ: Situ, arguments: tuple[str, ...], code: str, said: str
) -> None:
    ran = explain(situ, "expression", *arguments)
    assert (ran.code, ran.out) == (1, "")
    assert f"error {code}: " in ran.err
    assert said in ran.err


@pytest.mark.parametrize(
    ("sample", "code"),
    [
        (b"\x89PNG\r\n\x1a\n\x00", "E701"),
        (b'{"who": "p1"', "E701"),
        (b'{"specversion": "1.0", "id": "1", "source": "a", "type": "Sightin", "data": {}}', "INT701"),
        (b'{"specversion": "1.0", "id": "1", "source": "a", "type": "Alarm", "data": {}}', "P161"),
        (b'{"specversion": "1.0", "id": 1, "source": "a", "type": "Sighting"}', "E702"),
        (b'{"who": 5}', "INT703"),
        (b"[1, 2]", "INT703"),
    ],
)
def test_a_bad_sample_is_refused_with_the_file(situ: Situ, sample: bytes, code: str) -> None:
    ran = situ("explain", "expression", "desk/arrivals", "--project", situ.example, "--event", "-", stdin=sample)
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.startswith(f"-:1:1: error {code}: ")


def test_a_sample_that_cannot_be_read_is_wrong_usage(situ: Situ, tmp_path: Path) -> None:
    for file in (tmp_path, tmp_path / "none.json"):
        ran = explain(situ, "expression", "desk/arrivals", "--event", file)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.startswith(f"{file}:1:1: error P123: ")


def test_text_cannot_steer_the_terminal(situ: Situ) -> None:
    ran = explain(situ, "expression", "who = '\x1b[31m\x07'", "--type", "Sighting")
    assert ran.code == 0
    assert "\x1b" not in ran.out
    assert "\x07" not in ran.out
    assert r"written     who = '\x1b[31m\x07'" in ran.out


# ── functions and codes ───────────────────────────────────────────────────────────────────────────


def test_functions_of_the_language_need_no_project(situ: Situ, tmp_path: Path) -> None:
    ran = situ("explain", "functions", "--json", cwd=tmp_path)
    assert ran.code == 0
    assert {each["name"] for each in ran.data} >= set(FUNCTIONS)
    one = situ("explain", "functions", "substring", cwd=tmp_path)
    assert one.out.startswith("substring · text\n")
    assert "\n  substring('situation', 1, 4)  gives  'situ'\n" in one.out
    form = situ("explain", "functions", "case", cwd=tmp_path)
    assert form.out.startswith("CASE WHEN c THEN a … ELSE b END · choice\n")


def test_functions_of_the_project_come_first(situ: Situ) -> None:
    rows = explain(situ, "functions").out.splitlines()
    assert rows[2].split()[:2] == ["project", "accompanied(guest:"]
    ran = explain(situ, "functions", "nere")
    assert (ran.code, ran.out) == (1, "")
    assert "error X102: There is no function `nere` here.\n  hint: Did you mean `near`" in ran.err


def test_codes_are_explained(situ: Situ, tmp_path: Path) -> None:
    ran = situ("explain", "code", "x103", cwd=tmp_path)
    assert ran.code == 0
    assert ran.out.startswith("X103 types do not fit · error\n\nmessage  {what}: found {found}, expected {expected}.\n")
    assert [each["code"] for each in situ("explain", "code", "--json").data] == sorted(CODES)
    unknown = situ("explain", "code", "X1003")
    assert (unknown.code, unknown.out) == (1, "")
    assert unknown.err.startswith("error P162: There is no code `X1003`.\n  hint: Did you mean ")
