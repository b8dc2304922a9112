"""The archive in Parquet: a file for each part of a segment, and beside them the list of segments.

``type=FaceSeen/day=2026-11-18/00000000000000000001-00000000000000000512.parquet`` has the events of one type and day of
the messages 1 to 512: names of folders as Spark, DuckDB and others read them as columns. ``_log/`` has what makes a
segment count: ``00000000000000000001.json`` is written when all files of segment 1 are, and never again. A reader goes
by these alone. Every 256 segments are written once more in one file, so that a long history is not thousands of reads.

Before its files a segment is written to ``_log/pending.json``. A process that is killed between the two leaves files
that do not count; whoever goes on writes the same messages again, under the same names. So whoever reads the folders
with tools of their own finds nothing twice either, once it is repaired, which is the first thing that a run does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TypeVar

import msgspec
import pyarrow as pa
from pyarrow import parquet

from situ.archive.format import ArchiveDescription, ArchivedPart, ArchivedSegment, PartTable
from situ.lang.catalogue import (
    ARCHIVE_AWAY,
    ARCHIVE_DAMAGED,
    ARCHIVE_OF_ANOTHER,
    ARCHIVE_OF_ANOTHER_LOG,
    STATE_STORE_AWAY,
)
from situ.lang.problems import Location, SituError
from situ.lang.records import replace
from situ.storage.state_folder import StateFolder

_LOG, _ABOUT, _PENDING = "_log", "archive.json", "pending.json"
_TOGETHER = 256
"""Segments that are listed once more in one file."""
_ROWS = 65_536
"""Rows of a row group, and of what is read at a time."""
_AT_ONCE = 16
"""Small files that are read from a store at the same time."""
_ENCODED = ["source", "client", "context", "ad", "subject", "headers"]
T = TypeVar("T")


class ParquetArchive:
    """An archive in a folder."""

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder
        self._log = folder / _LOG
        self._last: ArchivedSegment | None = None
        self._listed = False

    # ── whose it is ──

    def description(self) -> ArchiveDescription | None:
        text = self._read(_ABOUT)
        return None if text is None else self._decoded(text, ArchiveDescription, _ABOUT)

    def begin(self, description: ArchiveDescription) -> None:
        found = self.description()
        if found is None:
            self._write(self._log, _ABOUT, msgspec.json.encode(description))
            return
        for name in ArchiveDescription.__struct_fields__:
            there, expected = getattr(found, name), getattr(description, name)
            if there != expected:
                place = Location(file=str(self._folder))
                raise SituError(ARCHIVE_OF_ANOTHER(place, what=name, found=str(there), expected=str(expected)))

    # ── segments ──

    def last(self) -> ArchivedSegment | None:
        if not self._listed:
            number = max(self._numbers(), default=0)
            self._last = self._segment(number) if number else None
            self._listed = True
        # A list of names may be older than what is there: the numbers behind it are asked for one by one.
        while (following := self._found(1 if self._last is None else self._last.number + 1)) is not None:
            self._last = following
        return self._last

    def pending(self) -> ArchivedSegment | None:
        text = self._read(_PENDING)
        if text is None:
            return None
        found, last = self._decoded(text, ArchivedSegment, _PENDING), self.last()
        return found if found.number == (1 if last is None else last.number + 1) else None

    def segments(self) -> list[ArchivedSegment]:
        names = self._names()
        whole = sorted(int(name[5:-5]) for name in names if name.startswith("upto-"))
        found = [each for some in self._at_once(whole, self._together) for each in some]
        begin = whole[-1] if whole else 0
        # Names may be missing in a list that is not up to date; numbers are not.
        last = max(_numbers(names), default=begin)
        found += self._at_once(range(begin + 1, last + 1), self._segment)
        while (following := self._found(found[-1].number + 1 if found else 1)) is not None:
            found.append(following)
        return found

    def _at_once(self, numbers: Sequence[int], read: Callable[[int], T]) -> list[T]:
        """Small files: to read one is mostly to wait for a store."""
        if self._folder.is_local or len(numbers) < 2:
            return [read(number) for number in numbers]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            return list(pool.map(read, numbers))

    # ── writing ──

    def append(self, segment: ArchivedSegment, tables: Sequence[PartTable]) -> ArchivedSegment:
        before = self.pending()
        if self._found(segment.number) is not None:
            reason = f"segment {segment.number} was written by somebody else"
            raise SituError(ARCHIVE_OF_ANOTHER_LOG(Location(file=str(self._folder)), reason=reason))
        parts = tuple(_part(segment, each) for each in tables)
        segment = replace(segment, parts=parts)
        if before is not None:
            # While it is known what was begun: later nobody would find what is not written again.
            for left in {each.name for each in before.parts} - {each.name for each in parts}:
                self._remove(left)
        self._write(self._log, _PENDING, msgspec.json.encode(segment))
        for part, each in zip(parts, tables, strict=True):
            self._write(self._folder, part.name, _encoded(each, segment))
        self._write(self._log, _name(segment.number), msgspec.json.encode(segment))
        self._last = segment
        if segment.number % _TOGETHER == 0:
            self._list_together(segment.number)
        return segment

    def _list_together(self, number: int) -> None:
        numbers = range(number - _TOGETHER + 1, number + 1)
        some = self._at_once(numbers, self._segment)
        self._write(self._log, f"upto-{number:020d}.json", msgspec.json.encode(some))

    # ── reading ──

    def read(self, part: ArchivedPart, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        try:
            with self._folder.open(part.name) as source, parquet.ParquetFile(source) as file:
                if columns is not None:
                    known = set(file.schema_arrow.names)
                    columns = [each for each in columns if each.partition(".")[0] in known]
                yield from file.iter_batches(_ROWS, columns=columns, use_threads=False)
        except (FileNotFoundError, pa.ArrowInvalid) as error:
            raise self._damaged(part.name, error) from None
        except SituError as error:
            raise _away(error) from None
        except OSError as error:
            raise SituError(ARCHIVE_AWAY(Location(file=str(self._folder)), reason=_said(error))) from None

    # ── files ──

    def _names(self) -> list[str]:
        try:
            return self._log.names()
        except SituError as error:
            raise _away(error) from None

    def _numbers(self) -> list[int]:
        return _numbers(self._names())

    def _found(self, number: int) -> ArchivedSegment | None:
        text = self._read(_name(number))
        return None if text is None else self._decoded(text, ArchivedSegment, _name(number))

    def _segment(self, number: int) -> ArchivedSegment:
        found = self._found(number)
        if found is None:
            raise self._damaged(f"{_LOG}/{_name(number)}", "it is not there, and later ones are")
        return found

    def _together(self, number: int) -> list[ArchivedSegment]:
        name = f"upto-{number:020d}.json"
        return self._decoded(self._read(name) or b"", list[ArchivedSegment], name)

    def _read(self, name: str) -> bytes | None:
        try:
            return self._log.read(name)
        except SituError as error:
            raise _away(error) from None
        except OSError as error:
            raise SituError(ARCHIVE_AWAY(Location(file=str(self._folder)), reason=_said(error))) from None

    def _write(self, folder: StateFolder, name: str, content: bytes) -> None:
        try:
            folder.write(name, content, sync=True)
        except SituError as error:
            raise _away(error) from None
        except OSError as error:
            raise SituError(ARCHIVE_AWAY(Location(file=str(self._folder)), reason=_said(error))) from None

    def _remove(self, name: str) -> None:
        try:
            self._folder.remove(name)
        except SituError as error:
            raise _away(error) from None
        except OSError as error:
            raise SituError(ARCHIVE_AWAY(Location(file=str(self._folder)), reason=_said(error))) from None

    def _decoded(self, text: bytes, of: type[T], name: str) -> T:
        try:
            return msgspec.json.decode(text, type=of)
        except msgspec.DecodeError as error:
            raise self._damaged(f"{_LOG}/{name}", error) from None

    def _damaged(self, name: str, reason: object) -> SituError:
        said = str(reason).splitlines()[0][:300].rstrip(".")
        return SituError(ARCHIVE_DAMAGED(Location(file=f"{self._folder}/{name}"), reason=said))


def _away(error: SituError) -> SituError:
    """What the folder says of its store, about the archive."""
    (problem, *_) = error.problems
    if problem.code is not STATE_STORE_AWAY:
        return error
    return SituError(ARCHIVE_AWAY(problem.location, reason=str(problem.values["reason"])))


def _said(error: OSError) -> str:
    return (error.strerror or str(error) or type(error).__name__).splitlines()[0][:300]


def _name(number: int) -> str:
    return f"{number:020d}.json"


def _numbers(names: Sequence[str]) -> list[int]:
    found = []
    for name in names:
        with suppress(ValueError):
            found.append(int(name.removesuffix(".json")))
    return found


def _part(segment: ArchivedSegment, each: PartTable) -> ArchivedPart:
    times = each.table.column("time").cast(pa.int64()).to_numpy()
    former = f"-v{each.generation}" if each.generation > 1 else ""
    return ArchivedPart(
        name=f"type={each.type}/day={each.day}/{segment.first:020d}-{segment.last:020d}{former}.parquet",
        type=each.type,
        day=each.day,
        generation=each.generation,
        events=each.table.num_rows,
        begin=int(times.min()),
        end=int(times.max()),
    )


def _encoded(each: PartTable, segment: ArchivedSegment) -> bytes:
    sink = pa.BufferOutputStream()
    about = {"situ.type": each.type, "situ.positions": f"{segment.first}-{segment.last}"}
    table = each.table.replace_schema_metadata(about)
    encoded = [name for name in _ENCODED if name in table.column_names]
    parquet.write_table(table, sink, compression="zstd", row_group_size=_ROWS, use_dictionary=encoded)
    content: bytes = sink.getvalue().to_pybytes()
    return content
