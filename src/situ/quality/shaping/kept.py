"""Events that wait inside of filters, as they are written down: their line with its stamp, and their position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from situ.event.lines import decode_line, encode_row, stamped_line
from situ.event.row import Row

MOST_KEYS = 100_000
"""Keys that a filter remembers; the ones that it has known for longest are forgotten beyond that."""


def row_as_json(row: Row) -> list[Any]:
    return [stamped_line(row, encode_row(row)).decode(), row.pos]


def row_from_json(stored: Sequence[Any]) -> Row:
    text, pos = stored
    return decode_line(text.encode(), pos=pos)
