"""Stage decode: messages of the log → rows, each an event of its declared type or the reasons why it is none.

A message whose events were all taken before is a repeat; of one that overlaps what was taken, only the rest is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from situ.deployment.plan import Plan
from situ.event.message import CLIENT, CONTEXT, KEY, RECEIVED, EventKey, Stored, position, split_lines
from situ.event.row import Bad, Origin, Row
from situ.pipeline.carry import Highest


def decode(messages: Iterable[Stored], plan: Plan, highest: Highest) -> Iterator[list[Row | Bad]]:
    """The rows of each message, without those whose keys are not above the highest of their client."""
    reached = dict(highest)
    for message in messages:
        origin = origin_of(message)
        rows = plan.interpretation.decode(message.body, origin)
        taken = reached.get(origin.client, (0, 0))
        if (origin.incarnation, origin.seq) <= taken:
            rows = [row for row in rows if (row.incarnation, row.seq) > taken]
        if rows:
            reached[origin.client] = (rows[-1].incarnation, rows[-1].seq)
            yield rows


def take_events(messages: Iterable[Stored], highest: Highest) -> Iterator[tuple[Origin, list[bytes]]]:
    """The events of each message as they were sent, for those who decode them in their own way."""
    reached = dict(highest)
    for message in messages:
        origin = origin_of(message)
        lines = split_lines(message.body)
        if (origin.incarnation, origin.seq) > reached.get(origin.client, (0, 0)):
            reached[origin.client] = (origin.incarnation, origin.seq + len(lines) - 1)
            yield origin, lines


def origin_of(message: Stored) -> Origin:
    """Where the events of a message come from, as its router wrote on it."""
    key = EventKey.parse(message.headers[KEY])
    return Origin(
        client=message.headers.get(CLIENT, key.client),
        incarnation=key.incarnation,
        seq=key.seq,
        context=message.headers.get(CONTEXT, "root"),
        received=int(message.headers.get(RECEIVED, message.at)),
        pos=position(message.seq),
    )
