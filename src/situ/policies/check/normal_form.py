"""Conditions of a policy in normal form: resolved names, sequences taken apart, an AND of clauses.

`ResolvedCondition` is a condition with its names looked up, `branches_of` makes what a match must meet of it, and
`to_normal_form` the clauses that people read, refusing conditions that contradict each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise, product
from typing import assert_never

import msgspec

from situ.lang.catalogue import CONTRADICTORY, NORMAL_FORM_TOO_LARGE
from situ.lang.problems import Location, SituError
from situ.lang.records import replace
from situ.policies.logic_tree import clause_text
from situ.policies.model import (
    Absence,
    Clause,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    RelationLiteral,
    SequenceGap,
    SequenceLiteral,
    is_negative,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Conditions with their names looked up: relations with signs, joined as they were written. Places travel along and do
# not count when conditions are compared.


@dataclass(frozen=True, slots=True)
class ResolvedRelation:
    """One relation, or its absence."""

    literal: RelationLiteral
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResolvedAll:
    """Parts that must all be met."""

    parts: tuple[ResolvedCondition, ...]
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResolvedAny:
    """Parts one of which must be met."""

    parts: tuple[ResolvedCondition, ...]
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class ResolvedSequence:
    """``first followed-by second``, at most ``within`` microseconds later; None: nothing is written."""

    first: ResolvedCondition
    second: ResolvedCondition
    within: int | None = None
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


ResolvedCondition = ResolvedRelation | ResolvedAll | ResolvedAny | ResolvedSequence


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Conditions as what a match must meet: literals, absences that are judged together, and choices between branches.
#
# An ``or`` becomes one :class:`Disjunction`, made once in a match, wherever it is written. Sequences (``→``,
# followed-by) are taken apart into literals of two sides, so an ``or`` inside of one is taken out of it first, and an
# ``and`` after that; steps keep the place where they are written, so what stands in several literals afterwards is one
# occurrence there.
#
#     ========================  ==============================
#     ``A → (B and C)``         ``A→B and A→C``
#     ``A → (B or C)``          ``A→B or A→C``
#     ``(A and B) → C``         ``A→C and B→C``
#     ``(A or B) → C``          ``A→C or B→C``
#     ``A → B → C``             ``A→B and B→C``
#     ``A → (B or C) → D``      ``(A→B and B→D) or (A→C and C→D)``
#     ``A → not B → C``         one literal: no B between A and C
#     ========================  ==============================

Parts = tuple[ConditionPart, ...]
"""All of these must be met."""

LEAST_LIMIT = 4_096
"""A smaller limit is one for what remains, not for the work."""

AT_ONCE = 4
"""So many literals for each that is allowed may be made before they are reduced: most may be absorbed."""


class LiteralPlaces(msgspec.Struct):
    """Where what became literals and choices stands in the policy, and the literals in their order."""

    of: dict[ConditionPart, Location | None] = msgspec.field(default_factory=dict)
    literals: dict[ConditionLiteral, int] = msgspec.field(default_factory=dict)


def branches_of(condition: ResolvedCondition, window: int, limit: int) -> tuple[Parts, LiteralPlaces]:
    """What a match must meet. ``window`` is that of the policy, for each ``followed-by`` that says none.

    :class:`~situ.lang.problems.SituError` if sequences come to too many literals.
    """
    distribution = _Distribution(window, limit)
    return distribution.parts(condition), distribution.places


class _Distribution:
    def __init__(self, window: int, limit: int) -> None:
        self.window, self.limit = window, limit
        self.left = self.most = AT_ONCE * max(limit, LEAST_LIMIT)
        self.places = LiteralPlaces()

    def parts(self, condition: ResolvedCondition) -> Parts:
        match condition:
            case ResolvedRelation(literal=literal, location=location):
                return (self._met(literal, location),)
            case ResolvedAll(parts=parts):
                return _together(self.parts(part) for part in parts)
            case ResolvedAny(parts=parts):
                return self._any([self.parts(part) for part in parts], place_of(condition))
            case ResolvedSequence():
                paths, length = _paths(condition)
                if paths > self.most:
                    raise too_large(place_of(condition), length - paths, self.limit)
                return self._sequence(condition, *_steps(condition))
            case _:
                assert_never(condition)

    def _met(self, literal: ConditionLiteral, location: Location | None) -> ConditionPart:
        self.places.of.setdefault(literal, location)
        self.places.literals.setdefault(literal, len(self.places.literals))
        return Absence((literal,)) if is_negative(literal) else literal

    # ── or ──

    def _any(self, branches: Iterable[Parts], location: Location | None) -> Parts:
        """One of these; nothing if it is always so."""
        happening, absent = self._sorted(branches)
        joint = None
        if absent:
            joint = self._absent(absent, {branch[0] for branch in happening if len(branch) == 1})
        if () in happening or joint == ():
            return ()
        if not happening:
            return joint or ()
        if len(happening) == 1 and not joint:
            return happening[0]
        choice = Disjunction(tuple(happening), joint or ())
        self.places.of.setdefault(choice, location)
        return (choice,)

    @staticmethod
    def _sorted(branches: Iterable[Parts]) -> tuple[list[Parts], list[tuple[Absence, ...]]]:
        """Branches with something that happens, each once, and those without; an ``or`` in an ``or`` is one."""
        happening: dict[Parts, None] = {}
        absent: list[tuple[Absence, ...]] = []
        for branch in branches:
            match branch:
                case (Disjunction(branches=inner, absent=negative),):
                    happening |= dict.fromkeys(inner)
                    absent += [negative] if negative else []
                case _:
                    negative = tuple(part for part in branch if isinstance(part, Absence))
                    if branch and len(negative) == len(branch):
                        absent.append(negative)
                    else:
                        happening.setdefault(branch)
        return list(happening), absent

    def _absent(self, branches: list[tuple[Absence, ...]], beside: set[ConditionPart]) -> tuple[Absence, ...]:
        """Branches of absences as one: any of them must hold, whatever is chosen for aliases that nothing binds.

        What is absent in one branch and happens in another, ``r or not r``, is so in any case.
        """
        happens = {part.relation.text for part in beside if isinstance(part, RelationLiteral)}
        found: dict[frozenset[ConditionLiteral], Absence] = {}
        size = 1
        for branch in branches:
            size *= len(branch)
        if size > self.most:
            raise too_large(self.places.of[branches[0][0].literals[0]], size * len(branches), self.limit)
        for chosen in product(*branches):
            literals = tuple(dict.fromkeys(literal for each in chosen for literal in each.literals))
            if not any(isinstance(each, RelationLiteral) and each.relation.text in happens for each in literals):
                found.setdefault(frozenset(literals), Absence(literals))
        kept = [each for each in found if not any(other < each for other in found)]
        return tuple(found[each] for each in kept)

    # ── followed-by ──

    def _sequence(self, whole: ResolvedCondition, factors: list[ResolvedCondition], windows: list[int | None]) -> Parts:
        """A sequence whose factors are joined by ``or`` is a choice of sequences; then by ``and``, all of them."""
        place = self._next(factors)
        if place is None:
            return self._chain(whole, [each for each in factors if isinstance(each, ResolvedRelation)], windows)
        joined = factors[place]
        alternatives: tuple[ResolvedCondition, ...] | None = joined.parts if isinstance(joined, ResolvedAny) else None
        if alternatives is None and any(_has_or(each) for each in factors[:place] + factors[place + 1 :]):
            alternatives = _without_first_or(joined)
        found = (self._with(whole, factors, windows, place, part) for part in alternatives or _parts(joined))
        return _together(found) if alternatives is None else self._any(found, place_of(joined))

    @staticmethod
    def _next(factors: list[ResolvedCondition]) -> int | None:
        """Which factor is taken apart next: an ``or`` before an ``and``, and of these one with an ``or`` inside.

        Taken apart, an ``and`` repeats the other factors: an ``or`` among them would become several choices.
        """
        joined = [place for place, factor in enumerate(factors) if not isinstance(factor, ResolvedRelation)]
        order = sorted(
            joined, key=lambda place: (not isinstance(factors[place], ResolvedAny), not _has_or(factors[place]))
        )
        return order[0] if order else None

    def _with(
        self,
        whole: ResolvedCondition,
        factors: list[ResolvedCondition],
        windows: list[int | None],
        place: int,
        part: ResolvedCondition,
    ) -> Parts:
        inner, between = _steps(part)
        with_part = factors[:place] + inner + factors[place + 1 :]
        return self._sequence(whole, with_part, windows[:place] + between + windows[place:])

    def _chain(self, whole: ResolvedCondition, steps: list[ResolvedRelation], windows: list[int | None]) -> Parts:
        self.left -= len(steps)
        if self.left < 0:
            raise too_large(place_of(whole), self.most - self.left, self.limit)
        literals = _literals([each.literal for each in steps], windows, self.window)
        places = {each.literal: each.location for each in steps}
        return _together((self._met(each, places[each.first]),) for each in literals)


def _literals(steps: list[RelationLiteral], windows: list[int | None], window: int) -> Iterator[SequenceLiteral]:
    """Steps that follow each other as literals of two sides: what is to be absent belongs to what is beside it."""
    said = [window if each is None else each for each in windows]
    present = [place for place, step in enumerate(steps) if not step.negated]
    if not present:
        for (before, after), within in zip(pairwise(steps), said, strict=True):
            yield SequenceLiteral(before, after, within)
        return
    first, last = present[0], present[-1]
    if first > 0:
        gaps = tuple(SequenceGap(steps[place], said[place]) for place in range(1, first))
        yield SequenceLiteral(steps[0], steps[first], said[0], gaps)
    for one, other in pairwise(present):
        gaps = tuple(SequenceGap(steps[place], windows[place - 1] or 0) for place in range(one + 1, other))
        yield SequenceLiteral(steps[one], steps[other], said[other - 1], gaps)
    if last < len(steps) - 1:
        gaps = tuple(SequenceGap(steps[place], said[place - 1]) for place in range(last + 1, len(steps) - 1))
        yield SequenceLiteral(steps[last], steps[-1], said[-1], gaps)


def _together(found: Iterable[Parts]) -> Parts:
    return tuple(dict.fromkeys(part for parts in found for part in parts))


def _steps(condition: ResolvedCondition) -> tuple[list[ResolvedCondition], list[int | None]]:
    """The factors of a sequence, those of sequences inside it among them, and the windows between them."""
    factors: list[ResolvedCondition] = []
    windows: list[int | None] = []
    waiting: list[ResolvedCondition | tuple[int | None]] = [condition]
    while waiting:
        match waiting.pop():
            case ResolvedSequence(first=first, second=second, within=within):
                waiting += [second, (within,), first]
            case (within,):
                windows.append(within)
            case ResolvedAll(parts=(only,)) | ResolvedAny(parts=(only,)):
                waiting.append(only)
            case factor:
                factors.append(factor)
    return factors, windows


def _parts(condition: ResolvedCondition) -> tuple[ResolvedCondition, ...]:
    assert isinstance(condition, ResolvedAll)  # steps inside of each other are taken apart
    return condition.parts


def _has_or(condition: ResolvedCondition) -> bool:
    match condition:
        case ResolvedRelation():
            return False
        case ResolvedAny(parts=parts):
            return len(parts) > 1 or any(map(_has_or, parts))
        case ResolvedAll(parts=parts):
            return any(map(_has_or, parts))
        case ResolvedSequence():
            return any(map(_has_or, _steps(condition)[0]))
        case _:
            assert_never(condition)


def _without_first_or(condition: ResolvedCondition) -> tuple[ResolvedCondition, ...] | None:
    """The condition once for each branch of the first ``or`` in it; None if there is none."""
    match condition:
        case ResolvedRelation():
            return None
        case ResolvedAny(parts=parts):
            return parts
        case ResolvedAll(parts=parts):
            for place, part in enumerate(parts):
                if (found := _without_first_or(part)) is not None:
                    return tuple(
                        replace(condition, parts=(*parts[:place], each, *parts[place + 1 :])) for each in found
                    )
            return None
        case ResolvedSequence(first=first, second=second):
            if (found := _without_first_or(first)) is not None:
                return tuple(replace(condition, first=each) for each in found)
            if (found := _without_first_or(second)) is not None:
                return tuple(replace(condition, second=each) for each in found)
            return None
        case _:
            assert_never(condition)


def _paths(condition: ResolvedCondition) -> tuple[int, int]:
    """How many sequences of relations there are if all is distributed, and how long they are together."""
    match condition:
        case ResolvedRelation():
            return 1, 1
        case ResolvedAll(parts=parts) | ResolvedAny(parts=parts):
            found = [_paths(part) for part in parts]
            return sum(paths for paths, _ in found), sum(length for _, length in found)
        case ResolvedSequence():
            paths, length = 1, 0
            for factor in _steps(condition)[0]:
                more, longer = _paths(factor)
                paths, length = paths * more, length * more + longer * paths
            return paths, length
        case _:
            assert_never(condition)


def place_of(condition: ResolvedCondition) -> Location | None:
    """Where a condition stands, or the first part of it that says."""
    while condition.location is None:
        match condition:
            case ResolvedAll(parts=(first, *_)) | ResolvedAny(parts=(first, *_)) | ResolvedSequence(first=first):
                condition = first
            case _:
                break
    return condition.location


def too_large(place: Location | None, found: int, limit: int) -> SituError:
    shown = f"{found:,}" if found < 10**12 else f"more than 10^{len(str(found)) - 1}"
    return SituError(NORMAL_FORM_TOO_LARGE(place, found=shown, limit=limit))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Extended conjunctive normal form: an AND of clauses, each an OR of relations and of sequences.
#
# It is what people read of a policy, and what tells whether conditions can be met at all. Sequences are taken apart
# already; what remains is the conversion to conjunctive normal form: a choice of branches is the AND of all clauses
# with one literal of each branch. A match chooses one branch for each ``or``, so literals that meet different clauses
# of one are of the same branch.
#
# While it is made, a clause is a number, with a bit for each literal. A clause absorbs another if its bits are among
# the other's: literals are the same only if they are written at the same place.

_AT_ALL = 16
"""So many times what may be made at once may be made in all."""

_ASSUMPTIONS = 2_000
"""After so many, conditions count as possible: finding a contradiction can take for ever, and most have none."""


def to_normal_form(condition: ResolvedCondition, window: int, limit: int) -> tuple[Parts, tuple[Clause, ...]]:
    """What a match must meet, and the same as clauses, in the order they stand.

    Clauses are without repetition, absorbed ones and tautologies. :class:`~situ.lang.problems.SituError` if there would
    be more than ``limit`` literals in them, or if they contradict each other.
    """
    parts, places = branches_of(condition, window, limit)
    converting = _Converting(places, limit)
    clauses = converting.clauses(parts)
    if core := _contradiction(converting.relations(clauses)):
        named = [converting.clause(clauses[place]) for place in core]
        *others, last = (f"`{clause_text(each)}`" for each in named)
        raise SituError(CONTRADICTORY(places.of[named[0][0]], clauses=f"{', '.join(others)} and {last}"))
    return parts, tuple(converting.clause(each) for each in clauses)


class _Converting:
    """One run: the literals by number, and how many there may be."""

    def __init__(self, places: LiteralPlaces, limit: int) -> None:
        self.places, self.limit = places, limit
        self.most = AT_ONCE * max(limit, LEAST_LIMIT)
        self.left = _AT_ALL * self.most
        self.literals = list(places.literals)
        self.opposites = _opposites(self.literals)

    def clauses(self, parts: Parts) -> list[int]:
        return self._together([self._of(part) for part in parts], parts)

    def _of(self, part: ConditionPart) -> list[int]:
        match part:
            case RelationLiteral() | SequenceLiteral():
                return [self._bit(part)]
            case Absence(literals=literals):
                return [sum(map(self._bit, literals))]
            case Disjunction(branches=branches, absent=absent):
                found = [self.clauses(branch) for branch in branches]
                return self._multiplied(self.places.of[part], [*found, *([self.clauses(absent)] if absent else [])])
            case _:
                assert_never(part)

    def _together(self, found: list[list[int]], parts: Parts) -> list[int]:
        """All clauses of all."""
        count = sum(each.bit_count() for clauses in found for each in clauses)
        reduced = self._reduced(each for clauses in found for each in clauses)
        if reduced is None:
            raise self._too_large(self._place(parts), count)
        return reduced

    def _multiplied(self, place: Location | None, found: list[list[int]]) -> list[int]:
        """Each clause of one with each of the others; how many that makes is known before any is made."""
        result = [0]
        for clauses in found:
            reduced = None
            count = len(result) * len(clauses)
            self.left -= count
            if count <= self.most and self.left >= 0:
                reduced = self._reduced(one | other for one in result for other in clauses)
            if reduced is None:
                raise self._too_large(place, _product_size(found))
            result = reduced
        return result

    def _reduced(self, clauses: Iterable[int]) -> list[int] | None:
        """The clauses that are no tautologies and not absorbed, in their order; None if they are too many.

        A tautology has a relation and its absence.
        Shorter ones come first, so what is kept stays. Each kept clause is found under one of its literals: whoever is
        absorbed by it has that one too.
        """
        opposites = self.opposites
        different = dict.fromkeys(
            each for each in clauses if not any(each & there and each & absent for there, absent in opposites)
        )
        under: dict[int, list[int]] = {}
        kept: set[int] = set()
        left = self.limit
        for clause in sorted(different, key=int.bit_count):
            bits = list(_bits(clause))
            if any(other & clause == other for bit in bits for other in under.get(bit, ())):
                continue
            left -= len(bits)
            if left < 0:
                return None
            kept.add(clause)
            if bits:
                under.setdefault(min(bits, key=lambda bit: len(under.get(bit, ()))), []).append(clause)
        return [each for each in different if each in kept]

    def _bit(self, literal: ConditionLiteral) -> int:
        return 1 << self.places.literals[literal]

    def clause(self, bits: int) -> Clause:
        return tuple(self.literals[bit.bit_length() - 1] for bit in _bits(bits))

    def relations(self, clauses: list[int]) -> list[int]:
        """For each clause the relations it is about, bit 2k for the k-th, bit 2k + 1 for its absence; 0 for others.

        Relations are looked at wherever they are written. A sequence may occur whatever else does: what has one is
        always possible.
        """
        numbers: dict[str, int] = {}
        found = []
        for clause in clauses:
            about = 0
            for literal in self.clause(clause):
                if isinstance(literal, SequenceLiteral):
                    about = 0
                    break
                number = numbers.setdefault(literal.relation.text, len(numbers))
                about |= 1 << 2 * number + literal.negated
            found.append(about)
        return found

    def _place(self, parts: Parts) -> Location | None:
        for part in parts:
            place = self.places.of.get(part.literals[0] if isinstance(part, Absence) else part)
            if place is not None:
                return place
        return None

    def _too_large(self, place: Location | None, found: int) -> SituError:
        if self.left < 0:  # many small products came together: what was made of them in all is what is too much
            found = max(found, _AT_ALL * self.most - self.left)
        return too_large(place, found, self.limit)


def _opposites(literals: Iterable[ConditionLiteral]) -> list[tuple[int, int]]:
    """For each relation that is to hold at one place and not to hold at another: the bits of both."""
    found: dict[str, list[int]] = {}
    for number, literal in enumerate(literals):
        if isinstance(literal, RelationLiteral):
            found.setdefault(literal.relation.text, [0, 0])[literal.negated] |= 1 << number
    return [(there, absent) for there, absent in found.values() if there and absent]


def _product_size(found: list[list[int]]) -> int:
    """The literals of a product before any is left out."""
    clauses, literals = 1, 0
    for each in found:
        literals = literals * len(each) + clauses * sum(clause.bit_count() for clause in each)
        clauses *= len(each)
    return literals


# ── clauses as numbers ────────────────────────────────────────────────────────────────────────────


def _bits(clause: int) -> Iterator[int]:
    while clause:
        lowest = clause & -clause
        yield lowest
        clause ^= lowest


def _opposite(bit: int) -> int:
    place = bit.bit_length() - 1
    return 1 << (place ^ 1)


def _contradiction(clauses: list[int]) -> list[int]:
    """The places of clauses that cannot be met together, none of which can be left out; empty if we find none.

    A clause that is 0 is always possible.
    """
    core = [place for place, clause in enumerate(clauses) if clause]
    if _possible([clauses[place] for place in core], [_ASSUMPTIONS]):
        return []
    for place in list(core):
        fewer = [each for each in core if each != place]
        if not _possible([clauses[each] for each in fewer], [_ASSUMPTIONS]):
            core = fewer
    return core


def _possible(clauses: list[int], left: list[int]) -> bool:
    """Whether relations can occur or not so that all clauses are met."""
    while (only := next((each for each in clauses if each.bit_count() <= 1), None)) is not None:
        if not only:
            return False
        clauses = _assuming(clauses, only)
    if not clauses:
        return True
    left[0] -= 1
    if left[0] < 0:
        return True
    bit = next(_bits(min(clauses, key=int.bit_count)))
    return _possible(_assuming(clauses, bit), left) or _possible(_assuming(clauses, _opposite(bit)), left)


def _assuming(clauses: list[int], bit: int) -> list[int]:
    opposite = _opposite(bit)
    return [each & ~opposite for each in clauses if not each & bit]
