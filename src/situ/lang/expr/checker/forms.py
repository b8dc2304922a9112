"""Forms: calls whose types a row of the function table cannot say."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

from situ.lang.catalogue import NOT_IN_LANGUAGE, WRONG_CALL, WRONG_TYPE
from situ.lang.expr import format as literals
from situ.lang.expr.checker import arithmetic
from situ.lang.expr.checker.calls import apply_function
from situ.lang.expr.checker.coerce import widen
from situ.lang.expr.checker.context import Checking, Handler, unknown_unit
from situ.lang.expr.checker.operators import choose
from situ.lang.expr.functions.table import FUNCTIONS
from situ.lang.expr.overload import Overload
from situ.lang.expr.scope import Variable
from situ.lang.expr.syntax import Syntax
from situ.lang.expr.tree import NULL, Apply, Coalesce, Each, ForEach, Literal, MakeStruct, Node, Read, children, walk
from situ.lang.records import replace
from situ.lang.types.model import (
    ATTRIBUTE_NAME,
    BOOLEAN,
    BYTES,
    DOUBLE,
    INT,
    LONG,
    LONGEST_NAME,
    STRING,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    plain,
)
from situ.lang.units import NO_UNIT, UnknownUnit

_MOST_COPIED = 1 << 20
_MOST_STEPS = 1 << 24
_AT_ONCE = ("length", "size", "element_at", "starts_with", "ends_with", "at_most")  # however long the text or list


def _struct(check: Checking, syntax: Syntax) -> Node | None:
    fields: list[tuple[str, Node]] = []
    complete = True
    for part in syntax.parts:
        inner = part.parts[0] if part.kind == "field" else part
        name = part.text if part.kind in ("field", "name", "dot") else ""
        node = check.node(inner)
        if reason := _unfit_name(name, [other for other, _ in fields]):
            check.refuse(WRONG_CALL(check.at(part), name="struct", reason=reason, forms=("struct(a AS x, b AS y)",)))
            complete = False
        elif node is None:
            complete = False
        else:
            fields.append((name, node if node.type != NULL else Literal(None, STRING, span=node.span)))
    if not complete:
        return None
    if not fields:
        check.refuse(
            WRONG_CALL(
                check.at(syntax), name="struct", reason="it needs an attribute", forms=("struct(a AS x, b AS y)",)
            )
        )
        return None
    attributes = tuple(
        Attribute(name=name, type=node.type, unit=node.unit, optional=node.nullable) for name, node in fields
    )
    return MakeStruct(tuple(fields), Struct("", attributes), span=(syntax.start, syntax.end))


def _is_name(text: str) -> bool:
    """A name like those of attributes: others could mean something to an engine."""
    return ATTRIBUTE_NAME.fullmatch(text) is not None and len(text) <= LONGEST_NAME


def _unfit_name(name: str, others: Sequence[str]) -> str:
    """What is wrong with the name of an attribute; capitals and small letters are the same to Spark."""
    if not name:
        return "every attribute needs a name"
    if not _is_name(name):
        return f"`{name}` is no name of an attribute; these consist of letters, digits and _"
    twice = name.lower() in (other.lower() for other in others)
    return f"attribute `{name}` stands twice" if twice else ""


def _coalesce(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if not nodes:
        check.refuse(
            WRONG_CALL(check.at(syntax), name="coalesce", reason="it needs an argument", forms=("coalesce(a, b)",))
        )
        return None
    met = check.meeting("`coalesce`").meet(nodes)
    if met[0].type == NULL:
        met = tuple(Literal(None, STRING, span=node.span) for node in met)
    return Coalesce(met, met[0].type, met[0].unit, span=(syntax.start, syntax.end))


def _if(check: Checking, syntax: Syntax) -> Node | None:
    if len(syntax.parts) != 3:
        check.refuse(
            WRONG_CALL(
                check.at(syntax),
                name="if",
                reason=f"it takes 3 arguments, got {len(syntax.parts)}",
                forms=("if(condition, a, b)",),
            )
        )
        return None
    condition = check.condition(syntax.parts[0], "The condition of `if`")
    results = check.all(syntax.parts[1:])
    return None if condition is None or results is None else choose(check, [condition], results, syntax)


def _extreme(name: str) -> Handler:
    def handle(check: Checking, syntax: Syntax) -> Node | None:
        nodes = check.all(syntax.parts)
        if nodes is None:
            return None
        if len(nodes) < 2:
            check.refuse(
                WRONG_CALL(
                    check.at(syntax), name=name, reason="it needs two arguments or more", forms=(f"{name}(a, b)",)
                )
            )
            return None
        met = check.meeting(f"`{name}`").meet(nodes)
        type = plain(met[0].type)
        if isinstance(type, Struct | ListOf) or str(type) in ("boolean", "bytes"):
            raise check.meeting(f"`{name}`").wrong_type(met[0], DOUBLE)
        if type == NULL:
            return Literal(None, DOUBLE, span=(syntax.start, syntax.end))
        return Apply(_extreme_overload(name, str(type)), met, type, met[0].unit, span=(syntax.start, syntax.end))

    return handle


@cache
def _extreme_overload(name: str, type: str) -> Overload:
    def spark(args: Sequence[str], constants: Sequence[Any]) -> str:
        return f"CASE WHEN {' OR '.join(f'{arg} IS NULL' for arg in args)} THEN NULL ELSE {name}({', '.join(args)}) END"

    def python(args: Sequence[str], constants: Sequence[Any], bind: Callable[[Any], str]) -> str:
        return f"{'min' if name == 'least' else 'max'}({', '.join(args)})"

    return Overload(name=name, parameters=(type,), result=type, spark=spark, python=python, variadic=True)


def _each(kind: Each) -> Handler:
    def handle(check: Checking, syntax: Syntax) -> Node | None:
        form = (f"{kind.value}(list, x -> …)",)
        if len(syntax.parts) != 2 or syntax.parts[1].kind != "lambda":
            check.refuse(
                WRONG_CALL(
                    check.at(syntax),
                    name=kind.value,
                    reason="it takes a list and a function of its elements",
                    forms=form,
                )
            )
            return None
        of, function = check.node(syntax.parts[0]), syntax.parts[1]
        if not _is_name(function.text):
            reason = f"`{function.text}` is no name; names consist of letters, digits and _"
            check.refuse(WRONG_CALL(check.at(function), name=kind.value, reason=reason, forms=form))
            return None
        if of is None:
            return None
        type = plain(of.type)
        if not isinstance(type, ListOf):
            check.refuse(
                WRONG_CALL(
                    check.at(syntax.parts[0]), name=kind.value, reason=f"it takes a list, found {of.type}", forms=form
                )
            )
            return None
        if check.locals and not _own_list(check, of):
            check.refuse(
                NOT_IN_LANGUAGE(
                    check.at(syntax.parts[0]),
                    found="Inside a list function, going through a list that is not part of the element",
                )
            )
            return None
        made = check.new_local(function.text)
        trusted = all(read.trusted for read in walk(of) if isinstance(read, Read))
        check.locals.append(
            (function.text, made, Variable(type=type.element, unit=of.unit, optional=True, trusted=trusted))
        )
        body = check.node(function.parts[0])
        check.locals.pop()
        return None if body is None else _each_node(check, kind, of, made, body, syntax)

    return handle


def _own_list(check: Checking, of: Node) -> bool:
    """Lists inside lists are gone through once each; anything else would cost the square of the event's size."""
    own = {made for _, made, _ in check.locals}
    return all(read.variable in own for read in walk(of) if isinstance(read, Read))


def _each_node(check: Checking, kind: Each, of: Node, variable: str, body: Node, syntax: Syntax) -> Node | None:
    span = (syntax.start, syntax.end)
    if kind is Each.TRANSFORM:
        condition: Node | None = body if body.type != NULL else Literal(None, STRING, span=body.span)
    else:
        condition = check.as_type(body, BOOLEAN, NO_UNIT, f"The condition of `{kind.value}`")
    roomy = _with_room(check, kind, of, variable, condition, syntax) if condition is not None else None
    if condition is None or roomy is None:
        return None
    match kind:
        case Each.TRANSFORM:
            return ForEach(kind, roomy, variable, condition, ListOf(condition.type), condition.unit, span=span)
        case Each.FILTER:
            return ForEach(kind, roomy, variable, condition, of.type, of.unit, span=span)
        case _:
            return ForEach(kind, roomy, variable, condition, BOOLEAN, NO_UNIT, span=span)


def _with_room(check: Checking, kind: Each, of: Node, variable: str, body: Node, syntax: Syntax) -> Node | None:
    """The list, with a check of what is done once per element with text or lists that are not part of it.

    Text copied into every element must not outgrow the largest event, text gone through for every element must not take
    for ever: both grow with the square of the event's size. Lists and structs cannot be measured like text.
    """
    copied = list(_copied(body, {variable})) if kind is Each.TRANSFORM else []
    for read in copied:
        if plain(read.type) not in (STRING, BYTES):
            found = f"Copying a {'list' if isinstance(plain(read.type), ListOf) else 'struct'} into every element"
            check.refuse(NOT_IN_LANGUAGE(check.locate(read.span[0], read.span[1] - read.span[0]), found=found))
            return None
    measured = [*copied, *(read for read in dict.fromkeys(_gone_through(body, {variable})) if read not in copied)]
    if not measured:
        return of
    each = functools.reduce(lambda a, b: arithmetic.apply("+", (a, b), of.span), (_length(read) for read in measured))
    span = (syntax.start, syntax.end)
    limit = Literal(_MOST_COPIED if copied else _MOST_STEPS, INT, span=span)
    roomy = Apply(FUNCTIONS["at_most"].overloads[0], (of, limit, each), of.type, of.unit, span=span)
    # What was printed with the check in it is read back without another one.
    there = isinstance(of, Apply) and of == replace(roomy, args=(of.args[0], *roomy.args[1:]))
    return of if there else roomy


def _gone_through(node: Node, own: set[str]) -> Iterator[Read]:
    """Texts and lists from outside that a function goes through, once for every element."""
    inner = own | {node.variable} if isinstance(node, ForEach) else own
    if isinstance(node, ForEach) or (isinstance(node, Apply) and node.overload.name not in _AT_ONCE):
        for part in children(node):
            long = isinstance(plain(part.type), ListOf) or plain(part.type) in (STRING, BYTES)
            if isinstance(part, Read) and part.variable not in inner and long:
                yield part
    for part in children(node):
        yield from _gone_through(part, inner)


def _copied(node: Node, own: set[str]) -> Iterator[Read]:
    """The parts of the event, or of an element further out, whose whole text becomes part of the node's value."""
    found = plain(node.type)
    if not isinstance(found, Struct | ListOf) and found not in (STRING, BYTES):
        return
    if isinstance(node, Read):
        if node.variable not in own:
            yield node
        return
    inner = own | {node.variable} if isinstance(node, ForEach) else own
    for part in children(node):
        yield from _copied(part, inner)


def _length(read: Read) -> Node:
    name, kind = ("size", "list") if isinstance(plain(read.type), ListOf) else ("length", str(plain(read.type)))
    overload = next(o for o in FUNCTIONS[name].overloads if o.parameters[0] == kind)
    measured = Apply(overload, (read,), LONG, span=read.span)
    if not read.nullable:
        return measured
    return Coalesce((measured, Literal(0, LONG, span=read.span)), LONG, span=read.span)


def _to_unit(check: Checking, syntax: Syntax) -> Node | None:
    """``to_unit(x, 'km/h')``: the same quantity, counted in another unit."""
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    unit = nodes[1] if len(nodes) == 2 else None
    if not (isinstance(unit, Literal) and isinstance(unit.value, str)):
        reason = "it takes a number with a unit, and a unit in quotes"
        check.refuse(WRONG_CALL(check.at(syntax), name="to_unit", reason=reason, forms=("to_unit(x, 'km/h')",)))
        return None
    try:
        wanted = check.scope.units.parse(unit.value)
    except UnknownUnit as unknown:
        check.refuse(unknown_unit(check.at(syntax.parts[1]), unit.value, unknown))
        return None
    return check.meeting("`to_unit`").coerce(nodes[0], DOUBLE, wanted)


def _typed_text(read: Callable[[str, tuple[int, int]], Literal | None], form: str, remedy: str) -> Handler:
    def handle(check: Checking, syntax: Syntax) -> Node | None:
        if len(syntax.parts) == 1 and syntax.parts[0].kind == "text":
            found = read(syntax.parts[0].text, (syntax.start, syntax.end))
            if found is not None:
                return found
            check.refuse(
                WRONG_TYPE(
                    check.at(syntax.parts[0]),
                    what=syntax.text.upper(),
                    found=f"`{syntax.parts[0].text}`",
                    expected=form,
                    remedy=remedy,
                )
            )
            return None
        check.refuse(WRONG_CALL(check.at(syntax), name=syntax.text, reason="it takes a text in quotes", forms=(form,)))
        return None

    return handle


def _round(check: Checking, syntax: Syntax) -> Node | None:
    """Decimals are rounded exactly, to a type with fewer digits after the point."""
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    type = plain(nodes[0].type) if nodes else NULL
    if isinstance(type, Decimal) and len(nodes) <= 2 and (len(nodes) == 1 or isinstance(nodes[1], Literal)):
        digits = nodes[1].value if len(nodes) > 1 and isinstance(nodes[1], Literal) else 0
        if isinstance(digits, int) and digits >= 0:
            scale = min(digits, type.scale)
            precision = min(type.precision - type.scale + scale + 1, 38)
            overload = next(o for o in FUNCTIONS["to_decimal"].overloads if o.parameters[0] == "decimal")
            args = (nodes[0], *(widen(Literal(n, INT, span=nodes[0].span), INT) for n in (precision, scale)))
            return Apply(overload, args, Decimal(precision, scale), nodes[0].unit, span=(syntax.start, syntax.end))
    if isinstance(type, Decimal) or (nodes and type in (INT, LONG)):
        nodes[0] = check.meeting("`round`").coerce(nodes[0], DOUBLE, nodes[0].unit) if type in (INT, LONG) else nodes[0]
    return apply_function(check, FUNCTIONS["round"], nodes, syntax)


FORMS: dict[str, Handler] = {
    "struct": _struct,
    "coalesce": _coalesce,
    "if": _if,
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
    "transform": _each(Each.TRANSFORM),
    "filter": _each(Each.FILTER),
    "exists": _each(Each.EXISTS),
    "forall": _each(Each.FORALL),
    "round": _round,
    "to_unit": _to_unit,
    "timestamp": _typed_text(
        literals.instant,
        "TIMESTAMP '2026-11-01T12:00:00Z'",
        "An instant needs its offset from UTC: end it with Z or +01:00.",
    ),
    "date": _typed_text(literals.date, "DATE '2026-11-01'", "Write year, month and day: DATE '2026-11-01'."),
    "duration": _typed_text(
        literals.duration, "DURATION 'PT5S'", "Write ISO 8601 without months and years: DURATION 'P1DT2H'."
    ),
}
