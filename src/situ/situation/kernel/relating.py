"""Relations at work: what occurred, and whether anything occurred that agrees with something.

There are three kinds, one for each number of event-based sides; that with two is :mod:`situ.situation.kernel.paired`.
Occurrences are tables with a column ``@X`` for each alias that is bound, and ``r0``, ``r1``: references to the rows
they come from.
"""

from __future__ import annotations

import numpy as np

from situ.situation.kernel.asking import Asked, Extended, Step, looked_up
from situ.situation.kernel.paired import Paired
from situ.situation.kernel.table import Table
from situ.situation.kernel.timeless import Timeless
from situ.situation.policies.plan import RelationPlan


class Queried:
    """One event-based side: the rows of its leaf are its occurrences."""

    def __init__(self, plan: RelationPlan) -> None:
        (use,) = plan.uses
        self.aliases = tuple(dict.fromkeys((use.observed, use.other) if use.other else (use.observed,)))
        self.buffer = f"leaf {use.leaf}"
        self._columns = {f"@{use.observed}": "@identity", **({f"@{use.other}": "@other"} if use.other else {})}
        self._same = use.observed == use.other

    def picked(self, step: Step, first: int, last: int) -> Table:
        return self._view(step.select(self.buffer, first, last))

    def _view(self, rows: Table) -> Table:
        if self._same:
            rows = rows.take(np.flatnonzero(rows["@identity"] == rows["@other"]))
        return Table(rows.time, {"r0": rows["ref"], **{name: rows[column] for name, column in self._columns.items()}})

    def extend(self, step: Step, asked: Asked) -> Extended:
        """Rows for which something occurred; with codes of wanted aliases."""
        key = next((name for name in self.aliases if name in asked.bound), "")
        first, last = int(asked.first.min()), int(asked.last.max())
        rows = step.select(self.buffer, first, last, self._columns.get(f"@{key}", ""), asked.bound.get(key))
        return looked_up(self._view(rows), asked, asked.new(self.aliases))


class Stated:
    """No event-based side: it holds at any time, or at none."""

    def __init__(self, timeless: Timeless) -> None:
        self.aliases = timeless.aliases
        self.named = timeless.named
        self._timeless = timeless

    def extend(self, step: Step, asked: Asked) -> Extended:
        """As of :class:`Queried`; times do not count."""
        rows, codes = self._timeless.extend(dict(asked.bound), len(asked), step.instances, step.identities)
        return rows, {name: each for name, each in codes.items() if name not in asked.bound}


Related = Queried | Paired | Stated
