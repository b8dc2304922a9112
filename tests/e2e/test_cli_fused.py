"""``situ explain transform --fused``, and what is said about events that are not converted at all."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Ran, Situ
from tests.project_files import write

FILES = {
    "situ.yaml": "name: plant\n",
    "types/all.yaml": """
types:
  Spot: {x: double m, y: double m}
events:
  Sighting: {who: string, at: Spot, near: [Spot], weight: double kg}
  Tick: {n: int}
""",
    "contexts/feet.yaml": """
context: feet
types: {Place: {x: double ft, y: double ft}}
events:
  Read: {tag: string, at: Place, near: [Place], tonnes: double t}
  Back: {who: string, at: Place, near: [Place], weight: double lb}
maps:
  - in: Read -> Sighting
    attributes: {who: {expr: "upper(tag)"}, weight: tonnes}
  - both: Sighting <-> Back
""",
    "contexts/inches.yaml": """
context: inches
types: {Where: {x: double in, y: double in}}
events:
  Seen: {person: string, at: Where, near: [Where]}
  Tick: {n: string}
maps:
  - out: Sighting -> Seen
    attributes: {person: who}
""",
}
DATA = {"tag": "a7", "at": {"x": 1, "y": 0}, "near": [], "tonnes": 5}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(tmp_path, FILES)
    return tmp_path


def explain(situ: Situ, folder: Path, *arguments: str, data: object = None) -> Ran:
    text = b"" if data is None else json.dumps(data).encode()
    return situ("explain", "transform", *arguments, "--project", str(folder), stdin=text)


def test_one_step_leads_from_one_context_to_the_other(situ: Situ, folder: Path) -> None:
    ran = explain(situ, folder, "--fused", "feet", "inches", "--in", "Read")
    assert ran.code == 0, ran.err
    head, _, titles, _, *rows, last = ran.out.splitlines()
    assert head.startswith("feet:Read (feet@1) → inches:Seen (inches@1)   over Sighting (root@1)   plan ")
    assert titles.split() == ["attribute", "in", "out", "expression"]
    assert rows[0].split() == ["person", "←", "tag", "upper(tag)", "copied", "upper(tag)"]
    assert rows[1].endswith("to_unit(to_unit(at.x, 'm'), 'in')")
    assert rows[3].startswith("near[].x")
    assert last == "fails also with  to_unit(tonnes, 'kg')"


def test_a_sample_is_converted(situ: Situ, folder: Path) -> None:
    ran = explain(situ, folder, "--fused", "feet", "inches", "--in", "-", "--type", "Read", "--json", data=DATA)
    assert ran.code == 0, ran.err
    answer = json.loads(ran.out)
    assert answer["result"] == {"person": "A7", "at": {"x": pytest.approx(12.0), "y": 0.0}, "near": []}
    assert {each["target"]: each["root"] for each in answer["attributes"]}["person"] == ["who"]
    far = {**DATA, "at": {"x": 1.7e308, "y": 0}}
    ran = explain(situ, folder, "--fused", "feet", "inches", "--in", "-", "--type", "Read", "--json", data=far)
    assert ran.code == 1
    assert [each["code"] for each in json.loads(ran.out)["failures"]] == ["INT704"]


def test_without_a_type_all_that_lead_there_are_shown(situ: Situ, folder: Path) -> None:
    ran = explain(situ, folder, "--fused", "feet", "inches", "--json")
    assert [each["source"] for each in json.loads(ran.out)] == ["Back", "Read", "Sighting"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--fused", "feet", "inches", "--in", "Tick"), 1, "INT307"),
        (("--fused", "feet", "inches", "--in", "Nothing"), 1, "Nothing"),
        (("--fused", "feet", "mars", "--in", "Read"), 1, "mars"),
        (("--fused", "feet", "inches", "--out", "Read"), 2, "--in and --type"),
        (("--in", "Read"), 2, "say which context"),
    ],
)
def test_what_leads_nowhere_is_said(situ: Situ, folder: Path, arguments: tuple[str, ...], code: int, said: str) -> None:
    ran = explain(situ, folder, *arguments)
    assert ran.code == code
    assert said in ran.err


def test_whether_events_pass_without_being_converted_is_said(situ: Situ, folder: Path) -> None:
    assert "shortcut: safe" in explain(situ, folder, "--context", "feet", "--in", "Back").out
    assert "shortcut: safe" in explain(situ, folder, "--context", "feet", "--out", "Sighting").out
    assert "shortcut: no (comes back as Back)" in explain(situ, folder, "--context", "feet", "--in", "Read").out
    told = json.loads(explain(situ, folder, "--context", "feet", "--in", "Read", "--json").out)
    reason = "comes back as Back"
    assert told["shortcut"] == {"safe": False, "taken": False, "reason": reason, "setting": "safe"}
    (folder / "situ.yaml").write_text("name: plant\ndefaults: {shortcut: never}\n")
    assert "shortcut: never" in explain(situ, folder, "--context", "feet", "--in", "Back").out


def test_what_nobody_remembers_here_is_missing(situ: Situ, folder: Path) -> None:
    remembering = """
context: moving
types: {Place: {lat: double, lon: double}}
events:
  Where: {who: string, at: Place}
maps: [out: Sighting -> Where]
rules: {out: [Spot -> to_place]}
functions:
  to_place:
    signature: Spot -> Place
    key: event.who
    state: {ref: {event: Origin, key: who, keep: {lat: lat, lon: lon}, ttl: 24 h, max_keys: 100}}
    expr: struct(ref.lat + value.y AS lat, ref.lon + value.x AS lon)
"""
    write(
        folder,
        {
            "contexts/moving.yaml": remembering,
            "types/more.yaml": "events: {Origin: {who: string, lat: double, lon: double}}",
        },
    )
    ran = explain(situ, folder, "--fused", "feet", "moving", "--in", "-", "--type", "Read", "--json", data=DATA)
    assert ran.code == 1, ran.err
    assert [each["code"] for each in json.loads(ran.out)["failures"]] == ["INT706"]
