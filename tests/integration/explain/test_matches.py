"""Why something was detected in a run, and why something was not: asked of its log."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from situ.event.instants import microseconds, print_instant
from situ.event.message import EventKey, join_lines
from situ.explain.detection import detected_in_log, missed_in_log, policy_of
from situ.explain.match_report import detection_lines, miss_lines
from situ.explain.policy_match import ExplainedMiss, UnreadReason
from situ.lang.problems import SituError
from situ.policies.logic_tree import literal_text
from situ.policies.model import RelationLiteral
from situ.registry.run_metrics import METRICS_PREFIX, RunMetrics, detection_metrics
from situ.registry.snapshots import fetch_deployment, publish_deployment
from tests.edge_zone import edge_zone, eventually, take
from tests.integration.edge.test_detection import DURABLE, QUICK, SITU, see
from tests.zone import event


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

            policy, why = await detected_in_log(zone.bus, zone.folder, deployment, opened.data["situation"][:12])
            assert why.detection.id == opened.data["situation"]
            assert dict(why.detection.bindings) == {"A": "g2", "R": "lab"}
            assert [bool(each.met) for each in why.conditions] == [True, False]
            [near, inside] = why.conditions[1].absent
            assert not near.close
            assert [dict(each.bindings) for each in inside.close] == [{"B": "e1", "R": "lab"}]
            assert any("Sighting" not in line and "person g2" in line for line in detection_lines(policy, why))

            missed = await missed_in_log(zone.bus, zone.folder, deployment, policy, {"A": "g1"}, seen)
            [failed] = missed.failed
            assert [literal_text(literal) for literal, _ in failed.refuted] == [
                "A is not within 5 m of B",
                "B is not inside R",
            ]
            assert all(isinstance(literal, RelationLiteral) for literal, _ in failed.refuted)
            assert "not met" in "\n".join(miss_lines(policy, missed))
            unseen = await missed_in_log(zone.bus, zone.folder, deployment, policy, {"A": "nobody"}, seen)
            assert unseen.activation is None

            for ask in (
                detected_in_log(zone.bus, zone.folder, deployment, "0123456789"),
                missed_in_log(zone.bus, zone.folder, deployment, policy, {"Q": "g1"}, seen),
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
            with pytest.raises(SituError, match="S199"):
                await detected_in_log(zone.bus, zone.folder, deployment, opened.data["situation"])

    asyncio.run(run())


def test_a_miss_is_explained_by_what_detection_did_and_not_by_what_could_have_been(tmp_path: Path) -> None:
    """Late, dead, suspended, not decided yet: in all of these the reference alone would say that it was detected."""

    async def run() -> None:
        async with (
            edge_zone(tmp_path, situ="defaults: {lateness: 1 s, idle: 1 h}\n", more=QUICK) as zone,
            zone.connect("reader") as reader,
            zone.connect("desk") as desk,
        ):
            events = desk.events(DURABLE, durable="situations")
            then = datetime.now(UTC) - timedelta(hours=2)
            at = microseconds(then)
            await see(reader, "g2", 5, time=then)
            await see(reader, "e1", 30, time=then + timedelta(seconds=20))
            (opened,) = await take(events, 1)
            await see(reader, "g1", 5, time=then, id="too-late")
            await reader.publish_event(
                "Sighting", {"who": "g1", "at": {"x": 5, "y": 5}}, time=then + timedelta(seconds=19.5)
            )
            await reader.flush()
            assert zone.engine is not None
            odd = event("odd", "Sighting", {"who": 5}, source="other", time=print_instant(at))
            body = join_lines([json.dumps(odd).encode()])
            assert await (await zone.engine.take(EventKey("other", 1, 1), 1, body, at))
            await eventually(lambda: zone.engine.watched.tally.late_events == 1)  # type: ignore[union-attr]
            figures = detection_metrics(
                await fetch_deployment(zone.bus), zone.engine.watched, microseconds(datetime.now(UTC))
            )
            told = RunMetrics(engine="edge", at=time.time_ns() // 1000, situations=figures)
            await zone.bus.put(zone.names.metrics, f"{METRICS_PREFIX}edge", told.encode())

            async def missed(who: str, when: int) -> tuple[ExplainedMiss, str]:
                deployment = await fetch_deployment(zone.bus)
                policy = deployment.policies["unaccompanied-guest"]
                why = await missed_in_log(zone.bus, zone.folder, deployment, policy, {"A": who}, when)
                return why, "\n".join(miss_lines(policy, why))

            why, text = await missed("g2", at)
            assert [each.id for each in why.detected] == [opened.data["situation"]]
            why, text = await missed("g1", at)
            assert not why.detected
            assert not why.untold
            assert "late, not looked at" in text
            assert "too-late" in text
            assert "a dead letter" in text
            assert {each.why for each in why.facts.unread} == {UnreadReason.LATE, UnreadReason.DEAD}
            why, text = await missed("g1", at + 19_500_000)
            assert not why.detected
            assert len(why.undecided) == 1
            assert "is not decided yet" in text
            assert "it waits for seen" in text
            await publish_deployment(zone.bus, zone.registry.suspend("unaccompanied-guest", who="test").deployment)
            why, text = await missed("g1", at + 19_500_000)
            assert "the policy is suspended" in text

    asyncio.run(run())
