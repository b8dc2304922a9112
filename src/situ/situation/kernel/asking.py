"""What one step works with, and how relations are asked in it whether something occurred that agrees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from situ.situation.kernel.causes import Origins
from situ.situation.kernel.identities import Identities
from situ.situation.kernel.range_join import distinct, find
from situ.situation.kernel.table import Buffer, Ints, Table, joined
from situ.situation.meaning.detection import Instances


@dataclass(slots=True)
class Step:
    """What one step works with: everything from ``before`` to before ``now`` is decided in it."""

    before: int
    now: int
    identities: Identities
    origins: Origins
    instances: Instances
    buffers: dict[str, Buffer]

    def select(self, buffer: str, first: int, last: int, column: str = "", codes: Ints | None = None) -> Table:
        """What is decided from ``first`` to ``last``, both included; with codes, only rows that have one of them."""
        tables = self.buffers[buffer].between(first, last + 1)
        if codes is not None and sum(map(len, tables)) > len(codes):
            wanted = np.zeros(len(self.identities), bool)
            wanted[codes] = True
            tables = [table.take(np.flatnonzero(wanted[table[column]])) for table in tables]
        return joined(tables)


Codes = Mapping[str, Ints]
"""For some aliases, the code of the identity that is bound in each row."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Whether something occurred, for each of some rows, from ``first`` to ``last``, that agrees with what is bound.

    Of the other aliases, those in ``wanted`` are asked for. Events that are the earlier ones of pairs are looked for up
    to ``back`` before ``first``. ``most`` says how many answers for a row will do, 0: all.
    """

    bound: Codes
    first: Ints
    last: Ints
    wanted: frozenset[str]
    back: int
    most: int = 0

    def __len__(self) -> int:
        return len(self.first)

    def new(self, aliases: Iterable[str]) -> list[str]:
        return [name for name in aliases if name in self.wanted and name not in self.bound]


Extended = tuple[Ints, dict[str, Ints]]
"""Rows, perhaps several times, and the codes of aliases that were not bound before."""


def looked_up(rows: Table, asked: Asked, new: list[str]) -> Extended:
    """The answer, where all that can have occurred lies in a table."""
    shared = [name for name in asked.bound if f"@{name}" in rows.columns]
    found = find(
        [asked.bound[name] for name in shared],
        asked.first,
        asked.last,
        [rows[f"@{name}"] for name in shared],
        rows.time,
    )
    if not new:
        return found.some(), {}
    owners, partners = (found.few(asked.most) if asked.most else found).pairs()
    return once(owners, {name: rows[f"@{name}"][partners] for name in new})


def once(owners: Ints, codes: dict[str, Ints]) -> Extended:
    """Each row with the same codes once."""
    chosen = distinct([owners, *codes.values()])
    return owners[chosen], {name: each[chosen] for name, each in codes.items()}
