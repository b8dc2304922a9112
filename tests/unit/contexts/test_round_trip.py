"""Events that reach those of their own context as they were sent: when that is safe, and that it is done then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.round_trip import Shortcut, check_shortcut
from situ.contexts.transform.transformation import transformations
from situ.event.lines import decode_line, encode_row, encode_rows
from situ.event.row import Row
from situ.lang.problems import Problems
from situ.project.check import check_folder
from situ.stages.interpret_out import ConvertedDeliveries
from situ.stages.plan import Plan, compile_plan
from tests.context_files import load
from tests.project_files import write
from tests.transformations import out_of_root

TYPES = "version: 1\nevents:\n  Level: {tank: string, depth: double m, note: optional string}\n"
YARDS = """
version: 1
context: yards
events:
  Gauge: {tank: string, depth: double yd, note: optional string}
maps:
  - both: Level <-> Gauge
"""


def found(types: str, context: str, event: str, **options: Any) -> Shortcut:
    contexts, problems = load({"types/t.yaml": types, "contexts/c.yaml": f"context: c\n{context}"})
    assert not [problem for problem in problems if problem.is_error], "\n".join(map(str, problems))
    inbound = transformations(contexts.by_id["c"], Direction.IN, Problems())
    outbound = transformations(contexts.by_id["c"], Direction.OUT, Problems())
    return check_shortcut(inbound.get(event), outbound, **options)


OTHER = """
types: {Place: {x: double ft, y: double ft}, High(Place): {z: double ft}}
"""
PLACES = "types: {Spot: {x: double m, y: double m}}\nevents: {E: {at: Spot}}"


@pytest.mark.parametrize(
    ("types", "context", "reason"),
    [
        ("events: {E: {a: string}}", "", ""),
        ("events: {E: {a: double m}}", "events: {F: {a: double ft}}\nmaps: [both: E <-> F]", ""),
        ("events: {E: {a: '[double] m'}}", "events: {F: {a: '[double] ft'}}\nmaps: [both: E <-> F]", ""),
        ("events: {E: {a: Point m}}", "events: {F: {a: Point ft}}\nmaps: [both: E <-> F]", ""),
        (
            "events: {E: {a: string}}",
            "events: {F: {b: string}}\nmaps: [{in: F -> E, attributes: {a: b}}, {out: E -> F, attributes: {b: a}}]",
            "",
        ),
        (
            "events: {E: {a: string, b: optional string}}",
            "events: {F: {a: string}}\nmaps: [{in: F -> E, attributes: {b: {default: x}}}, {out: E -> F}]",
            "",
        ),
        (
            "events: {E: {a: double}}",
            (
                "events: {F: {a: double}}\nmaps: [both: E <-> F]\nrules: {in: [F.a -> up], out: [E.a -> down]}\n"
                "functions:\n  up: double -> double = 2 * value + 1\n  down: double -> double = (value - 1) / 2"
            ),
            "",
        ),
        (
            "events: {E: {a: string}}",
            (
                "events: {F: {a: string}}\nmaps: [both: E <-> F]\nrules: {in: [F.a -> up], out: [E.a -> down]}\n"
                "functions:\n  up: {signature: string -> string, expr: value || '!', inverse: down}\n"
                "  down: string -> string = substring(value, 1, length(value) - 1)"
            ),
            "",
        ),
        ("events: {E: {a: string}}", "events: {F: {a: string}}\nmaps: [out: E -> F]", "no way in"),
        ("events: {E: {a: string}}", "events: {F: {a: string}, E: {b: string}}\nmaps: [in: F -> E]", "no way out"),
        (
            "events: {E: {a: string}}",
            "events: {F: {a: string}, G: {a: string}}\nmaps: [in: F -> E, out: E -> G]",
            "comes back as G",
        ),
        (
            "events: {E: {a: string}}",
            "events: {F: {a: string, b: optional string}}\nmaps: [both: E <-> F]",
            "`b` is dropped",
        ),
        (
            "events: {E: {a: string}}",
            "events: {F: {a: string}}\nmaps: [{in: F -> E}, {out: E -> F, attributes: {a: {expr: a || ''}}}]",
            "`a` is made anew",
        ),
        (
            "events: {E: {a: string, b: string}}",
            "events: {F: {a: string, b: string}}\nmaps: [{in: F -> E}, {out: E -> F, attributes: {a: b, b: a}}]",
            "`a` comes back from `b`",
        ),
        (
            "events: {E: {a: {type: string, default: x}}}",
            "events: {F: {a: optional string}}\nmaps: [both: E <-> F]",
            "a default stands in for `a`",
        ),
        (
            'events: {E: {a: "decimal(12,1) m"}}',
            'events: {F: {a: "decimal(12,1) ft"}}\nmaps: [both: E <-> F]',
            "the way in loses something",
        ),
        (
            "events: {E: {a: double m}}",
            (
                "events: {F: {a: double ft}}\nmaps: [both: E <-> F]\n"
                "functions: {to_ft: double m -> double ft = value * 3.28}"
            ),
            "`a`: `to_ft` does not undo `ft → m`",
        ),
        (
            "events: {E: {a: double, b: double}}",
            (
                "events: {F: {a: double, b: double}}\nmaps: [both: E <-> F]\nrules: {in: [], out: [E.a -> other]}\n"
                "functions: {other: double -> double = event.b}"
            ),
            "`a`: `other` does not undo copying",
        ),
        (
            PLACES,
            OTHER + "events: {F: {at: Place}}\nmaps: [both: E <-> F]",
            "`at` may be of a subtype of Place, and is rebuilt",
        ),
        (
            "types: {Spot: {x: double, y: double}}\nevents: {E: {at: Spot}}",
            (
                "types: {Place: {x: double}}\nevents: {F: {at: Place}}\n"
                "maps: [both: E <-> F]\nrules: {in: [Place -> spot], out: []}\n"
                "functions:\n  spot: Place -> Spot = struct(value.x AS x, 0.0 AS y)"
            ),
            "`at.x` is part of what `spot` makes",
        ),
    ],
)
def test_it_is_safe_only_if_every_value_comes_back(types: str, context: str, reason: str) -> None:
    event = "F" if "F:" in context else "E"
    assert found(types, context, event).reason == reason


def test_undeclared_attributes_that_are_kept_do_not_come_back() -> None:
    types, context = "events: {E: {a: double m}}", "events: {F: {a: double ft}}\nmaps: [both: E <-> F]"
    assert found(types, context, "F", keeps_extra=True).reason == "undeclared attributes are kept, and do not come back"
    assert found("events: {E: {a: string}}", "", "E", keeps_extra=True).safe


def test_settings_decide_whether_it_is_taken() -> None:
    safe, unsafe = Shortcut(comes_back=True), Shortcut(comes_back=True, reason="`a` is dropped")
    no = Shortcut(comes_back=False, reason="no way in")
    taken = {policy: [each.taken(policy) for each in (safe, unsafe, no)] for policy in ("safe", "original", "never")}
    assert taken == {"safe": [True, False, False], "original": [True, True, False], "never": [False, False, False]}


@pytest.mark.parametrize("ext", ["", '"xtype":"Level","subject":",\\"type\\":\\"Level\\",\\"data\\":"'])
@pytest.mark.parametrize("pos", [0, 65536])
def test_lines_in_other_terms_are_those_of_the_events(tmp_path: Path, ext: str, pos: int) -> None:
    plan = plan_of(tmp_path)
    data = b'{"tank":"t","depth":1.0,"note":"\\"type\\":\\"Level\\""}'
    row = Row(pos, "hall", 1, 1, "root", 0, "a", "hall", "Level", 7, "", 0.5, ext, data)
    worded = plan.interpretation.worded([row], encode_rows([row]), plan.routing.route([row]), plan.routing)
    expected = out_of_root(plan.interpretation, row, "yards")
    assert isinstance(expected, Row)
    terms = b',"situcontext":"yards@1","situfrom":"root"'
    line = encode_row(expected).replace(b',"data":{', terms + b',"data":{', 1)
    assert {line for _, client, _, line in worded.live if client == "desk"} == {line}


# ── delivered ─────────────────────────────────────────────────────────────────────────────────────


def plan_of(folder: Path, *, shortcut: str = "safe", context: str = YARDS) -> Plan:
    write(
        folder,
        {
            "situ.yaml": f"version: 1\nname: plant\ndefaults: {{shortcut: {shortcut}}}\n",
            "types/all.yaml": TYPES,
            "contexts/yards.yaml": context,
            "contexts/feet.yaml": context.replace("yards", "feet").replace("yd", "ft"),
            "clients/all.yaml": """
version: 1
clients:
  pump: {context: yards, advertisements: {levels: {type: Gauge}}}
  desk: {context: yards, subscriptions: {all: {types: [Gauge]}}}
  hall: {context: yards, subscriptions: {kept: {types: [Gauge], durable: true}}}
  other: {context: feet, subscriptions: {all: {types: [Gauge]}}}
  root: {subscriptions: {all: {types: [Level]}}}
""",
        },
    )
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.errors
    return compile_plan(checked.deployment)


DATA = b'{"tank":"t","depth":0.1,"note":"as it was"}'


def delivered(plan: Plan, rows: list[Row]) -> tuple[dict[str, Any], ConvertedDeliveries]:
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    lines = {client: json.loads(line) for _, client, _, line in worded.live}
    [kept] = {line for _, _, line in worded.durable}
    assert json.loads(kept)["data"] == lines["desk"]["data"]
    return {client: (line["type"], line["data"]["depth"]) for client, line in lines.items()}, worded


def sent(plan: Plan, data: bytes = DATA) -> list[Row]:
    row = Row(65536, "pump", 1, 1, "yards", 0, "a", "pump", "Gauge", 0, "", None, "", data)
    rows = [each for each in plan.interpretation.into_root([row]) if isinstance(each, Row)]
    assert [each.type for each in rows] == ["Level"]
    return rows


def test_those_of_the_same_context_get_what_was_sent(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    found, worded = delivered(plan, sent(plan))
    assert found["desk"] == ("Gauge", 0.1)
    assert found["root"] == ("Level", pytest.approx(0.09144))
    assert found["other"] == ("Gauge", pytest.approx(0.3))
    assert dict(worded.originals) == {"yards": 1}, "once for the context, however many want it"
    assert dict(worded.converted) == {"feet": 1}


def test_nobody_does_if_it_is_never_to_be(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, shortcut="never")
    found, worded = delivered(plan, sent(plan))
    assert found["desk"] == ("Gauge", pytest.approx(0.1))
    assert not worded.originals
    assert len(worded.live) + len(worded.durable) > len(found)
    assert dict(worded.converted) == {"yards": 1, "feet": 1}, "once for the context, however many want it"


def test_what_comes_out_of_the_log_is_converted(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    again = [decode_line(line) for line in encode_rows(sent(plan))]
    _, worded = delivered(plan, again)
    assert not worded.originals


LOSSY = YARDS + "functions:\n  m_to_yd: double m -> double yd = round(value * 1.09, 0)\n"


def test_values_that_do_not_come_back_are_converted_unless_originals_are_asked_for(tmp_path: Path) -> None:
    safe, original = plan_of(tmp_path / "a", context=LOSSY), plan_of(tmp_path / "b", context=LOSSY, shortcut="original")
    data = DATA.replace(b"0.1", b"10.0")
    assert delivered(safe, sent(safe, data))[0]["desk"] == ("Gauge", 10.0)
    assert delivered(safe, sent(safe, data.replace(b"10.0", b"10.4")))[0]["desk"] == ("Gauge", 10.0)
    assert delivered(original, sent(original, data.replace(b"10.0", b"10.4")))[0]["desk"] == ("Gauge", 10.4)
