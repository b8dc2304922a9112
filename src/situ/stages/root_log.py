"""Stage root log: messages of the root log and dead letters, made and read, and the ingress stream in the terms of now.

`upgrade_message` and `ingress_rows` read what is stored, `dead_letter_line` makes the line of a dead letter,
`root_message` and `dead_letters` make messages, `place` gives stored events their positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from situ.contexts.model import ROOT
from situ.event.failures import failed, failed_text, is_of_event
from situ.event.lines import (
    bare_lines,
    dead_letter,
    decode_line,
    encode_row,
    placed_line,
    put_parts,
    stamped_line,
    stored_lines,
    with_stamp,
    without_parts,
)
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
    Message,
    StoredMessage,
    join_lines,
    position,
)
from situ.event.row import BadRow, Origin, Row
from situ.event.subjects import BusNames, pack_dead, pack_root
from situ.stages.decode import texts_of
from situ.stages.interpret import Interpretation
from situ.stages.plan import Plan
from situ.stages.stamp import OWN as OWN_AD
from situ.stages.visibility import NOBODYS

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Logs, read in the terms of now. What was put into the root log before a type of root was replaced goes through the
# same functions as what comes in from those who know the old type only; what waits in the ingress stream says in whose
# terms it is, and which deployment knew them.

Former = Callable[[int], Interpretation | None]
"""What contexts did in the deployment of this version; None if nobody knows any more."""

LOST = "situ.lost"
"""The type of an event that cannot be put in the terms of now: nobody asks for it, and its place is kept."""


def upgrade_message(stored: StoredMessage, interpretation: Interpretation) -> StoredMessage:
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


def origin_of(message: StoredMessage) -> Origin:
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
    message: StoredMessage, origin: Origin, now: Interpretation, former: Former, *, bare: bool
) -> list[Row | BadRow]:
    """The rows of a message; those of a version of a context that is not in force are in root's terms already.

    ``bare`` rows may have no text before they are in root's terms. An event on which this fails is a dead letter.
    """
    try:
        return _stamped_rows(message, origin, now, former, bare)
    except Exception as error:
        if not is_of_event(error):
            raise
    found: list[Row | BadRow] = []
    for place, text in enumerate(texts_of(message.body)):
        at = replace(origin, seq=origin.seq + place, pos=origin.pos + place)
        try:
            found += _stamped_rows(replace(message, body=join_lines([text])), at, now, former, bare)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            bad = failed_text(text, EventKey(at.client, at.incarnation, at.seq), at.received, error)
            bad.pos, bad.context = at.pos, at.context
            found.append(bad)
    return found


def _stamped_rows(
    message: StoredMessage, origin: Origin, now: Interpretation, former: Former, bare: bool
) -> list[Row | BadRow]:
    if OWN in message.headers:
        body, parts = without_parts(message.body)
        rows = now.decode(body, origin, bare=bare)
        put_parts(rows, parts, origin.seq)
        for row in rows:
            if isinstance(row, Row):
                row.ad = OWN_AD
        return rows
    then = None if now.knows(origin.context) else former(int(message.headers.get(DEPLOYMENT, "0")))
    if then is None or not then.knows(origin.context):
        return now.decode(message.body, origin, bare=bare)
    rows = then.into_root(then.decode(message.body, origin))
    for row in rows:
        if isinstance(row, Row):
            row.context, row.value = ROOT, None
    return rows


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Dead letters as the log of them has them: with the stamp that says who may see them, where there are scopes.


def dead_letter_line(bad: BadRow, now: int, plan: Plan) -> bytes:
    """The line of the dead letter that says why an event went no further."""
    try:
        line = dead_letter(bad, now)
        return line if plan.seeing is None else plan.seeing.stamped_letter(bad, line)
    except Exception as error:  # noqa: BLE001 - that it failed is told at least, and only to those who may see all
        bare = failed(bad, bad.stage, error, b"")
        bare.size, bare.ad, bare.trace = len(bad.original), "", bad.trace or bare.trace
        line = dead_letter(bare, now)
        return line if plan.seeing is None else with_stamp(line, NOBODYS, plan.seeing.epoch)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The good events of a message, as a message of the log; and those that are not, as dead letters. The message keeps the
# id it came under, so sent again it is stored once, whatever is made of it by then.


def root_message(rows: Sequence[Row], lines: Sequence[bytes], id: str, router: str, plan: Plan) -> Message:
    """The message of the root log that holds these events of one client."""
    return pack_root(BusNames(plan.zone), router, rows, lines, id=id, generation=plan.interpretation.generation)


def dead_letters(bad: Sequence[BadRow], now: int, plan: Plan) -> list[Message]:
    """A message for each event that went no further."""
    return [pack_dead(BusNames(plan.zone), each, dead_letter_line(each, now, plan)) for each in bad]


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


def read_lines(message: StoredMessage | Message) -> tuple[list[Row], list[bytes]]:
    """The events of a message of a log, and their lines as they may be delivered: without stamps."""
    lines = stored_lines(message)
    rows = [decode_line(line) for line in lines]
    return rows, bare_lines(rows, lines)
