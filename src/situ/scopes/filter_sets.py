"""Numbers of filters, the bits of an event, and families of filter sets: on which filters visibility depends.

`FilterNumbers` gives each filter its number for good, `FilterSets` and `NestedFilterSets` are families, which
`through`, `union` and `product` combine.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import msgspec

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Each distinct filter, by its canonical text, has a number that is given once and never to another, so that bits stay
# readable when filters come and go. ``bits`` of an event is an integer with a 1 for each filter that is TRUE for it;
# where integers have 64 bits with a sign, the same is a list of words of 63.

WORD = 63
"""Bits in a word: the sign is left alone."""

_FULL = (1 << WORD) - 1


class FilterNumbers(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that were ever given: by the text of the filter. Kept with the scope document, for good."""

    given: Mapping[str, int] = msgspec.field(default_factory=lambda: MappingProxyType({}))

    def __getitem__(self, text: str) -> int:
        return self.given[text]

    def __contains__(self, text: object) -> bool:
        return text in self.given

    def __len__(self) -> int:
        return len(self.given)

    def texts(self) -> dict[int, str]:
        """The texts by their numbers."""
        return {number: text for text, number in self.given.items()}


NO_NUMBERS = FilterNumbers()


def give_numbers(numbers: FilterNumbers, texts: Iterable[str]) -> FilterNumbers:
    """With numbers for these texts, too: those that had one keep it, new ones get the next, in alphabetical order."""
    new = sorted({text for text in texts if text not in numbers})
    if not new:
        return numbers
    following = max(numbers.given.values(), default=-1) + 1
    given = {**numbers.given, **{text: following + place for place, text in enumerate(new)}}
    return FilterNumbers(given=MappingProxyType(given))


def bits_of(numbers: Iterable[int]) -> int:
    """An integer with the bits of these numbers."""
    result = 0
    for number in numbers:
        result |= 1 << number
    return result


def numbers_in(bits: int) -> Iterator[int]:
    """The numbers of the bits that are 1, smaller ones first."""
    while bits:
        lowest = bits & -bits
        yield lowest.bit_length() - 1
        bits ^= lowest


def to_words(bits: int, least: int = 0) -> tuple[int, ...]:
    """The same in words of 63, lower ones first; at least so many, and none for nothing."""
    words: list[int] = []
    while bits or len(words) < least:
        words.append(bits & _FULL)
        bits >>= WORD
    return tuple(words)


def from_words(words: Sequence[int]) -> int:
    """What :func:`to_words` took apart."""
    result = 0
    for place, word in enumerate(words):
        result |= word << (WORD * place)
    return result


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Families. A filter has a number, a set of filters is an integer with the bits of its numbers, and a family is visible
# when at least one of its sets is contained in the bits of the event. No set at all is *never*, the empty set is
# *always*. Filters occur only positively, so a set that contains another adds nothing: families are kept minimal.
#
# Diamonds one after the other multiply: a family of more than 64 sets is not written out but kept as the AND and OR
# that it comes from, parts that are shared written once. Both forms mean the same; nothing but cost depends on which it
# is.

MOST_SETS = 64
"""A family of more sets is kept nested."""

_MOST_COMPARED = 1024
"""Sets that are compared with each other at once; what might have more is kept nested unseen."""

Step = tuple[tuple[int, tuple[int, ...]], ...]
"""Ways, any of which will do: filters that must all be TRUE, and the earlier steps that must all hold."""


@dataclass(frozen=True, slots=True)
class FilterSets:
    """Any of these sets of filters, none containing another, smaller ones first."""

    sets: tuple[int, ...]

    def holds(self, bits: int) -> bool:
        for needed in self.sets:  # noqa: SIM110 - a generator would cost more than all that it does
            if bits & needed == needed:
                return True
        return False

    @property
    def program(self) -> tuple[Step, ...]:
        """The same as steps: there is only one, which needs no other."""
        return (tuple((needed, ()) for needed in self.sets),)

    @property
    def filters(self) -> int:
        """All filters that it depends on."""
        result = 0
        for needed in self.sets:
            result |= needed
        return result

    def __reduce__(self) -> tuple[object, ...]:
        return family_of, (self.sets,)


class NestedFilterSets:
    """An OR of ways, each an AND of filters and of other families: a graph without cycles, whose parts are shared.

    Graphs of scopes may be thousands of levels high, so nothing here recurses.
    """

    __slots__ = ("_program", "ways")

    def __init__(self, ways: Sequence[Way]) -> None:
        self.ways = tuple(ways)
        self._program: tuple[Step, ...] | None = None

    @property
    def program(self) -> tuple[Step, ...]:
        """Steps in an order in which each needs only earlier ones; the last one decides."""
        if self._program is None:
            self._program = _flatten(self)
        return self._program

    def holds(self, bits: int) -> bool:
        known: list[bool] = []
        for step in self.program:
            known.append(
                any(bits & needed == needed and all(known[earlier] for earlier in parts) for needed, parts in step)
            )
        return known[-1]

    @property
    def filters(self) -> int:
        result = 0
        for step in self.program:
            for needed, _ in step:
                result |= needed
        return result

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, NestedFilterSets) and self.program == other.program)

    def __hash__(self) -> int:
        return hash(self.program)

    def __repr__(self) -> str:
        return f"Nested({len(self.program)} steps, {self.filters.bit_count()} filters)"

    def __reduce__(self) -> tuple[object, ...]:
        return nested_from, (self.program,)


Family = FilterSets | NestedFilterSets
Way = tuple[int, tuple[Family, ...]]
"""Filters that must all be TRUE, and families that must all hold."""

NEVER = FilterSets(())
ALWAYS = FilterSets((0,))


def nested_from(program: Sequence[Step]) -> Family:
    """The family that steps mean: how a nested one is stored and read again."""
    made: list[Family] = []
    for step in program:
        made.append(NestedFilterSets([(needed, tuple(made[earlier] for earlier in parts)) for needed, parts in step]))
    return made[-1]


def minimal(sets: Iterable[int]) -> tuple[int, ...] | None:
    """The sets that contain no other, smaller ones first; None if these are too many to be written out."""
    left = set(sets)
    if 0 in left:
        return (0,)
    if len(left) <= 1:
        return tuple(left)
    if len(left) > _MOST_COMPARED:
        return None
    kept: list[int] = []
    for candidate in sorted(left, key=_size_first):
        # Nothing that follows is smaller, so what is kept stays: the count is final as soon as it is too high.
        for smaller in kept:
            if candidate & smaller == smaller:
                break
        else:
            kept.append(candidate)
            if len(kept) > MOST_SETS:
                return None
    return tuple(kept)


def _size_first(needed: int) -> tuple[int, int]:
    return needed.bit_count(), needed


def through(ways: Sequence[tuple[int, Family]]) -> Family:
    """Any of these families, each with filters that must be TRUE besides: one step of a path, over all its edges."""
    if len(ways) == 1:
        needed, family = ways[0]
        if not needed or family is NEVER:
            return family
        if isinstance(family, FilterSets) and len(family.sets) == 1:
            return FilterSets((family.sets[0] | needed,))
    sets: set[int] = set()
    for needed, family in ways:
        if isinstance(family, NestedFilterSets):
            break
        for each in family.sets:
            sets.add(needed | each)
    else:
        least = minimal(sets)
        if least is not None:
            return family_of(least)
    return _nested(_gathered(ways))


def union(families: Iterable[Family]) -> Family:
    """Any of these families."""
    return through([(0, family) for family in families])


def product(families: Sequence[Family]) -> Family:
    """All of these families."""
    result: Family = ALWAYS
    for family in families:
        result = _both(result, family)
    return result


def suppose(family: Family, true: int, false: int) -> Family:
    """What is left of a family where it is known of some filters that they are TRUE, of others that they are not."""
    if not family.filters & (true | false):
        return family
    made: list[Family] = []
    for step in family.program:
        ways = [(needed & ~true, [made[part] for part in parts]) for needed, parts in step if not needed & false]
        made.append(union([_all_of(needed, parts) for needed, parts in ways]))
    return made[-1]


def _all_of(needed: int, parts: Sequence[Family]) -> Family:
    return through([(needed, product(parts))])


def _both(left: Family, right: Family) -> Family:
    if left is ALWAYS or right is NEVER:
        return right
    if right is ALWAYS or left is NEVER:
        return left
    if (
        isinstance(left, FilterSets)
        and isinstance(right, FilterSets)
        and len(left.sets) * len(right.sets) <= _MOST_COMPARED
    ):
        least = minimal(one | other for one in left.sets for other in right.sets)
        if least is not None:
            return family_of(least)
    return _nested([(0, (left, right))])


def _gathered(ways: Iterable[tuple[int, Family]]) -> list[Way]:
    """What goes on from the same family, once: ``(A AND x) OR (A AND y)`` is ``A AND (x OR y)``.

    So diamonds one after the other do not even grow when they are written out as text.
    """
    by_family: dict[int, tuple[Family, list[int]]] = {}
    for needed, family in ways:
        while isinstance(family, NestedFilterSets) and len(family.ways) == 1 and len(family.ways[0][1]) == 1:
            more, (family,) = family.ways[0]
            needed |= more
        by_family.setdefault(id(family), (family, []))[1].append(needed)
    result: list[Way] = []
    for family, masks in by_family.values():
        if len(masks) == 1:
            result.append((masks[0], (family,)))
        else:
            choice = union(FilterSets((needed,)) if needed else ALWAYS for needed in masks)
            result.append((0, (family, choice)))
    return result


def _nested(ways: Iterable[Way]) -> Family:
    """An OR that is not written out; what is always or never is found even so, for without it no bit can be spared."""
    kept: list[Way] = []
    for needed, parts in ways:
        if any(part is NEVER for part in parts):
            continue
        left = tuple(part for part in parts if part is not ALWAYS)
        if not needed and not left:
            return ALWAYS
        kept.append((needed, left))
    if not kept:
        return NEVER
    if len(kept) == 1 and not kept[0][0] and len(kept[0][1]) == 1:
        return kept[0][1][0]
    return NestedFilterSets(kept)


def family_of(sets: tuple[int, ...]) -> Family:
    """The family of minimal sets; never and always are one object each, so that they are recognised by being it."""
    if not sets:
        return NEVER
    return ALWAYS if sets[0] == 0 else FilterSets(sets)


def _flatten(top: NestedFilterSets) -> tuple[Step, ...]:
    place: dict[int, int] = {}
    steps: list[Step] = []
    waiting: list[Family] = [top]
    while waiting:
        family = waiting[-1]
        if id(family) in place:
            waiting.pop()
            continue
        ways = family.ways if isinstance(family, NestedFilterSets) else ()
        missing = [part for _, parts in ways for part in parts if id(part) not in place]
        if missing:
            waiting.extend(reversed(missing))
            continue
        waiting.pop()
        step: Step
        if isinstance(family, FilterSets):
            step = tuple((needed, ()) for needed in family.sets)
        else:
            step = tuple((needed, tuple(place[id(part)] for part in parts)) for needed, parts in family.ways)
        place[id(family)] = len(steps)
        steps.append(step)
    return tuple(steps)
