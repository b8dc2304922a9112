"""The text of a document, the places in it, and the nodes that are read from it.

In order: the text with its limits, where each character of a scalar was written, and the nodes. What a key means is not
known here, and no file is read.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, assert_never

from situ.lang.catalogue import DOCUMENT_TOO_LARGE, NOT_UTF8
from situ.lang.problems import Location, Problem
from situ.lang.records import replace

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The text: decoding, the limits on what is read at all, and the way from a character's index to a
# :class:`~situ.lang.problems.Location`.

LINE_BREAK = re.compile(r"\r\n|\n|\r")

_DEEPEST = 128
_OTHER_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
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
class SourceText:
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


def read_source(data: str | bytes, file: str, limits: DocumentLimits, first: int = 1) -> SourceText | Problem:
    """The source of a document, without a byte order mark; or why there is none. It begins in line ``first``."""
    if len(data) > limits.size:
        unit = "characters" if isinstance(data, str) else "bytes"
        place = Location(file=file, line=first) if first > 1 else Location(file=file)
        return DOCUMENT_TOO_LARGE(
            place, much="large", most=limits.size, unit=unit, remedy="Split it into several files."
        )
    if isinstance(data, str):
        return SourceText(file, data.removeprefix("\ufeff"), first)
    try:
        return SourceText(file, data.decode("utf-8").removeprefix("\ufeff"), first)
    except UnicodeDecodeError as error:
        return _not_utf8(data, file, error.start, first)


def _not_utf8(data: bytes, file: str, index: int, first: int) -> Problem:
    likely = next((name for mark, name in _OTHER_MARKS if data.startswith(mark)), "")
    shown = SourceText(file, data.decode("utf-8", errors="replace"), first)
    place = shown.location(len(data[:index].decode("utf-8")))
    return NOT_UTF8(place, byte=f"0x{data[index]:02X}", likely=likely)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Where each character of a scalar was written.
#
# Between the file and a scalar's text lie escapes, folded lines and stripped indentation. The raw text is walked again,
# the way the YAML scanner does, and for every character of the result the index is noted that it came from. Every walk
# is checked against the text the scanner gave: a place is either exact or not claimed at all.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values that know where they were written.
#
# A document is a tree of three kinds of node: a :class:`ScalarNode` (one value), a :class:`SequenceNode` (a list) and a
# :class:`MappingNode` (names with values). Nodes are the same whichever format they were written in. Places travel
# along and do not count in equality; they are worked out when asked for.

Value: TypeAlias = str | int | float | bool | None


class Piece(NamedTuple):
    """A stretch of a substituted text and the stretch of the written text it comes from."""

    start: int
    written_start: int
    written_end: int
    verbatim: bool


@dataclass(frozen=True, slots=True)
class ScalarNode:
    """One value: the ``text`` after unescaping and folding, and the ``value`` it stands for.

    A style of ``""`` is a plain scalar, which may stand for a number, a boolean or nothing; all
    others are always text. ``written`` is the scalar as it stands in the file, if references to
    the environment were replaced in this one.
    """

    text: str
    value: Value
    style: Style = field(compare=False)
    source: SourceText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)
    written: ScalarNode | None = field(default=None, compare=False, repr=False)
    pieces: tuple[Piece, ...] = field(default=(), compare=False, repr=False)

    @property
    def quoted(self) -> bool:
        return self.style != ""

    @property
    def substituted(self) -> bool:
        return self.written is not None

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)

    def locate(self, offset: int, length: int = 1) -> Location:
        """The place in the file of ``text[offset:offset + length]``; the end of the text is a place, too."""
        offset = min(max(offset, 0), len(self.text))
        last = min(offset + max(length, 1), len(self.text))
        if self.written is not None:
            return self.written.locate(*_written_stretch(self.pieces, offset, last))
        places = place_map(self.source.text[self.start : self.end], self.style, self.text)
        if places is None:
            return self.location
        return self.source.location(self.start + places[offset], self.start + places[last])


@dataclass(frozen=True, slots=True)
class SequenceNode:
    """A list of nodes; ``under`` is the key it stands under, if any."""

    items: tuple[Node, ...]
    under: ScalarNode | None = field(compare=False, repr=False)
    source: SourceText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)


@dataclass(frozen=True, slots=True)
class MappingNode:
    """Names with values in the order written, each name once; ``under`` is the key it stands under, if any."""

    entries: tuple[tuple[ScalarNode, Node], ...]
    under: ScalarNode | None = field(compare=False, repr=False)
    source: SourceText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)
    _by_name: dict[str, tuple[ScalarNode, Node]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {entry[0].text: entry for entry in self.entries})

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Node | None:
        entry = self._by_name.get(name)
        return entry[1] if entry else None

    def key(self, name: str) -> ScalarNode | None:
        """The key of that name, for its place."""
        entry = self._by_name.get(name)
        return entry[0] if entry else None

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)


Node: TypeAlias = ScalarNode | SequenceNode | MappingNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read: ``root`` is None exactly when the text has no certain meaning, and then there are problems.

    There may be problems with a root, too: it holds what can still be checked, so that all
    problems of a file are reported at once. An empty document has a root that is nothing.
    """

    file: str
    root: Node | None
    problems: tuple[Problem, ...] = ()


def placed(value: Any, at: ScalarNode) -> Node:
    """Plain Python values as a node, all of which stands where ``at`` does."""
    if isinstance(value, dict):
        entries = tuple((replace(at, text=key, value=key), placed(each, at)) for key, each in value.items())
        return MappingNode(entries, None, at.source, at.start, at.end)
    if isinstance(value, list):
        return SequenceNode(tuple(placed(each, at) for each in value), None, at.source, at.start, at.end)
    return replace(at, text=value if isinstance(value, str) else json.dumps(value), value=value)


def is_nothing(node: Node) -> bool:
    """Whether nothing is written where the node stands."""
    return isinstance(node, ScalarNode) and node.value is None and not node.quoted


def to_data(node: Node) -> Any:
    """The node as plain Python values: dicts, lists, text, numbers, booleans and None."""
    match node:
        case ScalarNode():
            return node.value
        case SequenceNode():
            return [to_data(item) for item in node.items]
        case MappingNode():
            return {key.text: to_data(value) for key, value in node.entries}
        case _:
            assert_never(node)


def _written_stretch(pieces: tuple[Piece, ...], start: int, end: int) -> tuple[int, int]:
    """Offset and length in the written text for a stretch of the substituted one."""
    first = pieces[bisect_right(pieces, start, key=lambda piece: piece.start) - 1]
    if not first.verbatim:
        return first.written_start, first.written_end - first.written_start
    offset = first.written_start + start - first.start
    return offset, min(max(end - start, 1), max(first.written_end - offset, 1))
