"""Decoding: the intake of an engine against the reference decoders and against Arrow's JSON reader."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyarrow import json as arrow_json

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Variant, Verdict
from situ.event import accept, check_time, decode_batch
from situ.event.instants import microseconds
from situ.event.lines import decode_line, encode_row
from situ.event.message import join_lines
from situ.event.row import Origin, Row
from situ.lang.types.arrow_schema import arrow_schema
from situ.lang.types.lookup import EventData
from situ.lang.types.model import DOUBLE, LONG, POINT, STRING, Attribute, Struct
from situ.lang.types.table import Types
from situ.stages.decode import EventDecoder

MESSAGES, PER_MESSAGE = 40, 500
KINDS = (1, 500, 1_000)
ATTRIBUTES = (
    Attribute(name="tag", type=STRING),
    Attribute(name="room", type=STRING, optional=True),
    Attribute(name="at", type=POINT),
    Attribute(name="floor", type=LONG),
    Attribute(name="rssi", type=DOUBLE),
)
RECEIVED = datetime(2026, 11, 15, 10, tzinfo=UTC)
ORIGIN = Origin(client="reader-7", incarnation=1, seq=1, received=microseconds(RECEIVED), pos=65_536)
AHEAD = timedelta(minutes=5)


def _types(count: int) -> Types:
    structs = [Struct(f"Seen{number}", ATTRIBUTES) for number in range(count)]
    return Types(types={each.name: each for each in structs}, events=frozenset(each.name for each in structs))


def _event(number: int, type: str, dice: random.Random) -> bytes:
    time = (RECEIVED - timedelta(milliseconds=dice.randrange(10_000))).isoformat().replace("+00:00", "Z")
    data = {
        "tag": f"T{dice.randrange(1000)}",
        "room": "lab",
        "at": {"x": round(dice.uniform(0, 40), 2), "y": round(dice.uniform(0, 20), 2)},
        "floor": dice.randrange(5),
        "rssi": round(dice.uniform(-90, -30), 1),
    }
    event = {"specversion": "1.0", "id": f"x-{number}", "source": "reader-7", "type": type, "time": time, "data": data}
    return json.dumps(event, separators=(",", ":")).encode()


def _bodies(types: int, messages: int) -> list[bytes]:
    dice = random.Random(7)
    return [
        join_lines(_event(n, f"Seen{(message * PER_MESSAGE + n) % types}", dice) for n in range(PER_MESSAGE))
        for message in range(messages)
    ]


def _intake(types: int, messages: int) -> Callable[[], int]:
    bodies = _bodies(types, messages)
    intake = EventDecoder(_types(types), extra="drop", ahead=AHEAD, limit=1 << 20)

    def work() -> int:
        for body in bodies:
            assert type(intake.decode(body, ORIGIN)[-1]) is Row
        return messages * PER_MESSAGE

    return work


def _reference(messages: int) -> Callable[[], int]:
    bodies = _bodies(1, messages)
    data = EventData(_types(1))

    def work() -> int:
        for body in bodies:
            for event in decode_batch(body, marked=False):
                taken = accept(event, client="reader-7", received=RECEIVED).event  # type: ignore[arg-type]  # all are
                assert check_time(taken, RECEIVED, AHEAD) is None
                value = data.decode(taken.type, taken.data).value
                json.dumps(data.encode(taken.type, value), separators=(",", ":"), ensure_ascii=False)
        return len(bodies) * PER_MESSAGE

    return work


def _arrow(types: int, messages: int) -> Callable[[], int]:
    """One read for each type in a message, with its schema; nothing checked beyond JSON types, no text made."""
    struct = pa.struct(list(arrow_schema(Struct("Seen", ATTRIBUTES), _types(1))))
    schema = pa.schema([*(pa.field(name, pa.string()) for name in ("specversion", "id", "source", "type")),
                        pa.field("time", pa.timestamp("us", tz="UTC")), pa.field("data", struct)])  # fmt: skip
    options = arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore")
    reading = arrow_json.ReadOptions(use_threads=False)
    by_type: list[list[bytes]] = []
    for body in _bodies(types, messages):
        lines = body[2:-2].split(b",\n")
        groups: dict[bytes, list[bytes]] = {}
        for line in lines:
            groups.setdefault(line[line.index(b'"type":') :][:20], []).append(line)
        by_type.append([b"\n".join(group) for group in groups.values()])

    def work() -> int:
        rows = 0
        for groups in by_type:
            for group in groups:
                rows += arrow_json.read_json(io.BytesIO(group), reading, options).num_rows
        return rows

    return work


def _lines(messages: int) -> tuple[Callable[[], int], Callable[[], int]]:
    intake = EventDecoder(_types(1), extra="drop", ahead=AHEAD, limit=1 << 20)
    rows = [row for body in _bodies(1, messages) for row in intake.decode(body, ORIGIN) if isinstance(row, Row)]
    lines = [encode_row(row) for row in rows]

    def write() -> int:
        for row in rows:
            encode_row(row)
        return len(rows)

    def read() -> int:
        for line in lines:
            decode_line(line)
        return len(lines)

    return write, read


def _variants(bench: Bench) -> list[Variant]:
    messages = bench.some(MESSAGES, 2)
    write, read = _lines(messages)
    return [
        *(
            Variant(name=f"intake, {count:,} types", work=_intake(count, messages), point=float(count), series="intake")
            for count in KINDS
        ),
        Variant(name="reference decoders", work=_reference(bench.some(8, 1))),
        Variant(name="Arrow's reader, 1 type", work=_arrow(1, messages), point=1.0, series="Arrow's reader"),
        Variant(name="Arrow's reader, 500 types", work=_arrow(500, messages), point=500.0, series="Arrow's reader"),
        Variant(name="row to line", work=write),
        Variant(name="line to row", work=read),
    ]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    reference = medians["intake, 1 types"] / medians["reference decoders"]
    flat = medians["intake, 1 types"] / medians["intake, 1,000 types"]
    arrow = medians["intake, 500 types"] / medians["Arrow's reader, 500 types"]
    return [
        Verdict(what="intake against the reference decoders", value=reference, goal="≥ 5", met=reference >= 5),
        Verdict(what="time per event, 1,000 types against 1", value=flat, goal="≤ 1.5", met=flat <= 1.5),
        Verdict(what="intake against Arrow's reader, 500 types", value=arrow, goal="≥ 2", met=arrow >= 2),
    ]


SCENARIOS = [
    Scenario(
        name="decode",
        title="Decoding what clients send",
        unit="events/s",
        about=f"{MESSAGES * PER_MESSAGE:,} events of about 190 bytes in messages of {PER_MESSAGE}, one core. The "
        "intake checks envelope and values against the declared type and writes the canonical text of the data; so do "
        "the reference decoders. Arrow's reader takes one read for each type in a message, checks JSON types only and "
        "writes no text.",
        variants=_variants,
        judge=_verdicts,
        repetitions=5,
        plot=Plot(x="event types", y="events/s"),
    )
]
