"""The dangerous-goods example: it checks clean, its tests pass, and what is planted is detected, no more."""

from __future__ import annotations

import asyncio
import importlib.util
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from situ.cli.project import open_project
from situ.event.lines import decode_line
from situ.event.message import split_lines
from situ.lang.problems import Severity
from situ.project.check import check_folder
from situ.project.policy_tests import find_tests, run_tests
from tests.edge_zone import EdgeZone, edge_zone, nothing_more, take

EXAMPLE = Path(__file__).parents[3] / "examples" / "dangerous-goods"
READ = ("*.yaml", "types/*", "functions/*", "contexts/*", "sources/*", "data/*", "policies/*.dpl", "clients/*")
FILES = {
    str(file.relative_to(EXAMPLE)): file.read_text(encoding="utf-8")
    for pattern in READ
    for file in EXAMPLE.glob(pattern)
    if file.name != "situ.yaml"
}
ENCOUNTER = {"A": "L-101", "B": "L-102", "S": "t1", "T": "t2"}
ASTRAY = {"A": "L-105", "C": "tank-road", "T": "t5"}


@pytest.fixture(scope="module")
def trucks() -> ModuleType:
    """The program of the example."""
    spec = importlib.util.spec_from_file_location("trucks", EXAMPLE / "programs" / "trucks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_example_is_clean() -> None:
    checked = check_folder(EXAMPLE, {})
    assert [str(each) for each in checked.problems if each.severity is not Severity.OBSERVATION] == []


def test_its_tests_pass() -> None:
    opened = open_project(EXAMPLE)
    tested = run_tests(opened, find_tests(opened, ()))
    assert len(tested) == 6
    assert all(each.passed for each in tested), tested


def test_the_encounter_is_detected_and_nothing_that_was_not_planted(tmp_path: Path, trucks: ModuleType) -> None:
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(minutes=10)

    async def run() -> None:
        async with (
            edge_zone(tmp_path, more=FILES) as zone,
            zone.connect("koch") as koch,
            zone.connect("tank-nord") as tank_nord,
            zone.connect("headquarters") as headquarters,
        ):
            told = headquarters.events("situ.situation", durable="situations")
            warnings = headquarters.events("Warning", durable="warnings")
            assert await trucks.publish({"koch": koch, "tank-nord": tank_nord}, start) == 6 * trucks.SECONDS
            empty = {"unit": "G-7006", "position": {"lat": 53.5, "lon": 9.9}}
            await koch.publish_event("Fix", empty, time=start + timedelta(minutes=5))  # so time is settled until then
            seen = await take(told, 1)
            async with asyncio.timeout(120):
                while sum(each.type.endswith(".closed") for each in seen) < 2:
                    seen.append(await anext(told))
            opened = {each.data["policy"]: each.data for each in seen if each.type.endswith(".opened")}
            assert {policy: bound(data) for policy, data in opened.items()} == {
                "too-close": ENCOUNTER,
                "off-route": ASTRAY,
            }
            assert sum(each.type.endswith(".opened") for each in seen) == 2
            times = {each.data["policy"]: each.time - start for each in seen if each.type.endswith(".opened")}
            assert times == {"too-close": timedelta(seconds=38), "off-route": timedelta(seconds=32 + 20)}
            published = {each.type: each.data for each in await take(warnings, 2)}
            assert published["TooClose"]["text"] == (
                "petrol of HH KO 118 and hydrogen peroxide of HH TK 204 are too close to each other"
            )
            assert (published["OffRoute"]["truck"], published["OffRoute"]["corridor"]) == ("t5", "tank-road")
            await nothing_more(told)
            await nothing_more(warnings)
            assert await notices(zone) == [
                "Call HH KO 125 of Koch back to tank-road",
                "Keep HH KO 118 and HH TK 204 apart: petrol and hydrogen peroxide",
            ]
            assert zone.engine is not None
            assert zone.engine._detection.counts.late_events == 0

    asyncio.run(run())


def bound(data: Any) -> dict[str, str]:
    return {each["alias"]: each["id"] for each in data["bindings"]}


async def notices(zone: EdgeZone) -> list[str]:
    rows = [
        decode_line(line) for each in await zone.messages(zone.names.root_stream) for line in split_lines(each.body)
    ]
    return sorted(json.loads(row.data)["text"] for row in rows if row.type == "situ.notice")
