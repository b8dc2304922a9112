"""Stage decode: messages of the log → rows, each an event of its declared type or the reasons why it is none.

A message whose events were all taken before is a repeat; of one that overlaps what was taken, only the rest is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from situ.deployment.interpreting import Interpretation
from situ.deployment.plan import Plan
from situ.event.intake import texts_of
from situ.event.isolation import failed_text, is_of_event
from situ.event.message import (
    CLIENT,
    CONTEXT,
    DEPLOYMENT,
    KEY,
    OWN,
    RECEIVED,
    EventKey,
    Stored,
    join_lines,
    position,
    split_lines,
)
from situ.event.own_lines import put_parts, without_parts
from situ.event.row import Bad, Origin, Row
from situ.pipeline.carry import Highest
from situ.subscription import stamp
from situ.subscription.model import ROOT

Former = Callable[[int], Interpretation | None]
"""What contexts did in the deployment of this version; None if nobody knows any more."""


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
        try:
            rows = _as_stamped(message, origin, plan.interpretation, former, bare)
        except Exception as error:
            if not is_of_event(error):
                raise
            rows = _each_as_stamped(message, origin, plan.interpretation, former, bare)
        taken = reached.get(origin.client, (0, 0))
        if (origin.incarnation, origin.seq) <= taken:
            rows = [row for row in rows if (row.incarnation, row.seq) > taken]
        if rows:
            reached[origin.client] = (rows[-1].incarnation, rows[-1].seq)
            yield rows


def _as_stamped(message: Stored, origin: Origin, now: Interpretation, former: Former, bare: bool) -> list[Row | Bad]:
    if OWN in message.headers:
        body, parts = without_parts(message.body)
        rows = _own(now.decode(body, origin, bare=bare))
        put_parts(rows, parts, origin.seq)
        return rows
    then = None if now.knows(origin.context) else former(int(message.headers.get(DEPLOYMENT, "0")))
    if then is None or not then.knows(origin.context):
        return now.decode(message.body, origin, bare=bare)
    rows = then.into_root(then.decode(message.body, origin))
    for row in rows:
        if isinstance(row, Row):
            row.context, row.value = ROOT, None
    return rows


def _each_as_stamped(
    message: Stored, origin: Origin, now: Interpretation, former: Former, bare: bool
) -> list[Row | Bad]:
    """The same, each event by itself: the one that makes it fail is a dead letter."""
    found: list[Row | Bad] = []
    for place, text in enumerate(texts_of(message.body)):
        at = replace(origin, seq=origin.seq + place, pos=origin.pos + place)
        try:
            found += _as_stamped(replace(message, body=join_lines([text])), at, now, former, bare)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            key = EventKey(at.client, at.incarnation, at.seq)
            bad = failed_text(text, key, at.received, error)
            bad.pos, bad.context = at.pos, at.context
            found.append(bad)
    return found


def _own(rows: list[Row | Bad]) -> list[Row | Bad]:
    for row in rows:
        if isinstance(row, Row):
            row.ad = stamp.OWN
    return rows


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
