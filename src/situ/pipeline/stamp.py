"""Stage stamp: each row gets the advertisement it was published under, or is no event of its client's."""

from __future__ import annotations

from collections.abc import Iterable

from situ.deployment.plan import Plan
from situ.event.row import Bad, Row


def stamp(rows: Iterable[Row | Bad], plan: Plan) -> list[Row | Bad]:
    """The rows, stamped; what was bad before stays as it is."""
    return plan.stamp.each(rows)
