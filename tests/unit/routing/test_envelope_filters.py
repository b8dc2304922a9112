"""Filters on what an event says beside its data: its subject, and the attributes that others have added."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from situ.event.lines import decode_line, encode_row
from situ.event.message import join_lines
from situ.event.row import Origin, Row
from situ.explain.subscription import explain_filter_match
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.scope import event_scope
from situ.routing.model import Subscription
from situ.routing.routing_table import compile_routing
from situ.stages.decode import EventDecoder
from tests.oracles.routing import NaiveRouting
from tests.types_files import types_of
from tests.volume import cases

TYPES = types_of("events:\n  Reading: {value: double, status: optional string}\n  Told: {subject: string}\n")
RECEIVED = 1_793_521_800_000_000
Says = Callable[[dict[str, Any]], bool]
ASKED: dict[str, Says] = {
    "event.subject = 'hall/3'": lambda event: event.get("subject") == "hall/3",
    "event.subject LIKE 'hall/%'": lambda event: str(event.get("subject", "")).startswith("hall/"),
    "event.subject IS NULL": lambda event: "subject" not in event,
    "event.subject > 'h' AND value > 5": lambda event: event.get("subject", "") > "h" and event["data"]["value"] > 5,
    "event.subject IN ('gate', 'yard') OR event.partitionkey = '7'": lambda event: (
        event.get("subject") in ("gate", "yard") or str(event.get("partitionkey")) == "7"
    ),
    "event.traceparent LIKE '00-%' AND NOT event.sampled = 'true'": lambda event: (
        str(event.get("traceparent", "")).startswith("00-") and event.get("sampled") is False
    ),
    "length(event.subject) = 4": lambda event: len(event.get("subject", "")) == 4,
}


def events(seed: int, number: int) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    found = []
    for place in range(number):
        event: dict[str, Any] = {"specversion": "1.0", "id": str(place), "source": "gate", "type": "Reading"}
        for name, values in {
            "subject": ("hall/3", "hall/4", "gate", "yard", "a"),
            "partitionkey": (7, 8, "7"),
            "traceparent": ("00-1", "01-1"),
            "sampled": (True, False),
            "dataschema": ("https://example.org/a",),
        }.items():
            if dice.random() < 0.5:
                event[name] = dice.choice(values)
        found.append({**event, "data": {"value": dice.randrange(10)}})
    return found


def rows_of(given: list[dict[str, Any]]) -> list[Row]:
    intake = EventDecoder(TYPES, extra="drop", ahead=timedelta(minutes=5), limit=1 << 20)
    origin = Origin(client="gate", incarnation=1, seq=1, received=RECEIVED, pos=65_536)
    rows = intake.decode(join_lines([json.dumps(each).encode() for each in given]), origin)
    found = [row for row in rows if isinstance(row, Row)]
    assert len(found) == len(given)
    return found


@cases(5, 20)
@pytest.mark.parametrize("number", [5, 40], ids=["one by one", "in columns"])
def test_subject_and_extensions_are_found_by_all_ways(number: int, cases: int) -> None:
    asked = {
        f"desk/s{place}": Subscription(client="desk", name=f"s{place}", types=("Reading",), where=where, durable=False)
        for place, where in enumerate(ASKED)
    }
    routing = compile_routing(types=TYPES, functions={}, subscriptions=asked)
    reference = NaiveRouting(types=TYPES, functions={}, subscriptions=asked)
    compared = 0
    for seed in range(cases):
        given = events(seed, number)
        rows = rows_of(given)
        kept = [decode_line(encode_row(row)) for row in rows]
        live = {(place, name) for place, _, names in routing.route(rows).live for name in names.split(",")}
        for place, event in enumerate(given):
            for id, says in zip(asked, ASKED.values(), strict=True):
                wanted = says(event)
                assert ((place, id.partition("/")[2]) in live) is wanted, (asked[id].where, event)
                assert routing.matches(id, kept[place]) is wanted
                assert explain_filter_match(routing, id, rows[place]).matched is wanted
                assert (id in reference.match(rows[place])) is wanted
                compared += wanted
    assert compared > 2 * cases


def test_a_filter_on_the_subject_is_looked_up() -> None:
    where = "event.subject = 'hall/3'"
    asked = {"desk/s": Subscription(client="desk", name="s", types=("Reading",), where=where, durable=False)}
    routing = compile_routing(types=TYPES, functions={}, subscriptions=asked)
    row = rows_of(events(1, 1))[0]
    assert routing.found_by("desk/s", row) == ("the value of `event.subject`",)


def test_what_the_payload_declares_comes_first() -> None:
    told, reading = TYPES.event("Told"), TYPES.event("Reading")
    assert told is not None
    assert reading is not None

    def problems(where: str, type: Any) -> list[str]:
        return [
            each.code.code for each in check_condition(where, event_scope(type, types=TYPES, extensions=True)).problems
        ]

    checked = check_condition("event.subject = 'x'", event_scope(told, types=TYPES, extensions=True))
    assert checked.node is not None
    assert "data" in repr(checked.node)
    assert problems("event.anything = 'x'", reading) == []
    assert problems("event.anything > 5", reading) == ["X103"]
    # What looks like a mistake in writing is one, and so is what only Situ writes.
    assert problems("event.statsu = 'x'", reading) == ["X102"]
    assert problems("event.situkey = 'x'", reading) == ["X102"]
    assert problems("anything = 'x'", reading) == ["X102"]
