"""Syntax → typed tree: names resolved, types and units settled, every problem reported with its place.

:func:`check` is the front door of the language. A construct with a problem yields no node; its neighbours are
still checked, so one expression reports all its problems at once.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.catalogue import NOT_IN_LANGUAGE
from situ.errors import Problem, SituError
from situ.expr.bounds import bound_problems
from situ.expr.calls import call
from situ.expr.checking import Checking, Handler
from situ.expr.fold import constant_problems
from situ.expr.forms import FORMS
from situ.expr.operands import OPERANDS
from situ.expr.operators import OPERATORS
from situ.expr.scope import Scope
from situ.expr.spatial import SPATIAL_FORMS
from situ.expr.syntax import Locate, Syntax, locate_in, parse_syntax
from situ.expr.tree import NULL, Node
from situ.types.model import BOOLEAN, STRING, Type
from situ.units import NO_UNIT, Unit


@dataclass(frozen=True, slots=True)
class Checked:
    """A checked expression: its tree, unless it has errors, and everything found on the way."""

    text: str
    node: Node | None
    problems: tuple[Problem, ...]

    def tree(self) -> Node:
        """The tree; :class:`SituError` with all problems if there is none."""
        if self.node is None:
            raise SituError(*self.problems)
        return self.node


def check(
    text: str, scope: Scope, *, locate: Locate | None = None, expected: Type | None = None, unit: Unit = NO_UNIT
) -> Checked:
    """Read and check an expression. ``expected`` is the type it must have, with ``unit`` also the unit."""
    places = locate or locate_in(text)
    try:
        syntax = parse_syntax(text, places, scope.limits)
    except SituError as error:
        return Checked(text, None, error.problems)
    checking = Checking(scope, places, _HANDLERS, _FORMS)
    node = checking.node(syntax)
    if node is not None and expected is not None:
        node = checking.as_type(node, expected, unit, "The result")
    if node is not None and node.type == NULL:
        node = checking.as_type(node, expected or STRING, NO_UNIT, "The result")
    if node is not None and not checking.problems.errors:
        checking.problems.extend(constant_problems(node, places))
        checking.problems.extend(bound_problems(node, places(0, len(text))))
    failed = bool(checking.problems.errors)
    return Checked(text, None if failed else node, tuple(checking.problems))


def check_condition(text: str, scope: Scope, *, locate: Locate | None = None) -> Checked:
    """An expression that must be true or false: a filter."""
    return check(text, scope, locate=locate, expected=BOOLEAN)


def _call(check: Checking, syntax: Syntax) -> Node | None:
    return call(check, syntax.text, None, syntax)


def _stray(check: Checking, syntax: Syntax) -> None:
    check.refuse(NOT_IN_LANGUAGE(check.at(syntax), found="`AS` or `->` outside of a function that takes it"))


_HANDLERS: dict[str, Handler] = {**OPERANDS, **OPERATORS, "call": _call, "field": _stray, "lambda": _stray}
_FORMS: dict[str, Handler] = {**FORMS, **SPATIAL_FORMS}
