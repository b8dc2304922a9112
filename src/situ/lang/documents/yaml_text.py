"""YAML text → nodes, and what the YAML scanner complains about in words that help the writer."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import yaml
from yaml import MarkedYAMLError

from situ.lang.catalogue import BAD_CHARACTER, NOT_USED, ONE_DOCUMENT, YAML_SYNTAX
from situ.lang.documents.builder import Builder, Stop, resolve
from situ.lang.documents.nodes import Document, DocumentLimits, ScalarNode, SourceText, Style, read_source
from situ.lang.problems import Problem

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Complaints of the scanner.
#
# The scanner reports where it gave up and what it was looking for; people want to know what they did. One table of the
# usual mistakes translates. Both of PyYAML's parsers are covered: they word the same complaint differently.


class _Mistake(NamedTuple):
    complaint: re.Pattern[str]
    reason: str
    remedy: str
    at_opening: bool = False  # show where the broken thing begins, not where the scanner gave up


def _mistake(complaint: str, reason: str, remedy: str, *, at_opening: bool = False) -> _Mistake:
    return _Mistake(re.compile(complaint), reason, remedy, at_opening)


# In order: the first that matches explains. The complaint is "context; problem" in PyYAML's words.
_MISTAKES = (
    _mistake(
        r"tab character",
        "a tab where only spaces can stand",
        "Indent with spaces; YAML allows no tabs there.",
    ),
    _mistake(
        r"cannot start any token",
        "no value can begin with `{character}`",
        "Put text that begins with `{character}` in quotes.",
    ),
    _mistake(
        r"quoted scalar; found unexpected (end of stream|document)",
        "the quote opened here is never closed",
        "Close it; inside single quotes `''` is a quote, inside double quotes `\\\"` is.",
        at_opening=True,
    ),
    _mistake(
        r"unknown escape character",
        "`\\{after}` is no escape",
        "Write `\\\\` for a backslash in double quotes, or use single quotes, where it needs no escape.",
    ),
    _mistake(
        r"hexdecimal number|escape sequence of",
        "this escape lacks digits",
        "`\\x` takes two hexadecimal digits, `\\u` four, `\\U` eight; `\\\\` is a backslash.",
    ),
    _mistake(
        r"scanning an? (alias|anchor)",
        "a name is missing after `&` or `*`",
        "Put text that begins with `&` or `*` in quotes.",
        at_opening=True,
    ),
    _mistake(
        r"(scanning|parsing) a tag|tag handle|tag URI|parsing a node; found non-specific",
        "this is no tag",
        "Put text that begins with `!` in quotes; tags are not used.",
    ),
    _mistake(
        r"directive",
        "no line can begin with `%`",
        "Put text that begins with `%` in quotes, or indent it.",
        at_opening=True,
    ),
    _mistake(
        r"scanning a block scalar",
        "nothing but `+`, `-` or one digit from 1 to 9 can follow `|` or `>`",
        "Begin the text on the next line, indented.",
        at_opening=True,
    ),
    _mistake(
        r"could not find expected ':'",
        "a key without `:`",
        "Write `key: value`, with a space after the colon; text over several lines is indented below its key.",
        at_opening=True,
    ),
    _mistake(
        r"mapping values are not allowed",
        "a `:` where no key can stand before it",
        "Put text with `: ` in it in quotes; indent all keys of a mapping alike; does the line above have its `:`?",
    ),
    _mistake(
        r"mapping keys are not allowed",
        "no key can stand here",
        "Begin a mapping on a line of its own.",
    ),
    _mistake(
        r"sequence entries are not allowed",
        "no list can begin here",
        "Begin the list on the line below its key; put text that begins with `- ` in quotes.",
    ),
    _mistake(
        r"flow sequence",
        "the list opened with `[` in line {opening} is not well formed or not closed",
        "Separate its items by commas and close it with `]`.",
    ),
    _mistake(
        r"flow mapping",
        "the mapping opened with `{{` in line {opening} is not well formed or not closed",
        "Separate its entries by commas and close it with `}}`.",
    ),
    _mistake(
        r"node content",
        "a value is missing, or begins with a character it cannot begin with",
        "Write the value, in quotes if it begins with a special character.",
    ),
    _mistake(
        r"block collection|block sequence",
        "this does not belong to the list that begins in line {opening}",
        "Begin every item with `- `, all indented alike.",
    ),
    _mistake(
        r"block mapping",
        "this does not belong to the mapping that begins in line {opening}",
        "Indent all keys of a mapping alike; after a value in quotes or brackets nothing can follow in its line.",
    ),
    _mistake(
        r"document start",
        "the document has ended before this",
        "Check the brackets and quotes of the lines above, and that this line is indented like the first.",
    ),
    _mistake(
        r"unexpected ':'",
        "a `:` inside plain text",
        "Put the text in quotes.",
    ),
)  # fmt: skip

_ESCAPE = re.compile(r"\\(?:x(.{2})|u(.{4})|U(.{8})|(.))", re.DOTALL)


def explain(error: MarkedYAMLError, source: SourceText) -> Problem:
    """The scanner's complaint as a problem at the place where the writer can mend it."""
    complaint = f"{error.context or ''}; {error.problem or ''}"
    if "invalid Unicode character escape" in complaint:
        return bad_escape(source, _index(error.context_mark, source))
    given_up = _index(error.problem_mark, source)
    opening = _index(error.context_mark, source) if error.context_mark else given_up
    if "unknown escape" in complaint and not source.text.startswith("\\", given_up):
        given_up -= 1  # the parser in Python stops behind the backslash, the one in C before it
    character, after = source.text[given_up : given_up + 1], source.text[given_up + 1 : given_up + 2]
    if character == "\t":
        complaint = "tab character"
    for mistake in _MISTAKES:
        if mistake.complaint.search(complaint):
            # At the end of the text there is nothing to see: show what was left open.
            at_opening = mistake.at_opening or given_up == len(source.text)
            place = source.location(opening if at_opening else given_up)
            values = {"character": character, "after": after, "opening": source.location(opening).line}
            return YAML_SYNTAX(
                place, reason=mistake.reason.format_map(values), remedy=mistake.remedy.format_map(values)
            )
    return YAML_SYNTAX(source.location(given_up), reason=error.problem or "it cannot be read", remedy="")


def bad_escape(source: SourceText, start: int) -> Problem:
    """The first escape at or after ``start`` that stands for no character of text."""
    for found in _ESCAPE.finditer(source.text, start):
        digits = found[1] or found[2] or found[3]
        if found[4] == "0" or (digits and not _is_character(digits)):
            break
    else:
        return YAML_SYNTAX(source.location(start), reason="an escape that stands for no character", remedy="")
    return YAML_SYNTAX(
        source.location(*found.span()),
        reason=f"`{found[0]}` stands for no character of text",
        remedy="Write the character itself or its number, as in `\\U0001F600`; zero and half a pair are none.",
    )


def _is_character(digits: str) -> bool:
    try:
        number = int(digits, 16)
    except ValueError:
        return True  # another complaint
    return 0 < number < 0xD800 or 0xE000 <= number <= 0x10FFFF


def _index(mark: object, source: SourceText) -> int:
    """A mark's index, which at the end of the text may lie beyond it."""
    return min(getattr(mark, "index", 0), len(source.text))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# YAML text → nodes: a small, safe part of YAML 1.2, with every place kept.
#
# PyYAML finds the tokens (its C parser where it is installed, else the one in Python); the nodes are ours. What would
# let a document mean more than it shows is refused: anchors, aliases, merge keys, tags, directives, more than one
# document, characters that cannot be seen.

# The parser in C is missing where PyYAML was built without libyaml.
_FAST_PARSER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Tabs and line feeds are the only controls that may be written. U+0085, U+2028 and U+2029 end a line for some
# readers and not for others, a byte order mark inside the text is invisible: none of them can be trusted to mean
# what a person sees, so they have to be written as escapes.
# The set names what is refused: naming what is not takes ten times as long to compile.
_FORBIDDEN = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\ufeff\ufffe\uffff]")
_DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*+(%[^\r\n]*)")
_PROPERTY = re.compile(r"[&!]\S*")
_BETWEEN_PROPERTIES = re.compile(r"(?:\s|(?<=\s)#[^\r\n]*)*")
_NO_TEXT = re.compile("[\0\ud800-\udfff]")


def read_yaml(data: str | bytes, file: str, limits: DocumentLimits, *, fast: bool) -> Document:
    """The document of a text; see :func:`situ.lang.documents.parse_yaml`."""
    source = read_source(data, file, limits)
    if isinstance(source, Problem):
        return Document(file=file, root=None, problems=(source,))
    builder = Builder(source, limits)
    with suppress(Stop):
        _check_characters(source, builder)
        _Reading(source, builder, _FAST_PARSER if fast else yaml.SafeLoader).run()
    return builder.document()


def _check_characters(source: SourceText, builder: Builder) -> None:
    if found := _FORBIDDEN.search(source.text):
        place = source.location(found.start())
        raise builder.refuse(BAD_CHARACTER(place, character=f"U+{ord(found[0]):04X}"))
    if found := _DIRECTIVE.match(source.text):
        place = source.location(*found.span(1))
        remedy = "Remove the line: every file is read as YAML 1.2."
        raise builder.refuse(NOT_USED(place, feature=f"the directive `{found[1].rstrip()}`", remedy=remedy))


class _Reading:
    """One pass over the parser's events, each handed to the builder or refused."""

    def __init__(self, source: SourceText, builder: Builder, parser: type[Any]) -> None:
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
        self._builder.scalar(ScalarNode(text, value, style, self._source, start, end))

    def _alias(self, event: Any) -> None:
        start, end = event.start_mark.index, event.end_mark.index
        name = self._source.text[start:end]
        # Where an alias stands once it often stands a hundred times, and one remark mends them all.
        if name not in self._aliases:
            self._aliases.add(name)
            self._refuse(start, end, "the alias", "Write the value out; put text that begins with `*` in quotes.")
        self._builder.scalar(ScalarNode(name, name, "", self._source, start, end))

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
