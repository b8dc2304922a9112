"""The archive of the root log: what is written, under which names, and what happens when something goes wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from situ.archive.format import ArchiveDescription, archive_of, open_archive
from situ.archive.history import ArchivedBus
from situ.archive.layout import ArchiveTerms, messages_of, tables_of
from situ.archive.parquet import ParquetArchive
from situ.bus.memory import MemoryBus
from situ.event.instants import instant_at
from situ.event.message import GENERATION, StoredMessage
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.settings import Settings
from situ.settings.kinds import plain
from situ.settings.model import Log as LogSettings
from situ.storage.state_folder import StateFolder
from tests.archives import DAY, SECOND, DyingFolder, Killed, Log, in_loop


async def log_of(folder: Path, messages: int = 30, *, days: int = 3) -> Log:
    log = await Log(folder).start()
    await log.add(messages, days=days)
    return log


def read_back(archive: ParquetArchive) -> list[StoredMessage]:
    return [
        message
        for segment in archive.segments()
        for message in messages_of(batch for part in segment.parts for batch in archive.read(part))
    ]


def assert_once(log: Log, messages: list[StoredMessage]) -> None:
    """Tools that read the folders and know nothing of segments find every event once, too."""
    files = [each for each in log.place.rglob("*.parquet") if not each.name.startswith(".")]
    places = [pos for each in files for pos in parquet.read_table(each, partitioning=None)["pos"].to_pylist()]
    assert len(places) == len(set(places)) == sum(len(each.body.splitlines()) - 2 for each in messages)


@in_loop
async def test_messages_come_back_as_they_were(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    archiver = await log.catch_up()
    assert read_back(log.archive()) == await log.messages()
    assert (archiver.metrics.last, archiver.metrics.behind, archiver.metrics.failing) == (30, 0, "")
    assert archiver.metrics.events == sum(len(each.body.splitlines()) - 2 for each in await log.messages())


@in_loop
async def test_files_are_named_by_type_day_and_messages(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    await log.catch_up()
    for segment in log.archive().segments():
        for part in segment.parts:
            assert part.name == f"type={part.type}/day={part.day}/{segment.first:020d}-{segment.last:020d}.parquet"
            table = parquet.read_table(log.place / part.name, partitioning=None)
            assert table.num_rows == part.events
            stored = table["stored"].cast(pa.int64()).to_pylist()
            assert {instant_at(each).date().isoformat() for each in stored} == {part.day}
            times = table["time"].cast(pa.int64()).to_pylist()
            assert (min(times), max(times)) == (part.begin, part.end)


@in_loop
async def test_other_tools_read_it_as_one_table_with_typed_columns(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    await log.catch_up()
    levels = parquet.read_table(log.place / "type=Level").sort_by("pos")
    lines = [json.loads(line) for line in levels["line"].to_pylist()]
    assert [line["id"] for line in lines] == levels["id"].to_pylist()
    assert [line["data"]["level"] for line in lines] == [each["level"] for each in levels["data"].to_pylist()]
    assert pa.types.is_timestamp(levels.schema.field("data").type.field("at").type)
    # A type with subtypes has their attributes, too; events of a subtype are in a folder of their own.
    assert parquet.read_table(log.place / "type=Fire")["data"].type.field("floor").type == pa.int32()


@in_loop
async def test_data_that_does_not_fit_the_type_of_now_is_kept_as_text(tmp_path: Path) -> None:
    log = await log_of(tmp_path, 3)
    odd = StoredMessage(
        seq=9,
        subject="situ.main.root.r1.Level",
        headers={"Situ-Client": "gate"},
        body=b'[\n{"specversion":"1.0","id":"1","source":"gate","type":"Level","time":"2026-11-01T08:30:00Z",'
        b'"situkey":"gate.1.1","data":{"tank":7,"level":"high"}}\n]',
        at=log.now,
    )
    terms = ArchiveTerms(log.deployment, 1)
    (table,) = tables_of([odd], terms)
    assert "data" not in table.table.column_names
    assert list(messages_of(table.table.to_batches())) == [odd]
    # Of a root that is not known any more, the text is all there is.
    (former,) = tables_of([replace(odd, headers={**odd.headers, GENERATION: "7"})], terms)
    assert former.generation == 7
    assert "data" not in former.table.column_names


@in_loop
async def test_a_segment_waits_until_it_is_old_or_large_enough(tmp_path: Path) -> None:
    log = await log_of(tmp_path, 2, days=0)
    archiver = log.archiver()
    assert not await archiver.step()
    assert (archiver.metrics.behind, archiver.metrics.segments) == (2, 0)
    assert archiver.metrics.oldest == (await log.messages())[0].at
    log.now += 2 * SECOND
    assert not await archiver.step()
    assert (archiver.metrics.behind, archiver.metrics.segments) == (0, 1)


@in_loop
async def test_an_archive_of_another_project_is_refused(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    await log.catch_up()
    with pytest.raises(SituError, match=r"N170.*another project: `plant`, and not `other`"):
        await log.archiver(project="other").step()


@in_loop
async def test_a_log_that_was_begun_anew_is_not_added_to_the_old_one(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    await log.catch_up()
    again = await Log(tmp_path, seed=2).start()
    await again.add(3)
    with pytest.raises(SituError, match=r"N173.*ends with message 30, and the log with 3"):
        await again.catch_up()
    await again.add(40)
    with pytest.raises(SituError, match=r"N173.*is another one in the log"):
        await again.catch_up()


@in_loop
async def test_two_runs_do_not_write_one_segment(tmp_path: Path) -> None:
    log = await log_of(tmp_path, 30)
    first, second = log.archiver(), log.archiver()
    log.now += 10 * SECOND
    await first.step()
    await second.step()  # it goes on where the first has come to
    with pytest.raises(SituError, match=r"N173.*segment 2 was written by somebody else"):
        await first.step()


@in_loop
async def test_what_left_the_log_before_its_turn_is_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = await log_of(tmp_path, 10)
    await log.catch_up()
    await log.add(10)
    await log.bus.purge(log.bus.names.root_stream, 15)
    archiver = await log.catch_up()
    assert archiver.metrics.lost == 4
    assert "N175 4 messages left the log before they were archived, those from 11 to 14." in caplog.text
    segments = log.archive().segments()
    assert [each.lost for each in segments if each.lost] == [4]
    assert [each.seq for each in read_back(log.archive())] == [*range(1, 11), *range(15, 21)]


@pytest.mark.parametrize("reason", ["No space left on device", "Permission denied"])
@in_loop
async def test_a_store_that_refuses_is_tried_again_and_nothing_is_lost(
    tmp_path: Path, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = await log_of(tmp_path)
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await log.add(1, days=0)  # more comes in meanwhile
        log.now += int(seconds * SECOND) + SECOND
        if len(pauses) == 4:
            monkeypatch.undo()
        if len(pauses) > 12:
            raise Killed

    real = StateFolder.write

    def refuse(self: StateFolder, name: str, content: bytes, *, sync: bool = False) -> None:
        if name.endswith(".parquet") and "Level" in name:
            raise OSError(28, reason)  # others of its segment are written
        real(self, name, content, sync=sync)

    monkeypatch.setattr(StateFolder, "write", refuse)
    archiver = log.archiver(sleep=sleep)
    with pytest.raises(Killed):
        await archiver.run()
    assert pauses[:4] == [2.0, 4.0, 8.0, 16.0]
    assert archiver.metrics.failing == ""
    await log.catch_up(archiver)
    assert read_back(log.archive()) == await log.messages()
    assert_once(log, await log.messages())


@in_loop
async def test_status_says_what_is_wrong_with_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = await log_of(tmp_path)

    def refuse(self: StateFolder, name: str, content: bytes, *, sync: bool = False) -> None:
        raise OSError(28, "No space left on device")

    async def sleep(seconds: float) -> None:
        raise Killed

    monkeypatch.setattr(StateFolder, "write", refuse)
    archiver = log.archiver(sleep=sleep)
    with pytest.raises(Killed):
        await archiver.run()
    assert archiver.metrics.failing.startswith("N171 The archive cannot be used: No space left on device")
    assert archiver.metrics.since == log.now


@in_loop
async def test_files_that_are_gone_or_broken_are_named(tmp_path: Path) -> None:
    log = await log_of(tmp_path)
    await log.catch_up()
    archive = log.archive()
    part = archive.segments()[0].parts[0]
    (log.place / part.name).write_bytes(b"nothing")
    with pytest.raises(SituError, match="N172"):
        list(archive.read(part))
    (log.place / part.name).unlink()
    with pytest.raises(SituError, match="N172"):
        list(archive.read(part))
    assert len(archive.segments()) > 2
    (log.place / "_log" / f"{2:020d}.json").unlink()
    with pytest.raises(SituError, match=r"N172.*it is not there, and later ones are"):
        log.archive().segments()


@pytest.mark.parametrize("torn", [False, True])
@in_loop
async def test_a_process_that_is_killed_anywhere_leaves_neither_gap_nor_double(tmp_path: Path, *, torn: bool) -> None:
    """At each of its writes; the next one goes on, while more comes in."""
    log = await log_of(tmp_path, 8)
    DyingFolder.torn = torn
    deaths = 0
    for at in range(1, 60):
        DyingFolder.left = at % 9 + 1
        archiver = log.archiver(ParquetArchive(DyingFolder(str(log.place))), most=3)
        log.now += 10 * SECOND
        try:
            while await archiver.step():
                pass
        except Killed:
            deaths += 1
        await log.add(1)
    assert deaths > 20
    await log.catch_up()
    messages = await log.messages()
    assert read_back(log.archive()) == messages
    assert_once(log, messages)


@in_loop
async def test_many_segments_are_listed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("situ.archive.parquet._TOGETHER", 4)
    log = await log_of(tmp_path, 10)
    await log.catch_up(log.archiver(most=1))
    assert len(list((log.place / "_log").glob("upto-*.json"))) == 2
    found = log.archive().segments()
    assert [each.number for each in found] == list(range(1, 11))
    read: list[str] = []
    real = StateFolder.read
    monkeypatch.setattr(StateFolder, "read", lambda self, name: read.append(name) or real(self, name))
    assert log.archive().segments() == found
    assert len(read) == 2 + 2 + 1  # those together, those behind, and whether there is another


@in_loop
async def test_formats_of_other_packages_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "packages" / "cold-1.0.dist-info"
    package.mkdir(parents=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: cold\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[situ.archives]\ncold = cold_archive:open_cold\n")
    (package.parent / "cold_archive.py").write_text(
        "from situ.archive.parquet import ParquetArchive\n\n\n"
        "class ColdArchive(ParquetArchive):\n    pass\n\n\n"
        "def open_cold(folder):\n    return ColdArchive(folder / 'cold')\n"
    )
    monkeypatch.syspath_prepend(package.parent)
    settings = Settings(log=LogSettings(archive=plain("history"), archive_format="cold"))
    archive = archive_of(settings, tmp_path)
    assert type(archive).__name__ == "ColdArchive"
    assert archive is not None
    archive.begin(ArchiveDescription(project="plant", zone="main"))
    assert (tmp_path / "history" / "cold" / "_log" / "archive.json").exists()
    assert archive_of(Settings(), tmp_path) is None
    with pytest.raises(SituError, match=r"N174.*`cald`") as refused:
        open_archive("history", "cald", tmp_path)
    assert "Did you mean `cold`?" in refused.value.problems[0].hint
    sys.modules.pop("cold_archive")


@in_loop
async def test_the_log_is_found_by_time_wherever_it_is(tmp_path: Path) -> None:
    log = await log_of(tmp_path, 40, days=5)
    await log.catch_up()
    messages = await log.messages()
    stream = log.bus.names.root_stream
    wanted = [each.at + offset for each in messages for offset in (-1, 0, 1)] + [0, log.now + DAY]
    expected = [await log.bus.find(stream, instant_at(max(each, 0))) for each in wanted]
    await log.bus.purge(stream, 25)
    joined = ArchivedBus(log.bus, log.archive())
    assert [await joined.find(stream, instant_at(max(each, 0))) for each in wanted] == expected
    assert (await joined.state(stream)).first == 1


@in_loop
async def test_a_bus_that_has_nothing_any_more_is_where_the_archive_ends(tmp_path: Path) -> None:
    """Whether it knows up to where its log was, or is new."""
    log = await log_of(tmp_path, 40, days=5)
    await log.catch_up()
    messages, stream = await log.messages(), log.bus.names.root_stream
    wanted = [0, *(each.at for each in messages), log.now + DAY]
    expected = [await log.bus.find(stream, instant_at(each)) for each in wanted]
    last = (await log.bus.state(stream)).last
    new = MemoryBus()
    await new.prepare(Settings())
    await log.bus.purge(stream, last + 1)
    for bus in (log.bus, new):
        joined = ArchivedBus(bus, log.archive())
        state = await joined.state(stream)
        assert (state.first, state.last, state.messages) == (1, last, last)
        assert [await joined.find(stream, instant_at(each)) for each in wanted] == expected
        assert [each async for each in joined.read(stream, 1, None)] == messages
