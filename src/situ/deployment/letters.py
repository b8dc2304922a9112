"""Dead letters as the log of them has them: with the stamp that says who may see them, where there are scopes."""

from __future__ import annotations

from situ.deployment.plan import Plan
from situ.deployment.seeing import NOBODYS
from situ.event.isolation import failed
from situ.event.lines import dead_letter, with_stamp
from situ.event.row import Bad


def letter(bad: Bad, now: int, plan: Plan) -> bytes:
    """The line of the dead letter that says why an event went no further."""
    try:
        line = dead_letter(bad, now)
        return line if plan.seeing is None else plan.seeing.stamped_letter(bad, line)
    except Exception as error:  # noqa: BLE001 - that it failed is told at least, and only to those who may see all
        bare = failed(bad, bad.stage, error, b"")
        bare.size, bare.ad, bare.trace = len(bad.original), "", bad.trace or bare.trace
        line = dead_letter(bare, now)
        return line if plan.seeing is None else with_stamp(line, NOBODYS, plan.seeing.epoch)
