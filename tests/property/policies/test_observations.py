"""Lines of the log, messages of it and rows, read in columns, say what each event says alone."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from situ.event.instants import microseconds
from situ.event.lines import encode_row
from situ.event.message import join_lines
from situ.event.row import Row
from situ.lang.expr.emit.vectors import values_of
from situ.lang.types.json_codec import decode, encode
from situ.lang.types.model import Attribute, Struct, Type
from situ.policies.enrichment import observations
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.observations import (
    LogEvent,
    ObservationBatch,
    ObservationDecoder,
    observe,
)
from situ.policies.enrichment.rows import BASE
from situ.policies.ontology.model import Concept, Ontology
from situ.policies.plan import Leaf, LeafScalar
from situ.policies.watermark import SourceTimes, source_times_of
from situ.sources.model import Push
from tests.situations import observation_batches
from tests.types_files import types_of
from tests.volume import cases

TYPES = types_of(
    """
    types:
      Place: {spot: Point m, room: optional string, corners: [Point], class: string}
      Sensor: {name: string}
    events:
      Sighting: {who: optional string, at: optional Place, sure: boolean, count: int, since: timestamp,
                 lasted: duration, price: 'decimal(10,2)', other: optional string}
      NightSighting(Sighting): {light: double}
      Reading: {sensor: Sensor, value: optional double, at: string, taken: optional timestamp}
    """
)
PLACE = TYPES.types["Place"]
EVENTS = {name: TYPES.event(name) for name in ("Sighting", "NightSighting", "Reading")}


def concept(name: str, **attributes: Type) -> Concept:
    declared = [Attribute(name=each, type=type, optional=True) for each, type in attributes.items()]
    return Concept(name=name, attributes=tuple(declared), members=(name,))


def attribute_type(event: str, name: str) -> Type:
    struct = EVENTS[event]
    assert isinstance(struct, Struct)
    found = struct.attribute(name)
    assert found is not None
    return found.type


NAMES = ("sure", "count", "since", "lasted", "price")
ONTOLOGY = Ontology(
    concepts={
        "person": concept("person", place=PLACE, **{name: attribute_type("Sighting", name) for name in NAMES}),
        "sensor": concept("sensor", value=attribute_type("Reading", "value")),
    }
)
PUSHES = {
    push.name: push
    for push in (
        Push(name="seen", event="Sighting", concept="person", id=("who",), attribute="place", value=("at",)),
        Push(name="dark", event="NightSighting", concept="person", id=("who",), attribute="place", value=("at",)),
        *(
            Push(name=name, event="Sighting", concept="person", id=("who",), attribute=name, value=(name,))
            for name in NAMES
            if name != "since"
        ),
        Push(name="began", event="Sighting", concept="person", id=("who",), attribute="since", value=("since",)),
        Push(
            name="read", event="Reading", concept="sensor", id=("sensor", "name"), attribute="value", value=("value",)
        ),
        Push(
            name="since",
            event="Sighting",
            concept="person",
            id=("who",),
            attribute="sure",
            value=("sure",),
            time=("since",),
        ),
        Push(
            name="taken",
            event="Reading",
            concept="sensor",
            id=("sensor", "name"),
            attribute="value",
            value=("value",),
            time=("taken",),
        ),
        Push(name="idle", event="Reading", concept="person", id=("at",), attribute="unused", value=("value",)),
    )
}


def scalar(concept: str, *path: str) -> LeafScalar:
    type: Type = ONTOLOGY.concepts[concept].struct
    for step in path:
        assert isinstance(type, Struct)
        found = type.attribute(step)
        assert found is not None
        type = found.type
    return LeafScalar(path=path, type=type)


def leaf(concept: str, *paths: tuple[str, ...]) -> Leaf:
    scalars = tuple(scalar(concept, *path) for path in sorted(paths))
    return Leaf(concept=concept, attribute=paths[0][0], scalars=scalars)


FEW = Enrichment([leaf("person", ("place", "spot", "x"), ("place", "room")), leaf("sensor", ("value",))], ONTOLOGY)
ALL = Enrichment(
    [
        leaf("person", ("place",), ("place", "spot"), ("place", "spot", "x"), ("place", "corners")),
        leaf("person", ("place", "class")),
        *(leaf("person", (name,)) for name in NAMES),
        leaf("sensor", ("value",)),
    ],
    ONTOLOGY,
)  # fmt: skip


@dataclass(frozen=True)
class Told:
    """An event as the slow way takes it."""

    type: str
    id: str
    source: str
    time: int
    data: dict[str, Any]


def make_row(dice: random.Random, number: int) -> Row:
    name = dice.choice(("Sighting", "NightSighting", "Reading", "situ.deadletter"))
    if name == "Reading":
        taken = dice.choice(("2026-09-21T14:13:20Z", "2026-09-21T14:13:20.25+02:00", "1969-12-31T23:59:59Z", None))
        data: Any = {
            "sensor": {"name": f"s{dice.randrange(5)}"},
            "value": dice.choice((1, 2.5, None)),
            "at": "x",
            "taken": taken,
        }
    else:
        points = [{"x": dice.uniform(0, 9), "y": float(dice.randrange(9))} for _ in range(dice.randrange(3))]
        spot = {"x": dice.choice((1, -0.5, 1e300)), "y": dice.uniform(-5, 5)}
        data = {
            "who": dice.choice(("ann", "Käthe", '"', None)),
            "at": dice.choice(
                ({"spot": spot, "room": dice.choice(("r1", None)), "corners": points, "class": "a"}, None)
            ),
            "sure": dice.random() < 0.5,
            "count": dice.randrange(-5, 5),
            "since": dice.choice(("2026-11-01T12:30:00Z", "2026-11-01T12:30:00.5Z", "1900-01-01T00:00:00.000001Z")),
            "lasted": dice.choice(("PT5M", "-P1DT0.000001S", "PT0S")),
            "price": dice.choice(("12.50", "-0.01")),
        }
        if name == "NightSighting":
            data["light"] = 0.5
    text = "{}"
    if (struct := EVENTS.get(name)) is not None:
        data = {key: value for key, value in data.items() if value is not None}
        text = json.dumps(encode(struct, decode(struct, data, TYPES), TYPES))
    time = dice.choice((0, 1_790_000_000_000_000)) + dice.randrange(10**9)
    recv = time if dice.random() < 0.3 else time + dice.randrange(-5000, 10**6)
    source = dice.choice(("/a", "/b"))
    return Row(0, "c", 1, number, "root", recv, f"e{number}", source, name, time, "", None, "", text.encode())


def expected(rows: Sequence[Row], enrichment: Enrichment) -> list[PushObservations]:
    events = [
        Told(row.type, row.id, row.source, row.time, decode(EVENTS[row.type], json.loads(row.data), TYPES))
        for row in rows
        if row.type in EVENTS
    ]
    return list(observation_batches(observe(events, PUSHES, TYPES), enrichment))


def values(observed: PushObservations, enrichment: Enrichment) -> list[tuple[Any, ...]]:
    scalars = enrichment.scalars(observed.concept, observed.attribute)
    columns = [column.to_pylist() for column in observed.rows.columns[: len(BASE)]]
    columns += [
        values_of(column, scalar.type)
        for column, scalar in zip(observed.rows.columns[len(BASE) :], scalars, strict=True)
    ]
    return sorted(zip(*columns, strict=True), key=repr)


def by_push(observed: Sequence[PushObservations], enrichment: Enrichment) -> dict[str, list[tuple[Any, ...]]]:
    return {each.rows.column(3)[0].as_py(): values(each, enrichment) for each in observed}


def hold_equal(found: ObservationBatch, rows: Sequence[Row], enrichment: Enrichment) -> None:
    assert by_push(found.observed, enrichment) == by_push(expected(rows, enrichment), enrichment)
    assert found.unreadable == 0
    assert found.seen == seen_by(rows, enrichment)


def seen_by(rows: Sequence[Row], enrichment: Enrichment) -> dict[str, SourceTimes]:
    """How far push sources are, one event after the other."""
    found: dict[str, SourceTimes] = {}
    for name, push in PUSHES.items():
        if not enrichment.is_wanted(push.concept, push.attribute):
            continue
        types = ("Sighting", "NightSighting") if push.event == "Sighting" else (push.event,)
        mine = [(stated(row, push), row.recv) for row in rows if row.type in types]
        told = np.array([(time, recv) for time, recv in mine if time is not None], np.int64).reshape(-1, 2)
        seen = source_times_of(told[:, 0], told[:, 1])
        if seen is not None:
            found[name] = seen
    return found


def stated(row: Row, push: Push) -> int | None:
    """When it happened, as the event says it, or its envelope; None: it does not say."""
    if not push.time:
        return row.time
    [name] = push.time
    value = decode(EVENTS[row.type], json.loads(row.data), TYPES).get(name)
    return None if value is None else microseconds(value)


def test_how_far_sources_are_is_the_same_without_what_events_say_otherwise() -> None:
    """Where policies see only a part, it is worked out of the visible events alone."""
    for seed in range(40):
        dice = random.Random(seed)
        rows = [make_row(dice, number) for number in range(dice.choice((0, 1, 60)))]
        heard: dict[str, list[LogEvent]] = {}
        for row in rows:
            heard.setdefault(row.type, []).append(LogEvent(row.time, row.recv, False, row.data))
        assert ObservationDecoder(PUSHES, TYPES, ALL).seen(heard) == seen_by(rows, ALL)


@cases(12, 40)
def test_lines_messages_and_rows_say_what_each_event_says_alone(cases: int) -> None:
    for seed in range(cases):
        dice = random.Random(seed)
        rows = [make_row(dice, number) for number in range(dice.choice((0, 1, 60)))]
        lines = [encode_row(row) for row in rows]
        for enrichment in (FEW, ALL):
            observing = ObservationDecoder(PUSHES, TYPES, enrichment)
            hold_equal(observing.rows(rows), rows, enrichment)
            hold_equal(observing.lines(lines), rows, enrichment)
            hold_equal(observing.messages([join_lines(lines[:20]), join_lines(lines[20:])]), rows, enrichment)


def test_more_events_than_are_read_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(observations, "CHUNK", 64)
    dice = random.Random(1)
    rows = [make_row(dice, number) for number in range(200)]
    hold_equal(ObservationDecoder(PUSHES, TYPES, FEW).rows(rows), rows, FEW)


def test_what_cannot_be_read_tells_nothing_and_is_counted() -> None:
    dice = random.Random(2)
    rows = [make_row(dice, number) for number in range(50)]
    good = [row for row in rows if row.type == "Reading"]
    bad = [
        Row(0, "c", 1, 0, "root", 5, "bad", "/a", "Reading", 5, "", None, "", text)
        for text in (
            b'{"sensor":{"name":5}}',
            b"[1]",
            b'{"sensor":"x"}',
            b"{",
            b'{"value":"high","sensor":{"name":"s"}}',
        )
    ]
    found = ObservationDecoder(PUSHES, TYPES, FEW).rows([*good[:3], *bad, *good[3:]])
    assert found.unreadable == len(bad)
    assert by_push(found.observed, FEW) == by_push(expected(good, FEW), FEW)
    lines = [encode_row(row) for row in good]
    found = ObservationDecoder(PUSHES, TYPES, FEW).messages(
        [join_lines([lines[0], b'{"id":5}', b"no JSON", *lines[1:]])]
    )
    assert found.unreadable == 2
    assert by_push(found.observed, FEW) == by_push(expected(good, FEW), FEW)


def test_times_far_from_now() -> None:
    for time in (-62135596800000000, 253402300799999999, -1, 1):
        row = Row(
            0,
            "c",
            1,
            1,
            "root",
            time,
            "e",
            "/a",
            "Reading",
            time,
            "",
            None,
            "",
            b'{"sensor":{"name":"s"},"value":1,"at":""}',
        )
        [found] = ObservationDecoder(PUSHES, TYPES, FEW).lines([encode_row(row)]).observed
        assert found.rows.column(0).to_pylist() == [time]
