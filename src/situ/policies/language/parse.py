"""Policy text → its tree, with a place for everything, or every problem of the file at once.

`PolicyTreeBuilder` makes our tree of the grammar's, `parse_policy` reads a file, `parse_condition` one line. The
grammar is ``grammar.lark``. Whether names mean anything is not known here.
"""

from __future__ import annotations

import hashlib
import pkgutil
import re
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import cache, lru_cache
from typing import Any, TypeVar

from lark import Lark, Token, Tree
from lark import __version__ as lark_version
from lark.exceptions import UnexpectedInput

from situ.lang.catalogue import NO_SECTION, OPTION_UNFIT, POLICY_SYNTAX, POLICY_TOO_LARGE, SECTION_UNFIT
from situ.lang.documents.nodes import DocumentLimits, SourceText, read_source
from situ.lang.expr.syntax import spell
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.quantities import parse_duration
from situ.policies.language.mistakes import explain_refusal
from situ.policies.language.statements import (
    DEEPEST,
    OPTIONS,
    SECTIONS,
    PolicyBlock,
    PolicySection,
    PolicyStatement,
    split_statements,
)
from situ.policies.language.syntax import (
    ActionText,
    AllOf,
    AnyOf,
    AttributeOf,
    Comparison,
    ConceptDefinition,
    Condition,
    ConsumptionMode,
    FollowedBy,
    MeasureOf,
    Name,
    Operand,
    PolicyText,
    PropertyText,
    RelationText,
    ValueText,
    When,
)
from situ.policies.language.syntax_errors import RefusedStatement, foreign_spellings

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The grammar's tree of one statement → ours.


class PolicyTreeBuilder:
    """The grammar's tree → ours; ``start`` is where the statement begins in the file."""

    def __init__(self, source: SourceText, start: int) -> None:
        self.source, self.start = source, start

    def place(self, node: Any) -> Location:
        if isinstance(node, Token):
            return self.source.location(self.start + (node.start_pos or 0), self.start + (node.end_pos or 0))
        return self.source.location(self.start + node.meta.start_pos, self.start + node.meta.end_pos)

    def name(self, token: Any) -> Name:
        return Name(str(token), location=self.place(token))

    def value(self, token: Any) -> ValueText:
        return ValueText(spell(str(token)), location=self.place(token))

    def duration(self, token: Any, option: str) -> timedelta:
        place = self.place(token)
        try:
            found = parse_duration(spell(str(token)).replace("[", "").replace("]", ""), place)
        except SituError as error:
            (cause,) = error.problems
            if option == "followed-by":
                expected = "a duration"
                problem = POLICY_SYNTAX(
                    place, cause=cause, found=f"`{token}`", expected=expected, nearest=(), remedy=""
                )
                raise SituError(problem) from None
            problem = OPTION_UNFIT(place, cause=cause, option=option, reason="is no duration", nearest=(), remedy="")
            raise SituError(problem) from None
        if not found and option in ("window", "followed-by"):
            reason, remedy = "must be longer than nothing", "Write a duration such as `5 s`."
            raise SituError(OPTION_UNFIT(place, option=option, reason=reason, nearest=(), remedy=remedy))
        return found

    # ── concepts ──

    def concepts(self, tree: Tree[Token]) -> tuple[ConceptDefinition, ...]:
        return tuple(self.concept(each) for each in tree.children if isinstance(each, Tree))

    def concept(self, tree: Tree[Token]) -> ConceptDefinition:
        concept, alias, *properties = tree.children
        return ConceptDefinition(
            self.name(concept),
            self.name(alias),
            tuple(self.property(each) for each in properties if isinstance(each, Tree)),
            location=self.place(tree),
        )

    def property(self, tree: Tree[Token]) -> PropertyText:
        attribute, operator, *values = tree.children
        sign = str(operator).lower()
        if sign == "in":
            place = self.source.location(self.place_of(values[0])[0], self.place_of(values[-1])[1])
            value = ValueText(f"({', '.join(spell(str(each)) for each in values)})", location=place)
        else:
            (only,) = values
            value = self.value(only.children[0] if isinstance(only, Tree) else only)
        return PropertyText(self.name(attribute), sign, value, location=self.place(tree))

    def place_of(self, token: Any) -> tuple[int, int]:
        return self.start + (token.start_pos or 0), self.start + (token.end_pos or 0)

    # ── conditions ──

    def condition(self, tree: Tree[Token]) -> Condition:
        match tree.data:
            case "either":
                return AnyOf(self._parts(tree), location=self.place(tree))
            case "both":
                return AllOf(self._parts(tree), location=self.place(tree))
            case "followed_by":
                return self._followed_by(tree)
            case "relation":
                return self._relation(tree)
            case "comparison":
                not_, left, sign, right = tree.children
                return Comparison(
                    self.operand(left),
                    str(sign),
                    self.operand(right),
                    negated=not_ is not None,
                    location=self.place(tree),
                )
            case other:
                raise AssertionError(f"a rule without a case: {other}")

    def _parts(self, tree: Tree[Token]) -> tuple[Condition, ...]:
        return tuple(self.condition(each) for each in tree.children if isinstance(each, Tree))

    def _followed_by(self, tree: Tree[Token]) -> FollowedBy:
        first, within, second = tree.children
        assert isinstance(first, Tree)
        assert isinstance(second, Tree)
        window = self.duration(within, "followed-by") if isinstance(within, Token) else None
        return FollowedBy(self.condition(first), self.condition(second), window, location=self.place(tree))

    def _relation(self, tree: Tree[Token]) -> RelationText:
        left, is_, not_, relationship, parameter, of, right = tree.children
        return RelationText(
            self.name(left),
            self.name(relationship),
            self.name(right),
            negated=not_ is not None,
            parameter=self.value(parameter.children[0]) if isinstance(parameter, Tree) else None,
            says_is=is_ is not None,
            says_of=of is not None,
            location=self.place(tree),
        )

    def operand(self, tree: Any) -> Operand:
        match tree.data:
            case "measure":
                measure, left, right = (self.name(each) for each in tree.children)
                return MeasureOf(measure, left, right, location=self.place(tree))
            case "attribute":
                alias, attribute = (self.name(each) for each in tree.children)
                return AttributeOf(alias, attribute, location=self.place(tree))
            case "scalar":
                return self.value(tree.children[0])
            case other:
                raise AssertionError(f"a rule without a case: {other}")

    # ── actions ──

    def action(self, tree: Tree[Token]) -> ActionText:
        return ActionText(tuple(self.name(each) for each in tree.children), location=self.place(tree))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The parser. :mod:`situ.policies.language.statements` takes a file apart into statements, and each is read by itself.
# What is said about statements that are none is :mod:`situ.policies.language.mistakes`.

T = TypeVar("T")

LIMITS = DocumentLimits(size=256 * 1024, problems=100)
_DEFINED = re.compile(r"\s*[^\W\d][\w-]*\s+(?P<alias>[^\W\d][\w-]*)")
_RULES = ("policy", "duration", "consumption", "when", "concepts", "condition", "action")
_EXAMPLES = {"concepts": "person A", "conditions": "A is inside R", "actions": "raise alarm"}


def parse_policy(data: str | bytes, file: str, limits: DocumentLimits = LIMITS) -> PolicyText:
    """The policy of a file; :class:`SituError` with all problems, by place, if it is none."""
    source = read_source(data, file, limits)
    if isinstance(source, Problem):
        raise SituError(source)
    return _parse(source.file, source.text, limits)


@lru_cache(maxsize=64)  # who looks at a text before it is added asks again at once
def _parse(file: str, text: str, limits: DocumentLimits) -> PolicyText:
    source = SourceText(file, text)
    problems = Problems()
    blocks = split_statements(source, problems, limits.problems)
    policies = [_Policy(source, block, problems, limits, alone=len(blocks) == 1).read() for block in blocks]
    if problems:
        raise SituError(*problems.sorted())
    (policy,) = policies
    assert policy is not None
    return policy


def parse_condition(text: str, file: str = "condition") -> Condition:
    """One line of conditions; :class:`SituError` if it is none."""
    source = SourceText(file, text)
    tree = _read("condition", PolicyStatement(0, text), source)
    return PolicyTreeBuilder(source, 0).condition(tree)


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
    from situ.policies.language.grammar_table import DATA, KEY, MEMO

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


def _read(rule: str, statement: PolicyStatement, source: SourceText, aliases: Iterable[str] = ()) -> Tree[Token]:
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
        raise SituError(explain_refusal(_refused(rule, statement, source, error, tuple(aliases)))) from None
    return tree


def _refused(
    rule: str, statement: PolicyStatement, source: SourceText, error: UnexpectedInput, aliases: tuple[str, ...]
) -> RefusedStatement:
    accepted = getattr(error, "accepts", None) or getattr(error, "expected", None) or getattr(error, "allowed", None)
    token = getattr(error, "token", None)
    at = len(statement.text) if token is not None and token.type == "$END" else error.pos_in_stream
    return RefusedStatement(rule, statement, source, at or 0, frozenset(accepted or ()), aliases)


class _Policy:
    """One policy being read."""

    def __init__(
        self, source: SourceText, block: PolicyBlock, problems: Problems, limits: DocumentLimits, *, alone: bool
    ) -> None:
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
                self.problems.add(
                    explain_refusal(RefusedStatement("preamble", statement, self.source, _blanks(statement.text)))
                )
        return name, options

    def _option(self, word: str, statement: PolicyStatement, rest: PolicyStatement, options: dict[str, Any]) -> None:
        if word in options:
            place = self.source.location(statement.start + _blanks(statement.text), statement.end)
            remedy = "Leave one of them."
            self.problems.add(OPTION_UNFIT(place, option=word, reason="is there twice", nearest=(), remedy=remedy))
        elif word == "consumption":
            options[word] = self._attempt(
                word, rest, lambda built, tree: ConsumptionMode(str(tree.children[0]).lower())
            )
        else:
            options[word] = self._attempt("duration", rest, lambda built, tree: built.duration(tree.children[0], word))

    # ── sections ──

    def _each(
        self,
        section: PolicySection | None,
        rule: str,
        build: Callable[[PolicyTreeBuilder, Tree[Token]], T],
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
        statement: PolicyStatement,
        build: Callable[[PolicyTreeBuilder, Tree[Token]], T],
        aliases: Iterable[str] = (),
    ) -> T | None:
        try:
            return build(PolicyTreeBuilder(self.source, statement.start), _read(rule, statement, self.source, aliases))
        except SituError as error:
            self.problems.extend(error.problems)
            return None

    def _when(self, section: PolicySection | None) -> When | None:
        if section is None or section.when is None:
            return None
        words = self._attempt("when", section.when, lambda built, tree: tree.children)
        return When(" ".join(str(word).lower() for word in words[1:])) if words else None

    def _need(self, name: str, section: PolicySection | None) -> None:
        if section is None:
            place = self.source.location(len(self.source.text.rstrip()))
            self.problems.add(NO_SECTION(place, section=name, example=_EXAMPLES[name]))
        elif not section.statements and not section.broken:
            place = self.source.location(section.start, section.start + len(name))
            remedy = f"Write below it, one a line, such as `{_EXAMPLES[name]}`."
            self.problems.add(SECTION_UNFIT(place, section=name, reason="is empty", remedy=remedy))

    def _all(self, lines: list[Condition]) -> Condition:
        return lines[0] if len(lines) == 1 else AllOf(tuple(lines), lines=True, location=lines[0].location)


def _aliases(section: PolicySection | None) -> tuple[str, ...]:
    """The aliases of the policy, those of concepts that could not be read among them: for hints only."""
    found = (_DEFINED.match(each.text) for each in (section.statements if section else ()))
    return tuple(each["alias"] for each in found if each)


def _first_word(statement: PolicyStatement) -> tuple[str, PolicyStatement]:
    begin = _blanks(statement.text)
    end = begin
    while end < len(statement.text) and (statement.text[end].isalnum() or statement.text[end] in "_-"):
        end += 1
    rest = PolicyStatement(statement.start + end, statement.text[end:])
    return statement.text[begin:end].lower(), rest


def _blanks(text: str) -> int:
    return len(text) - len(text.lstrip())
