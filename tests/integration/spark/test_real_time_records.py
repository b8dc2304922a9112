"""Real-time deliveries as a batch: Spark SQL alone makes of plain records what engines make of them, byte for byte."""

from __future__ import annotations

import math
import random
import struct
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from situ.kafka.formats import KEY
from situ.stages.plain_records import double_text, string_text
from tests.real_time import RECORDS, SCHEMA, Delivered, OrdinaryWay, as_delivered, project, rows
from tests.volume import cases

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@cases(600, 20_000)
def test_what_is_plain_is_delivered_as_by_the_queue(spark: SparkSession, tmp_path: Path, cases: int) -> None:
    from situ.spark.real_time.query import record_frame

    way = OrdinaryWay(project(tmp_path))
    topics = {each.kafka.topic: id for id, each in way.plan.deployment.subscriptions.items() if each.kafka is not None}
    assert set(way.real_time.clients) == set(RECORDS)
    for client, make in RECORDS.items():
        records = make(7, cases)
        made = way.real_time.clients[client]
        frame = spark.createDataFrame(rows(records), SCHEMA).selectExpr("*", "timestamp_millis(millis) AS timestamp")
        # What is plain is plain to both: only then each record is delivered by one of the two ways.
        said = [row.plain for row in frame.selectExpr(f"{made.plain.condition} AS plain").collect()]
        taken = [way.is_plain(client, each) for each in records]
        late = [each for each, java, python in zip(records, said, taken, strict=True) if java and not python]
        assert not [each for each, java, python in zip(records, said, taken, strict=True) if python and not java]
        assert not late or client != "probes"  # what says no time of its own is never late
        expected = [
            one for each, plain in zip(records, taken, strict=True) if plain for one in way.deliver(client, each)
        ]
        found = as_delivered(record_frame(frame, made).collect(), topics)
        assert _sorted(found) == _sorted(expected)
        assert cases * 0.15 < sum(taken) < cases * 0.9
        assert len(expected) > cases * 0.1
        assert {one.subscription for one in found} == {each.id for each in made.subscriptions}


def _sorted(some: list[Delivered]) -> list[tuple[str, str, Delivered]]:
    return sorted(
        ((each.subscription, dict(each.record.headers)[KEY].decode(), each) for each in some), key=lambda one: one[:2]
    )


@cases(4000, 200_000)
def test_numbers_and_texts_are_written_as_engines_do(spark: SparkSession, cases: int) -> None:
    dice = random.Random(3)
    numbers = [
        0.0,
        -0.0,
        1e15,
        1e16,
        1e-5,
        1e-6,
        9.999999999999999e15,
        5e-324,
        1.7976931348623157e308,
        2e23,
        1e23,
        8.41e21,
    ]
    while len(numbers) < cases:
        found = struct.unpack(">d", dice.randbytes(8))[0]
        numbers += [each for each in (found, dice.uniform(-1e3, 1e3), dice.uniform(0, 1) / 3) if math.isfinite(each)]
    texts = ["", "a", '"', "\\", *map(chr, range(0x20)), "\x7f\u2028😀", 'a"\x1f\\']
    frame = spark.createDataFrame(
        [(each, texts[place % len(texts)]) for place, each in enumerate(numbers)], "n DOUBLE, t STRING"
    )
    made = frame.selectExpr("n", "t", f"{double_text('n')} AS d", f"{string_text('t')} AS s").collect()
    assert [row.s.encode() for row in made] == [msgspec.json.encode(row.t) for row in made]
    wrong = [(row.n, row.d) for row in made if row.d.encode() != msgspec.json.encode(row.n)]
    # Java before 19 may find another one of several texts of 17 digits, and is less exact below the normal numbers.
    assert [
        (number, written)
        for number, written in wrong
        if float(written) != number or (len(written) < 17 and abs(number) > sys.float_info.min)
    ] == []
    assert len(wrong) < cases / 500
