"""What a client with valid credentials may come to send: random, mutated, huge, deep, repeated, out of order.

Names are few, so that what is accepted does not pile up: what grows is not what is looked for here.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass, field
from typing import Any

from situ.bus.consumer_proxy import TAKE
from situ.protocol.wire import CLIENT_KINDS

NAMES = ("a", "b", "c", "levels", "secrets", "", "x" * 65, "a.b", "*", "../a", "ä", "alice/secrets", "board\r\nPUB x 0")
TYPES = ("Level", "Secret", "Alarm", "situ.deadletter", "situ.situation", "Nothing", "", "L" * 300)
WORDS = (
    "level > 1",
    "level >",
    "tank = 'a'",
    "type IS Level",
    "1 = 1",
    "((((",
    "level IN (1,2,3)",
    "upper(tank) = 'A'",
)
NUMBERS = (0, 1, 2, -1, 16, 65_536, 2**31, 2**63 - 1, 2**63, 2**64, 10**30, 1.5, 1e308, -0.0)
TEXTS = ("", "x", "\x00", "\ud7ff", "é" * 50, "'; DROP", "${HOME}", "root", "a@1", "1970-01-01T00:00:00Z", "9" * 400)
KINDS = (*sorted(CLIENT_KINDS), TAKE, "Nonsense", "Nack", "ConnectAck", "")
LARGEST = 7 << 20
"""Bytes that the bus takes, with some for headers."""
CONTEXT = """context: {name}
events:
  Mine: {{tank: string, level: double}}
maps: [in: Mine -> Level]
"""


@dataclass
class Sent:
    headers: dict[str, str]
    body: bytes


@dataclass
class Traffic:
    """An endless stream of messages; the same for the same seed."""

    seed: int
    chance: random.Random = field(init=False)
    before: list[Sent] = field(default_factory=list)
    seq: int = 0
    incarnation: int = 1
    session: int = 1
    connecting: bool = False
    """It has said who it is: what it says next is believed."""

    def __post_init__(self) -> None:
        self.chance = random.Random(self.seed)

    def next(self) -> Sent:
        pick = self.chance.random()
        if self.connecting:
            self.connecting = False
            return Sent({"Situ-Message": "FullList", "Situ-Session": str(self.session)}, b"{}")
        if self.before and pick < 0.15:
            return self.chance.choice(self.before)  # once more, and in another order
        if self.before and pick < 0.35:
            found = self._mutated(self.chance.choice(self.before))
        elif pick < 0.5:
            found = Sent(self._headers(self.chance.choice(KINDS)), self.chance.randbytes(self.chance.randrange(200)))
        elif pick < 0.75:
            found = self._publication()
        else:
            found = self._message()
        found.body = found.body[:LARGEST]
        if len(found.body) < 20_000:
            self.before.append(found)
            del self.before[:-300]
        return found

    # ── messages ──

    def _headers(self, kind: str) -> dict[str, str]:
        headers = {"Situ-Message": kind} if kind else {}
        if self.chance.random() < 0.9:
            headers["Situ-Session"] = str(
                self.chance.choice((self.session, self.session, 0, self.session + 1, "x", -1))
            )
        return headers

    def _message(self) -> Sent:
        kind = self.chance.choice((*KINDS, "Connect", "Connect"))
        if kind == "Connect" and self.chance.random() < 0.8:
            self.incarnation += 1
            self.session += 1
            self.seq = 0
            self.connecting = True
            return Sent(
                {"Situ-Message": kind, "Situ-Session": str(self.session)}, b'{"incarnation":%d}' % self.incarnation
            )
        fields: dict[str, Any] = {}
        for name in (
            "req",
            "ad",
            "sub",
            "name",
            "type",
            "types",
            "filter",
            "context",
            "text",
            "operation",
            "body",
            "do",
        ):
            if self.chance.random() < 0.7:
                fields[name] = self._field(name)
        for name in ("durable", "scopes", "epoch", "expectation", "version", "advice", "verdict", "values", "about"):
            if self.chance.random() < 0.2:
                fields[name] = self._value(3)
        for name in ("batch", "expires", "seq", "number", "max_bytes", "from_seq", "to_seq", "limit", "since", "acked"):
            if self.chance.random() < 0.3:
                fields[name] = self.chance.choice(NUMBERS)
        if self.chance.random() < 0.1:
            fields[self.chance.choice(("ads", "subs", "to", "event", "sample", "after"))] = self._value(3)
        return Sent(self._headers(kind), self._encoded(fields))

    def _field(self, name: str) -> Any:
        chance = self.chance
        if chance.random() < 0.1:
            return self._value(4)
        match name:
            case "req":
                return chance.choice((1, 2, 3))
            case "ad" | "sub" | "name":
                return chance.choice(NAMES)
            case "type":
                return chance.choice(TYPES)
            case "types":
                return [chance.choice(TYPES) for _ in range(chance.randrange(4))]
            case "filter":
                return self._expression()
            case "context":
                return chance.choice(("root", "a", "b", "nowhere", "root@1"))
            case "text":
                return chance.choice(
                    (CONTEXT.format(name="a"), CONTEXT.format(name="b"), "[" * 5000, "a: *b", "x: &x [*x]")
                )
            case "do":
                return chance.choice(("info", "next", "again", "ack", "delete"))
            case _:
                return {chance.choice(("op", "member", "scope", "dimension", "need")): self._value(3) for _ in range(3)}

    def _expression(self) -> str:
        chance = self.chance
        pick = chance.random()
        if pick < 0.1:
            return "(" * 2000 + "level > 1" + ")" * 2000
        if pick < 0.2:
            return " OR ".join(["level > 1"] * chance.choice((2, 500, 5000)))
        if pick < 0.3:
            return "NOT " * 3000 + "level > 1"
        return chance.choice(WORDS)

    def _value(self, depth: int) -> Any:
        chance = self.chance
        pick = chance.random()
        if depth and pick < 0.2:
            return [self._value(depth - 1) for _ in range(chance.randrange(4))]
        if depth and pick < 0.4:
            return {chance.choice(("a", "type", "", "$type", "x")): self._value(depth - 1) for _ in range(3)}
        return chance.choice((*NUMBERS, *TEXTS, None, True, False))

    # ── events ──

    def _publication(self) -> Sent:
        chance = self.chance
        count = chance.choice((1, 1, 1, 3, 50))
        events = [self._event() for _ in range(count)]
        body = b"[\n" + b",\n".join(events) + b"\n]"
        pick = chance.random()
        if pick < 0.02:
            body = b"[" + b",".join(events * 200) + b"]"
        elif pick < 0.03:
            body = b"x" * chance.choice((1 << 20, 3 << 20))
        elif pick < 0.04:
            body = b"[\n" + b",\n".join([b'{"specversion":"1.0","type":"Level"}'] * 60_000) + b"\n]"
        headers: dict[str, str] = {}
        if chance.random() < 0.6:
            self.seq += 1
            first = self.seq if chance.random() < 0.8 else chance.randrange(1, self.seq + 3)
            self.seq += count - 1
            headers = self._headers("Publish")
            who = "mallory" if chance.random() < 0.95 else chance.choice(("alice", "", "mallory.1"))
            headers["Situ-Key"] = f"{who}.{self.incarnation}.{first}"
            headers["Situ-Count"] = str(count if chance.random() < 0.9 else chance.choice((0, -1, 65_537, "x")))
        return Sent(headers, body)

    def _event(self) -> bytes:
        chance = self.chance
        pick = chance.random()
        if pick < 0.05:
            depth = chance.choice((60, 70, 900, 1100, 20_000))
            opening, closing = chance.choice(((b"[", b"]"), (b'{"a":', b"}")))
            inside = opening * depth + b"1" + closing * depth
            return b'{"specversion":"1.0","type":"Level","data":{"tank":"a","level":1.0,"x":%b}}' % inside
        if pick < 0.08:
            text = json.dumps('\\"' * 50_000).encode()
            return b'{"specversion":"1.0","type":"Level","data":{"tank":%b,"level":1.0}}' % text
        event: dict[str, Any] = {
            "specversion": "1.0",
            "type": chance.choice(("Level", "Level", "Level", *TYPES)),
            "data": {"tank": chance.choice(TEXTS), "level": chance.choice((1.0, 2.5, *NUMBERS))},
        }
        for name in (
            "id",
            "source",
            "time",
            "situad",
            "subject",
            "confidence",
            "situkey",
            "situtags",
            "datacontenttype",
        ):
            if chance.random() < 0.15:
                event[name] = self._value(1)
        if chance.random() < 0.1:
            event["data"] = self._value(4)
        return self._encoded(event)

    # ── bytes ──

    def _encoded(self, value: Any) -> bytes:
        return json.dumps(value, ensure_ascii=self.chance.random() < 0.5).encode("utf-8", "surrogatepass")

    def _mutated(self, sent: Sent) -> Sent:
        chance, body = self.chance, bytearray(sent.body)
        for _ in range(chance.randrange(1, 6)):
            at = chance.randrange(len(body) + 1)
            match chance.randrange(4):
                case 0:
                    body[at:at] = chance.randbytes(chance.randrange(1, 4))
                case 1:
                    del body[at : at + chance.randrange(1, 20)]
                case 2 if body:
                    body[min(at, len(body) - 1)] = chance.randrange(256)
                case _:
                    body[at:at] = body[: chance.randrange(200)]
        return Sent(dict(sent.headers), bytes(body[: 1 << 20]))
