"""A policy's text → its statements, each with the section it belongs to.

Knows line breaks, comments, quotes and parentheses, and the words that open a section; not what statements say. A
statement goes on over a line break inside parentheses and after ``and``, ``or`` and ``followed-by``. What cannot be
taken apart is reported and left out, and the lines after it are read as if it had been right.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from situ.lang.catalogue import FOREIGN_SPELLING, NOT_CLOSED, POLICY_TOO_LARGE, SECTION_UNFIT, TWO_POLICIES
from situ.lang.documents.nodes import SourceText
from situ.lang.problems import Problems, nearest

SECTIONS = ("concepts", "conditions", "actions")
OPTIONS = ("window", "lateness", "hold", "consumption")
DEEPEST = 32
"""Parentheses in parentheses, and relations following each other: what walks over conditions recurses."""

_PIECE = re.compile(
    r"""(?P<comment>\#[^\r\n]*)
    | (?P<break>\r\n|\n|\r)
    | (?P<contraction>\b(?:is|are|was|does|do)n['\u2019]t\b)
    | (?P<text>'(?:[^'\r\n]|'')*'
        | "[^"\r\n]*"
        | [\u201c-\u201e][^\u201c\u201d\r\n]*[\u201c\u201d]
        | [\u2018-\u201a][^\u2018\u2019\r\n]*[\u2018\u2019])
    | (?P<open_text>['"\u2018-\u201a\u201c-\u201e])
    | (?P<unit>\[[^\[\]\r\n]*\])
    | (?P<opening>\()
    | (?P<closing>\))
    | (?P<blank>[^\S\r\n]+)
    | (?P<word>\w[\w-]*)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_GOES_ON = re.compile(r"(?:^|[\s)\]'])(?:and|or|followed-by(?:\s+within\s+\S+(?:\s+\S+)?)?)\s*\Z", re.IGNORECASE)
_HEAD = re.compile(r"\s*(?P<word>[^\W\d]\w*)(?P<colon>\s*:)?(?=\s|\Z)")
_SECOND = re.compile(r"\s*policy\s+(?P<name>\S+)\s*\Z", re.IGNORECASE)
_OPTION = re.compile(rf"\s*(?:{'|'.join(OPTIONS)})\b\s*[:=]?\s*(?:[0-9]|chronicle\b|recent\b|all\b)", re.IGNORECASE)
_MOST_LINES = 200
_SPOKEN = {"concept": "concepts", "condition": "conditions", "action": "actions"}


class PolicyStatement(msgspec.Struct, frozen=True):
    """A stretch of the source, as long as there, with its comments blanked out."""

    start: int
    text: str

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class PolicySection(msgspec.Struct):
    """``concepts``, ``conditions`` or ``actions``, its statements, and what stands behind ``actions on``."""

    name: str
    start: int
    statements: list[PolicyStatement] = msgspec.field(default_factory=list)
    when: PolicyStatement | None = None
    broken: bool = False
    """Whether something of it could not be taken apart: then it is not said to be empty."""


class PolicyBlock(msgspec.Struct):
    """One policy: what stands before its first section, and its sections in the order they stand."""

    preamble: list[PolicyStatement] = msgspec.field(default_factory=list)
    sections: list[PolicySection] = msgspec.field(default_factory=list)


class _Line(msgspec.Struct, frozen=True):
    """A line of the file without its break: the pieces it consists of."""

    start: int
    end: int
    pieces: tuple[tuple[str, int, int], ...]


def split_statements(source: SourceText, problems: Problems, most: int) -> list[PolicyBlock]:
    """The policies of a file, which should be one; stops when there are ``most`` problems."""
    reading = _Reading(source, problems, most)
    reading.run()
    return reading.blocks


class _Reading:
    def __init__(self, source: SourceText, problems: Problems, most: int) -> None:
        self.source, self.problems, self.most = source, problems, most
        self.blocks = [PolicyBlock()]

    def run(self) -> None:
        lines = tuple(_lines(self.source.text))
        index = 0
        while index < len(lines) and len(self.problems) < self.most:
            index = self._take(lines, index)

    def _take(self, lines: tuple[_Line, ...], index: int) -> int:
        """Take the statement that begins on this line; the number of the next line."""
        line = lines[index]
        text = self._blanked(line.start, [line])
        if not text.strip():
            return index + 1
        start = line.start
        if (head := self._head(start, text)) is not None:
            start += head
            if not text[head:].strip():
                return index + 1
            if self._section is not None and self._section.name == "actions" and _on(text[head:]):
                self._section.when = self._statement(start, [line])
                return index + 1
        last = self._last(lines, index, start)
        if last is None:
            if self._section is not None:
                self._section.broken = True
            return index + 1
        self._add(self._statement(start, lines[index : last + 1]))
        return last + 1

    # ── sections ──

    @property
    def _block(self) -> PolicyBlock:
        return self.blocks[-1]

    @property
    def _section(self) -> PolicySection | None:
        return self._block.sections[-1] if self._block.sections else None

    def _head(self, start: int, text: str) -> int | None:
        """If the line opens a section, open it; how much of the line that takes."""
        found = _HEAD.match(text)
        if found is None:
            return None
        name = self._section_named(found["word"].lower(), alone=not text[found.end() :].strip())
        if name is None:
            return None
        place = self.source.location(start + found.start("word"), start + found.end("word"))
        if found["word"].lower() != name:
            reason = f"is written `{found['word']}` here"
            self.problems.add(SECTION_UNFIT(place, section=name, reason=reason, remedy=f"Write `{name}`."))
        if found["colon"]:
            colon = self.source.location(start + found.start("colon"), start + found.end("colon"))
            self.problems.add(FOREIGN_SPELLING(colon, found="`:`", remedy=f"The section begins with `{name}` alone."))
        self._open(name, start + found.start("word"))
        return found.end()

    def _section_named(self, word: str, *, alone: bool) -> str | None:
        """The section that a word at the beginning of a line opens: also one that is misspelled and not there yet."""
        if word in SECTIONS:
            return word
        if word in OPTIONS or not alone or abs(len(word) - len("concepts")) > len("ab"):
            return None
        meant = _SPOKEN.get(word) or next(iter(nearest(word, SECTIONS, 1)), None)
        seen = {section.name for section in self._block.sections}
        return meant if meant not in seen else None

    def _open(self, name: str, start: int) -> None:
        place = self.source.location(start, start + len(name))
        seen = [section.name for section in self._block.sections]
        if name in seen:
            remedy = "Put all of it into one section."
            self.problems.add(SECTION_UNFIT(place, section=name, reason="is there twice", remedy=remedy))
        elif any(SECTIONS.index(each) > SECTIONS.index(name) for each in seen):
            later = next(each for each in seen if SECTIONS.index(each) > SECTIONS.index(name))
            reason, remedy = f"stands behind `{later}`", "The order is `concepts`, `conditions`, `actions`."
            self.problems.add(SECTION_UNFIT(place, section=name, reason=reason, remedy=remedy))
        self._block.sections.append(PolicySection(name, start))

    def _add(self, statement: PolicyStatement) -> None:
        section = self._section
        second = _SECOND.match(statement.text)
        if second and (section.name != "concepts" if section else self._named_already()):
            begins = statement.start + len(statement.text) - len(statement.text.lstrip())
            place = self.source.location(begins, statement.end)
            self.problems.add(TWO_POLICIES(place, name=second["name"]))
            self.blocks.append(PolicyBlock(preamble=[statement]))
        elif section is None:
            self._block.preamble.append(statement)
        elif section.name != "actions" and _OPTION.match(statement.text):
            self._misplaced(statement, section)
        else:
            section.statements.append(statement)

    def _named_already(self) -> bool:
        return any(_SECOND.match(each.text) for each in self._block.preamble)

    def _misplaced(self, statement: PolicyStatement, section: PolicySection) -> None:
        section.broken = True
        word = statement.text.split()[0]
        begins = statement.start + statement.text.index(word)
        place = self.source.location(begins, begins + len(word))
        remedy = "Options stand before `concepts`."
        self.problems.add(SECTION_UNFIT(place, section=section.name, reason=f"has the option `{word}`", remedy=remedy))

    # ── statements ──

    def _last(self, lines: tuple[_Line, ...], index: int, start: int) -> int | None:
        """The line that the statement beginning here ends on; None if something is not closed, which is reported."""
        open_at: list[int] = []
        actions = self._section is not None and self._section.name == "actions"
        last = index
        for number in range(index, min(len(lines), index + _MOST_LINES)):
            line = lines[number]
            if number > index and self._opens(line):
                break
            for kind, first, end in line.pieces:
                if first >= start and not self._fits(kind, first, end, open_at, actions):
                    return None
            last = number
            if actions or (not open_at and not self._goes_on(line, lines, number)):
                return last
        if not open_at:
            return last
        self._unclosed(open_at[-1], open_at[-1] + 1, "This parenthesis", "is not closed", "Write `)` where it ends.")
        return None

    def _fits(self, kind: str, first: int, end: int, open_at: list[int], actions: bool) -> bool:
        """Follow one piece; whether the statement can be gone on with."""
        if kind == "open_text":
            remedy = "Text stands in single quotes, `'guest'`; a quote in it is doubled: `'it''s'`."
            self._unclosed(first, end, "A text", "does not end on this line", remedy)
            return False
        if actions:
            return True
        if kind == "opening":
            open_at.append(first)
        elif kind == "closing" and not open_at:
            remedy = "Take it out, or write `(` where it should begin."
            self._unclosed(first, end, "This parenthesis", "closes nothing", remedy)
            return False
        elif kind == "closing":
            open_at.pop()
        if len(open_at) > DEEPEST:
            place = self.source.location(first, end)
            remedy = "Split the conditions into several lines: a line break is an `and`."
            self.problems.add(POLICY_TOO_LARGE(place, what="levels of parentheses", limit=DEEPEST, remedy=remedy))
        return len(open_at) <= DEEPEST

    def _unclosed(self, first: int, end: int, what: str, reason: str, remedy: str) -> None:
        place = self.source.location(first, end)
        self.problems.add(NOT_CLOSED(place, what=what, reason=reason, remedy=remedy))

    def _opens(self, line: _Line) -> bool:
        """Whether a section, or another policy, begins on this line."""
        text = self._blanked(line.start, [line])
        found = _HEAD.match(text)
        if found is None:
            return False
        word, alone = found["word"].lower(), not text[found.end() :].strip()
        return word in SECTIONS or (alone and word in _SPOKEN) or _SECOND.match(text) is not None

    def _goes_on(self, line: _Line, lines: tuple[_Line, ...], number: int) -> bool:
        text = self._blanked(line.start, [line])
        if not text.strip():  # a blank line or a comment inside of a statement
            return number + 1 < len(lines)
        return _GOES_ON.search(text) is not None

    def _statement(self, start: int, lines: list[_Line] | tuple[_Line, ...]) -> PolicyStatement:
        return PolicyStatement(start, self._blanked(start, lines).rstrip())

    def _blanked(self, start: int, lines: list[_Line] | tuple[_Line, ...]) -> str:
        text = self.source.text[start : lines[-1].end]
        for line in lines:
            for kind, first, end in line.pieces:
                if kind == "comment" and first >= start:
                    text = text[: first - start] + " " * (end - first) + text[end - start :]
        return text


def _on(text: str) -> bool:
    return text.split()[:1] != [] and text.split()[0].lower() == "on"


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    pieces: list[tuple[str, int, int]] = []
    for found in _PIECE.finditer(text):
        kind = found.lastgroup or ""
        if kind == "break":
            yield _Line(start, found.start(), tuple(pieces))
            start, pieces = found.end(), []
        else:
            pieces.append((kind, found.start(), found.end()))
    yield _Line(start, len(text), tuple(pieces))
