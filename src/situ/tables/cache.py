"""Tables in use: read once, the same until somebody asks for newer ones, read again when they are too old.

:class:`TableCache` holds the tables of given sources, :class:`TablesInUse` those that the deployment of one process
needs now. Whoever looks rows up asks for tables between two batches, or two events, and then works with one snapshot.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Self

from situ.lang.catalogue import SOURCE_AGED
from situ.lang.problems import Problem, Problems, SituError
from situ.lang.quantities import format_duration
from situ.lang.records import replace
from situ.sources import Source, Table
from situ.sources.table import Keyed
from situ.tables.reader import ReadTable, TableReader

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tables of given sources.
#
# A table is read again when it is older than its source allows. One that cannot be read again stays in use, and that is
# said each time; only at the start every table must be there.

PAUSE = 10.0
"""Seconds after a failure in which a source is left alone: waiting for it would hold up every batch."""

_NO_KEYS: Mapping[str, Collection[Keyed]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What a refresh did: the names of tables that are other than before, and what is wrong with some, S201 each."""

    changed: frozenset[str] = frozenset()
    problems: tuple[Problem, ...] = ()


@dataclass(slots=True)
class _Held:
    read: ReadTable
    at: float
    failed_at: float = 0.0
    failure: Problem | None = None


def open_tables(
    sources: Mapping[str, Source],
    folder: Path,
    *,
    environment: Mapping[str, str] = os.environ,
    keyed: Mapping[str, Collection[Keyed]] = _NO_KEYS,
    clock: Callable[[], float] = time.monotonic,
    previous: TableCache | None = None,
) -> TableCache:
    """Read all these tables; :class:`SituError` with everything that is wrong if one of them cannot be used.

    ``keyed`` says by which columns rows will be looked up: a table that has several rows for a key is refused. What
    ``previous`` has read of the same sources is taken from there; it is too old when it would have been.
    """
    tables = TableCache(sources, TableReader(folder, environment), keyed=keyed, clock=clock)
    try:
        tables.start(previous)
    except BaseException:
        tables.close()
        raise
    return tables


class TableCache:
    """Tables by the names of their sources. Looking at them needs no lock; one refresh runs at a time."""

    def __init__(
        self,
        sources: Mapping[str, Source],
        reading: TableReader,
        *,
        keyed: Mapping[str, Collection[Keyed]] = _NO_KEYS,
        clock: Callable[[], float] = time.monotonic,
        pause: float = PAUSE,
    ) -> None:
        self._sources = sources
        self._reading = reading
        self._keyed = keyed
        self._clock = clock
        self._pause = pause
        self._held: dict[str, _Held] = {}
        self._snapshot: Mapping[str, Table] = MappingProxyType({})
        self._one_at_a_time = threading.Lock()

    def start(self, previous: TableCache | None = None) -> None:
        """Read every table that is not there yet; :class:`SituError` with all problems if one cannot be used."""
        problems = Problems()
        with self._one_at_a_time:
            for name, source in self._sources.items():
                try:
                    now = self._clock()
                    known = None if previous is None else previous._known(source)
                    if known is not None:
                        self._check(source, known.read)
                    self._held[name] = known or _Held(self._read(source), now)
                except SituError as error:
                    problems.extend(error.problems)
            problems.raise_errors()
            self._take()

    @property
    def snapshot(self) -> Mapping[str, Table]:
        """All tables as they were at the last refresh; a refresh leaves it as it is, and puts another in its place."""
        return self._snapshot

    @property
    def digest(self) -> str:
        """SHA-256 of the contents of all tables, in hexadecimal."""
        lines = (f"{name} {self._snapshot[name].digest}\n" for name in sorted(self._snapshot))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def current(self, name: str) -> Table:
        """The table of this source, the same one until the next refresh; KeyError if the source is not one of these."""
        return self._snapshot[name]

    def age(self, name: str) -> timedelta:
        """How long ago the table was read, or was seen to be unchanged."""
        return timedelta(seconds=self._clock() - self._held[name].at)

    def refresh(self) -> Refreshed:
        """Read again what is too old. What is new is in use when this returns; what cannot be read stays as it was."""
        with self._one_at_a_time:
            changed = frozenset(name for name in self._sources if self._refresh(name))
            if changed:
                self._take()
            return Refreshed(changed=changed, problems=tuple(self._problems()))

    def close(self) -> None:
        """End all connections; the tables stay."""
        self._reading.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _refresh(self, name: str) -> bool:
        """Whether there is another table than before."""
        source, held, now = self._sources[name], self._held[name], self._clock()
        if now - held.at < source.max_age.total_seconds():
            return False
        if held.failure is not None and now - held.failed_at < self._pause:
            return False
        if self._reading.is_as_before(held.read.stamp):
            held.at, held.failure = now, None
            return False
        try:
            read = self._read(source, held.read)
        except SituError as error:
            held.failure, held.failed_at = error.problems[0], self._clock()
            return False
        before = held.read.table
        if read.table == before:
            # The same object, so that whoever made something of it need not do so again.
            read = replace(read, table=before)
        self._held[name] = _Held(read, now)
        return read.table is not before

    def _known(self, source: Source) -> _Held | None:
        return replace(self._held[source.name]) if self._sources.get(source.name) == source else None

    def _read(self, source: Source, before: ReadTable | None = None) -> ReadTable:
        read = self._reading.read(source, before)
        self._check(source, read)
        return read

    def _check(self, source: Source, read: ReadTable) -> None:
        for columns, as_of in self._keyed.get(source.name, ()):
            read.table.index(columns, as_of)

    def _take(self) -> None:
        self._snapshot = MappingProxyType({name: held.read.table for name, held in self._held.items()})

    def _problems(self) -> list[Problem]:
        return [
            SOURCE_AGED(
                self._sources[name].location,
                cause=held.failure,
                source=name,
                age=format_duration(timedelta(seconds=round(self._clock() - held.at))),
            )
            for name, held in self._held.items()
            if held.failure is not None
        ]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The tables that one process looks up in: those that its deployment needs now.
#
# Blocks while it reads; whoever must not be held up calls it from a thread. What is looked up is not known here.

_NO_TABLES: Mapping[str, Table] = MappingProxyType({})
_TELL_EVERY = 60.0


class TablesInUse:
    """Opens tables when they are needed first. Files are relative to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: TableCache | None = None
        self._needed: tuple[Mapping[str, Source], Mapping[str, frozenset[Keyed]]] = ({}, {})
        self._told: dict[str, float] = {}
        self.problems: tuple[str, ...] = ()
        """What is wrong with tables since the last refresh, which go on as they were."""
        self._one_at_a_time = threading.RLock()

    @property
    def snapshot(self) -> Mapping[str, Table]:
        """The tables as they are looked up in, the same ones until the next :meth:`use` or :meth:`refresh`."""
        return _NO_TABLES if self._tables is None else self._tables.snapshot

    def use(self, sources: Mapping[str, Source], keyed: Mapping[str, Collection[Keyed]]) -> Mapping[str, Table]:
        """The tables that are looked up in this way, of these sources; those that are open already stay as they are.

        :class:`situ.lang.problems.SituError` if one of them cannot be used; then everything is as it was before.
        """
        needed = ({name: sources[name] for name in keyed}, {name: frozenset(each) for name, each in keyed.items()})
        with self._one_at_a_time:
            if needed != self._needed:
                opened = open_tables(needed[0], self._folder, keyed=needed[1], previous=self._tables) if keyed else None
                self.close()
                self._tables, self._needed = opened, needed
            return self.snapshot

    def refresh(self) -> tuple[str, ...]:
        """Read again what is too old; gives, now and then, what is to be told of tables that could not be."""
        with self._one_at_a_time:
            if self._tables is None:
                return ()
            problems = {str(each.values["source"]): each for each in self._tables.refresh().problems}
            now = time.monotonic()
            due = [name for name in problems if now - self._told.get(name, -_TELL_EVERY) >= _TELL_EVERY]
            self._told = {name: now if name in due else self._told[name] for name in problems}
            self.problems = tuple(map(_told, problems.values()))
            return tuple(_told(problems[name]) for name in due)

    def close(self) -> None:
        """End all connections; nothing is open any more."""
        with self._one_at_a_time:
            if self._tables is not None:
                self._tables.close()
            self._tables, self._needed = None, ({}, {})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _told(problem: Problem) -> str:
    return str(problem) if problem.cause is None else f"{problem} {problem.cause.message}"
