"""Tables: columns of equal length, sorted by time; and buffers, which remember them for as long as they are needed.

A buffer is cut in two by the watermark. What lies before it is *decided*: no event will come in between any more. It is
kept as a few tables one after the other in time, which are never changed. What lies behind it is *open*. Buffers are
values: moving on makes a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Column = npt.NDArray[Any]

LARGE = 1 << 17
"""Of so many rows together tables are not put together any more."""

CODE = "@"
"""Columns whose names begin so hold codes of texts, -1 for none."""


@dataclass(frozen=True, slots=True)
class Table:
    """``time``, ascending, and what else is known of each row."""

    time: Ints
    columns: Mapping[str, Column]

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def take(self, rows: Ints | Bools) -> Table:
        """These rows; their times must ascend."""
        return Table(self.time[rows], {name: column[rows] for name, column in self.columns.items()})

    def slice(self, start: int, end: int) -> Table:
        if start == 0 and end == len(self):
            return self
        return Table(self.time[start:end], {name: column[start:end] for name, column in self.columns.items()})

    def between(self, first: int, last: int) -> Table:
        """Rows from the time ``first`` to before the time ``last``."""
        if not len(self):
            return self
        start, end = np.searchsorted(self.time, (first, last))
        return self.slice(int(start), int(end))

    def copy(self) -> Table:
        return Table(self.time.copy(), {name: column.copy() for name, column in self.columns.items()})

    def recoded(self, codes: Ints) -> Table:
        """With other codes for texts: ``codes`` has the new one at the place of each old one."""
        return Table(
            self.time,
            {
                name: np.where(column >= 0, codes[column], -1) if name.startswith(CODE) else column
                for name, column in self.columns.items()
            },
        )


def sorted_table(time: Ints, columns: Mapping[str, Column]) -> Table:
    """Rows put in the order of time."""
    if len(time) < 2 or bool((time[1:] >= time[:-1]).all()):
        return Table(time, columns)
    order = np.argsort(time, kind="stable")
    return Table(time[order], {name: column[order] for name, column in columns.items()})


def joined(tables: Sequence[Table]) -> Table:
    """Tables one below the other; their times must ascend."""
    if len(tables) == 1:
        return tables[0]
    return Table(
        np.concatenate([each.time for each in tables]),
        {name: np.concatenate([each.columns[name] for each in tables]) for name in tables[0].columns},
    )


def merged(tables: Iterable[Table]) -> Table:
    """Tables of the same columns with times in any order."""
    full = list(tables)
    filled = [each for each in full if len(each)] or full[:1]
    whole = joined(filled)
    return whole if len(filled) == 1 else sorted_table(whole.time, whole.columns)


@dataclass(frozen=True, slots=True)
class Buffer:
    """What is remembered. ``decided`` has no empty table but perhaps the first, which says what the columns are."""

    decided: tuple[Table, ...]
    open: Table

    @property
    def rows(self) -> int:
        return sum(map(len, self.decided)) + len(self.open)

    @property
    def size(self) -> int:
        """Bytes of all columns."""
        return sum(
            table.time.nbytes + sum(column.nbytes for column in table.columns.values())
            for table in (*self.decided, self.open)
        )

    def extended(self, new: Table, watermark: int) -> tuple[Buffer, Table]:
        """With new rows, none of them before the last watermark; and what is decided now that was not."""
        waiting = new if not len(self.open) else self.open if not len(new) else merged((self.open, new))
        if not len(waiting):
            return self, waiting
        cut = int(np.searchsorted(waiting.time, watermark))
        decided, waiting = waiting.slice(0, cut), waiting.slice(cut, len(waiting))
        return Buffer(_with(self.decided, decided), waiting), decided

    def since(self, time: int) -> Buffer:
        """Without what is older."""
        if len(self.open) and self.open.time[0] < time:
            return Buffer(self.decided, self.open.between(time, int(self.open.time[-1]) + 1).copy()).since(time)
        first = self.decided[0]
        if not len(first) or first.time[0] >= time:
            return self
        kept = [each for each in self.decided if len(each) and each.time[-1] >= time]
        if not kept:
            return Buffer((first.slice(0, 0).copy(),), self.open)
        if kept[0].time[0] < time:
            start = int(np.searchsorted(kept[0].time, time))
            # A part of an array keeps all of it in memory: not worth it if little is left.
            rest = kept[0].slice(start, len(kept[0]))
            kept[0] = rest.copy() if start > len(rest) else rest
        return Buffer(tuple(kept), self.open)

    def between(self, first: int, last: int) -> list[Table]:
        """What is decided from the time ``first`` to before the time ``last``, as tables one after the other."""
        found = [
            each.between(first, last)
            for each in self.decided
            if len(each) and each.time[0] < last and each.time[-1] >= first
        ]
        return [each for each in found if len(each)] or [self.decided[0].slice(0, 0)]

    def changed(self, change: Callable[[Table], Table]) -> Buffer:
        return Buffer(tuple(change(each) for each in self.decided), change(self.open))


def empty(columns: Mapping[str, type]) -> Buffer:
    table = Table(np.empty(0, np.int64), {name: np.empty(0, kind) for name, kind in columns.items()})
    return Buffer((table,), table)


def _with(decided: tuple[Table, ...], new: Table) -> tuple[Table, ...]:
    """Small tables become one, so that there are never many; large ones stay as they are, for moving takes time."""
    if not len(new):
        return decided
    tables = [each for each in decided if len(each)]
    parts = [new]
    rows = len(new)
    while tables and len(tables[-1]) < 2 * rows and len(tables[-1]) + rows <= LARGE:
        rows += len(tables[-1])
        parts.insert(0, tables.pop())
    return (*tables, joined(parts))
