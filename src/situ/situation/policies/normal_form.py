"""Extended conjunctive normal form: conditions as an AND of clauses, each an OR of relations and of sequences.

It is what people read of a policy, and what tells whether conditions can be met at all. Sequences were taken apart
before, by :mod:`situ.situation.policies.branches`; what remains is the conversion to conjunctive normal form: a choice
of branches is the AND of all clauses with one literal of each branch. A match chooses one branch for each ``or``, so
literals that meet different clauses of one are of the same branch.

While it is made, a clause is a number, with a bit for each literal. A clause absorbs another if its bits are among the
other's: literals are the same only if they are written at the same place.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from situ.catalogue import CONTRADICTORY
from situ.errors import Location, SituError
from situ.situation.policies.branches import AT_ONCE, LEAST_LIMIT, Parts, Places, branches_of, too_large
from situ.situation.policies.policy import Absence, Choice, Clause, Is, Literal, Part, Then
from situ.situation.policies.resolved import Condition
from situ.situation.policies.wording import clause_text

_AT_ALL = 16
"""So many times what may be made at once may be made in all."""

_ASSUMPTIONS = 2_000
"""After so many, conditions count as possible: finding a contradiction can take for ever, and most have none."""


def normal_form(condition: Condition, window: int, limit: int) -> tuple[Parts, tuple[Clause, ...]]:
    """What a match must meet, and the same as clauses, in the order they stand.

    Clauses are without repetition, absorbed ones and tautologies. :class:`~situ.errors.SituError` if there would be
    more than ``limit`` literals in them, or if they contradict each other.
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

    def __init__(self, places: Places, limit: int) -> None:
        self.places, self.limit = places, limit
        self.most = AT_ONCE * max(limit, LEAST_LIMIT)
        self.left = _AT_ALL * self.most
        self.literals = list(places.literals)
        self.opposites = _opposites(self.literals)

    def clauses(self, parts: Parts) -> list[int]:
        return self._together([self._of(part) for part in parts], parts)

    def _of(self, part: Part) -> list[int]:
        match part:
            case Is() | Then():
                return [self._bit(part)]
            case Absence(literals=literals):
                return [sum(map(self._bit, literals))]
            case Choice(branches=branches, absent=absent):
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

    def _bit(self, literal: Literal) -> int:
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
                if isinstance(literal, Then):
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


def _opposites(literals: Iterable[Literal]) -> list[tuple[int, int]]:
    """For each relation that is to hold at one place and not to hold at another: the bits of both."""
    found: dict[str, list[int]] = {}
    for number, literal in enumerate(literals):
        if isinstance(literal, Is):
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
