"""What ``situ explain visibility`` says: the worked example, another epoch, and situations by their parts."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.model import Deployment
from situ.project.check import check_folder
from situ.scopes.stamp_codec import StampPart, write_parts
from situ.stages.explain_visibility import (
    VisibilityAnswer,
    about_event,
    explain_row,
    explanation_lines,
    of_one_side,
)
from situ.stages.visibility import NOBODYS, EventVisibility
from tests.explanations import misfits
from tests.project_files import write

SCOPES = """version: 1
dimensions:
  membership:
    mode: closed                       # default open
    scopes:
      group:        {}
      plant-lyon:   { in: [group],      output: "type IS Alarm AND severity >= 4" }
      operations:   { in: [plant-lyon], output: "type IS Alarm OR type IS ShiftReport" }
      maintenance:  { in: [plant-lyon], input:  "type IS Alarm OR type IS MachineState" }
      line-a:       { in: [operations, maintenance],           # a diamond under plant-lyon
                      output: "NOT (type IS CycleCount)",
                      links: { maintenance: { up: "machine_class = 'press'" } } }
      supplier-acme: { in: [maintenance], input: "vendor = 'acme'", output: "type IS ServiceNote" }
  geography:
    scopes: { eu: {}, lyon: { in: [eu], carriers: [main, zone-paris] }, hall-2: { in: [lyon] } }
  network:
    scopes: { wan: {}, ot-lan: { in: [wan], output: "bytes <= 65536" }, bus-2: { in: [ot-lan], output: "type IS Alarm OR sampled" } }
clients:
  press-7:     { membership: [line-a], geography: [hall-2], network: [bus-2] }
  acme-remote: { membership: [supplier-acme], network: [wan] }
"""  # noqa: E501
TYPES = """
events:
  Alarm: {severity: int}
  ShiftReport: {}
  CycleCount: {}
  ServiceNote: {}
  MachineState: {machine_class: string, vendor: optional string, bytes: int, sampled: boolean}
"""
CLIENTS = """
clients:
  press-7:
    scopes: {membership: line-a, geography: hall-2, network: bus-2}
    advertisements: {state: {type: MachineState}}
  acme-remote:
    scopes: {membership: supplier-acme, network: wan}
    subscriptions: {notes: {types: [MachineState]}}
"""
ACME = TagSet.of({"membership": "supplier-acme", "network": "wan"})
PRESS = TagSet.of({"membership": "line-a", "geography": "hall-2", "network": "bus-2"})
ANYWHERE = replace(ACME, rest=True)


def project(folder: Path, scopes: str = SCOPES) -> Deployment:
    files = {"situ.yaml": "name: plant\n", "types/e.yaml": TYPES, "scopes.yaml": scopes, "clients/c.yaml": CLIENTS}
    checked = check_folder(write(folder, files))
    assert checked.deployment is not None, checked.problems
    return checked.deployment


def seeing(deployment: Deployment, epoch: int, before: EventVisibility | None = None) -> EventVisibility:
    numbers = before.numbers if before is not None else deployment.numbers
    found = EventVisibility.of(replace(deployment, epoch=epoch).numbered(numbers), before)
    assert found is not None
    return found


def state(known: EventVisibility, **more: object) -> Row:
    data = {"machine_class": "press", "bytes": 100, "sampled": True, **more}
    row = Row(
        pos=1, client="press-7", incarnation=1, seq=1, context="root", recv=0, id="9b1e4c", source="press-7",
        type="MachineState", time=0, ad="press-7/state", confidence=None, ext="", data=json.dumps(data).encode(),
    )  # fmt: skip
    known.stamp([row])
    return row


def told(row: Row, why: VisibilityAnswer) -> str:
    answer = why.about(about_event(row), "acme-remote/notes")
    found = answer.as_json()
    assert misfits("situ explain visibility EVENT --to CLIENT/NAME", found) == []
    assert found.pop("to") == "acme-remote/notes"
    return f"{explanation_lines(answer)}\n\n{json.dumps(found, indent=2, ensure_ascii=False)}\n"


@pytest.fixture
def stamped(tmp_path: Path) -> tuple[Deployment, EventVisibility, EventVisibility]:
    """The project, what was in force when the event came, and what is now: other clients, the same scopes."""
    deployment = project(tmp_path)
    then = seeing(deployment, 41)
    return deployment, then, seeing(deployment, 42, then)


def test_the_example_of_a_machine_and_its_supplier(
    stamped: tuple[Deployment, EventVisibility, EventVisibility], golden: Callable[[str, str], None]
) -> None:
    deployment, then, now = stamped
    row = state(then)
    why = explain_row(now, row, ACME, deployment.scopes)
    golden("explained-visibility/machine.txt", told(row, why))
    assert not why.visible
    for side, own, foreign in (
        ("producer", PRESS, ("acme", "maintenance", "operations", "vendor", "wan", "41")),
        ("consumer", ACME, ("line-a", "hall-2", "bus-2", "vendor", "geography", "41")),
    ):
        text = told(state(then), of_one_side(why.visible, side, own))  # type: ignore[arg-type]
        assert not any(each in text for each in foreign), text
        assert "NOT VISIBLE" not in text


def test_what_was_seen_and_is_not_any_more(tmp_path: Path, golden: Callable[[str, str], None]) -> None:
    then = seeing(project(tmp_path / "then"), 41)
    row = state(then, vendor="acme")
    narrowed = project(tmp_path / "now", SCOPES.replace("\"vendor = 'acme'\"", "\"vendor = 'acme' AND bytes < 10\""))
    now = seeing(narrowed, 42, then)
    why = explain_row(now, row, ANYWHERE, narrowed.scopes)
    golden("explained-visibility/narrowed.txt", told(row, why))
    assert explain_row(then, row, ANYWHERE).visible
    assert not why.visible
    reached_back = explain_row(seeing(project(tmp_path / "again"), 43, now), state(now, vendor="acme"), ANYWHERE)
    assert "not visible then: what is opened later does not reach back" in told(row, reached_back)


def test_a_situation_is_explained_by_its_parts(
    stamped: tuple[Deployment, EventVisibility, EventVisibility], golden: Callable[[str, str], None]
) -> None:
    deployment, then, now = stamped
    row, part = state(now, vendor="acme"), state(then)
    seen = state(then, vendor="acme")
    row.parts = write_parts([StampPart(each.tags, each.epoch, each.bits) for each in (part, seen)])
    why = explain_row(now, row, ANYWHERE, deployment.scopes)
    golden("explained-visibility/situation.txt", told(row, why))
    assert (why.own.visible, why.visible) == (True, False)
    assert why.release is not None
    assert why.release.dimensions == ("membership",)
    row.parts = write_parts([StampPart(part.tags, part.epoch, part.bits, frozenset(why.release.dimensions))])
    released = explain_row(now, row, ANYWHERE)
    assert released.visible
    assert "released in membership  visible" in told(row, released)


def test_what_nobody_knows_any_more(stamped: tuple[Deployment, EventVisibility, EventVisibility]) -> None:
    _, then, now = stamped
    row = state(then)
    row.epoch = 40
    assert "what the scopes of epoch 40 were is not known any more" in told(row, explain_row(now, row, ANYWHERE))
    row.tags = NOBODYS
    why = explain_row(now, row, ANYWHERE)
    assert "only operators see it" in told(row, why)
    assert not why.visible


def test_a_filter_is_told_as_the_stamp_has_it(stamped: tuple[Deployment, EventVisibility, EventVisibility]) -> None:
    """Types may change after the event was stamped, and the stamp decides."""
    _, then, now = stamped
    row = state(then, vendor="acme")
    row.bits = 0
    why = explain_row(now, row, ANYWHERE)
    assert not why.visible
    assert "not true: when it was stamped" in told(row, why)
