"""Stage decode: messages of the log → rows, each an event of its declared type or the reasons why it is none.

A message whose events were all taken before is a repeat; of one that overlaps what was taken, only the rest is.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from situ.deployment.former_terms import Former, ingress_rows, origin_of
from situ.deployment.plan import Plan
from situ.event.message import Stored, split_lines
from situ.event.row import Bad, Origin, Row
from situ.pipeline.carry import Highest


def decode(
    messages: Iterable[Stored], plan: Plan, highest: Highest, former: Former, *, bare: bool = False
) -> Iterator[list[Row | Bad]]:
    """The rows of each message, without those whose keys are not above the highest of their client.

    Those of a version of a context that is not in force are in root's terms already: that one put them there. ``bare``
    rows may have no text before they are in root's terms.
    """
    reached = dict(highest)
    for message in messages:
        origin = origin_of(message)
        rows = ingress_rows(message, origin, plan.interpretation, former, bare=bare)
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
