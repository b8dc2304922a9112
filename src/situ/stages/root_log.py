"""Logs, read in the terms of now. What was put into the root log before a type of root was replaced goes through the
same functions as what comes in from those who know the old type only; what waits in the ingress stream says in whose
terms it is, and which deployment knew them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from situ.deployment.interpreting import Interpretation
from situ.event.intake import texts_of
from situ.event.isolation import failed_text, is_of_event
from situ.event.lines import decode_line, encode_row, stamped_line, stored_lines
from situ.event.message import (
    CLIENT,
    CONTEXT,
    DEPLOYMENT,
    GENERATION,
    KEY,
    OWN,
    RECEIVED,
    STAMP,
    EventKey,
    Stored,
    join_lines,
    position,
)
from situ.event.own_lines import put_parts, without_parts
from situ.event.row import Bad, Origin, Row
from situ.interpretation.model import ROOT
from situ.subscription import stamp

Former = Callable[[int], Interpretation | None]
"""What contexts did in the deployment of this version; None if nobody knows any more."""

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


# ── the ingress stream ──


def origin_of(message: Stored) -> Origin:
    """Where the events of a message come from, as its router wrote on it."""
    key = EventKey.parse(message.headers[KEY])
    return Origin(
        client=message.headers.get(CLIENT, key.client),
        incarnation=key.incarnation,
        seq=key.seq,
        context=message.headers.get(CONTEXT, ROOT),
        received=int(message.headers.get(RECEIVED, message.at)),
        pos=position(message.seq),
    )


def ingress_rows(
    message: Stored, origin: Origin, now: Interpretation, former: Former, *, bare: bool
) -> list[Row | Bad]:
    """The rows of a message; those of a version of a context that is not in force are in root's terms already.

    ``bare`` rows may have no text before they are in root's terms. An event on which this fails is a dead letter.
    """
    try:
        return _stamped_rows(message, origin, now, former, bare)
    except Exception as error:
        if not is_of_event(error):
            raise
    found: list[Row | Bad] = []
    for place, text in enumerate(texts_of(message.body)):
        at = replace(origin, seq=origin.seq + place, pos=origin.pos + place)
        try:
            found += _stamped_rows(replace(message, body=join_lines([text])), at, now, former, bare)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            bad = failed_text(text, EventKey(at.client, at.incarnation, at.seq), at.received, error)
            bad.pos, bad.context = at.pos, at.context
            found.append(bad)
    return found


def _stamped_rows(message: Stored, origin: Origin, now: Interpretation, former: Former, bare: bool) -> list[Row | Bad]:
    if OWN in message.headers:
        body, parts = without_parts(message.body)
        rows = now.decode(body, origin, bare=bare)
        put_parts(rows, parts, origin.seq)
        for row in rows:
            if isinstance(row, Row):
                row.ad = stamp.OWN
        return rows
    then = None if now.knows(origin.context) else former(int(message.headers.get(DEPLOYMENT, "0")))
    if then is None or not then.knows(origin.context):
        return now.decode(message.body, origin, bare=bare)
    rows = then.into_root(then.decode(message.body, origin))
    for row in rows:
        if isinstance(row, Row):
            row.context, row.value = ROOT, None
    return rows
