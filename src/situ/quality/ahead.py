"""Looking ahead: of some expectations that are decided next, who is met by the plan and what the others roughly cost.

Worked out for all of them and all rows of a field at once, and after that only for rows that move: deciding on one
after the other takes no more than comparing the numbers of its row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.rows import Flags, Matrix, any_below


class Ahead:
    """Expectations of one field, in their order. Where its profiles are is the field's, which tells what moves.

    Costs that are beyond all numbers are infinite or NaN here, and nobody wants to be warned of them: whoever moves
    things ignores that (``np.errstate``), once for all its moves.
    """

    def __init__(
        self,
        expectations: Sequence[Expectation],
        asked: Matrix,
        *,
        now: Matrix,
        best: Matrix,
        rising: Matrix,
        surcharges: Matrix,
    ) -> None:
        self.places = {each.id: place for place, each in enumerate(expectations)}
        self.asked = asked
        """What they ask, one in each column."""
        self._now = now
        self._rising = rising
        self._surcharges = surcharges
        self._out_of_reach = any_below(best, asked)
        self._meeting = ~any_below(now, asked)
        """Of expectations by rows, whether it is met there by the plan."""
        self._met: Flags = np.logical_or.reduce(self._meeting, axis=1)
        self._costs: Matrix = self._costs_now()
        """Of expectations by rows."""

    def is_met(self, place: int) -> bool:
        return bool(self._met[place])

    def costs(self, place: int) -> Matrix:
        """About what it costs more to have each row good enough: infinite where that cannot be, NaN where only trying
        tells."""
        costs: Matrix = self._costs[place]
        return costs

    def asked_by(self, expectations: Sequence[Expectation]) -> Matrix | None:
        """What some of them ask; None, if others are among them."""
        places = [place for each in expectations if (place := self.places.get(each.id)) is not None]
        return self.asked.take(places, axis=1) if len(places) == len(expectations) else None

    def improve(self, row: int) -> None:
        """The profile of a row, which has no other, is better than it was in some properties, and worse in none."""
        now = self._now[:, row, None]
        costs = self._rising[:, row].dot(_lacking(self.asked, now))
        costs[self._out_of_reach[:, row]] = np.inf
        self._costs[:, row] = costs
        meeting = np.logical_and.reduce(self.asked <= now)
        self._meeting[:, row] = meeting
        self._met |= meeting

    def change(self, rows: Sequence[int]) -> None:
        """The profile of these rows is somewhere else."""
        now = self._now[:, rows[0], None]
        costs = self._rising[:, rows[0]].dot(_lacking(self.asked, now))[:, None] + self._surcharges.take(rows)
        costs[self._out_of_reach.take(rows, axis=1)] = np.inf
        self._costs[:, rows] = costs
        self._meeting[:, rows] = np.logical_and.reduce(self.asked <= now)[:, None]
        self._met = np.logical_or.reduce(self._meeting, axis=1)

    def _costs_now(self) -> Matrix:
        with np.errstate(over="ignore", invalid="ignore"):
            lacking = _lacking(self.asked[:, :, None], self._now[:, None, :])
            lacking *= self._rising[:, None, :]
            costs: Matrix = np.add.reduce(lacking)
            costs += self._surcharges
        costs[self._out_of_reach] = np.inf
        return costs


def _lacking(asked: Matrix, now: Matrix) -> Matrix:
    """How much better things have to be. What is neither there nor asked for is NaN in between, and lacks nothing."""
    lacking = asked - now
    return np.fmax(lacking, 0.0, out=lacking)
