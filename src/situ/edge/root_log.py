"""Stage root log: the good events of a message, as a message of the log; and those that are not, as dead letters.

The message keeps the id it came under, so sent again it is stored once, whatever is made of it by then.
"""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import Names
from situ.bus.packing import pack_dead, pack_root
from situ.deployment.letters import letter
from situ.deployment.plan import Plan
from situ.event.lines import bare_lines, decode_line, placed_line, stored_lines
from situ.event.message import Message, Stored, position
from situ.event.row import Bad, Row


def root_message(rows: Sequence[Row], lines: Sequence[bytes], id: str, router: str, plan: Plan) -> Message:
    """The message of the root log that holds these events of one client."""
    return pack_root(Names(plan.zone), router, rows, lines, id=id, generation=plan.interpretation.generation)


def dead_letters(bad: Sequence[Bad], now: int, plan: Plan) -> list[Message]:
    """A message for each event that went no further."""
    return [pack_dead(Names(plan.zone), each, letter(each, now, plan)) for each in bad]


def place(rows: Sequence[Row], lines: Sequence[bytes], seq: int) -> list[bytes]:
    """Give stored events their positions; their lines for delivery say them. Those that have one keep it."""
    placed: list[bytes] = []
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if row.pos:
            placed.append(line)
            continue
        row.pos = pos = position(seq, number)
        placed.append(placed_line(line, pos))
    return placed


def read_lines(message: Stored | Message) -> tuple[list[Row], list[bytes]]:
    """The events of a message of a log, and their lines as they may be delivered: without stamps."""
    lines = stored_lines(message)
    rows = [decode_line(line) for line in lines]
    return rows, bare_lines(rows, lines)
