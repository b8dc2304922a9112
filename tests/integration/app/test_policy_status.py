"""How policies are while they run, and what they would have detected: status and replay, over a zone at the edge."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from situ.app.metrics import MetricsReporter
from situ.cli.commands.replay import replay_over_log
from situ.cli.render.situations import show_replayed
from situ.cli.render.status import show_status
from situ.client.events import Event
from situ.lang.problems import SituError
from situ.lang.quantities import BEGIN
from situ.lang.records import replace
from situ.project.check import LoadedProject
from situ.project.status import read_status_on_bus
from situ.registry.run_metrics import METRICS_PREFIX
from situ.registry.snapshots import fetch_deployment
from tests.edge_zone import EdgeZone, edge_zone, eventually, take
from tests.integration.edge.test_detection import DURABLE, QUICK, SITU, see, told
from tests.unit.cli.test_situation_figures import text_of

NAME = "unaccompanied-guest"
TOGETHER = """policy together
window 1 s
concepts
  person A (status = 'guest')
  person B (status = 'employee')
  room   R
conditions
  A is within 5 m of B
  A is inside R
actions
  raise alarm
"""


async def pulse(zone: EdgeZone) -> None:
    """What a run tells the bus every second."""
    assert zone.engine is not None
    pulse = MetricsReporter("edge")
    figures = await pulse.look(zone.bus, zone.engine)
    await zone.bus.put(zone.names.metrics, f"{METRICS_PREFIX}edge", replace(figures, state="running").encode())


def test_status_tells_how_policies_are(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            await pulse(zone)
            found = await read_status_on_bus(zone.bus, "guarded")
            assert found.engines["edge"].situations.policies[NAME].settled is None
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await see(reader, "stranger", 30)
            await take(events, 2)
            await see(reader, "g2", 5, time="2026-01-01T00:00:00Z")
            assert zone.engine is not None
            tally = zone.engine.watched.tally
            await eventually(lambda: tally.late_events == 1)
            await pulse(zone)
            status = await read_status_on_bus(zone.bus, "guarded")
            situations = status.engines["edge"].situations
            policy, push = situations.policies[NAME], situations.push["seen"]
            assert (policy.opened, policy.detections, policy.open, policy.late) == (1, 1, 0, 1)
            assert policy.settled is not None
            assert (push.events, push.unknown, push.sample) == (3, 1, "person stranger")
            as_json: Any = status.as_json()
            assert as_json["engines"]["edge"]["situations"]["policies"][NAME]["opened"] == 1
            shown = text_of(show_status(status))
            assert "push source" in shown
            assert "late events" in shown
            assert f"{NAME}   running" in shown
            # What was too late then is too late in a replay.
            project = LoadedProject(path=zone.folder, deployment=await fetch_deployment(zone.bus))
            again = await replay_over_log(zone.bus, project, [NAME], BEGIN, datetime.now(UTC))
            assert again.outcome.tally.late == {NAME: 1}
            assert [dict(each.bindings)["A"] for each in again.outcome.situations] == ["g1"]

    asyncio.run(run())


def test_a_policy_is_replayed_over_the_log_and_nothing_comes_of_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            begin = datetime.now(UTC)
            await see(reader, "g1", 5)
            await see(reader, "e1", 7)
            await see(reader, "g2", 1)
            opened, closed = await take(events, 2)
            assert told(opened)[1] == {"A": "g2", "R": "lab"}
            middle = datetime.now(UTC)
            stored = len(await zone.messages(zone.names.root_stream))
            opened_project = LoadedProject(path=zone.folder, deployment=await fetch_deployment(zone.bus))

            async def replayed(name: str, since: datetime = begin, until: datetime | None = None) -> Any:
                return await replay_over_log(
                    zone.bus, opened_project, [name], since, until or datetime.now(UTC), verbose=True
                )

            # The policy that is in force would have detected what it did.
            found = await replayed(NAME)
            (situation,) = found.as_json()["situations"]
            assert situation["situation"] == opened.data["situation"]
            assert (situation["start"], situation["end"]) == (closed.data["start"], closed.data["end"])
            assert situation["text"] == opened.data["text"]
            assert found.as_json()["events"] == {"seen": 3}
            shown = text_of(show_replayed(found, verbose=True, summary=True))
            assert "A = g2, R = lab" in shown
            assert "from reader: Sighting at " in shown
            assert "1 situation would have been detected · 3 events looked at" in shown

            # One that stands in a file somewhere.
            file = tmp_path / "new.dpl"
            file.write_text(TOGETHER)
            (other,) = (await replayed(str(file))).as_json()["situations"]
            assert (other["policy"], other["bindings"]) == ("together", {"A": "g1", "B": "e1", "R": "lab"})

            # Nothing happened since, or before; and where the log ends too early nothing is settled.
            for since, until in ((middle, None), (begin - timedelta(hours=2), begin - timedelta(hours=1))):
                none = await replayed(NAME, since, until)
                assert not none.outcome.situations
                assert "had nothing to look at" in text_of(show_replayed(none, verbose=False, summary=True))

            file.write_text(TOGETHER.replace("person B", "lorry B"))
            with pytest.raises(SituError):
                await replayed(str(file))
            with pytest.raises(SituError, match="S195"):
                await replayed("unaccompanied-gest")
            assert len(await zone.messages(zone.names.root_stream)) == stored

    asyncio.run(run())


def test_a_node_listens_to_a_policy(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            mine: list[Event] = []
            others: list[Event] = []
            await desk.add_listener(f"policy {NAME}", mine.append)
            await desk.add_listener("policy another-one", others.append)
            await see(reader, "g1", 5)
            await eventually(lambda: len(mine) == 2)
            assert [told(each) for each in mine] == [(each, {"A": "g1", "R": "lab"}) for each in ("opened", "closed")]
            assert not others

    asyncio.run(run())


def test_what_a_policy_looks_back_on_is_read_from_before_the_time_asked_for(tmp_path: Path) -> None:
    async def run() -> None:
        async with edge_zone(tmp_path, situ=SITU, more=QUICK) as zone, zone.connect("reader") as reader:
            await see(reader, "e1", 7)
            assert zone.engine is not None
            tally = zone.engine.watched.tally
            await eventually(lambda: tally.events.get("seen") == 1)
            since = datetime.now(UTC)
            await see(reader, "g1", 5)  # not alone: the employee was near him a moment ago
            await see(reader, "g2", 1)  # he is too far away from this one
            await eventually(lambda: tally.events.get("seen") == 3)
            project = LoadedProject(path=zone.folder, deployment=await fetch_deployment(zone.bus))
            later = since + timedelta(seconds=20)
            found = await replay_over_log(zone.bus, project, [NAME], since, later)
            assert [dict(each.bindings)["A"] for each in found.outcome.situations] == ["g2"]
            assert found.outcome.tally.events == {"seen": 2}

    asyncio.run(run())
