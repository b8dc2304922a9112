"""From the rules of a context to the places of an event type that they convert.

An event is walked from the top down. At each place the rules that match compete; if there are any, the first converts
the whole value and nothing below is visited. Everything is settled for types, before any event is there: where values
of subtypes can stand, each gets a place of its own, and at run time only ``$type`` is left to decide. This module owns
that walk; which rule counts is :mod:`situ.interpretation.precedence`, what the conversions do
:mod:`situ.interpretation.transformation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.catalogue import TOO_MANY_PATHS
from situ.errors import SituError
from situ.interpretation.model import Context, Direction, Rule
from situ.interpretation.patterns import Step, Traversal
from situ.interpretation.precedence import Standings, in_force, key
from situ.interpretation.rule_index import Alike, Cursor, PatternTree
from situ.types.containment import MOST_PATHS
from situ.types.model import ListOf, Struct, Type
from situ.types.table import Types


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rules:
    """The rules visible in a context for one direction, ready to be looked up."""

    rules: tuple[Rule, ...]
    """All of them: the context's own first, root's last."""
    tree: PatternTree
    """Those in force, by their patterns."""
    standings: Standings

    @classmethod
    def of(cls, context: Context, direction: Direction) -> Rules:
        chain = list(context.chain)
        depths = {each.id: len(chain) - number for number, each in enumerate(chain)}
        rules = tuple(rule for each in chain for rule in each.rules if rule.direction is direction)
        standings = Standings()
        return cls(rules=rules, tree=PatternTree(in_force(rules, depths.__getitem__), standings), standings=standings)

    def rank(self, matching: list[Alike], path: Traversal) -> tuple[Rule, ...]:
        """The rules that match a place, given by their patterns, the one that counts first."""
        if len(matching) == 1:
            return matching[0]
        ranked = sorted(matching, key=lambda alike: key(alike[0].pattern, path, self.standings))
        return tuple(rule for alike in ranked for rule in alike)


_NO_RULES: tuple[Rule, ...] = ()
_NO_ATTRIBUTES: Mapping[str, tuple[Place, ...]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Place:
    """A place of an event with the dynamic type of the value there, and the rule that converts it.

    Without a rule, ``attributes`` (of a struct) or ``elements`` (of a list) hold what lies below: a place for each
    dynamic type, that of the declared type first.
    """

    path: Traversal
    rule: Rule | None = None
    beaten: tuple[Rule, ...] = ()
    """The other rules that match, the next best first."""
    attributes: Mapping[str, tuple[Place, ...]] = field(default_factory=lambda: _NO_ATTRIBUTES)
    elements: tuple[Place, ...] = ()

    @property
    def below(self) -> Iterator[Place]:
        """The places of attributes or elements."""
        for places in self.attributes.values():
            yield from places
        yield from self.elements


def expand(event: Struct, rules: Rules, types: Types, *, covered: bool = False) -> Place:
    """The places of an event type and what converts them, down to where a rule converts the whole value.

    ``covered``: go on below such places, too, as if their rules were not there.
    """
    return _Expansion(event, rules, types, covered=covered).whole()


def transforming(place: Place) -> Iterator[Place]:
    """The places that rules convert, of this one and those below; none of them lies below another."""
    if place.rule is not None:
        yield place
        return
    for each in place.below:
        yield from transforming(each)


class _Expansion:
    """One walk down from an event type."""

    def __init__(self, event: Struct, rules: Rules, types: Types, *, covered: bool) -> None:
        self._event = event
        self._rules = rules
        self._types = types
        self._covered = covered
        self._left = MOST_PATHS
        self._subtypes: dict[int, tuple[Type, ...]] = {}  # by identity: the types hold them all

    def whole(self) -> Place:
        cursor = self._rules.tree.start(self._event)
        return self._place(Traversal(event=self._event), cursor, cursor)

    def _place(self, path: Traversal, cursor: Cursor, parent: Cursor) -> Place:
        self._count()
        type = path.type
        rule, beaten = None, _NO_RULES
        if matching := cursor.matching(type):
            ranked = self._rules.rank(matching, path)
            rule, beaten = ranked[0], ranked[1:]
            if not self._covered:
                return Place(path=path, rule=rule, beaten=beaten)
        match type:
            case Struct(attributes=attributes):
                below = {each.name: self._attribute(path, cursor, each.name, each.type) for each in attributes}
                return Place(path=path, rule=rule, beaten=beaten, attributes=MappingProxyType(below))
            case ListOf(element=element):
                elements = self._elements(path, parent, element)
                return Place(path=path, rule=rule, beaten=beaten, elements=elements)
            case _:
                return Place(path=path, rule=rule, beaten=beaten)

    def _attribute(self, path: Traversal, cursor: Cursor, name: str, declared: Type) -> tuple[Place, ...]:
        return self._values(path.steps, cursor, name, declared, elements=False)

    def _elements(self, path: Traversal, parent: Cursor, declared: Type) -> tuple[Place, ...]:
        """Elements are on the level of their list: the way to them leaves from where that to the list does."""
        return self._values(path.steps[:-1], parent, path.steps[-1].attribute, declared, elements=True)

    def _values(
        self, steps: tuple[Step, ...], cursor: Cursor, name: str, declared: Type, *, elements: bool
    ) -> tuple[Place, ...]:
        places: list[Place] = []
        for type in self._dynamic(declared):
            step = Step(attribute=name, elements=elements, type=type)
            path = Traversal(event=self._event, steps=(*steps, step))
            places.append(self._place(path, cursor.step(name, elements, type), cursor))
        return tuple(places)

    def _dynamic(self, declared: Type) -> tuple[Type, ...]:
        """The types that values have where this one is declared: only structs say themselves which they are."""
        if not isinstance(declared, Struct):
            return (declared,)
        found = self._subtypes.get(id(declared))
        if found is None:
            found = self._subtypes[id(declared)] = self._types.subtypes(declared)
        return found

    def _count(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise SituError(
                TOO_MANY_PATHS(None, name=self._event.name, found=f"more than {MOST_PATHS:,}", most=MOST_PATHS)
            )
