"""Negotiation in a running zone: who expects, who can, what is advised, what comes of it, and who hears of it.

On a bus in memory and on NATS: what clients see is the same.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import situ
from situ.client.capabilities import Accept, ReactionManager, Refuse
from situ.client.client import Client
from situ.event.message import Message
from situ.lang.problems import SituError
from situ.protocol.effects import Presence
from situ.quality.negotiation.feedback import Advice, StateChange
from tests.edge_zone import EdgeZone, Zones, edge_zone, eventually, run, take
from tests.nats_server import NatsServer

CLIENTS = """
  pump: {advertisements: {levels: {type: Level}}}
  spare: {advertisements: {levels: {type: Level}}}
  desk: {subscriptions: {levels: {types: [Level], durable: true}}}
"""
NEED = {"rate": {"lb": 5, "ub": 10}}


def rate(cv: float, ub: float = 60, cost: str = "0.1 * x") -> dict[str, dict[str, Any]]:
    return {"rate": {"lb": 1, "ub": ub, "cv": cv, "cost": cost}}


@pytest.fixture
def zones(zones: Zones) -> Zones:
    return partial(zones, clients=CLIENTS)


async def until(changes: AsyncIterator[StateChange], state: str, why: str = "") -> StateChange:
    async for each in changes:
        if (each.state, each.why) == (state, why):
            return each
    raise AssertionError("it went on for ever")


def code_of(error: pytest.ExceptionInfo[SituError]) -> str:
    return error.value.code


# ── negotiating ──


def test_an_expectation_is_met_by_advice(zones: Zones) -> None:
    async def main() -> None:
        followed: list[Advice] = []
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            ReactionManager(pump.capabilities, followed.append)
            changes = desk.expectations.changes()
            made = await desk.expectations.register("levels", NEED, id="M1")
            assert (made.id, made.version) == ("M1", 1)
            assert (await anext(changes)).why == "adapting"
            heard = await until(changes, "satisfied")
            assert (heard.expectation, heard.in_force) == ("M1", "M1")
            assert [(each.kind, dict(each.values)) for each in followed] == [("raise", {"rate": 5.0})]
            assert pump.capabilities.registered["Level"].value("rate") == 5.0
            assert (await desk.expectations.state("M1")).state == "satisfied"
            usage = await pump.capabilities.usage("Level")
            assert (usage.expectations, usage.subscriptions, dict(usage.floors)) == (1, 1, {"rate": 5.0})

    run(main())


def test_who_was_away_hears_once_that_it_may_fall_back(zones: Zones, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.quality.negotiation.decide.GRACE", 0.3)

    async def main() -> None:
        followed: list[Advice] = []
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            ReactionManager(pump.capabilities, followed.append)
            changes = desk.expectations.changes()
            await desk.expectations.register("levels", NEED, id="M1")
            await until(changes, "satisfied")
            hearing = pump.capabilities._hearing
            assert hearing._serving is not None
            await hearing._serving.close()  # it is there, and hears nothing
            await desk.expectations.revoke("M1")
            assert zone.router is not None
            course = zone.router.quality._state.profiles["pump/Level"].course
            await eventually(lambda: bool(course.relaxed))
            assert [each.kind for each in followed] == ["raise"]
            hearing._serving = None
            await hearing.begin()
            pump.capabilities.back()
            await eventually(lambda: [each.kind for each in followed] == ["raise", "relax"])
            await eventually(lambda: not course.relaxed)
            assert dict(followed[-1].values) == {"rate": 2.0}
            await eventually(lambda: pump.capabilities.registered["Level"].value("rate") == 2.0)
            pump.capabilities.back()
            await pump.capabilities.usage("Level")
            await asyncio.sleep(0.3)
            assert len(followed) == 2

    run(main())


def test_who_refuses_is_taken_at_its_word_and_the_next_is_asked(zones: Zones) -> None:
    async def main() -> None:
        asked: list[str] = []
        async with (
            zones() as zone,
            zone.connect("pump") as pump,
            zone.connect("spare") as spare,
            zone.connect("desk") as desk,
        ):
            await pump.capabilities.register("Level", rate(2))
            await spare.capabilities.register("Level", rate(1, cost="9 * x"))
            pump.capabilities.on_advice(lambda advice: asked.append("pump") or Refuse(3.0))

            def accept(advice: Advice) -> Accept:
                asked.append("spare")
                return Accept()

            spare.capabilities.on_advice(accept)
            changes = desk.expectations.changes()
            await desk.expectations.register("levels", NEED, id="M1")
            await eventually(lambda: asked == ["pump", "spare"])
            await spare.capabilities.update("Level", capabilities={"rate": {"cv": 5}})
            await until(changes, "satisfied")

    run(main())


def test_nobody_left_to_ask_is_told_with_what_there_is(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            changes = desk.expectations.changes()
            await desk.expectations.register("levels", NEED, id="M1")
            assert (await anext(changes)).why == "no-publisher"
            await pump.capabilities.register("Level", rate(2, ub=4))
            heard = await desk.expectations.state("M1")
            assert (heard.state, heard.why) == ("unsatisfied", "out-of-reach")
            assert [each.as_json() for each in heard.reasons] == [
                {"property": "rate", "current": 2.0, "reachable": 4.0}
            ]

    run(main())


def test_an_alternative_takes_over_when_a_publisher_goes(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("spare") as spare, zone.connect("desk") as desk:
            await spare.capabilities.register("Level", rate(2, ub=2))
            changes = desk.expectations.changes()
            async with zone.connect("pump") as pump:
                await pump.capabilities.register("Level", rate(6, ub=6))
                await desk.expectations.register("levels", NEED, id="best", utility=10)
                await desk.expectations.register("levels", {"rate": {"lb": 1}}, id="poor", utility=1)
                assert (await desk.expectations.state("best")).in_force == "best"
            heard = await until(changes, "unsatisfied", "out-of-reach")
            assert (heard.expectation, heard.in_force) == ("best", "poor")
            assert (await desk.expectations.state("poor")).state == "satisfied"

    run(main())


def test_what_is_too_much_is_thinned_for_who_asked_for_less(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(60))
            await desk.expectations.register("levels", NEED, id="M1")
            await eventually(lambda: "desk/levels" in zone.registry.current().shapes)
            version = zone.registry.version()
            assert zone.engine is not None
            engine = zone.engine
            await eventually(lambda: engine.version >= version)
            start = (datetime.now(UTC) - timedelta(minutes=5)).replace(second=0, microsecond=0)
            for second in range(0, 60, 2):
                await pump.publish_event("Level", tank="a", level=second, time=start + timedelta(seconds=second))
            await pump.publish_event("Level", tank="a", level=-1, time=start + timedelta(seconds=61))
            await pump.flush()
            got = await take(desk.events(durable="levels"), 11)
            assert [each.data.level for each in got] == [*range(0, 20, 2), -1]  # ten of the first minute
            await desk.expectations.revoke("M1")
            await eventually(lambda: not zone.registry.current().shapes)

    run(main())


# ── calls ──


def test_calls_follow_the_life_of_an_expectation(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(6, ub=6))
            made = await desk.expectations.register("levels", NEED, id="M1", sources="selected")
            changed = await desk.expectations.update(made, need={"rate": {"lb": 50}}, utility=3)
            assert (changed.version, (await desk.expectations.state("M1")).why) == (2, "out-of-reach")
            with pytest.raises(SituError) as stale:
                await desk.expectations.update("M1", utility=4, version=1)
            assert code_of(stale) == "Q112"
            with pytest.raises(SituError) as wrong:
                await desk.expectations.update("M1", need={"rates": {"lb": 5}})
            assert code_of(wrong) == "Q101"
            assert (await desk.expectations.state("M1")).version == 2
            await desk.expectations.suspend("M1")
            await desk.expectations.suspend("M1")
            await desk.expectations.resume("M1")
            await desk.expectations.revoke("M1")
            await desk.expectations.revoke("M1")
            with pytest.raises(SituError) as unknown:
                await desk.expectations.state("M1")
            assert code_of(unknown) == "Q132"

    run(main())


def test_what_was_changed_in_another_unit_can_be_registered_again(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            made = await pump.capabilities.register("Level", rate(2))
            await pump.capabilities.update(made, capabilities={"rate": {"cv": 0.5, "unit": "Hz"}})
            assert (made.value("rate"), made.version) == (30, 2)
            assert made.capabilities["rate"] == {"lb": 1, "ub": 60, "cv": 30, "cost": "0.1 * x"}
            await pump.capabilities.revoke(made)
            drafted = await pump.capabilities.register("Level", made.capabilities)
            assert drafted.value("rate") == 30

    run(main())


def test_who_gave_up_waiting_for_an_answer_can_go_on(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            profile = await pump.capabilities.register("Level", rate(2))
            made = await desk.expectations.register("levels", NEED, id="M1")
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await desk.expectations.update(made, utility=2)
            with suppress(TimeoutError):
                async with asyncio.timeout(0):
                    await pump.capabilities.update(profile, capabilities={"rate": {"cv": 3}})
            await eventually(lambda: _known(zone).expectations["desk/M1"].expectation.utility == 2)
            await eventually(lambda: _known(zone).profiles["pump/Level"].profile.version == 2)
            await desk.expectations.update(made, utility=3)
            await pump.capabilities.update(profile, capabilities={"rate": {"cv": 4}})
            held, known = _known(zone).expectations["desk/M1"].expectation, _known(zone).profiles["pump/Level"].profile
            assert (held.utility, held.version) == (3, made.version)
            assert (known.capabilities["rate"].cv, known.version) == (4, profile.version)

    run(main())


def test_one_thing_that_is_refused_keeps_nothing_else_from_coming_back(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            first = await desk.expectations.register("levels", NEED, id="M1")
            await desk.expectations.register("levels", NEED, id="M2")
            first.need = {"warmth": {"lb": 1}}
            assert zone.router is not None
            zone.router.quality.presence(Presence(client="desk", here=False))
            await eventually(lambda: not _known(zone).expectations)
            desk.expectations.back()
            await eventually(lambda: _known(zone).expectations.keys() == {"desk/M2"})

    run(main())


def test_unsubscribing_and_leaving_end_what_was_expected(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            await pump.capabilities.register("Level", rate(6, ub=6))
            async with zone.connect("guest") as guest:
                volatile = await guest.register_for_events("Level")
                await guest.expectations.register(volatile, NEED, id="mine")
                assert (await guest.expectations.state("mine")).state == "satisfied"
                await guest.unregister_for_events(volatile)
                await eventually(lambda: not _known(zone).expectations)
                again = await guest.register_for_events("Level")
                await guest.expectations.register(again, NEED, id="mine")
            await eventually(lambda: not _known(zone).expectations)
            assert _known(zone).profiles.keys() == {"pump/Level"}

    run(main())


def _known(zone: EdgeZone) -> Any:
    assert zone.router is not None
    return zone.router.quality._state


def test_what_makes_no_sense_is_refused_with_all_reasons(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            with pytest.raises(SituError) as wrong:
                await desk.expectations.register("levels", {"rate": {"lb": 9, "ub": 1}, "hue": {}}, id="M1")
            assert code_of(wrong) in ("Q101", "Q103")
            assert "`hue`" in str(wrong.value)
            assert "above" in str(wrong.value)
            with pytest.raises(SituError) as costly:
                await pump.capabilities.register("Level", rate(2, cost="1 / (x - 2)"))
            assert code_of(costly) == "Q106"
            with pytest.raises(SituError) as foreign:
                await desk.expectations.update("pump/Level", utility=1)
            assert code_of(foreign) == "Q111"

    run(main())


def test_of_very_much_that_is_wrong_the_first_is_told(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            with pytest.raises(SituError) as refused:
                await desk.expectations.register("levels", {f"p{at}": {"lb": 1} for at in range(60)}, id="M1")
            (problem,) = refused.value.problems
            assert problem.message.startswith("There is no property `p0`.")
            assert problem.message.endswith("There is no property `p9`. And 50 more.")

    run(main())


def test_a_call_about_a_subscription_that_never_comes_is_refused(zones: Zones, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.router.quality_calls.PATIENCE", 0.2)

    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            with pytest.raises(SituError) as early:
                await desk.expectations.register("others", NEED)
            assert code_of(early) == "Q116"

    run(main())


# ── advice ──


def test_who_fails_to_adapt_says_so_and_is_taken_at_its_word(zones: Zones) -> None:
    async def main() -> None:
        tried: list[int] = []

        def adapt(advice: Advice) -> None:
            tried.append(advice.number)
            raise RuntimeError("the valve is stuck")

        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            reaction = ReactionManager(pump.capabilities, adapt, retries=2)
            changes = desk.expectations.changes()
            await desk.expectations.register("levels", NEED, id="M1")
            await until(changes, "unsatisfied", "declined")
            assert (len(tried), reaction.failed) == (3, 1)
            await reaction.close()

    run(main())


def test_advice_that_comes_again_is_answered_and_not_asked_about_again(zones: Zones) -> None:
    async def main() -> None:
        asked: list[int] = []
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            pump.capabilities.on_advice(lambda advice: asked.append(advice.number) or Accept())
            await desk.expectations.register("levels", NEED, id="M1")
            await eventually(lambda: _open(zone) == "accepted")
            number = asked[0]
            for again in (number, number + 1000):  # a repeat of the bus, and one of the router
                advice = Advice(id=f"pump/Level#{number}", kind="raise", profile="pump/Level", number=again)
                body = json.dumps(advice.as_json()).encode()
                subject = zone.names.feedback("pub", "pump")
                await (await zone.bus.store(Message(subject=subject, body=body)))
            await asyncio.sleep(0.3)
            assert asked == [number]

    run(main())


def _open(zone: EdgeZone) -> str:
    advice = _known(zone).profiles["pump/Level"].course.open
    return "" if advice is None else advice.status


# ── restarts ──


def test_a_router_that_starts_again_goes_on_where_it_was(zones: Zones) -> None:
    async def main() -> None:
        followed: list[Advice] = []
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            ReactionManager(pump.capabilities, followed.append)
            heard: list[StateChange] = []
            desk.expectations.on_change(heard.append)
            await desk.expectations.register("levels", NEED, id="M1")
            await eventually(lambda: heard and heard[-1].state == "satisfied")
            before = len(heard)
            await zone.crash()
            await zone.start()
            assert (await desk.expectations.state("M1")).state == "satisfied"
            await desk.expectations.update("M1", need={"rate": {"lb": 20}})
            await eventually(lambda: len(followed) == 2 and heard[-1].state == "satisfied")
            assert dict(followed[-1].values) == {"rate": 20.0}
            assert [each.state for each in heard[before:]].count("satisfied") <= 1
            assert len({(each.expectation, each.number) for each in heard}) == len(heard)

    run(main())


DECLARED = """
version: 1
expectations: [{id: watch, subscription: desk/levels, need: {rate: {lb: 5, ub: 10}}}]
profiles: [{publisher: pump, type: Level, capabilities: {rate: {lb: 1, ub: 60, cv: 2, cost: 0.1 * x}}}]
"""


def test_a_declared_publisher_counts_when_it_is_connected(zones: Zones) -> None:
    async def main() -> None:
        followed: list[Advice] = []
        async with zones(more={"quality/all.yaml": DECLARED}) as zone, zone.connect("desk") as desk:
            changes = desk.expectations.changes()
            first = await anext(changes)
            assert (first.expectation, first.why, first.absent) == ("watch", "no-publisher", 1)
            assert "declared, not connected: 1 profile" in (await desk.expectations.explain("watch")).text
            async with zone.connect("pump") as pump:
                ReactionManager(pump.capabilities, followed.append)
                heard = [each.why async for each in _until_satisfied(changes)]
                assert set(heard) <= {"no-publisher", "adapting", ""}, "nobody declined anything"
                assert [each.kind for each in followed] == ["raise"]
            assert (await until(changes, "unsatisfied", "no-publisher")).absent == 1

    run(main())


async def _until_satisfied(changes: AsyncIterator[StateChange]) -> AsyncIterator[StateChange]:
    async for each in changes:
        yield each
        if each.state == "satisfied":
            return


def test_who_was_there_is_waited_for_when_the_router_starts_again(tmp_path: Path) -> None:
    async def main() -> None:
        files = {"quality/all.yaml": DECLARED.replace("cv: 2", "cv: 6")}
        situ = "overlay: {child_grace: 2 s}\n"
        async with edge_zone(tmp_path, clients=CLIENTS, situ=situ, more=files) as zone, zone.connect("desk") as desk:
            changes = desk.expectations.changes()
            async with zone.connect("pump"):
                await until(changes, "satisfied")
                await zone.crash()
                # Its leaving is seen by nobody, and the bus has forgotten that it was there.
                await zone.bus.remove(zone.names.clients, "pump")
            begun = asyncio.get_running_loop().time()
            await zone.start()
            heard = await anext(changes)
            assert (heard.state, heard.why) == ("unsatisfied", "no-publisher")
            assert asyncio.get_running_loop().time() - begun > 1.5

    run(main())


def test_what_goes_wrong_inside_is_answered_and_the_rest_goes_on(
    zones: Zones, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a mistake of ours")

    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(7))
            with monkeypatch.context() as patched:
                patched.setattr("situ.router.quality_calls.QualityCalls.read", fail)
                with pytest.raises(SituError) as read:
                    await desk.expectations.register("levels", NEED, id="M1")
                patched.setattr("situ.router.quality_calls.QualityAnswers.to_client", fail)
                with pytest.raises(SituError) as asked:
                    await desk.expectations.states()
                patched.setattr("situ.router.quality_calls.QualityAnswers.to_operator", fail)
                said = await zone.bus.request(Message(subject=zone.names.quality, body=b"{}"), timeout=5)
            for found in (read.value.problems[0], asked.value.problems[0]):
                assert found.code.code == "Q133"
                assert any(found.message.split("`")[1] in each.message for each in caplog.records)
            assert json.loads(said.body)["code"] == "Q133"
            assert "a mistake of ours" in caplog.text
            with monkeypatch.context() as patched:
                patched.setattr("situ.router.negotiation.step", fail)
                with pytest.raises(SituError) as stepped:
                    await desk.expectations.register("levels", NEED, id="M1")
                assert code_of(stepped) == "Q133"
            await desk.expectations.register("levels", NEED, id="M1")
            assert (await desk.expectations.state("M1")).state == "satisfied"

    run(main())


def test_a_shape_that_goes_wrong_keeps_no_other_from_being_in_force(
    zones: Zones, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            assert zone.router is not None
            reshaping, shape = zone.router.quality.reshaping, zone.router.quality.reshaping.shape
            bad = await desk.register_for_events("Level")

            async def shaping(shapes: dict[str, Any]) -> None:
                if f"desk/{bad.name}" in shapes:
                    raise ZeroDivisionError("a mistake of ours")
                await shape(shapes)

            reshaping.shape = shaping
            await pump.capabilities.register("Level", rate(60))
            await desk.expectations.register(bad, NEED, id="bad")
            await desk.expectations.register("levels", NEED, id="good")
            await eventually(lambda: "desk/levels" in zone.router._deployment.shapes)
            assert "a mistake of ours" in caplog.text
            assert f"desk/{bad.name}" in caplog.text

    run(main())


def test_what_rests_is_never_active_at_a_router_that_forgot_it(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(2))
            made = await desk.expectations.register("levels", NEED, id="M1")
            await desk.expectations.suspend(made)
            await zone.crash()
            kept = zone.registry.kept("quality")
            kept.keep(dict.fromkeys(kept.read()))
            heard: list[StateChange] = []
            desk.expectations.on_change(heard.append)
            advised: list[Advice] = []
            pump.capabilities.on_advice(lambda advice: advised.append(advice) or Accept())
            await zone.start()
            assert zone.router is not None
            state = zone.router.quality._state
            await eventually(lambda: "desk/M1" in state.expectations and "pump/Level" in state.profiles)
            await desk.expectations.states()
            await asyncio.sleep(0.3)
            assert state.expectations["desk/M1"].expectation.suspended
            assert (heard, advised) == ([], [])
            await desk.expectations.resume("M1")
            await eventually(lambda: advised)

    run(main())


def test_another_process_under_the_name_begins_with_nothing(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(6, ub=6))
            await desk.expectations.register("levels", NEED, id="M1")
            async with zone.connect("pump"):
                await eventually(lambda: not _known(zone).profiles)
                assert (await desk.expectations.state("M1")).why == "no-publisher"

    run(main())


# ── files, and without await ──


def test_what_is_stored_is_loaded_and_registered(zones: Zones, tmp_path: Path) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump, zone.connect("desk") as desk:
            await pump.capabilities.register("Level", rate(6, ub=6))
            await desk.expectations.register("levels", NEED, id="M1", utility=4, sources="selected")
            desk.expectations.store(tmp_path / "mine.yaml")
            pump.capabilities.store(tmp_path / "pump.yaml")
            await desk.expectations.revoke("M1")
            await pump.capabilities.revoke("Level")
            (draft,) = desk.expectations.load(tmp_path / "mine.yaml")
            (profile,) = pump.capabilities.load(tmp_path / "pump.yaml")
            assert not _known(zone).expectations
            await pump.capabilities.register_draft(profile)
            made = await desk.expectations.register_draft(draft)
            assert (made.id, made.utility, dict(made.options)) == ("M1", 4, {"sources": "selected"})
            assert (await desk.expectations.state("M1")).state == "satisfied"

    run(main())


def test_without_await(server: NatsServer, tmp_path: Path) -> None:
    """Two programs that run no event loop."""

    async def main() -> None:
        async with edge_zone(tmp_path, server, clients=CLIENTS) as zone:
            await asyncio.to_thread(_blocking, zone)

    run(main())


def _blocking(zone: EdgeZone) -> None:
    followed: list[Advice] = []
    with (
        situ.connect_blocking(zone.folder, client="pump", servers=[zone.url]) as pump,
        situ.connect_blocking(zone.folder, client="desk", servers=[zone.url]) as desk,
    ):
        pump.capabilities.register("Level", rate(2))
        reaction = pump.capabilities.react(followed.append)
        changes = desk.expectations.changes()
        desk.expectations.register("levels", NEED, id="M1")
        states = [next(changes).state, next(changes).state]
        assert states == ["unsatisfied", "satisfied"]
        assert len(followed) == 1
        assert [each.state for each in desk.expectations.states()] == ["satisfied"]
        desk.expectations.revoke("M1")
        reaction.close()
        pump.capabilities.revoke("Level")


def test_names_of_nodes(zones: Zones) -> None:
    """A node has both sides, whether it uses them or not."""

    async def main() -> None:
        async with zones() as zone, zone.connect("pump") as pump:
            assert isinstance(pump, Client)
            assert (pump.expectations.registered, pump.capabilities.registered) == ({}, {})

    run(main())
