"""Pairs of observations: which of two tables fit each other by the test of a relation.

Candidates are found by what the test demands at least: texts that must be equal, or points that must be near each
other. For the latter the plane is cut into squares as wide as points may be apart, so that the partners of a point lie
in its own square or in one of the eight around it. The test itself is evaluated over the columns of all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from situ.lang.expr.emit.numpy import compile_mask
from situ.lang.expr.emit.vectors import column_type
from situ.lang.expr.tree import And, Compare, Node, Read
from situ.lang.types.model import STRING, Type, plain
from situ.policies.kernel.state import IdentityCodes, Origins
from situ.policies.kernel.table import CODE, Bools, Column, Ints, RangeMatches, SortedTable, range_join
from situ.policies.model import LEFT, RIGHT, Reach, Relation
from situ.policies.plan import Leaf, scalars_read

CANDIDATES = 1 << 16
"""How many pairs are tested at once."""

_FAR = 1e8
"""Beyond so many squares from the origin, doubles do not tell neighbours apart reliably."""
_CELLS = 1 << 12
"""Squares are numbered modulo this along each axis; neighbours always differ."""


def scalar_names(path: Sequence[str], *, text: bool) -> tuple[str, str]:
    """The columns of a value and of whether there is none; texts have one, with codes."""
    name = ".".join(path)
    return (f"{CODE}={name}", "") if text else (f"={name}", f"?{name}")


@dataclass(frozen=True, slots=True)
class RowPairs:
    """Pairs of rows: ``rows`` of whoever asked, and their partners in the two tables."""

    rows: Ints
    left: Ints
    right: Ints


class PairJoin:
    """A relation between two event-based attributes, ready to be tested."""

    def __init__(self, relation: Relation, left: Leaf, right: Leaf) -> None:
        assert relation.right is not None
        self.relation = relation
        self.same_alias = relation.left.alias == relation.right.alias
        self._mask = compile_mask(relation.test)
        self._reads = {
            (variable, path): _is_text(of, path)
            for variable, of in ((LEFT, left), (RIGHT, right))
            for path in (each.path for each in scalars_read(relation.test, variable))
        }
        self._equal = list(_equal_texts(relation.test))
        self._reach = None if self._equal else _usable(relation.reach)

    @property
    def selective(self) -> bool:
        """Whether few rows are candidates for a row, without knowing any identity."""
        return bool(self._equal) or self._reach is not None

    def candidates(
        self,
        probes: SortedTable,
        first: Ints,
        last: Ints,
        others: SortedTable,
        *,
        left: bool,
        wanted: Ints | None = None,
    ) -> Iterator[RowPairs]:
        """For each probe, rows of ``others`` with a time from ``first`` to ``last`` that may fit; a part at a time.

        Probes are of the left side or of the right. ``rows`` of what comes out are places of probes, too. ``wanted``
        are the codes of the identities that partners must have, if that is known.
        """
        mine, theirs = (LEFT, RIGHT) if left else (RIGHT, LEFT)
        rows, places, keys, their_keys = self._keyed(probes, mine, others, theirs, near=wanted is None)
        if wanted is not None:
            keys.append(wanted if rows is None else wanted[rows])
            their_keys.append(others["@identity"] if places is None else others["@identity"][places])
        if places is not None:
            others = others.take(places)
        if rows is not None:
            first, last = first[rows], last[rows]
        for part in range_join(keys, first, last, their_keys, others.time).parts(CANDIDATES):
            if part.total:
                yield _pair(part, rows, places, left=left)

    def fits(
        self, left: SortedTable, right: SortedTable, pair: RowPairs, identities: IdentityCodes, origins: Origins
    ) -> Bools:
        """Which of the pairs are an occurrence: the test holds, and it is not one event with itself."""
        fitting = np.ones(len(pair.left), bool)
        if self.same_alias:
            fitting &= left["@identity"][pair.left] == right["@identity"][pair.right]
        columns = {
            (variable, path): _column(table, rows, path, text, identities)
            for (variable, path), text in self._reads.items()
            for table, rows in [(left, pair.left) if variable == LEFT else (right, pair.right)]
        }
        fitting &= self._mask(columns, len(pair.left))
        at_once = np.flatnonzero(fitting & (left.time[pair.left] == right.time[pair.right]))
        if len(at_once):
            one = origins.of(left["ref"][pair.left[at_once]])
            other = origins.of(right["ref"][pair.right[at_once]])
            same = [a[:2] == b[:2] for a, b in zip(one, other, strict=True)]
            fitting[at_once[np.array(same, bool)]] = False
        return fitting

    def _keyed(
        self, probes: SortedTable, mine: str, others: SortedTable, theirs: str, *, near: bool
    ) -> tuple[Ints | None, Ints | None, list[Ints], list[Ints]]:
        """What is equal in rows that may fit; and which rows can fit at all, None for every one."""
        if self._equal:
            sides = [(dict(pair)[mine], dict(pair)[theirs]) for pair in self._equal]
            keys = [probes[scalar_names(path, text=True)[0]] for path, _ in sides]
            their_keys = [others[scalar_names(path, text=True)[0]] for _, path in sides]
            rows, places = _all_known(keys), _all_known(their_keys)
            return rows, places, [each[rows] for each in keys], [each[places] for each in their_keys]
        if near and self._reach is not None:
            here = _cells(probes, self._reach, mine)
            there = None if here is None else _cells(others, self._reach, theirs, beside=here[1])
            if here is not None and there is not None:
                rows, places = np.repeat(here[0], 9), there[0]
                around = [
                    np.repeat(axis, 9) + np.tile(step, len(here[0]))
                    for axis, step in zip(here[1], _AROUND, strict=True)
                ]
                return rows, places, [_numbered(around)], [_numbered(there[1])]
        return None, None, [], []


_AROUND = (np.repeat(np.arange(-1, 2), 3), np.tile(np.arange(-1, 2), 3))


def _pair(found: RangeMatches, rows: Ints | None, places: Ints | None, *, left: bool) -> RowPairs:
    probe, other = found.pairs()
    probe = probe if rows is None else rows[probe]
    other = other if places is None else places[other]
    return RowPairs(probe, probe, other) if left else RowPairs(probe, other, probe)


def _all_known(keys: Sequence[Ints]) -> Ints:
    return np.flatnonzero(np.logical_and.reduce([each >= 0 for each in keys]))


def _cells(
    table: SortedTable, reach: Reach, variable: str, beside: Sequence[Column] | None = None
) -> tuple[Ints, list[Column]] | None:
    """The rows whose points have coordinates, and their squares; None if some are too far out for squares.

    With ``beside``, only rows in the rectangle of these squares and their neighbours: where few are asked about, few
    are left.
    """
    width = reach.distance * (1 + 1e-6)  # what is computed as near may be farther by a rounding
    paths = reach.left if variable == LEFT else reach.right
    axes = []
    known = np.ones(len(table), bool)
    for place, path in enumerate(paths):
        value, null = scalar_names(path, text=False)
        axes.append(table[value] / width)
        known &= ~table[null]
        known &= np.isfinite(axes[-1]) if beside is None else _is_beside(axes[-1], beside[place])
    rows = np.flatnonzero(known)
    axes = [axis[rows] for axis in axes]
    if any(len(axis) and float(np.abs(axis).max()) > _FAR for axis in axes):
        return None
    return rows, [np.floor(axis).astype(np.int64) for axis in axes]


def _is_beside(axis: Column, squares: Column) -> Bools:
    if not len(squares):
        return np.zeros(len(axis), bool)
    found: Bools = (axis >= squares.min() - 1) & (axis < squares.max() + 2)
    return found


def _numbered(axes: Sequence[Column]) -> Ints:
    numbers: Ints = (axes[0] % _CELLS) * _CELLS + axes[1] % _CELLS
    return numbers


def _usable(reach: Reach | None) -> Reach | None:
    return reach if reach is not None and np.isfinite(reach.distance) and reach.distance > 1e-9 else None


def _column(
    table: SortedTable, rows: Ints, path: tuple[str, ...], text: bool, identities: IdentityCodes
) -> pa.Array | Column:
    value, null = scalar_names(path, text=text)
    taken = table[value][rows]
    if text:
        return identities.column(taken)
    unknown = table[null][rows]
    return pa.array(taken, mask=unknown) if unknown.any() else taken


def _is_text(leaf: Leaf, path: tuple[str, ...]) -> bool:
    return is_text(next(each.type for each in leaf.scalars if each.path == path))


def _equal_texts(test: Node) -> Iterator[tuple[tuple[str, tuple[str, ...]], tuple[str, tuple[str, ...]]]]:
    """Texts of both sides that must be equal for the test to hold."""
    for part in test.args if isinstance(test, And) else (test,):
        match part:
            case Compare(op="=", left=Read() as one, right=Read() as other):
                texts = plain(one.type) == STRING and plain(other.type) == STRING
                if texts and {one.variable, other.variable} == {LEFT, RIGHT}:
                    yield (one.variable, one.path), (other.variable, other.path)
            case _:
                pass


def is_text(type: Type) -> bool:
    """Whether values of a type are texts in the columns of rows."""
    return bool(column_type(type) == pa.string())
