"""Situations among scopes at the edge: three audiences, policies of policies, a release, and a crash in between."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from situ.app.replay import replay_policies
from situ.client.client import Client
from situ.client.events import Event
from situ.edge.detect import EdgeDetection
from situ.event.lines import decode_line, stored_lines
from situ.event.row import Row
from situ.explain.situations import read_situations
from situ.project.check import check_folder
from situ.registry.snapshots import publish_deployment
from situ.scopes.stamp_codec import stamps_in
from tests.edge_zone import EdgeZone, edge_zone, eventually, nothing_more, take
from tests.project_files import write
from tests.scoped import PROJECT, SCOPES

SITU = "defaults: {lateness: 100 ms, idle: 300 ms}\n"
MORE = {name: text for name, text in PROJECT.items() if name != "situ.yaml"}
# By audience: of which policies it is told, about whom. What is released names nobody.
TOLD = {
    "at-east": {
        "presence": ("g1", "g2", "g3"),
        "everywhere": ("g1", "g3"),
        "again": ("g1", "g2", "g3"),
        "counted": ("", "", ""),
        "unaccompanied-guest": ("g1", "g2", "g3"),
    },
    "at-group": {
        "presence": ("g1", "g3"),
        "everywhere": ("g1", "g3"),
        "again": ("g1", "g3"),
        "counted": ("", "", ""),
    },
    "at-other": {"counted": ("", "", "")},
}
SIGHTINGS = (("reader-e", "g1", 5.0), ("reader-e", "g2", 9.0), ("reader-w", "g3", 9.0))


def expected(audience: str, *stages: str) -> Counter[tuple[str, str, str]]:
    return Counter((policy, who, stage) for stage in stages for policy, some in TOLD[audience].items() for who in some)


def about(row_type: str, data: dict[str, list[dict[str, str]]]) -> tuple[str, str, str]:
    bound = {each["alias"]: each["id"] for each in data["bindings"]}
    return str(data["policy"]), bound.get("A", ""), row_type.rpartition(".")[2]


@dataclass
class Audience:
    """A client that takes all that it is told of situations."""

    events: AsyncIterator[Event]
    got: list[Event] = field(default_factory=list)

    async def take(self, wanted: Counter[tuple[str, str, str]]) -> None:
        """As many more as these; and they are these."""
        some = await take(self.events, wanted.total(), within=60)
        self.got += some
        assert Counter(about(each.type, each.data) for each in some) == wanted


async def see(reader: Client, who: str, x: float, **about: Any) -> None:
    await reader.publish_event("Sighting", {"who": who, "at": {"x": x, "y": 5.0}}, **about)


async def logged(zone: EdgeZone) -> list[Row]:
    return [decode_line(line) for each in await zone.messages(zone.names.root_stream) for line in stored_lines(each)]


def longer(text: str) -> str:
    """Situations are open long enough for a process to die and come back."""
    return text.replace("hold 2 s", "hold 4 s").replace("window 1 s\nconcepts", "window 1 s\nhold 4 s\nconcepts")


def test_three_audiences_are_told_what_they_may_know_through_a_crash(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "situ.audit")
    more = {name: longer(text) if name.startswith("policies/") else text for name, text in MORE.items()}
    more["policies/again.dpl"] = more["policies/again.dpl"].replace("window 3 s", "window 3 s\nhold 4 s")

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=more) as zone,
            zone.connect("reader-e") as east,
            zone.connect("reader-w") as west,
            zone.connect("at-east") as at_east,
            zone.connect("at-group") as at_group,
            zone.connect("at-other") as at_other,
        ):
            nodes = {"at-east": at_east, "at-group": at_group, "at-other": at_other}
            audiences = {name: Audience(node.events(durable="all")) for name, node in nodes.items()}
            for reader, who, x in SIGHTINGS:
                await see({"reader-e": east, "reader-w": west}[reader], who, x)
            at_hand = audiences["at-other"]
            await at_hand.take(expected("at-other", "opened"))
            await zone.crash()  # these are open, others are not yet
            await zone.start()
            await at_hand.take(expected("at-other", "closed"))
            for name in ("at-east", "at-group"):
                await audiences[name].take(expected(name, "opened", "closed"))
            for audience in audiences.values():
                await nothing_more(audience.events, within=0.2)
            for each in audiences["at-other"].got:
                assert each.released == "site"
                assert (each.data["causes"], each.data["bindings"]) == ([], [])
                assert b"situparts" not in json.dumps(each.data).encode()
            rows = [row for row in await logged(zone) if row.type.startswith("situ.situation.")]
            assert all(row.parts for row in rows)
            opened = {row.id.partition(".")[0]: stamps_in(row.parts) for row in rows if row.type.endswith("opened")}
            closed = {row.id.partition(".")[0]: stamps_in(row.parts) for row in rows if row.type.endswith("closed")}
            assert opened == closed, "what is told after the crash counts what came before it"
            listed = await read_situations(zone.bus, policy="counted")
            assert sorted(dict(each.bindings)["A"] for each in listed) == ["g1", "g2", "g3"]
            assert all(each.end for each in listed), "operators see of them what the log knows"
            let_go = [row for row in await logged(zone) if row.ext]
            assert {(row.client, row.ext) for row in let_go} == {("counted", '"released":"site"')}
            said = [each.getMessage() for each in caplog.records if each.name == "situ.audit"]
            assert all(each.startswith("counted released in site, by boss: ") for each in said)
            assert all(any(row.id in each for each in said) for row in let_go)
            await see(east, "g2", 9.0, time="2026-01-01T00:00:00Z")
            assert zone.engine is not None
            counts = zone.engine._detection.counts
            await eventually(lambda: counts.late.get("presence"))
            assert "everywhere" not in counts.late, "it does not see it"
            late = [
                decode_line(line) for each in await zone.messages(zone.names.late_stream) for line in stored_lines(each)
            ]
            (row,) = [each for each in late if each.type == "Sighting"]
            assert (row.epoch, row.bits, row.tags > 0) == (1, 0, True), "who may see it can be decided later"

    asyncio.run(run())


def test_what_a_policy_may_see_no_more_makes_no_situation_though_it_remembers_it(tmp_path: Path) -> None:
    more = {name: text for name, text in MORE.items() if "policies/" not in name}
    more["policies/unaccompanied-guest.dpl"] = MORE["policies/unaccompanied-guest.dpl"].replace("1 s", "6 s")
    # It will read as somebody else, who sees nothing of the east.
    elsewhere = SCOPES.replace("guest: { reads: { site: east", "guest: { reads: { site: other").replace(
        "unaccompanied-guest: { site: [east] }", "unaccompanied-guest: { site: [other] }"
    )

    async def run() -> None:
        async with edge_zone(tmp_path, situ=SITU, more=more) as zone, zone.connect("reader-e") as reader:
            write(zone.folder, {"scopes.yaml": elsewhere})
            checked = check_folder(zone.folder)
            assert checked.deployment is not None, checked.problems
            await see(reader, "g1", 5.0)
            await see(reader, "g2", 5.0)
            assert zone.engine is not None
            detection = zone.engine._detection
            await eventually(lambda: detection.counts.events.get("seen") == 2)
            await publish_deployment(zone.bus, zone.registry.apply(checked.deployment, "test").deployment)
            await eventually(lambda: detection._plan is not None and detection._plan.version == 2)
            assert [row.type for row in await logged(zone)] == ["Sighting", "Sighting"], "nothing was decided yet"
            (first, _) = await logged(zone)
            await eventually(lambda: reached(detection) > first.time + 6_000_000, within=60)
            assert [row.type for row in await logged(zone)] == ["Sighting", "Sighting"]

    asyncio.run(run())


def reached(detection: EdgeDetection) -> int:
    return detection._progress.policies["unaccompanied-guest"].reached or 0


def test_policies_that_are_tried_on_the_log_see_of_it_what_they_may(tmp_path: Path) -> None:
    more = {name: text for name, text in MORE.items() if not name.startswith("policies/") or "everywhere" in name}

    async def run() -> None:
        async with edge_zone(tmp_path, situ=SITU, more=more) as zone, zone.connect("reader-e") as reader:
            before = datetime.now(UTC)
            await see(reader, "g1", 5.0)
            await see(reader, "g2", 9.0)
            assert zone.engine is not None
            detection = zone.engine._detection
            await eventually(lambda: detection.counts.events.get("seen") == 2)
            deployment = zone.registry.current()
            until = datetime.now(UTC) + timedelta(minutes=1)
            policies = list(deployment.policies.values())
            found = await replay_policies(zone.bus, zone.folder, deployment, policies, before, until)
            assert [dict(each.bindings)["A"] for each in found.situations] == ["g1"]

    asyncio.run(run())
