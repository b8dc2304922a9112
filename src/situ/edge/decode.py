"""Stage decode: a message of a client → rows, each an event of its declared type or the reasons why it is none."""

from __future__ import annotations

from situ.deployment.plan import Plan
from situ.event.message import EventKey
from situ.event.row import Bad, Origin, Row


def decode(body: bytes, key: EventKey, received: int, plan: Plan) -> list[Row | Bad]:
    """The rows of a message whose first event has this key. They have no positions before they are stored.

    Nor may they have text before they are in root's terms.
    """
    origin = Origin(
        client=key.client,
        incarnation=key.incarnation,
        seq=key.seq,
        received=received,
        pos=0,
        context=plan.interpretation.stamped(key.client),
    )
    rows = plan.interpretation.decode(body, origin, bare=True)
    for row in rows:
        row.pos = 0
    return rows
