"""Extended conjunctive normal form: conditions as an AND of clauses, each an OR of relations and of sequences of two.

Conversion is that to conjunctive normal form, with rules for ``→`` (followed-by): a sequence with AND or OR among its
factors is the AND or OR of the sequences with each of the parts in that place, from the left; one of relations only is
the AND of its steps, each with its own window.

    ====================  =====================
    ``A → (B and C)``     ``A→B and A→C``
    ``A → (B or C)``      ``A→B or A→C``
    ``(A and B) → C``     ``A→C and B→C``
    ``(A or B) → C``      ``A→C or B→C``
    ``A → B → C``         ``A→B and B→C``
    ====================  =====================

That alternatives come before steps keeps ``A → (B or C) → D`` from being met by ``A→B`` and ``C→D``.

While it is made, a clause is a number: bit 2k stands for the k-th relation or sequence, bit 2k + 1 for the absence of
that relation. A clause absorbs another if its bits are among the other's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import assert_never

from situ.catalogue import CONTRADICTORY, NORMAL_FORM_TOO_LARGE
from situ.errors import Location, SituError
from situ.situation.policies.policy import Clause, Is, Literal, Then
from situ.situation.policies.resolved import AllOf, AnyOf, Condition, FollowedBy, Holds
from situ.situation.policies.wording import clause_text

_AT_ONCE = 4
"""So many clauses for each literal that is allowed may be made before they are reduced: most may be absorbed."""

_AT_ALL = 16
"""So many times that may be made in all."""

_LEAST_LIMIT = 4_096
"""A smaller limit is one for what remains, not for the work."""

_ASSUMPTIONS = 2_000
"""After so many, conditions count as possible: finding a contradiction can take for ever, and most have none."""


def normal_form(condition: Condition, limit: int) -> tuple[Clause, ...]:
    """The clauses, in the order they stand; without repetition, absorbed clauses and tautologies.

    :class:`~situ.errors.SituError` if there would be more than ``limit`` literals, or if they contradict each other.
    """
    converting = _Converting(limit)
    clauses = converting.clauses(condition)
    if core := _contradiction(converting.without_sequences(clauses)):
        *others, last = (f"`{clause_text(converting.clause(each))}`" for each in core)
        raise SituError(CONTRADICTORY(converting.place(core[0]), clauses=f"{', '.join(others)} and {last}"))
    return tuple(converting.clause(each) for each in clauses)


class _Converting:
    """One run: the literals that have been met, by number, and how many there may be."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.most = _AT_ONCE * max(limit, _LEAST_LIMIT)
        self.left = _AT_ALL * self.most
        self.present = 0
        self.literals: list[Literal] = []
        self.numbers: dict[Literal, int] = {}
        self.places: dict[Literal, Location | None] = {}

    def clauses(self, condition: Condition) -> list[int]:
        match condition:
            case Holds(literal=literal, location=location):
                return [self._bit(literal, location)]
            case AllOf(parts=parts):
                return self._all(condition, parts)
            case AnyOf(parts=parts):
                return self._any(condition, parts)
            case FollowedBy():
                paths, length = _paths(condition)
                if paths > self.most:
                    raise self._too_large(condition, length - paths)
                return self._sequence(condition, *_steps(condition))
            case _:
                assert_never(condition)

    def _all(self, whole: Condition, parts: Iterable[Condition]) -> list[int]:
        return self._together(whole, [self.clauses(part) for part in parts])

    def _any(self, whole: Condition, parts: Iterable[Condition]) -> list[int]:
        return self._multiplied(whole, [self.clauses(part) for part in parts])

    def _sequence(self, whole: Condition, factors: list[Condition], windows: list[int]) -> list[int]:
        place = next((place for place, factor in enumerate(factors) if not isinstance(factor, Holds)), None)
        if place is None:
            steps = zip(pairwise(factors), windows, strict=True)
            return self._together(whole, [[self._step(first, second, within)] for (first, second), within in steps])
        joined = factors[place]
        assert isinstance(joined, AllOf | AnyOf)  # steps inside of each other are taken apart
        found = []
        for part in joined.parts:
            inner, between = _steps(part)
            with_part = factors[:place] + inner + factors[place + 1 :]
            found.append(self._sequence(whole, with_part, windows[:place] + between + windows[place:]))
        return self._together(joined, found) if isinstance(joined, AllOf) else self._multiplied(joined, found)

    def _step(self, first: Condition, second: Condition, within: int) -> int:
        assert isinstance(first, Holds)
        assert isinstance(second, Holds)
        return self._bit(Then(first.literal, second.literal, within), first.location)

    def _together(self, whole: Condition, found: list[list[int]]) -> list[int]:
        """All clauses of all."""
        count = sum(each.bit_count() for clauses in found for each in clauses)
        reduced = self._reduced(each for clauses in found for each in clauses)
        if reduced is None:
            raise self._too_large(whole, count)
        return reduced

    def _multiplied(self, whole: Condition, found: list[list[int]]) -> list[int]:
        """Each clause of one with each of the others; how many that makes is known before any is made."""
        result = [0]
        for clauses in found:
            reduced = None
            count = len(result) * len(clauses)
            self.left -= count
            if count <= self.most and self.left >= 0:
                reduced = self._reduced(one | other for one in result for other in clauses)
            if reduced is None:
                raise self._too_large(whole, _product_size(found))
            result = reduced
        return result

    def _reduced(self, clauses: Iterable[int]) -> list[int] | None:
        """The clauses that are no tautologies and not absorbed, in their order; None if they are too many.

        A tautology has a relation and its absence: bits beside each other.
        Shorter ones come first, so what is kept stays. Each kept clause is found under one of its literals: whoever is
        absorbed by it has that one too.
        """
        present = self.present
        different = dict.fromkeys(each for each in clauses if not each & present & (each >> 1))
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

    def _bit(self, literal: Literal, location: Location | None) -> int:
        absent = isinstance(literal, Is) and literal.negated
        base = Is(literal.relation) if isinstance(literal, Is) else literal
        number = self.numbers.setdefault(base, len(self.literals))
        if number == len(self.literals):
            self.literals.append(base)
            self.present |= 1 << 2 * number
        self.places.setdefault(literal, location)
        return 1 << (2 * number + absent)

    def _literal(self, bit: int) -> Literal:
        number, absent = divmod(bit.bit_length() - 1, 2)
        literal = self.literals[number]
        return Is(literal.relation, negated=True) if absent and isinstance(literal, Is) else literal

    def clause(self, bits: int) -> Clause:
        return tuple(self._literal(bit) for bit in _bits(bits))

    def place(self, bits: int) -> Location | None:
        return self.places[self.clause(bits)[0]]

    def without_sequences(self, clauses: list[int]) -> list[int]:
        """A sequence may occur whatever else does: what has one is always possible."""
        sequences = sum(1 << 2 * number for number, each in enumerate(self.literals) if isinstance(each, Then))
        return [each for each in clauses if not each & sequences]

    def _too_large(self, whole: Condition, found: int) -> SituError:
        if self.left < 0:  # many small products came together: what was made of them in all is what is too much
            found = max(found, _AT_ALL * self.most - self.left)
        shown = f"{found:,}" if found < 10**12 else f"more than 10^{len(str(found)) - 1}"
        return SituError(NORMAL_FORM_TOO_LARGE(_place(whole), found=shown, limit=self.limit))


def _steps(condition: Condition) -> tuple[list[Condition], list[int]]:
    """The factors of a sequence, those of sequences inside it among them, and the windows between them."""
    factors: list[Condition] = []
    windows: list[int] = []
    waiting: list[Condition | int] = [condition]
    while waiting:
        match waiting.pop():
            case FollowedBy(first=first, second=second, within=within):
                waiting += [second, within, first]
            case int() as within:
                windows.append(within)
            case AllOf(parts=(only,)) | AnyOf(parts=(only,)):
                waiting.append(only)
            case factor:
                factors.append(factor)
    return factors, windows


def _paths(condition: Condition) -> tuple[int, int]:
    """How many sequences of relations there are if all is distributed, and how long they are together."""
    match condition:
        case Holds():
            return 1, 1
        case AllOf(parts=parts) | AnyOf(parts=parts):
            found = [_paths(part) for part in parts]
            return sum(paths for paths, _ in found), sum(length for _, length in found)
        case FollowedBy():
            paths, length = 1, 0
            for factor in _steps(condition)[0]:
                more, longer = _paths(factor)
                paths, length = paths * more, length * more + longer * paths
            return paths, length
        case _:
            assert_never(condition)


def _product_size(found: list[list[int]]) -> int:
    """The literals of a product before any is left out."""
    clauses, literals = 1, 0
    for each in found:
        literals = literals * len(each) + clauses * sum(clause.bit_count() for clause in each)
        clauses *= len(each)
    return literals


def _place(condition: Condition) -> Location | None:
    """Where a condition stands, or the first part of it that says."""
    while condition.location is None:
        match condition:
            case AllOf(parts=(first, *_)) | AnyOf(parts=(first, *_)) | FollowedBy(first=first):
                condition = first
            case _:
                break
    return condition.location


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
    """Clauses that cannot be met together, none of which can be left out; empty if there are none that we find."""
    if _possible(clauses, [_ASSUMPTIONS]):
        return []
    core = list(clauses)
    for clause in clauses:
        fewer = [each for each in core if each != clause]
        if not _possible(fewer, [_ASSUMPTIONS]):
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
