"""Detection over history on Spark: an archive and files of others, in tasks, equal to what an engine finds in order."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from situ.archive.format import open_archive
from situ.archive.history import PastLog
from situ.event.message import ID, Message
from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.routing.model import Subscription
from situ.settings import Settings
from situ.settings.kinds import plain
from situ.settings.model import Log
from situ.spark.history.detect import HistoryPlan, PastSituation, detect_history
from situ.spark.history.mapped_files import find_files, load_map
from situ.spark.replay import replay
from situ.storage.state_folder import StateFolder
from tests.project_files import write
from tests.unit.spark.test_history import (
    HOUR,
    archived,
    generated,
    guarded,
    messages_of,
    shown,
    streamed,
    terms_of,
    walks,
)
from tests.zone import TYPES, zone

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from situ.event.row import Row
    from situ.spark.dataframes.detect import DetectionTerms


def test_an_archive_and_files_of_others_give_what_a_stream_gave(spark: SparkSession, tmp_path: Path) -> None:
    deployment = generated(guarded(tmp_path), 5)
    rows = [row for number in range(3) for row in walks(number, 400)]
    for number, row in enumerate(rows):
        row.id, row.seq = f"e{number}", number + 1
    closing = replace(rows[-1], id="last", seq=len(rows) + 1, time=rows[-1].time + HOUR, recv=rows[-1].recv + HOUR)
    rows.append(replace(closing, data=b'{"who":"nobody","at":{"x":-9,"y":-9}}', type="Sighting"))
    names = tuple(deployment.policies)
    terms = terms_of(deployment, tmp_path, names)
    expected = asyncio.run(streamed(tmp_path, deployment, rows, names, rows[0].recv, rows[-1].recv + HOUR, seed=1))
    assert len(expected) > 20
    messages = list(messages_of(rows, random.Random(1)))
    parts = tuple(archived(tmp_path / "archive", deployment, messages, 60))
    place = str(tmp_path / "archive")
    found = run(spark, terms, HistoryPlan(place=place, format="parquet", parts=parts), len(rows))
    assert shown(found) == shown(expected)
    # The same events as a table of somebody else's: positions are those of rows there.
    maps, files = csv_of(rows, tmp_path), StateFolder(str(tmp_path / "given"))
    problems = Problems()
    by = load_map(parse_yaml(maps, "a.map.yaml"), deployment, problems)
    problems.raise_errors()
    assert by is not None
    plan = HistoryPlan(files=find_files(files, [by], deployment), maps=(by,))
    history = detect_history(spark, terms, plan)
    same = list(history.situations)
    assert [each[:6] for each in shown(same)] == [each[:6] for each in shown(expected)]
    assert history.note.dead == {"B201": 2}
    assert {each.row for each in history.note.samples} == {0}
    assert all("3 columns" in each.message for each in history.note.samples)


def run(spark: SparkSession, terms: DetectionTerms, plan: HistoryPlan, events: int) -> list[PastSituation]:
    history = detect_history(spark, terms, plan)
    found = list(history.situations)
    assert 0 < history.note.events <= events
    assert history.note.events == history.note.columns
    return found


def csv_of(rows: Sequence[Row], folder: Path) -> str:
    """The sightings among these in two files, in no order, each with a line that is none; and what they are."""
    import msgspec

    lines = []
    for row in rows:
        if row.type == "Sighting":
            data = msgspec.json.decode(row.data)
            at = data["at"]
            lines.append(f"{row.id},{row.time},{data['who']},{at['x']!r},{at['y']!r}\n")
    random.Random(2).shuffle(lines)
    half = len(lines) // 2
    header, torn = "nr,micros,who,x,y\n", "torn,1,2\n"
    write(folder / "given", {"a.csv": header + torn + "".join(lines[:half])})
    write(folder / "given", {"b.csv": header + "".join(lines[half:]) + torn})
    return (
        'files: "*.csv"\ntype: Sighting\nclient: reader\nsource: reader/1\nid: nr\n'
        "time: {column: micros, format: microseconds}\ncolumns: {at.x: x, at.y: y}\n"
    )


def test_routing_is_replayed_over_what_is_archived_and_what_the_bus_has(spark: SparkSession, tmp_path: Path) -> None:
    """A log of which the bus has lost the beginning, through the same subscriptions."""
    wanted = Subscription(client="desk", name="all", types=("Sighting",), durable=True)
    rows = walks(7, 200)
    with zone(
        tmp_path, [wanted], types=f"{TYPES}  Sighting: {{who: string, at: Point m}}\n  Note: {{text: string}}\n"
    ) as at:
        for message in messages_of(rows, random.Random(1)):
            sent = Message(
                subject=message.subject, headers={**message.headers, ID: f"m{message.seq}"}, body=message.body
            )
            at.bus.store(sent).result()
        stored = at.messages(at.names.root_stream)
        archived(tmp_path / "archive", at.deployment, stored[:40], 15)
        version, last = at.deployment.version, stored[-1].seq
        whole = replay(spark, at.address, version, first=3, last=last).collect()
        assert len(whole) > 100
        at.bus.purge(at.names.root_stream, 30)
        assert len(replay(spark, at.address, version, first=3, last=last).collect()) < len(whole)
        settings = Settings(log=Log(archive=plain(str(tmp_path / "archive"))))
        past = PastLog.of(open_archive(str(tmp_path / "archive")), settings, tmp_path, 3, last)
        joined = replay(spark, at.address, version, first=3, last=last, past=past).collect()
        assert sorted(joined) == sorted(whole)
