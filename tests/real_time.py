"""Records for real-time deliveries: a project with topics, records of every kind, and what the ordinary way makes of
them."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from situ.event.message import TOPICS, EventKey
from situ.kafka.connection import KafkaAddress
from situ.kafka.formats import RecordWriter, WrittenRecord, reader_of
from situ.kafka.records import KafkaRecord, pack_records
from situ.lang.records import replace
from situ.routing.delivery_groups import group_of
from situ.stages.deliver import interpret_out, route_and_shape
from situ.stages.plan import Plan, compile_plan
from situ.stages.real_time import RealTimePlan, real_time_plan
from situ.stages.root_log import ROUTER, ingest
from situ.testing.fixtures import load_project
from tests.project_files import write

NOW = 1_698_913_000_000
"""Milliseconds: when records are written."""

FILES = {
    "types/plant.yaml": """
version: 1
types:
  Place: {room: string, floor: long, marks: "optional [double]"}
events:
  Measured: {sensor: string, value: double °C}
  Reading(Measured):
    count: optional long
    level: {type: int, default: 3}
    well: optional boolean
    made: optional timestamp
    day: optional date
    place: optional Place
    words: "optional [string]"
    stays: "optional [Place]"
  Beat: {n: long, at: timestamp}
""",
    "contexts/us.yaml": """
version: 1
context: us
types:
  Spot: {room: string, floor: long}
events:
  Heat: {probe: string, value: double °F, times: optional long, spot: optional Spot}
maps:
  - out: Reading -> Heat
    attributes: {probe: sensor, times: count, spot: place}
  - in: Heat -> Reading
    attributes: {sensor: probe, count: times, place: spot}
rules:
  out:
    - Place -> to_spot
  in:
    - Spot -> to_place
functions:
  to_spot: Place -> Spot = struct(value.room AS room, value.floor + 1 AS floor)
  to_place: Spot -> Place = struct(value.room AS room, value.floor - 1 AS floor)
""",
    "contexts/words.yaml": """
version: 1
context: words
events:
  Said: {name: string, half: double}
maps:
  - out: Reading -> Said
    attributes:
      name: {expr: "upper(sensor) || '\\\"x'"}
      half: {expr: "value / 3 [degC]"}
""",
    "clients/plant.yaml": """
version: 1
clients:
  plant:
    kafka: {topics: [readings, more], type: Reading, time: at, id: n, key: sensor}
    advertisements:
      readings: {type: Reading, where: value > -500 °C}
  probes:
    context: us
    kafka: {topics: [heat], type: Heat, source: who}
    advertisements:
      heat: {type: Heat}
  beats:
    kafka: {topics: [beats], type: Beat, time: at, id: n}
    advertisements:
      beats: {type: Beat}
  partner:
    kafka: {topics: [partner]}
    advertisements:
      any: {type: Reading}
  desk:
    subscriptions:
      all: {types: [Measured], kafka: {topic: out.all}, delivery: real-time}
      hot:
        types: [Reading]
        where: value >= 20 °C AND sensor <> 's3'
        kafka: {topic: out.hot, key: sensor}
        delivery: real-time
      whole:
        types: [Reading]
        where: count IS NOT NULL
        kafka: {topic: out.whole, key: count, format: cloudevents}
        delivery: real-time
      beats: {types: [Beat], where: "n > 5", kafka: {topic: out.beats, key: at}, delivery: real-time}
  desk-us:
    context: us
    subscriptions:
      heat: {types: [Heat], where: value > 50 °F, kafka: {topic: out.heat, key: value}, delivery: real-time}
  desk-words:
    context: words
    subscriptions:
      said: {types: [Said], kafka: {topic: out.said, key: name}, delivery: real-time}
""",
}


SECRET = "secret of the zone"
_DIMENSIONS = """
version: 1
dimensions:
  tenancy:
    mode: closed
    scopes:
      house:  {{}}
      guards: {{in: [house], input: "{0}"}}
      guests: {{in: [house], input: "{1}", output: "{2}"}}
  area:
    scopes:
      building: {{}}
      lab:      {{in: [building], output: "{3}"}}
      office:   {{in: [building], output: "{4}", input: "{5}"}}
      bench:    {{in: [lab, office], output: "{6}"}}
clients:
"""
_FILTERS = (
    "type IS Measured AND value > 5 °C",
    "type IS Reading",
    "NOT type IS Beat",
    "type IS Reading AND sensor IN ('s1', 's2', 's4') OR type IS Beat",
    "type IS Reading AND count IS NULL OR type IS Beat AND n > 6",
    "type IS Reading AND coalesce(level, 3) >= 0 AND value / (value - 0.00001 °C) > 0",
    "event.source = 'plant' OR event.id = '17' OR type IS Beat",
    "type IS Reading AND well",
    "TRUE",
    "FALSE",
)
_TAGS = {"tenancy": ("house", "guards", "guests"), "area": ("building", "lab", "office", "bench", "bench", "any")}


def scoped(dice: random.Random) -> Mapping[str, str]:
    """The same project among scopes, which say of many events that they are hidden."""
    files = dict(FILES)
    clients = ("plant", "probes", "beats", "partner", "desk", "desk-us", "desk-words")
    scopes = _DIMENSIONS.format(*(dice.choice(_FILTERS) for _ in range(7)))
    chosen: dict[str, dict[str, str]] = {}
    for client in clients:
        may = "tenancy: [house, guards, guests], area: [building, lab, office, bench]"
        scopes += f"  {client}: {{{may}}}\n"
        tags = {name: dice.choice(some) for name, some in _TAGS.items()}
        chosen[client] = {name: tag for name, tag in tags.items() if tag is not None}
    lines = []
    for line in files["clients/plant.yaml"].splitlines():
        lines.append(line)
        client = line.strip().rstrip(":")
        if client in chosen and line.startswith("  ") and not line.startswith("   "):
            lines.append(f"    scopes: {json.dumps(chosen[client])}")
    return {**files, "clients/plant.yaml": "\n".join(lines), "scopes.yaml": scopes}


def project(folder: Path, settings: str = "", files: Mapping[str, str] = FILES) -> Path:
    text = f"version: 1\nname: plant\nkafka: {{servers: 'localhost:9092'}}\n{settings}"
    write(folder, {"situ.yaml": text, **files})
    return folder


@dataclass(frozen=True)
class Delivered:
    """A record that a subscription gets."""

    subscription: str
    record: WrittenRecord


class OrdinaryWay:
    """What engines make of records, each subscription's by the queue."""

    def __init__(self, folder: Path) -> None:
        declared = load_project(folder).deployment
        if declared.scopes.dimensions:
            declared = declared.numbered()
            declared = replace(declared, numbers=replace(declared.numbers, seal=SECRET))
        self.plan: Plan = compile_plan(declared)
        self.real_time: RealTimePlan = real_time_plan(self.plan)
        deployment = self.plan.deployment
        self._groups = {group_of(each): each.id for each in deployment.routed.values() if each.durable}
        self._writers = {
            id: RecordWriter(each.kafka) for id, each in deployment.subscriptions.items() if each.kafka is not None
        }

    def deliver(self, client: str, record: KafkaRecord) -> Iterator[Delivered]:
        source, seeing = self.plan.deployment.clients[client].kafka, self.plan.seeing
        assert source is not None
        reader = reader_of(source, KafkaAddress(servers=""))
        for message in pack_records([record], client, reader):
            if message.errors:
                continue
            key = EventKey(client, message.key.incarnation, message.key.seq)
            batch = ingest(message.body, key, 1, time.time_ns() // 1000, self.plan, ROUTER)
            for row, line in zip(batch.good, batch.lines, strict=True):
                worded = interpret_out(route_and_shape([row], [line], self.plan), self.plan)
                for _, group, text in worded.durable:
                    id = self._groups[group]
                    if seeing is not None:
                        asked = self.plan.deployment.subscriptions[id]
                        if not seeing.sees(seeing.look(row), asked.scopes):
                            continue
                        (text,) = seeing.seal.handed((text,), asked.client)
                    yield Delivered(id, self._writers[id].record(text))

    def is_plain(self, client: str, record: KafkaRecord) -> bool:
        return self.real_time.clients[client].plain.takes(record.key, record.value, record.time)


# ── records ──


def plain_reading(dice: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"sensor": f"s{dice.randrange(6)}", "value": number(dice)}
    choices = {
        "count": lambda: dice.randrange(-(10**12), 10**12),
        "level": lambda: dice.randrange(-5, 5),
        "well": lambda: dice.random() < 0.5,
        "made": lambda: dice.choice(["2023-11-01T08:30:00Z", "2023-02-28T23:59:59.5Z", "2023-11-01T08:30:00.123456Z"]),
        "day": lambda: dice.choice(["2023-11-01", "2024-02-29"]),
        "place": lambda: place(dice),
        "words": lambda: [word(dice) for _ in range(dice.randrange(4))],
        "stays": lambda: [place(dice) for _ in range(dice.randrange(3))],
        "at": lambda: dice.choice([NOW, NOW - 5, "2023-10-31T08:30:00.25Z", "1999-01-01T00:00:00Z"]),
        "n": lambda: dice.choice([17, 10**15, "a-17", "x/9"]),
    }
    for name, make in choices.items():
        if name in ("at", "n") or dice.random() < 0.4:
            found[name] = make()
    members = list(found.items())
    dice.shuffle(members)
    return dict(members)


def place(dice: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {"room": word(dice), "floor": dice.randrange(-3, 9)}
    if dice.random() < 0.5:
        found["marks"] = [number(dice) for _ in range(dice.randrange(3))]
    return found


def word(dice: random.Random) -> str:
    return dice.choice(["", "a b", "Tür", "東", "😀", "x'y", "$e{t}", "/~[]", "null", "1"])


def number(dice: random.Random) -> Any:
    return dice.choice(
        [
            dice.randrange(-50, 100),
            dice.uniform(-40, 60),
            round(dice.uniform(-40, 60), 2),
            dice.uniform(0, 1e-4),
            round(dice.uniform(0, 1e14), 3),
            0.1 + 0.2,
            123456789012345,
            0.00001,
        ]
    )


def _changed(dice: random.Random, text: str) -> bytes | None:
    """A record of which something is odd, or wrong."""
    kind = dice.randrange(22)
    one = dice.choice
    return (
        one(
            [
                None,
                b"",
                b"[]",
                b"\xff" + text.encode(),
                text.encode().replace(b"s", b"\xc3\x28", 1),
                b"\xef\xbb\xbf" + text.encode(),
            ]
        )
        if kind == 0
        else {
            1: lambda: text.replace('"value"', '"Value"'),
            2: lambda: text[:-1] + ', "value": 7}',
            3: lambda: text[:-1] + ', "sensor": "s1"}',
            4: lambda: text[:-1] + ', "more": 1}',
            5: lambda: text[:-1] + ",}",
            6: lambda: text + " ",
            7: lambda: "\n" + text,
            8: lambda: text.replace("{", "{ \t", 1),
            9: lambda: text.replace('"s', '"\\u0073', 1),
            10: lambda: text[:-1] + ', "level": 2.0}',
            11: lambda: text[:-1] + ', "level": null}',
            12: lambda: text[:-1] + ', "level": "2"}',
            13: lambda: text[:-1] + ', "day": "2023-02-30"}',
            14: lambda: text[:-1] + ', "made": "2023-02-30T00:00:00Z"}',
            15: lambda: text[:-1] + ', "made": "2023-11-01T08:30:00+01:00"}',
            16: lambda: text[:-1] + ', "count": 01}',
            17: lambda: text[:-1] + ', "count": -0}',
            18: lambda: text[:-1] + ', "value": -0.0}',
            19: lambda: text[:-1] + ', "value": 1e3}',
            20: lambda: text[: len(text) // 2],
            21: lambda: text.replace('"room"', '"raum"'),
        }[kind]().encode()
    )


def record(dice: random.Random, topic: str, offset: int, value: bytes | None, key: bytes | None) -> KafkaRecord:
    time = dice.choice([NOW, NOW + 1, NOW - 86_400_000, NOW + 30_000])
    return KafkaRecord(topic, dice.randrange(3), offset, key, value, (), time)


def readings(seed: int, count: int) -> list[KafkaRecord]:
    """Of the client `plant`."""
    dice, found = random.Random(seed), []
    for offset in range(count):
        made = plain_reading(dice)
        if dice.random() < 0.2:
            made.pop(dice.choice(list(made)))
        if dice.random() < 0.1:
            made["at"] = dice.choice([NOW + 10**9, "2024-01-01T00:00:00Z", "2023-02-30T00:00:00Z", True, 1.5, -1])
        if dice.random() < 0.1:
            made["n"] = dice.choice([1.5, "", "a b", "Ü", "17", True, 10**30])
        blanks = dice.choice([(",", ":"), (", ", ": "), (" ,  ", " : ")])
        text = json.dumps(made, ensure_ascii=dice.random() < 0.1, separators=blanks)
        value = text.encode() if dice.random() < 0.6 else _changed(dice, text)
        key = dice.choice([None, b"k1", "Ü".encode(), b"", b"\xff", b'q"', b"s3"])
        found.append(record(dice, dice.choice(["readings", "more"]), offset, value, key))
    return found


def counted(record: KafkaRecord) -> KafkaRecord:
    """One of `plant` that calls itself what it would be called if it said nothing."""
    incarnation = TOPICS | crc32(record.topic.encode()) << 16 | record.partition
    made = {"sensor": "s1", "value": 7, "n": f"{incarnation}-{record.offset + 1}", "at": NOW - 5}
    return replace(record, value=json.dumps(made).encode())


def heats(seed: int, count: int) -> list[KafkaRecord]:
    """Of the client `probes`, in the terms of `us`."""
    dice, found = random.Random(seed), []
    for offset in range(count):
        made: dict[str, Any] = {"probe": word(dice), "value": number(dice)}
        made["who"] = dice.choice(["probes", "probes/7", "x", "probes7", "a b", "", 7])
        if dice.random() < 0.5:
            made["times"] = dice.randrange(100)
        if dice.random() < 0.5:
            made["spot"] = {"room": word(dice), "floor": dice.choice([1, 2, 10**15, 10**18, 0])}
        text = json.dumps(made, ensure_ascii=False)
        value = text.encode() if dice.random() < 0.8 else _changed(dice, text)
        found.append(record(dice, "heat", offset, value, None))
    return found


def beats(seed: int, count: int) -> list[KafkaRecord]:
    """Of the client `beats`, whose time and id are attributes."""
    dice, found = random.Random(seed), []
    for offset in range(count):
        made = {"n": dice.choice([1, 7, 10**17, -3, "7", 1.5]), "at": dice.choice(_TIMES)}
        found.append(record(dice, "beats", offset, json.dumps(made).encode(), b"k"))
    return found


_TIMES = [
    "2023-11-01T08:30:00Z",
    "2023-11-01T08:30:00.1Z",
    "2023-11-01",
    17,
    "2099-01-01T00:00:00Z",
    "0001-01-01T00:00:00Z",
]

RECORDS = {"plant": readings, "probes": heats, "beats": beats}


def rows(records: Iterable[KafkaRecord]) -> list[tuple[Any, ...]]:
    """As Spark's connector gives them; ``timestamp`` is the last, in milliseconds."""
    return [(each.key, each.value, each.topic, each.partition, each.offset, each.time) for each in records]


SCHEMA = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, millis BIGINT"


def as_delivered(found: Sequence[Any], subscriptions: Mapping[str, str]) -> list[Delivered]:
    """Rows of records, by topics of subscriptions."""
    return [
        Delivered(
            subscriptions[each.topic],
            WrittenRecord(
                None if each.key is None else bytes(each.key),
                bytes(each.value),
                tuple((header.key, bytes(header.value)) for header in each.headers),
            ),
        )
        for each in found
    ]
