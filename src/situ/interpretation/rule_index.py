"""Rules by their patterns, as a tree: while an event is walked down, the patterns that may still match go along.

Patterns that begin alike share their beginnings, and the last part is looked up by its attribute or its type, so what a
place costs depends on the rules that match there and not on how many there are. The tree only finds; what finding means
is :func:`situ.interpretation.patterns.matches`, which is held equal by tests.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from situ.interpretation.model import Pattern, Qualifier, Rule
from situ.interpretation.precedence import Standings
from situ.types.model import Struct, Type

Alike = tuple[Rule, ...]
"""The rules of one pattern: the one in force, and those it overrides."""


@dataclass(slots=True)
class _Node:
    """Where patterns are after one of their parts: what follows, and what ends."""

    attributes: dict[tuple[str, bool], dict[Type, _Node]] = field(default_factory=dict)
    types: dict[Type, _Node] = field(default_factory=dict)
    last: dict[Type, Alike] = field(default_factory=dict)
    """Rules whose patterns end with a type here, directly or further down."""
    ends: Alike | None = None
    """The rules whose pattern ends with the attribute that led here."""

    def after(self, qualifier: Qualifier) -> _Node:
        """The node that follows with this qualifier, made if there is none."""
        table = self.types
        if qualifier.attribute:
            table = self.attributes.setdefault((qualifier.attribute, qualifier.elements), {})
        return table.setdefault(qualifier.type, _Node())


class Cursor:
    """A place on the way down: the beginnings that hold as far as here, and the last parts that may match here.

    There is one for every place of every event type, so it is made to cost little.
    """

    __slots__ = ("_last", "_last_below", "_nodes", "_standings")

    def __init__(self, nodes: list[_Node], last: list[dict[Type, Alike]], standings: Standings) -> None:
        self._nodes = nodes
        self._last = last
        self._last_below = last + [node.last for node in nodes if node.last] if nodes else last
        self._standings = standings

    def step(self, attribute: str, elements: bool, type: Type) -> Cursor:
        """One level further down, at a value of this dynamic type."""
        return Cursor(self._nodes_below(attribute, elements, type), self._last_below, self._standings)

    def _nodes_below(self, attribute: str, elements: bool, type: Type) -> list[_Node]:
        found: list[_Node] = []
        for node in self._nodes:
            for table in (node.attributes.get((attribute, elements)), node.types):
                if table:
                    found += [table[above] for above in self._standings(type) if above in table]
        return found

    def matching(self, type: Type) -> list[Alike]:
        """The rules whose patterns match here, in no order; ``type`` is the dynamic type that led here."""
        found = [node.ends for node in self._nodes if node.ends is not None]
        for table in self._last:
            found += [table[above] for above in self._standings(type) if above in table]
        return found


class PatternTree:
    """Rules by their patterns, each of which is there once."""

    def __init__(self, rules: Mapping[Pattern, Alike], standings: Standings) -> None:
        self._standings = standings
        self._heads: dict[Type, _Node] = {}
        self._anywhere: dict[Type, Alike] = {}
        for pattern, alike in rules.items():
            self._enter(pattern, alike)

    def _enter(self, pattern: Pattern, alike: Alike) -> None:
        if not pattern.qualifiers:
            self._anywhere[pattern.head] = alike
            return
        node = self._heads.setdefault(pattern.head, _Node())
        *inner, last = pattern.qualifiers
        for qualifier in inner:
            node = node.after(qualifier)
        if last.attribute:
            node.after(last).ends = alike
        else:
            node.last[last.type] = alike

    def start(self, event: Struct) -> Cursor:
        """The place of the event itself."""
        nodes = [self._heads[above] for above in self._standings(event) if above in self._heads]
        return Cursor(nodes, [self._anywhere] if self._anywhere else [], self._standings)
