"""From topic to topic: subscriptions of one run, one in real time and one by its queue, at the same time."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from benchmarks.bench import Bench
from benchmarks.edge import latencies
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, Pipe, exchange, situ_run
from tests.kafka_server import kafka_server, spark_connector

RATES = (500, 2_000)
REAL_TIME, QUEUED = "real time", "micro-batches"
_OUT = {REAL_TIME: "out.real-time", QUEUED: "out.queued"}
_IN = "readings"
_ALL = 0.999
_SILENT = 20.0
_FILES = {
    "types/t.yaml": """
version: 1
events:
  Reading: {sensor: string, turn: long, number: long, sent: long, value: double °C, text: string}
""",
    "contexts/us.yaml": """
version: 1
context: us
events:
  Heat: {probe: string, turn: long, number: long, sent: long, value: double °F, text: string}
maps:
  - out: Reading -> Heat
    attributes: {probe: sensor}
""",
    "clients/c.yaml": f"""
version: 1
clients:
  meters:
    kafka: {{topics: [{_IN}], type: Reading, key: sensor}}
    advertisements:
      readings: {{type: Reading}}
  desk:
    context: us
    subscriptions:
      fast: {{types: [Heat], where: value > 0 °F, kafka: {{topic: {_OUT[REAL_TIME]}}}, delivery: real-time}}
      slow: {{types: [Heat], where: value > 0 °F, kafka: {{topic: {_OUT[QUEUED]}}}}}
""",
}


def write_records(pipe: Pipe, *, servers: str, turn: int, count: int, rate: float) -> None:
    """Write records of about 200 bytes at this rate; they say when they were written."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "log_level": 2})
    pipe.send("ready")
    pipe.recv()
    began = time.monotonic()
    for number in range(count):
        while (early := began + number / rate - time.monotonic()) > 0:
            time.sleep(min(early, 0.0005))
        record = {"turn": turn, "number": number, "sent": time.monotonic_ns(), "value": 20.5, "text": "x" * 80}
        producer.produce(_IN, json.dumps(record), f"s{number % 100}", partition=number % 2)
        producer.poll(0)
    producer.flush(60)
    pipe.send({"begin": began, "end": time.monotonic()})


def read_records(pipe: Pipe, *, servers: str, topic: str, turn: int, count: int) -> None:
    """Read these records from a topic's end on, as transactions commit them."""
    from confluent_kafka import Consumer, TopicPartition

    options = {"isolation.level": "read_committed", "fetch.wait.max.ms": 5, "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, "group.id": f"bench-{turn}", "log_level": 2, **options})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), 30)
    consumer.assign([TopicPartition(topic, 0, end)])
    consumer.poll(0.1)
    pipe.send("ready")
    ages: dict[int, float] = {}
    heard = time.monotonic()
    while len(ages) < count and time.monotonic() - heard < _SILENT:
        for message in consumer.consume(500, timeout=0.01):
            now = time.monotonic_ns()
            found = json.loads(message.value())
            if found["turn"] == turn:
                heard = time.monotonic()
                ages.setdefault(found["number"], (now - found["sent"]) / 1e6)
    consumer.close()
    pipe.send({"end": time.monotonic(), "ages": list(ages.values())})


def _name(way: str, rate: int) -> str:
    return f"{way}, {rate:,} events/s"


def _variants(bench: Bench) -> list[Variant]:
    broker = bench.open(kafka_server(bench.folder("kafka")))
    broker.create(_IN, partitions=2)
    broker.create(*_OUT.values())
    settings = f"version: 1\nname: bench\nkafka: {{servers: '{broker.servers}'}}\n"
    settings += f"spark: {{connector: '{spark_connector()}'}}\n"
    run = bench.open(situ_run(bench.folder("plant"), {"situ.yaml": settings, **_FILES}, engine="spark"))
    run.wait_for(lambda figures: any(each["delivers"] for each in figures.get("real_time", ())))

    def exchanged(way: str, rate: int, seconds: int, *, whole: bool = True) -> Taken:
        turn, count = bench.number(), rate * seconds
        common: dict[str, Any] = {"servers": broker.servers, "turn": turn, "count": count}
        received, _ = exchange(
            Client(read_records, topic=_OUT[way], **common), Client(write_records, rate=float(rate), **common)
        )
        assert not whole or len(received["ages"]) >= count * _ALL, f"{len(received['ages'])} of {count} came"
        return latencies(received["ages"] or [0.0])

    def work(way: str, rate: int) -> Callable[[], Taken]:
        return lambda: exchanged(way, rate, bench.some(20, 2))

    exchanged(REAL_TIME, bench.some(RATES[-1], 50), bench.some(20, 5), whole=False)  # Java compiles what is used most
    rates = RATES[:1] if bench.quick else RATES
    return [Variant(name=_name(way, rate), work=work(way, rate)) for rate in rates for way in _OUT]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    found = []
    for rate in (each for each in RATES if _name(REAL_TIME, each) in medians):
        fast, slow = medians[_name(REAL_TIME, rate)], medians[_name(QUEUED, rate)]
        found += [
            Verdict(what=f"p99 of {_name(REAL_TIME, rate)}, ms", value=fast, goal="< 100", met=fast < 100),
            Verdict(
                what=f"p99 of micro-batches over that of real time, {rate:,} events/s",
                value=slow / fast,
                goal="≥ 5",
                met=slow / fast >= 5,
            ),
        ]
    return found


SCENARIOS = [
    Scenario(
        name="kafka-latency",
        title="Latency from topic to topic: in real time and in micro-batches",
        unit="ms (p99)",
        about="Records of about 200 bytes are written to a topic of Kafka; two subscriptions of one run on Spark, in "
        "other terms than the records, are delivered to a topic each, one with `delivery: real-time`. Both get all "
        "events at the same time. The time from before a record is written until it is read from the topic of the "
        "subscription, as committed. Figures are p99; a turn is 20 s.",
        variants=_variants,
        judge=_verdicts,
        repetitions=3,
        warm=False,
    ),
]
