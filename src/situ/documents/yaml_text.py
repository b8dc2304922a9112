"""YAML text → nodes: a small, safe part of YAML 1.2, with every place kept.

PyYAML finds the tokens (its C parser where it is installed, else the one in Python); the nodes are
ours. What would let a document mean more than it shows is refused: anchors, aliases, merge keys, tags,
directives, more than one document, characters that cannot be seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import yaml

from situ.catalogue import BAD_CHARACTER, NOT_USED, ONE_DOCUMENT
from situ.documents.builder import Builder, Stop
from situ.documents.core_schema import resolve
from situ.documents.nodes import Document, Scalar
from situ.documents.scalar_places import Style
from situ.documents.source import Limits, Source, read_source
from situ.documents.yaml_mistakes import bad_escape, explain
from situ.errors import Problem

# The parser in C is missing where PyYAML was built without libyaml.
_FAST_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Tabs and line feeds are the only controls that may be written. U+0085, U+2028 and U+2029 end a line for some
# readers and not for others, a byte order mark inside the text is invisible: none of them can be trusted to mean
# what a person sees, so they have to be written as escapes.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*+(%[^\r\n]*)")
_PROPERTY = re.compile(r"[&!]\S*")
_BETWEEN_PROPERTIES = re.compile(r"(?:\s|(?<=\s)#[^\r\n]*)*")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def parse_yaml(data: str | bytes, file: str, limits: Limits = Limits(), *, fast: bool = True) -> Document:  # noqa: B008
    """Read one YAML document. Whatever the text, the answer is nodes or problems, never an exception.

    ``fast`` only chooses between PyYAML's two parsers.
    """
    source = read_source(data, file, limits)
    if isinstance(source, Problem):
        return Document(file=file, root=None, problems=(source,))
    builder = Builder(source, limits)
    with suppress(Stop):
        _check_characters(source, builder)
        _Reading(source, builder, _FAST_PARSER if fast else yaml.SafeLoader).run()
    return builder.document()


def _check_characters(source: Source, builder: Builder) -> None:
    if found := _FORBIDDEN.search(source.text):
        place = source.location(found.start())
        raise builder.refuse(BAD_CHARACTER(place, character=f"U+{ord(found[0]):04X}"))
    if found := _DIRECTIVE.match(source.text):
        place = source.location(*found.span(1))
        remedy = "Remove the line: every file is read as YAML 1.2."
        raise builder.refuse(NOT_USED(place, feature=f"the directive `{found[1].rstrip()}`", remedy=remedy))


class _Reading:
    """One pass over the parser's events, each handed to the builder or refused."""

    def __init__(self, source: Source, builder: Builder, parser: type[Any]) -> None:
        self._source = source
        self._builder = builder
        self._parser = parser(source.text)
        self._begun = False
        self._aliases: set[str] = set()

    def run(self) -> None:
        handlers: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: self._scalar,
            yaml.MappingStartEvent: self._mapping,
            yaml.SequenceStartEvent: self._sequence,
            yaml.MappingEndEvent: self._end,
            yaml.SequenceEndEvent: self._end,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        while not isinstance(event := self._next_event(), yaml.StreamEndEvent):
            handler = handlers.get(type(event))
            if handler is not None:
                handler(event)

    def _next_event(self) -> Any:
        try:
            return self._parser.get_event()
        except yaml.MarkedYAMLError as error:
            raise self._builder.refuse(explain(error, self._source)) from None
        except (ValueError, OverflowError):
            # The parser in Python makes a character of any escape, even of one beyond Unicode.
            start = self._parser.get_mark().index - len("\\U")
            raise self._builder.refuse(bad_escape(self._source, start)) from None

    def _document(self, event: Any) -> None:
        if self._begun:
            self._builder.report(ONE_DOCUMENT(self._source.location(event.start_mark.index, event.end_mark.index)))
            raise Stop
        self._begun = True

    def _mapping(self, event: Any) -> None:
        self._note_properties(event)
        self._builder.open_mapping(event.start_mark.index)

    def _sequence(self, event: Any) -> None:
        self._note_properties(event)
        self._builder.open_sequence(event.start_mark.index)

    def _end(self, event: Any) -> None:
        self._builder.close(event.end_mark.index)

    def _scalar(self, event: Any) -> None:
        text: str = event.value
        style: Style = event.style or ""
        start, end = self._note_properties(event), event.end_mark.index
        if style == '"' and _NO_TEXT.search(text):
            raise self._builder.refuse(bad_escape(self._source, start))
        if style == "" and text == "<<" and self._builder.expects_key:
            self._refuse(start, end, "the merge key", "Write the keys out where they are needed.")
        value = text if style else resolve(text)
        self._builder.scalar(Scalar(text, value, style, self._source, start, end))

    def _alias(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        name = self._source.text[start:end]
        # Where an alias stands once it often stands a hundred times, and one remark mends them all.
        if name not in self._aliases:
            self._aliases.add(name)
            self._refuse(start, end, "the alias", "Write the value out; put text that begins with `*` in quotes.")
        self._builder.scalar(Scalar(name, name, "", self._source, start, end))

    def _note_properties(self, event: Any) -> int:
        """Refuse the anchor and the tag written before a value; gives the index where the value itself begins."""
        index: int = event.start_mark.index
        if event.anchor is None and event.tag is None:
            return index
        end: int = event.end_mark.index
        while found := _PROPERTY.match(self._source.text, index, end):
            remedy = f"Remove it; put text that begins with `{found[0][0]}` in quotes."
            self._refuse(*found.span(), "the anchor" if found[0][0] == "&" else "the tag", remedy)
            gap = _BETWEEN_PROPERTIES.match(self._source.text, found.end(), end)
            index = gap.end() if gap else found.end()
        return index

    def _refuse(self, start: int, end: int, what: str, remedy: str) -> None:
        feature = f"{what} `{self._source.text[start:end]}`"
        problem = NOT_USED(self._source.location(start, end), feature=feature, remedy=remedy)
        # An anchor alone says nothing; the others mean something that we do not give them.
        self._builder.report(problem, uncertain=what != "the anchor")
