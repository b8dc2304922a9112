"""Generated types, payloads and messages: the fast intake gives what the reference decoders give, in every place."""

from __future__ import annotations

import base64
import json
import random
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from situ.event import CloudEvent, JsonLimits, RefusedEvent, accept, check_time, decode_batch, decode_event
from situ.event.data_reader import data_reader, row_reader
from situ.event.instants import instant_at, microseconds
from situ.event.lines import decode_line, encode_row, encode_rows
from situ.event.row import BadRow, Origin, Row
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.types.lookup import EventData
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    DATE,
    DOUBLE,
    DURATION,
    INT,
    LONG,
    POINT,
    STRING,
    TIMESTAMP,
    Attribute,
    Decimal,
    ListOf,
    Named,
    Struct,
    Type,
    combine,
    plain,
)
from situ.lang.types.table import Types
from situ.stages.decode import EventDecoder
from tests.encoded_events import to_attributes
from tests.oracles.arrow_rows import arrow_to_rows, rows_to_arrow
from tests.volume import seeds

SINGLE: tuple[Type, ...] = (
    BOOLEAN,
    INT,
    LONG,
    DOUBLE,
    STRING,
    BYTES,
    DATE,
    TIMESTAMP,
    DURATION,
    Decimal(6, 2),
    Named("TagId", STRING),
    Named("Metres", DOUBLE),
)
RECEIVED = microseconds(datetime(2026, 11, 15, 10, tzinfo=UTC))
ORIGIN = Origin(client="reader-7", incarnation=3, seq=41, received=RECEIVED, pos=7 * 65_536)
AHEAD = timedelta(minutes=5)
LIMIT = 3000
TEXTS = ("", "a", "T-17", 'say "no"', "a\\b", "é€😀", "\u2028", "{", "}:,[", "null", "x\ny", "\x7f", '"', '""', ":null")


class Generator:
    """Types, payloads and messages, by seed; some in order, some nearly, some not at all."""

    def __init__(self, seed: int) -> None:
        self.dice = random.Random(seed)
        self.trouble = self.dice.choice((0.05, 1.0))

    def types(self) -> Types:
        structs: list[Struct] = [POINT]
        for level in range(2):  # supertypes are of the same level, attributes of lower ones: no type contains itself
            same: list[Struct] = []
            for number in range(self.dice.randint(1, 3)):
                supers = tuple(self.dice.sample(same, self.dice.randint(0, min(1, len(same)))))
                own = [self.attribute(f"a{level}_{number}_{i}", structs) for i in range(self.dice.randint(0, 4))]
                same.append(Struct(f"T{level}{number}", combine(supers, own), supers))
            structs += same
        named = {each.name: each for each in structs}
        return Types(types=named, events=frozenset(each.name for each in structs[1:]))

    def attribute(self, name: str, structs: list[Struct]) -> Attribute:
        dice = self.dice
        type: Type = dice.choice(SINGLE if dice.random() < 0.8 else structs)
        if dice.random() < 0.15:
            type = ListOf(type)
        defaults: dict[Type, Any] = {INT: 7, STRING: "none", DOUBLE: 0.5}
        default = defaults.get(plain(type)) if dice.random() < 0.3 else None
        name = dice.choice((name, name, f"class_{name}", f"_{name}"))
        return Attribute(name=name, type=type, optional=dice.random() < 0.3, default=default)

    def value(self, type: Type, types: Types) -> Any:
        dice, bare = self.dice, plain(type)
        if dice.random() < 0.015 * self.trouble:
            return dice.choice((None, True, 1, 1.5, "x", [], {}, 2**70, "2026-01-01"))
        if isinstance(bare, Struct):
            chosen = dice.choice(types.subtypes(bare)) if dice.random() < 0.1 * self.trouble else bare
            assert isinstance(chosen, Struct)
            result = {each.name: self.value(each.type, types) for each in chosen.attributes if self.present(each)}
            if chosen is not bare:
                result = {"$type": chosen.name, **result}
            if dice.random() < 0.03 * self.trouble:
                result[dice.choice(("extra", "$type", "$extra", "id"))] = dice.choice((1, "x", None, {"y": 2}, [1]))
            return result
        if isinstance(bare, ListOf):
            return [None if dice.random() < 0.1 else self.value(bare.element, types) for _ in range(dice.randrange(3))]
        if isinstance(bare, Decimal):
            return self.pick(4, ("12.5", "-0.00", "0", "9999.99", 12, 12.5, "1e2", "00.5", "10000", "1.005"))
        choices: dict[Type, tuple[Any, ...]] = {
            BOOLEAN: (True, False),
            INT: (0, -1, 2**31 - 1, -(2**31), 2**31, 5.0)
            if dice.random() < 0.2 * self.trouble
            else (dice.randrange(1000),),
            LONG: (0, 2**63 - 1, -(2**63), 2**63, 1e3)
            if dice.random() < 0.2 * self.trouble
            else (dice.randrange(10**12),),
            DOUBLE: (0.0, -0.0, 1, -0, 1e300, 5e-324, 1e16, 123456789012345680.0, 2**70, -0.05, dice.uniform(-9, 9)),
            STRING: TEXTS,
            BYTES: (base64.b64encode(dice.randbytes(dice.randrange(6))).decode(), "YQ", "!!"),
            DATE: ("2026-11-15", "2024-02-29", "2023-02-29", "0001-01-01", "26-1-1"),
            TIMESTAMP: self.instants(),
            DURATION: ("PT5S", "PT0.5S", "P1D", "PT90M", "-PT1S", "P1Y", "PT1,5S"),
        }
        plain_ones = {STRING: 3, BYTES: 1, DATE: 2, TIMESTAMP: 9, DURATION: 5}
        return self.pick(plain_ones.get(bare, 99), choices[bare])

    def pick(self, plain: int, values: tuple[Any, ...]) -> Any:
        """One of the values, of which the first so many are in order."""
        return self.dice.choice(values if self.dice.random() < self.trouble else values[:plain])

    def instants(self) -> tuple[str, ...]:
        usual = (datetime(2026, 11, 15, 9, tzinfo=UTC) + timedelta(milliseconds=self.dice.randrange(10**6))).isoformat()
        return (
            *(usual.replace("+00:00", "Z"),) * 6,
            "2026-11-15T09:00:00.123Z",
            "2026-11-15T09:00:00.000Z",
            "2026-11-15T09:00:00.5Z",
            "2026-11-15T11:30:00+02:00",
            "2026-11-15t09:00:00z",
            "2026-11-15 09:00:00Z",
            "2026-11-15 09:00:00.25Z",
            "2026-11-15T09:00:00.1234567Z",
            "2026-11-15T09:00:60Z",
            "2026-02-30T09:00:00Z",
            "2026-11-15T09:00:00",
            "2026-11-15T10:05:00Z",
            "2026-11-15T10:05:00.000001Z",
            "9999-12-31T23:59:59Z",
            "2026-11-15T09:00:00.\u0661\u0662Z",
            "",
        )

    def present(self, attribute: Attribute) -> bool:
        return self.dice.random() > (
            0.4 if attribute.optional or attribute.default is not None else 0.01 * self.trouble
        )

    def event(self, types: Types) -> dict[str, Any]:
        dice = self.dice
        type = dice.choice(sorted(types.events))
        struct = types.event(type)
        assert struct is not None
        event: dict[str, Any] = {
            "specversion": "1.0",
            "id": f"x-{dice.randrange(99)}",
            "source": "reader-7",
            "type": type,
        }
        for name, chance, values in (
            ("time", 0.7, self.instants()),
            ("id", 0.1, (None, "", "a b", "é", "\u2028", 'a"b', 5)),
            ("source", 0.3, ("reader-7/x", "other", "reader-70", None, "", "a b", "reader-7/a b")),
            (
                "confidence",
                0.1,
                (97, 97.5, "97.5", "97", "97 %", 101, "x", None, True, "1.", ".5", "0097", "5e1", -0.0),
            ),
            ("situad", 0.2, ("reader-7/seen", "", None, 7, "a\x00")),
            ("subject", 0.1, ("room", "", None, "a b", 5, 'q"')),
            ("datacontenttype", 0.1, ("application/json", "text/plain", "application/json; charset=utf-8", None)),
            ("dataschema", 0.05, ("urn:x", "a b")),
            ("traceparent", 0.1, ("00-ab-cd-01", "", 5, None)),
            ("situpos", 0.03, ("5",)),
            ("other", 0.05, ("x", 5, True, None, 1.5, {})),
            ("specversion", 0.02, ("0.3", None, 1.0)),
            ("type", 0.02, ("Nothing", None, "a b")),
        ):
            if (name == "time" or dice.random() < self.trouble) and dice.random() < chance:
                event[name] = self.pick(9, values)
        for name in ("id", "source"):
            if dice.random() < 0.1:
                event.pop(name, None)
        if dice.random() < 0.97:
            event["data"] = self.value(struct, types)
        if dice.random() < 0.05:
            items = list(event.items())
            dice.shuffle(items)
            event = dict(items)
        return event

    def text(self, event: dict[str, Any]) -> str:
        dice = self.dice
        escaped = dice.random() < 0.2
        separators = dice.choice(((",", ":"), (",", ":"), (", ", ": ")))
        text = json.dumps(event, ensure_ascii=escaped, separators=separators)
        if dice.random() < 0.04 * self.trouble:  # a key twice
            at = text.index("{", dice.randrange(2) * (text.find('"data"') + 1)) if "{" in text[1:] else 0
            text = (
                text[: at + 1] + dice.choice(('"id":"y",', '"a0_0_0":1,', '"x":0,', '"\\u0069d":"z",')) + text[at + 1 :]
            )
        if dice.random() < 0.05 * self.trouble:
            at = dice.randrange(len(text))
            damage = ("", '"', "{", "}", ",", "\\u0022", '\\"', "NaN", "\\ud800", "\x00", "-0", "1e999", ":null", "]")
            text = text[:at] + dice.choice(damage) + text[at + dice.randrange(2) :]
        return text

    def body(self, types: Types, events: int) -> bytes:
        dice = self.dice
        texts = [self.text(self.event(types)) for _ in range(events)]
        form = dice.random()
        if form < 0.8:
            body = "[\n" + ",\n".join(texts) + "\n]"
        elif form < 0.9:
            body = "[" + ", ".join(texts) + "]"
        else:
            body = " [\n" + "\n,\n".join(texts) + "]\n"
        raw = body.encode("utf-8", "replace")
        if dice.random() < 0.02:
            at = dice.randrange(len(raw))
            raw = raw[:at] + dice.choice((b"\xff", b"\n", b",\n", b"")) + raw[at + 1 :]
        return raw


def reference(types: Types, extra: Any, body: bytes) -> list[Any]:
    """Place by place: the event as the obvious decoders take it in, with its data as a JSON value; or the codes."""
    data = EventData(types, extra)
    received = instant_at(RECEIVED)
    result: list[Any] = []
    for place, each in enumerate(read(body)):
        event = each if isinstance(each, CloudEvent) else filled(each, place)
        if isinstance(event, RefusedEvent):
            result.append([problem.code.code for problem in event.problems])
            continue
        taken = accept(event, client=ORIGIN.client, received=received).event
        late = check_time(taken, received, AHEAD)
        decoded = data.decode(taken.type, taken.data)
        problems = [*([late] if late else []), *decoded.problems]
        if problems:
            result.append([problem.code.code for problem in problems])
        else:
            result.append((place, taken, data.encode(taken.type, decoded.value)))
    return result


def read(body: bytes) -> list[CloudEvent | RefusedEvent]:
    """A byte that is no UTF-8 spoils its own line only, unlike in the batch decoder, which reads texts."""
    limits = JsonLimits(event=LIMIT)
    framed = body.startswith(b"[\n{") and body.endswith(b"}\n]")
    if not framed or body.decode("utf-8", "replace").encode() == body:
        return list(decode_batch(body, limits=limits, marked=False))
    result: list[CloudEvent | RefusedEvent] = []
    for line in body[2:-2].split(b",\n"):
        try:
            result.append(decode_event(line, limits=limits, marked=False))
        except SituError as error:
            result.append(RefusedEvent(line, error.problems))
    return result


def filled(refused: RefusedEvent, place: int) -> CloudEvent | RefusedEvent:
    """An event that lacks nothing but what the key says as well."""
    if any(problem.code.code not in ("E702", "E706") for problem in refused.problems):
        return refused
    attributes = json.loads(refused.original)
    if type(attributes) is not dict:
        return refused
    for name, value in (("id", f"3-{41 + place}"), ("source", "reader-7")):
        if attributes.get(name) is None:
            attributes[name] = value
    try:
        return decode_event(json.dumps(attributes), marked=False)
    except SituError as error:
        return RefusedEvent(refused.original, error.problems)


def compare(found: list[Row | BadRow], expected: list[Any], body: bytes) -> None:
    assert len(found) == len(expected), body
    for place, (row, wanted) in enumerate(zip(found, expected, strict=True)):
        assert (row.pos, row.seq) == (ORIGIN.pos + place, ORIGIN.seq + place)
        if isinstance(wanted, list):
            assert isinstance(row, BadRow), (row, wanted, body)
            codes = [code for code, *_ in row.errors]
            assert codes == ["R007" if code == "E704" else code for code in wanted], (row, wanted, body)
            continue
        _, event, data = wanted
        assert isinstance(row, Row), (row, wanted, body)
        assert (row.id, row.source, row.type) == (event.id, event.source, event.type)
        assert row.time == microseconds(event.time)
        assert repr(row.confidence) == repr(event.confidence)
        assert row.ad == (event.marks.ad or "")
        own = {"specversion", "id", "source", "type", "time", "confidence", "data", "situad", "siturecv"}
        ext = {name: value for name, value in to_attributes(event).items() if name not in own}
        assert json.loads("{" + row.ext + "}") == ext
        # repr: 1 and 1.0, 0.0 and -0.0 are different, and so is another order of attributes
        assert repr(json.loads(row.data)) == repr(json.loads(json.dumps(data))), (row, body)


@seeds(range(40), *(range(start, start + 60) for start in range(0, 240, 60)))
def test_intake_is_the_reference(seeds: range) -> None:
    cases = fast = bare = 0
    for seed in seeds:
        make = Generator(seed)
        types = make.types()
        extra = make.dice.choice(("drop", "drop", "keep", "reject"))
        intake = EventDecoder(types, extra=extra, ahead=AHEAD, limit=LIMIT)  # type: ignore[arg-type]  # one of Extra
        for _ in range(30):
            body = make.body(types, make.dice.randint(1, 6))
            found = intake.decode(body, ORIGIN)
            compare(found, reference(types, extra, body), body)
            fast += intake._fast(body, ORIGIN) is not None
            cases += len(found)
            unwritten = intake.decode(body, ORIGIN, lambda type: True)
            bare += sum(isinstance(row, Row) and not row.data for row in unwritten)
            assert [_written(row) for row in unwritten] == found
    assert cases >= 80 * len(seeds)
    assert fast > 2 * len(seeds)  # whole messages that took the fast way
    assert bare > 20  # events whose text could be left out


def _written(row: Row | BadRow) -> Row | BadRow:
    if isinstance(row, Row):
        assert row.value is None or not row.data or msgspec.json.encode(row.value) == row.data
        row.data = row.data or msgspec.json.encode(row.value)
    return row


@seeds(range(1000, 1030), range(1000, 1200))
def test_each_event_alone_is_the_same_fast_and_slow(seeds: range) -> None:
    """What the fast way accepts the slow way accepts, with equal rows to the last byte."""
    accepted = 0
    for seed in seeds:
        make = Generator(seed)
        types = make.types()
        intake = EventDecoder(types, extra="drop", ahead=AHEAD, limit=LIMIT)
        for _ in range(60):
            line = make.text(make.event(types)).encode("utf-8", "replace")
            judged = intake._judge(line, ORIGIN, 2)
            found = intake._event(line, ORIGIN, 2)
            assert found == judged, line
            accepted += isinstance(found, Row)
    assert accepted > 15 * len(seeds)


@seeds(range(20), range(60))
def test_filters_read_the_same_from_structs_and_from_texts(seeds: range) -> None:
    at_hand = 0
    for seed in seeds:
        make = Generator(seed)
        types = make.types()
        intake = EventDecoder(types, extra="keep", ahead=AHEAD, limit=LIMIT)
        for row in intake.decode(make.body(types, 30), ORIGIN):
            if not isinstance(row, Row):
                continue
            type = types.event(row.type)
            assert type is not None
            every = [each.name for each in type.attributes]
            for names in (None, [name for name in every if make.dice.random() < 0.3]):
                expected = data_reader(type, names, types)(row.data)
                assert repr(sorted(row_reader(type, names, types)(row).items())) == repr(sorted(expected.items())), row
                without_text = replace(row, data=b"")
                with suppress(msgspec.DecodeError):
                    at_hand += bool(row_reader(type, names, types)(without_text))
    assert at_hand > 2 * len(seeds)


def test_lines_and_arrow_read_back() -> None:
    rows: list[Row] = []
    for seed in range(40):
        make = Generator(seed)
        types = make.types()
        intake = EventDecoder(types, extra="keep", ahead=AHEAD, limit=LIMIT)
        rows += [each for each in intake.decode(make.body(types, 30), ORIGIN) if isinstance(each, Row)]
    assert len(rows) > 300
    assert any(row.ext for row in rows)
    assert arrow_to_rows(rows_to_arrow(rows)) == rows
    for number, row in enumerate(rows):
        if number % 3 == 0:
            row.context = f"us@{number % 2}"
    for row, line in zip(rows, encode_rows(rows), strict=True):
        assert line == encode_row(row)
        assert b"\n" not in line
        assert decode_line(line) == row
        event = decode_event(line)
        assert (event.id, event.source, event.type, event.marks.key) == (row.id, row.source, row.type, row.key)
        assert event.data == msgspec.json.decode(row.data)
