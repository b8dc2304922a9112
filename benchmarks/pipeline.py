"""The pipeline on Spark: events a second against a job written by hand and against reading alone; decoding alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from benchmarks.bench import Bench
from benchmarks.building_events import PER_MESSAGE, SUBSCRIPTIONS, messages, project_files
from benchmarks.harness import Scenario, Taken, Variant, Verdict
from benchmarks.zones import Ingress, open_zone
from situ.event.message import COUNT
from situ.routing.delivery_groups import group_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from benchmarks.draining import Marks

SITU, BY_HAND, COPY = "Situ", "written by hand", "copy of the bytes"
TEXT, ROWS = "bare read, text", "bare read, decoded"
FROM_JSON = "bare read, text, from_json"
SAME = "bare read, text, from_json, same columns"


def _ingress(bench: Bench, full: int, quick: int) -> Ingress:
    most = bench.some(200_000, 2_000)
    files = project_files(situ=f"spark: {{max_events: {most}}}\n")
    zone = bench.open(open_zone(bench.folder("zone"), files, SUBSCRIPTIONS))
    return Ingress(zone, messages(), bench.some(full, quick) // PER_MESSAGE)


def _variants(bench: Bench) -> list[Variant]:
    from benchmarks import by_hand
    from benchmarks.draining import take_by_engine, take_by_query
    from benchmarks.mapped_rows import STORED, copying

    ingress = _ingress(bench, 1_000_000, 4_000)
    address = ingress.zone.address
    groups = {each.id: group_of(each) for each in SUBSCRIPTIONS}
    delivered: dict[str, Counter[str]] = {}

    def compared(name: str, take: Callable[[], Marks]) -> Callable[[], Taken]:
        """Fill, drain, and see that everybody delivers the same."""

        def work() -> Taken:
            ingress.fill()
            taken = take().taken(PER_MESSAGE)
            if name not in delivered:
                delivered[name] = _delivered(ingress)
                first = next(iter(delivered.values()))
                assert delivered[name] == first, f"{name} delivers {delivered[name]}, and not {first}"
            return taken

        return work

    def bare(content: str) -> Callable[[], Taken]:
        def write(frame: DataFrame, number: int) -> None:
            _nowhere(_decoded(frame, ingress) if content == "rows" else frame, number)

        def work() -> Taken:
            ingress.fill(again=False)
            return take_by_query(bench, ingress, content=content, write=write).taken(PER_MESSAGE)

        return work

    def hand() -> Marks:
        return take_by_query(
            bench, ingress, content="events", write=lambda frame, _: by_hand.publish(frame, address, groups)
        )

    def copy() -> Taken:
        from pyspark.sql.pandas.types import from_arrow_schema

        def write(frame: DataFrame, _: int) -> None:
            frame.mapInArrow(copying(address), from_arrow_schema(STORED)).collect()

        ingress.fill()
        taken = take_by_query(bench, ingress, content="rows", write=write).taken(PER_MESSAGE)
        found = _delivered(ingress)
        assert found == {ingress.zone.names.root_stream: ingress.events}, f"{found} of {ingress.events} events"
        return taken

    return [
        Variant(name=SITU, work=compared(SITU, lambda: take_by_engine(bench, ingress))),
        Variant(name=BY_HAND, work=compared(BY_HAND, hand)),
        Variant(name=COPY, work=copy),
        Variant(name=TEXT, work=bare("events")),
        Variant(name=ROWS, work=bare("rows")),
    ]


def _nowhere(frame: DataFrame, number: int) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _decoded(frame: DataFrame, ingress: Ingress) -> DataFrame:
    """The rows of the source, checked against their types, as columns."""
    from pyspark.sql.pandas.types import from_arrow_schema

    from benchmarks.mapped_rows import COLUMNS, decoding

    zone = ingress.zone
    return frame.mapInArrow(decoding(zone.address, zone.deployment.version), from_arrow_schema(COLUMNS))


def _delivered(ingress: Ingress) -> Counter[str]:
    """How many events are in the root log, and how many wait for each group."""
    names, found = ingress.zone.names, Counter[str]()
    for stream in (names.root_stream, names.out_stream, names.dead_stream):
        for message in ingress.zone.bus.read(stream, 1):
            found[stream if stream == names.root_stream else message.subject] += int(message.headers[COUNT])
    return found


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    hand, copy = medians[SITU] / medians[BY_HAND], medians[SITU] / medians[COPY]
    text, rows = medians[SITU] / medians[TEXT], medians[SITU] / medians[ROWS]
    return [
        Verdict(what="pipeline against the job written by hand", value=hand, goal="≥ 2", met=hand >= 2),
        Verdict(what="pipeline against a copy of the bytes", value=copy, goal="≥ 0.45", met=copy >= 0.45),
        Verdict(what="pipeline against a bare read of the source, decoded", value=rows, goal="≥ 0.5", met=rows >= 0.5),
        Verdict(what="pipeline against a bare read of the source, undecoded text", value=text),
    ]


def _decode_variants(bench: Bench) -> list[Variant]:
    from benchmarks.by_hand import EVENT, WHOLE
    from situ.spark.source import BusSource

    ingress = _ingress(bench, 400_000, 2_000)
    ingress.fill(again=False)
    bench.spark.dataSource.register(BusSource)

    schema = " ".join(EVENT.split())
    parsed = ["* EXCEPT (event)", f"from_json(event, '{schema}') AS e"]
    checked = ["* EXCEPT (e)", "e.id", "e.source", "e.type", "e.time", "e.situad", "to_json(e.data) AS data"]

    def read(content: str, *steps: list[str], where: str = "") -> Callable[[], int]:
        def work() -> int:
            address = ingress.zone.address.to_json()
            frame = bench.spark.read.format(BusSource.name()).option("address", address).option("content", content)
            rows = _decoded(frame.load(), ingress) if content == "rows" else frame.load()
            for step in steps:
                rows = rows.selectExpr(*step)
                rows = rows.where(where) if where and step is parsed else rows
            rows.write.format("noop").mode("overwrite").save()
            return ingress.events

        return work

    return [
        Variant(name=ROWS, work=read("rows")),
        Variant(name=FROM_JSON, work=read("events", parsed, ["* EXCEPT (e)", "e.*"])),
        Variant(name=SAME, work=read("events", parsed, checked, where=WHOLE)),
        Variant(name=TEXT, work=read("events")),
    ]


def _decode_verdicts(medians: dict[str, float]) -> list[Verdict]:
    alone, same = medians[ROWS] / medians[FROM_JSON], medians[ROWS] / medians[SAME]
    return [
        Verdict(what="decoding by the stage against from_json, unchecked", value=alone),
        Verdict(what="decoding by the stage against from_json, same columns", value=same, goal="≥ 2", met=same >= 2),
    ]


def _bus_variants(bench: Bench) -> list[Variant]:
    together = _ingress(bench, 400_000, 2_000)
    alone = Ingress(together.zone, messages(1), bench.some(20_000, 200))

    def store(ingress: Ingress) -> Callable[[], Taken]:
        def work() -> Taken:
            ingress.fill()
            rate = ingress.events / ingress.stored_in
            return Taken(value=rate, figures={"MB/s": ingress.size / ingress.stored_in / 1e6})

        return work

    def read(ingress: Ingress) -> Callable[[], int]:
        def work() -> int:
            names = ingress.zone.names
            count = sum(int(message.headers[COUNT]) for message in ingress.zone.bus.read(names.in_stream, 1))
            assert count == ingress.events, "what was stored is read"
            return count

        return work

    return [
        Variant(name="storing, 500 a message", work=store(together)),
        Variant(name="reading, 500 a message", work=read(together)),
        Variant(name="storing, 1 a message", work=store(alone)),
        Variant(name="reading, 1 a message", work=read(alone)),
    ]


SCENARIOS = [
    Scenario(
        name="pipeline-throughput",
        title="The pipeline on Spark",
        unit="events/s",
        about="1,000,000 events of about 200 bytes of the smart-building example wait in the ingress stream, 500 a "
        "message, of eight clients; three durable subscriptions with filters. Each variant drains it in batches of "
        "200,000; the first two batches are left out. *Situ* decodes, checks, stamps, writes the root log, matches and "
        "delivers, in one pass over the rows that Spark hands it. *Written by hand* is `benchmarks/by_hand.py`: the "
        "same deliveries for just these subscriptions, with `from_json`, filters in SQL, `to_json` and native "
        "aggregation. The *copy* stores the bytes of each message in the root log as they came, from the rows that "
        "Spark hands it, and does nothing else. *Bare reads* read the same source and throw it away: *text* hands over "
        "what clients sent, undecoded; *decoded* is checked against its type by the stage.",
        variants=_variants,
        judge=_verdicts,
        repetitions=3,
        spark=True,
    ),
    Scenario(
        name="decode-spark",
        title="Decoding by the stage against `from_json`",
        unit="events/s",
        about="400,000 events of the same log, read as one batch and thrown away. Decoded by the stage they are "
        "checked against their types, with the canonical text of their data. As text they go through `from_json`, "
        "which checks nothing and gives columns; for the *same columns* as from the stage they are checked in SQL and "
        "their data goes through `to_json`.",
        variants=_decode_variants,
        judge=_decode_verdicts,
        repetitions=5,
        spark=True,
    ),
    Scenario(
        name="bus",
        title="The embedded bus",
        unit="events/s",
        about="Events of about 200 bytes, stored in the ingress stream (on disk, each message confirmed) and read from "
        "it, over one connection.",
        variants=_bus_variants,
        repetitions=5,
    ),
]
