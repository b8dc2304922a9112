"""Detection over history as tasks do it, without Spark: generated policies over walks, from an archive."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from situ.app.replay import ReplayedSituation, replay_policies
from situ.archive.format import ArchivedSegment
from situ.archive.layout import ArchiveTerms, tables_of
from situ.archive.parquet import ParquetArchive
from situ.bus.memory import MemoryBus
from situ.event.instants import instant_at
from situ.event.lines import encode_rows
from situ.event.message import StoredMessage
from situ.event.row import Row
from situ.event.subjects import BusNames, pack_root
from situ.lang.problems import Problems
from situ.lang.records import replace
from situ.model import Deployment
from situ.policies.load import PolicyFile, load_policies
from situ.policies.model import Detection
from situ.registry.snapshots import publish_deployment
from situ.spark.dataframes.detect import DetectionTerms, detection_batches, portions_of
from situ.spark.history.detect import (
    HistoryNote,
    HistoryPlan,
    HistoryTaskReader,
    PastSituation,
    history_terms,
    situations_of,
)
from situ.stages.detect.backfill import lookback
from situ.stages.plan import compile_plan
from situ.storage.state_folder import StateFolder
from situ.testing.fixtures import load_project
from tests.archives import SECOND, START
from tests.guarded import FILES
from tests.project_files import write
from tests.volume import cases

INSIDE = (
    "policy inside\nwindow 2 s\nconcepts\n  person A\n  room R\nconditions\n  A is inside R\nactions\n  raise alarm\n"
)
HOUR = 3600 * SECOND
_LITERALS = (
    "A is inside R",
    "A is not within {n} m of B or B is not inside R",
    "A is within {n} m of B",
    "B is inside R",
    "A is not inside R",
)


def guarded(folder: Path) -> Deployment:
    return load_project(write(folder, {**FILES, "policies/inside.dpl": INSIDE})).deployment.at_version(1)


def generated(deployment: Deployment, seed: int) -> Deployment:
    """The deployment with a policy that was made up."""
    dice = random.Random(seed)
    while True:
        chosen = dice.sample(_LITERALS, dice.choice((1, 2, 2, 3)))
        text = "\n  ".join(each.format(n=dice.choice((2, 5, 9))) for each in chosen)
        status = dice.choice(("", " (status = 'guest')"))
        head = f"policy made\nwindow {dice.choice((1, 2, 5))} s\nhold {dice.choice((0, 1, 3))} s\n"
        names = f"concepts\n  person A{status}\n  person B (status = 'employee')\n  room R\n"
        body = f"{head}{names}conditions\n  {text}\nactions\n  raise alarm\n"
        problems = Problems()
        found = load_policies(
            [PolicyFile(file="made.dpl", data=body.encode())], deployment.domain, deployment.sources, problems
        )
        if not problems.errors:
            return replace(deployment, policies={**deployment.policies, **found})


def walks(seed: int, events: int) -> list[Row]:
    """Persons who walk about, in the order in which they are heard of; none is late for a policy."""
    dice = random.Random(seed)
    rows = []
    time = START + seed * HOUR
    for number in range(events):
        time += dice.randrange(SECOND)
        who = dice.choice(("g1", "g2", "e1", "e2", "nobody"))
        data = f'{{"who":"{who}","at":{{"x":{dice.uniform(-2, 22):.3f},"y":{dice.uniform(-1, 11):.3f}}}}}'
        if dice.random() < 0.1:
            row = _row(number, time, "Note", '{"text":"x"}')
        else:
            row = _row(number, time - dice.randrange(SECOND // 2), "Sighting", data, received=time)
        rows.append(row)
    return rows


def _row(number: int, time: int, type: str, data: str, received: int | None = None) -> Row:
    return Row(
        pos=0,
        client="reader",
        incarnation=1,
        seq=number + 1,
        context="root",
        recv=time if received is None else received,
        id=f"e{number}",
        source="reader/1",
        type=type,
        time=time,
        ad="",
        confidence=None,
        ext="",
        data=data.encode(),
    )


def messages_of(rows: Sequence[Row], dice: random.Random) -> Iterator[StoredMessage]:
    """As a log has them, a few events each."""
    names, seq, start = BusNames("main"), 0, 0
    while start < len(rows):
        some = rows[start : start + dice.randrange(1, 6)]
        start += len(some)
        for _, message in pack_root(names, "r1", some, encode_rows(some)):
            seq += 1
            at = max(each.recv for each in some)
            yield StoredMessage(seq=seq, subject=message.subject, body=message.body, headers=message.headers, at=at)


def archived(folder: Path, deployment: Deployment, messages: Sequence[StoredMessage], size: int) -> list[Any]:
    """The parts of an archive of these messages."""
    archive, terms = ParquetArchive(StateFolder(str(folder))), ArchiveTerms(deployment, 1)
    for number, start in enumerate(range(0, len(messages), size), 1):
        some = messages[start : start + size]
        segment = ArchivedSegment(
            number=number, first=some[0].seq, last=some[-1].seq, begin=some[0].at, end=some[-1].at, events=0, mark="",
            parts=(),
        )  # fmt: skip
        archive.append(segment, tables_of(some, terms))
    return [part for segment in archive.segments() for part in segment.parts]


def terms_of(deployment: Deployment, folder: Path, names: Iterable[str]) -> DetectionTerms:
    return history_terms(compile_plan(deployment), tuple(names), (), folder)


def detected(terms: DetectionTerms, plan: HistoryPlan, buckets: int = 3) -> tuple[list[PastSituation], HistoryNote]:
    """What tasks find, one after the other, and Spark's sorting between them."""
    portions, note = [], HistoryNote()
    for task in plan.tasks(2):
        for bucket, first, blob in portions_of(HistoryTaskReader(terms, task, buckets).portions()):
            if bucket < buckets:
                portions.append((bucket, first, blob))
            else:
                note.add(msgspec.msgpack.decode(blob, type=HistoryNote))
    found: dict[tuple[str, int], list[Any]] = {}
    for batch in detection_batches(terms, sorted(portions), buckets):
        for policy, share, blob in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            found.setdefault((policy, share), []).append(msgspec.msgpack.decode(blob, type=Detection))
    watches = terms.ready().detecting.watches
    situations = [
        each
        for (policy, _), some in found.items()
        for each in situations_of(some, watches[policy].policy.hold, plan.since)
    ]
    return sorted(situations, key=lambda each: (each.start, each.policy, each.bindings)), note


async def streamed(
    folder: Path, deployment: Deployment, rows: Sequence[Row], names: Sequence[str], since: int, until: int, seed: int
) -> list[ReplayedSituation]:
    """What the steps of an engine find over the same log, by the clock of the log."""
    clock = [START]
    bus = MemoryBus(clock=lambda: clock[0])
    await bus.prepare(deployment.settings)
    await publish_deployment(bus, deployment)
    for message in messages_of(rows, random.Random(seed)):
        clock[0] = message.at
        await (await bus.store(message))
    policies = [deployment.policies[name] for name in names]
    done = await replay_policies(bus, folder, deployment, policies, instant_at(since), instant_at(until))
    assert not done.tally.late_events
    return list(done.situations)


def shown(found: Iterable[PastSituation | ReplayedSituation]) -> list[Any]:
    return sorted(
        ((each.id, each.policy, each.bindings, each.start, each.last, each.detections, each.causes, each.positions)
        for each in found),
        key=repr,
    )  # fmt: skip


@cases(12, 300)
def test_generated_policies_find_in_the_archive_what_a_stream_found(tmp_path: Path, cases: int) -> None:
    situations = 0
    for seed in range(cases):
        situations += _compared(tmp_path / str(seed), seed)
    assert situations > cases


def _compared(folder: Path, seed: int) -> int:
    dice = random.Random(seed)
    deployment = generated(guarded(folder), seed)
    rows = walks(seed, dice.randrange(5, 120))
    # A last event, long after the others: all that the log waits for is decided by it.
    rows.append(_row(len(rows), rows[-1].time + HOUR // 2, "Sighting", '{"who":"nobody","at":{"x":-9,"y":-9}}'))
    messages = list(messages_of(rows, random.Random(seed)))
    parts = archived(folder / "archive", deployment, messages, dice.randrange(1, 30))
    names = tuple(deployment.policies)
    terms = terms_of(deployment, folder, names)
    plan = HistoryPlan(place=str(folder / "archive"), format="parquet", parts=tuple(parts))
    found, note = detected(terms, plan, dice.choice((1, 2, 3)))
    until = rows[-1].recv + HOUR
    expected = asyncio.run(streamed(folder, deployment, rows, names, START, until, seed))
    assert shown(found) == shown(expected), seed
    assert note.events == note.columns == sum(each.type == "Sighting" for each in rows)
    return len(found)


def test_columns_and_lines_tell_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where columns do not tell it, lines are read; and of a part of the time, the same part."""
    deployment = guarded(tmp_path)
    rows = walks(3, 300)
    messages = list(messages_of(rows, random.Random(3)))
    parts = tuple(archived(tmp_path / "archive", deployment, messages, 20))
    terms = terms_of(deployment, tmp_path, deployment.policies)
    early, until = rows[40].time, rows[250].time
    plan = HistoryPlan(place=str(tmp_path / "archive"), format="parquet", parts=parts, early=early, until=until)
    found, note = detected(terms, plan)
    assert note.columns == note.events > 100
    monkeypatch.setattr(HistoryTaskReader, "_observed", lambda self, type, batch: None)
    again, by_lines = detected(terms, plan)
    assert found == again
    assert len(found) > 20
    assert (by_lines.columns, by_lines.events, by_lines.looked) == (0, note.events, note.looked)
    assert by_lines.counts == note.counts


def test_an_archive_without_columns_is_read_by_its_lines(tmp_path: Path) -> None:
    deployment = guarded(tmp_path)
    rows = walks(5, 100)
    messages = list(messages_of(rows, random.Random(3)))
    with_columns = tuple(archived(tmp_path / "archive", deployment, messages, 20))
    unknown = replace(deployment, types=type(deployment.types)(types={}, events=frozenset()))
    without = tuple(archived(tmp_path / "bare", unknown, messages, 20))
    terms = terms_of(deployment, tmp_path, deployment.policies)
    found, note = detected(terms, HistoryPlan(place=str(tmp_path / "archive"), format="parquet", parts=with_columns))
    same, bare = detected(terms, HistoryPlan(place=str(tmp_path / "bare"), format="parquet", parts=without))
    assert found == same != []
    assert (bare.columns, bare.events) == (0, note.events)


def test_the_end_of_a_recording_settles_absence(tmp_path: Path) -> None:
    """By the time of its events: nobody waits for a clock."""
    deployment = guarded(tmp_path)
    rows = [_row(0, START, "Sighting", '{"who":"g1","at":{"x":5,"y":5}}')]
    parts = tuple(archived(tmp_path / "archive", deployment, list(messages_of(rows, random.Random(1))), 5))
    terms = terms_of(deployment, tmp_path, ["unaccompanied-guest"])
    (alone,), _ = detected(terms, HistoryPlan(place=str(tmp_path / "archive"), format="parquet", parts=parts))
    assert dict(alone.bindings) == {"A": "g1", "R": "lab"}
    assert alone.causes[0].id == "e0"


def test_what_began_before_the_time_asked_for_is_looked_back_on(tmp_path: Path) -> None:
    deployment = guarded(tmp_path)
    rows = walks(8, 400)
    parts = tuple(archived(tmp_path / "archive", deployment, list(messages_of(rows, random.Random(1))), 50))
    terms = terms_of(deployment, tmp_path, deployment.policies)
    whole = HistoryPlan(place=str(tmp_path / "archive"), format="parquet", parts=parts)
    every, _ = detected(terms, whole)
    since = rows[200].time
    early = since - lookback(terms.ready().detecting)
    later, _ = detected(terms, replace(whole, since=since, early=early))
    assert {each.id for each in later if each.start >= since} == {each.id for each in every if each.start >= since}
    assert all(each.last >= since for each in later)
