"""Syntax → typed tree: names resolved, types and units settled, every problem reported with its place.

:func:`check` is the front door of the language. A construct with a problem yields no node; its neighbours are
still checked, so one expression reports all its problems at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from situ.catalogue import NOT_IN_LANGUAGE, TOO_LARGE, UNKNOWN_NAME, WRONG_CALL, WRONG_TYPE
from situ.errors import Location, Problem, Problems, SituError, nearest
from situ.expr import literals
from situ.expr.arithmetic import combine
from situ.expr.calls import call
from situ.expr.coerce import Meeting, Mismatch, is_number
from situ.expr.fold import constant_problems
from situ.expr.functions.table import overloads
from situ.expr.functions.text import like_pieces
from situ.expr.navigate import attribute_names, attribute_of
from situ.expr.room import MOST_LEVELS, MOST_NODES
from situ.expr.scope import Scope, Variable
from situ.expr.syntax import Locate, Syntax, locate_in, parse_syntax
from situ.expr.tree import (
    FALSE,
    NULL,
    TRUE,
    And,
    Apply,
    Case,
    Coalesce,
    Compare,
    In,
    IsNull,
    Literal,
    Node,
    Not,
    Or,
    Read,
)
from situ.types.model import BOOLEAN, STRING, ListOf, Struct, Type, plain
from situ.units import NO_UNIT, UnknownUnit


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
    text: str, scope: Scope, *, locate: Locate | None = None, expected: Type | None = None, unit: Any = None
) -> Checked:
    """Read and check an expression. ``expected`` is the type it must have, with ``unit`` also the unit."""
    places = locate or locate_in(text)
    try:
        syntax = parse_syntax(text, places, scope.limits)
    except SituError as error:
        return Checked(text, None, error.problems)
    checking = Checking(scope, places)
    node = checking.node(syntax)
    if node is not None and expected is not None:
        node = checking.as_type(node, expected, unit or NO_UNIT, "The result")
    if node is not None and node.type == NULL:
        node = checking.as_type(node, expected or STRING, NO_UNIT, "The result")
    if node is not None and not checking.problems.errors:
        checking.problems.extend(constant_problems(node, places))
    failed = bool(checking.problems.errors)
    return Checked(text, None if failed else node, tuple(checking.problems))


def check_condition(text: str, scope: Scope, *, locate: Locate | None = None) -> Checked:
    """An expression that must be true or false: a filter."""
    return check(text, scope, locate=locate, expected=BOOLEAN)


class Checking:
    """One expression being checked: its scope, its places, its local variables, its problems."""

    def __init__(self, scope: Scope, locate: Locate) -> None:
        self.scope, self.locate = scope, locate
        self.problems = Problems()
        self.locals: list[tuple[str, str, Variable]] = []
        self.after_quantity: Syntax | None = None
        self.inlined = 0

    # ── helpers that handlers share ──

    def node(self, syntax: Syntax) -> Node | None:
        """The tree of a construct, or None after reporting what is wrong with it."""
        try:
            return self.bounded(_HANDLERS[syntax.kind](self, syntax), syntax)
        except Mismatch as mismatch:
            self.problems.add(mismatch.problem)
            return None

    def bounded(self, node: Node | None, syntax: Syntax) -> Node | None:
        """The node, unless parts that are used more than once made it larger than its text."""
        if node is None:
            return None
        for found, what, limit in ((node.size, "nodes", MOST_NODES), (node.depth, "levels", MOST_LEVELS)):
            if found > limit:
                self.refuse(TOO_LARGE(self.at(syntax), what=f"{what} when all is put in", limit=limit))
                return None
        return node

    def all(self, parts: Iterable[Syntax]) -> list[Node] | None:
        """The trees of all parts, or None if one has a problem; every part is looked at."""
        found = [self.node(part) for part in parts]
        return [node for node in found if node is not None] if None not in found else None

    def at(self, syntax: Syntax) -> Location:
        return self.locate(syntax.start, syntax.end - syntax.start)

    def meeting(self, what: str) -> Meeting:
        return Meeting(what, self.locate, self.scope.units)

    def as_type(self, node: Node, type: Type, unit: Any, what: str) -> Node | None:
        try:
            return self.meeting(what).coerce(node, type, unit if is_number(type) else NO_UNIT)
        except Mismatch as mismatch:
            self.problems.add(mismatch.problem)
            return None

    def condition(self, syntax: Syntax, what: str) -> Node | None:
        node = self.node(syntax)
        return None if node is None else self.as_type(node, BOOLEAN, NO_UNIT, what)

    def refuse(self, problem: Problem) -> None:
        self.problems.add(problem)

    def new_local(self, name: str) -> str:
        """A name for a lambda's variable that no other variable of this expression has."""
        taken = {*self.scope.variables, *(made for _, made, _ in self.locals)}
        made, number = name, 1
        while made in taken:
            number += 1
            made = f"{name}_{number}"
        return made

    def read(self, name: str, variable: Variable, syntax: Syntax) -> Read:
        unit = variable.unit if self.scope.with_units else NO_UNIT
        return Read(
            name, (), variable.type, unit, (variable.optional,), variable.trusted, span=(syntax.start, syntax.end)
        )

    def step(self, of: Node, name: str, syntax: Syntax) -> Node | None:
        """The attribute ``name`` of a value; reports an unknown one with the nearest names."""
        found = attribute_of(of, name, self.scope, (syntax.start, syntax.end))
        if found is not None:
            return found
        if isinstance(plain(of.type), ListOf):
            self.refuse(
                WRONG_TYPE(
                    self.at(syntax),
                    what=f"Attribute `{name}`",
                    found="a list",
                    expected="a struct",
                    remedy=f"Look into the elements with exists, filter or transform(list, x -> x.{name}).",
                )
            )
            return None
        known = attribute_names(of.type)
        instead = (
            f"{of.type} has the attributes " + ", ".join(f"`{n}`" for n in known[:8]) + "."
            if known
            else f"{of.type} has no attributes."
        )
        self.refuse(
            UNKNOWN_NAME(self.at(syntax), kind="attribute", name=name, nearest=nearest(name, known), instead=instead)
        )
        return None


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


def _name(check: Checking, syntax: Syntax) -> Node | None:
    for written, made, variable in reversed(check.locals):
        if written == syntax.text:
            return check.read(made, variable, syntax)
    if (found := check.scope.variables.get(syntax.text)) is not None:
        return check.read(syntax.text, found, syntax)
    bare = check.scope.variables.get(check.scope.bare)
    if bare is not None:
        payload = check.read(check.scope.bare, bare, syntax)
        reached = attribute_of(payload, syntax.text, check.scope, (syntax.start, syntax.end))
        if reached is not None:
            return reached
    known = _visible(check)
    instead = _unit_hint(check, syntax) or (
        "Known are " + ", ".join(f"`{n}`" for n in known[:8]) + "." if known else "No names are known here."
    )
    close = () if instead.startswith("Units") else nearest(syntax.text, known)
    check.refuse(UNKNOWN_NAME(check.at(syntax), kind="name", name=syntax.text, nearest=close, instead=instead))
    return None


def _visible(check: Checking) -> list[str]:
    bare = check.scope.variables.get(check.scope.bare)
    attributes = attribute_names(bare.type) if bare is not None else ()
    return [*(written for written, _, _ in check.locals), *attributes, *check.scope.variables]


def _unit_hint(check: Checking, syntax: Syntax) -> str:
    """``5 km/h`` reads as a division by a name ``h``: say how it is meant."""
    if check.after_quantity == syntax:
        with suppress(UnknownUnit):
            check.scope.units.parse(syntax.text)
            return f"Units made of several stand in brackets: `5 [km/{syntax.text}]`."
    return ""


def _dot(check: Checking, syntax: Syntax) -> Node | None:
    (below,) = syntax.parts
    envelope = check.scope.variables.get("event")
    shadowed = any(written == "event" for written, _, _ in check.locals)
    if below.kind == "name" and below.text == "event" and envelope is not None and not shadowed:
        here = check.read("event", envelope, syntax)
        found = attribute_of(here, syntax.text, check.scope, (syntax.start, syntax.end))
        if found is not None:
            return found
        payload = check.scope.variables.get(check.scope.bare)
        if payload is not None:
            return check.step(check.read(check.scope.bare, payload, syntax), syntax.text, syntax)
    of = check.node(below)
    return None if of is None else check.step(of, syntax.text, syntax)


# ── literals ──────────────────────────────────────────────────────────────────────────────────────


def _number(check: Checking, syntax: Syntax) -> Node | None:
    found = literals.number(syntax.text, (syntax.start, syntax.end))
    if found is None:
        check.refuse(
            WRONG_TYPE(
                check.at(syntax),
                what="A number",
                found=syntax.text,
                expected="a finite number of at most 38 digits",
                remedy="",
            )
        )
    return found


def _quantity(check: Checking, syntax: Syntax) -> Node | None:
    try:
        unit = check.scope.units.parse(syntax.text)
    except UnknownUnit as unknown:
        check.refuse(
            UNKNOWN_NAME(
                check.at(syntax),
                kind="unit",
                name=syntax.text,
                nearest=unknown.nearest,
                instead="Units that are not physical are declared under `units:` in types/*.yaml.",
            )
        )
        return None
    literal = _number(check, syntax.parts[0])
    if not isinstance(literal, Literal):
        return None
    return Literal(literal.value, literal.type, unit, span=(syntax.start, syntax.end))


def _text(check: Checking, syntax: Syntax) -> Node | None:
    if not _is_text(syntax.text):
        check.refuse(
            WRONG_TYPE(check.at(syntax), what="A text", found="half of a character", expected="Unicode text", remedy="")
        )
        return None
    return Literal(syntax.text, STRING, span=(syntax.start, syntax.end))


def _is_text(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


def _constant(value: bool | None) -> Callable[[Checking, Syntax], Node]:
    def handle(check: Checking, syntax: Syntax) -> Node:
        return Literal(value, NULL if value is None else BOOLEAN, span=(syntax.start, syntax.end))

    return handle


# ── operators ─────────────────────────────────────────────────────────────────────────────────────


def _arithmetic(check: Checking, syntax: Syntax) -> Node | None:
    if syntax.kind in "*/" and syntax.parts[0].kind == "quantity":
        check.after_quantity = syntax.parts[1]
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    return combine(syntax.kind, nodes[0], nodes[1], (syntax.start, syntax.end), check.meeting(f"`{syntax.kind}`"))


def _negate(check: Checking, syntax: Syntax) -> Node | None:
    arg = check.node(syntax.parts[0])
    if isinstance(arg, Literal) and is_number(arg.type) and arg.value is not None:
        return literals.negative(arg, (syntax.start, syntax.end))
    return None if arg is None else call(check, "negate", [arg], syntax)


def _concat(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    return None if nodes is None else call(check, "||", nodes, syntax)


def compare(op: str, left: Node, right: Node, syntax: Syntax, check: Checking) -> Node:
    """A comparison of two values that meet in one type which has an order (or, for = and <>, equality)."""
    sides = check.meeting(f"`{op}`").meet((left, right))
    type = plain(sides[0].type)
    comparable = not isinstance(type, Struct | ListOf)
    if not comparable or (op not in ("=", "<>") and str(type) in ("boolean", "bytes")):
        raise Mismatch(
            WRONG_TYPE(
                check.at(syntax),
                what=f"`{op}`",
                found=str(type),
                expected="numbers, text, dates, timestamps or durations",
                remedy="Compare attributes of it instead." if not comparable else "",
            )
        )
    if type == NULL:
        sides = tuple(Literal(None, STRING, span=side.span) for side in sides)
    return Compare(op, sides[0], sides[1], span=(syntax.start, syntax.end))


def _compare(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    return None if nodes is None else compare(syntax.kind, nodes[0], nodes[1], syntax, check)


def _between(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    low, high = compare(">=", nodes[0], nodes[1], syntax, check), compare("<=", nodes[0], nodes[2], syntax, check)
    return And((low, high), span=(syntax.start, syntax.end))


def _in(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    item, options = nodes[0], nodes[1:]
    span = (syntax.start, syntax.end)
    values = [option for option in options if isinstance(option, Literal) and option.value is not None]
    others: list[Node] = [compare("=", item, o, syntax, check) for o in options if not isinstance(o, Literal)]
    if len(values) + len(others) < len(options):  # NULL in the list: never equal, never surely unequal
        others.append(Literal(None, BOOLEAN, span=span))
    if values:
        met = check.meeting("`IN`").meet((item, *values))
        compare("=", met[0], met[1], syntax, check)
        distinct = dict.fromkeys(
            node.value + 0.0 if isinstance(node.value, float) else node.value
            for node in met[1:]
            if isinstance(node, Literal)
        )
        others.insert(0, In(met[0], tuple(distinct), span=span))
    return others[0] if len(others) == 1 else Or(tuple(others), span=span)


def _like(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    text = check.as_type(nodes[0], STRING, NO_UNIT, "`LIKE`")
    pattern, escape = nodes[1], nodes[2] if len(nodes) > 2 else None
    for constant in (pattern, escape):
        if constant is not None and not (isinstance(constant, Literal) and isinstance(constant.value, str)):
            check.refuse(
                WRONG_CALL(
                    check.at(syntax.parts[1]),
                    name="LIKE",
                    reason="its pattern must be a text in quotes",
                    forms=("x LIKE 'a%'",),
                )
            )
            return None
    if text is None or not isinstance(pattern, Literal):
        return None
    written = pattern.value
    if isinstance(escape, Literal):
        if len(escape.value) != 1:
            check.refuse(
                WRONG_CALL(
                    check.at(syntax),
                    name="LIKE",
                    reason="ESCAPE takes one character",
                    forms=("x LIKE 'a!%' ESCAPE '!'",),
                )
            )
            return None
        written = _with_backslash(written, escape.value)
    return _like_node(text, written, (syntax.start, syntax.end))


def _with_backslash(pattern: str, escape: str) -> str:
    result, characters = "", iter(pattern)
    for character in characters:
        if character == escape:
            result += "\\" + next(characters, escape)
        else:
            result += "\\\\" if character == "\\" else character
    return result


def _like_node(text: Node, pattern: str, span: tuple[int, int]) -> Node:
    """The plain forms become plainer functions, which engines run faster and an index understands."""
    pieces = like_pieces(pattern)
    fixed = [piece for piece in pieces if piece is not None]
    if not any("\0" in piece for piece in fixed) and len(fixed) <= 1:
        word = Literal(fixed[0] if fixed else "", STRING, span=span)
        match pieces:
            case [] | [str()]:
                return Compare("=", text, word, span=span)
            case [str(), None]:
                return Apply(overloads("starts_with")[0], (text, word), BOOLEAN, span=span)
            case [None, str()]:
                return Apply(overloads("ends_with")[0], (text, word), BOOLEAN, span=span)
            case [None, str(), None]:
                return Apply(overloads("contains")[0], (text, word), BOOLEAN, span=span)
    return Apply(overloads("like")[0], (text, Literal(pattern, STRING, span=span)), BOOLEAN, span=span)


def _connect(kind: type[And] | type[Or]) -> Callable[[Checking, Syntax], Node | None]:
    def handle(check: Checking, syntax: Syntax) -> Node | None:
        word = "`AND`" if kind is And else "`OR`"
        nodes = [check.condition(part, word) for part in syntax.parts]
        if None in nodes:
            return None
        flat: list[Node] = []
        for node in nodes:
            assert node is not None
            flat.extend(node.args if isinstance(node, kind) else (node,))
        return kind(tuple(flat), span=(syntax.start, syntax.end))

    return handle


def _not(check: Checking, syntax: Syntax) -> Node | None:
    arg = check.condition(syntax.parts[0], "`NOT`")
    return None if arg is None else Not(arg, span=(syntax.start, syntax.end))


def _is(check: Checking, syntax: Syntax) -> Node | None:
    subject, what = syntax.parts
    span = (syntax.start, syntax.end)
    if what.kind in ("name", "dot"):
        return _is_type(check, subject, what, syntax)
    if what.kind == "null":
        arg = check.node(subject)
        return None if arg is None else IsNull(arg, span=span)
    if what.kind in ("true", "false"):
        arg = check.condition(subject, "`IS`")
        if arg is None:
            return None
        sure = TRUE if what.kind == "false" else FALSE
        known: Node = Coalesce((arg, sure), BOOLEAN, span=span) if arg.nullable else arg
        return Not(known, span=span) if what.kind == "false" else known
    check.refuse(
        NOT_IN_LANGUAGE(check.at(what), found="IS with something that is neither NULL, TRUE, FALSE nor a type")
    )
    return None


def _is_type(check: Checking, subject: Syntax, what: Syntax, syntax: Syntax) -> Node | None:
    """``type IS T``: the event, or a struct in it, is of a type or one of its subtypes."""
    name, types = _dotted(what), check.scope.types
    wanted = types.get(name) if types is not None and name else None
    if wanted is None or types is None:
        known = list(types.types) if types is not None else []
        check.refuse(
            UNKNOWN_NAME(
                check.at(what),
                kind="type",
                name=name or "?",
                nearest=nearest(name, known),
                instead="IS takes NULL, TRUE, FALSE or the name of a type.",
            )
        )
        return None
    names = tuple(str(type) for type in types.subtypes(wanted))
    span = (syntax.start, syntax.end)
    envelope = check.scope.variables.get("event")
    if subject.kind == "name" and subject.text == "type" and envelope is not None:
        found = attribute_of(check.read("event", envelope, subject), "type", check.scope, span)
        return None if found is None else In(found, names, span=span)
    of = check.node(subject)
    if of is None:
        return None
    if not isinstance(plain(of.type), Struct):
        raise check.meeting("`IS`").wrong_type(of, wanted)
    dynamic = attribute_of(of, "$type", check.scope, span)
    if dynamic is None:
        return Literal(str(of.type) in names, BOOLEAN, span=span)
    declared = Literal(str(of.type), STRING, span=span)
    tested = In(Coalesce((dynamic, declared), STRING, span=span), names, span=span)
    if not of.nullable:
        return tested
    return Case(((IsNull(of, span=span), Literal(None, BOOLEAN, span=span)),), tested, BOOLEAN, span=span)


def _dotted(syntax: Syntax) -> str:
    if syntax.kind == "name":
        return syntax.text
    return f"{_dotted(syntax.parts[0])}.{syntax.text}" if syntax.kind == "dot" else ""


def _case(check: Checking, syntax: Syntax) -> Node | None:
    pairs = syntax.parts[: len(syntax.parts) // 2 * 2]
    conditions = [check.condition(part, "`WHEN`") for part in pairs[::2]]
    results = [check.node(part) for part in pairs[1::2]]
    last = (
        check.node(syntax.parts[-1]) if len(syntax.parts) % 2 else Literal(None, NULL, span=(syntax.start, syntax.end))
    )
    if None in conditions or None in results or last is None:
        return None
    return choose(check, [c for c in conditions if c], [*(r for r in results if r), last], syntax)


def choose(check: Checking, conditions: list[Node], results: list[Node], syntax: Syntax) -> Node:
    """CASE over checked parts; the results meet in one type and unit."""
    met = check.meeting("The results of CASE").meet(results)
    if met[0].type == NULL:
        if not any(condition.can_fail for condition in conditions):
            return Literal(None, NULL, span=(syntax.start, syntax.end))
        met = tuple(Literal(None, STRING, span=node.span) for node in met)
    arms = tuple(zip(conditions, met[:-1], strict=True))
    return Case(arms, met[-1], met[0].type, met[0].unit, span=(syntax.start, syntax.end))


def _call(check: Checking, syntax: Syntax) -> Node | None:
    return call(check, syntax.text, None, syntax)


def _stray(check: Checking, syntax: Syntax) -> None:
    check.refuse(NOT_IN_LANGUAGE(check.at(syntax), found="`AS` or `->` outside of a function that takes it"))


_HANDLERS: dict[str, Callable[[Checking, Syntax], Node | None]] = {
    "name": _name,
    "dot": _dot,
    "number": _number,
    "quantity": _quantity,
    "text": _text,
    "null": _constant(None),
    "true": _constant(True),
    "false": _constant(False),
    "not": _not,
    "negate": _negate,
    "and": _connect(And),
    "or": _connect(Or),
    "||": _concat,
    "is": _is,
    "in": _in,
    "between": _between,
    "like": _like,
    "case": _case,
    "call": _call,
    "field": _stray,
    "lambda": _stray,
    **dict.fromkeys(("+", "-", "*", "/", "%"), _arithmetic),
    **dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _compare),
}
