"""Types that a context has because its rules change root's: they are published, subscribed to and inherited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from situ.event.lines import encode_rows
from situ.event.row import BadRow, Origin, Row
from situ.lang.problems import Severity
from situ.lang.types.model import Struct, is_subtype
from situ.project.check import check_folder
from situ.stages.plan import Plan, compile_plan
from tests.project_files import write

FILES = {
    "situ.yaml": "name: rescue\n",
    "types/all.yaml": """\
        types:
          Region: {south: double deg, north: double deg}
        events:
          Alert: {where: Region, text: string}
          FireAlert(Alert): {burning: [Region]}
          Tick: {n: int}
        """,
    "contexts/crew.yaml": """\
        context: crew
        derive: true
        types:
          Area: {lat: double deg, tall: double nmi}
        rules:
          out:
            - Region -> to_area
          in:
            - Area -> from_area
        functions:
          to_area: Region -> Area = struct(
            (value.south + value.north) / 2 AS lat, (value.north - value.south) * 60 AS tall)
          from_area: Area -> Region = struct(
            value.lat - value.tall / 120 AS south, value.lat + value.tall / 120 AS north)
        """,
    "contexts/night.yaml": """\
        context: crew.night
        extends: crew
        rules:
          out:
            - Alert.where -> identity
        """,
    "clients/all.yaml": """\
        clients:
          crew:
            context: crew
            advertisements: {alerts: {type: Alert}}
            subscriptions: {large: {types: [Alert], where: "where.tall > 6 nmi"}}
        """,
}  # fmt: skip
REGION, AREA = {"south": 48.0, "north": 49.0}, {"lat": 48.5, "tall": 60.0}


def plan_of(folder: Path) -> Plan:
    checked = check_folder(write(folder, FILES))
    assert checked.deployment is not None, checked.errors
    assert [str(each) for each in checked.problems if each.severity is Severity.WARNING] == []
    return compile_plan(checked.deployment)


def event(type: str, data: dict[str, Any]) -> Row:
    return Row(65536, "hq", 1, 1, "root", 0, "a", "hq", type, 0, "", None, "", json.dumps(data).encode())


def test_events_of_a_derived_type_come_in(tmp_path: Path) -> None:
    interpretation = plan_of(tmp_path).interpretation
    sent = {"specversion": "1.0", "id": "1", "source": "crew", "type": "Alert", "data": {"where": AREA, "text": "!"}}
    origin = Origin(client="crew", incarnation=1, seq=1, received=0, pos=65536, context="crew")
    [row] = interpretation.into_root(interpretation.decode(json.dumps([sent]).encode(), origin))
    assert isinstance(row, Row)
    assert json.loads(row.data) == {"where": REGION, "text": "!"}
    sent["data"] = {"where": REGION, "text": "in root's terms"}
    [bad] = interpretation.decode(json.dumps([sent]).encode(), origin)
    assert isinstance(bad, BadRow)


def test_a_subscription_in_derived_terms_gets_subtypes_too(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    small = {"where": {"south": 48.0, "north": 48.05}, "text": "s"}
    large = {"where": REGION, "text": "l"}
    rows = [event("Alert", small), event("Alert", large), event("FireAlert", {**large, "burning": [REGION]})]
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    delivered = {index: json.loads(line)["data"] for index, *_, line in worded.live}
    assert delivered == {1: {**large, "where": AREA}, 2: {**large, "where": AREA, "burning": [AREA]}}


def test_derived_types_stand_to_each_other_as_the_originals_do(tmp_path: Path) -> None:
    contexts = plan_of(tmp_path).interpretation.contexts
    root, crew = contexts.root.types, contexts.by_id["crew"].types
    assert crew.event("Tick") == root.event("Tick")
    alert, fire = crew.event("Alert"), crew.event("FireAlert")
    assert isinstance(alert, Struct)
    assert isinstance(fire, Struct)
    assert is_subtype(fire, alert)
    assert alert != root.event("Alert")


def test_a_context_below_derives_by_its_own_rules(tmp_path: Path) -> None:
    contexts = plan_of(tmp_path).interpretation.contexts
    root, night = contexts.root.types, contexts.by_id["crew.night"].types
    assert night.event("Alert") == root.event("Alert")
    fire = night.event("FireAlert")
    assert isinstance(fire, Struct)
    assert [str(each.type) for each in fire.attributes] == ["Region", "string", "[Area]"]
    assert is_subtype(fire, night.event("Alert") or fire)
