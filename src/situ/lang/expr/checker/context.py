"""Names and literals: the leaves of an expression."""

from __future__ import annotations

import re
from contextlib import suppress

from situ.catalogue import UNKNOWN_NAME, WRONG_TYPE
from situ.errors import Location, Problem, nearest
from situ.expr import literals
from situ.expr.checking import Checking, Handler
from situ.expr.navigate import attribute_names, attribute_of
from situ.expr.syntax import Syntax
from situ.expr.tree import NULL, Literal, Node, Read
from situ.types.model import BOOLEAN, STRING
from situ.units import UnknownUnit

SUBJECT = "subject"
_EXTENSION = re.compile(r"(?!situ)[a-z0-9]{1,64}")
"""Names of attributes as CloudEvents has them; those of Situ itself are no business of filters."""


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
    close = () if instead.startswith("Units") else check.nearest(syntax.text, known)
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
        if check.scope.extensions and _is_extension(check, here, syntax.text):
            return Read("event", (syntax.text,), STRING, optional=(False, True), span=(syntax.start, syntax.end))
        if payload is not None:
            return check.step(check.read(check.scope.bare, payload, syntax), syntax.text, syntax)
    of = check.node(below)
    return None if of is None else check.step(of, syntax.text, syntax)


def _is_extension(check: Checking, envelope: Node, name: str) -> bool:
    """Whether a name below ``event`` is an attribute that nobody declares.

    What the payload declares comes first, and what resembles that is a mistake in writing.
    """
    payload = check.scope.variables.get(check.scope.bare)
    declared = attribute_names(payload.type) if payload is not None else ()
    if name in declared or not _EXTENSION.fullmatch(name):
        return False
    return name == SUBJECT or not nearest(name, [*declared, *attribute_names(envelope.type)])


def _number(check: Checking, syntax: Syntax) -> Node | None:
    found = literals.number(syntax.text, (syntax.start, syntax.end))
    if found is None:
        check.refuse(
            WRONG_TYPE(
                check.at(syntax),
                what="A number",
                found=syntax.text,
                expected="a finite number of at most 38 digits",
                remedy="Doubles reach to 1.8e308; exact numbers have 38 digits.",
            )
        )
    return found


def _quantity(check: Checking, syntax: Syntax) -> Node | None:
    try:
        unit = check.scope.units.parse(syntax.text)
    except UnknownUnit as unknown:
        check.refuse(unknown_unit(check.at(syntax), syntax.text, unknown))
        return None
    literal = _number(check, syntax.parts[0])
    if not isinstance(literal, Literal):
        return None
    return Literal(literal.value, literal.type, unit, span=(syntax.start, syntax.end))


def unknown_unit(location: Location, name: str, unknown: UnknownUnit) -> Problem:
    instead = "Units that are not physical are declared under `units:` in types/*.yaml."
    return UNKNOWN_NAME(location, kind="unit", name=name, nearest=unknown.nearest, instead=instead)


def _text(check: Checking, syntax: Syntax) -> Node | None:
    if not _is_text(syntax.text):
        found, remedy = "half of a character", "Leave out the lone surrogate."
        check.refuse(WRONG_TYPE(check.at(syntax), what="A text", found=found, expected="Unicode text", remedy=remedy))
        return None
    return Literal(syntax.text, STRING, span=(syntax.start, syntax.end))


def _is_text(text: str) -> bool:
    return not any(0xD800 <= ord(character) < 0xE000 for character in text)


def _constant(value: bool | None) -> Handler:
    def handle(check: Checking, syntax: Syntax) -> Node:
        return Literal(value, NULL if value is None else BOOLEAN, span=(syntax.start, syntax.end))

    return handle


OPERANDS: dict[str, Handler] = {
    "name": _name,
    "dot": _dot,
    "number": _number,
    "quantity": _quantity,
    "text": _text,
    "null": _constant(None),
    "true": _constant(True),
    "false": _constant(False),
}
