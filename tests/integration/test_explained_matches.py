"""Why something was detected in a run, and why something was not: asked of its log."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from situ.cli.explained_match import detected_in_log, missed_in_log, policy_of
from situ.cli.opened import Opened
from situ.errors import SituError
from situ.event.instants import microseconds
from situ.registry.snapshots import fetch_deployment
from situ.situation.meaning.tell_match import tell_detection, tell_miss
from situ.situation.policies.policy import Is
from situ.situation.policies.wording import literal_text
from tests.edge_zone import edge_zone, take
from tests.integration.test_detection import DURABLE, QUICK, SITU, see


def test_what_the_log_has_explains_detections_and_misses(tmp_path: Path) -> None:
    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            await see(reader, "e1", 7)
            await see(reader, "g2", 1)
            seen = microseconds(datetime.now(UTC))
            (opened,) = await take(events, 1)
            deployment = await fetch_deployment(zone.bus)
            project = Opened(path=zone.folder, deployment=deployment)

            policy, why = await detected_in_log(zone.bus, project, deployment, opened.data["situation"][:12])
            assert why.detection.id == opened.data["situation"]
            assert dict(why.detection.bindings) == {"A": "g2", "R": "lab"}
            assert [bool(each.met) for each in why.conditions] == [True, False]
            [near, inside] = why.conditions[1].absent
            assert not near.close
            assert [dict(each.bindings) for each in inside.close] == [{"B": "e1", "R": "lab"}]
            assert any("Sighting" not in line and "person g2" in line for line in tell_detection(policy, why))

            missed = await missed_in_log(zone.bus, project, deployment, policy, {"A": "g1"}, seen)
            [failed] = missed.failed
            assert [literal_text(literal) for literal, _ in failed.refuted] == [
                "A is not within 5 m of B",
                "B is not inside R",
            ]
            assert all(isinstance(literal, Is) for literal, _ in failed.refuted)
            assert "not met" in "\n".join(tell_miss(policy, missed))
            unseen = await missed_in_log(zone.bus, project, deployment, policy, {"A": "nobody"}, seen)
            assert unseen.activation is None

            for ask in (
                detected_in_log(zone.bus, project, deployment, "0123456789"),
                missed_in_log(zone.bus, project, deployment, policy, {"Q": "g1"}, seen),
            ):
                with pytest.raises(SituError) as refused:
                    await ask
                assert refused.value.code in ("S198", "S152")
            with pytest.raises(SituError, match="S195"):
                policy_of(deployment, "unaccompanied-gest")

    asyncio.run(run())


def test_what_cannot_be_told_any_more_is_said(tmp_path: Path) -> None:
    """The guest has become an employee: by what is known now there would be no situation."""

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ=SITU, more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            await see(reader, "g1", 5)
            (opened,) = await take(events, 1)
            people = zone.folder / "people.csv"
            people.write_text(people.read_text().replace("g1,guest", "g1,employee"))
            deployment = await fetch_deployment(zone.bus)
            project = Opened(path=zone.folder, deployment=deployment)
            with pytest.raises(SituError, match="S199"):
                await detected_in_log(zone.bus, project, deployment, opened.data["situation"])

    asyncio.run(run())
