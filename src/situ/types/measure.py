"""How large types may grow.

Those who walk a type recurse into it, and some meet a type once for every way to it; so the levels, the ways up and the
sum of all attributes are bounded here, while types are built. Numbers of places for values are bounded in
:mod:`situ.types.containment`.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.catalogue import TYPE_LIMIT
from situ.errors import Problems
from situ.types.model import ListOf, Struct, Type
from situ.types.syntax import DEEPEST, Place, nowhere

MOST_WAYS_UP = 256
"""By how many ways a type may reach its supertypes."""
MOST_ATTRIBUTES = 1_000_000
"""Of all types of a table together, inherited ones counted once more for each type."""


@dataclass(slots=True)
class _Size:
    levels: int = 0
    ways_up: int = 1
    cut: bool = False


class Measure:
    """Admits the parts of types one by one. What would make a type too large is reported and to be left out.

    A type is not reported for what was left out of another that it is built on: one chain, one problem.
    """

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self._sizes: dict[str, _Size] = {}
        self._attributes = 0
        self._full = False

    def admits(self, name: str, part: Type, place: Place, *, above: bool) -> bool:
        """Whether the type may have this one ``above`` it, as a supertype, or else in an attribute."""
        own = self._sizes.setdefault(name, _Size())
        lists, element = 0, part
        while isinstance(element, ListOf):
            element, lists = element.element, lists + 1
        other = self._size(element)
        own.cut = own.cut or other.cut
        levels = max(own.levels, other.levels + lists + 1)
        ways_up = own.ways_up + other.ways_up if above else own.ways_up
        attributes = self._attributes + (len(element.attributes) if isinstance(element, Struct) and above else 1)
        if levels > DEEPEST:
            self._report(name, "levels of supertypes, structs and lists", DEEPEST, place)
        elif ways_up > MOST_WAYS_UP:
            self._report(name, "ways up to its supertypes", MOST_WAYS_UP, place)
        elif attributes > MOST_ATTRIBUTES:
            own.cut = own.cut or self._full
            self._full = True
            self._report(name, "attributes, counted with all types before it", MOST_ATTRIBUTES, place)
        else:
            own.levels, own.ways_up, self._attributes = levels, ways_up, attributes
            return True
        return False

    def _size(self, type: Type) -> _Size:
        name = str(type)
        if isinstance(type, Struct) and name not in self._sizes:  # built in
            for attribute in type.attributes:
                self.admits(name, attribute.type, nowhere, above=False)
        return self._sizes.get(name) or _Size()

    def _report(self, name: str, what: str, most: int, place: Place) -> None:
        own = self._sizes[name]
        if not own.cut:
            self._problems.add(TYPE_LIMIT(place(), name=name, most=most, what=what))
        own.cut = True
