"""Dead letters as the log of them has them: with the stamp that says who may see them, where there are scopes."""

from __future__ import annotations

from situ.deployment.plan import Plan
from situ.event.lines import dead_letter
from situ.event.row import Bad


def letter(bad: Bad, now: int, plan: Plan) -> bytes:
    """The line of the dead letter that says why an event went no further."""
    line = dead_letter(bad, now)
    return line if plan.seeing is None else plan.seeing.stamped_letter(bad, line)
