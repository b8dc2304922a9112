"""Does an expression give what a declaration promises? And is it bounded, once the functions it calls are put in?

Numbers, text and the like are settled by the checker itself. Structs have no name when an expression makes them and fit
by their attributes; they take on the declared shape here.
"""

from __future__ import annotations

from dataclasses import replace

from situ.catalogue import TOO_LARGE, WRONG_TYPE, WRONG_UNIT
from situ.errors import Problem, Problems
from situ.expr.check import Checked, check
from situ.expr.coerce import Meeting, Mismatch, is_number
from situ.expr.functions.table import FUNCTIONS
from situ.expr.scope import Scope, Variable
from situ.expr.syntax import Locate
from situ.expr.tree import Apply, Literal, MakeStruct, Node, children
from situ.types.model import INT, Decimal, ListOf, Struct, Type, fits, is_subtype, plain, unit_below
from situ.units import NO_UNIT, Unit

_DEEPEST = 150
"""Levels of a tree after functions were put in: those who walk over it, and both engines, must be able to."""


def check_bounded(
    text: str, scope: Scope, locate: Locate, expected: Type | None = None, unit: Unit = NO_UNIT
) -> Checked:
    """Check an expression that may call functions of the project, which may call others, and so on."""
    try:
        checked = check(text, scope, locate=locate, expected=expected, unit=unit)
    except RecursionError:
        checked = Checked(text, None, ())
    else:
        if checked.node is None or _depth(checked.node) <= _DEEPEST:
            return checked
    what = "levels after functions are put in"
    return Checked(text, None, (*checked.problems, TOO_LARGE(locate(0, len(text)), what=what, limit=_DEEPEST)))


def _depth(node: Node) -> int:
    deepest = 0
    waiting = [(node, 1)]
    while waiting:
        part, depth = waiting.pop()
        deepest = max(deepest, depth)
        waiting.extend((below, depth + 1) for below in children(part))
    return deepest


def check_result(text: str, scope: Scope, result: Variable, locate: Locate) -> Checked:
    """Check an expression that must give a declared result."""
    unit = result.unit if scope.with_units else NO_UNIT
    if not _has_struct(result.type):
        as_it_is = check_bounded(text, scope, locate, result.type, unit)
        if as_it_is.node is not None or not isinstance(plain(result.type), Decimal):
            return as_it_is
    checked = check_bounded(text, scope, locate)
    if checked.node is None:
        return checked
    fitting = _Fitting(scope, locate)
    node = fitting.fit(checked.node, result.type, unit, "The result")
    failed = bool(fitting.problems.errors)
    return Checked(text, None if failed else node, (*checked.problems, *fitting.problems))


def _has_struct(type: Type) -> bool:
    bare = plain(type)
    return isinstance(bare, Struct) or (isinstance(bare, ListOf) and _has_struct(bare.element))


def _narrowed(node: Node, wanted: Type) -> Node:
    """A decimal with more digits before the point than declared; one that does not fit fails, as in a cast.

    Products have as many digits as both factors together, so no amount times a rate would ever be an amount. Digits
    behind the point are never cut off unasked.
    """
    found = plain(node.type)
    if not (isinstance(found, Decimal) and isinstance(wanted, Decimal)) or isinstance(node, Literal):
        return node
    if found.scale > wanted.scale or fits(found, wanted):
        return node
    overload = next(each for each in FUNCTIONS["to_decimal"].overloads if each.parameters[0] == "decimal")
    digits = (Literal(wanted.precision, INT), Literal(wanted.scale, INT))
    return Apply(overload, (node, *digits), wanted, node.unit, span=node.span)


class _Fitting:
    def __init__(self, scope: Scope, locate: Locate) -> None:
        self._scope, self._locate = scope, locate
        self.problems = Problems()

    def fit(self, node: Node, type: Type, unit: Unit, what: str) -> Node:
        """The node as a value of the type; itself, with problems noted, where it is none."""
        wanted = plain(type)
        if isinstance(wanted, Struct) and isinstance(node, MakeStruct):
            return self._struct(node, wanted, unit, what)
        if _has_struct(wanted):
            if not (is_subtype(node.type, wanted) or fits(node.type, wanted)):
                self._wrong_type(node, type, what)
            elif self._scope.with_units and is_subtype(node.type, wanted) and node.unit != unit:
                self._wrong_unit(node, unit, what)
            return node
        try:
            meeting = Meeting(what, self._locate, self._scope.units)
            return meeting.coerce(_narrowed(node, wanted), type, unit if is_number(type) else NO_UNIT)
        except Mismatch as mismatch:
            self.problems.add(mismatch.problem)
            return node

    def _struct(self, node: MakeStruct, wanted: Struct, unit: Unit, what: str) -> Node:
        known = {attribute.name: attribute for attribute in wanted.attributes}
        given = dict(node.fields)
        missing = [a.name for a in wanted.attributes if a.name not in given and not a.optional and a.default is None]
        for name in (*missing, *(name for name in given if name not in known)):
            found = f"no attribute `{name}`" if name in known else f"an attribute `{name}`"
            self._report(node, what, found, f"the attributes of {wanted}: {', '.join(known)}")
        fields = []
        for name, part in node.fields:
            if (attribute := known.get(name)) is not None:
                below = unit_below(wanted, unit, attribute) if self._scope.with_units else NO_UNIT
                part = self.fit(part, attribute.type, below, f"`{name}` of {wanted}")
                if part.nullable and not attribute.optional:
                    self._report(part, f"`{name}` of {wanted}", "a value that may be null", "one that never is")
            fields.append((name, part))
        attributes = tuple(
            replace(old, type=part.type, unit=part.unit)
            for old, (_, part) in zip(node.type.attributes, fields, strict=True)
        )
        return MakeStruct(tuple(fields), Struct("", attributes), span=node.span)

    def _wrong_type(self, node: Node, type: Type, what: str) -> None:
        self._report(node, what, str(node.type), str(type))

    def _report(self, node: Node, what: str, found: str, expected: str) -> None:
        remedy = "Give it a value with coalesce(…, default)." if "null" in found else ""
        place = self._locate(node.span[0], node.span[1] - node.span[0])
        problem: Problem = WRONG_TYPE(place, what=what, found=found, expected=expected, remedy=remedy)
        self.problems.add(problem)

    def _wrong_unit(self, node: Node, unit: Unit, what: str) -> None:
        place = self._locate(node.span[0], node.span[1] - node.span[0])
        shown = f"a value in {node.unit}" if node.unit.factors else "a value without unit"
        wanted = f"one in {unit}" if unit.factors else "one without unit"
        remedy = "Write the unit of what the expression gives into the signature."
        self.problems.add(WRONG_UNIT(place, what=what, found=shown, expected=wanted, remedy=remedy))
