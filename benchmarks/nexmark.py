"""Nexmark's stateless queries q0, q1, q2 and q13 over bids: Situ and PySpark, from bus to bus and from files to files.

*q0* passes everything on, *q1* converts prices from dollars to euros, *q2* keeps some auctions, *q13* joins a table.
In Situ these are a subscription, a context, a filter and a look-up; in PySpark a few lines each. The figure is
processor time of an event.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.bench import Bench
from benchmarks.by_hand import body, headers, subject
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.processor import processor_seconds
from benchmarks.zones import Ingress, Sent, open_zone
from situ.event.message import COUNT, join_lines
from situ.routing.delivery_groups import group_of
from situ.routing.model import Subscription
from tests.project_files import write

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from situ.spark import Project

PER_MESSAGE = 500
CLIENTS = ("house-1", "house-2", "house-3", "house-4", "house-5", "house-6", "house-7", "house-8")
SITU, BY_HAND = "Situ", "PySpark"
TEXTS = "Situ, CloudEvents as text"
SIDES = 10_000
"""Rows of the table that q13 joins."""
ONE_IN = 123
"""Of so many auctions q2 keeps one."""
RATE = 0.908
"""Euros for a dollar, as Nexmark has it."""
FILES = {
    "types/bids.yaml": """
version: 1
units: {USD: currency, EUR: currency}
events:
  Bid: {auction: long, bidder: long, price: double USD, channel: string, url: string, at: timestamp}
""",
    "contexts/euros.yaml": f"""
version: 1
context: euros
events:
  EuroBid: {{auction: long, bidder: long, price: double EUR, at: timestamp}}
maps: [out: Bid -> EuroBid]
functions:
  to_euros: {{signature: double USD -> double EUR, time: event, expr: value * {RATE}}}
""",
    "contexts/sides.yaml": f"""
version: 1
context: sides
events:
  SideBid: {{auction: long, bidder: long, price: double USD, at: timestamp, side: string}}
maps: [out: Bid -> SideBid]
rules: {{out: [Bid -> with_side]}}
functions:
  with_side:
    signature: Bid -> SideBid
    lookup: {{row: {{source: sides, key: {{key: value.auction % {SIDES}}}}}}}
    expr: >
      struct(value.auction AS auction, value.bidder AS bidder, value.price AS price, value.at AS at,
      row.value AS side)
""",
    "sources/sides.yaml": """
version: 1
pull:
  sides: {csv: sides.csv, columns: {key: long, value: string}, key: key}
""",
    "sides.csv": "key,value\n" + "".join(f"{key},side-{key}\n" for key in range(SIDES)),
}
WANTED = {
    "q0": Subscription(client="desk", name="q0", types=("Bid",), durable=True),
    "q1": Subscription(client="desk", name="q1", types=("EuroBid",), durable=True, context="euros"),
    "q2": Subscription(client="desk", name="q2", types=("Bid",), where=f"auction % {ONE_IN} = 0", durable=True),
    "q13": Subscription(client="desk", name="q13", types=("SideBid",), durable=True, context="sides"),
}
BID = "auction BIGINT, bidder BIGINT, price DOUBLE, channel STRING, url STRING, at TIMESTAMP"
_DATA = {
    "q0": "named_struct('auction', {0}.auction, 'bidder', {0}.bidder, 'price', {0}.price, 'channel', {0}.channel, "
    "'url', {0}.url, 'at', {0}.at)",
    "q1": f"named_struct('auction', {{0}}.auction, 'bidder', {{0}}.bidder, 'price', {{0}}.price * {RATE}D, "
    "'at', {0}.at)",
    "q2": "named_struct('auction', {0}.auction, 'bidder', {0}.bidder, 'price', {0}.price, 'channel', {0}.channel, "
    "'url', {0}.url, 'at', {0}.at)",
    "q13": "named_struct('auction', {0}.auction, 'bidder', {0}.bidder, 'price', {0}.price, 'at', {0}.at, 'side', side)",
}
_TYPE = {"q0": "Bid", "q1": "EuroBid", "q2": "Bid", "q13": "SideBid"}


def _bid(dice: random.Random, number: int) -> dict[str, object]:
    return {
        "auction": dice.randrange(1000, 1_000_000),
        "bidder": dice.randrange(1000, 100_000),
        "price": dice.randrange(100, 10_000_000) / 100,
        "channel": dice.choice(("Google", "Facebook", "Baidu", "Apple")),
        "url": f"https://www.nexmark.com/{dice.randrange(16**6):06x}/item.htm?query=1",
        "at": f"2026-11-15T10:00:{number // 1000 % 60:02}.{number % 1000:03}000Z",
    }


def _event(client: str, bid: Mapping[str, object], id: str) -> bytes:
    event = {
        "specversion": "1.0",
        "id": id,
        "source": client,
        "type": "Bid",
        "time": bid["at"],
        "situad": f"{client}/bids",
        "data": bid,
    }
    return json.dumps(event, separators=(",", ":")).encode()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# From bus to bus.


def _ingress(bench: Bench, query: str, folder: Path) -> Ingress:
    most = bench.some(200_000, 2_000)
    clients = "".join(f"  {each}: {{advertisements: {{bids: {{type: Bid}}}}}}\n" for each in CLIENTS)
    files = {
        **FILES,
        "situ.yaml": f"version: 1\nname: bench\nspark: {{max_events: {most}}}\n",
        "clients/all.yaml": f"version: 1\nclients:\n{clients}",
    }
    zone = bench.open(open_zone(folder, files, [WANTED[query]]))
    parts = []
    for turn in range(4):
        for client in CLIENTS:
            dice = random.Random(f"{client} {turn}")
            lines = (_event(client, _bid(dice, each), f"{turn}-{each}") for each in range(PER_MESSAGE))
            parts.append(Sent(client, join_lines(lines), PER_MESSAGE))
    return Ingress(zone, parts, bench.some(1_000_000, 4_000) // PER_MESSAGE)


def _bus_variants(bench: Bench) -> list[Variant]:
    from benchmarks.draining import Marks, take_by_engine, take_by_query

    variants = []
    for query in WANTED:
        folder = bench.folder("zone")
        ingress = _ingress(bench, query, folder)
        group = group_of(WANTED[query])
        delivered: dict[str, int] = {}

        def measured(
            name: str,
            take: Callable[[], Marks],
            ingress: Ingress = ingress,
            delivered: dict[str, int] = delivered,
        ) -> Callable[[], Taken]:
            def work() -> Taken:
                ingress.fill()
                marks = take()
                delivered[name] = _delivered(ingress)
                assert len(set(delivered.values())) == 1, f"not all deliver the same: {delivered}"
                return Taken(
                    value=marks.processor_seconds_a_message / PER_MESSAGE * 1e6,
                    figures={"events/s": marks.messages_a_second * PER_MESSAGE},
                )

            return work

        def by_engine(ingress: Ingress = ingress, folder: Path = folder) -> Marks:
            return take_by_engine(bench, ingress, folder=folder / "project")

        def by_hand(query: str = query, ingress: Ingress = ingress, folder: Path = folder, group: str = group) -> Marks:
            sides = _sides(bench, folder / "project") if query == "q13" else None
            return take_by_query(
                bench,
                ingress,
                content="events",
                write=lambda frame, _: _publish(frame, query, ingress, group, sides),
                folder=folder / "project",
            )

        variants.append(Variant(name=f"{query}: {SITU}", work=measured(SITU, by_engine)))
        variants.append(Variant(name=f"{query}: {BY_HAND}", work=measured(BY_HAND, by_hand)))
    return variants


def _sides(bench: Bench, project: Path) -> DataFrame:
    return bench.spark.read.csv(str(project / "sides.csv"), header=True, schema="key BIGINT, side STRING").cache()


def _publish(frame: DataFrame, query: str, ingress: Ingress, group: str, sides: DataFrame | None) -> None:
    """The query and nothing else: no root log, no dead letters, one delivery group."""
    from pyspark.sql import functions as sf

    from situ.spark.source import BusSource

    schema = f"id STRING, source STRING, type STRING, time STRING, situad STRING, data STRUCT<{_fields()}>"
    read = frame.withColumn("e", sf.from_json("event", schema))
    if query == "q2":
        read = read.where(f"e.data.auction % {ONE_IN} = 0")
    if sides is not None:
        read = read.withColumn("key", sf.expr(f"e.data.auction % {SIDES}")).join(sf.broadcast(sides), "key")
    data = _DATA[query].format("e.data")
    line = f"""
        to_json(struct('1.0' AS specversion, e.id, e.source, '{_TYPE[query]}' AS type, e.time,
            concat_ws('.', client, incarnation, seq) AS situkey, string(pos) AS situpos, {data} AS data))
    """
    together = (
        read.select("client", "incarnation", "seq", "pos", sf.expr(line).alias("line"))
        .withColumn("target", sf.lit(group))
        .withColumn("block", sf.expr("shiftright(pos, 16)"))
        .groupBy("client", "target", "block")
        .agg(
            sf.min("incarnation").alias("incarnation"),
            sf.min("seq").alias("seq"),
            sf.count("*").alias("count"),
            sf.array_sort(sf.collect_list(sf.struct("pos", "line"))).alias("lines"),
        )
    )
    ordered = together.repartition("client").sortWithinPartitions("block")
    messages = ordered.select(subject().alias("subject"), headers().alias("headers"), body().alias("body"))
    address = ingress.zone.address.to_json()
    messages.write.format(BusSource.name()).option("address", address).mode("append").save()


def _fields() -> str:
    return ", ".join(each.replace(" ", ": ", 1) for each in BID.split(", "))


def _delivered(ingress: Ingress) -> int:
    zone = ingress.zone
    return sum(int(message.headers[COUNT]) for message in zone.bus.read(zone.names.out_stream, 1))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# From files to files.


def _file_variants(bench: Bench) -> list[Variant]:
    from situ.spark import Project

    folder = bench.folder("files")
    write(folder / "project", {**FILES, "situ.yaml": "version: 1\nname: bench\n"})
    events = bench.some(1_000_000, 2_000)
    _record(folder, events)
    spark = bench.spark
    project = Project(spark, folder / "project")
    sides = _sides(bench, folder / "project")

    def bids() -> DataFrame:
        return spark.read.schema(BID).json(str(folder / "bids"))

    def texts() -> DataFrame:
        return spark.read.text(str(folder / "events"))

    variants = []
    for query in WANTED:
        ways: dict[str, Callable[[], DataFrame]] = {
            SITU: lambda query=query: _by_columns(project, query, bids()),  # type: ignore[misc]
            BY_HAND: lambda query=query: _by_hand(query, bids(), sides),  # type: ignore[misc]
            TEXTS: lambda query=query: _by_text(project, query, texts()),  # type: ignore[misc]
        }
        written: dict[str, int] = {}
        for way, frame in ways.items():
            target = folder / "out" / f"{query}-{way.replace(' ', '-')}"
            work = _written(bench, frame, target, events, written)
            variants.append(Variant(name=f"{query}: {way}", work=work))
    return variants


def _record(folder: Path, events: int) -> None:
    """The same bids as JSON lines, and as CloudEvents; four files each, so that both cores have work."""
    dice = random.Random(7)
    for kind in ("bids", "events"):
        (folder / kind).mkdir()
    for part in range(4):
        with (
            (folder / "bids" / f"{part}.json").open("wb") as bids,
            (folder / "events" / f"{part}.json").open("wb") as texts,
        ):
            for number in range(part * events // 4, (part + 1) * events // 4):
                bid = _bid(dice, number)
                bids.write(json.dumps(bid, separators=(",", ":")).encode() + b"\n")
                texts.write(_event(CLIENTS[number % len(CLIENTS)], bid, str(number)) + b"\n")


def _written(
    bench: Bench, frame: Callable[[], DataFrame], target: Path, events: int, written: dict[str, int]
) -> Callable[[], Taken]:
    def work() -> Taken:
        before = processor_seconds()
        frame().write.mode("overwrite").json(str(target))
        used = processor_seconds() - before
        written[target.name] = bench.spark.read.text(str(target)).count()
        assert len(set(written.values())) == 1, f"not all write the same: {written}"
        return Taken(value=used / events * 1e6)

    return work


def _by_hand(query: str, bids: DataFrame, sides: DataFrame) -> DataFrame:
    from pyspark.sql import functions as sf

    if query == "q1":
        return bids.select("auction", "bidder", (sf.col("price") * RATE).alias("price"), "at")
    if query == "q2":
        return bids.where(f"auction % {ONE_IN} = 0")
    if query == "q13":
        keyed = bids.withColumn("key", sf.expr(f"auction % {SIDES}"))
        return keyed.join(sf.broadcast(sides), "key").select("auction", "bidder", "price", "at", "side")
    return bids


def _by_columns(project: Project, query: str, bids: DataFrame) -> DataFrame:
    """Of the columns that Spark has read."""
    return _asked(project, query, project.decode(bids, "Bid", attributes={}, time="at", source="'nexmark'"))


def _by_text(project: Project, query: str, texts: DataFrame) -> DataFrame:
    """Of CloudEvents, checked as strictly as a run does it."""
    return _asked(project, query, project.decode(texts, "Bid"))


def _asked(project: Project, query: str, bids: DataFrame) -> DataFrame:
    if query == "q1":
        bids = project.interpret(bids, to="euros")
    elif query == "q13":
        bids = project.interpret(bids, to="sides")
    well: Column | str = "failure IS NULL"
    if query == "q2":
        well = f"failure IS NULL AND data.auction % {ONE_IN} = 0"
    return bids.where(well).select("data.*")


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for query in WANTED:
        hand = medians[f"{query}: {BY_HAND}"]
        for way in (SITU, TEXTS):
            if f"{query}: {way}" not in medians:
                continue
            ratio = medians[f"{query}: {way}"] / hand
            files = f"{query}: {TEXTS}" in medians
            what = f"Nexmark {query}, processor time of {way} against {BY_HAND}, {'files' if files else 'bus'}"
            goal = "≤ 1.5" if files and way == SITU else "" if files else "≤ 1"
            met = ratio <= float(goal[2:]) if goal else None
            verdicts.append(Verdict(what=what, value=ratio, goal=goal, met=met))
    return verdicts


SCENARIOS = [
    Scenario(
        name="nexmark-bus",
        title="Nexmark from bus to bus",
        unit="µs of processor time an event",
        about="1,000,000 bids of about 270 bytes wait in the ingress stream, 500 a message; each variant drains it in "
        "batches of 200,000, the first two left out. *Situ* decodes, checks, stamps, writes the root log, matches, "
        "converts and delivers. *PySpark* is the query alone, written by hand with `from_json` and `to_json`: no root "
        "log, no dead letters. Both deliver the same number of events. The processor time is that of all "
        "processes but the bus.",
        variants=_bus_variants,
        judge=_verdicts,
        repetitions=3,
        warm=False,
        spark=True,
    ),
    Scenario(
        name="nexmark-files",
        title="Nexmark from files to files",
        unit="µs of processor time an event",
        about="1,000,000 bids in four files of JSON lines, read, asked and written as JSON lines. *Situ* decodes the "
        "columns that `spark.read.json` gives, by `situ.spark.Project`; *PySpark* is the same by hand. *CloudEvents as "
        "text* are the bids in envelopes of 160 bytes more, decoded and checked as strictly as a run does it. All "
        "write the same number of lines.",
        variants=_file_variants,
        judge=_verdicts,
        repetitions=3,
        spark=True,
    ),
]
