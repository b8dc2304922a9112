"""Stage root log: the good events of each message, as the messages of the log that everything else reads.

Boundaries follow those of the messages that came in, so a repeated batch makes the same messages under the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import Names
from situ.bus.packing import pack_root
from situ.deployment.plan import Plan
from situ.event.message import Message
from situ.event.row import Row

ROUTER = "r1"


def root_message(rows: Sequence[Row], lines: Sequence[bytes], plan: Plan) -> Message:
    """The message of the root log that holds these events of one client."""
    return pack_root(Names(plan.zone), ROUTER, rows, lines, generation=plan.interpretation.generation)
