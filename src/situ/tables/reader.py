"""A source → its table as it is now. Puts in what the environment says, and names what goes wrong."""

from __future__ import annotations

import hashlib
import json
import pickle
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from situ.lang.catalogue import SOURCE_UNREADABLE, UNKNOWN_COLUMN
from situ.lang.documents import ScalarNode, parse_json, substitute
from situ.lang.problems import Problems, SituError, nearest
from situ.sources import Source, SourceKind, Table, make_table
from situ.tables.databases import LONGEST, PATIENCE, Databases
from situ.tables.files import Cells, FileStamp, NoColumn, Unreadable, read_csv, read_parquet, read_xml, stamp_of

MOST_ROWS = 1_000_000

_SETTLED = 1_000_000_000
"""Nanoseconds after which a change of a file has another time of change than the one before, on every file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTable:
    """A table, with what tells a later reading that nothing changed.

    ``stamp`` is the state of the file, if the file can be told from a later one; ``raw`` a digest of what a database
    answered.
    """

    table: Table
    stamp: FileStamp | None = None
    raw: bytes = b""


class TableReader:
    """Reads the tables of one project. Files are relative to its folder. :meth:`close` ends all connections."""

    def __init__(
        self,
        folder: Path,
        environment: Mapping[str, str],
        *,
        most_rows: int = MOST_ROWS,
        patience: float = PATIENCE,
        longest: float = LONGEST,
    ) -> None:
        self._folder = folder
        self._environment = environment
        self._most_rows = most_rows
        self._databases = Databases(folder, patience=patience, longest=longest)

    def read(self, source: Source, before: ReadTable | None = None) -> ReadTable:
        """The table as it is now; :class:`SituError` with S103, S111, S112 or S113 if there is none.

        Where a database answers as it did ``before``, that is the result: values are made of an answer only once.
        """
        try:
            cells, stamp = self._cells(source)
        except Unreadable as error:
            raise SituError(
                SOURCE_UNREADABLE(
                    source.location,
                    source=source.name,
                    reason=error.reason,
                    place=f" ({source.place})" if source.kind.is_file else "",
                    remedy=error.remedy,
                )
            ) from None
        except NoColumn as error:
            where = f"{error.where} of `{source.name}`"
            similar = nearest(error.column, error.known)
            known = error.known[:20]
            problem = UNKNOWN_COLUMN(source.location, where=where, column=error.column, nearest=similar, known=known)
            raise SituError(problem) from None
        raw = hashlib.sha256(pickle.dumps(cells)).digest() if source.kind is SourceKind.SQL else b""
        if before is not None and raw and raw == before.raw:
            return before
        text, deep = source.kind in (SourceKind.CSV, SourceKind.XML), source.kind is SourceKind.XML
        return ReadTable(table=make_table(source, cells, text=text, deep=deep), stamp=stamp, raw=raw)

    def is_as_before(self, stamp: FileStamp | None) -> bool:
        """Whether the file is still the one that was read."""
        try:
            return stamp is not None and stamp_of(stamp.file) == stamp
        except Unreadable:
            return False

    def close(self) -> None:
        self._databases.close()

    def _cells(self, source: Source) -> tuple[Cells, FileStamp | None]:
        wanted = [each.name for each in source.columns]
        place = self._resolved(source, source.place)
        if source.kind is SourceKind.SQL:
            return self._databases.read(self._resolved(source, source.url), place, wanted, self._most_rows), None
        file = self._folder / place
        stamp = stamp_of(file)
        settled = time.time_ns() - stamp.changed > _SETTLED
        return self._of_file(source, file, wanted), stamp if settled else None

    def _of_file(self, source: Source, file: Path, wanted: list[str]) -> Cells:
        match source.kind:
            case SourceKind.CSV:
                return read_csv(file, wanted, self._most_rows)
            case SourceKind.PARQUET:
                return read_parquet(file, wanted, self._most_rows)
            case _:
                return read_xml(file, source, self._most_rows)

    def _resolved(self, source: Source, text: str) -> str:
        problems = Problems()
        node = parse_json(json.dumps(text), f"source {source.name}").root
        found = substitute(node, self._environment, problems) if node is not None else None
        problems.raise_errors()
        return found.text if isinstance(found, ScalarNode) else text
