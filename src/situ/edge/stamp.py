"""Stage stamp: each row gets the advertisement it was published under, or is no event of its client's.

Where there are scopes it learns what it must know of its own visibility, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from situ.deployment.plan import Plan
from situ.event.row import Bad, Row


def stamp(rows: Iterable[Row | Bad], plan: Plan, *, own: bool = False) -> tuple[list[Row], list[Bad]]:
    """The rows that go on, and those that do not. Of ``own`` ones, which detection says, nobody asks if they may."""
    good, bad = _sort_out(rows if own else plan.stamped(rows))
    if plan.seeing is not None and (failed := plan.seeing.stamp(good)):
        gone = {each.seq for each in failed}
        return [row for row in good if row.seq not in gone], [*bad, *failed]
    return good, bad


def _sort_out(rows: Iterable[Row | Bad]) -> tuple[list[Row], list[Bad]]:
    """The events, and what is none."""
    good: list[Row] = []
    bad: list[Bad] = []
    for row in rows:
        if isinstance(row, Row):
            good.append(row)
        else:
            bad.append(row)
    return good, bad
