"""Policy text → its tree, with a place for everything, or every problem of the file at once.

The grammar is ``grammar.lark``; :mod:`situ.situation.language.lines` takes a file apart into statements, and each is
read by itself. What is said about statements that are none is :mod:`situ.situation.language.mistakes`. Whether names
mean anything is not known here.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, TypeVar

from lark import Lark, Token, Tree
from lark import __version__ as lark_version
from lark.exceptions import UnexpectedInput

from situ.catalogue import NO_SECTION, OPTION_UNFIT, POLICY_TOO_LARGE, SECTION_UNFIT
from situ.documents.source import Limits, Source, read_source
from situ.errors import Problem, Problems, SituError
from situ.situation.language.build import Builder
from situ.situation.language.foreign import foreign_spellings
from situ.situation.language.lines import DEEPEST, OPTIONS, SECTIONS, Block, Section, Statement, take_apart
from situ.situation.language.mistakes import explain
from situ.situation.language.refused import Refused
from situ.situation.language.syntax import AllOf, Condition, Consumption, Name, PolicyText, When

T = TypeVar("T")

LIMITS = Limits(size=256 * 1024, problems=100)
_DEFINED = re.compile(r"\s*[^\W\d][\w-]*\s+(?P<alias>[^\W\d][\w-]*)")
_RULES = ("policy", "duration", "consumption", "when", "concepts", "condition", "action")
_EXAMPLES = {"concepts": "person A", "conditions": "A is inside R", "actions": "raise alarm"}


def parse_policy(data: str | bytes, file: str, limits: Limits = LIMITS) -> PolicyText:
    """The policy of a file; :class:`SituError` with all problems, by place, if it is none."""
    source = read_source(data, file, limits)
    if isinstance(source, Problem):
        raise SituError(source)
    problems = Problems()
    blocks = take_apart(source, problems, limits.problems)
    policies = [_Policy(source, block, problems, limits, alone=len(blocks) == 1).read() for block in blocks]
    if problems:
        raise SituError(*problems.sorted())
    (policy,) = policies
    assert policy is not None
    return policy


def parse_condition(text: str, file: str = "condition") -> Condition:
    """One line of conditions; :class:`SituError` if it is none."""
    source = Source(file, text)
    tree = _read("condition", Statement(0, text), source)
    return Builder(source, 0).condition(tree)


def reads(text: str) -> bool:
    """Whether the grammar takes a line of conditions; nothing is said about one that it does not."""
    try:
        _grammar().parse(text, start="condition")
    except UnexpectedInput:
        return False
    return True


@cache
def _grammar() -> Lark:
    """The parser, from the table that was made of the grammar if it still fits."""
    from situ.situation.language.grammar_table import DATA, KEY, MEMO

    if grammar_key() != KEY:
        return build_grammar()
    loaded: Lark = Lark._load_from_dict(DATA, MEMO)  # type: ignore[no-untyped-call]
    return loaded


def grammar_key() -> str:
    """Says of which grammar, and for which release of lark, a table was made."""
    return f"{lark_version} {hashlib.sha256(_grammar_text()).hexdigest()}"


def build_grammar() -> Lark:
    """The parser, from the grammar itself."""
    return Lark(
        _grammar_text().decode(), parser="lalr", start=list(_RULES), propagate_positions=True, maybe_placeholders=True
    )


def _grammar_text() -> bytes:
    text = pkgutil.get_data(__package__, "grammar.lark")
    assert text is not None
    return text


def _read(rule: str, statement: Statement, source: Source, aliases: Iterable[str] = ()) -> Tree[Token]:
    """The grammar's tree of a statement, or one problem."""
    text = statement.text
    if foreign := foreign_spellings(rule, statement, source):
        raise SituError(*foreign)
    if text.lower().count("followed-by") > DEEPEST:
        place = source.location(statement.start, statement.end)
        remedy = "Split the conditions into several lines."
        raise SituError(POLICY_TOO_LARGE(place, what="`followed-by` in one statement", limit=DEEPEST, remedy=remedy))
    try:
        tree = _grammar().parse(text, start=rule)
    except UnexpectedInput as error:
        raise SituError(explain(_refused(rule, statement, source, error, tuple(aliases)))) from None
    return tree


def _refused(
    rule: str, statement: Statement, source: Source, error: UnexpectedInput, aliases: tuple[str, ...]
) -> Refused:
    accepted = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None)
    token = getattr(error, "token", None)
    at = len(statement.text) if token is not None and token.type == "$END" else error.pos_in_stream
    return Refused(rule, statement, source, at or 0, frozenset(accepted or ()), aliases)


class _Policy:
    """One policy being read."""

    def __init__(self, source: Source, block: Block, problems: Problems, limits: Limits, *, alone: bool) -> None:
        self.source, self.block, self.problems, self.limits = source, block, problems, limits
        self.alone = alone

    def read(self) -> PolicyText | None:
        name, options = self._preamble()
        sections = {section.name: section for section in reversed(self.block.sections)}
        concepts = self._each(sections.get("concepts"), "concepts", lambda built, tree: built.concepts(tree))
        aliases = _aliases(sections.get("concepts"))
        lines = self._each(sections.get("conditions"), "condition", lambda built, tree: built.condition(tree), aliases)
        actions = self._each(sections.get("actions"), "action", lambda built, tree: built.action(tree))
        when = self._when(sections.get("actions"))
        if sections or self.alone:
            for section in SECTIONS:
                self._need(section, sections.get(section))
        if self.problems:
            return None
        return PolicyText(
            name=name,
            concepts=tuple(each for group in concepts for each in group),
            conditions=self._all(lines),
            when=when,
            actions=tuple(actions),
            location=self.source.location(0),
            **options,
        )

    # ── before the sections ──

    def _preamble(self) -> tuple[Name | None, dict[str, Any]]:
        name: Name | None = None
        options: dict[str, Any] = {}
        strange = False
        for statement in self.block.preamble:
            word, rest = _first_word(statement)
            if word == "policy":
                name = self._attempt("policy", rest, lambda built, tree: built.name(tree.children[0])) or name
            elif word in OPTIONS:
                self._option(word, statement, rest, options)
            elif self.block.sections or not strange:  # without a section all lines are strange: one is enough
                strange = True
                self.problems.add(explain(Refused("preamble", statement, self.source, _blanks(statement.text))))
        return name, options

    def _option(self, word: str, statement: Statement, rest: Statement, options: dict[str, Any]) -> None:
        if word in options:
            place = self.source.location(statement.start + _blanks(statement.text), statement.end)
            remedy = "Leave one of them."
            self.problems.add(OPTION_UNFIT(place, option=word, reason="is there twice", nearest=(), remedy=remedy))
        elif word == "consumption":
            options[word] = self._attempt(word, rest, lambda built, tree: Consumption(str(tree.children[0]).lower()))
        else:
            options[word] = self._attempt("duration", rest, lambda built, tree: built.duration(tree.children[0], word))

    # ── sections ──

    def _each(
        self,
        section: Section | None,
        rule: str,
        build: Callable[[Builder, Tree[Token]], T],
        aliases: Iterable[str] = (),
    ) -> list[T]:
        found = []
        for statement in section.statements if section else ():
            if len(self.problems) >= self.limits.problems:
                break
            if (built := self._attempt(rule, statement, build, aliases)) is not None:
                found.append(built)
        return found

    def _attempt(
        self,
        rule: str,
        statement: Statement,
        build: Callable[[Builder, Tree[Token]], T],
        aliases: Iterable[str] = (),
    ) -> T | None:
        try:
            return build(Builder(self.source, statement.start), _read(rule, statement, self.source, aliases))
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    def _when(self, section: Section | None) -> When | None:
        if section is None or section.when is None:
            return None
        words = self._attempt("when", section.when, lambda built, tree: tree.children)
        return When(" ".join(str(word).lower() for word in words[1:])) if words else None

    def _need(self, name: str, section: Section | None) -> None:
        if section is None:
            place = self.source.location(len(self.source.text.rstrip()))
            self.problems.add(NO_SECTION(place, section=name, example=_EXAMPLES[name]))
        elif not section.statements and not section.broken:
            place = self.source.location(section.start, section.start + len(name))
            remedy = f"Write below it, one a line, such as `{_EXAMPLES[name]}`."
            self.problems.add(SECTION_UNFIT(place, section=name, reason="is empty", remedy=remedy))

    def _all(self, lines: list[Condition]) -> Condition:
        return lines[0] if len(lines) == 1 else AllOf(tuple(lines), lines=True, location=lines[0].location)


def _aliases(section: Section | None) -> tuple[str, ...]:
    """The aliases of the policy, those of concepts that could not be read among them: for hints only."""
    found = (_DEFINED.match(each.text) for each in (section.statements if section else ()))
    return tuple(each["alias"] for each in found if each)


def _first_word(statement: Statement) -> tuple[str, Statement]:
    begin = _blanks(statement.text)
    end = begin
    while end < len(statement.text) and (statement.text[end].isalnum() or statement.text[end] in "_-"):
        end += 1
    rest = Statement(statement.start + end, statement.text[end:])
    return statement.text[begin:end].lower(), rest


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())
