"""Which of several rules for one place counts: one comparison, without ties between different patterns.

The criteria, as people think of them:

- P1 deeper beats shallower: a pattern that says more about the way to the place;
- P2 an attribute beats a type;
- P3 a more derived type beats a less derived one;
- P4 of unrelated supertypes the nearer one, then the one declared first;
- P5 a more specific beginning beats depth;
- P6 subtyping beats P1 and P2.

All six are one comparison of tuples. The last part of a pattern speaks about the target, the last level of the path;
its other parts about the levels 0, 1, … in order; about levels between it says nothing. Each level gets a key of
distance, kind and order, and the keys are compared for the target first, then from the event inwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from situ.interpretation.model import KEEP, Pattern, Qualifier, Rule
from situ.interpretation.patterns import Traversal, matches
from situ.types.model import ListOf, Named, Struct, Type, is_subtype

# ── where a type stands among its supertypes ──────────────────────────────────────────────────────

Standing = Mapping[Type, tuple[int, int]]
"""For each supertype of a type, itself included: distance and order."""


def standings(type: Type) -> Standing:
    """All types that ``type`` is a subtype of, itself first: the longest chain up to each, and its place on the walk.

    The walk goes up depth first, left to right. A type reached twice keeps its first place; leaving out the others
    changes no comparison, because all above it have their places by then.
    """
    if isinstance(type, ListOf):
        return MappingProxyType({ListOf(above): found for above, found in standings(type.element).items()})
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


class Standings:
    """Remembers the standing of types that are asked for again and again: by identity, and as long as it lives."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[Type, Standing]] = {}

    def __call__(self, type: Type) -> Standing:
        found = self._known.get(id(type))
        if found is None:
            found = self._known[id(type)] = type, standings(type)  # the type is held, so its id stays its own
        return found[1]


# ── keys ──────────────────────────────────────────────────────────────────────────────────────────

LevelKey = tuple[float, int, int]
"""Distance, kind and order: smaller is more specific."""
Key = tuple[LevelKey, ...]

ATTRIBUTE, TYPE = 0, 1
SAYS_NOTHING: LevelKey = (math.inf, 0, 0)


def key(pattern: Pattern, path: Traversal, standings_of: Callable[[Type], Standing] = standings) -> Key:
    """How specific a pattern is about a place it matches: of the target, of the event, and so on inwards.

    Compare as tuples; the smaller wins. ``standings_of`` may remember what :func:`standings` gives.
    """
    *inner, last = pattern.qualifiers or (Qualifier(type=pattern.head),)
    said = [_level(last, path.type, standings_of)]
    if pattern.qualifiers:
        said.append(_level(Qualifier(type=pattern.head), path.event, standings_of))
        said.extend(_level(each, step.type, standings_of) for each, step in zip(inner, path.steps, strict=False))
    return (*said, *(SAYS_NOTHING,) * (len(path.steps) + 1 - len(said)))


def _level(said: Qualifier, found: Type, standings_of: Callable[[Type], Standing]) -> LevelKey:
    distance, order = standings_of(found)[said.type]
    return distance, ATTRIBUTE if said.attribute else TYPE, order


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────


def in_force(rules: Iterable[Rule], depth_of: Callable[[str], int]) -> dict[Pattern, tuple[Rule, ...]]:
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


def rank(rules: Iterable[Rule], path: Traversal, depth_of: Callable[[str], int]) -> list[Rule]:
    """The rules that match the place, the one that counts first. ``depth_of`` gives how specialised a context is."""
    matching = in_force((rule for rule in rules if matches(rule.pattern, path)), depth_of)
    return [rule for pattern in sorted(matching, key=lambda each: key(each, path)) for rule in matching[pattern]]


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
    for number, (of_a, of_b) in enumerate(zip(key(a, path), key(b, path), strict=True)):
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
