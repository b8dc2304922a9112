"""Interpretation on Spark, written by hand for one producer and one consumer: what one would do with Spark alone.

Read, checked, converted into root for the log and on to the consumer's terms, matched and put together by Spark's own
functions; nothing of it runs in Python. Units, names and the parts of addresses are in the code, for just these types.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as sf

from benchmarks.by_hand import DEAD, ROOT, body, headers, subject
from situ.spark.source import BusSource

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from situ.bus.address import Address

EVENT = """
    specversion STRING, id STRING, source STRING, type STRING, time STRING, situad STRING,
    data STRUCT<id: STRING, at: STRING, distance: DOUBLE, weight: DOUBLE, address: STRING>
"""
WHOLE = """
    e.specversion = '1.0' AND e.id IS NOT NULL AND e.source IS NOT NULL AND e.type = 'Load'
    AND e.data.id IS NOT NULL AND e.data.at IS NOT NULL AND e.data.distance IS NOT NULL AND e.data.weight IS NOT NULL
    AND e.data.address IS NOT NULL
"""
ROOT_DATA = """
    named_struct('id', e.data.id, 'at', e.data.at, 'distance', e.data.distance * 0.3048D,
        'weight', e.data.weight * 0.45359237D, 'address', named_struct(
            'name', split_part(e.data.address, '/', 1), 'specifics', split_part(e.data.address, '/', 2)))
"""
OUT_DATA = """
    named_struct('id', r.id, 'at', r.at, 'distance', r.distance * 1.0936132983377078D, 'weight', r.weight * 1000D,
        'address', named_struct('name', r.address.name,
            'street', str_to_map(r.address.specifics, ';', '=')['street'],
            'zip', str_to_map(r.address.specifics, ';', '=')['zip']))
"""
WANTED = "r.id LIKE 'S-%'"
_TOGETHER = 8


def _line(type: str, data: str) -> str:
    return f"""
    to_json(struct(
        e.specversion, e.id, e.source, '{type}' AS type, coalesce(e.time, string(timestamp_micros(recv))) AS time,
        concat_ws('.', client, incarnation, seq) AS situkey, e.situad, context AS situcontext,
        date_format(timestamp_micros(recv), "yyyy-MM-dd'T'HH:mm:ss.SSSSSS'Z'") AS siturecv,
        string(pos) AS situpos, {data} AS data))
"""


def publish(frame: DataFrame, address: Address, group: str) -> None:
    """Publish what becomes of these events; ``group`` is the delivery group of the one subscription."""
    read = frame.withColumn("e", sf.from_json("event", EVENT)).withColumn("whole", sf.expr(f"coalesce({WHOLE}, false)"))
    root = read.withColumn("r", sf.expr(ROOT_DATA))
    targets = f"""
        if(whole,
            array_compact(array(
                named_struct('target', '{ROOT}', 'line', {_line("Shipment", "r")}),
                if({WANTED}, named_struct('target', '{group}', 'line', {_line("Delivery", OUT_DATA)}), NULL))),
            array(named_struct('target', '{DEAD}', 'line', event)))
    """
    lines = root.select("client", "incarnation", "seq", "pos", sf.expr(f"inline({targets})")).withColumn(
        "block", sf.expr(f"shiftright(pos, 16) div if(target = '{ROOT}', 1, {_TOGETHER})")
    )
    together = lines.groupBy("client", "target", "block").agg(
        sf.min("incarnation").alias("incarnation"),
        sf.min("seq").alias("seq"),
        sf.count("*").alias("count"),
        sf.array_sort(sf.collect_list(sf.struct("pos", "line"))).alias("lines"),
    )
    ordered = together.repartition("client").sortWithinPartitions("block")
    messages = ordered.select(subject().alias("subject"), headers().alias("headers"), body().alias("body"))
    messages.write.format(BusSource.name()).option("address", address.to_json()).mode("append").save()
