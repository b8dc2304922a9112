"""Calls: functions of the table, functions of the project, and the forms with rules of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from situ.catalogue import NOT_IN_LANGUAGE, TOO_LARGE, UNKNOWN_NAME, WRONG_CALL, WRONG_TYPE
from situ.errors import nearest
from situ.expr import literals
from situ.expr.coerce import Meeting, is_number, widen
from situ.expr.functions.table import FUNCTIONS, SYNONYMS
from situ.expr.overload import Function, Overload, UnitRule
from situ.expr.room import MOST_NODES
from situ.expr.scope import Definition, Variable
from situ.expr.substitute import substitute
from situ.expr.tree import NULL, Apply, Case, Coalesce, Each, ForEach, IsNull, Literal, MakeStruct, Node, Read, walk
from situ.types.model import (
    BOOLEAN,
    DOUBLE,
    INT,
    LONG,
    PRIMITIVES,
    STRING,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    Type,
    plain,
)
from situ.units import NO_UNIT, Unit

if TYPE_CHECKING:
    from situ.expr.check import Checking
    from situ.expr.syntax import Syntax

_CONVERSIONS = "to_double, to_long, to_decimal and to_string convert values."
_CLOCK = "An expression does not see the clock; event.time is the time of the event."
_INSTEAD = {
    "cast": _CONVERSIONS,
    "try_cast": _CONVERSIONS,
    "convert": _CONVERSIONS,
    "now": _CLOCK,
    "current_timestamp": _CLOCK,
    "current_date": _CLOCK,
    "rand": "An expression gives the same result each time: there are no random numbers.",
    "random": "An expression gives the same result each time: there are no random numbers.",
    "regexp": "Patterns are written with LIKE.",
    "regexp_like": "Patterns are written with LIKE.",
    "rlike": "Patterns are written with LIKE.",
    "sum": "An expression sees one event at a time; policies look at several.",
    "count": "An expression sees one event at a time; size(list) counts the elements of a list.",
    "avg": "An expression sees one event at a time; policies look at several.",
}
"""What people bring along from SQL, and what they will want here."""

_LONGEST_COPIED_LIST = 1000


def call(check: Checking, name: str, args: list[Node] | None, syntax: Syntax) -> Node | None:
    """A call by name; ``args`` where the caller has them already, else they are taken from the syntax."""
    name = SYNONYMS.get(name, name)
    form = _FORMS.get(name)
    if form is not None and args is None:
        return form(check, syntax)
    defined = check.scope.functions.get(name) or _by_fold(check, name)
    function = FUNCTIONS.get(name)
    if defined is None and function is None:
        known = [*FUNCTIONS, *_FORMS, *check.scope.functions]
        instead = _INSTEAD.get(name, "")
        close = () if instead else nearest(name, known)
        instead = instead or "See the reference of functions."
        check.refuse(UNKNOWN_NAME(check.at(syntax), kind="function", name=name, nearest=close, instead=instead))
        return None
    nodes = check.all(syntax.parts) if args is None else args
    if nodes is None:
        return None
    if defined is not None:
        return _inline(check, defined, nodes, syntax)
    assert function is not None
    return _apply(check, function, nodes, syntax)


def _by_fold(check: Checking, name: str) -> Definition | None:
    """The parser gives function names in small letters; a project may have written capitals."""
    return next((found for known, found in check.scope.functions.items() if known.lower() == name), None)


# ── functions of the table ────────────────────────────────────────────────────────────────────────


def _apply(check: Checking, function: Function, nodes: list[Node], syntax: Syntax) -> Node | None:
    for overload in function.overloads:
        if _takes(overload, nodes):
            return _with_overload(check, overload, nodes, syntax)
    found = ", ".join(str(node.type) for node in nodes) or "nothing"
    forms = tuple(overload.signature for overload in function.overloads)
    check.refuse(WRONG_CALL(check.at(syntax), name=function.name, reason=f"it does not take ({found})", forms=forms))
    return None


def _takes(overload: Overload, nodes: Sequence[Node]) -> bool:
    least = len(overload.parameters) - overload.optional
    if len(nodes) < least or (len(nodes) > len(overload.parameters) and not overload.variadic):
        return False
    return all(_fits(_parameter(overload, place), node) for place, node in enumerate(nodes))


def _parameter(overload: Overload, place: int) -> str:
    return overload.parameters[min(place, len(overload.parameters) - 1)]


def _fits(parameter: str, node: Node) -> bool:
    type = plain(node.type)
    if type == NULL:
        return parameter not in ("list", "points")
    match parameter:
        case "list":
            return isinstance(type, ListOf)
        case "points":
            return (
                isinstance(type, ListOf)
                and isinstance(element := plain(type.element), Struct)
                and _names(element) >= {"x", "y"}
            )
        case "decimal":
            return isinstance(type, Decimal)
        case "double":
            return type in (DOUBLE, LONG, INT) or (isinstance(type, Decimal) and isinstance(node, Literal))
        case "long":
            return type in (LONG, INT)
        case _:
            return str(type) == parameter


def _with_overload(check: Checking, overload: Overload, nodes: list[Node], syntax: Syntax) -> Node | None:
    for place in overload.constants:
        if place < len(nodes) and not (isinstance(nodes[place], Literal) and nodes[place].value is not None):  # type: ignore[union-attr]
            check.refuse(
                WRONG_CALL(
                    check.at(syntax.parts[place] if place < len(syntax.parts) else syntax),
                    name=overload.name,
                    reason=f"argument {place + 1} must be a constant",
                    forms=(overload.signature,),
                )
            )
            return None
    constants = constants_of(overload, nodes)
    complaint = _digits_complaint(overload, constants) or (overload.refuses(constants) if overload.refuses else "")
    if complaint:
        check.refuse(WRONG_CALL(check.at(syntax), name=overload.name, reason=complaint, forms=(overload.signature,)))
        return None
    args, unit = _in_units(check, overload, nodes)
    type = _result(overload, args, constants)
    return Apply(overload, tuple(args), type, unit, span=(syntax.start, syntax.end))


def constants_of(overload: Overload, nodes: Sequence[Node]) -> list[Any]:
    """The values of the constant arguments that were given."""
    return [
        node.value for place in overload.constants if place < len(nodes) and isinstance(node := nodes[place], Literal)
    ]


def _digits_complaint(overload: Overload, constants: Sequence[Any]) -> str:
    if overload.name in ("round", "format_number") and constants and not 0 <= constants[0] <= 15:
        return "the number of digits must be from 0 to 15"
    if overload.name == "to_decimal":
        precision, scale = constants
        if not (1 <= precision <= 38 and 0 <= scale <= precision):
            return "a decimal has 1 to 38 digits, and not more than that after the point"
        if scale > 15 and overload.parameters[0] == "double":
            return "a double has no more than 15 digits after the point"
    return ""


def _in_units(check: Checking, overload: Overload, nodes: list[Node]) -> tuple[list[Node], Unit]:
    meeting = check.meeting(f"`{overload.name}`")
    units = check.scope.units
    fixed: Unit | None = None
    result = NO_UNIT
    match overload.unit:
        case UnitRule.ANGLE | UnitRule.METRES:
            fixed = units.parse("rad" if overload.unit is UnitRule.ANGLE else "deg")
            result = units.parse("m") if overload.unit is UnitRule.METRES and check.scope.with_units else NO_UNIT
        case UnitRule.SAME | UnitRule.ALIKE:
            numbers = [node for place, node in enumerate(nodes) if place not in overload.constants]
            common = (
                meeting.common_unit(numbers)
                if all(is_number(node.type) or node.type == NULL for node in numbers)
                else nodes[0].unit
            )
            fixed, result = common, common if overload.unit is UnitRule.SAME else NO_UNIT
        case UnitRule.ROOT:
            from fractions import Fraction

            result = nodes[0].unit.raised(Fraction(1, 2))
            if any(power.denominator != 1 for _, power in result.factors):
                raise meeting.wrong_unit(nodes[0], NO_UNIT)
    return [_argument(meeting, overload, place, node, fixed) for place, node in enumerate(nodes)], result


def _argument(meeting: Meeting, overload: Overload, place: int, node: Node, fixed: Unit | None) -> Node:
    parameter = _parameter(overload, place)
    if parameter in ("list", "points", "decimal"):
        return node if node.type != NULL else Literal(None, DOUBLE, span=node.span)
    type = PRIMITIVES[parameter]
    if not is_number(type) or place in overload.constants or overload.unit in (UnitRule.FREE, UnitRule.ROOT):
        return meeting.coerce(node, type, node.unit)
    if fixed is not None and node.unit != NO_UNIT:
        return meeting.coerce(node, type, fixed)
    if overload.unit is UnitRule.NONE and node.unit != NO_UNIT and node.unit.dimension:
        raise meeting.wrong_unit(node, NO_UNIT)
    if isinstance(node, Literal) and fixed is not None:
        return meeting.coerce(node, type, fixed)
    return meeting.coerce(node, type, node.unit)


def _result(overload: Overload, args: Sequence[Node], constants: Sequence[Any]) -> Type:
    match overload.result:
        case "decimal":
            return Decimal(constants[0], constants[1])
        case "list":
            return args[0].type
        case "element":
            return plain(args[0].type).element  # type: ignore[union-attr]  # `_fits` saw a list
        case name:
            return PRIMITIVES[name]


# ── functions of the project ──────────────────────────────────────────────────────────────────────


def _inline(check: Checking, definition: Definition, nodes: list[Node], syntax: Syntax) -> Node | None:
    parameters = definition.parameters
    if len(nodes) != len(parameters):
        form = f"{definition.name}({', '.join(name for name, _ in parameters)})"
        check.refuse(
            WRONG_CALL(
                check.at(syntax),
                name=definition.name,
                reason=f"it takes {len(parameters)} arguments, got {len(nodes)}",
                forms=(form,),
            )
        )
        return None
    given: dict[str, Node] = {}
    for (name, variable), node in zip(parameters, nodes, strict=True):
        unit = variable.unit if check.scope.with_units else node.unit
        given[name] = fit(check, node, variable.type, unit, f"`{name}` of `{definition.name}`")
    check.inlined += definition.body.size
    if check.inlined > MOST_NODES:  # before the work, which a long text of calls could otherwise ask for many times
        check.refuse(TOO_LARGE(check.at(syntax), what="nodes of functions that it calls", limit=MOST_NODES))
        return None
    return substitute(definition.body, given, check.scope, (syntax.start, syntax.end))


def fit(check: Checking, node: Node, type: Type, unit: Unit, what: str) -> Node:
    """An argument for a declared parameter: numbers are converted, structs fit by subtype or, if spatial, by shape."""
    meeting = check.meeting(what)
    struct, given = plain(type), plain(node.type)
    if isinstance(struct, Struct) and isinstance(given, Struct):
        if _names(given) >= _names(struct):
            return _struct_in_unit(check, node, struct, unit)
        raise meeting.wrong_type(node, type)
    return meeting.coerce(node, type, unit if is_number(type) else NO_UNIT)


def _struct_in_unit(check: Checking, node: Node, struct: Struct, unit: Unit) -> Node:
    if node.unit in (unit, NO_UNIT) or unit == NO_UNIT or not check.scope.with_units:
        return node
    from situ.expr.navigate import attribute_of

    meeting = check.meeting(f"A {struct.name} in {unit}")
    fields = []
    for attribute in struct.attributes:
        part = attribute_of(node, attribute.name, check.scope, node.span)
        assert part is not None
        fields.append((attribute.name, meeting.coerce(part, part.type, unit) if is_number(part.type) else part))
    made = MakeStruct(tuple(fields), struct, span=node.span)
    if not node.nullable:
        return made
    return Case(((IsNull(node, span=node.span), Literal(None, struct, span=node.span)),), made, struct, span=node.span)


# ── forms with rules of their own ─────────────────────────────────────────────────────────────────


def _struct(check: Checking, syntax: Syntax) -> Node | None:
    fields: list[tuple[str, Node]] = []
    complete = True
    for part in syntax.parts:
        inner = part.parts[0] if part.kind == "field" else part
        name = part.text if part.kind in ("field", "name", "dot") else ""
        node = check.node(inner)
        if not name or any(name == other for other, _ in fields):
            reason = f"attribute `{name}` stands twice" if name else "every attribute needs a name"
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
    from situ.expr.check import choose

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


def _extreme(name: str) -> Callable[[Checking, Syntax], Node | None]:
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


def _each(kind: Each) -> Callable[[Checking, Syntax], Node | None]:
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
        copies = any(
            isinstance(part, Read) and part.variable in check.scope.variables and not _is_small(part.type)
            for part in walk(body)
        )
        if copies and not (isinstance(of, Apply) and of.overload.name == "at_most"):
            # Text of the event copied into every element would grow with the square of its size.
            limit = Literal(_LONGEST_COPIED_LIST, INT, span=span)
            of = Apply(FUNCTIONS["at_most"].overloads[0], (of, limit), of.type, of.unit, span=span)
        if body.type == NULL:
            body = Literal(None, STRING, span=body.span)
        return ForEach(kind, of, variable, body, ListOf(body.type), body.unit, span=span)
    condition = check.as_type(body, BOOLEAN, NO_UNIT, f"The condition of `{kind.value}`")
    if condition is None:
        return None
    type: Type = of.type if kind is Each.FILTER else BOOLEAN
    return ForEach(kind, of, variable, condition, type, of.unit if kind is Each.FILTER else NO_UNIT, span=span)


def _is_small(type: Type) -> bool:
    found = plain(type)
    return not isinstance(found, Struct | ListOf) and str(found) not in ("string", "bytes")


def _typed_text(
    read: Callable[[str, tuple[int, int]], Literal | None], form: str, remedy: str
) -> Callable[[Checking, Syntax], Node | None]:
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


# ── geometry: taken apart into coordinates ────────────────────────────────────────────────────────


def _names(struct: Struct) -> set[str]:
    return {attribute.name for attribute in struct.attributes}


def _coordinates(check: Checking, node: Node, *shapes: tuple[str, ...]) -> list[Node] | None:
    """The parts of a struct that has one of these shapes, in the order the shape names them."""
    from situ.expr.navigate import attribute_of

    struct = plain(node.type)
    if not isinstance(struct, Struct):
        return None
    for shape in shapes:
        if _names(struct) >= set(shape):
            parts = [attribute_of(node, name, check.scope, node.span) for name in shape]
            return [part for part in parts if part is not None]
    return None


_PLANE, _GLOBE = ("x", "y"), ("lat", "lon")
_BOX, _GEO_BOX = ("x1", "y1", "x2", "y2"), ("west", "south", "east", "north")


def _distance(check: Checking, syntax: Syntax) -> Node | None:
    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) == 2:
        return _distance_of(check, nodes[0], nodes[1], syntax)
    return _apply(check, FUNCTIONS["distance"], nodes, syntax)


def _distance_of(check: Checking, a: Node, b: Node, syntax: Syntax) -> Node | None:
    for shape, function in ((_PLANE, "distance"), (_GLOBE, "geo_distance")):
        first, second = _coordinates(check, a, shape), _coordinates(check, b, shape)
        if first is not None and second is not None:
            return _apply(check, FUNCTIONS[function], [*first, *second], syntax)
    check.refuse(_not_spatial(check, "distance", (a, b), "two points with x and y, or with lat and lon", syntax))
    return None


def _within(check: Checking, syntax: Syntax) -> Node | None:
    from situ.expr.check import compare

    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) != 3:
        check.refuse(
            WRONG_CALL(
                check.at(syntax),
                name="within",
                reason=f"it takes 3 arguments, got {len(nodes)}",
                forms=("within(a, b, 5 m)",),
            )
        )
        return None
    found = _distance_of(check, nodes[0], nodes[1], syntax)
    return None if found is None else compare("<=", found, nodes[2], syntax, check)


def _inside(check: Checking, syntax: Syntax) -> Node | None:
    from situ.expr.check import compare
    from situ.expr.tree import And

    nodes = check.all(syntax.parts)
    if nodes is None:
        return None
    if len(nodes) == 2:
        point, area = nodes
        for shape, corners in ((_PLANE, _BOX), (("lon", "lat"), _GEO_BOX)):
            here, box = _coordinates(check, point, shape), _coordinates(check, area, corners)
            if here is not None and box is not None:
                x1, y1, x2, y2 = box
                sides = ((">=", here[0], x1), ("<=", here[0], x2), (">=", here[1], y1), ("<=", here[1], y2))
                return And(
                    tuple(compare(op, a, b, syntax, check) for op, a, b in sides), span=(syntax.start, syntax.end)
                )
        if (found := _in_polygon(check, point, area, syntax)) is not None:
            return found
    check.refuse(_not_spatial(check, "inside", tuple(nodes), "a point and a box or polygon", syntax))
    return None


def _in_polygon(check: Checking, point: Node, area: Node, syntax: Syntax) -> Node | None:
    points = _coordinates(check, area, ("points",))
    if points is None or not isinstance(corners := plain(points[0].type), ListOf):
        return None
    element = plain(corners.element)
    if not isinstance(element, Struct):
        return None
    meeting = check.meeting("`inside`")
    if _names(element) >= set(_PLANE) and (here := _coordinates(check, point, _PLANE)) is not None:
        unit = area.unit if area.unit != NO_UNIT else points[0].unit
        there = [meeting.coerce(part, DOUBLE, unit if part.unit != NO_UNIT else NO_UNIT) for part in here]
        return _apply(check, FUNCTIONS["in_polygon"], [*there, points[0]], syntax)
    if _names(element) >= set(_GLOBE) and (here := _coordinates(check, point, ("lon", "lat"))) is not None:
        variable = check.new_local("corner")
        trusted = all(read.trusted for read in walk(area) if isinstance(read, Read))
        corner = Read(variable, (), element, NO_UNIT, (True,), trusted, span=area.span)
        lat_lon = _coordinates(check, corner, ("lon", "lat")) or []
        made = MakeStruct(
            tuple(zip(("x", "y"), lat_lon, strict=True)),
            Struct("", tuple(Attribute(name=n, type=DOUBLE, optional=True) for n in ("x", "y"))),
            span=area.span,
        )
        planar = ForEach(Each.TRANSFORM, points[0], variable, made, ListOf(made.type), span=area.span)
        return _apply(check, FUNCTIONS["in_polygon"], [*here, planar], syntax)
    return None


def _not_spatial(check: Checking, name: str, nodes: tuple[Node, ...], wanted: str, syntax: Syntax) -> Any:
    found = ", ".join(str(node.type) for node in nodes)
    return WRONG_CALL(
        check.at(syntax), name=name, reason=f"it takes {wanted}, found ({found})", forms=(f"{name}(a, b)",)
    )


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
    return _apply(check, FUNCTIONS["round"], nodes, syntax)


_FORMS: dict[str, Callable[[Checking, Syntax], Node | None]] = {
    "struct": _struct,
    "coalesce": _coalesce,
    "if": _if,
    "least": _extreme("least"),
    "greatest": _extreme("greatest"),
    "transform": _each(Each.TRANSFORM),
    "filter": _each(Each.FILTER),
    "exists": _each(Each.EXISTS),
    "forall": _each(Each.FORALL),
    "distance": _distance,
    "within": _within,
    "inside": _inside,
    "round": _round,
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
