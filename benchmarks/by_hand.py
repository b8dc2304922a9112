"""The job of the pipeline, written by hand for three subscriptions: what one would do with Spark alone.

Read, checked, matched, written and put together by Spark's own functions; nothing of it runs in Python. It does what
Situ does for these subscriptions: events that lack what their type has become dead letters, all others go to the root
log and to those who want them, each client's in their order, under ids that are the same when a batch is repeated. It
cannot do anything else: types, filters, groups and units are in the code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from situ.event.message import COUNT, ID
from situ.spark.source import BusSource

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from situ.bus.address import Address

EVENT = """
    specversion STRING, id STRING, source STRING, type STRING, time STRING, situad STRING,
    data STRUCT<
        reader: STRING, tag: STRING, cartesian: STRUCT<dx: DOUBLE, dy: DOUBLE>,
        camera: STRING, face: STRING, polar: STRUCT<r: DOUBLE, theta: DOUBLE>
    >
"""
WHOLE = """
    e.specversion = '1.0' AND e.id IS NOT NULL AND e.source IS NOT NULL AND (
        (e.type = 'TagSeen' AND e.data.reader IS NOT NULL AND e.data.tag IS NOT NULL
         AND e.data.cartesian.dx IS NOT NULL AND e.data.cartesian.dy IS NOT NULL)
        OR (e.type = 'FaceSeen' AND e.data.camera IS NOT NULL AND e.data.face IS NOT NULL
         AND e.data.polar.r IS NOT NULL AND e.data.polar.theta IS NOT NULL))
"""
WANTED = {
    "desk/arrivals": "e.type = 'TagSeen' AND e.data.reader = 'reader-1' AND e.data.tag LIKE 'T-1%'",
    "security/tags-at-racks": "e.type = 'TagSeen' AND e.data.reader = 'reader-7' "
    "AND e.data.cartesian.dx BETWEEN 0D AND 200D",
    "security/faces-close": "e.type = 'FaceSeen' AND e.data.polar.r < 9.84251968503937D",
}
LINE = """
    to_json(struct(
        e.specversion, e.id, e.source, e.type, coalesce(e.time, string(timestamp_micros(recv))) AS time,
        concat_ws('.', client, incarnation, seq) AS situkey, e.situad,
        date_format(timestamp_micros(recv), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'") AS siturecv,
        string(pos) AS situpos, e.data))
"""
ROOT, DEAD = "root", "dead"
_TOGETHER = 8
"""Incoming messages whose deliveries to one group go out together: filters let about a tenth of the events through."""


def messages_of(frame: DataFrame, groups: dict[str, str]) -> DataFrame:
    """What the sink publishes for these events; ``groups`` are the delivery groups of the subscriptions."""
    read = frame.withColumn("e", sf.from_json("event", EVENT)).withColumn("whole", sf.expr(f"coalesce({WHOLE}, false)"))
    targets = sf.when(sf.col("whole"), sf.array_compact(sf.array(sf.lit(ROOT), *_wanted(groups)))).otherwise(
        sf.array(sf.lit(DEAD))
    )
    lines = read.select(
        "client",
        "incarnation",
        "seq",
        "pos",
        sf.when(sf.col("whole"), sf.expr(LINE)).otherwise(sf.col("event")).alias("line"),
        sf.explode(targets).alias("target"),
    ).withColumn("block", sf.expr(f"shiftright(pos, 16) div if(target = '{ROOT}', 1, {_TOGETHER})"))
    together = lines.groupBy("client", "target", "block").agg(
        sf.min("incarnation").alias("incarnation"),
        sf.min("seq").alias("seq"),
        sf.count("*").alias("count"),
        sf.array_sort(sf.collect_list(sf.struct("pos", "line"))).alias("lines"),
    )
    # Each client's messages in their order: they are few by now.
    ordered = together.repartition("client").sortWithinPartitions("block")
    return ordered.select(subject().alias("subject"), headers().alias("headers"), body().alias("body"))


def publish(frame: DataFrame, address: Address, groups: dict[str, str]) -> None:
    messages_of(frame, groups).write.format(BusSource.name()).option("address", address.to_json()).mode("append").save()


def _wanted(groups: dict[str, str]) -> list[Column]:
    return [sf.when(sf.expr(where), sf.lit(groups[name])) for name, where in WANTED.items()]


def subject() -> Column:
    return (
        sf.when(sf.col("target") == ROOT, sf.lit("situ.main.root.r1._"))
        .when(sf.col("target") == DEAD, sf.concat(sf.lit("situ.main.dead."), sf.col("client")))
        .otherwise(sf.concat(sf.lit("situ.main.out."), sf.col("target")))
    )


def headers() -> Column:
    key = sf.concat_ws(".", "client", "incarnation", "seq")
    id = sf.concat(sf.col("target"), sf.lit("+"), key, sf.lit("+"), sf.col("count"))
    return sf.to_json(sf.create_map(sf.lit(COUNT), sf.col("count").cast("string"), sf.lit(ID), id))


def body() -> Column:
    lines = sf.transform("lines", lambda each: each["line"])
    return sf.concat(sf.lit("[\n"), sf.array_join(lines, ",\n"), sf.lit("\n]")).cast("binary")
