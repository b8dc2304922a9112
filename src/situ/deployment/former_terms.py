"""The root log, read in the terms of now: what was stored before a type of root was replaced goes through the same
functions as what comes in from those who know the old type only.
"""

from __future__ import annotations

from dataclasses import replace

from situ.deployment.interpreting import Interpretation
from situ.event.lines import decode_line, encode_row, stamped_line, stored_lines
from situ.event.message import GENERATION, STAMP, Stored, join_lines
from situ.event.row import Row
from situ.interpretation.model import ROOT

LOST = "situ.lost"
"""The type of an event that cannot be put in the terms of now: nobody asks for it, and its place is kept."""


def in_terms_of_now(stored: Stored, interpretation: Interpretation) -> Stored:
    """A message of the root log; itself, unless a type was replaced since it was stored."""
    generation = int(stored.headers.get(GENERATION, "1"))
    if generation >= interpretation.generation:
        return stored
    former = interpretation.contexts.get(f"{ROOT}.v{generation}")
    if former is None:
        return stored
    lines = [_brought(line, former.name, interpretation) for line in stored_lines(stored)]
    headers = {name: value for name, value in stored.headers.items() if name != STAMP}
    return replace(stored, body=join_lines(lines), headers=headers)


def _brought(line: bytes, former: str, interpretation: Interpretation) -> bytes:
    row = decode_line(line)
    sender, row.context = row.context, former
    (found,) = interpretation.into_root([row])
    row.context, row.sent = sender, None
    if not isinstance(found, Row):
        row.type = LOST
    return stamped_line(row, encode_row(row))
