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
from tests.unit.test_explain_match import ALONE, TABLE_5_3, happened

EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-building"
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
    "situ explain event EVENT": "tests/integration/test_explained_visibility.py: it needs a run",
}

BY_THE_ROUTER = {"quality", "visibility"}
"""What the router explains, and clients may ask it for: their forms are those of the protocol."""


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
    assert {each.split()[2] for each in documented()} == there - BY_THE_ROUTER
    assert {each for each, _ in CALLS} | ELSEWHERE.keys() == documented().keys()
