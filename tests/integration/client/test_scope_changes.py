"""Programs that say scopes and change them on a running zone: what is let in, what is told, and what is lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from situ.cli.commands.scopes import ScopeRequest
from situ.cli.exits import CommandError
from situ.cli.scope_changes import change_as_client
from situ.client.client import Client
from situ.client.events import Event
from situ.client.sync_client import connect_blocking
from situ.lang.problems import SituError
from situ.registry import Key
from situ.registry.snapshots import publish_deployment
from situ.scopes.graph import Grant
from situ.scopes.operations import JoinScope, LeaveScope, Operation, RevokeRights, SetFilter
from situ.scopes.rights import Principal
from tests.admitted import AdmittingServer, admitting_server
from tests.edge_zone import EdgeZone, Zones, edge_zone, eventually, nothing_more, run, take

M = "membership"
OPERATOR = Principal(name="ann", operator=True)
SCOPES = """
version: 1
dimensions:
  membership:
    mode: closed
    scopes:
      plant:  {}
      line:   { in: [plant], output: "severity >= 4" }
      office: { in: [plant] }
      attic:  {}
  place:
    scopes: { hall: {}, far: { carriers: [elsewhere] } }
clients:
  press: { membership: [line] }
  desk:  { membership: [office] }
  crew:  { membership: [line], place: [far] }
grants:
  - { to: boss, dimension: membership, may: [admin], scopes: [plant] }
  - { to: safety, dimension: membership, may: [observe] }
"""
LINE, OFFICE = {M: "line"}, {M: "office"}


@pytest.fixture
def zones(zones: Zones) -> Zones:
    return partial(zones, more={"scopes.yaml": SCOPES})


async def put(zone: EdgeZone, operation: Operation) -> None:
    """What an operator does at the command line."""
    await publish_deployment(zone.bus, zone.registry.change_scopes(operation, OPERATOR).deployment)


async def alarm(node: Client, severity: int, **options: Any) -> None:
    receipt = await node.publish_event("Alarm", text="jam", severity=severity, **options)
    await receipt.stored


def severities(events: list[Event]) -> list[int]:
    return [each.data.severity for each in events]


async def refused(work: Coroutine[Any, Any, Any]) -> SituError:
    with pytest.raises(SituError) as error:
        await work
    return error.value


async def ends(events: AsyncIterator[Event], within: float = 120) -> SituError:
    """The stream ends by itself; gives why."""
    try:
        async with asyncio.timeout(within):
            async for _ in events:
                pass
    except SituError as error:
        return error
    raise AssertionError("it ended without a word")


def test_programs_say_filters_and_scopes(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("press") as press, zone.connect("desk") as desk:  # noqa: SIM117
            async with zone.connect("crew") as crew, zone.connect("safety") as safety:
                await press.advertise("Alarm", where="severity > 0", scopes=LINE)
                near = await crew.register_for_events("Alarm", scopes=LINE)
                far = await desk.register_for_events("Alarm", scopes=OFFICE, durable="all")
                all_of_it = await safety.register_for_events("Alarm", scopes={"rest": "any"})
                silent = await safety.register_for_events("Alarm", where="severity > 1")  # it is in no scope
                usual = await crew.register_for_events("Alarm", where="severity > 1")  # and this one in a single one
                for severity in (1, 5):
                    await alarm(press, severity)
                assert severities(await take(aiter(near), 2)) == [1, 5]
                assert severities(await take(aiter(far), 1)) == [5]
                assert severities(await take(aiter(all_of_it), 2)) == [1, 5]
                assert severities(await take(aiter(usual), 1)) == [5]
                await nothing_more(aiter(silent))
                declared = zone.registry.current()
                assert declared.advertisements["press/Alarm"].where == "severity > 0"
                assert declared.subscriptions["desk/all"].scopes.as_json() == OFFICE
                dead = await press.publish_event("Alarm", text="jam", severity=0)
                assert (await refused(dead.stored)).code == "R003"

    run(main())


def test_what_is_not_ones_own_to_name_is_refused_and_tells_nothing(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk, zone.connect("crew") as crew:
            told = {}
            for scope in ("line", "nowhere", "attic"):
                error = await refused(desk.register_for_events("Alarm", scopes={M: scope}))
                told[scope] = error.code, str(error).replace(scope, "…"), error.hint
                assert (await refused(desk.advertise("Alarm", scopes={M: scope}))).code == "V006"
            assert set(told.values()) == {told["line"]}, "whether it is there is nobody's to learn"
            assert told["line"][0] == "V006"
            for code, tags in {
                "V001": {"colour": "red"},
                "V007": {M: "⊤"},
                "V011": {M: "any"},
                "V016": {M: ["office", "line"]},
                "P119": {"rest": "some"},
            }.items():
                assert (await refused(desk.register_for_events("Alarm", scopes=tags))).code == code
            assert (await refused(desk.register_for_events("Alarm", scopes={"rest": "any"}))).code == "V011"
            assert (await refused(desk.advertise("Alarm", scopes={"rest": "any"}))).code == "V012"
            several = await refused(desk.register_for_events("Alarm", scopes={M: "line", "colour": "red"}))
            assert "line" in str(several)
            assert "colour" in str(several)
            assert (await refused(crew.register_for_events("Alarm", scopes={"place": "far"}))).code == "V018"
            assert zone.registry.current().subscriptions == {}
            kept = await desk.register_for_events("Alarm", durable="all", scopes=OFFICE)
            assert (await refused(desk.register_for_events("Alarm", durable="all", scopes=LINE))).code == "V006"
            assert (kept.scopes, kept.installed) == (OFFICE, True), "what was refused changes nothing"

    run(main())


def test_who_joins_sees_what_comes_then_and_who_leaves_is_told(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("press") as press, zone.connect("boss") as boss:  # noqa: SIM117
            async with zone.connect("guest") as guest:
                await press.advertise("Alarm", scopes=LINE)
                await alarm(press, 5)
                assert (await refused(guest.join_scope("guest", "office", M))).code == "V014"
                joined = await boss.join_scope("guest", "office", M)
                assert (joined.epoch, joined.complete) == (2, True)
                assert (await boss.join_scope("guest", "office", M)).epoch == 2
                kept, live = guest.events("Alarm", durable="all", scopes=OFFICE), guest.events("Alarm", scopes=OFFICE)
                first = asyncio.ensure_future(anext(kept)), asyncio.ensure_future(anext(live))
                asked = guest._subscriptions.registrations
                await eventually(lambda: len(asked) == 2 and all(each.installed for each in asked.values()))
                await alarm(press, 6)
                assert [(await each).data.severity for each in first] == [6, 6]
                await boss.leave_scope("guest", "office", M)
                await alarm(press, 7)
                assert [(await ends(each)).code for each in (kept, live)] == ["V006", "V006"]
                assert len((await guest.status()).suspended) == 2
                # It is in no scope any more, so what is published in scopes is not there for it.
                assert (await refused(guest.register_for_events("Alarm", scopes=OFFICE))).code == "INT601"
                await boss.join_scope("guest", "office", M)
                await alarm(press, 8)
                assert [each.kind for each in zone.registry.suspended()] == ["subscription", "subscription"]
                anew = await guest.register_for_events("Alarm", durable="all", scopes=OFFICE)
                await alarm(press, 9)
                assert severities(await take(aiter(anew), 1)) == [9], "what was withheld is not delivered later"
                assert "all" not in (await guest.status()).suspended
                newest, *_ = zone.registry.epochs()
                assert (newest.who, newest.reason) == ("boss", "asked by the client")

    run(main())


def test_who_may_not_publish_there_any_more_does_not_publish_elsewhere_instead(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("press") as press, zone.connect("boss") as boss:
            ad = await press.advertise("Alarm", scopes=LINE)
            await alarm(press, 5)
            await boss.leave_scope("press", "line", M)
            await eventually(lambda: "Alarm" in press._publications.suspended)
            for options in ({}, {"ad": ad}, {"ad": "Alarm"}):
                assert (await refused(alarm(press, 6, **options))).code == "V006"
            assert (await refused(press.publish_event("Fire", text="x", severity=9, floor=1))).code == "V006"
            assert zone.registry.current().advertisements == {}
            await boss.join_scope("press", "line", M)
            await press.advertise("Alarm", scopes=LINE)
            await alarm(press, 7)
            messages = await zone.messages(zone.names.root_stream)
            assert [b'"severity":6' in each.body for each in messages] == [False, False]

    run(main())


def test_nothing_is_declared_again_by_a_client_that_comes_back(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("desk") as desk:
            events = desk.events("Alarm", durable="all", scopes=OFFICE)
            waiting = asyncio.ensure_future(anext(events))
            await eventually(lambda: "desk/all" in zone.registry.current().subscriptions)
            await put(zone, LeaveScope(member="desk", scope="office", dimension=M))
            await eventually(waiting.done)
            lost = waiting.exception()
            assert isinstance(lost, SituError)
            assert lost.code == "V006"
            await put(zone, JoinScope(member="desk", scope="office", dimension=M))
            await zone.stop()
            await zone.start()
            await desk.register_for_events("Alarm", scopes=OFFICE)
            assert "desk/all" not in zone.registry.current().subscriptions
            assert [each.key for each in zone.registry.suspended()] == [Key("subscription", "desk/all")]
            assert (await refused(desk.register_for_events(durable="all"))).code == "V006"

    run(main())


def test_a_queue_does_not_outlive_the_right_to_it_however_soon_that_is_back(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("press") as press:
            await press.advertise("Alarm", scopes=LINE)
            async with zone.connect("desk") as desk:
                await desk.register_for_events("Alarm", durable="all", scopes=OFFICE)
            await alarm(press, 5)
            await zone.stop()
            kept = zone.registry.current().subscriptions["desk/all"]
            for operation in (LeaveScope, JoinScope):
                zone.registry.change_scopes(operation(member="desk", scope="office", dimension=M), OPERATOR)
            zone.registry.declare([kept], who="desk")
            await publish_deployment(zone.bus, zone.registry.current())
            await zone.start()
            await alarm(press, 6)
            async with zone.connect("desk") as desk:
                assert severities(await take(desk.events(durable="all"), 1)) == [6]

    run(main())


def test_of_two_who_change_the_same_epoch_one_is_told(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone, zone.connect("boss") as boss, zone.connect("desk") as desk:
            await put(zone, SetFilter(dimension=M, scope="line", side="output", text="severity >= 3"))
            work = boss.join_scope("one", "office", M, epoch=2), boss.join_scope("two", "office", M, epoch=2)
            outcomes = await asyncio.gather(*work, return_exceptions=True)
            errors = [each for each in outcomes if isinstance(each, SituError)]
            assert [each.code for each in errors] == ["V015"]
            assert zone.registry.current().epoch == 3
            revoke = RevokeRights(grant=Grant(to="boss", dimension=M, may=("admin",), scopes=("plant",)))
            assert (await refused(desk.change_scopes(revoke))).code == "V014"
            await boss.change_scopes(revoke)
            assert (await refused(boss.join_scope("three", "office", M))).code == "V014"

    run(main())


def test_without_await(zones: Zones) -> None:
    async def main() -> None:
        async with zones() as zone:
            if zone.server is None:
                pytest.skip("a loop of its own needs a bus of its own")
            await asyncio.to_thread(_blocking, zone)

    run(main())


def _blocking(zone: EdgeZone) -> None:
    with connect_blocking(zone.folder, client="boss", servers=[zone.url]) as boss:
        assert boss.join_scope("boss", "office", M).epoch == 2
        registration = boss.register_for_events("Alarm", scopes=OFFICE)
        assert registration.installed
        with pytest.raises(SituError) as error:
            boss.advertise("Alarm", scopes=LINE)
        assert error.value.code == "V006"
        assert boss.leave_scope("boss", "office", M).epoch == 3


def test_who_has_the_file_of_a_client_changes_what_that_client_administers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the command line, without the project folder; who it is says the key, and nothing else."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    added = SetFilter(dimension=M, scope="line", side="output", text="severity >= 2")

    async def main(server: AdmittingServer) -> None:
        def asked(client: str, name: str = "", epoch: int | None = None) -> ScopeRequest:
            return ScopeRequest(None, epoch, "", name, Path(server.file(client)), server.url, dry_run=False)

        async with edge_zone(tmp_path, server, more={"scopes.yaml": SCOPES}) as zone:
            done = await asyncio.to_thread(change_as_client, added, asked("boss"))
            assert (done.epoch, done.complete, zone.registry.current().epoch) == (2, True, 2)
            assert zone.registry.epochs()[0].who == "boss"
            for who, code in (
                (asked("desk"), "V014"),
                (asked("desk", name="boss"), "R011"),
                (asked("boss", epoch=1), "V015"),
            ):
                with pytest.raises(CommandError) as refused:
                    await asyncio.to_thread(change_as_client, added, who)
                assert [each.code.code for each in refused.value.problems] == [code]
            assert zone.registry.current().epoch == 2

    with admitting_server(tmp_path / "nats", "boss", "desk") as server:
        run(main(server))
