"""Functions of Python: declared, kept with the context, called for many events at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from situ.contexts.model import Direction
from situ.contexts.transform.transformation import transformations
from situ.event.lines import encode_rows
from situ.event.row import OUTBOUND, BadRow, Row
from situ.lang.problems import Problems
from situ.model import Deployment
from situ.project.check import CheckedProject, check_folder
from situ.project.snapshot import write_snapshot
from situ.stages.plan import Plan, compile_plan
from tests.project_files import diff_folders, write

TYPES = """
version: 1
types:
  Point2: {x: double m, y: double m}
  Money: {currency: string, amount: "decimal(18,2)"}
events:
  Level: {tank: string, depth: double m, at: optional Point2, marks: "optional [Point2]", seen: optional timestamp}
  Bill: {no: long, total: Money}
"""
US = """
version: 1
context: us
extends: root
types:
  Place: {lat: double, lon: double}
events:
  Gauge2: {tank: string, depth: double yd}
  Gauge: {tank: string, depth: double yd, at: optional Place, marks: "optional [Place]"}
maps:
  - out: Level -> Gauge
  - in: Gauge2 -> Level
rules:
  out: [Point2 -> to_place]
functions:
  to_place: {signature: Point2 -> Place, python: geo.place}
"""
GEO = """
import pyarrow as pa
import pyarrow.compute as pc

from situ import conv_function

CALLS = []


def place(points):
    CALLS.append(len(points))
    x, y = pc.struct_field(points, "x"), pc.struct_field(points, "y")
    return pa.StructArray.from_arrays([pc.divide(y, 111320.0), pc.divide(x, 111320.0)], ["lat", "lon"])


@conv_function("m", "yd")
def yards(metres):
    CALLS.append(-len(metres))
    if pc.any(pc.less(metres, 0.0)).as_py():
        raise ValueError("below the ground")
    return pc.multiply(metres, 2.0)


@conv_function("yd", "m", context="us")
def metres(yards):
    return pc.divide(yards, 2.0)
"""


ALL = "us-1: {context: us, subscriptions: {all: {types: [Gauge]}}}"


def checked(folder: Path, clients: str = ALL, files: Mapping[str, str] = MappingProxyType({})) -> CheckedProject:
    write(
        folder,
        {
            "situ.yaml": "version: 1\nname: plant\n",
            "types/all.yaml": TYPES,
            "contexts/us.yaml": US,
            "functions/geo.py": GEO,
            "clients/all.yaml": f"version: 1\nclients:\n  pump: {{context: us}}\n  {clients}\n",
            **files,
        },
    )
    return check_folder(folder)


def plan_of(found: CheckedProject) -> Plan:
    assert found.deployment is not None, [str(each) for each in found.errors]
    return compile_plan(found.deployment)


def level(data: dict[str, Any], *, context: str = "root", type: str = "Level", seq: int = 1) -> Row:
    return Row(65536, "pump", 1, seq, context, 0, "a", "pump", type, 0, "", None, "", json.dumps(data).encode())


def delivered(plan: Plan, rows: list[Row]) -> tuple[list[Any], tuple[BadRow, ...]]:
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    return [json.loads(line)["data"] for *_, line in worded.live], worded.bad


def test_one_call_serves_a_batch_in_lists_and_structs_and_beside_expressions(tmp_path: Path) -> None:
    plan = plan_of(checked(tmp_path))
    data = {"tank": "t", "depth": 2.0, "at": {"x": 0.0, "y": 111320.0}, "marks": [{"x": 1113.2, "y": 0.0}]}
    rows = [level({**data, "depth": float(number)}) for number in range(10)]
    found, bad = delivered(plan, rows)
    assert not bad
    assert [each["depth"] for each in found] == [2.0 * number for number in range(10)]
    assert found[3]["at"] == {"lat": 1.0, "lon": 0.0}
    assert found[3]["marks"] == [{"lat": 0.0, "lon": pytest.approx(0.01)}]
    assert plan.interpretation.python.calls == 2


def test_the_way_in_is_one_call_a_message_too(tmp_path: Path) -> None:
    plan = plan_of(checked(tmp_path))
    rows = [level({"tank": "t", "depth": float(each)}, context="us", type="Gauge2", seq=each) for each in range(1, 5)]
    found = plan.interpretation.into_root(list(rows))
    assert [json.loads(each.data)["depth"] for each in found if isinstance(each, Row)] == [0.5, 1.0, 1.5, 2.0]
    assert plan.interpretation.python.calls == 1


def test_only_the_failing_rows_are_dead_letters(tmp_path: Path) -> None:
    plan = plan_of(checked(tmp_path))
    rows = [level({"tank": "t", "depth": -1.0 if number == 617 else float(number)}) for number in range(1000)]
    found, bad = delivered(plan, rows)
    assert len(found) == 999
    [letter] = bad
    code, path, message, hint = letter.errors[0]
    assert (letter.stage, letter.context, code, path) == (OUTBOUND, "us@1", "INT704", "depth")
    assert "`yards` failed, -1.0 gives ValueError, below the ground" in message
    assert "us" in hint
    assert plan.interpretation.python.calls < 40


@pytest.mark.parametrize(
    ("gives", "reason"),
    [
        ("metres.slice(1)", "it gave 0 values for 1"),
        ("metres.to_pylist()", "it gave a list, not an array of pyarrow"),
        ("None", "it gave nothing, not an array of pyarrow"),
        ("pa.array(['x'] * len(metres))", "it gave an array of string, not of double"),
        ("pa.array([float('nan')] * len(metres))", "it gave nan, which is no number"),
        ("1 / 0", "ZeroDivisionError, division by zero"),
        ("nobody", "NameError, name 'nobody' is not defined"),
        ("exit(3)", "SystemExit, 3"),
    ],
)
def test_what_is_no_result_is_said(tmp_path: Path, gives: str, reason: str) -> None:
    plan = plan_of(checked(tmp_path, ALL, {"functions/geo.py": GEO.replace("pc.multiply(metres, 2.0)", gives)}))
    _, bad = delivered(plan, [level({"tank": "t", "depth": 1.0})])
    assert reason in bad[0].errors[0][2]


def test_numbers_that_fit_are_taken(tmp_path: Path) -> None:
    code = GEO.replace("return pc.multiply(metres, 2.0)", "return pa.chunked_array([pc.cast(metres, pa.int32())])")
    found, bad = delivered(
        plan_of(checked(tmp_path, files={"functions/geo.py": code})), [level({"tank": "t", "depth": 7.0})]
    )
    assert (found[0]["depth"], bad) == (7.0, ())


def test_a_file_that_cannot_be_executed_fails_events_not_the_check(tmp_path: Path) -> None:
    found = checked(tmp_path, files={"functions/geo.py": f"import no_such_module\n{GEO}"})
    assert not found.errors
    _, bad = delivered(plan_of(found), [level({"tank": "t", "depth": 1.0})])
    assert "ModuleNotFoundError, No module named 'no_such_module'" in bad[0].errors[0][2]


def test_checking_executes_nothing(tmp_path: Path) -> None:
    found = checked(tmp_path, files={"functions/geo.py": f"raise SystemExit('executed')\n{GEO}"})
    assert not found.errors


def test_decimals_and_nulls(tmp_path: Path) -> None:
    code = """
import pyarrow as pa
import pyarrow.compute as pc
from situ import conv_function, context, transform_with

@context("us")
@transform_with(direction="out")
@conv_function(type="Money", result="Money")
def dollars(money):
    amounts = pc.multiply(pc.struct_field(money, "amount"), pa.scalar(2, pa.decimal128(3, 0)))
    return pa.StructArray.from_arrays([pa.array(["USD"] * len(money)), pc.cast(amounts, pa.decimal128(18, 2))],
                                      ["currency", "amount"])

@context("us")
@transform_with(pattern="Level.depth", direction="out")
@conv_function("m", "yd", nulls="call")
def filled(depths):
    return pc.fill_null(depths, 1.0)
"""
    clients = "us-1: {context: us, subscriptions: {all: {types: [Bill, Gauge]}}}"
    plan = plan_of(checked(tmp_path, clients, {"functions/m.py": code}))
    rows = [level({"no": 1, "total": {"currency": "EUR", "amount": "2.50"}}, type="Bill")]
    found, bad = delivered(plan, rows)
    assert not bad
    assert found == [{"no": 1, "total": {"currency": "USD", "amount": "5.00"}}]


def test_the_code_is_part_of_the_deployment_and_of_its_digest(tmp_path: Path) -> None:
    first = checked(tmp_path / "a").deployment
    second = checked(tmp_path / "b", files={"functions/geo.py": GEO.replace("2.0", "3.0")}).deployment
    assert first is not None
    assert second is not None
    assert first.digest != second.digest
    again = Deployment.from_json(json.loads(json.dumps(first.as_json())))
    assert again.digest == first.digest
    (tmp_path / "a" / "functions" / "geo.py").unlink()  # an engine has the deployment alone
    found, _ = delivered(compile_plan(again), [level({"tank": "t", "depth": 2.0})])
    assert found[0]["depth"] == 4.0
    changes = diff_folders(_snapshot(tmp_path, first), tmp_path / "b")
    assert {change.name for change in changes if change.kind == "context"} == {"root", "us"}
    assert all(len(detail.after or "") < 300 for change in changes for detail in change.details)


def _snapshot(folder: Path, deployment: Deployment) -> Path:
    write_snapshot(deployment, folder / "first.json")
    return folder / "first.json"


def test_another_version_of_the_code_is_another_plan(tmp_path: Path) -> None:
    plans = []
    for name, code in (("a", GEO), ("b", GEO), ("c", GEO.replace("2.0", "3.0"))):
        found = checked(tmp_path / name, files={"functions/geo.py": code}).deployment
        assert found is not None
        us = found.contexts.get("us")
        assert us is not None
        plans.append(transformations(us, Direction.OUT, Problems())["Level"].plan)
    assert plans[0] == plans[1] != plans[2]


@pytest.mark.parametrize(
    ("where", "asked", "kept"),
    [
        ("depth > 4", [0, 1, 2, 3, 4], [3, 4]),
        ("depth > 4 AND tank = 'b'", [1, 3], [3]),
        ("tank = 'b' AND at.lat > 0.00001", [1, 3], [3]),
        ("depth > 4 OR tank = 'a'", [0, 1, 2, 3, 4], [0, 2, 3, 4]),
        ("tank = 'c'", [4], [4]),
    ],
)
@pytest.mark.parametrize("durable", ["true", "false"])
def test_filters_through_python_are_decided_after(
    tmp_path: Path, where: str, asked: list[int], kept: list[int], durable: str
) -> None:
    clients = f'us-1: {{context: us, subscriptions: {{all: {{types: [Gauge], where: "{where}", durable: {durable}}}}}}}'
    found = checked(tmp_path, clients=clients)
    plan = plan_of(found)
    observed = [str(each.code.code) for each in found.problems if each.code.code == "INT604"]
    assert observed == ([] if where == "tank = 'c'" else ["INT604"])
    rows = [
        level({"tank": tank, "depth": float(number), "at": {"x": 0.0, "y": float(number)}})
        for number, tank in enumerate("ababc")
    ]
    routed = plan.routing.route(rows)
    assert [index for index, *_ in (*routed.durable, *routed.live)] == asked
    worded = plan.interpretation.worded(rows, encode_rows(rows), routed, plan.routing)
    assert [index for index, *_ in (*worded.durable, *worded.live)] == kept


def test_what_fails_is_not_wanted_but_said(tmp_path: Path) -> None:
    plan = plan_of(
        checked(tmp_path, clients='us-1: {context: us, subscriptions: {all: {types: [Gauge], where: "depth > 4"}}}')
    )
    found, bad = delivered(plan, [level({"tank": "t", "depth": -1.0}), level({"tank": "t", "depth": 5.0})])
    assert (len(found), bad[0].errors[0][0]) == (1, "INT704")


@pytest.mark.parametrize(
    ("name", "code", "expected"),
    [
        ("geo", "def place(:\n", "INT420"),
        ("geo", "def other(x): return x\n", "INT419"),
        ("geo", "def place(x, y): return x\n", "INT419"),
        ("other", "def place(x): return x\n", "INT419"),
        ("geo", f"{GEO}\nN = 1\n@conv_function('ft', 'in', time=N)\ndef g(x): return x\n", "INT420"),
        ("geo", f"{GEO}\n@conv_function('ft', 'in', tim='now')\ndef g(x): return x\n", "INT420"),
        ("geo", f"{GEO}\n@conv_function\ndef g(x): return x\n", "INT420"),
        ("geo", f"{GEO}\n@conv_function('ft', 'in')\ndef g(): return 1\n", "INT420"),
        ("geo", f"{GEO}\nfrom situ import context\n@context('us')\ndef g(x): return x\n", "INT420"),
        ("geo", f"{GEO}\n@conv_function('ft', 'nounit')\ndef g(x): return x\n", "INT105"),
        ("geo", f"{GEO}\n@conv_function('m', 'yd', type='Nothing')\ndef g(x): return x\n", "INT101"),
    ],
)
def test_faults_are_found_without_running(tmp_path: Path, name: str, code: str, expected: str) -> None:
    found = checked(tmp_path, ALL, {"functions/geo.py": "", f"functions/{name}.py": code})
    assert expected in {each.code.code for each in found.errors}, [str(each) for each in found.problems]
    places = [each.location for each in found.errors if each.code.code == expected]
    assert all(place is not None and place.line is not None for place in places)
