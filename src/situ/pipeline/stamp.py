"""Stage stamp: each row gets the advertisement it was published under, or is no event of its client's.

Where there are scopes it learns what it must know of its own visibility, too.
"""

from __future__ import annotations

from collections.abc import Iterable

from situ.deployment.plan import Plan
from situ.event.row import Bad, Row


def stamp(rows: Iterable[Row | Bad], plan: Plan) -> list[Row | Bad]:
    """The rows, stamped; what was bad before stays as it is."""
    stamped = plan.stamped(rows)
    if plan.seeing is not None and (bad := plan.seeing.stamp([row for row in stamped if isinstance(row, Row)])):
        failed = {each.seq: each for each in bad}
        return [failed.get(row.seq, row) for row in stamped]
    return stamped
