"""Lines of what policies publish, on their way into the log: each may end with the stamps of what it comes from.

A policy's events are taken in like those of any other client, but for these: its own stamp an event gets where it comes
in, and what it comes from only detection knows. Whoever is not detection cannot say such a thing: what clients send is
never read like this.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from situ.event.message import join_lines, split_lines
from situ.event.row import Bad, Row

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


def put_parts(rows: Sequence[Row | Bad], parts: Sequence[str], first: int) -> None:
    """Give rows of a message what stood behind their lines; ``first`` is the number of its first event."""
    if parts:
        for row in rows:
            if isinstance(row, Row):
                row.parts = parts[row.seq - first]
