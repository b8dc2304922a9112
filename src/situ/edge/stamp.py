"""Stage stamp: each row gets the advertisement it was published under, or is no event of its client's."""

from __future__ import annotations

from collections.abc import Iterable

from situ.deployment.plan import Plan
from situ.event.row import Bad, Row


def stamp(rows: Iterable[Row | Bad], plan: Plan) -> tuple[list[Row], list[Bad]]:
    """The rows that go on, and those that do not."""
    return sort_out(plan.stamp.each(rows))


def sort_out(rows: Iterable[Row | Bad]) -> tuple[list[Row], list[Bad]]:
    """The events, and what is none."""
    good: list[Row] = []
    bad: list[Bad] = []
    for row in rows:
        if isinstance(row, Row):
            good.append(row)
        else:
            bad.append(row)
    return good, bad
