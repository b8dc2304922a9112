"""What an archive is: segments of the log in order, each with a table for every event type and day.

`Archive` is what a format can do, `open_archive` finds the format by its name. Parquet comes with Situ; others are
entry points of the group ``situ.archives``, each a function from a folder
(:class:`situ.storage.state_folder.StateFolder`) to an :class:`Archive`. This module knows no format.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, cast

import msgspec

from situ.lang.catalogue import NO_ARCHIVE_FORMAT
from situ.lang.problems import Location, Problem, SituError, nearest
from situ.settings import Settings
from situ.storage.state_folder import StateFolder, open_folder

if TYPE_CHECKING:
    import pyarrow as pa

GROUP = "situ.archives"
PARQUET = "parquet"
FORMAT = 1
"""Of the description and of segments."""


class ArchiveDescription(msgspec.Struct, frozen=True, kw_only=True):
    """Whose log an archive is of."""

    project: str
    zone: str
    format: int = FORMAT


class ArchivedPart(msgspec.Struct, frozen=True, kw_only=True):
    """One table of a segment: events of one type that the log stored on one day, in the order of the log.

    ``generation`` counts the roots that there were with the one in whose terms they are.
    """

    name: str
    type: str
    day: str
    generation: int = 1
    events: int
    begin: int
    """The earliest of their event times, in microseconds."""
    end: int
    """The latest."""


class ArchivedSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Messages of the log from ``first`` to ``last``: all that it held of these when they were archived."""

    number: int
    """Segments are numbered from 1, without gap."""
    first: int
    last: int
    begin: int
    """When the first of them was stored, in microseconds."""
    end: int
    events: int
    mark: str
    """What tells the last message from one of the same number in another log."""
    lost: int = 0
    """Messages before the first that had left the log when their turn came."""
    parts: tuple[ArchivedPart, ...]


class PartTable(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a part, as :mod:`situ.archive.layout` makes it."""

    type: str
    day: str
    generation: int
    table: pa.Table


class Archive(Protocol):
    """An archive in one format, in a folder at a URI. Failures are :class:`SituError` of N170 to N179, or OSError."""

    def description(self) -> ArchiveDescription | None:
        """None: there is no archive yet."""

    def begin(self, description: ArchiveDescription) -> None:
        """There is an archive of this log from here on; N170 if there is one of another."""

    def last(self) -> ArchivedSegment | None:
        """The last segment that is complete."""

    def pending(self) -> ArchivedSegment | None:
        """The segment that was begun behind it and is not known to be complete; its messages are to be written again,
        exactly these."""

    def append(self, segment: ArchivedSegment, tables: Sequence[PartTable]) -> ArchivedSegment:
        """Write a segment, with its parts: when this returns it is complete, and stays so whatever happens. The same
        segment written twice is there once."""

    def segments(self) -> list[ArchivedSegment]:
        """All that are complete, in order."""

    def read(self, part: ArchivedPart, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a part, in portions; of the columns only these, ``data.room`` for one attribute. What is not
        there is left out."""


def open_archive(place: str | StateFolder, format: str = PARQUET, base: Path = Path()) -> Archive:
    """The archive at a URI, or at a path below ``base``; N174 if there is no such format."""
    folder = open_folder(place, base)
    if format == PARQUET:
        from situ.archive.parquet import ParquetArchive

        return ParquetArchive(folder)
    if (problem := no_such_format(format, Location(file="situ.yaml"))) is not None:
        raise SituError(problem)
    return cast("Archive", _others()[format].load()(folder))


def no_such_format(format: str, place: Location) -> Problem | None:
    """N174 if no installed package has the format; nothing is loaded for that."""
    if format == PARQUET or format in (others := _others().names):
        return None
    known = sorted({PARQUET, *others})
    shown = ", ".join(f"`{each}`" for each in known)
    return NO_ARCHIVE_FORMAT(place, name=format, nearest=nearest(format, known), known=shown)


def archive_of(settings: Settings, base: Path, *, patience: float | None = None) -> Archive | None:
    """The archive that a project says it has, its folder tried for so many seconds; None if it says nothing."""
    log = settings.log
    if not log.archive.value:
        return None
    folder = open_folder(log.archive.value, base)
    return open_archive(StateFolder(folder.location, patience) if patience is not None else folder, log.archive_format)


def store_options(settings: Settings) -> Mapping[str, str]:
    """The settings of Spark in which the options of stores are, whichever engine runs."""
    return {name: value.value for name, value in settings.spark.conf}


def _others() -> EntryPoints:
    return EntryPoints(each for each in entry_points(group=GROUP) if each.name != PARQUET)
