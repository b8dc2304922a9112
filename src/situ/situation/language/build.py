"""The grammar's tree of one statement → ours, with the place of everything in the file."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from lark import Token, Tree

from situ.catalogue import OPTION_UNFIT, POLICY_SYNTAX
from situ.documents.source import Source
from situ.errors import Location, SituError
from situ.expr.spelling import spell
from situ.quantities import parse_duration
from situ.situation.language.syntax import (
    ActionText,
    AllOf,
    AnyOf,
    AttributeOf,
    Comparison,
    ConceptDef,
    Condition,
    FollowedBy,
    MeasureOf,
    Name,
    Operand,
    Property,
    Relation,
    Value,
)


class Builder:
    """The grammar's tree → ours; ``start`` is where the statement begins in the file."""

    def __init__(self, source: Source, start: int) -> None:
        self.source, self.start = source, start

    def place(self, node: Any) -> Location:
        if isinstance(node, Token):
            return self.source.location(self.start + (node.start_pos or 0), self.start + (node.end_pos or 0))
        return self.source.location(self.start + node.meta.start_pos, self.start + node.meta.end_pos)

    def name(self, token: Any) -> Name:
        return Name(str(token), location=self.place(token))

    def value(self, token: Any) -> Value:
        return Value(spell(str(token)), location=self.place(token))

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

    def concepts(self, tree: Tree[Token]) -> tuple[ConceptDef, ...]:
        return tuple(self.concept(each) for each in tree.children if isinstance(each, Tree))

    def concept(self, tree: Tree[Token]) -> ConceptDef:
        concept, alias, *properties = tree.children
        return ConceptDef(
            self.name(concept),
            self.name(alias),
            tuple(self.property(each) for each in properties if isinstance(each, Tree)),
            location=self.place(tree),
        )

    def property(self, tree: Tree[Token]) -> Property:
        attribute, operator, *values = tree.children
        sign = str(operator).lower()
        if sign == "in":
            place = self.source.location(self.place_of(values[0])[0], self.place_of(values[-1])[1])
            value = Value(f"({', '.join(spell(str(each)) for each in values)})", location=place)
        else:
            (only,) = values
            value = self.value(only.children[0] if isinstance(only, Tree) else only)
        return Property(self.name(attribute), sign, value, location=self.place(tree))

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

    def _relation(self, tree: Tree[Token]) -> Relation:
        left, is_, not_, relationship, parameter, of, right = tree.children
        return Relation(
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
