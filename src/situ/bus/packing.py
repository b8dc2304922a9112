"""How events are put into the messages of the logs and of deliveries: subjects, headers, ids.

All engines pack alike, so whoever reads a stream need not know which of them wrote it. A message that is stored has an
id made of what it holds; made again from the same events it is stored once.
"""

from __future__ import annotations

from collections.abc import Sequence

from situ.bus.names import MIXED, Names
from situ.event.lines import common_stamp, stamped_lines, waiting_line
from situ.event.message import (
    CLIENT,
    CONTEXT,
    COUNT,
    DECIDED,
    GENERATION,
    ID,
    KEY,
    POLICIES,
    RECEIVED,
    STAMP,
    EventKey,
    Message,
    join_lines,
    message_id,
)
from situ.event.row import BEHIND_LOG, OUTBOUND, Bad, Row

LARGEST = 1024 * 1024
"""Bytes of lines that are put into one message of the root log, if there are several."""


def portions(lines: Sequence[bytes], most: int = LARGEST) -> list[slice]:
    """The lines that go into one message each. Mostly that is all of them.

    Lines of the log are longer than what was sent: a client that puts as many events into a message as fit would have
    made one that the bus does not take.
    """
    if sum(map(len, lines)) <= most:
        return [slice(0, len(lines))]
    found, begin, size = [], 0, 0
    for place, line in enumerate(lines):
        if size and size + len(line) > most:
            found.append(slice(begin, place))
            begin, size = place, 0
        size += len(line) + 2
    return [*found, slice(begin, len(lines))]


def pack_root(
    names: Names, router: str, rows: Sequence[Row], lines: Sequence[bytes], *, id: str = "", generation: int = 1
) -> Message:
    """The message of the root log that holds these events of one client; ``id`` if it is to keep that of another.

    Lines come without stamps: those are put where they belong here. ``generation`` counts the roots that there were
    with the one in whose terms the events are.
    """
    first = rows[0]
    types = {row.type for row in rows}
    key = EventKey(first.client, first.incarnation, first.seq)
    stamp = common_stamp(rows)
    return Message(
        subject=names.root(router, types.pop() if len(types) == 1 else MIXED),
        headers={
            CLIENT: first.client,
            CONTEXT: first.context,
            KEY: str(key),
            COUNT: str(len(rows)),
            RECEIVED: str(first.recv),
            ID: id or message_id(key, len(rows)),
            **({GENERATION: str(generation)} if generation > 1 else {}),
            **({STAMP: stamp} if stamp else {}),
        },
        body=join_lines(lines if stamp else stamped_lines(rows, lines)),
    )


def pack_dead(names: Names, bad: Bad, line: bytes) -> Message:
    """A dead letter; each has its own message, since what was sent may be as large as a message can be."""
    # What is in the log may fail in several stages, and on its way out in several contexts, each for its own reasons.
    id = f"dead+{bad.key}"
    if bad.stage == OUTBOUND:
        id += f"+{bad.context.partition('@')[0]}"
    elif bad.stage in BEHIND_LOG:
        id += f"+{bad.stage}"
    headers = {CLIENT: bad.client, COUNT: "1", ID: id}
    return Message(subject=names.dead(bad.client), headers=headers, body=join_lines([line]))


def pack_late(names: Names, row: Row, line: bytes, policies: Sequence[str]) -> Message:
    """An event that came too late for these policies."""
    headers = {CLIENT: row.client, COUNT: "1", ID: f"late+{row.key}", POLICIES: ",".join(policies)}
    return Message(subject=names.late(row.type), headers=headers, body=join_lines([line]))


def pack_group(names: Names, group: str, rows: Sequence[Row], lines: Sequence[bytes], decided: str = "") -> Message:
    """Events of one delivery group in the order of the log; what has no position in it is known by its key.

    Among scopes, ``decided`` says by what it was decided that the group may see them, and they wait with their stamps.
    """
    first, count = rows[0], len(lines)
    headers = {COUNT: str(count), ID: f"{group}+{first.pos or first.key}+{count}"}
    if decided:
        headers[DECIDED] = decided
        if stamp := common_stamp(rows):
            headers[STAMP] = stamp
        else:
            lines = [waiting_line(row, line) for row, line in zip(rows, lines, strict=True)]
    return Message(subject=names.out(group), headers=headers, body=join_lines(lines))


def pack_live(names: Names, client: str, lines: Sequence[bytes]) -> Message:
    """Events for a client that is there now."""
    return Message(subject=names.live(client), headers={COUNT: str(len(lines))}, body=join_lines(lines))


def live_line(line: bytes, subscriptions: str) -> bytes:
    """The line of an event that says which of the client's subscriptions it is for."""
    return b'{"situsubs":"%s",%s' % (subscriptions.encode(), line[1:])
