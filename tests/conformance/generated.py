"""Generated input for engines: messages of several clients, good, bad and repeated, and changes of subscriptions.

Everything follows from a seed; nothing here knows an engine.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from situ.event.message import EventKey, join_lines
from situ.lang.records import replace
from situ.routing.model import Subscription

TYPES = """
version: 1
types:
  Probe: {depth: double}
  Fine(Probe): {grade: double}
  Coarse(Probe): {grade: string, wear: optional double}
events:
  Reading: {sensor: string, value: double, unit: optional string, by: optional Probe}
  Alarm: {text: string, level: int}
  Fire(Alarm): {floor: int}
"""
SITU = "limits: {event: 8 KiB}\n"
NO_FILES: Mapping[str, str] = MappingProxyType({})
PUBLISHERS = ("press-1", "press-2", "press-3", "press-4")
SUBSCRIBERS = ("desk", "board", "wall", "press-1")
BEGAN = datetime(2026, 11, 1, 8, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Send:
    """A message as a router has it."""

    key: EventKey
    count: int
    body: bytes
    received: int


@dataclass(frozen=True, slots=True)
class Change:
    """From here on these subscriptions hold."""

    subscriptions: Mapping[str, Subscription]


Step = Send | Change


class Generated:
    """The steps of one seed. The first is a change."""

    def __init__(self, seed: int, *, messages: int, subscriptions: int, changes: int) -> None:
        self._chance = random.Random(seed)
        self._next = dict.fromkeys((*PUBLISHERS, "nobody"), (1, 1))
        self._sent: list[Send] = []
        self._wanted: dict[str, Subscription] = {}
        self._ids = 0
        self._received = round(BEGAN.timestamp() * 1_000_000)
        self.steps = tuple(self._steps(messages, subscriptions, changes))

    @property
    def events(self) -> int:
        return sum(step.count for step in self.steps if isinstance(step, Send))

    def _steps(self, messages: int, subscriptions: int, changes: int) -> Iterator[Step]:
        yield self._change(added=subscriptions, removed=0)
        at = set(self._chance.sample(range(1, messages), changes))
        for number in range(messages):
            if number in at:
                part = subscriptions // 4
                yield self._change(added=part, removed=part)
            yield self._again() if self._sent and self._chance.random() < 0.08 else self._message()

    # ── messages ──

    def _message(self) -> Send:
        chance = self._chance
        client = "nobody" if chance.random() < 0.02 else chance.choice(PUBLISHERS)
        incarnation, seq = self._next[client]
        if chance.random() < 0.03:
            incarnation, seq = incarnation + 1, 1
        count = chance.choice((1, 1, 2, 5, 20, 100, 250))
        lines = [self._line(client) for _ in range(count)]
        body = join_lines(lines)
        if chance.random() < 0.1:
            body, count = self._written_otherwise(client, count)
        self._next[client] = (incarnation, seq + count)
        self._received += chance.randint(1, 2_000_000)
        sent = Send(EventKey(client, incarnation, seq), count, body, self._received)
        self._sent.append(sent)
        return sent

    def _written_otherwise(self, client: str, count: int) -> tuple[bytes, int]:
        """A batch that is not one event a line, or no batch at all."""
        if self._chance.random() < 0.2:
            return self._chance.choice((b"", b"nothing", b"[", b'{"a":1}', b"[1,2", b"\xff\xfe")), 1
        events = [self._good(client) for _ in range(count)]
        return json.dumps(events, indent=self._chance.choice((None, 1))).encode(), count

    def _again(self) -> Send:
        """A message that was sent before: as it was, or cut differently."""
        sent = self._chance.choice(self._sent)
        incarnation, _ = self._next[sent.key.client]
        whole = join_lines(sent.body.splitlines()) == sent.body and sent.count > 1
        if not whole or self._chance.random() < 0.5 or sent.key.incarnation != incarnation:
            return sent
        lines = sent.body[2:-2].split(b",\n")
        if len(lines) != sent.count:
            return sent
        first = self._chance.randrange(len(lines) - 1)
        key = EventKey(sent.key.client, sent.key.incarnation, sent.key.seq + first)
        return Send(key, len(lines) - first, join_lines(lines[first:]), sent.received)

    def _line(self, client: str) -> bytes:
        if self._chance.random() < 0.06:
            return self._bad(client)
        return json.dumps(self._good(client)).encode()

    def _good(self, client: str) -> dict[str, Any]:
        chance = self._chance
        self._ids += 1
        type = chance.choices(("Reading", "Alarm", "Fire"), (6, 2, 1))[0]
        if type == "Reading":
            data: dict[str, Any] = {"sensor": f"s{chance.randrange(12)}", "value": round(chance.uniform(-20, 120), 2)}
            if chance.random() < 0.3:
                data["unit"] = chance.choice(("C", "F", "°C", "𝄞\n"))
            if chance.random() < 0.3:
                data["by"] = self._probe()
        else:
            data = {"text": chance.choice(("hot", "smoke", "ünlock", 'say "no"')), "level": chance.randrange(6)}
            if type == "Fire":
                data["floor"] = chance.randrange(-2, 5)
        event: dict[str, Any] = {"specversion": "1.0", "id": str(self._ids), "source": client, "type": type}
        if chance.random() < 0.2:
            event["source"] = chance.choice((f"{client}/roller", "press-9", "elsewhere/x", "//host/path"))
        if chance.random() < 0.5:
            at = BEGAN - timedelta(microseconds=chance.randrange(10**10))
            event["time"] = at.isoformat().replace("+00:00", "Z")
        if chance.random() < 0.2:
            event["confidence"] = chance.choice(("0", "12.5", "80", "100"))
        if chance.random() < 0.1:
            event |= {"subject": "a/b", "traceparent": "00-1"}
        if chance.random() < 0.2:
            event["situad"] = f"{client}/readings" if type == "Reading" else f"{client}/alarms"
        if chance.random() < 0.05:
            data["extra"] = [1, {"deep": None}]
        if chance.random() < 0.3:  # keys in any order
            event = dict(chance.sample([*event.items(), ("data", data)], len(event) + 1))
        else:
            event["data"] = data
        return event

    def _probe(self) -> dict[str, Any]:
        """A value of the declared type or of a subtype; subtypes disagree on what a grade is."""
        chance = self._chance
        depth = {"depth": round(chance.uniform(-5, 20), 1)}
        match chance.randrange(4):
            case 0:
                return depth
            case 1:
                return {"$type": "Coarse", **depth, "grade": chance.choice(("a", "b", "12"))}
            case 2:
                return {"$type": "Coarse", **depth, "grade": "c", "wear": round(chance.uniform(0, 9), 1)}
            case _:
                return {"$type": "Fine", **depth, "grade": float(chance.randrange(-3, 9))}

    def _bad(self, client: str) -> bytes:
        chance = self._chance
        event = self._good(client)
        data = event["data"]
        match chance.randrange(13):
            case 0:
                return chance.choice((b"{not json", b"\xff\xfe", b"17", b"null", b'"text"', b"[]", b"{}"))
            case 1:
                data |= {"value": "hot", "level": "high"}
            case 2:
                event["data"] = {}
            case 3:
                event["type"] = chance.choice(("Nothing", "situ.deadletter", "situ.loss", ""))
            case 4:
                event["time"] = "2999-01-01T00:00:00Z"
            case 5:
                event["situad"] = chance.choice(("press-9/readings", f"{client}/nothing", "no slash"))
            case 6:
                data["sensor" if "sensor" in data else "text"] = "x" * 9000
            case 7:
                event["confidence"] = chance.choice(("101", "-1", "much", "NaN"))
            case 8:
                event["specversion"] = "0.3"
            case 9:
                del event["id"], event["source"]
            case 10:
                event["time"] = chance.choice(("yesterday", "2026-13-01T00:00:00Z", 12))
            case 11:
                event["data"] = chance.choice((None, 5, [data], "text"))
            case _:
                data |= {"value": 10**400, "level": 2**40}
        return json.dumps(event).encode()

    # ── subscriptions ──

    def _change(self, *, added: int, removed: int) -> Change:
        chance = self._chance
        for id in chance.sample(sorted(self._wanted), min(removed, len(self._wanted))):
            del self._wanted[id]
        for _ in range(added):
            made = self._subscription()
            self._wanted[made.id] = made
        # Some keep their name and want something else.
        for id in chance.sample(sorted(self._wanted), min(removed // 2, len(self._wanted))):
            old, new = self._wanted[id], self._subscription()
            self._wanted[id] = replace(new, client=old.client, name=old.name, durable=old.durable)
        return Change(dict(self._wanted))

    def _subscription(self) -> Subscription:
        chance = self._chance
        self._ids += 1
        types, where = self._filter()
        return Subscription(
            client=chance.choice(SUBSCRIBERS),
            name=f"s{self._ids}",
            types=types,
            where=where,
            durable=chance.random() < 0.7,
        )

    def _filter(self) -> tuple[tuple[str, ...], str]:
        chance = self._chance
        value, other = sorted((chance.randint(-20, 120), chance.randint(-20, 120)))
        sensor, level = f"s{chance.randrange(12)}", chance.randrange(6)
        envelope = (
            "",
            f"event.source = '{chance.choice(PUBLISHERS)}'",
            f"event.source LIKE '{chance.choice(PUBLISHERS)}/%'",
            "event.confidence > 50",
            "event.confidence IS NULL AND event.id LIKE '%7'",
            "event.time < TIMESTAMP '2026-11-01T06:00:00Z'",
        )
        reading = (
            f"value > {value}",
            f"value BETWEEN {value} AND {other}",
            f"sensor = '{sensor}'",
            f"sensor IN ('{sensor}', 's1') AND value <= {other}",
            f"sensor LIKE 's1%' OR value < {value}",
            "unit IS NULL",
            f"NOT (unit = 'C' AND value > {value})",
            f"unit = '°C' OR NOT sensor = '{sensor}'",
            f"by.depth > {level}",
            f"by IS Fine AND by.depth <= {value}",
            f"NOT by IS Coarse OR value < {value}",
        )
        alarm = (f"level >= {level}", f"level = {level} AND text <> 'hot'", "type IS Fire", "text LIKE '%\"%'")
        fire = (f"floor < {level - 2}", f"floor + level > {level}")
        code = chance.choice(("E701", "E702", "E703", "R002", "R007"))
        kinds: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
            (("Reading",), reading),
            (("Reading",), envelope),
            (("Alarm",), alarm),
            (("Fire",), fire),
            (("Alarm", "Reading"), envelope),
            (("situ.deadletter",), ("", f"code = '{code}'", "stage = 'decode'")),
        )
        types, filters = chance.choices(kinds, (8, 2, 4, 2, 3, 1))[0]
        return types, chance.choice(filters)
