"""The text of one document and the places in it.

Owns decoding, the limits on what is read at all, and the way from a character's index to a
:class:`~situ.errors.Location`. Knows nothing of YAML, JSON or nodes, and reads no file.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property

from situ.catalogue import DOCUMENT_TOO_LARGE, NOT_UTF8
from situ.errors import Location, Problem

LINE_BREAK = re.compile(r"\r\n|\n|\r")

_DEEPEST = 128
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of a document is read before it is refused; what is refused costs no more than this."""

    size: int = 4 * 1024 * 1024
    depth: int = 64
    nodes: int = 200_000
    problems: int = 100

    def __post_init__(self) -> None:
        # Walks over nodes, ours and those of every loader, recurse: the depth must fit the stack.
        if not 1 <= self.depth <= _DEEPEST:
            raise ValueError(f"a depth from 1 to {_DEEPEST}, not {self.depth}")


@dataclass(frozen=True, eq=False)
class Source:
    """A document's text. Lines are split when the first place is asked for, and shared by all places."""

    file: str
    text: str
    first: int = 1
    """The number of its first line: it may be a part of a file."""

    @cached_property
    def _lines(self) -> tuple[tuple[int, ...], tuple[str, ...]]:
        starts, lines, start = [0], [], 0
        for found in LINE_BREAK.finditer(self.text):
            lines.append(self.text[start : found.start()])
            start = found.end()
            starts.append(start)
        lines.append(self.text[start:])
        return tuple(starts), tuple(lines)

    def location(self, start: int, end: int | None = None) -> Location:
        """The place of ``text[start:end]``; what reaches beyond the first line is cut off there."""
        starts, lines = self._lines
        line = bisect_right(starts, start) - 1
        text = lines[line]
        column = start - starts[line]
        length = 1 if end is None else min(end - start, len(text) - column)
        return Location(file=self.file, line=line + self.first, column=column + 1, length=max(1, length), text=text)


def read_source(data: str | bytes, file: str, limits: Limits, first: int = 1) -> Source | Problem:
    """The source of a document, without a byte order mark; or why there is none. It begins in line ``first``."""
    if len(data) > limits.size:
        unit = "characters" if isinstance(data, str) else "bytes"
        place = Location(file=file, line=first) if first > 1 else Location(file=file)
        return DOCUMENT_TOO_LARGE(
            place, much="large", most=limits.size, unit=unit, remedy="Split it into several files."
        )
    if isinstance(data, str):
        return Source(file, data.removeprefix("\ufeff"), first)
    try:
        return Source(file, data.decode("utf-8").removeprefix("\ufeff"), first)
    except UnicodeDecodeError as error:
        return _not_utf8(data, file, error.start, first)


def _not_utf8(data: bytes, file: str, index: int, first: int) -> Problem:
    likely = next((name for mark, name in _OTHER_MARKS if data.startswith(mark)), "")
    shown = Source(file, data.decode("utf-8", errors="replace"), first)
    place = shown.location(len(data[:index].decode("utf-8")))
    return NOT_UTF8(place, byte=f"0x{data[index]:02X}", likely=likely)
