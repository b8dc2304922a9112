"""Stage root log: messages of the root log and dead letters, made and read, and the ingress stream in the terms of now.

`ingest` is the whole way of a client's message into the log. `upgrade_message`, `ingress_rows` and `read_lines` read
what is stored, `dead_letters` makes the messages of events that went no further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from situ.contexts.model import ROOT
from situ.event.failures import KEPT, failed, failed_text, is_of_event
from situ.event.lines import (
    bare_lines,
    dead_letter,
    decode_line,
    encode_row,
    encode_rows,
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
    REFUSED,
    STAMP,
    EventKey,
    Message,
    StoredMessage,
    join_lines,
    position,
)
from situ.event.row import BadRow, Error, Origin, Row
from situ.event.subjects import BusNames, pack_dead, pack_root
from situ.lang.records import replace
from situ.stages.decode import STAGE as DECODE
from situ.stages.decode import texts_of
from situ.stages.interpret import Interpretation
from situ.stages.stamp import OWN as OWN_AD
from situ.stages.stamp import stamp
from situ.stages.visibility import NOBODYS

if TYPE_CHECKING:
    from situ.stages.plan import Plan

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
    if (why := message.headers.get(REFUSED)) is not None:
        return [refused(message.body, origin, _ERRORS.decode(why))]
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


_ERRORS = msgspec.json.Decoder(tuple[Error, ...])


def refused(original: bytes, origin: Origin, errors: tuple[Error, ...]) -> BadRow:
    """What was to be an event and is none, as it was found before any stage."""
    return BadRow(
        pos=origin.pos,
        client=origin.client,
        incarnation=origin.incarnation,
        seq=origin.seq,
        context=origin.context,
        recv=origin.received,
        ad="",
        stage=DECODE,
        errors=errors,
        original=original[:KEPT],
        size=len(original) if len(original) > KEPT else None,
    )


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
# From a message of a client to messages of the log: decode, interpret, stamp, write, pack. What one event does to these
# stages is its own misfortune: where many together fail, each is worked by itself, and the one that fails again is bad.

ROUTER = "r1"
_STAGE = "root"


@dataclass(slots=True)
class RootBatch:
    """What becomes of the events of a message: those for the log with their lines, those that go no further, and the
    messages of the log, each with the places of its events. ``last`` is the number of the last event, 0 if all of them
    were taken before."""

    good: list[Row] = field(default_factory=list)
    lines: list[bytes] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)
    last: int = 0
    messages: list[tuple[slice, Message]] = field(default_factory=list)

    def add(self, other: RootBatch) -> None:
        """With what comes behind it; it is not packed before all is there."""
        self.good += other.good
        self.lines += other.lines
        self.bad += other.bad
        self.last = other.last or self.last


def ingest(
    body: bytes,
    key: EventKey,
    count: int,
    received: int,
    plan: Plan,
    router: str,
    *,
    own: bool = False,
    above: tuple[int, int] = (0, 0),
) -> RootBatch:
    """The whole way of a message whose first event has this key into the root log.

    ``own`` is what detection says: nobody asks whether it may. Only events above incarnation and number ``above`` are
    taken: the others were before.
    """
    batch = accept(body, key, received, plan, own=own, above=above)
    pack(batch, plan, router, (key, count))
    return batch


def accept(
    body: bytes, key: EventKey, received: int, plan: Plan, *, own: bool = False, above: tuple[int, int] = (0, 0)
) -> RootBatch:
    """The same but for the messages of the log: for a part of a long message."""
    try:
        return _accept(body, key, received, plan, own=own, above=above)
    except Exception as error:
        if not is_of_event(error):
            raise
    batch = RootBatch()
    for number, text in enumerate(texts_of(body)):
        at = replace(key, seq=key.seq + number)
        try:
            one = _accept(join_lines([text]), at, received, plan, own=own, above=above)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            one = RootBatch(bad=[failed_text(text, at, received, error)], last=at.seq)
        batch.add(one)
    return batch


def _accept(body: bytes, key: EventKey, received: int, plan: Plan, *, own: bool, above: tuple[int, int]) -> RootBatch:
    body, parts = without_parts(body) if own else (body, ())
    origin = Origin(
        client=key.client,
        incarnation=key.incarnation,
        seq=key.seq,
        received=received,
        pos=0,
        context=plan.interpretation.stamped(key.client),
    )
    # They may have no text before they are in root's terms, and have no positions before they are stored.
    rows = plan.interpretation.decode(body, origin, bare=True)
    for row in rows:
        row.pos = 0
    if parts:
        put_parts(rows, parts, key.seq)
    return _accept_rows(rows, plan, own=own, above=above)


def accept_rows(
    rows: list[Row | BadRow], plan: Plan, *, own: bool = False, above: tuple[int, int] = (0, 0)
) -> RootBatch:
    """The same for events that are decoded."""
    try:
        return _accept_rows(rows, plan, own=own, above=above)
    except Exception as error:
        if not is_of_event(error):
            raise
    batch = RootBatch()
    for row in rows:
        try:
            one = _accept_rows([row], plan, own=own, above=above)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            bad = row if isinstance(row, BadRow) else failed(row, _STAGE, error, row.data)
            one = RootBatch(bad=[bad], last=row.seq)
        batch.add(one)
    return batch


def _accept_rows(rows: list[Row | BadRow], plan: Plan, *, own: bool, above: tuple[int, int]) -> RootBatch:
    if rows and (rows[0].incarnation, rows[0].seq) <= above:
        rows = [row for row in rows if (row.incarnation, row.seq) > above]
    good, bad = stamp(plan.interpretation.into_root(rows), plan, own=own)
    batch = write(good, bad)
    batch.last = rows[-1].seq if rows else 0
    return batch


def write(good: list[Row], bad: list[BadRow]) -> RootBatch:
    """Events that are stamped with their lines; those that cannot be written are bad, too."""
    try:
        return RootBatch(good, encode_rows(good), bad)
    except Exception as error:
        if not is_of_event(error):
            raise
    batch = RootBatch(bad=bad)
    for row in good:
        try:
            batch.lines.append(encode_row(row))
            batch.good.append(row)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            bad.append(failed(row, _STAGE, error, row.data))
    return batch


def pack(batch: RootBatch, plan: Plan, router: str = ROUTER, came: tuple[EventKey, int] | None = None) -> None:
    """Put the good events into messages of the log; those that cannot be put into one are bad. ``came``: key and count
    of the message they came in, if what they become keeps its id."""
    good, lines = batch.good, batch.lines
    if not good:
        return
    names, generation = BusNames(plan.zone), plan.interpretation.generation
    try:
        batch.messages = pack_root(names, router, good, lines, came=came, generation=generation)
        return
    except Exception as error:
        if not is_of_event(error):
            raise
    batch.good, batch.lines = [], []
    for row, line in zip(good, lines, strict=True):
        try:
            ((_, message),) = pack_root(names, router, [row], [line], generation=generation)
        except Exception as error:  # noqa: BLE001 - of this event, and of no other
            batch.bad.append(failed(row, _STAGE, error, row.data))
        else:
            place = len(batch.good)
            batch.good.append(row)
            batch.lines.append(line)
            batch.messages.append((slice(place, place + 1), message))


def dead_letters(bad: Sequence[BadRow], now: int, plan: Plan) -> list[Message]:
    """A message for each event that went no further."""
    return [pack_dead(BusNames(plan.zone), each, dead_letter_line(each, now, plan)) for each in bad]


def read_lines(message: StoredMessage | Message) -> tuple[list[Row], list[bytes]]:
    """The events of a message of a log, and their lines as they may be delivered: without stamps."""
    lines = stored_lines(message)
    rows = [decode_line(line) for line in lines]
    return rows, bare_lines(rows, lines)
