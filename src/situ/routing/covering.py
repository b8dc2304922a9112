"""Covering: whether all that one subscription wants is wanted by another, and what a neighbour need not be told.

`wanted_events` reads conditions once, `covers` compares what was read, `CoveringTable` keeps what one neighbour was
told and what only the teller remembers. It knows filters and types. What else entries say is compared by the caller:
tags by :func:`situ.scopes.visibility_plan.sees_as_much`, and one that is not durable covers none that is.

A wrong *no* costs a message, a wrong *yes* loses events. So yes is said only where it follows from the constants that
attributes are compared with, or where the same condition stands on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Generic, TypeVar

import msgspec

from situ.lang.expr.tree import Node, Read, walk
from situ.lang.records import replace
from situ.lang.types.model import STRING, Type, plain
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit
from situ.routing.normal_form import (
    ANYTHING,
    INCOMPARABLE,
    Conjunction,
    OneOf,
    Opaque,
    Path,
    Prefix,
    ValueSet,
    normal_form,
    value_sets,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a filter lets through, as an OR of ANDs. Of each AND is kept what it leaves of the values of each attribute, and
# its opaque conditions. One AND implies another if all that it leaves of an attribute is left by the other, for every
# attribute that the other asks of, and if the other has no opaque condition that it has not itself.
#
# The type of the event is an attribute like any other: a subscription to `Door` asks that it is one of the types that
# are a `Door`, and `type IS Gate` asks for fewer of them. So subtypes need no rule of their own.
#
# The normal form has at most 16 ANDs. A filter that has more is one opaque condition, which only itself implies.

_EVENT_TYPE: Path = ("event", "type")
_BELOW_PLAIN = 2
"""Steps of the path of an attribute that lies in no other."""

Kind = tuple[Type, Unit]


class WantedConjunction(msgspec.Struct, frozen=True):
    """One AND: the values it leaves, by the paths of attributes, and the conditions that are not understood."""

    values: Mapping[Path, ValueSet]
    opaque: frozenset[Node]
    nested: bool = False
    """Whether some of the attributes lie in others."""

    def at(self, path: Path) -> ValueSet:
        """What is left of the values of any attribute, whether it is asked for or not."""
        found = self.values.get(path, ANYTHING)
        if (self.nested or len(path) > _BELOW_PLAIN) and found.present:
            for other, values in self.values.items():
                if not values.present and other == path[: len(other)]:
                    return ValueSet(absent=found.absent, present=False)  # nothing lies in what is not there
                if found.absent and not values.absent and path == other[: len(path)]:
                    found = replace(found, absent=False)  # or nothing would lie in it
        return found

    def within(self, other: WantedConjunction) -> bool:
        """Whether every event that this lets through is let through by the other, for sure."""
        if not other.opaque <= self.opaque:
            return False
        return all(self.at(path).within(values) for path, values in other.values.items())

    @property
    def possible(self) -> bool:
        return all(self.at(path).possible for path in self.values)


class WantedEvents(msgspec.Struct, frozen=True):
    """What some conditions on events of some types let through, read once. Made by :func:`wanted_events`."""

    conjunctions: tuple[WantedConjunction, ...]
    types: frozenset[str]
    """All types of events that are asked for, with those below them."""
    kinds: Mapping[Path, Kind]
    """What type and unit the attributes have that are compared with constants."""


def wanted_events(conditions: Mapping[str, Node], types: Types) -> WantedEvents:
    """What a subscription wants, from its simplified conditions by the event type that they are on.

    It holds for this table of types: which types are below another may be different in the next.
    """
    found: list[WantedConjunction] = []
    kinds: dict[Path, Kind] = {_EVENT_TYPE: (STRING, NO_UNIT)}
    known: set[str] = set()
    for name, node in conditions.items():
        event = types.event(name)
        names = (name,) if event is None else tuple(str(each) for each in types.subtypes(event))
        known.update(names)
        agree = _learn_kinds(node, kinds)
        forms: Iterable[Conjunction] = normal_form(node) if agree else ((Opaque(node),),)
        for each in forms:
            conjunction = _conjunction((OneOf(_EVENT_TYPE, names), *each))
            if conjunction is None:
                found.append(_conjunction_of_nothing(names, node))
            elif conjunction.possible:
                found.append(conjunction)
    return WantedEvents(tuple(found), frozenset(known), kinds)


def _learn_kinds(node: Node, kinds: dict[Path, Kind]) -> bool:
    """Whether what a condition reads has the types and units that were read before under these paths."""
    agree = True
    for each in walk(node):
        if isinstance(each, Read) and each.variable in ("event", "data"):
            kind = plain(each.type), each.unit
            agree &= kinds.setdefault((each.variable, *each.path), kind) == kind
    return agree


def _conjunction(atoms: Conjunction) -> WantedConjunction | None:
    opaque = [atom.node for atom in atoms if isinstance(atom, Opaque)]
    opaque += [atom.whole for atom in atoms if isinstance(atom, Prefix) and atom.whole is not None]
    try:
        values = value_sets(atoms)
    except INCOMPARABLE:
        return None
    return WantedConjunction(values, frozenset(opaque), any(len(path) > _BELOW_PLAIN for path in values))


def _conjunction_of_nothing(names: tuple[str, ...], node: Node) -> WantedConjunction:
    """Constants of one attribute that cannot be compared: the condition is not understood."""
    return WantedConjunction(value_sets((OneOf(_EVENT_TYPE, names),)), frozenset((node,)))


def covers(wider: WantedEvents, narrower: WantedEvents) -> bool:
    """Whether every event that the second wants is wanted by the first, for sure."""
    if wider.types.isdisjoint(narrower.types):
        return not narrower.conjunctions
    theirs = narrower.kinds
    if any(theirs.get(path, kind) != kind for path, kind in wider.kinds.items()):
        return False
    try:
        return all(any(each.within(other) for other in wider.conjunctions) for each in narrower.conjunctions)
    except INCOMPARABLE:
        return False


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What one neighbour is told. An entry that another covers is not sent but remembered, under the one that covers it. If
# that is taken back, what was remembered under it is sent in the same change, as far as nothing else that is sent
# covers it: at no instant does the neighbour want less than all entries together.
#
# Entries that cover each other are the same in different words: the one with the first id is sent. So what is sent
# depends on the entries alone, not on the order in which they came, as long as what covers something that covers a
# third covers the third, too. A cautious relation may miss that; then more may be sent, never less.

EntryT = TypeVar("EntryT")


@dataclass(frozen=True, slots=True)
class InterestChange(Generic[EntryT]):
    """What a neighbour is told at once: entries that it is to hold from now on, and ids of those it is to drop."""

    add: Mapping[str, EntryT] = field(default_factory=lambda: MappingProxyType({}))
    remove: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.add or self.remove)


class CoveringTable(Generic[EntryT]):
    """The entries for one neighbour, by their ids. It never changes: each change gives a new one, and what to send.

    ``covers(wider, narrower)`` says whether the first makes it superfluous to send the second. Each entry that is not
    sent is covered by one that is. None: nothing is covered, all is sent.
    """

    __slots__ = ("_covers", "_under", "remembered", "sent")

    def __init__(self, covers: Callable[[EntryT, EntryT], bool] | None = None) -> None:
        self._covers = covers
        self.sent: Mapping[str, EntryT] = {}
        self.remembered: Mapping[str, EntryT] = {}
        """What the neighbour was not told, because it was told more than that."""
        self._under: Mapping[str, str] = {}
        """Remembered entry → one that is sent and covers it."""

    @property
    def entries(self) -> Mapping[str, EntryT]:
        """All that is wanted of this neighbour."""
        return {**self.sent, **self.remembered}

    def changed(
        self, add: Mapping[str, EntryT] = MappingProxyType({}), remove: Collection[str] = ()
    ) -> tuple[CoveringTable[EntryT], InterestChange[EntryT]]:
        """With these entries, without those, and the one change that tells the neighbour so.

        An entry that is there already under the same id is replaced.
        """
        new: CoveringTable[EntryT] = CoveringTable(self._covers)
        placing = _Placing(self._covers, dict(self.sent), dict(self.remembered), dict(self._under))
        come = {id: entry for id, entry in add.items() if self.sent.get(id, self.remembered.get(id)) != entry}
        waiting = {**placing.without({*remove, *come} - (add.keys() - come.keys())), **come}
        for id in sorted(waiting):
            placing.place(id, waiting[id])
        new.sent, new.remembered, new._under = placing.sent, placing.remembered, placing.under
        return new, _difference(self.sent, new.sent)

    def related(
        self, covers: Callable[[EntryT, EntryT], bool] | None
    ) -> tuple[CoveringTable[EntryT], InterestChange[EntryT]]:
        """The same entries where other ones cover each other: covering is turned on or off, or the scopes have
        changed, or what is advertised behind the neighbour."""
        new: CoveringTable[EntryT] = CoveringTable(covers)
        new, _ = new.changed(self.entries)
        return new, _difference(self.sent, new.sent)


def _difference(before: Mapping[str, EntryT], after: Mapping[str, EntryT]) -> InterestChange[EntryT]:
    add = {id: entry for id, entry in after.items() if id not in before or before[id] != entry}
    return InterestChange(add, tuple(sorted(before.keys() - after.keys())))


class _Placing(Generic[EntryT]):
    """Decides of entries, one after the other, whether they are sent."""

    __slots__ = ("_covers", "remembered", "sent", "under")

    def __init__(
        self,
        covers: Callable[[EntryT, EntryT], bool] | None,
        sent: dict[str, EntryT],
        remembered: dict[str, EntryT],
        under: dict[str, str],
    ) -> None:
        self._covers = covers
        self.sent, self.remembered, self.under = sent, remembered, under

    def without(self, gone: Collection[str]) -> dict[str, EntryT]:
        """Take entries out; gives those that were remembered under them and have to be placed again."""
        for id in gone:
            self.remembered.pop(id, None)
            self.under.pop(id, None)
        lost = {id for id in gone if self.sent.pop(id, None) is not None}
        orphans = [id for id, above in self.under.items() if above in lost] if lost else []
        for id in orphans:
            del self.under[id]
        return {id: self.remembered.pop(id) for id in orphans}

    def place(self, id: str, entry: EntryT) -> None:
        covers = self._covers
        if covers is None:
            self.sent[id] = entry
            return
        above: list[str] = []
        below: list[str] = []
        for other, told in self.sent.items():
            wider, narrower = covers(told, entry), covers(entry, told)
            if wider and not (narrower and id < other):
                above.append(other)
            elif narrower:
                below.append(other)
        if above:
            self._remember(id, entry, min(above))
            return
        for other in below:
            self._remember(other, self.sent.pop(other), id)
        if below:
            taken = set(below)
            for other, held in self.under.items():
                if held in taken:
                    self.under[other] = id
        self.sent[id] = entry

    def _remember(self, id: str, entry: EntryT, above: str) -> None:
        self.remembered[id] = entry
        self.under[id] = above
