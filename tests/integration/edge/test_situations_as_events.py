"""Policies about what other policies find: push sources of situations, whose identities are bindings."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from situ.event.instants import print_instant
from situ.policies.enrichment.observations import observe
from situ.project.check import check_folder
from situ.stages.detect.detection_plan import DetectionPlan
from tests.edge_zone import edge_zone, take
from tests.integration.edge.test_detection import DURABLE, QUICK, SITU, see, told
from tests.project_files import write

FOLLOWED = """policy followed
window 3 s
lateness 2 s
concepts
  person A
  room R (security = 'open')
conditions
  A.alarm = 'unaccompanied-guest'
  A is inside R
actions
  raise alarm
"""
PUSH = "alarmed: {event: situ.situation.opened, concept: person, id: bindings.A, attribute: alarm, value: policy}"
MORE = {
    **QUICK,
    "ontology.yaml": QUICK["ontology.yaml"].replace("status: string,", "status: string, alarm: string,"),
    "sources/situations.yaml": f"push:\n  {PUSH}\n",
    "policies/followed.dpl": FOLLOWED,
}


def checked(folder: Path, **files: str) -> Any:
    write(folder, {"situ.yaml": "name: guarded\n", **MORE, **files})
    return check_folder(folder)


@dataclass
class Said:
    """An event as the reference takes it."""

    id: str
    data: dict[str, Any]
    source: str = "p"
    type: str = "situ.situation.opened"
    time: int = 1_790_000_000_000_000

    @property
    def line(self) -> bytes:
        return json.dumps({**asdict(self), "time": print_instant(self.time)}).encode()


def situation(number: int, *aliases: str) -> Said:
    bindings = [{"alias": each, "concept": "person", "id": f"{each}-{number}"} for each in aliases]
    return Said(f"e{number}", {"situation": "s", "policy": "p", "bindings": bindings, "causes": []})


def test_the_identity_of_a_situation_is_a_binding_and_who_has_no_such_alias_tells_nothing(tmp_path: Path) -> None:
    deployment = checked(tmp_path).deployment
    events = [situation(1, "A", "R"), situation(2, "R"), situation(3, "R", "A")]
    read = DetectionPlan.of(deployment).observing.lines(each.line for each in events)
    (found,) = [each.rows for each in read.observed if each.attribute == "alarm"]
    push = {"alarmed": deployment.push["alarmed"]}
    meant = [each.identity for each in observe(events, push, deployment.types)]
    assert found.column("identity").to_pylist() == meant == ["A-1", "A-3"]


def test_a_path_into_bindings_ends_with_an_alias(tmp_path: Path) -> None:
    found = checked(
        tmp_path, **{"sources/situations.yaml": f"push:\n  {PUSH.replace('bindings.A', 'bindings.A.id')}\n"}
    )
    assert [each.code.code for each in found.errors] == ["S145"]


def test_a_policy_is_about_what_another_one_found(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=MORE) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)  # alone in the laboratory
            for _ in range(6):
                await asyncio.sleep(0.5)
                await see(reader, "g1", 30)  # then in the hall, where everybody may be
            (opened,) = await take(events, 1)
            while opened.data["policy"] != "followed":
                (opened,) = await take(events, 1)
            assert told(opened) == ("opened", {"A": "g1", "R": "hall"})
            assert "situ.situation.opened" in {each["type"] for each in opened.data["causes"]}

    asyncio.run(run())
