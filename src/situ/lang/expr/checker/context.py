"""What the handlers of all constructs share while one expression is checked, and the handlers of names and literals.

:class:`Checking` knows no construct: handlers come from outside, by kind.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress

from situ.lang.catalogue import TOO_LARGE, UNKNOWN_NAME, WRONG_TYPE
from situ.lang.expr import format as literals
from situ.lang.expr.checker.coerce import Meeting, Mismatch, is_number
from situ.lang.expr.limits import MOST_CHOICES, MOST_LEVELS, MOST_NODES
from situ.lang.expr.scope import NameScope, Variable, attribute_names, attribute_of
from situ.lang.expr.syntax import Locate, Syntax
from situ.lang.expr.tree import NULL, Literal, Node, Read
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.types.model import BOOLEAN, STRING, ListOf, Type, plain
from situ.lang.units import NO_UNIT, Unit, UnknownUnit

Handler = Callable[["Checking", Syntax], Node | None]
"""Makes the tree of one construct, or reports what is wrong with it and makes none."""


_MOST_SUGGESTIONS = 20


class Checking:
    """The scope, the places, the local variables and the problems of the expression.

    ``handlers`` know each kind of construct, ``forms`` the calls that have rules of their own.
    """

    def __init__(
        self, scope: NameScope, locate: Locate, handlers: Mapping[str, Handler], forms: Mapping[str, Handler]
    ) -> None:
        self.scope, self.locate = scope, locate
        self.handlers, self.forms = handlers, forms
        self.problems = Problems()
        self.locals: list[tuple[str, str, Variable]] = []
        self.after_quantity: Syntax | None = None
        self.inlined = self.suggested = 0

    def node(self, syntax: Syntax) -> Node | None:
        """The tree of a construct, or None after reporting what is wrong with it."""
        try:
            return self.bounded(self.handlers[syntax.kind](self, syntax), syntax)
        except Mismatch as mismatch:
            self.problems.add(mismatch.problem)
            return None

    def bounded(self, node: Node | None, syntax: Syntax) -> Node | None:
        """The node, unless parts that are used more than once made it larger than its text."""
        if node is None:
            return None
        for found, what, limit in (
            (node.size, "nodes when all is put in", MOST_NODES),
            (node.depth, "levels when all is put in", MOST_LEVELS),
            (node.choices, "choices (CASE, coalesce) inside each other", MOST_CHOICES),
        ):
            if found > limit:
                self.refuse(TOO_LARGE(self.at(syntax), what=what, limit=limit))
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

    def as_type(self, node: Node, type: Type, unit: Unit, what: str) -> Node | None:
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

    def nearest(self, name: str, known: Sequence[str]) -> tuple[str, ...]:
        """Names like this one; for a few, since with many unknown names among many known ones it takes seconds."""
        self.suggested += 1
        return nearest(name, known) if self.suggested <= _MOST_SUGGESTIONS else ()

    def new_local(self, name: str) -> str:
        """A name for a lambda's variable that no other variable of this expression has, capitals not counted.

        Spark does not tell them from small letters.
        """
        taken = {known.lower() for known in (*self.scope.variables, *(made for _, made, _ in self.locals))}
        made, number = name, 1
        while made.lower() in taken:
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
            UNKNOWN_NAME(
                self.at(syntax), kind="attribute", name=name, nearest=self.nearest(name, known), instead=instead
            )
        )
        return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Names and literals: the leaves of an expression.

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
