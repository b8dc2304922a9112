"""Values that know where they were written.

A document is a tree of three kinds of node: a :class:`Scalar` (one value), a :class:`Sequence` (a
list) and a :class:`Mapping` (names with values). Nodes are the same whichever format they were
written in. Places travel along and do not count in equality; they are worked out when asked for.

Must not know: what any key means (the loaders do), where files come from.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeAlias, assert_never

from situ.documents.scalar_places import Style, place_map
from situ.documents.source import Source
from situ.errors import Location, Problem

Value: TypeAlias = str | int | float | bool | None


class Piece(NamedTuple):
    """A stretch of a substituted text and the stretch of the written text it comes from."""

    start: int
    written_start: int
    written_end: int
    verbatim: bool


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value: the ``text`` after unescaping and folding, and the ``value`` it stands for.

    A style of ``""`` is a plain scalar, which may stand for a number, a boolean or nothing; all
    others are always text. ``written`` is the scalar as it stands in the file, if references to
    the environment were replaced in this one.
    """

    text: str
    value: Value
    style: Style = field(compare=False)
    source: Source = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)
    written: Scalar | None = field(default=None, compare=False, repr=False)
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
class Sequence:
    """A list of nodes; ``under`` is the key it stands under, if any."""

    items: tuple[Node, ...]
    under: Scalar | None = field(compare=False, repr=False)
    source: Source = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)


@dataclass(frozen=True, slots=True)
class Mapping:
    """Names with values in the order written, each name once; ``under`` is the key it stands under, if any."""

    entries: tuple[tuple[Scalar, Node], ...]
    under: Scalar | None = field(compare=False, repr=False)
    source: Source = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)
    _by_name: dict[str, tuple[Scalar, Node]] = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {entry[0].text: entry for entry in self.entries})

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def get(self, name: str) -> Node | None:
        entry = self._by_name.get(name)
        return entry[1] if entry else None

    def key(self, name: str) -> Scalar | None:
        """The key of that name, for its place."""
        entry = self._by_name.get(name)
        return entry[0] if entry else None

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)


Node: TypeAlias = Scalar | Sequence | Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """What was read: ``root`` is None exactly when the text has no certain meaning, and then there are problems.

    There may be problems with a root, too: it holds what can still be checked, so that all
    problems of a file are reported at once. An empty document has a root that is nothing.
    """

    file: str
    root: Node | None
    problems: tuple[Problem, ...] = ()


def placed(value: Any, at: Scalar) -> Node:
    """Plain Python values as a node, all of which stands where ``at`` does."""
    if isinstance(value, dict):
        entries = tuple((replace(at, text=key, value=key), placed(each, at)) for key, each in value.items())
        return Mapping(entries, None, at.source, at.start, at.end)
    if isinstance(value, list):
        return Sequence(tuple(placed(each, at) for each in value), None, at.source, at.start, at.end)
    return replace(at, text=value if isinstance(value, str) else json.dumps(value), value=value)


def to_data(node: Node) -> Any:
    """The node as plain Python values: dicts, lists, text, numbers, booleans and None."""
    match node:
        case Scalar():
            return node.value
        case Sequence():
            return [to_data(item) for item in node.items]
        case Mapping():
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
