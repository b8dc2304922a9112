"""Names in XML as classes have them, and what they are called in the project: by their last part, or their alias.

Only names that the file introduces are shortened, those of its types, mappings and functions: a dot in a pattern means
something else. Texts that change keep the places of what was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from situ.lang.documents import ScalarNode
from situ.lang.documents.nodes import Piece
from situ.lang.documents.xml_text import Element
from situ.lang.types.model import ROOT_PREFIX

_DOTTED = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+")


class TextPart(NamedTuple):
    """A stretch of a text with the stretch of the file that it comes from."""

    text: str
    scalar: ScalarNode
    start: int
    end: int
    verbatim: bool


class XmlNames(msgspec.Struct, frozen=True, kw_only=True):
    """Name as written → name in the project, for types and for functions."""

    types: Mapping[str, str]
    functions: Mapping[str, str]
    pattern: re.Pattern[str] | None = None

    @classmethod
    def of(cls, elements: Iterable[Element]) -> XmlNames:
        types: dict[str, str] = {}
        functions: dict[str, str] = {}
        for element in _below(elements):
            alias = element.get("alias")
            if element.name in ("type", "event"):
                _introduce(types, element.text, alias)
                _introduce(types, element.get("name"), alias)
                _introduce(types, element.get("extends"), None)
            elif element.name == "mapping":
                _introduce(types, element.get("from"), None)
                _introduce(types, element.get("to"), None)
            elif element.name == "attribute":
                _introduce(types, element.get("type"), None)
            elif element.name == "function" and (name := element.get("name")) is not None:
                written = element.get("class") or name
                functions[name.text] = alias.text if alias is not None else _last(written.text)
                _introduce(types, element.get("signature"), None)
            elif element.name == "state":
                _introduce(types, element.get("event"), None)
        longest = sorted(types, key=len, reverse=True)
        pattern = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, longest))})(?!\w)") if types else None
        return cls(types=types, functions=functions, pattern=pattern)

    def function(self, written: ScalarNode) -> list[TextPart]:
        """The name of a function in the project."""
        name = self.functions.get(written.text, _last(written.text))
        start, end = _inside(written)
        return [TextPart(name, written, start, end, name == written.text)]


def short_parts(scalar: ScalarNode, names: XmlNames) -> list[TextPart]:
    """The text with the names of the project in it."""
    start, end = _inside(scalar)
    exact = scalar.source.text[start:end] == scalar.text
    if names.pattern is None or names.pattern.search(scalar.text) is None:
        return [TextPart(scalar.text, scalar, start, end, exact)]
    parts: list[TextPart] = []
    position = 0

    def add(text: str, first: int, last: int, *, verbatim: bool) -> None:
        if text:
            place = (start + first, start + last) if exact else (start, end)
            parts.append(TextPart(text, scalar, *place, exact and verbatim))

    for found in names.pattern.finditer(scalar.text):
        add(scalar.text[position : found.start()], position, found.start(), verbatim=True)
        name = names.types[found[0]]
        first = found.end() - len(name) if found[0].endswith(name) else found.start()
        add(name, first, found.end(), verbatim=first > found.start())
        position = found.end()
    add(scalar.text[position:], position, len(scalar.text), verbatim=True)
    return parts


def compose(*pieces: str | ScalarNode | list[TextPart]) -> ScalarNode:
    """One text of several, each of which still knows where it was written."""
    parts: list[TextPart | str] = []
    for piece in pieces:
        if isinstance(piece, ScalarNode):
            start, end = _inside(piece)
            exact = piece.source.text[start:end] == piece.text
            parts.append(TextPart(piece.text, piece, start, end, exact))
        elif isinstance(piece, str):
            parts.append(piece)
        else:
            parts += piece
    written = [part for part in parts if isinstance(part, TextPart)]
    if len(parts) == 1 and written[0].text == written[0].scalar.text:
        return written[0].scalar
    source = written[0].scalar.source
    start, end = min(part.start for part in written), max(part.end for part in written)
    result: list[Piece] = []
    length, here = 0, written[0].start
    for part in parts:
        text = part.text if isinstance(part, TextPart) else part
        first, last, verbatim = (
            (part.start, part.end, part.verbatim) if isinstance(part, TextPart) else (here, here, False)
        )
        if text:
            result.append(Piece(length, first - start, last - start, verbatim))
        length, here = length + len(text), last
    text = "".join(part.text if isinstance(part, TextPart) else part for part in parts)
    raw = source.text[start:end]
    whole = ScalarNode(raw, raw, "", source, start, end)
    return ScalarNode(text, text, "", source, start, end, whole, tuple(result))


def _below(elements: Iterable[Element]) -> Iterator[Element]:
    for element in elements:
        yield element
        yield from _below(element.children)


def _introduce(names: dict[str, str], written: ScalarNode | None, alias: ScalarNode | None) -> None:
    """Every name with dots in a text that holds types; an alias belongs to the text as a whole."""
    if written is None:
        return
    if alias is not None:
        names[written.text] = alias.text
    for found in _DOTTED.finditer(written.text.removeprefix(ROOT_PREFIX)):
        names.setdefault(found[0], _last(found[0]))


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def _inside(scalar: ScalarNode) -> tuple[int, int]:
    """Where the text itself stands, without its quotes."""
    return (scalar.start + 1, scalar.end - 1) if scalar.quoted else (scalar.start, scalar.end)
