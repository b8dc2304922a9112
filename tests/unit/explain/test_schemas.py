"""What ``situ explain … --json`` answers with is what the reference says, which leaves nothing out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.cli.commands.explain import app
from situ.cli.main import main
from situ.explain.match_report import report_detection
from situ.explain.policy_match import explain_detection
from tests.explanations import documented, misfits
from tests.project_files import write
from tests.unit.explain.test_policy_match import ALONE, TABLE_5_3, happened

EXAMPLE = Path(__file__).parents[3] / "examples" / "smart-building"
FACE = str(EXAMPLE / "samples" / "face.json")
TEST = ("--test", "unaccompanied-guest")
CALLS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("situ explain types", ()),
    ("situ explain types TYPE", ("RoomClimate",)),
    ("situ explain expression TEXT", ("temperature > 20 degC", "--type", "RoomClimate")),
    ("situ explain expression TEXT", ("1 + 2",)),
    ("situ explain functions", ()),
    ("situ explain subscription CLIENT/NAME", ("us-desk/lobby",)),
    ("situ explain context CONTEXT", ("us",)),
    ("situ explain transform --context CONTEXT", ("--context", "us", "--out", "RoomClimate")),
    ("situ explain transform --context CONTEXT", ("--context", "cameras", "--in", FACE)),
    (
        "situ explain transform --context CONTEXT --why ATTRIBUTE",
        ("--context", "us", "--out", "RoomClimate", "--why", "temperature"),
    ),
    (
        "situ explain transform --context CONTEXT --filter TEXT",
        ("--context", "us", "--out", "RoomClimate", "--filter", "temperature > 70 degF"),
    ),
    ("situ explain transform --fused FROM TO", ("--fused", "cameras", "us")),
    ("situ explain transform --fused FROM TO --in TYPE", ("--fused", "cameras", "us", "--in", FACE)),
    ("situ explain policy NAME", ("unaccompanied-guest",)),
    ("situ explain miss --policy NAME --at TIME", ("--policy", "unaccompanied-guest", "--at", "1h", *TEST)),
    ("situ explain code", ()),
    ("situ explain code CODE", ("X103",)),
)
ELSEWHERE = {
    "situ explain detection ID": "below: the id depends on the events",
    "situ explain event EVENT": "tests/integration/explain/test_visibility.py: it needs a run",
    "situ explain visibility EVENT --to CLIENT/NAME": "tests/golden/test_explained_visibility.py",
    "situ explain quality EXPECTATION": "tests/golden/test_explained_quality.py",
    "situ explain quality --publisher CLIENT": "tests/golden/test_explained_quality.py",
}


def answer(command: str, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> Any:
    name = command.split()[2]
    project = () if name == "code" else ("--project", str(EXAMPLE))
    main(["explain", name, *arguments, *project, "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("command", "arguments"), CALLS)
def test_an_answer_is_as_the_reference_says(
    command: str, arguments: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert misfits(command, answer(command, arguments, capsys)) == []


def test_a_detection_is_as_the_reference_says() -> None:
    why = explain_detection(happened(ALONE, *TABLE_5_3), "")
    assert why is not None
    assert misfits("situ explain detection ID", report_detection(ALONE, why).as_json()) == []


def test_something_else_is_not() -> None:
    assert misfits("situ explain code CODE", {"code": "X103", "more": 1}) != []


def test_every_explanation_is_documented() -> None:
    there = {str(each.name or "") for each in app.registered_commands}
    assert {each.split()[2] for each in documented()} == there
    assert {each for each, _ in CALLS} | ELSEWHERE.keys() == documented().keys()


def test_a_type_below_two_others_is_shown_below_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    types = ("Root: {n: int}", "A(Root): {a: int}", "B(Root): {b: int}", "Both(A, B): {d: int}", "Last(Both): {c: int}")
    write(tmp_path, {"situ.yaml": "name: diamond\n", "types/e.yaml": "\n  ".join(("events:", *types))})
    main(["explain", "types", "--project", str(tmp_path)])
    assert capsys.readouterr().out.partition("\n\n")[0].splitlines() == [
        "Events",
        "└── Root  n: int",
        "    ├── A  a: int",
        "    │   └── Both  d: int",
        "    │       └── Last  c: int",
        "    └── B  b: int",
        "        └── Both  d: int  (its subtypes are shown above)",
    ]
