"""The contexts of a deployment at work, without an engine: in, out, once for each context, and what goes wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from situ.app.replay import Replay
from situ.contexts.transform.converter import Converter
from situ.event.lines import encode_rows
from situ.event.row import OUTBOUND, BadRow, Origin, Row
from situ.project.check import check_folder
from situ.stages.plan import Plan, compile_plan
from tests.project_files import write

TYPES = """
version: 1
events:
  Level: {tank: string, depth: double m, inverse: optional double}
"""
US = """
version: 1
context: us
extends: root
events:
  Gauge: {tank: string, depth: double yd, share: optional double}
maps:
  - both: Level <-> Gauge
    attributes: {}
  - out: Level -> Gauge
    attributes: {share: {expr: "1 / inverse"}}
"""


def plan_of(folder: Path, subscribers: int) -> Plan:
    clients = "".join(
        f"  us-{number}: {{context: us, subscriptions: {{all: {{types: [Gauge]}}}}}}\n" for number in range(subscribers)
    )
    files = {
        "situ.yaml": "version: 1\nname: plant\n",
        "types/all.yaml": TYPES,
        "contexts/us.yaml": US,
        "clients/all.yaml": f"version: 1\nclients:\n  pump: {{context: us}}\n  hall: {{}}\n{clients}",
    }
    write(folder, files)
    checked = check_folder(folder)
    assert checked.deployment is not None, checked.errors
    return compile_plan(checked.deployment)


def level(data: dict[str, Any], *, context: str = "root", type: str = "Level") -> Row:
    return Row(65536, "pump", 1, 1, context, 0, "a", "pump", type, 0, "", None, "", json.dumps(data).encode())


def test_an_event_of_a_context_that_is_not_there_goes_no_further(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 0)
    [bad] = plan.interpretation.into_root([level({"tank": "t", "depth": 1.0}, context="mars")])
    assert isinstance(bad, BadRow)
    assert (bad.stage, bad.errors[0][0]) == ("interpret", "INT702")


@pytest.mark.parametrize("type", ["Level", "Gauge"])
def test_nor_does_one_of_a_version_that_nobody_knows_whatever_root_has_of_its_type(tmp_path: Path, type: str) -> None:
    work = plan_of(tmp_path, 0).interpretation
    event = {"specversion": "1.0", "id": "a", "source": "pump", "type": type, "data": {"tank": "t", "depth": 10.0}}
    origin = Origin(client="pump", incarnation=1, seq=1, received=0, pos=65536, context="us@9")
    [bad] = work.into_root(work.decode(json.dumps([event]).encode(), origin))
    assert isinstance(bad, BadRow)
    assert [code for code, *_ in bad.errors] == ["INT702"]


def test_a_message_is_read_in_the_terms_of_its_client(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 0)
    event = {"specversion": "1.0", "id": "a", "source": "pump", "type": "Gauge", "data": {"tank": "t", "depth": 10.0}}
    origin = Origin(client="pump", incarnation=1, seq=1, received=0, pos=65536, context="us")
    rows = plan.interpretation.into_root(plan.interpretation.decode(json.dumps([event]).encode(), origin))
    assert isinstance(rows[0], Row)
    assert rows[0].type == "Level"
    assert json.loads(rows[0].data)["depth"] == pytest.approx(9.144)


@pytest.mark.parametrize("subscribers", [1, 10, 100])
def test_an_event_is_converted_once_for_a_context_however_many_want_it(
    tmp_path: Path, subscribers: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = plan_of(tmp_path, subscribers)
    calls: list[bytes] = []
    text = Converter.text

    def counted(self: Converter, event: Any, data: bytes, rows: Any = None) -> bytes:
        calls.append(data)
        return text(self, event, data, rows or {})

    monkeypatch.setattr(Converter, "text", counted)
    rows = [level({"tank": "t", "depth": 9.144}), level({"tank": "u", "depth": 1.0})]
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    assert len(worded.live) == 2 * subscribers
    assert len(calls) == 2
    delivered = json.loads(worded.live[0][-1])
    assert delivered["type"] == "Gauge"
    assert delivered["data"]["depth"] == pytest.approx(10.0)


def test_what_fails_for_one_context_is_delivered_to_all_others(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 2)
    rows = [level({"tank": "t", "depth": 1.0, "inverse": 0.0}), level({"tank": "u", "depth": 1.0, "inverse": 2.0})]
    worded = plan.interpretation.worded(rows, encode_rows(rows), plan.routing.route(rows), plan.routing)
    assert [index for index, *_ in worded.live] == [1, 1]
    [bad] = worded.bad
    assert (bad.stage, bad.context) == (OUTBOUND, "us@1")
    assert bad.errors[0][:2] == ("INT704", "share")


def test_what_was_compiled_serves_the_next_deployment(tmp_path: Path) -> None:
    first = plan_of(tmp_path, 1)
    rows = [level({"tank": "t", "depth": 1.0})]
    first.interpretation.worded(rows, encode_rows(rows), first.routing.route(rows), first.routing)
    again = check_folder(tmp_path).deployment
    assert again is not None
    second = compile_plan(again, first)
    assert second.interpretation._converters is first.interpretation._converters


def test_replay_tells_in_the_terms_of_each(tmp_path: Path) -> None:
    plan = plan_of(tmp_path, 1)
    replay = Replay(plan)
    rows = [level({"tank": "t", "depth": 9.144})]
    replay.add(rows[0], encode_rows(rows)[0])
    [delivery] = replay.finish()
    assert delivery.subscription == "us-0/all"
    assert json.loads(delivery.line)["data"]["depth"] == pytest.approx(10.0)
