"""Logs in files: written in parts, read whole or by time, with what is wrong in them told by its place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow
import pytest
from pyarrow import parquet

from situ.bus.file_log import log_files, read_files
from situ.lang.problems import Problem, SituError

START = datetime(2026, 11, 1, tzinfo=UTC)


def line(n: int) -> bytes:
    at = (START + timedelta(minutes=n)).isoformat().replace("+00:00", "Z")
    return b'{"id":"%d","type":"Seen","siturecv":"%s","time":"2020-01-01T00:00:00Z","data":{"n":%d}}' % (
        n,
        at.encode(),
        n,
    )


LINES = [line(n) for n in range(2500)]


def write(path: Path, lines: list[bytes]) -> None:
    if path.suffix == ".parquet":
        parquet.write_table(pyarrow.table({"event": pyarrow.array(lines, pyarrow.binary())}), path)
    else:
        path.write_bytes(b"\n".join(lines) + b"\n")


def everything(folder: Path, **selection: datetime) -> tuple[list[bytes], list[Problem]]:
    problems: list[Problem] = []
    found = [one for batch in read_files(folder, report=problems.append, **selection) for one in batch]
    return found, problems


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_what_is_written_is_read_in_order(tmp_path: Path, format: str) -> None:
    for start in range(0, len(LINES), 500):
        write(tmp_path / f"{start:08}.{format}", LINES[start : start + 500])
    assert len(log_files(tmp_path)) == 5
    assert everything(tmp_path) == (LINES, [])
    batches = list(read_files(log_files(tmp_path)[-1]))
    assert [one for batch in batches for one in batch] == LINES[2000:]


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_events_are_selected_by_the_time_they_came_in(tmp_path: Path, format: str) -> None:
    write(tmp_path / f"1.{format}", [*LINES, b'{"id":"x","type":"Seen","time":"2026-11-01T00:10:30Z"}'])
    start, end = START + timedelta(minutes=10), START + timedelta(minutes=12)
    found, problems = everything(tmp_path, start=start, end=end)
    assert found == [*LINES[10:12], b'{"id":"x","type":"Seen","time":"2026-11-01T00:10:30Z"}']
    assert problems == []
    assert everything(tmp_path, start=START + timedelta(minutes=2499))[0] == LINES[2499:]


def test_what_is_no_event_is_told_with_its_line_and_the_rest_is_read(tmp_path: Path) -> None:
    bad = [b"not json", b"[1]", b'{"id":"1"}', b'{"type":"Seen","time":"yesterday"}', b'{"type":"\xff"}']
    content = b"\n".join([LINES[0], bad[0], LINES[1], b"", *bad[1:], LINES[2]])
    (tmp_path / "1.jsonl").write_bytes(content)
    (tmp_path / "notes.txt").write_text("not a part of the log")
    (tmp_path / "2.jsonl.part").write_bytes(b"not yet")
    found, problems = everything(tmp_path)
    assert found == LINES[:3]
    assert {problem.code.code for problem in problems} == {"B201"}
    assert [problem.location.line for problem in problems if problem.location] == [2, 5, 6, 7, 8]
    assert all(problem.location and problem.location.file.endswith("1.jsonl") for problem in problems)


def test_an_event_without_a_time_cannot_be_selected_by_it(tmp_path: Path) -> None:
    (tmp_path / "1.jsonl").write_bytes(b'{"type":"Seen"}\n')
    assert everything(tmp_path)[0] == [b'{"type":"Seen"}']
    found, problems = everything(tmp_path, start=START)
    assert (found, [problem.code.code for problem in problems]) == ([], ["B201"])


def test_files_of_others_are_refused(tmp_path: Path) -> None:
    broken, foreign = tmp_path / "a.parquet", tmp_path / "b.parquet"
    broken.write_bytes(b"PAR1 but not really")
    parquet.write_table(pyarrow.table({"x": [1]}), foreign)
    for path in (broken, foreign, tmp_path / "missing"):
        with pytest.raises(SituError) as failed:
            list(read_files(path))
        assert failed.value.code == "B114"
        assert failed.value.problems[0].location is not None


def test_parquet_of_others_with_text_is_read(tmp_path: Path) -> None:
    parquet.write_table(pyarrow.table({"event": [one.decode() for one in LINES[:5]]}), tmp_path / "a.parquet")
    assert everything(tmp_path) == (LINES[:5], [])
