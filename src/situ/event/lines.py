"""Events as lines of text: in the root log and in deliveries, as dead letters, and as policies publish them.

A line is the event in CloudEvents JSON, compact, its data last. Lines are written once and read by engines and clients
of Situ only, so reading trusts them: what clients send goes through :mod:`situ.stages.decode` instead.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache
from operator import attrgetter

import msgspec

from situ.event.instants import SECOND, microseconds, print_instant, read_instant
from situ.event.message import STAMP, Message, StoredMessage, join_lines, position, split_lines
from situ.event.row import BadRow, Row, print_percent

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Lines of rows, their stamps, and dead letters.
#
# In the logs the line of an event that is stamped for visibility ends with its stamp. The stamp is put on last and
# taken off before anything is delivered: no client gets to see it. Events of a message mostly have the same stamp; then
# a header of the message says it once, and the lines do not.

MOST_OTHERS = 20
"""Further errors that a dead letter names."""


class _RowLine(msgspec.Struct, gc=False):
    id: str
    source: str
    type: str
    time: str
    situkey: str
    data: msgspec.Raw
    siturecv: str = ""
    confidence: str = ""
    situad: str = ""
    situfrom: str = ""
    situcontext: str = "root"
    situpos: str = ""
    situtags: int = 0
    situepoch: int = 0
    situbits: str = ""
    situparts: str = ""


class _WrittenLine(msgspec.Struct, gc=False):
    """The same, in the order in which it is written."""

    specversion: str
    id: str
    source: str
    type: str
    time: str
    confidence: str | msgspec.UnsetType
    situkey: str
    situad: str | msgspec.UnsetType
    situfrom: str | msgspec.UnsetType
    siturecv: str | msgspec.UnsetType
    data: msgspec.Raw
    situpos: str | msgspec.UnsetType


class _DeadLetter(msgspec.Struct, omit_defaults=True, kw_only=True, gc=False):
    """The data of :data:`situ.lang.types.table.DEAD_LETTER`, in declared order."""

    code: str
    stage: str
    path: str
    message: str
    hint: str
    others: list[str] = []
    key: str
    ad: str
    context: str
    plan: str = ""
    encoding: str = ""
    size: int = -1
    original: str


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_RowLine).decode
_START = b'{"specversion":"1.0",'
_FIRST = b'"id":'
_NEXT = b',"id":'
_PLAIN = _START + _FIRST
_STAMP = b',"situtags":'  # looked for from the end of a line: data may have an attribute of this name
_stamped_with = attrgetter("tags", "epoch", "bits", "parts")


def encode_row(row: Row) -> bytes:
    """The line of an event; without its position where that is not known yet, and 0."""
    return _with_foreign(row, _encode(_written(row)))


def encode_rows(rows: Sequence[Row]) -> list[bytes]:
    """The lines of events, most of which came in together: what they have in common is written once."""
    lines: list[bytes] = []
    common: tuple[str, str, str, int, str, str, int] | None = None
    second: int | None = None
    middle = key = end = time = received = b""
    for row in rows:
        # Most rows have neither: their lines are put together by hand, attributes in the order of `_WrittenLine`.
        if row.ext or row.confidence is not None:
            lines.append(encode_row(row))
            continue
        own = (row.source, row.type, row.client, row.incarnation, row.ad, row.context, row.recv)
        if own != common:
            common = own
            middle = b',"source":%b,"type":%b,"time":"' % (_encode(row.source), _encode(row.type))
            key = b'","situkey":"%b.%d.' % (row.client.encode(), row.incarnation)
            end = b'","situad":%b' % _encode(row.ad) if row.ad else b'"'
            if row.context != "root":
                end += b',"situfrom":%b' % _encode(row.context)
            received = b'%b,"siturecv":"%b"' % (end, print_instant(row.recv).encode())
        # Events come in the order of time, more or less: of most the second is that of the one before.
        seconds, fraction = divmod(row.time, SECOND)
        if seconds != second:
            second, time = seconds, print_instant(row.time - fraction)[:-1].encode()
        line = b'%b%b%b%b%b%b%d%b,"data":%b' % (
            _PLAIN, _encode(row.id), middle, time, b".%06dZ" % fraction if fraction else b"Z",
            key, row.seq, end if row.recv == row.time else received, row.data,
        )  # fmt: skip
        lines.append(b'%b,"situpos":"%d"}' % (line, row.pos) if row.pos else line + b"}")
    return lines


def placed_line(line: bytes, pos: int) -> bytes:
    """The line of an event that had no position, with this one."""
    return b'%b,"situpos":"%d"}' % (line[:-1], pos)


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


def stamped_line(row: Row, line: bytes) -> bytes:
    """The line of an event as a log has it: with its stamp, if it has one."""
    return with_stamp(line, row.tags, row.epoch, row.bits, row.parts) if row.epoch else line


def with_stamp(line: bytes, tags: int, epoch: int, bits: int = 0, parts: str = "") -> bytes:
    """A line that has no stamp, with this one."""
    return line[:-1] + _stamp(tags, epoch, bits, parts)


def stamped_lines(rows: Sequence[Row], lines: Sequence[bytes]) -> Sequence[bytes]:
    """The same for many; if none of them has a stamp, the lines themselves."""
    if not any(row.epoch for row in rows):
        return lines
    return [stamped_line(row, line) for row, line in zip(rows, lines, strict=True)]


def common_stamp(rows: Sequence[Row]) -> str:
    """The stamp of all these events, as the header of a message says it; nothing if they have none or several."""
    first = rows[0]
    if not first.epoch or first.parts or len(set(map(_stamped_with, rows))) > 1:
        return ""
    return f"{first.tags}.{first.epoch}.{first.bits:x}"


def log_lines(rows: Sequence[Row], lines: Sequence[bytes]) -> tuple[str, Sequence[bytes]]:
    """The stamp for the header of a message of a log, and its lines: each says its own if there is not one for all."""
    stamp = common_stamp(rows)
    return stamp, lines if stamp else stamped_lines(rows, lines)


def read_stamp(said: str) -> tuple[int, int, int]:
    """Tags, epoch and bits of what :func:`common_stamp` said."""
    tags, epoch, bits = said.split(".")
    return int(tags), int(epoch), int(bits, 16)


def stored_lines(message: StoredMessage | Message) -> list[bytes]:
    """The lines of a message of a log or a queue, each with its stamp."""
    lines = split_lines(message.body)
    said = message.headers.get(STAMP)
    if not said:
        return lines
    stamp = _stamp(*read_stamp(said), "")
    return [line[:-1] + stamp for line in lines]


@lru_cache(maxsize=10_000)
def _stamp(tags: int, epoch: int, bits: int, parts: str) -> bytes:
    """What stands behind everything else in a line; most events have the stamp of others."""
    passed = b',"situbits":"%x"' % bits if bits else b""
    inside = b',"situparts":%b' % _encode(parts) if parts else b""
    return b'%b%d,"situepoch":%d%b%b}' % (_STAMP, tags, epoch, passed, inside)


def waiting_line(row: Row, line: bytes) -> bytes:
    """The line of an event as it waits for durable subscriptions among scopes: always stamped, if with nothing."""
    return with_stamp(line, row.tags, row.epoch, row.bits, row.parts)


def handed_line(line: bytes) -> bytes:
    """What :func:`waiting_line` was given."""
    return line[: line.rindex(_STAMP)] + b"}"


def bare_line(row: Row, line: bytes) -> bytes:
    """The line of an event as it may be delivered: without the stamp that a log has put behind everything else."""
    return line[: line.rindex(_STAMP)] + b"}" if row.epoch else line


def bare_lines(rows: Sequence[Row], lines: list[bytes]) -> list[bytes]:
    """The same for many; if none of them is stamped, the list itself."""
    if not any(row.epoch for row in rows):
        return lines
    return [bare_line(row, line) for row, line in zip(rows, lines, strict=True)]


def _written(row: Row) -> _WrittenLine:
    return _WrittenLine(
        "1.0",
        row.id,
        row.source,
        row.type,
        print_instant(row.time),
        msgspec.UNSET if row.confidence is None else print_percent(row.confidence),
        f"{row.client}.{row.incarnation}.{row.seq}",
        row.ad or msgspec.UNSET,
        row.context if row.context != "root" else msgspec.UNSET,
        msgspec.UNSET if row.recv == row.time else print_instant(row.recv),
        msgspec.Raw(row.data),
        str(row.pos) if row.pos else msgspec.UNSET,
    )


def _with_foreign(row: Row, line: bytes) -> bytes:
    """Foreign attributes stand where they are found again without looking at the rest."""
    return b"%s%s,%s" % (_START, row.ext.encode(), line[len(_START) :]) if row.ext else line


def decode_line(line: bytes, *, pos: int | None = None) -> Row:
    """The row whose line this is. ``pos`` is its position if the line does not say."""
    read = _decode(line)
    ext = "" if line.startswith(_PLAIN) else _foreign(line)
    client, incarnation, seq = read.situkey.rsplit(".", 2)
    return Row(
        int(read.situpos) if read.situpos else pos or 0,
        client,
        int(incarnation),
        int(seq),
        read.situfrom or read.situcontext,  # logs of earlier releases have the sender's context under this name
        _time(read.siturecv or read.time),
        read.id,
        read.source,
        read.type,
        _time(read.time),
        read.situad,
        float(read.confidence) if read.confidence else None,
        ext,
        bytes(read.data),
        None,
        None,
        read.situtags,
        read.situepoch,
        int(read.situbits, 16) if read.situbits else 0,
        read.situparts,
    )


def _foreign(line: bytes) -> str:
    """What stands between version and id; a delivery puts its own attributes before.

    No text inside of an attribute can look like these: its quotes would be escaped.
    """
    start = line.index(_START[1:]) + len(_START) - 1
    return "" if line.startswith(_FIRST, start) else line[start : line.index(_NEXT, start)].decode()


def _time(text: str) -> int:
    found = read_instant(text)
    if found is not None:
        return found
    from situ.lang.types.scalars import read_timestamp

    return microseconds(read_timestamp(text))


def dead_letter(bad: BadRow, now: int) -> bytes:
    """The line of the ``situ.deadletter`` event that says why an event went no further.

    Its client is derived from that of the event, so that whoever sent it can be told, which it would not be of its own
    events; id and key follow from the event's key, so that a repetition is known as one.
    """
    from situ.lang.types.table import DEAD_LETTER

    (code, path, message, hint), *others = bad.errors
    encoding = ""
    try:
        original = bad.original.decode()
    except UnicodeDecodeError:
        original, encoding = base64.b64encode(bad.original).decode("ascii"), "base64"
    letter = _DeadLetter(
        code=code,
        stage=bad.stage,
        path=path,
        message=message,
        hint=hint,
        key=bad.key,
        ad=bad.ad,
        context=bad.context,
        original=original,
        others=[f"{code}: {message}" for code, _, message, _ in others[:MOST_OTHERS]],
        plan=bad.plan,
        encoding=encoding,
        size=-1 if bad.size is None else bad.size,
    )
    client = dead_client(bad.client)
    return encode_row(
        Row(
            pos=bad.pos,
            client=client,
            incarnation=bad.incarnation,
            seq=bad.seq,
            context="root",
            recv=bad.recv,
            id=f"{bad.key}.{bad.stage}",
            source=f"{client}/{bad.stage}",
            type=DEAD_LETTER.name,
            time=now,
            ad="",
            confidence=None,
            ext="",
            data=_encode(letter),
        )
    )


_LONGEST_CLIENT = 64


def dead_client(client: str) -> str:
    """The client as which dead letters of this one are published."""
    name = f"dead-{client}"
    if len(name) <= _LONGEST_CLIENT:
        return name
    return f"dead-{hashlib.sha256(client.encode()).hexdigest()[:32]}"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Lines that policies publish, on their way into the log: each may end with the stamps of the events it comes from.
#
# A policy's events are taken in like those of any other client, but for this: an event gets its own stamp where it
# comes in, and only detection knows what it comes from. No other client can say such a thing: what clients send is
# never read like this.

_PARTS = b',"situparts":"'
_END = re.compile(rb',"situparts":"([^"\\]*)"\}\Z')
"""Behind everything else: data that ends like this would end with one more bracket."""


def with_parts(line: bytes, parts: str) -> bytes:
    """The line of an event, its data last, with the stamps of what it comes from."""
    return b'%b%b%b"}' % (line[:-1], _PARTS, parts.encode()) if parts else line


def without_parts(body: bytes) -> tuple[bytes, Sequence[str]]:
    """A message of a policy as other clients send theirs, and what stood behind its events; empty, if nothing did."""
    if _PARTS not in body:
        return body, ()
    lines, parts = [], []
    for line in split_lines(body):
        found = _END.search(line)
        lines.append(line if found is None else line[: found.start()] + b"}")
        parts.append("" if found is None else found[1].decode())
    return join_lines(lines), parts


def put_parts(rows: Sequence[Row | BadRow], parts: Sequence[str], first: int) -> None:
    """Give rows of a message what stood behind their lines; ``first`` is the number of its first event."""
    if parts:
        for row in rows:
            if isinstance(row, Row):
                row.parts = parts[row.seq - first]
