"""``situ explain context`` and ``transform``, and ``situ transform``: what contexts make of events, and why."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Ran, Situ

FILES = {
    "situ.yaml": "name: deliveries\n",
    "types/logistics.yaml": """\
types:
  Address: {name: string, specifics: string}
  Position: {x: double m, y: double m}
  High(Position): {z: double m}
  Line: {item: string, weight: double kg, share: int}
  TagId(string): {}
events:
  Update: {truck: string, distance: double m, pos: Position, to: Address}
  Danger(Update): {level: int}
  LogInfo: {address: Address}
  Order: {lines: [Line], note: optional string}
  Seen: {who: string, tag: TagId}
  Tick: {n: int}
""",
    "contexts/root.yaml": """\
context: root
functions:
  meters_to_yards: double m -> double yd = value * 1.09
""",
    "contexts/us.yaml": """\
context: us
types:
  UsAddress: {name: string, zip: optional string}
  UsPosition: {x: double ft, y: double ft}
  UsLine: {item: string, weight: double lb, share: double}
events:
  Update: {vehicle: string, distance: double yd, pos: UsPosition, to: UsAddress, kind: string, label: string}
  UsOrder: {lines: [UsLine], note: {type: string, default: none}}
maps:
  - out: Update -> Update
    attributes: {vehicle: truck, kind: {default: road}, label: {expr: upper(truck)}}
  - out: Order -> UsOrder
rules:
  out:
    - Position -> to_feet
    - High -> from_above
    - Danger.pos -> to_feet
    - Address -> to_us_address
    - LogInfo.Address -> identity
    - Order.lines[].share -> inverted
functions:
  to_feet: Position -> UsPosition = struct(value.x * 3.25 AS x, value.y * 3.25 AS y)
  from_above: High -> UsPosition = struct(0.0 AS x, 0.0 AS y)
  to_us_address: Address -> UsAddress = struct(value.name AS name, kv(value.specifics, 'zip') AS zip)
  inverted: int -> double = 1 / value
""",
    "contexts/texas.yaml": """\
context: us.texas
extends: us
rules:
  out: [Position -> to_feet]
functions:
  meters_to_yards: double m -> double yd = value * 2.0
""",
    "contexts/camera.yaml": """\
context: camera
events:
  Face: {face: string, steps: double yd}
  Badge: {person: string, badge: TagId}
  Tock: {k: string}
maps:
  - out: Tick -> Tock
  - in: Face -> Update
    attributes:
      truck: face
      distance: steps
      pos: {expr: "struct(1.0 AS x, 2.0 AS y)"}
      to: {expr: "struct(face AS name, 'zip=1' AS specifics)"}
  - in: Badge -> Seen
    attributes: {who: person, tag: badge}
rules:
  in: [TagId -> to_tag]
  out: [Tick -> to_tock]
functions:
  to_tock: Tick -> Tock = struct(to_string(value.n) AS k)
  to_tag:
    signature: TagId -> TagId
    lookup: {b: {source: badges, key: {tag: value}}}
    expr: b.other
""",
    "sources/badges.yaml": "pull: {badges: {csv: badges.csv, columns: {tag: TagId, other: TagId}, key: tag}}\n",
    "badges.csv": "tag,other\nt1,t2\n",
    "clients/clients.yaml": """\
clients:
  truck-7: {context: camera, advertisements: {faces: {type: Face}}}
  dispatcher: {context: us, subscriptions: {near: {types: [Update], where: distance < 500 yd}}}
""",
}
TO = {"name": "Ann", "specifics": "street=Main;zip=30834"}
UPDATE = {"truck": "t7", "distance": 3082, "pos": {"x": 1, "y": 2}, "to": TO}
EVENT = {"specversion": "1.0", "id": "1", "source": "truck-7", "type": "Update", "subject": "north", "data": UPDATE}
ORDER = {"lines": [{"item": "a", "weight": 1, "share": 2}, {"item": "b", "weight": 2, "share": 0}]}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("deliveries")
    for name, text in FILES.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text)
    (made / "update.json").write_text(json.dumps(EVENT))
    (made / "order.json").write_text(json.dumps({**EVENT, "type": "Order", "data": ORDER}))
    return made


class Explaining:
    """Runs the commands in the folder."""

    def __init__(self, situ: Situ, folder: Path) -> None:
        self._situ, self.folder = situ, folder

    def transform(self, *arguments: str, context: str = "us", stdin: Any = None) -> Ran:
        return self("explain", "transform", "--context", context, *arguments, stdin=stdin)

    def __call__(self, *arguments: str, stdin: Any = None) -> Ran:
        sent = stdin if isinstance(stdin, bytes) else b"" if stdin is None else json.dumps(stdin).encode()
        return self._situ(*arguments, cwd=self.folder, stdin=sent)


@pytest.fixture
def run(situ: Situ, folder: Path) -> Explaining:
    return Explaining(situ, folder)


# ── explain transform ─────────────────────────────────────────────────────────────────────────────


def test_an_event_is_explained_attribute_by_attribute(run: Explaining) -> None:
    ran = run.transform("--out", "update.json")
    assert (ran.code, ran.err) == (0, "")
    head, blank, *rows = ran.out.splitlines()
    assert head.startswith("Update (root@1) → us:Update (us@1)   plan ")
    assert head.endswith("   native   lossy: no   can fail: yes   shortcut: no (no way in)")
    assert blank == ""
    assert rows == [
        "attribute         rule          from                   function          before → after",
        'vehicle ← truck   mapping       contexts/us.yaml:10    copied            "t7"',
        "distance          unit m → yd   contexts/root.yaml:3   meters_to_yards   3082 → 3359.38",
        "pos               Position      contexts/us.yaml:15    to_feet           {x: 1, y: 2} → {x: 3.25, y: 6.5}",
        "                  beaten: none; does not match: Danger.pos (the event is no Danger)",
        "pos               High          contexts/us.yaml:16    from_above",
        "                  when pos is High",
        "                  beaten: Position (P3 at the target); does not match: Danger.pos (the event is no Danger)",
        (
            "to                Address       contexts/us.yaml:18    to_us_address    "
            ' {name: "Ann", specifics: "street=Main;zip=30834"} → {name: "Ann", zip: "30834"}'
        ),
        "                  beaten: none; does not match: LogInfo.Address (the event is no LogInfo)",
        'kind              mapping       contexts/us.yaml:10    constant          "road"',
        'label             mapping       contexts/us.yaml:10    upper(truck)      "T7"',
        "",
        "warnings  none     observations  none",
    ]


def test_a_type_is_explained_without_values_and_what_it_inherits_says_where_from(run: Explaining) -> None:
    ran = run.transform("--out", "Danger", context="us.texas")
    assert (ran.code, ran.err) == (0, "")
    assert "attribute         rule          from                    function\n" in ran.out
    assert "distance          unit m → yd   contexts/texas.yaml:6   meters_to_yards\n" in ran.out
    assert "pos               Danger.pos    contexts/us.yaml:17     to_feet\n" in ran.out
    assert "\ndropped  level\n" in ran.out
    assert "observation INT305: `level` of `Danger` has no counterpart in `Update` and is dropped.\n" in ran.out
    assert "LogInfo`" not in ran.out, "what is said about other types is not said here"


def test_the_dynamic_type_of_a_value_decides(run: Explaining) -> None:
    data = {**UPDATE, "pos": {"$type": "High", "x": 1, "y": 2, "z": 3}}
    explained = run.transform("--out", "-", "--type", "Update", "--json", stdin=data).data
    first, second = (each for each in explained["attributes"] if each["target"] == "pos")
    assert (first["rule"], first["values"]) == ("Position", [])
    assert (second["rule"], second["when"]) == ("High", "pos is High")
    assert second["values"] == [{"indices": [], "before": data["pos"] | {"x": 1.0, "y": 2.0, "z": 3.0}, "after": ZERO}]
    assert explained["result"]["pos"] == ZERO
    assert (explained["native"], explained["direction"], explained["identity"]) == (True, "out", False)


ZERO = {"x": 0.0, "y": 0.0}


def test_lists_show_their_elements_and_what_fails_says_where(run: Explaining) -> None:
    ran = run.transform("--out", "order.json")
    assert (ran.code, ran.err) == (1, "")
    rows = {line.split()[0]: line for line in ran.out.splitlines() if line}
    assert rows["lines[].item"].split("copied")[1].split() == ['"a";', '"b"']
    assert rows["lines[].weight"].endswith(
        "as double lb × 100000000 ÷ 45359237   1 → 2.2046226218487757; 2 → 4.409245243697551"
    )
    assert rows["lines[].share"].endswith("2 → 0.5; 0 → fails: float division by zero")
    assert rows["note"].split("copied")[1].strip() == 'null → "none"'
    assert "\nerror INT704: `lines[1].share` cannot be converted: `inverted` failed" in ran.out
    explained = run.transform("--out", "order.json", "--json").data
    assert explained["result"] is None
    assert [each["code"] for each in explained["failures"]] == ["INT704"]


def test_an_event_that_stays_as_it_is(run: Explaining) -> None:
    ran = run.transform("--out", "LogInfo")
    assert ran.code == 0
    assert ran.out.splitlines()[0].endswith("can fail: no   stays as it is")
    assert "address     LogInfo.Address   contexts/us.yaml:19   identity\n" in ran.out
    assert "            beaten: Address (P1 at level 0)\n" in ran.out
    assert "observation INT306: `LogInfo` has no mapping in `us` (out) and passes under its own type.\n" in ran.out
    assert ran.out.endswith("\nwarnings  none     observations  INT306\n")
    assert run.transform("--out", "Update").out.endswith("\nwarnings  none     observations  none\n")


def test_on_the_way_in_and_what_needs_a_table(run: Explaining) -> None:
    face = {"face": "f1", "steps": 109}
    ran = run.transform("--in", "-", "--type", "Face", context="camera", stdin=face)
    assert ran.code == 0
    assert ran.out.startswith("camera:Face (camera@1) → Update (root@1)   plan ")
    assert "distance ← steps   unit yd → m   contexts/camera.yaml:8   as double m × 1143 ÷ 1250 " in ran.out
    ran = run.transform("--in", "-", "--type", "Badge", context="camera", stdin={"person": "p", "badge": "t1"})
    assert ran.code == 0
    assert "   needs b of the source badges   " in ran.out.splitlines()[0]
    assert '"t1" → "t2"\n' in ran.out
    ran = run.transform("--in", "-", "--type", "Badge", context="camera", stdin={"person": "p", "badge": "t9"})
    assert ran.code == 1
    assert '"t9" → fails: ' in ran.out
    assert "\nerror INT705: " in ran.out


def test_filters_on_what_is_looked_up(situ: Situ, tmp_path: Path) -> None:
    desk = """\
context: desk
rules:
  out: [TagId -> to_tag]
functions:
  to_tag: {signature: TagId -> TagId, lookup: {b: {source: badges, key: {tag: value}}}, value: b.other}
"""
    for name, text in {**FILES, "contexts/desk.yaml": desk, "seen.json": '{"who": "p", "tag": "t1"}'}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    run = Explaining(situ, tmp_path)
    ran = run.transform("--out", "Seen", "--filter", "tag = 't2'", context="desk")
    assert "ELSE b(tag).other END" in ran.out
    for wanted, found in (("t2", "TRUE"), ("t3", "FALSE")):
        asked = ["--out", "seen.json", "--type", "Seen", "--filter", f"tag = '{wanted}'"]
        ran = run.transform(*asked, context="desk")
        assert f"for the sample  {found}\n" in ran.out
    (tmp_path / "badges.csv").unlink()
    ran = run("transform", "--to", "desk", "--type", "Seen", stdin={"who": "p", "tag": "t1"})
    assert ran.code == 1
    assert "sources/badges.yaml:1:8: error S111: The source `badges` cannot be read: no such file" in ran.err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--context", "uss", "--out", "Update"], 1, "error INT501: The context `uss` cannot be used here"),
        (["--context", "us@3", "--out", "Update"], 1, "its version is 1."),
        (["--context", "us", "--out", "Updat"], 1, "error INT701: There is no event type `Updat`."),
        (["--context", "us", "--in", "Update"], 1, "observation INT307: `Update` is not available in `us` (in)"),
        (["--context", "us", "--out", "none.json"], 2, "there is none of this name"),
        (["--context", "us", "--out", "-"], 2, "it is empty"),
        (["--context", "us"], 2, "say which way, by one of the two"),
        (["--context", "us", "--in", "LogInfo", "--filter", "TRUE"], 2, "filters are about what is delivered"),
        (["--context", "us", "--out", "Update", "--why", "knid"], 1, "Did you mean `kind`?"),
        (
            ["--context", "us", "--out", "Update", "--filter", "distanc > 1"],
            1,
            "error INT602: The filter of `--filter`",
        ),
    ],
)
def test_what_cannot_be_explained_is_said_with_the_remedy(
    run: Explaining, arguments: list[str], code: int, said: str
) -> None:
    ran = run("explain", "transform", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err


def test_a_sample_that_does_not_fit_is_refused_with_its_place(run: Explaining) -> None:
    ran = run.transform("--out", "-", "--type", "LogInfo", stdin={"address": {"name": 3}})
    assert ran.code == 1
    assert "-:1:1: error INT703: `address.name` is the number 3, expected `string`." in ran.err
    assert "-:1:1: error INT707: `address.specifics`" in ran.err
    ran = run.transform("--out", "-", stdin={"address": {}})
    assert ran.err.startswith("-:1:1: error P170: Line 1 is no CloudEvent")
    assert "as in `--type Sighting`" in ran.err


# ── why, and filters ──────────────────────────────────────────────────────────────────────────────


def test_why_lists_every_rule_with_its_keys_and_what_decides(run: Explaining) -> None:
    ran = run.transform("--out", "Danger", "--why", "pos")
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines() if line and not line.startswith("─")]
    assert lines == [
        "Danger.pos (Position) · converted by to_feet",
        "rule from target (Position) level 0 (Danger) why",
        "counts Danger.pos -> to_feet contexts/us.yaml:17 0 attribute 0 0 type 0",
        "beaten Position -> to_feet contexts/us.yaml:15 0 type 0 – P2 at the target",
        "Danger.pos (High) · converted by from_above",
        "rule from target (High) level 0 (Danger) why",
        "counts High -> from_above contexts/us.yaml:16 0 type 0 –",
        (
            "beaten Danger.pos -> to_feet contexts/us.yaml:17 1 attribute 1 0 type 0"
            " P6: P3 at the target, before P2 at the target"
        ),
        "beaten Position -> to_feet contexts/us.yaml:15 1 type 1 – P3 at the target",
        "Keys are distance, kind and order: the smaller counts, columns compared from left to right.",
    ]


def test_why_says_whose_rule_overrides_and_which_do_not_match(run: Explaining) -> None:
    (place, _) = run.transform("--out", "Update", "--why", "pos", "--json", context="us.texas").data["places"]
    first, second, third = place["candidates"]
    assert (first["context"], first["counts"]) == ("us.texas", True)
    assert (second["context"], second["reason"]) == ("us", "overridden in the more specialised context")
    assert (third["rule"], third["matches"]) == ("Danger.pos -> to_feet", False)
    assert third["reason"] == "the event is no Danger"


@pytest.mark.parametrize(
    ("type", "attribute", "outcome"),
    [
        ("Update", "vehicle", "Update.truck (string) · copied"),
        ("Update", "truck", "Update.truck (string) · copied"),
        ("Update", "distance", "Update.distance (double) · unit m → yd by meters_to_yards"),
        ("Update", "to.zip", "Update.to (Address) · part of to, converted by to_us_address as a whole"),
        ("Update", "to.name", "Update.to.name (string) · part of to, converted by to_us_address as a whole"),
        ("Update", "kind", "kind of Update · constant"),
        ("Order", "lines[1].share", "Order.lines[].share (int) · converted by inverted"),
        ("Order", "lines", "Order.lines[].item (string) · copied"),
    ],
)
def test_why_finds_attributes_of_either_side_and_parts_of_them(
    run: Explaining, type: str, attribute: str, outcome: str
) -> None:
    ran = run.transform("--out", type, "--why", attribute)
    assert ran.code == 0
    assert ran.out.splitlines()[0] == outcome


def test_an_event_that_is_converted_as_a_whole(run: Explaining) -> None:
    ran = run.transform("--out", "-", "--type", "Tick", context="camera", stdin={"n": 3})
    assert ran.code == 0
    assert 'the event   Tick   contexts/camera.yaml:18   to_tock    {n: 3} → {k: "3"}\n' in ran.out
    part = "part of the event, converted by to_tock as a whole"
    said = {name: run.transform("--out", "Tick", "--why", name, context="camera") for name in ("n", "k", "m")}
    assert said["n"].out.startswith(f"Tick.n (int) · {part}\n")
    assert said["k"].out.startswith(f"Tick · {part}\n")
    assert (said["m"].code, said["m"].out) == (1, "")
    assert "There is no attribute `m` here.\n  hint: Tock has k, n.\n" in said["m"].err


def test_a_filter_is_shown_as_what_it_asks_of_root_events(run: Explaining) -> None:
    ran = run.transform("--out", "update.json", "--filter", "distance > 109 and to.zip = '30834'")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out == (
        "Filter on Update, as root's Update is asked\n"
        "written         distance > 109 and to.zip = '30834'\n"
        "canonical       distance > 109.0 yd AND to.zip = '30834'\n"
        "substituted     distance * 1.09 > 109.0 yd AND kv(to.specifics, 'zip') = '30834'\n"
        "simplified      event.type = 'Update' AND distance >= 100.0 m AND kv(to.specifics, 'zip') = '30834'\n"
        "also asked of   Danger\n"
        "for the sample  TRUE\n"
    )


def test_a_filter_that_can_never_be_true(run: Explaining) -> None:
    explained = run.transform("--out", "Update", "--filter", "kind = 'sea'", "--json").data
    assert explained["simplified"] == "FALSE"
    assert [each["code"] for each in explained["problems"]] == ["INT603"]


# ── explain context ───────────────────────────────────────────────────────────────────────────────


def test_a_context_shows_what_it_has_who_uses_it_and_what_becomes_of_events(run: Explaining) -> None:
    ran = run("explain", "context", "us")
    assert (ran.code, ran.err) == (0, "")
    lines = [" ".join(line.split()) for line in ran.out.splitlines() if line and not line.startswith("─")]
    assert lines == [
        "us@1 · extends root",
        "extended by us.texas",
        "clients dispatcher",
        "advertisements none",
        "subscriptions dispatcher/near",
        "own types Update (hides another), UsAddress, UsLine, UsOrder, UsPosition",
        "inherited types Address, Danger, High, Line, LogInfo, Order, Position, Seen, TagId, Tick",
        "Functions",
        "function of from",
        "from_above: High -> UsPosition us contexts/us.yaml:23",
        "inverted: int -> double us contexts/us.yaml:25",
        "meters_to_yards: double m -> double yd root contexts/root.yaml:3",
        "to_feet: Position -> UsPosition us contexts/us.yaml:22",
        "to_us_address: Address -> UsAddress us contexts/us.yaml:24",
        "Out, from root",
        "mapping of from",
        "Update -> us:Update us contexts/us.yaml:10",
        "Order -> us:UsOrder us contexts/us.yaml:12",
        "rule of from",
        "Position -> to_feet us contexts/us.yaml:15",
        "High -> from_above us contexts/us.yaml:16",
        "Danger.pos -> to_feet us contexts/us.yaml:17",
        "Address -> to_us_address us contexts/us.yaml:18",
        "LogInfo.Address -> identity us contexts/us.yaml:19",
        "Order.lines[].share -> inverted us contexts/us.yaml:20",
        "event type becomes",
        "Danger us:Update mapped",
        "LogInfo LogInfo passes",
        "Order us:UsOrder mapped",
        "Seen Seen passes",
        "Tick Tick passes",
        "Update us:Update mapped",
        "In, to root",
        "event type becomes",
        "Danger Danger passes",
        "LogInfo LogInfo passes",
        "Order Order passes",
        "Seen Seen passes",
        "Tick Tick passes",
        "Update – not available: it has no mapping, and another type has that name there",
        "UsOrder – not available: it has no mapping, and it is not known there",
    ]


def test_a_context_below_another_says_what_it_overrides(run: Explaining) -> None:
    explained = run("explain", "context", "us.texas", "--json").data
    assert explained["chain"] == ["us.texas", "us", "root"]
    assert explained["types"]["own"] == []
    (rule,) = (each for each in explained["out"]["rules"] if each["text"] == "Position -> to_feet")
    assert (rule["context"], rule["overrides"], rule["from"]) == ("us.texas", ["us"], "contexts/texas.yaml:4")
    (function,) = (each for each in explained["functions"] if each["text"].startswith("meters_to_yards"))
    assert (function["context"], function["overrides"]) == ("us.texas", ["root"])
    assert explained["used_by"] == {"clients": [], "advertisements": [], "subscriptions": []}
    assert run("explain", "context", "camera", "--json").data["used_by"]["advertisements"] == ["truck-7/faces"]
    assert run("explain", "context").out.startswith("root@1 · extends nothing\n")


def test_an_unknown_context_comes_with_the_nearest(run: Explaining) -> None:
    ran = run("explain", "context", "us.texs")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "error INT501: The context `us.texs` cannot be used here: there is none of that name.\n"
        "  hint: Did you mean `us.texas`?\n"
    )


# ── transform ─────────────────────────────────────────────────────────────────────────────────────

US = {
    "vehicle": "t7",
    "distance": 3359.38,
    "pos": {"x": 3.25, "y": 6.5},
    "to": {"name": "Ann", "zip": "30834"},
    "kind": "road",
    "label": "T7",
}


def test_an_event_leaves_in_the_terms_of_the_other_context(run: Explaining) -> None:
    ran = run("transform", "--to", "us", "update.json")
    assert (ran.code, ran.err) == (0, "")
    assert ran.data == {**EVENT, "data": US}
    assert list(ran.data) == list(EVENT)


def test_data_alone_leaves_as_data_alone_through_both_contexts(run: Explaining) -> None:
    lines = b'{"face": "f1", "steps": 1000}\n{"face": "f2", "steps": 1}\n'
    ran = run("transform", "--from", "camera", "--to", "us", "--type", "Face", stdin=lines)
    assert (ran.code, ran.err) == (0, "")
    first, second = map(json.loads, ran.out.splitlines())
    assert (first["vehicle"], first["to"]) == ("f1", {"name": "f1", "zip": "1"})
    assert first["distance"] == 1000 * 0.9144 * 1.09
    assert second["label"] == "F2"


def test_what_cannot_be_transformed_is_said_with_code_and_path_and_spoils_no_other(run: Explaining) -> None:
    bad = {**EVENT, "type": "Order", "data": ORDER}
    events = [EVENT, bad, {**EVENT, "type": "Nothing"}, {**EVENT, "data": {**UPDATE, "distance": "far"}}, EVENT]
    lines = b"".join(json.dumps(each).encode() + b"\n" for each in events) + b"{\n"
    ran = run("transform", "--to", "us", stdin=lines)
    assert ran.code == 1
    assert [json.loads(line)["data"] for line in ran.out.splitlines()] == [US, US]
    assert "-:2:1: error INT704: `lines[1].share` cannot be converted" in ran.err
    assert "-:3:1: error INT701: There is no event type `Nothing`." in ran.err
    assert "-:4:1: error INT703: `distance` is " in ran.err
    assert "-:6:1: error E701" in ran.err
    as_json = run("transform", "--to", "us", "--json", stdin=lines)
    assert (as_json.code, as_json.err) == (1, "")
    found = [json.loads(line) for line in as_json.out.splitlines()]
    assert [each["problems"][0]["code"] for each in found if "problems" in each] == [
        "INT704",
        "INT701",
        "INT703",
        "E701",
    ]


@pytest.mark.parametrize(
    ("arguments", "data", "said"),
    [
        (["--from", "us"], {**EVENT, "data": US}, "-:1:1: error INT701: There is no event type `Update` that leads"),
        (["--from", "camera", "--type", "Badge"], {"person": "p", "badge": "t9"}, "-:1:1: error INT705: "),
        (["--to", "uss"], EVENT, "error INT501: The context `uss` cannot be used here"),
        ([], UPDATE, "as in `situ transform --type Sighting …`"),
    ],
)
def test_ways_that_are_not_there(run: Explaining, arguments: list[str], data: Any, said: str) -> None:
    ran = run("transform", *arguments, stdin=data)
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err


def test_files_and_projects_that_are_not_there(run: Explaining, tmp_path: Path) -> None:
    assert run("transform", "none.json").code == 2
    assert run("transform", "--project", str(tmp_path), "update.json").code == 2


def test_root_to_root_gives_the_canonical_form(run: Explaining) -> None:
    ran = run("transform", "--type", "LogInfo", stdin={"more": 1, "address": TO})
    assert (ran.code, ran.data) == (0, {"address": TO})


# ── subscriptions in the terms of a context ───────────────────────────────────────────────────────


def test_a_subscription_is_explained_by_what_it_asks_of_root_events(run: Explaining) -> None:
    ran = run("explain", "subscription", "dispatcher/near")
    assert (ran.code, ran.err) == (0, "")
    assert "in terms of  us: Update\n" in ran.out
    assert "On Update and Danger\n  canonical  event.type = 'Update' AND distance < 458.7155963302752 m\n" in ran.out
    assert "On Danger\n  canonical  distance < 458.7155963302752 m\n" in ran.out
    explained = run("explain", "subscription", "dispatcher/near", "--json").data
    assert (explained["context"], explained["wanted"]) == ("us", ["Update"])


def test_the_filter_of_a_subscription_is_about_events_of_its_context(run: Explaining) -> None:
    ran = run("explain", "expression", "dispatcher/near", "--quiet", "--event", "-", stdin={**US, "distance": 499.0})
    assert (ran.code, ran.out, ran.err) == (0, "TRUE\n", "")
