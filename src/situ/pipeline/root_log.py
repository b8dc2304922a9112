"""Stage root log: the good events of each message, as the messages of the log that everything else reads.

Boundaries follow those of the messages that came in, so a repeated batch makes the same messages under the same ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import MIXED
from situ.event.message import CLIENT, CONTEXT, COUNT, ID, KEY, RECEIVED, EventKey, Message, join_lines, message_id
from situ.event.row import Row
from situ.pipeline.plans import Plan

ROUTER = "r1"


def root_message(rows: Sequence[Row], lines: Sequence[bytes], plan: Plan) -> Message:
    """The message of the root log that holds these events of one client."""
    first = rows[0]
    types = {row.type for row in rows}
    key = EventKey(first.client, first.incarnation, first.seq)
    return Message(
        subject=plan.names.root(ROUTER, types.pop() if len(types) == 1 else MIXED),
        headers={
            CLIENT: first.client,
            CONTEXT: first.context,
            KEY: str(key),
            COUNT: str(len(rows)),
            RECEIVED: str(first.recv),
            ID: message_id(key, len(rows)),
        },
        body=join_lines(lines),
    )
