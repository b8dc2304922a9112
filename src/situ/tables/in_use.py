"""The tables that one process looks up in: those that its deployment needs now, read again when they are too old.

Blocks while it reads; whoever must not be held up calls it from a thread. What is looked up is not known here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Self

from situ.errors import Problem
from situ.sources import Source, Table
from situ.sources.table import Keyed
from situ.tables.cache import Tables, open_tables

_NONE: Mapping[str, Table] = MappingProxyType({})
_TELL_EVERY = 60.0


class TablesInUse:
    """Opens tables when they are needed first. Files are relative to ``folder``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._tables: Tables | None = None
        self._needed: tuple[Mapping[str, Source], Mapping[str, frozenset[Keyed]]] = ({}, {})
        self._told: dict[str, float] = {}
        self.problems: tuple[str, ...] = ()
        """What is wrong with tables since the last refresh, which go on as they were."""
        self._one_at_a_time = threading.RLock()

    @property
    def snapshot(self) -> Mapping[str, Table]:
        """The tables as they are looked up in, the same ones until the next :meth:`use` or :meth:`refresh`."""
        return _NONE if self._tables is None else self._tables.snapshot

    def use(self, sources: Mapping[str, Source], keyed: Mapping[str, Collection[Keyed]]) -> Mapping[str, Table]:
        """The tables that are looked up in this way, of these sources; those that are open already stay as they are.

        :class:`situ.errors.SituError` if one of them cannot be used; then everything is as it was before.
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
