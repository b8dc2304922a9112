"""XML text → elements: a small, safe part of XML 1.0, with every place kept.

Expat finds the tags. There are no document types, so no entities but the five everybody knows, and nothing is fetched.
Several elements may stand beside each other at the top, as in a fragment. Must not know: what any element means.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from xml.parsers import expat

import msgspec

from situ.lang.catalogue import DOCUMENT_TOO_LARGE, XML_NOT_UNDERSTOOD
from situ.lang.documents.nodes import DocumentLimits, ScalarNode, SourceText, read_source
from situ.lang.problems import Location, Problem

_DECLARATION = re.compile(r"""\s*<\?xml\s[^>]*?(?:\bencoding\s*=\s*["']([^"']*)["'][^>]*?)?\?>""")
_ATTRIBUTE = re.compile(r"""\s+([^\s=<>/"']+)\s*=\s*("[^"]*"|'[^']*')""")
_TAG_END = re.compile(r"\s*/?>")
_OPEN, _CLOSE = b"<_>", b"</_>"
"""What is read stands between these: so a fragment is as good as a whole document, and no document type can stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """One element: its attributes with their names, its elements, and what text it has, without blanks around it."""

    name: str
    attributes: Mapping[str, tuple[ScalarNode, ScalarNode]]
    children: tuple[Element, ...]
    text: ScalarNode
    source: SourceText = field(compare=False, repr=False)
    start: int = field(compare=False, repr=False)
    end: int = field(compare=False, repr=False)
    """Where its first tag begins and ends."""

    @property
    def location(self) -> Location:
        return self.source.location(self.start, self.end)

    def get(self, name: str) -> ScalarNode | None:
        entry = self.attributes.get(name)
        return entry[1] if entry else None


class Elements(msgspec.Struct, frozen=True, kw_only=True):
    """What was read: nothing at all if there are problems."""

    source: SourceText
    elements: tuple[Element, ...] = ()
    problems: tuple[Problem, ...] = ()


def parse_xml(data: str | bytes, file: str, limits: DocumentLimits = DocumentLimits()) -> Elements:  # noqa: B008
    """Read the elements of a text. Whatever it is, the answer is elements or problems, never an exception."""
    source = read_source(data, file, limits)
    if isinstance(source, Problem):
        return Elements(source=SourceText(file, ""), problems=(source,))
    try:
        return Elements(source=source, elements=_Parsing(source, limits).run())
    except _Refused as refused:
        return Elements(source=source, problems=(refused.problem,))


class _Refused(Exception):
    def __init__(self, problem: Problem) -> None:
        super().__init__(str(problem))
        self.problem = problem


class _Open(msgspec.Struct):
    name: str
    attributes: dict[str, tuple[ScalarNode, ScalarNode]]
    start: int
    end: int
    children: list[Element] = msgspec.field(default_factory=list)
    chunks: list[str] = msgspec.field(default_factory=list)


class _Parsing:
    def __init__(self, source: SourceText, limits: DocumentLimits) -> None:
        self._source, self._limits = source, limits
        self._skipped = self._after_declaration()
        self._data = source.text[self._skipped :].encode("utf-8", errors="surrogatepass")
        self._byte, self._character = 0, self._skipped
        self._nodes = 0
        self._stack: list[_Open] = []
        self._parser = expat.ParserCreate("utf-8")
        self._parser.buffer_text = True
        self._parser.StartElementHandler = self._begin
        self._parser.EndElementHandler = self._finish
        self._parser.CharacterDataHandler = self._text
        self._parser.ProcessingInstructionHandler = self._instruction

    def run(self) -> tuple[Element, ...]:
        try:
            self._parser.Parse(_OPEN + self._data + _CLOSE, True)
        except expat.ExpatError as error:
            raise self._malformed(error) from None
        self._no_text_at_top()
        return tuple(self._stack[0].children)

    def _after_declaration(self) -> int:
        found = _DECLARATION.match(self._source.text)
        if found is None:
            return 0
        if found[1] is not None and found[1].lower() not in ("utf-8", "us-ascii", "ascii"):
            raise self._refuse(*found.span(1), f"the encoding `{found[1]}`", "UTF-8", "Save the file as UTF-8.")
        return found.end()

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────

    def _begin(self, name: str, values: dict[str, str]) -> None:
        if not self._stack:
            self._stack.append(_Open("", {}, 0, 0))
            return
        start = self._here()
        self._nodes += 1 + len(values)
        if len(self._stack) > self._limits.depth:
            raise self._too_much(start, "deep", self._limits.depth, "levels", "Nest less.")
        if self._nodes > self._limits.nodes:
            raise self._too_much(start, "large", self._limits.nodes, "values", "Split it into several files.")
        attributes = {}
        index = start + 1 + len(name)
        while found := _ATTRIBUTE.match(self._source.text, index):
            key, value = found[1], values[found[1]]
            attributes[key] = (
                ScalarNode(key, key, "", self._source, *found.span(1)),
                ScalarNode(value, value, '"' if found[2][0] == '"' else "'", self._source, *found.span(2)),
            )
            index = found.end()
        closing = _TAG_END.match(self._source.text, index)
        self._stack.append(_Open(name, attributes, start, closing.end() if closing else index))

    def _finish(self, name: str) -> None:
        if len(self._stack) == 1:
            return
        done = self._stack.pop()
        self._stack[-1].children.append(
            Element(
                name=name,
                attributes=done.attributes,
                children=tuple(done.children),
                text=self._content(done),
                source=self._source,
                start=done.start,
                end=done.end,
            )
        )

    def _content(self, done: _Open) -> ScalarNode:
        """The text of an element; its place is exact where it is written as it is meant."""
        text = "".join(done.chunks)
        start, end = done.end, max(done.end, self._here())
        if self._source.text[start:end] == text:
            start, end = start + len(text) - len(text.lstrip()), max(start, end - len(text) + len(text.rstrip()))
        return ScalarNode(text.strip(), text.strip(), "", self._source, min(start, end), end)

    def _text(self, chunk: str) -> None:
        self._stack[-1].chunks.append(chunk)

    def _instruction(self, target: str, _: str) -> None:
        start = self._here()
        raise self._refuse(start, start + 2 + len(target), f"the instruction `<?{target}`", "elements", "Take it out.")

    def _no_text_at_top(self) -> None:
        text = "".join(self._stack[0].chunks).strip()
        if text:
            place = self._source.text.find(text.split()[0], self._skipped)
            found = f"the text `{text[:40]}`"
            raise self._refuse(max(place, 0), max(place, 0) + 1, found, "elements", "Put it into an element.")

    # ── places ────────────────────────────────────────────────────────────────────────────────────

    def _here(self) -> int:
        return self._index(self._parser.CurrentByteIndex)

    def _index(self, byte: int) -> int:
        """The character at a byte of what the parser reads; places are asked for in order, so each is counted once."""
        byte = min(max(byte - len(_OPEN), 0), len(self._data))
        if byte < self._byte:
            self._byte, self._character = 0, self._skipped
        self._character += len(self._data[self._byte : byte].decode("utf-8", errors="replace"))
        self._byte = byte
        return self._character

    # ── what is refused ───────────────────────────────────────────────────────────────────────────

    def _malformed(self, error: expat.ExpatError) -> _Refused:
        at = self._index(self._parser.ErrorByteIndex)
        text = self._source.text
        declared = text.rfind("<!", max(at - 3, 0), at + 3)
        if declared >= 0 and not text.startswith(("<!--", "<![CDATA["), declared):
            what = "a document type or entity"
            return self._refuse(declared, declared + 2, what, "elements only", "Take it out: nothing else is read.")
        if at >= len(text) and len(self._stack) > 1:
            left = self._stack[-1]
            remedy = f"Write `</{left.name}>` where it ends."
            return self._refuse(left.start, left.end, f"`<{left.name}>` is never closed", "its end", remedy)
        reason = expat.ErrorString(error.code)
        remedy = "Every tag is closed by its like, values stand in quotes; `&lt;` and `&amp;` stand for `<` and `&`."
        return self._refuse(at, at + 1, reason, "well-formed XML", remedy)

    def _refuse(self, start: int, end: int, found: str, expected: str, remedy: str) -> _Refused:
        place = self._source.location(start, end)
        return _Refused(XML_NOT_UNDERSTOOD(place, found=found, expected=expected, nearest=(), remedy=remedy))

    def _too_much(self, start: int, much: str, most: int, unit: str, remedy: str) -> _Refused:
        place = self._source.location(start)
        return _Refused(DOCUMENT_TOO_LARGE(place, much=much, most=most, unit=unit, remedy=remedy))
