"""Looking ahead: of some expectations that are decided next, who is met by the plan and what the others roughly cost.

Worked out for all of them and all rows of a field at once, and after that only for rows that move: deciding on one
after the other takes no more than comparing the numbers of its row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.rows import Flags, Matrix, Numbers, any_below


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
        self._met = self._who_is_met()
        with np.errstate(over="ignore", invalid="ignore"):
            self._costs = self._costs_of(np.arange(len(surcharges)))
            """Of expectations by rows."""

    def is_met(self, place: int) -> bool:
        return bool(self._met[place])

    def costs(self, place: int) -> Matrix:
        """About what it costs more to have each row good enough: infinite where that cannot be, NaN where only trying
        tells."""
        costs: Matrix = self._costs[place]
        return costs

    def improve(self, row: int) -> None:
        """The profile of a row is better than it was in some properties, and worse in none."""
        now = self._now[:, row, None]
        lacking = np.fmax(self.asked - now, 0.0)  # NaN is neither there nor asked for
        costs = self._rising[:, row].dot(lacking)
        costs[self._out_of_reach[:, row]] = np.inf
        self._costs[:, row] = costs
        self._met |= np.logical_and.reduce(self.asked <= now)

    def change(self, rows: Sequence[int]) -> None:
        """The profile of some rows is somewhere else."""
        self._costs[:, rows] = self._costs_of(rows)
        self._met = self._who_is_met()

    def _costs_of(self, rows: Sequence[int] | Numbers) -> Matrix:
        lacking = np.fmax(self.asked[:, :, None] - self._now.take(rows, axis=1)[:, None, :], 0.0)
        costs: Matrix = np.einsum("pnr,pr->nr", lacking, self._rising.take(rows, axis=1))
        costs += self._surcharges.take(rows)
        costs[self._out_of_reach.take(rows, axis=1)] = np.inf
        return costs

    def _who_is_met(self) -> Flags:
        return np.asarray(~any_below(self._now, self.asked).all(axis=1))
