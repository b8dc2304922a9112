"""Checks an expression: text → typed tree with all its problems, within bounds, with the result that is promised.

:func:`check` and :func:`check_condition` are the front door of the language. Before them: what an expression costs at
most. Behind them: :func:`check_bounded` and :func:`check_result`, for expressions that call functions of a project or
define one.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator

import msgspec

from situ.lang.catalogue import NOT_IN_LANGUAGE, TOO_LARGE, WRONG_TYPE, WRONG_UNIT
from situ.lang.expr.checker.calls import call
from situ.lang.expr.checker.coerce import Meeting, Mismatch, is_number
from situ.lang.expr.checker.context import OPERANDS, Checking, Handler
from situ.lang.expr.checker.forms import FORMS
from situ.lang.expr.checker.operators import OPERATORS, SPATIAL_FORMS
from situ.lang.expr.emit.spark import emit_spark
from situ.lang.expr.functions.table import FUNCTIONS
from situ.lang.expr.runtime import LONGEST_TEXT
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.simplify import constant_problems
from situ.lang.expr.syntax import Locate, Syntax, locate_in, parse_syntax
from situ.lang.expr.tree import (
    NULL,
    And,
    Apply,
    Case,
    Coalesce,
    Each,
    ForEach,
    IsNull,
    Literal,
    MakeStruct,
    Node,
    Not,
    Or,
    Read,
    children,
    walk,
)
from situ.lang.problems import Location, Problem, Problems, SituError
from situ.lang.records import replace
from situ.lang.types.model import (
    BOOLEAN,
    BYTES,
    INT,
    STRING,
    Decimal,
    ListOf,
    Struct,
    Type,
    fits,
    is_subtype,
    plain,
    unit_below,
)
from situ.lang.units import NO_UNIT, Unit

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What an expression costs at most, told from its tree: patterns to match, text to hold, work for Spark.
#
# The number of nodes alone bounds neither memory nor time: a text can be put together with itself many times over, and
# some forms that are harmless one by one are too much for an engine inside each other.

MOST_TEXT = 64
"""How many times the text of an event an expression may hold at once."""

MOST_PATTERNS = 4096
"""Characters of LIKE patterns in an expression: matching takes up to their number times that of the text."""

_EVENT = 1 << 20  # characters: the largest event, unless a project says otherwise
_ELEMENTS = _EVENT // 2


def bound_problems(node: Node, location: Location) -> Iterator[Problem]:
    """What is too much about an expression that is right otherwise."""
    patterns = sum(
        len(part.constants[0]) for part in walk(node) if isinstance(part, Apply) and part.overload.name == "like"
    )
    if patterns > MOST_PATTERNS:
        yield TOO_LARGE(location, what="characters of LIKE patterns", limit=MOST_PATTERNS)
    if _Texts().held(node).most > MOST_TEXT:
        yield TOO_LARGE(location, what="times the text of its event to be held at once", limit=MOST_TEXT)
    try:
        emit_spark(node)
    except SituError as error:
        yield from (problem.code(location, **problem.values) for problem in error.problems)


class _Volume:
    """An amount of text: so many times the text of each path, and so many events' worth besides.

    Paths are different parts of one event, so what counts is the one that is used most.
    """

    __slots__ = ("besides", "paths")

    def __init__(self, paths: dict[tuple[str, ...], float] | None = None, besides: float = 0.0) -> None:
        self.paths, self.besides = paths or {}, besides

    @property
    def most(self) -> float:
        return self.besides + max(self.paths.values(), default=0.0)

    def times(self, factor: float) -> _Volume:
        return _Volume({key: count * factor for key, count in self.paths.items()}, self.besides * factor)


_NOTHING = _Volume()


def _sum(volumes: Iterable[_Volume]) -> _Volume:
    return _together(volumes, operator.add)


def _either(volumes: Iterable[_Volume]) -> _Volume:
    """Any of these, whichever is most."""
    return _together(volumes, max)


def _together(volumes: Iterable[_Volume], join: Callable[[float, float], float]) -> _Volume:
    paths: dict[tuple[str, ...], float] = {}
    besides = 0.0
    for volume in volumes:
        besides = join(besides, volume.besides)
        for path, count in volume.paths.items():
            paths[path] = join(paths.get(path, 0.0), count)
    return _Volume(paths, besides)


class _Texts:
    """Volumes of the nodes of one tree; each node is looked at once, however often it is used."""

    def __init__(self) -> None:
        self._held: dict[int, _Volume] = {}

    def held(self, node: Node) -> _Volume:
        """The text made and not yet let go of while the node is computed; that of the event is there anyway."""
        if id(node) not in self._held:
            self._held[id(node)] = self._hold(node)
        return self._held[id(node)]

    def _hold(self, node: Node) -> _Volume:
        match node:
            case Literal() | Read():
                return _NOTHING
            case And() | Or() | Not() | IsNull() | Case() | Coalesce():
                return _either(self.held(part) for part in children(node))
            case ForEach():
                return _sum((self.held(node.list), self._in_elements(node)))
            case Apply() if plain(node.type) in (STRING, BYTES):
                return _sum((*(self.held(part) for part in node.args), self.length(node)))
            case _:
                return _sum(self.held(part) for part in children(node))

    def _in_elements(self, node: ForEach) -> _Volume:
        """All elements together are part of the event; what else is put into each is there for each of them."""
        body = self.held(node.body)
        own = sum(count for path, count in body.paths.items() if path[0] == node.variable)
        others = {path: count for path, count in body.paths.items() if path[0] != node.variable}
        within = _reads(node.list).times(own)
        if node.kind is not Each.TRANSFORM:
            return _sum((within, _Volume(others, body.besides)))
        # The checker sees to it that all copies of a path together are no more than an event.
        return _sum((within, _Volume({}, sum(others.values()) + body.besides * _ELEMENTS)))

    def length(self, node: Node) -> _Volume:
        """How long the text of the node can be."""
        match node:
            case Literal(value=value):
                return _Volume({}, len(value) / _EVENT if isinstance(value, str | bytes) else 0.0)
            case Case(results=results):
                return _either(self.length(part) for part in results)
            case Coalesce(args=args):
                return _either(self.length(part) for part in args)
            case Apply(overload=overload, args=args):
                match overload.name:
                    case "||":
                        return _sum(self.length(part) for part in args)
                    case "least" | "greatest":
                        return _either(self.length(part) for part in args)
                    case "replace":
                        return self._replaced(args)
                    case "element_at":
                        return _reads(node)
                    case _ if plain(args[0].type) in (STRING, BYTES):
                        return self.length(args[0])
                return _NOTHING
            case _:
                return _reads(node)

    def _replaced(self, args: tuple[Node, ...]) -> _Volume:
        old, new = (len(arg.value) if isinstance(arg, Literal) and arg.value is not None else None for arg in args[1:])
        factor = max(1.0, new / max(1, old or 1)) if new is not None else LONGEST_TEXT
        longest = self.length(args[0]).times(factor)
        most = LONGEST_TEXT / _EVENT  # beyond it the function fails
        return longest if longest.most < most else _Volume({}, most)


def _reads(node: Node) -> _Volume:
    return _Volume({(read.variable, *read.path): 1.0 for read in walk(node) if isinstance(read, Read)})


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Syntax → typed tree: names resolved, types and units settled, every problem reported with its place.
#
# A construct with a problem yields no node; its neighbours are still checked, so one expression reports all its
# problems at once.


class Checked(msgspec.Struct, frozen=True):
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
    text: str, scope: NameScope, *, locate: Locate | None = None, expected: Type | None = None, unit: Unit = NO_UNIT
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


def check_condition(text: str, scope: NameScope, *, locate: Locate | None = None) -> Checked:
    """An expression that must be true or false: a filter."""
    return check(text, scope, locate=locate, expected=BOOLEAN)


def _call(check: Checking, syntax: Syntax) -> Node | None:
    return call(check, syntax.text, None, syntax)


def _stray(check: Checking, syntax: Syntax) -> None:
    check.refuse(NOT_IN_LANGUAGE(check.at(syntax), found="`AS` or `->` outside of a function that takes it"))


_HANDLERS: dict[str, Handler] = {**OPERANDS, **OPERATORS, "call": _call, "field": _stray, "lambda": _stray}
_FORMS: dict[str, Handler] = {**FORMS, **SPATIAL_FORMS}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Does an expression give what a declaration promises? And is it bounded, once the functions it calls are put in?
#
# Numbers, text and the like are settled by the checker itself. Structs have no name when an expression makes them and
# fit by their attributes; they take on the declared shape here.

_DEEPEST = 150
"""Levels of a tree after functions were put in: those who walk over it, and both engines, must be able to."""


def check_bounded(
    text: str, scope: NameScope, locate: Locate, expected: Type | None = None, unit: Unit = NO_UNIT
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


def check_result(text: str, scope: NameScope, result: Variable, locate: Locate) -> Checked:
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
    def __init__(self, scope: NameScope, locate: Locate) -> None:
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
