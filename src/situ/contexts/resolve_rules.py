"""Which rule converts which place of an event type: precedence of rules, their index, the walk over all places.

`precedence_key` orders the rules that match one place and `explain_choice` says why; `PatternTree` finds matching rules
without trying each; `resolve_event_type` uses both for every place of an event type.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from situ.contexts.model import KEEP, Context, Direction, Pattern, Qualifier, Rule
from situ.contexts.patterns import Traversal, TraversalStep
from situ.lang.catalogue import TOO_MANY_PATHS
from situ.lang.problems import SituError
from situ.lang.types.model import ListOf, Named, Struct, Type, is_subtype
from situ.lang.types.resolve import MOST_PATHS
from situ.lang.types.table import Types

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Precedence: one comparison, without ties between different patterns. The criteria, as people think of them:
#
# - P1 deeper beats shallower: a pattern that says more about the way to the place;
# - P2 an attribute beats a type;
# - P3 a more derived type beats a less derived one;
# - P4 of unrelated supertypes the nearer one, then the one declared first;
# - P5 a more specific beginning beats depth;
# - P6 subtyping beats P1 and P2.
#
# All six are one comparison of tuples. The last part of a pattern speaks about the target, the last level of the path;
# its other parts about the levels 0, 1, … in order; about levels between it says nothing. Each level gets a key of
# distance, kind and order, and the keys are compared for the target first, then from the event inwards.

# ── where a type stands among its supertypes ──────────────────────────────────────────────────────

RanksBySupertype = Mapping[Type, tuple[int, int]]
"""For each supertype of a type, itself included: distance and order."""


def supertype_ranks(type: Type) -> RanksBySupertype:
    """All types that ``type`` is a subtype of, itself first: the longest chain up to each, and its place on the walk.

    The walk goes up depth first, left to right. A type reached twice keeps its first place; leaving out the others
    changes no comparison, because all above it have their places by then.
    """
    if isinstance(type, ListOf):
        return MappingProxyType({ListOf(above): found for above, found in supertype_ranks(type.element).items()})
    walk: dict[Type, None] = {}
    _walk_up(type, walk)
    distances: dict[Type, int] = {type: 0}
    for each in _upwards(type):
        for above in _directly_above(each):
            distances[above] = max(distances.get(above, 0), distances[each] + 1)
    return MappingProxyType({above: (distances[above], order) for order, above in enumerate(walk)})


def _directly_above(type: Type) -> tuple[Type, ...]:
    match type:
        case Named(base=base):
            return (base,)
        case Struct(supers=supers):
            return supers
        case _:
            return ()


def _walk_up(type: Type, walk: dict[Type, None]) -> None:
    if type not in walk:
        walk[type] = None
        for above in _directly_above(type):
            _walk_up(above, walk)


def _upwards(type: Type) -> list[Type]:
    """The type and all above it so that each comes before those above it: its distance is settled before theirs."""
    done: dict[Type, None] = {}

    def finish(each: Type) -> None:
        if each not in done:
            for above in _directly_above(each):
                finish(above)
            done[each] = None

    finish(type)
    return list(reversed(done))


class SupertypeRanks:
    """Remembers the standing of types that are asked for again and again: by identity, and as long as it lives."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Type, RanksBySupertype]] = {}

    def __call__(self, type: Type) -> RanksBySupertype:
        found = self._known.get(id(type))
        if found is None:
            found = self._known[id(type)] = type, supertype_ranks(type)  # the type is held, so its id stays its own
        return found[1]


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────

LevelKey = tuple[float, int, int]
"""Distance, kind and order: smaller is more specific."""
Key = tuple[LevelKey, ...]

ATTRIBUTE, TYPE = 0, 1
SAYS_NOTHING: LevelKey = (math.inf, 0, 0)


def precedence_key(
    pattern: Pattern, path: Traversal, ranks_of: Callable[[Type], RanksBySupertype] = supertype_ranks
) -> Key:
    """How specific a pattern is about a place it matches: of the target, of the event, and so on inwards.

    Compare as tuples; the smaller wins. ``ranks_of`` may remember what :func:`supertype_ranks` gives.
    """
    *inner, last = pattern.qualifiers or (Qualifier(type=pattern.head),)
    said = [_level(last, path.type, ranks_of)]
    if pattern.qualifiers:
        said.append(_level(Qualifier(type=pattern.head), path.event, ranks_of))
        said.extend(_level(each, step.type, ranks_of) for each, step in zip(inner, path.steps, strict=False))
    return (*said, *(SAYS_NOTHING,) * (len(path.steps) + 1 - len(said)))


def _level(said: Qualifier, found: Type, ranks_of: Callable[[Type], RanksBySupertype]) -> LevelKey:
    distance, order = ranks_of(found)[said.type]
    return distance, ATTRIBUTE if said.attribute else TYPE, order


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────


def rules_in_force(rules: Iterable[Rule], depth_of: Callable[[str], int]) -> dict[Pattern, tuple[Rule, ...]]:
    """The rules by their patterns; of identical ones the more specialised context's first, then the later declared.

    Identical patterns match the same places with the same keys, so which of them counts is the same everywhere. Where
    it is one to ``keep`` what was before, the pattern is left out with all its rules: as if nobody had declared it.
    """
    same: dict[Pattern, list[Rule]] = {}
    for rule in rules:
        same.setdefault(rule.pattern, []).append(rule)
    for found in same.values():
        if len(found) > 1:
            found.sort(key=lambda rule: (depth_of(rule.context), rule.order), reverse=True)
    return {pattern: tuple(found) for pattern, found in same.items() if found[0].function != KEEP}


# ── why ───────────────────────────────────────────────────────────────────────────────────────────


def explain_choice(a: Rule, b: Rule, path: Traversal) -> str:
    """Which level and criterion decides between two rules that match a place, for people.

    ``P2 at the target``, ``P6: P3 at level 0, before P1 at level 2``; for identical patterns who overrides whom.
    """
    differences = _differences(a.pattern, b.pattern, path)
    if not differences:
        return "declared last" if a.context == b.context else "overridden in the more specialised context"
    favours_a, criterion, where = differences[0]
    against = next(((other, there) for favours, other, there in differences[1:] if favours is not favours_a), None)
    if against is not None:
        name = f"{criterion} {where}, before {against[0]} {against[1]}"
        if criterion == "P3" and against[0] in ("P1", "P2"):
            return f"P6: {name}"
        if where != _AT_TARGET and against[0] == "P1":
            return f"P5: {name}"
    return f"{criterion} {where}"


_AT_TARGET = "at the target"


def _differences(a: Pattern, b: Pattern, path: Traversal) -> list[tuple[bool, str, str]]:
    """In the order of the comparison: whether it is in favour of ``a``, the criterion, and the level."""
    found: list[tuple[bool, str, str]] = []
    for number, (of_a, of_b) in enumerate(zip(precedence_key(a, path), precedence_key(b, path), strict=True)):
        where = f"at level {number - 1}" if number else _AT_TARGET
        if SAYS_NOTHING in (of_a, of_b):
            if of_a != of_b:
                found.append((of_b == SAYS_NOTHING, "P1", where))
            continue
        if of_a[0] != of_b[0]:
            said = _said(a, number), _said(b, number)
            related = is_subtype(*said) or is_subtype(*reversed(said))
            found.append((of_a[0] < of_b[0], "P3" if related else "P4", where))
        if of_a[1] != of_b[1]:
            found.append((of_a[1] < of_b[1], "P2", where))
        if of_a[0] == of_b[0] and of_a[2] != of_b[2]:
            found.append((of_a[2] < of_b[2], "P4", where))
    return found


def _said(pattern: Pattern, number: int) -> Type:
    """The type a pattern says in the ``number``-th key: of the target, the event, and so on inwards."""
    if number == 0:
        return pattern.target
    return pattern.head if number == 1 else pattern.qualifiers[number - 2].type


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Index: rules by their patterns, as a tree. While an event type is walked down, the patterns that may still match go
# along. Patterns that begin alike share their beginnings, and the last part is looked up by its attribute or its type,
# so what a place costs depends on the rules that match there and not on how many there are.
# :func:`situ.contexts.patterns.matches` says what is to be found; tests hold the two equal.

Alike = tuple[Rule, ...]
"""The rules of one pattern: the one in force, and those it overrides."""


class _PatternNode(msgspec.Struct):
    """Where patterns are after one of their parts: what follows, and what ends."""

    attributes: dict[tuple[str, bool], dict[Type, _PatternNode]] = msgspec.field(default_factory=dict)
    types: dict[Type, _PatternNode] = msgspec.field(default_factory=dict)
    last: dict[Type, Alike] = msgspec.field(default_factory=dict)
    """Rules whose patterns end with a type here, directly or further down."""
    ends: Alike | None = None
    """The rules whose pattern ends with the attribute that led here."""

    def after(self, qualifier: Qualifier) -> _PatternNode:
        """The node that follows with this qualifier, made if there is none."""
        table = self.types
        if qualifier.attribute:
            table = self.attributes.setdefault((qualifier.attribute, qualifier.elements), {})
        return table.setdefault(qualifier.type, _PatternNode())


class PatternCursor:
    """A place on the way down: the beginnings that hold as far as here, and the last parts that may match here.

    There is one for every place of every event type, so it is made to cost little.
    """

    __slots__ = ("_last", "_last_below", "_nodes", "_ranks")

    def __init__(self, nodes: list[_PatternNode], last: list[dict[Type, Alike]], ranks: SupertypeRanks) -> None:
        self._nodes = nodes
        self._last = last
        self._last_below = last + [node.last for node in nodes if node.last] if nodes else last
        self._ranks = ranks

    def step(self, attribute: str, elements: bool, type: Type) -> PatternCursor:
        """One level further down, at a value of this dynamic type."""
        return PatternCursor(self._nodes_below(attribute, elements, type), self._last_below, self._ranks)

    def _nodes_below(self, attribute: str, elements: bool, type: Type) -> list[_PatternNode]:
        found: list[_PatternNode] = []
        for node in self._nodes:
            for table in (node.attributes.get((attribute, elements)), node.types):
                if table:
                    found += [table[above] for above in self._ranks(type) if above in table]
        return found

    def matching(self, type: Type) -> list[Alike]:
        """The rules whose patterns match here, in no order; ``type`` is the dynamic type that led here."""
        found = [node.ends for node in self._nodes if node.ends is not None]
        for table in self._last:
            found += [table[above] for above in self._ranks(type) if above in table]
        return found


class PatternTree:
    """Rules by their patterns, each of which is there once."""

    def __init__(self, rules: Mapping[Pattern, Alike], ranks: SupertypeRanks) -> None:
        self._ranks = ranks
        self._heads: dict[Type, _PatternNode] = {}
        self._anywhere: dict[Type, Alike] = {}
        for pattern, alike in rules.items():
            self._enter(pattern, alike)

    def _enter(self, pattern: Pattern, alike: Alike) -> None:
        if not pattern.qualifiers:
            self._anywhere[pattern.head] = alike
            return
        node = self._heads.setdefault(pattern.head, _PatternNode())
        *inner, last = pattern.qualifiers
        for qualifier in inner:
            node = node.after(qualifier)
        if last.attribute:
            node.after(last).ends = alike
        else:
            node.last[last.type] = alike

    def start(self, event: Struct) -> PatternCursor:
        """The place of the event itself."""
        nodes = [self._heads[above] for above in self._ranks(event) if above in self._heads]
        return PatternCursor(nodes, [self._anywhere] if self._anywhere else [], self._ranks)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The walk, from the top down. At each place the rules that match compete; if there are any, the first converts the
# whole value and nothing below is visited. Everything is settled for types, before any event is there: where values of
# subtypes can stand, each gets a place of its own, and at run time only ``$type`` is left to decide. What the
# conversions do is :mod:`situ.contexts.transform.transformation`.


class RuleSet(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """The rules visible in a context for one direction, ready to be looked up."""

    rules: tuple[Rule, ...]
    """All of them: the context's own first, root's last."""
    tree: PatternTree
    """Those in force, by their patterns."""
    ranks: SupertypeRanks

    @classmethod
    def of(cls, context: Context, direction: Direction) -> RuleSet:
        chain = list(context.chain)
        depths = {each.id: len(chain) - number for number, each in enumerate(chain)}
        rules = tuple(rule for each in chain for rule in each.rules if rule.direction is direction)
        ranks = SupertypeRanks()
        return cls(rules=rules, tree=PatternTree(rules_in_force(rules, depths.__getitem__), ranks), ranks=ranks)

    def rank(self, matching: list[Alike], path: Traversal) -> tuple[Rule, ...]:
        """The rules that match a place, given by their patterns, the one that counts first."""
        if len(matching) == 1:
            return matching[0]
        ranked = sorted(matching, key=lambda alike: precedence_key(alike[0].pattern, path, self.ranks))
        return tuple(rule for alike in ranked for rule in alike)


_NO_RULES: tuple[Rule, ...] = ()
_NO_ATTRIBUTES: Mapping[str, tuple[ResolvedPlace, ...]] = MappingProxyType({})


class ResolvedPlace(msgspec.Struct, frozen=True, kw_only=True, eq=False):
    """A place of an event with the dynamic type of the value there, and the rule that converts it.

    Without a rule, ``attributes`` (of a struct) or ``elements`` (of a list) hold what lies below: a place for each
    dynamic type, that of the declared type first.
    """

    path: Traversal
    rule: Rule | None = None
    beaten: tuple[Rule, ...] = ()
    """The other rules that match, the next best first."""
    attributes: Mapping[str, tuple[ResolvedPlace, ...]] = msgspec.field(default_factory=lambda: _NO_ATTRIBUTES)
    elements: tuple[ResolvedPlace, ...] = ()

    @property
    def below(self) -> Iterator[ResolvedPlace]:
        """The places of attributes or elements."""
        for places in self.attributes.values():
            yield from places
        yield from self.elements


def resolve_event_type(event: Struct, rules: RuleSet, types: Types, *, covered: bool = False) -> ResolvedPlace:
    """The places of an event type and what converts them, down to where a rule converts the whole value.

    ``covered``: go on below such places, too, as if their rules were not there.
    """
    return _Expansion(event, rules, types, covered=covered).whole()


def converted_places(place: ResolvedPlace) -> Iterator[ResolvedPlace]:
    """The places that rules convert, of this one and those below; none of them lies below another."""
    if place.rule is not None:
        yield place
        return
    for each in place.below:
        yield from converted_places(each)


class _Expansion:
    """One walk down from an event type."""

    def __init__(self, event: Struct, rules: RuleSet, types: Types, *, covered: bool) -> None:
        self._event = event
        self._rules = rules
        self._types = types
        self._covered = covered
        self._left = MOST_PATHS
        self._subtypes: dict[int, tuple[Type, ...]] = {}  # by identity: the types hold them all

    def whole(self) -> ResolvedPlace:
        cursor = self._rules.tree.start(self._event)
        return self._place(Traversal(event=self._event), cursor, cursor)

    def _place(self, path: Traversal, cursor: PatternCursor, parent: PatternCursor) -> ResolvedPlace:
        self._count()
        type = path.type
        rule, beaten = None, _NO_RULES
        if matching := cursor.matching(type):
            ranked = self._rules.rank(matching, path)
            rule, beaten = ranked[0], ranked[1:]
            if not self._covered:
                return ResolvedPlace(path=path, rule=rule, beaten=beaten)
        match type:
            case Struct(attributes=attributes):
                below = {each.name: self._attribute(path, cursor, each.name, each.type) for each in attributes}
                return ResolvedPlace(path=path, rule=rule, beaten=beaten, attributes=MappingProxyType(below))
            case ListOf(element=element):
                elements = self._elements(path, parent, element)
                return ResolvedPlace(path=path, rule=rule, beaten=beaten, elements=elements)
            case _:
                return ResolvedPlace(path=path, rule=rule, beaten=beaten)

    def _attribute(
        self, path: Traversal, cursor: PatternCursor, name: str, declared: Type
    ) -> tuple[ResolvedPlace, ...]:
        return self._values(path.steps, cursor, name, declared, elements=False)

    def _elements(self, path: Traversal, parent: PatternCursor, declared: Type) -> tuple[ResolvedPlace, ...]:
        """Elements are on the level of their list: the way to them leaves from where that to the list does."""
        return self._values(path.steps[:-1], parent, path.steps[-1].attribute, declared, elements=True)

    def _values(
        self, steps: tuple[TraversalStep, ...], cursor: PatternCursor, name: str, declared: Type, *, elements: bool
    ) -> tuple[ResolvedPlace, ...]:
        places: list[ResolvedPlace] = []
        for type in self._dynamic(declared):
            step = TraversalStep(attribute=name, elements=elements, type=type)
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
