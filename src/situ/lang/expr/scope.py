"""What the names in an expression stand for: scopes, attributes of structs, inlined functions, signatures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NoReturn

import msgspec

from situ.lang.catalogue import SIGNATURE_SYNTAX
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.overload import Overflow
from situ.lang.expr.tree import Field, ForEach, MakeStruct, Node, Read, Span, fails_as_argument, rebuild, walk
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.lang.types.model import (
    ATTRIBUTE_NAME,
    DOUBLE,
    LONGEST_NAME,
    ROOT_PREFIX,
    STRING,
    TIMESTAMP,
    Attribute,
    AttributeText,
    Locate,
    Place,
    Struct,
    Type,
    format_type,
    nowhere,
    parse_attribute,
    plain,
    unit_below,
)
from situ.lang.units import NO_UNIT, Unit, Units

if TYPE_CHECKING:
    from situ.lang.types.table import Types


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes: which names an expression may use.


class Variable(msgspec.Struct, frozen=True, kw_only=True):
    """A name with a type. ``trusted``: its values were checked, so its doubles are finite."""

    type: Type
    unit: Unit = NO_UNIT
    optional: bool = False
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Definition:
    """A function that a project defines by an expression: parameters, result, and the checked body."""

    name: str
    parameters: tuple[tuple[str, Variable], ...]
    result: Variable
    body: Node


class NameScope(msgspec.Struct, frozen=True, kw_only=True):
    """The variables, types, units and functions an expression sees.

    ``bare`` names the variable whose attributes can be written alone (the payload of an event). With ``with_units``
    false, numbers are plain and no unit is converted: so it is inside conversion functions, which say themselves how
    one unit becomes another.
    """

    variables: Mapping[str, Variable] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    bare: str = ""
    types: Types | None = None
    units: Units = msgspec.field(default_factory=Units)
    functions: Mapping[str, Definition] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    with_units: bool = True
    limits: ExpressionLimits = DEFAULT_LIMITS
    extensions: bool = False
    """Whether ``event.x`` is also the attribute of that name that the envelope may have: a text, or null."""


def envelope(units: Units) -> Struct:
    """What an expression sees of an event besides its payload."""
    return Struct(
        "",
        (
            Attribute(name="id", type=STRING),
            Attribute(name="source", type=STRING),
            Attribute(name="type", type=STRING),
            Attribute(name="time", type=TIMESTAMP),
            Attribute(name="confidence", type=DOUBLE, unit=units.parse("%"), optional=True),
        ),
    )


def event_scope(
    payload: Type,
    *,
    types: Types | None = None,
    units: Units | None = None,
    functions: Mapping[str, Definition] = MappingProxyType({}),
    with_units: bool = True,
    trusted: bool = True,
    limits: ExpressionLimits = DEFAULT_LIMITS,
    extensions: bool = False,
) -> NameScope:
    """The scope of filters: ``event`` is the envelope, ``data`` the payload, whose attributes can stand alone."""
    known = units if units is not None else types.units if types is not None else Units()
    return NameScope(
        variables={
            "event": Variable(type=envelope(known), trusted=trusted),
            "data": Variable(type=payload, trusted=trusted),
        },
        bare="data",
        types=types,
        units=known,
        functions=functions,
        with_units=with_units,
        limits=limits,
        extensions=extensions,
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Reaching into values: the attribute of a struct, wherever the struct comes from.

_DYNAMIC_TYPE = Attribute(name="$type", type=STRING, optional=True)


def attribute_names(type: Type) -> tuple[str, ...]:
    struct = plain(type)
    return tuple(attribute.name for attribute in struct.attributes) if isinstance(struct, Struct) else ()


def attribute_set(struct: Struct) -> set[str]:
    return {attribute.name for attribute in struct.attributes}


def attribute_of(of: Node, name: str, scope: NameScope, span: Span) -> Node | None:
    """The node that reads attribute ``name`` of ``of``; None if its type has no such attribute."""
    struct = plain(of.type)
    attribute = _attribute(struct, name, scope) if isinstance(struct, Struct) else None
    if attribute is None:
        return None
    unit = unit_below(struct, of.unit, attribute) if scope.with_units else NO_UNIT
    match of:
        case Read(variable=variable, path=path, optional=optional, trusted=trusted):
            return Read(
                variable,
                (*path, name),
                attribute.type,
                unit,
                (*optional, attribute.nullable),
                trusted,
                span=span,
            )
        case MakeStruct(fields=fields) if stands_alone(name, fields):
            return dict(fields)[name]
        case _:
            return Field(of, name, attribute.type, unit, attribute.nullable, span=span)


def _attribute(struct: Struct, name: str, scope: NameScope) -> Attribute | None:
    if name != "$type":
        return struct.attribute(name)
    # Only a struct that has subtypes can be something else than declared, and says so in its value.
    varies = scope.types is not None and len(scope.types.subtypes(struct)) > 1
    return _DYNAMIC_TYPE if varies else None


def stands_alone(name: str, fields: tuple[tuple[str, Node], ...]) -> bool:
    """Whether taking one attribute instead of the whole struct changes no failure."""
    return all(
        not fails_as_argument(part, Overflow.NONE) and (part_name == name or not part.can_fail)
        for part_name, part in fields
    )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Putting expressions in the place of variables: how functions of a project and transformations are inlined.

Reach = Callable[[Node, str, NameScope, Span], Node | None]
"""How an attribute of what is put in is reached: the node that reads it; None if there is no such attribute."""


def substitute(
    node: Node,
    given: Mapping[str, Node],
    scope: NameScope,
    span: Span | None = None,
    *,
    reach: Reach = attribute_of,
) -> Node:
    """The node with every read of a variable in ``given`` replaced by reading the same path from its node.

    ``span`` places the result where the call stands: problems point there, not into the function.
    """
    taken = {read.variable.lower() for value in given.values() for read in walk(value) if isinstance(read, Read)}

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable in given:
            found: Node = given[part.variable]
            for step in part.path:
                reached = reach(found, step, scope, span or part.span)
                if reached is None:
                    raise KeyError(step)  # the caller checked that the argument's type has the parameter's attributes
                found = reached
            return found
        if isinstance(part, ForEach) and part.variable.lower() in taken:
            part = _renamed(part, taken)
        below = rebuild(part, change)
        return replace(below, span=span) if span is not None else below

    return change(node)


def _renamed(each: ForEach, taken: set[str]) -> ForEach:
    """A lambda's variable must not capture a variable of the same name in what is put in, nor meet another below.

    Names are the same if they differ in capitals only: to Spark they are.
    """
    used = taken | {below.variable.lower() for below in walk(each.body) if isinstance(below, ForEach | Read)}
    number = 2
    while f"{each.variable}_{number}".lower() in used:
        number += 1
    fresh = f"{each.variable}_{number}"

    def change(part: Node) -> Node:
        if isinstance(part, Read) and part.variable == each.variable:
            return replace(part, variable=fresh)
        return rebuild(part, change)

    return replace(each, variable=fresh, body=change(each.body))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How functions of a project are written: ``(a: Point m) -> boolean = …``, conversions ``double m -> double yd = …``.
#
# Turns the text of a signature into names and types that nobody has looked up yet, and prints looked-up ones back. The
# notation of types is :mod:`situ.lang.types.model`'s; what the expression means is :mod:`situ.lang.expr.definitions`'s.

_ARROW = "->"
_MOST_PARAMETERS = 64
_NAMED = re.compile(rf"(?!{ROOT_PREFIX}\w)\w+\s*:")
_WORD = re.compile(r"\s*(\S{1,40})")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterText:
    """``name: TYPE [UNIT]`` as written."""

    name: str
    text: AttributeText
    place: Place = field(default=nowhere, compare=False)


class SignatureText(msgspec.Struct, frozen=True, kw_only=True):
    """A signature as written. A conversion has one parameter, called ``value``, and no brackets."""

    parameters: tuple[ParameterText, ...]
    result: AttributeText
    converts: bool


def split_definition(text: str, locate: Locate = nowhere) -> tuple[int, int]:
    """Where in ``SIGNATURE = EXPRESSION`` the signature ends and the expression begins.

    Types and units have no ``=``, so the first one behind the arrow is it.
    """
    arrow = text.find(_ARROW)
    equals = text.find("=", arrow + len(_ARROW)) if arrow >= 0 else -1
    if arrow < 0:
        _fail(text, len(text), locate, "`->` and the type of the result")
    if equals < 0:
        _fail(text, len(text), locate, "`=` and an expression")
    start = equals + 1
    while start < len(text) and text[start].isspace():
        start += 1
    if start == len(text):
        _fail(text, start, locate, "an expression")
    return equals, start


def parse_signature(text: str, locate: Locate = nowhere) -> SignatureText:
    """Read a signature; :class:`SituError` with INT416 or INT109 where it cannot be read."""
    arrow = text.find(_ARROW)
    if arrow < 0:
        _fail(text, len(text), locate, "`->` and the type of the result")
    opening = len(text) - len(text.lstrip())
    converts = text[opening : opening + 1] != "("
    if converts and (named := _NAMED.match(text, opening)):
        _fail(text, named.start(), locate, "`(` before parameters with names, or the type of `value`")
    if converts:
        only = _parameter_attribute(text, opening, arrow, locate, "the type of `value`")
        parameters: tuple[ParameterText, ...] = (ParameterText(name="value", text=only),)
    else:
        parameters = tuple(_parameters(text, opening, arrow, locate))
    result = _parameter_attribute(text, arrow + len(_ARROW), len(text), locate, "the type of the result")
    return SignatureText(parameters=parameters, result=result, converts=converts)


def print_signature(parameters: tuple[tuple[str, Variable], ...], result: Variable, *, converts: bool) -> str:
    """The canonical spelling of a signature: what :func:`parse_signature` reads back."""
    if converts:
        return f"{_typed(parameters[0][1])} {_ARROW} {_typed(result)}"
    listed = ", ".join(f"{name}: {_typed(variable)}" for name, variable in parameters)
    return f"({listed}) {_ARROW} {_typed(result)}"


def _typed(variable: Variable) -> str:
    words = ["optional"] if variable.optional else []
    words.append(format_type(variable.type))
    if variable.unit != NO_UNIT:
        words.append(str(variable.unit))
    return " ".join(words)


def _parameters(text: str, opening: int, arrow: int, locate: Locate) -> Iterator[ParameterText]:
    closing = len(text[:arrow].rstrip()) - 1
    if closing <= opening or text[closing] != ")":
        _fail(text, closing + 1, locate, "`)` before the arrow")
    pieces = list(_pieces(text, opening + 1, closing)) if text[opening + 1 : closing].strip() else []
    if len(pieces) > _MOST_PARAMETERS:
        _fail(text, pieces[_MOST_PARAMETERS][0], locate, f"at most {_MOST_PARAMETERS} parameters")
    for start, end in pieces:
        if not text[start:end].strip():
            _fail(text, start, locate, "a parameter: `name: TYPE [UNIT]`")
        yield _parameter(text, start, end, locate)


def _pieces(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The stretches between commas; those inside of ``decimal(18,2)`` do not count."""
    depth = 0
    for index in range(start, end):
        character = text[index]
        if character in "([":
            depth += 1
        elif character in ")]":
            depth -= 1
        elif character == "," and depth == 0:
            yield start, index
            start = index + 1
    yield start, end


def _parameter(text: str, start: int, end: int, locate: Locate) -> ParameterText:
    colon = text.find(":", start, end)
    name = text[start : colon if colon >= 0 else end].strip()
    begin = start + len(text[start:end]) - len(text[start:end].lstrip())
    if not ATTRIBUTE_NAME.fullmatch(name) or len(name) > LONGEST_NAME:
        _fail(text, begin, locate, "the name of a parameter: `name: TYPE [UNIT]`")
    if colon < 0:
        _fail(text, begin + len(name), locate, "`:` and a type")
    written = _parameter_attribute(text, colon + 1, end, locate, f"the type of `{name}`")
    return ParameterText(name=name, text=written, place=partial(locate, begin, len(name)))


def _parameter_attribute(text: str, start: int, end: int, locate: Locate, expected: str) -> AttributeText:
    if not text[start:end].strip():
        _fail(text, start, locate, expected)
    return parse_attribute(text[start:end], lambda offset, length: locate(start + offset, length))


def _fail(text: str, at: int, locate: Locate, expected: str) -> NoReturn:
    word = _WORD.match(text, at)
    found = word[1] if word else ""
    place = locate(word.start(1) if word else len(text), max(1, len(found)))
    raise SituError(SIGNATURE_SYNTAX(place, found=f"`{found}`" if found else "the end", expected=expected))
