"""The query of one client in real-time mode: records of its topics become records of its subscribers' topics.

Topics are read once for all subscriptions. A record becomes a row, the row an array with a record for each subscription
that wants it, and the array as many rows. `record_frame` works on any DataFrame with the columns that Spark's connector
for Kafka gives, so that it can be tried as a batch.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from situ.stages.plain_records import PARSED
from situ.stages.real_time import DATA, EVENT, RealTimeClient

_SENT, _RECORDS = "sent", "_situ_records"
_NOTHING: Mapping[str, str] = MappingProxyType({})


def record_frame(frame: DataFrame, client: RealTimeClient, since: Mapping[str, str] = _NOTHING) -> DataFrame:
    """The records ``topic``, ``key``, ``value`` and ``headers`` that subscriptions get of records of a client.

    ``since``: what later scopes ask besides, by subscription.
    """
    plain, inward = client.plain, client.inward
    # Filters first: what comes behind them is only made of what is left.
    frame = frame.where(plain.condition)
    # Here, since Spark puts nothing together across them: what follows is compiled as where nothing is sealed.
    for column in client.seal:
        frame = frame.selectExpr("*", column)
    frame = frame.selectExpr("*", f"{plain.parsed} AS {PARSED}")
    frame = frame.selectExpr("*", f"{plain.data} AS {DATA}").where(f"NOT {plain.fails}")
    frame = frame.selectExpr("*", f"{client.event} AS {EVENT}")
    if inward.fails != "FALSE":
        frame = frame.where(f"NOT coalesce({inward.fails}, TRUE)")
    sent = [f"{DATA} AS {_SENT}"] if any(each.reads_sent for each in client.subscriptions) else []
    others = f"* EXCEPT ({DATA})"
    frame = frame.selectExpr(others, *sent, f"{inward.value} AS {DATA}")
    made, records = [], []
    for each in client.subscriptions:
        asked = [each.wanted, each.visible, since.get(each.id, "TRUE")]
        if each.out.fails != "FALSE":
            asked.append(f"NOT coalesce({each.out.fails}, TRUE)")
        fits = " AND ".join(text for text in asked if text != "TRUE")
        made.append(f"CASE WHEN {fits} THEN {each.out.value} END AS {each.made}")
        records.append(f"CASE WHEN {each.made} IS NOT NULL THEN {each.record} END")
    frame = frame.selectExpr("*", *made)
    # A column of its own: Java's methods are too small for what a generator would put into one.
    frame = frame.selectExpr(f"filter(array({', '.join(records)}), each -> each IS NOT NULL) AS {_RECORDS}")
    return frame.selectExpr(f"inline({_RECORDS})")


def start_query(
    session: SparkSession,
    client: RealTimeClient,
    starts: Mapping[str, int],
    *,
    since: Mapping[str, str],
    seal: Mapping[str, str],
    name: str,
    checkpoint: str,
    kafka: Mapping[str, str],
    batch: str,
) -> StreamingQuery:
    """Begin or go on.

    ``starts``: ``topic partition`` → the first offset; ``since`` as :func:`record_frame` has it; ``seal``: properties
    of Java by which records are sealed; ``kafka``: options of Java's client.
    """
    set_properties(session, seal)
    assigned: dict[str, list[int]] = defaultdict(list)
    offsets: dict[str, dict[str, int]] = defaultdict(dict)
    for place, offset in starts.items():
        topic, _, partition = place.rpartition(" ")
        assigned[topic].append(int(partition))
        offsets[topic][partition] = offset
    reader = session.readStream.format("kafka").options(**_named(kafka))
    stream = (
        reader.option("assign", json.dumps(assigned))
        .option("startingOffsets", json.dumps(offsets))
        .option("failOnDataLoss", "false")
        .option("kafka.isolation.level", "read_committed")
        .load()
    )
    writer = (
        record_frame(stream, client, since)
        .writeStream.format("kafka")
        .options(**_named(kafka))
        .option("kafka.acks", "all")
        .option("kafka.linger.ms", "0")
        .option("checkpointLocation", checkpoint)
        .queryName(name)
        .outputMode("update")
    )
    # Spark's annotations do not know this trigger yet.
    started: StreamingQuery = writer.trigger(realTime=batch).start()  # type: ignore[call-overload]
    return started


def set_properties(session: SparkSession, values: Mapping[str, str]) -> None:
    """Properties of the Java process."""
    assert session._jvm is not None
    for name, value in values.items():
        session._jvm.java.lang.System.setProperty(name, value)


def _named(kafka: Mapping[str, str]) -> dict[str, str]:
    return {f"kafka.{name}": value for name, value in kafka.items()}
