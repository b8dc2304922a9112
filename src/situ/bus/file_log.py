"""Events in files: a log that can be kept, sent by post and replayed.

A folder of parts, read in the order of their names: JSON Lines (``.jsonl``: one event a line, as in the root log) or
Parquet (``.parquet``: a column ``event``). What is no event is reported with its place and
passed over; the rest is read. Nothing here knows streams or types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path

import msgspec
import pyarrow
from pyarrow import parquet

from situ.lang.catalogue import LOG_FILE_UNREADABLE, MALFORMED_LINE
from situ.lang.problems import Location, Problem, SituError

FORMATS = ("jsonl", "parquet")
_BATCH = 1000
Report = Callable[[Problem], None]


class _Head(msgspec.Struct):
    """What the log needs to know of an event; the rest is not looked at."""

    type: str
    siturecv: datetime | None = None
    time: datetime | None = None


_head = msgspec.json.Decoder(_Head)


def event_time(line: bytes) -> datetime | None:
    """When the event came in, else its own time; ValueError (of msgspec) if the line is no event."""
    head = _head.decode(line)
    return head.siturecv or head.time


def read_files(
    folder: Path, *, start: datetime | None = None, end: datetime | None = None, report: Report = lambda _: None
) -> Iterator[list[bytes]]:
    """The events of a folder (or of one file), in batches of lines; of those from ``start`` to before ``end``.

    Lines that are no events go to ``report`` (B201); a file that cannot be read raises B114.
    """
    for path in log_files(folder):
        lines = _parquet_lines(path) if path.suffix == ".parquet" else _json_lines(path)
        batch: list[bytes] = []
        for number, line in lines:
            try:
                at = event_time(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                text = line[:200].decode(errors="replace")
                place = Location(file=str(path), line=number, text=text)
                report(MALFORMED_LINE(place, reason=str(error).rstrip(".")))
                continue
            if (start is not None or end is not None) and at is None:
                place = Location(file=str(path), line=number, text=line[:200].decode(errors="replace"))
                report(MALFORMED_LINE(place, reason="it has no time to select it by"))
                continue
            if at is not None and _outside(at, start, end):
                continue
            batch.append(line)
            if len(batch) == _BATCH:
                yield batch
                batch = []
        if batch:
            yield batch


def log_files(folder: Path) -> tuple[Path, ...]:
    """The parts of a log, in order. One file is a log, too."""
    if folder.is_file():
        return (folder,)
    if not folder.is_dir():
        raise SituError(LOG_FILE_UNREADABLE(Location(file=str(folder)), reason="there is no such file or folder"))
    return tuple(sorted(path for path in folder.iterdir() if path.suffix[1:] in FORMATS and path.is_file()))


def _outside(at: datetime, start: datetime | None, end: datetime | None) -> bool:
    if at.tzinfo is None:
        return True
    return (start is not None and at < start) or (end is not None and at >= end)


def _json_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if text := line.strip():
                    yield number, text
    except OSError as error:
        raise _unreadable(path, error.strerror or "it cannot be opened") from error


def _parquet_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            if "event" not in file.schema_arrow.names:
                raise _unreadable(path, "it has no column `event`")
            for batch in file.iter_batches(_BATCH, columns=["event"]):
                for value in batch.column(0):
                    number += 1
                    found = value.as_py()
                    if isinstance(found, str):
                        found = found.encode()
                    yield number, found if found is not None else b""
    except (OSError, pyarrow.ArrowException) as error:
        raise _unreadable(path, str(error).split("\n", 1)[0][:200].rstrip(".")) from error


def _unreadable(path: Path, reason: str) -> SituError:
    return SituError(LOG_FILE_UNREADABLE(Location(file=str(path)), reason=reason))
