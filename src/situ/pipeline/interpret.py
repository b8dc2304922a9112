"""Stage interpret, twice: what came in put in root's terms, and what is delivered in the terms of who gets it."""

from __future__ import annotations

from collections.abc import Sequence

from situ.deployment.plan import Plan
from situ.deployment.wording import Worded
from situ.event.row import Bad, Row
from situ.subscription.routing import Routed


def interpret(rows: list[Row | Bad], plan: Plan) -> list[Row | Bad]:
    """The rows of one message in root's terms; what was bad before stays as it is."""
    return plan.interpretation.into_root(rows)


def word(rows: Sequence[Row], lines: Sequence[bytes], routed: Routed, plan: Plan) -> Worded:
    """What is delivered of these rows, put in the terms of each context once."""
    return plan.interpretation.worded(rows, lines, routed, plan.routing)
