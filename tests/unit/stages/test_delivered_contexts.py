"""Delivered events say in which context they are, and in which they were published: one by one and many at once."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from situ.client.events import Event
from situ.event.lines import decode_line, encode_row, encode_rows
from situ.event.message import join_lines
from situ.event.row import Origin, Row
from situ.lang.records import replace
from situ.routing.model import Subscription
from situ.stages.plan import Plan, compile_plan
from tests.zone import deployment_of

RECEIVED = 1_793_521_800_000_000
TYPES = "version: 1\nevents:\n  Reading: {value: double m, note: optional string}\n  Ping: {n: int}\n"
FILES = {
    "contexts/feet.yaml": "version: 1\ncontext: feet\nevents:\n  Reading: {value: double ft, note: optional string}\n"
    "maps: [{both: Reading <-> Reading}]\n",
    "contexts/same.yaml": "version: 1\ncontext: same\n",
    "clients/all.yaml": "version: 1\nclients: {gate: {}, toe: {context: feet}, desk: {}}\n",
}
CONTEXTS = ("root", "feet", "same")


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder: Path = tmp_path_factory.mktemp("contexts")
    asked = [
        Subscription(client=f"desk-{context}", name=type, types=(type,), context=context, durable=durable)
        for context in CONTEXTS
        for type, durable in (("Reading", True), ("Ping", False))
    ]
    declared = deployment_of(folder, (), types=TYPES, more=FILES)
    return compile_plan(replace(declared, subscriptions={each.id: each for each in asked}))


def published(plan: Plan, client: str, number: int) -> list[Row]:
    """Readings in the terms of the client, and pings of root; one with an attribute of somebody else's."""
    lines = []
    for place in range(number):
        event = {"specversion": "1.0", "id": str(place), "source": client, "type": "Reading", "data": {"value": 1.5}}
        if place == 1:
            event |= {"subject": 'a","situcontext":"x', "confidence": "80"}
        if place == 2:
            event |= {"data": {"value": 2.0, "note": '"},"situcontext":"y"}'}}
        if place == 3 and client == "gate":
            event |= {"type": "Ping", "data": {"n": 1}}
        lines.append(json.dumps(event).encode())
    context = plan.interpretation.stamped(client)
    origin = Origin(client=client, incarnation=1, seq=1, received=RECEIVED, pos=65_536, context=context)
    rows = plan.interpretation.into_root(plan.interpretation.decode(join_lines(lines), origin, bare=True))
    found = [row for row in rows if isinstance(row, Row)]
    assert len(found) == number, rows
    return found


@pytest.mark.parametrize("number", [1, 4, 40])
@pytest.mark.parametrize(("client", "origin"), [("gate", "root"), ("toe", "feet@1")])
@pytest.mark.parametrize("from_log", [False, True], ids=["as they come", "from the log"])
def test_context_and_origin_of_what_is_delivered(
    plan: Plan, number: int, client: str, origin: str, from_log: bool
) -> None:
    rows = published(plan, client, number)
    lines = encode_rows(rows)
    if from_log:
        rows = [decode_line(line) for line in lines]
        assert [row.context for row in rows] == [origin] * number
    routed = plan.routing.route(rows)
    worded = plan.interpretation.worded(rows, lines, routed, plan.routing)
    assert not worded.bad
    told = [(plan.routing.groups[group].context, line) for _, group, line in worded.durable]
    told += [(name.removeprefix("desk-"), line) for _, name, _, line in worded.live]
    assert len(told) == len(CONTEXTS) * number
    for context, line in told:
        event = msgspec.json.decode(line, type=Event)
        assert event.context == ("root" if context == "root" else f"{context}@1")
        assert event.origin == origin
        # The JSON has each attribute once, and what follows the event is as it was.
        pairs = json.loads(line, object_pairs_hook=lambda found: found)
        assert len({name for name, _ in pairs}) == len(pairs)
        assert decode_line(line).context == origin
        if event.type == "Reading" and event.data.get("note") is None:
            feet = {"root": False, "same": False, "feet": True}[context]
            metres = 1.5 if client == "gate" else 1.5 * 0.3048
            assert event.data["value"] == pytest.approx(metres / 0.3048 if feet else metres)


def test_lines_of_earlier_releases_are_read(plan: Plan) -> None:
    """They have the context of the sender under the name that says the reader's now."""
    (row,) = published(plan, "toe", 1)
    line = encode_row(row).replace(b'"situfrom"', b'"situcontext"')
    kept = decode_line(line)
    assert kept.context == "feet@1"
    worded = plan.interpretation.worded([kept], [line], plan.routing.route([kept]), plan.routing)
    told = {
        plan.routing.groups[group].context: msgspec.json.decode(line, type=Event) for _, group, line in worded.durable
    }
    assert (told["feet"].context, told["feet"].origin) == ("feet@1", "feet@1")
    assert (told["same"].context, told["same"].origin) == ("same@1", "feet@1")
