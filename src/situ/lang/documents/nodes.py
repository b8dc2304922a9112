"""Where each character of a scalar was written.

Between the file and a scalar's text lie escapes, folded lines and stripped indentation. This module
walks the raw text again, the way the YAML scanner does, and notes for every character of the result
the index it came from. Every walk is checked against the text the scanner gave: a place is either
exact or not claimed at all.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, TypeAlias

from situ.documents.source import LINE_BREAK

Style: TypeAlias = Literal["", "'", '"', "|", ">"]

_BLANKS = re.compile(r"[ \t]*")
_SPACES = re.compile(r" *")
_HEADER = re.compile(r"[|>]([-+1-9]*)[^\r\n]*(?:\r\n|\n|\r|$)")
_ESCAPE = re.compile(
    r"\\(?:x(?P<x>[0-9a-fA-F]{2})"
    r"|u(?P<high>[dD][89abAB][0-9a-fA-F]{2})\\u(?P<low>[dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u(?P<u>[0-9a-fA-F]{4})|U(?P<U>[0-9a-fA-F]{8})|(?P<one>.))"
)
_NAMED_ESCAPES = {
    "0": "\0", "a": "\a", "b": "\b", "t": "\t", "\t": "\t", "n": "\n", "v": "\v", "f": "\f", "r": "\r", "e": "\x1b",
    " ": " ", '"': '"', "/": "/", "\\": "\\", "N": "\x85", "_": "\xa0", "L": "\u2028", "P": "\u2029",
}  # fmt: skip


def place_map(raw: str, style: Style, text: str) -> Sequence[int] | None:
    """For each character of ``text``, and for its end, the index in ``raw``; None if that cannot be told.

    ``raw`` is the scalar as written, with its quotes or its block header.
    """
    if style == "" and raw == text:
        return range(len(text) + 1)
    if style in ("'", '"') and raw[1:-1] == text:
        return range(1, len(text) + 2)
    if not text:
        return (len(style),)
    walk = _Walk(raw)
    if style in ("|", ">"):
        walk.block(text, folded=style == ">")
    else:
        walk.flow(style)
    return walk.places if "".join(walk.characters) == text else None


class _Walk:
    __slots__ = ("characters", "places", "raw")

    def __init__(self, raw: str) -> None:
        self.raw = raw
        self.characters: list[str] = []
        self.places: list[int] = []

    def emit(self, character: str, place: int) -> None:
        self.characters.append(character)
        self.places.append(place)

    def emit_stretch(self, start: int, end: int) -> None:
        self.characters.extend(self.raw[start:end])
        self.places.extend(range(start, end))

    # ── plain and quoted scalars ──────────────────────────────────────────────────────────────────

    def flow(self, style: Style) -> None:
        raw = self.raw
        index, end = (1, len(raw) - 1) if style else (0, len(raw))
        while index < end:
            character = raw[index]
            if character in " \t\r\n":
                index = self.white(index)
            elif style == "'" and character == "'":
                self.emit("'", index)
                index += 2
            elif style == '"' and character == "\\":
                index = self.escape(index)
            else:
                self.emit(character, index)
                index += 1
        self.places.append(end)

    def white(self, index: int) -> int:
        """Blanks stay; blanks around a line break become one space, or one break for each empty line."""
        after = _end(_BLANKS, self.raw, index)
        line_break = LINE_BREAK.match(self.raw, after)
        if line_break is None:
            self.emit_stretch(index, after)
            return after
        count = len(self.places)
        following = self.empty_lines(line_break.end())
        if len(self.places) == count:
            self.emit(" ", index)
        return following

    def empty_lines(self, index: int) -> int:
        index = _end(_BLANKS, self.raw, index)
        while line_break := LINE_BREAK.match(self.raw, index):
            self.emit("\n", index)
            index = _end(_BLANKS, self.raw, line_break.end())
        return index

    def escape(self, index: int) -> int:
        if line_break := LINE_BREAK.match(self.raw, index + 1):
            return self.empty_lines(line_break.end())
        found = _ESCAPE.match(self.raw, index)
        if found is None:
            return len(self.raw)
        self.emit(_unescape(found), index)
        return found.end()

    # ── block scalars ─────────────────────────────────────────────────────────────────────────────

    def block(self, text: str, *, folded: bool) -> None:
        header = _HEADER.match(self.raw)
        if header is None:
            return
        indent = _block_indent(self.raw, header.end(), text)
        kept, keep_all = "-" not in header[1], "+" in header[1]
        line_end: int | None = None  # the break after the last line with content, not yet given
        indented_before = False
        empty: list[int] = []
        for start, end in _lines(self.raw, header.end()):
            content = min(_end(_SPACES, self.raw, start), start + indent)
            if content == end:
                empty.append(end)
                continue
            if content < start + indent:
                break
            indented = self.raw[content] in " \t"
            if line_end is not None:
                if not folded or indented or indented_before:
                    self.emit("\n", line_end)
                elif not empty:
                    self.emit(" ", line_end)
            self.breaks(empty)
            self.emit_stretch(content, end)
            line_end, indented_before, empty = end, indented, []
        if kept and line_end is not None and line_end < len(self.raw):
            self.emit("\n", line_end)
        if keep_all:
            self.breaks(empty)
        self.places.append(self.places[-1] + 1 if self.places else header.end())

    def breaks(self, places: list[int]) -> None:
        for place in places:
            if place < len(self.raw):
                self.emit("\n", place)


def _block_indent(raw: str, start: int, text: str) -> int:
    """How far the block is indented: what its first visible line has lost; of blank lines, what the longest has."""
    lines = _lines(raw, start)
    shown = text.lstrip("\n ")
    if not shown:
        return max((end - line for line, end in lines), default=0) - max(map(len, text.split("\n")))
    before = len(text) - len(shown)
    kept = before - (text.rfind("\n", 0, before) + 1)
    visible = (_end(_SPACES, raw, line) - line for line, end in lines if _end(_SPACES, raw, line) < end)
    return next(visible, 0) - kept


def _lines(raw: str, start: int) -> list[tuple[int, int]]:
    lines = []
    for found in LINE_BREAK.finditer(raw, start):
        lines.append((start, found.start()))
        start = found.end()
    if start < len(raw):
        lines.append((start, len(raw)))
    return lines


def _unescape(found: re.Match[str]) -> str:
    if found["high"]:
        return chr(0x10000 + ((int(found["high"], 16) - 0xD800) << 10) + int(found["low"], 16) - 0xDC00)
    digits = found["x"] or found["u"] or found["U"]
    if digits:
        return chr(min(int(digits, 16), 0x10FFFF))
    return _NAMED_ESCAPES.get(found["one"], "")


def _end(pattern: re.Pattern[str], raw: str, index: int) -> int:
    found = pattern.match(raw, index)
    return found.end() if found else index
