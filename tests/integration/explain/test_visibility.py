"""Why an event is visible to a subscription or not, on a running zone: for operators, and for clients as they may."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from situ.cli.commands.explain import _as_client
from situ.cli.output import standard_output
from situ.cli.render.event import show_explained_event
from situ.client.client import WhyVisible
from situ.event.lines import decode_line, stored_lines
from situ.event.message import position
from situ.event.row import Row
from situ.event.seal import seal_of
from situ.explain.event import explain_event
from situ.explain.visibility import explain_visibility
from situ.lang.problems import SituError
from situ.stages.explain_visibility import explanation_lines
from tests.admitted import admitting_server
from tests.edge_zone import EdgeZone, edge_zone, run
from tests.explanations import misfits
from tests.integration.edge.test_scopes import ALARMS, CLIENTS, SCOPES, apply, publish

RIGHTS = (
    SCOPES
    + """grants:
  - { to: auditor, dimension: membership, may: [observe] }
  - { to: chief,   dimension: membership, may: [admin], scopes: [plant] }
  - { to: foreman, dimension: membership, may: [admin], scopes: [line] }
"""
)
NARROWED = RIGHTS.replace("severity >= 4", "severity >= 9")


@asynccontextmanager
async def plant(folder: Path) -> AsyncIterator[tuple[EdgeZone, list[Row]]]:
    """A zone in which the press has published, and what it published."""
    async with edge_zone(folder, clients=CLIENTS, more={"scopes.yaml": RIGHTS}) as zone:
        await publish(zone, *ALARMS)
        log = await zone.messages(zone.names.root_stream)
        rows = [
            decode_line(line, pos=position(message.seq, place))
            for message in log
            for place, line in enumerate(stored_lines(message))
        ]
        yield zone, rows


def sealed(zone: EdgeZone, row: Row) -> str:
    """The key of an event as clients get it."""
    return seal_of(zone.registry.current().numbers.seal).key(row.key)


async def asked(zone: EdgeZone, client: str, *arguments: str, **more: Any) -> WhyVisible:
    async with zone.connect(client) as node:
        return await node.explain_visibility(*arguments, **more)


async def refused(zone: EdgeZone, client: str, *arguments: str, **more: Any) -> str:
    with pytest.raises(SituError) as error:
        await asked(zone, client, *arguments, **more)
    return error.value.code


def test_operators_are_told_everything_by_any_name_of_the_event(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            deployment = zone.registry.current()
            jam = rows[0]
            for name in (jam.id, jam.key, str(jam.pos), sealed(zone, jam)):
                told = await explain_visibility(name, "desk/all", zone.bus, deployment, deployment.scopes)
                assert not told.visible
                assert "output(line)  severity >= 4  false" in explanation_lines(told)
                assert explanation_lines(told).endswith("would be visible if: severity >= 4")
            seen = await explain_visibility(rows[1].key, "desk/all", zone.bus, deployment, deployment.scopes)
            assert seen.visible
            for name, to, code in (("nothing", "desk/all", "P169"), (jam.key, "desk/al", "P164")):
                with pytest.raises(SituError) as error:
                    await explain_visibility(name, to, zone.bus, deployment, deployment.scopes)
                assert error.value.code == code

    run(main())


def test_what_became_of_an_event_says_who_wants_it_and_does_not_see_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            told = await explain_event(rows[1].key, zone.bus, zone.registry.current())
            assert [each.subscription for each in told.matched] == ["crew/all", "desk/all"]
            assert [each.subscription for each in told.hidden] == ["badge/all"]
            shown = "\n".join(str(each) for each in show_explained_event(told))
            assert "Wanted by, and not visible to\n  badge/all" in shown
            data = told.as_json()
            assert misfits("situ explain event EVENT", data) == []
            (hidden,) = [each for each in data["subscriptions"] if each["subscription"] == "badge/all"]
            assert (hidden["matched"], hidden["visible"]) == (True, False)

    run(main())


def test_the_answer_is_that_of_both_epochs(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            deployment = await apply(zone, NARROWED)
            told = await explain_visibility(rows[2].key, "desk/all", zone.bus, deployment, deployment.scopes)
            assert not told.visible
            assert "stamped in epoch 1, now 2 (visible then, not now)" in explanation_lines(told)
            assert "severity >= 9  false" in explanation_lines(told)
            assert told.as_json()["itself"]["then"]["visible"]

    run(main())


def test_a_dead_letter_is_explained_like_an_event(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, _):
            await publish(zone, (0, "jam"), first=9)
            deployment = zone.registry.current()
            told = await explain_visibility("press.1.9.stamp", "desk/all", zone.bus, deployment, deployment.scopes)
            assert "situ.deadletter" in explanation_lines(told)
            assert not told.visible, "it passes no filter"
            inside = await explain_visibility("press.1.9.stamp", "crew/all", zone.bus, deployment, deployment.scopes)
            assert inside.visible
            assert (await asked(zone, "press", "press.1.9.stamp", to="desk/all")).answer["side"] == "producer"

    run(main())


@pytest.mark.parametrize("client", ["auditor", "chief"])
def test_who_observes_or_administers_it_all_is_told_everything(client: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            told = await asked(zone, client, rows[0].key, to="desk/all")
            assert "output(line)  severity >= 4  false" in told.text
            assert told.answer["side"] is None
            inside = await asked(zone, client, rows[0].key, to="crew/all")
            assert inside.visible

    run(main())


def test_who_administers_one_side_is_told_of_what_happens_inside_of_it_only(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            jam = sealed(zone, rows[0])
            for name in (jam, rows[0].key):
                told = await asked(zone, "foreman", name, to="crew/all")
                assert (told.answer["side"], told.answer["key"]) == (None, jam)
                assert await refused(zone, "foreman", name, to="desk/all") == "R011"

    run(main())


def test_an_observer_is_told_what_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            assert await refused(zone, "auditor", "nothing", to="desk/all") == "P169"
            assert await refused(zone, "auditor", rows[0].key, to="desk/al") == "P164"
            assert await refused(zone, "auditor", to="desk/all", ad="press/none", sample={}) == "R002"

    run(main())


def test_a_producer_is_told_of_its_own_events_and_its_own_side(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            jam, fire = rows[0], rows[2]
            for row, visible in ((jam, False), (fire, True)):
                told = await asked(zone, "press", row.key, to="desk/all")
                assert told.visible is visible
                assert told.text.splitlines() == [
                    f"event {row.id}  Alarm  from press/alarms",
                    "membership  line",
                    "visible" if visible else "not visible",
                ]
                assert told.answer["dimensions"] == [{"dimension": "membership", "advertised": "line"}]
            assert not (await asked(zone, "press", fire.key, to="desk/none")).visible
            assert await refused(zone, "press", "press.1.99", to="desk/all") == "P169"
            assert await refused(zone, "press", "nothing", to="desk/all") == "R011"

    run(main())


def test_a_producer_tries_out_what_it_would_publish(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, _):
            for severity, visible in ((1, False), (5, True)):
                sample = {"text": "jam", "severity": severity}
                told = await asked(zone, "press", to="desk/all", ad="press/alarms", sample=sample)
                assert (told.visible, told.answer["side"]) == (visible, "producer")
            event = {"specversion": "1.0", "type": "Fire", "data": {"text": "x", "severity": 5, "floor": 1}}
            assert (await asked(zone, "press", to="desk/all", ad="press/alarms", sample=event)).visible
            level = {**event, "type": "Level"}
            assert await refused(zone, "press", to="desk/all", ad="press/alarms", sample=level) == "R102"
            assert await refused(zone, "press", to="desk/all", ad="press/alarms", sample={"text": 1}) != "R102"
            assert await refused(zone, "desk", to="desk/all", ad="press/alarms", sample={"severity": 1}) == "R011"

    run(main())


def test_a_consumer_is_told_of_its_own_subscription_and_nothing_of_what_it_does_not_see(tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, rows):
            key = sealed(zone, rows[1])
            seen = await asked(zone, "desk", key, to="desk/all")
            assert seen.text.splitlines() == [f"event {key}", "membership  office", "visible"]
            for there, nowhere in (
                (sealed(zone, rows[0]), seal_of("other").key("press.1.1")),
                (rows[0].key, "press.1.99"),
                (rows[1].key, "press.1.99"),
                (str(rows[1].pos), "99999999999"),
            ):
                hidden, nothing = [await asked(zone, "desk", each, to="desk/all") for each in (there, nowhere)]
                assert hidden.text.replace(there, "…") == nothing.text.replace(nowhere, "…")
                assert json.dumps(hidden.answer).replace(there, "") == json.dumps(nothing.answer).replace(nowhere, "")
                assert not hidden.visible
            assert await refused(zone, "desk", rows[1].key, to="desk/none") == "P164"
            assert await refused(zone, "desk", rows[1].key, to="crew/all") == "R011"

    run(main())


@pytest.mark.parametrize("name", ["", "x" * 5000, "press.99999999999999999999.1", "9" * 30, "\x00", '"'])
def test_no_name_of_an_event_upsets_the_router(name: str, tmp_path: Path) -> None:
    async def main() -> None:
        async with plant(tmp_path) as (zone, _):
            told = await asked(zone, "desk", name, to="desk/all")
            assert not told.visible

    run(main())


def test_without_scopes_everybody_is_told_that(tmp_path: Path) -> None:
    async def main() -> None:
        plain = CLIENTS.replace("scopes: {membership: line}, ", "").replace("scopes: {membership: office}, ", "")
        plain = plain.replace("scopes: {membership: guest}, ", "")
        async with edge_zone(tmp_path, clients=plain) as zone:
            await publish(zone, *ALARMS)
            told = await asked(zone, "anybody", "press.1.1", to="desk/all")
            assert told.visible
            assert "there are no scopes" in told.text

    run(main())


def test_with_credentials_alone(tmp_path: Path) -> None:
    """As the command does it: no project folder, no key of the run."""

    async def main() -> None:
        async with edge_zone(tmp_path, server, clients=CLIENTS, more={"scopes.yaml": RIGHTS}) as zone:
            await publish(zone, *ALARMS)
            credentials = Path(server.file("desk"))
            key = seal_of(zone.registry.current().numbers.seal).key("press.1.2")
            found, text = await _as_client(
                tmp_path, standard_output(), credentials, server.url, key, "", "", "desk/all"
            )
            assert text.endswith("membership  office\nvisible")
            assert found["side"] == "consumer"
            with pytest.raises(SituError) as error:
                await _as_client(tmp_path, standard_output(), credentials, server.url, key, "", "", "crew/all")
            assert error.value.code == "R011"

    with admitting_server(tmp_path / "nats", "desk") as server:
        run(main())
