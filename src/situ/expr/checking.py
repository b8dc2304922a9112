"""One expression being checked: what handlers of constructs share, and nothing about any construct."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from situ.catalogue import TOO_LARGE, UNKNOWN_NAME, WRONG_TYPE
from situ.errors import Location, Problem, Problems, nearest
from situ.expr.coerce import Meeting, Mismatch, is_number
from situ.expr.navigate import attribute_names, attribute_of
from situ.expr.room import MOST_CHOICES, MOST_LEVELS, MOST_NODES
from situ.expr.scope import Scope, Variable
from situ.expr.syntax import Locate, Syntax
from situ.expr.tree import Node, Read
from situ.types.model import BOOLEAN, ListOf, Type, plain
from situ.units import NO_UNIT, Unit

Handler = Callable[["Checking", Syntax], Node | None]
"""Makes the tree of one construct, or reports what is wrong with it and makes none."""


_MOST_SUGGESTIONS = 20


class Checking:
    """The scope, the places, the local variables and the problems of the expression.

    ``handlers`` know each kind of construct, ``forms`` the calls that have rules of their own.
    """

    def __init__(
        self, scope: Scope, locate: Locate, handlers: Mapping[str, Handler], forms: Mapping[str, Handler]
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
