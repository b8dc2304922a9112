"""Calls: functions of the table, with their types and units, and functions of the project, put in."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from situ.lang.catalogue import TOO_LARGE, UNKNOWN_NAME, WRONG_CALL
from situ.lang.expr.checker.coerce import Meeting, is_number
from situ.lang.expr.checker.context import Checking
from situ.lang.expr.functions.table import FUNCTIONS, SYNONYMS
from situ.lang.expr.limits import MOST_NODES
from situ.lang.expr.overload import Function, Overload, UnitRule
from situ.lang.expr.scope import Definition, attribute_of, attribute_set, substitute
from situ.lang.expr.syntax import Syntax
from situ.lang.expr.tree import NULL, Apply, Case, IsNull, Literal, MakeStruct, Node
from situ.lang.types.model import (
    DOUBLE,
    INT,
    LONG,
    PLANAR,
    PRIMITIVES,
    Attribute,
    Decimal,
    ListOf,
    Struct,
    Type,
    plain,
    unit_below,
)
from situ.lang.units import NO_UNIT, Unit

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


def call(check: Checking, name: str, args: list[Node] | None, syntax: Syntax) -> Node | None:
    """A call by name; ``args`` where the caller has them already, else they are taken from the syntax."""
    name = SYNONYMS.get(name, name)
    form = check.forms.get(name)
    if form is not None and args is None:
        return form(check, syntax)
    defined = check.scope.functions.get(name) or _by_fold(check, name)
    function = FUNCTIONS.get(name)
    if defined is None and function is None:
        known = [*FUNCTIONS, *check.forms, *check.scope.functions]
        instead = _INSTEAD.get(name, "")
        close = () if instead else check.nearest(name, known)
        instead = instead or "See the reference of functions."
        check.refuse(UNKNOWN_NAME(check.at(syntax), kind="function", name=name, nearest=close, instead=instead))
        return None
    nodes = check.all(syntax.parts) if args is None else args
    if nodes is None:
        return None
    if defined is not None:
        return _inline(check, defined, nodes, syntax)
    assert function is not None
    return apply_function(check, function, nodes, syntax)


def _by_fold(check: Checking, name: str) -> Definition | None:
    """The parser gives function names in small letters; a project may have written capitals."""
    return next((found for known, found in check.scope.functions.items() if known.lower() == name), None)


def apply_function(check: Checking, function: Function, nodes: list[Node], syntax: Syntax) -> Node | None:
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
                and attribute_set(element) >= {"x", "y"}
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
        if place < len(nodes) and nodes[place] not in _constants(overload, nodes):
            check.refuse(
                WRONG_CALL(
                    check.at(syntax.parts[place] if place < len(syntax.parts) else syntax),
                    name=overload.name,
                    reason=f"argument {place + 1} must be a constant",
                    forms=(overload.signature,),
                )
            )
            return None
    constants = [node.value for node in _constants(overload, nodes)]
    complaint = _digits_complaint(overload, constants) or (overload.refuses(constants) if overload.refuses else "")
    if complaint:
        check.refuse(WRONG_CALL(check.at(syntax), name=overload.name, reason=complaint, forms=(overload.signature,)))
        return None
    args, unit = _in_units(check, overload, nodes)
    type = _result(overload, args, constants)
    return Apply(overload, tuple(args), type, unit, span=(syntax.start, syntax.end))


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
    """An argument for a declared parameter: numbers are converted, structs fit attribute by attribute."""
    meeting = check.meeting(what)
    struct, given = plain(type), plain(node.type)
    if is_number(type):
        return meeting.coerce(node, type, unit)
    if check.scope.with_units and struct not in PLANAR and unit != NO_UNIT and node.unit != unit:
        raise meeting.wrong_unit(node, unit)  # a label, or a list of numbers in another unit
    if not (isinstance(struct, Struct) and isinstance(given, Struct)):
        return meeting.coerce(node, type)
    if not attribute_set(given) >= attribute_set(struct):
        raise meeting.wrong_type(node, type)
    return _fit_struct(check, node, struct, unit, what)


def _fit_struct(check: Checking, node: Node, struct: Struct, unit: Unit, what: str) -> Node:
    """The struct as it is, or made anew where an attribute has another type or unit than the parameter's."""
    fields: list[tuple[str, Node]] = []
    changed = False
    for attribute in struct.attributes:
        part = attribute_of(node, attribute.name, check.scope, node.span)
        assert part is not None  # the caller compared the names
        wanted = unit_below(struct, unit, attribute) if check.scope.with_units else part.unit
        fitted = fit(check, part, attribute.type, wanted, what)
        changed = changed or fitted is not part
        fields.append((attribute.name, fitted))
    if not changed:
        return node
    attributes = tuple(Attribute(name=n, type=p.type, unit=p.unit, optional=p.nullable) for n, p in fields)
    made = MakeStruct(tuple(fields), Struct("", attributes), span=node.span)
    if not node.nullable:
        return made
    nothing = Literal(None, made.type, span=node.span)
    return Case(((IsNull(node, span=node.span), nothing),), made, made.type, span=node.span)


def _constants(overload: Overload, nodes: Sequence[Node]) -> list[Literal]:
    places = [nodes[place] for place in overload.constants if place < len(nodes)]
    return [node for node in places if isinstance(node, Literal) and node.value is not None]
