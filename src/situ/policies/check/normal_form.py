"""Conditions as what a match must meet: literals, absences that are judged together, and choices between branches.

An ``or`` becomes one :class:`Choice`, made once in a match, wherever it is written. Sequences (``→``, followed-by) are
taken apart into literals of two sides, so an ``or`` inside of one is taken out of it first, and an ``and`` after that;
steps keep the place where they are written, so what stands in several literals afterwards is one occurrence there.

    ========================  ==============================
    ``A → (B and C)``         ``A→B and A→C``
    ``A → (B or C)``          ``A→B or A→C``
    ``(A and B) → C``         ``A→C and B→C``
    ``(A or B) → C``          ``A→C or B→C``
    ``A → B → C``             ``A→B and B→C``
    ``A → (B or C) → D``      ``(A→B and B→D) or (A→C and C→D)``
    ``A → not B → C``         one literal: no B between A and C
    ========================  ==============================
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise, product
from typing import assert_never

from situ.catalogue import NORMAL_FORM_TOO_LARGE
from situ.errors import Location, SituError
from situ.situation.policies.policy import Absence, Choice, Gap, Is, Literal, Part, Then, is_negative
from situ.situation.policies.resolved import AllOf, AnyOf, Condition, FollowedBy, Holds

Parts = tuple[Part, ...]
"""All of these must be met."""

LEAST_LIMIT = 4_096
"""A smaller limit is one for what remains, not for the work."""

AT_ONCE = 4
"""So many literals for each that is allowed may be made before they are reduced: most may be absorbed."""


@dataclass(slots=True)
class Places:
    """Where what became literals and choices stands in the policy, and the literals in their order."""

    of: dict[Part, Location | None] = field(default_factory=dict)
    literals: dict[Literal, int] = field(default_factory=dict)


def branches_of(condition: Condition, window: int, limit: int) -> tuple[Parts, Places]:
    """What a match must meet. ``window`` is that of the policy, for each ``followed-by`` that says none.

    :class:`~situ.errors.SituError` if sequences come to too many literals.
    """
    distribution = _Distribution(window, limit)
    return distribution.parts(condition), distribution.places


class _Distribution:
    def __init__(self, window: int, limit: int) -> None:
        self.window, self.limit = window, limit
        self.left = self.most = AT_ONCE * max(limit, LEAST_LIMIT)
        self.places = Places()

    def parts(self, condition: Condition) -> Parts:
        match condition:
            case Holds(literal=literal, location=location):
                return (self._met(literal, location),)
            case AllOf(parts=parts):
                return _together(self.parts(part) for part in parts)
            case AnyOf(parts=parts):
                return self._any([self.parts(part) for part in parts], place_of(condition))
            case FollowedBy():
                paths, length = _paths(condition)
                if paths > self.most:
                    raise too_large(place_of(condition), length - paths, self.limit)
                return self._sequence(condition, *_steps(condition))
            case _:
                assert_never(condition)

    def _met(self, literal: Literal, location: Location | None) -> Part:
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
        choice = Choice(tuple(happening), joint or ())
        self.places.of.setdefault(choice, location)
        return (choice,)

    @staticmethod
    def _sorted(branches: Iterable[Parts]) -> tuple[list[Parts], list[tuple[Absence, ...]]]:
        """Branches with something that happens, each once, and those without; an ``or`` in an ``or`` is one."""
        happening: dict[Parts, None] = {}
        absent: list[tuple[Absence, ...]] = []
        for branch in branches:
            match branch:
                case (Choice(branches=inner, absent=negative),):
                    happening |= dict.fromkeys(inner)
                    absent += [negative] if negative else []
                case _:
                    negative = tuple(part for part in branch if isinstance(part, Absence))
                    if branch and len(negative) == len(branch):
                        absent.append(negative)
                    else:
                        happening.setdefault(branch)
        return list(happening), absent

    def _absent(self, branches: list[tuple[Absence, ...]], beside: set[Part]) -> tuple[Absence, ...]:
        """Branches of absences as one: any of them must hold, whatever is chosen for aliases that nothing binds.

        What is absent in one branch and happens in another, ``r or not r``, is so in any case.
        """
        happens = {part.relation.text for part in beside if isinstance(part, Is)}
        found: dict[frozenset[Literal], Absence] = {}
        size = 1
        for branch in branches:
            size *= len(branch)
        if size > self.most:
            raise too_large(self.places.of[branches[0][0].literals[0]], size * len(branches), self.limit)
        for chosen in product(*branches):
            literals = tuple(dict.fromkeys(literal for each in chosen for literal in each.literals))
            if not any(isinstance(each, Is) and each.relation.text in happens for each in literals):
                found.setdefault(frozenset(literals), Absence(literals))
        kept = [each for each in found if not any(other < each for other in found)]
        return tuple(found[each] for each in kept)

    # ── followed-by ──

    def _sequence(self, whole: Condition, factors: list[Condition], windows: list[int | None]) -> Parts:
        """A sequence whose factors are joined by ``or`` is a choice of sequences; then by ``and``, all of them."""
        place = self._next(factors)
        if place is None:
            return self._chain(whole, [each for each in factors if isinstance(each, Holds)], windows)
        joined = factors[place]
        alternatives: tuple[Condition, ...] | None = joined.parts if isinstance(joined, AnyOf) else None
        if alternatives is None and any(_has_or(each) for each in factors[:place] + factors[place + 1 :]):
            alternatives = _without_first_or(joined)
        found = (self._with(whole, factors, windows, place, part) for part in alternatives or _parts(joined))
        return _together(found) if alternatives is None else self._any(found, place_of(joined))

    @staticmethod
    def _next(factors: list[Condition]) -> int | None:
        """Which factor is taken apart next: an ``or`` before an ``and``, and of these one with an ``or`` inside.

        Taken apart, an ``and`` repeats the other factors: an ``or`` among them would become several choices.
        """
        joined = [place for place, factor in enumerate(factors) if not isinstance(factor, Holds)]
        order = sorted(joined, key=lambda place: (not isinstance(factors[place], AnyOf), not _has_or(factors[place])))
        return order[0] if order else None

    def _with(
        self, whole: Condition, factors: list[Condition], windows: list[int | None], place: int, part: Condition
    ) -> Parts:
        inner, between = _steps(part)
        with_part = factors[:place] + inner + factors[place + 1 :]
        return self._sequence(whole, with_part, windows[:place] + between + windows[place:])

    def _chain(self, whole: Condition, steps: list[Holds], windows: list[int | None]) -> Parts:
        self.left -= len(steps)
        if self.left < 0:
            raise too_large(place_of(whole), self.most - self.left, self.limit)
        literals = _literals([each.literal for each in steps], windows, self.window)
        places = {each.literal: each.location for each in steps}
        return _together((self._met(each, places[each.first]),) for each in literals)


def _literals(steps: list[Is], windows: list[int | None], window: int) -> Iterator[Then]:
    """Steps that follow each other as literals of two sides: what is to be absent belongs to what is beside it."""
    said = [window if each is None else each for each in windows]
    present = [place for place, step in enumerate(steps) if not step.negated]
    if not present:
        for (before, after), within in zip(pairwise(steps), said, strict=True):
            yield Then(before, after, within)
        return
    first, last = present[0], present[-1]
    if first > 0:
        gaps = tuple(Gap(steps[place], said[place]) for place in range(1, first))
        yield Then(steps[0], steps[first], said[0], gaps)
    for one, other in pairwise(present):
        gaps = tuple(Gap(steps[place], windows[place - 1] or 0) for place in range(one + 1, other))
        yield Then(steps[one], steps[other], said[other - 1], gaps)
    if last < len(steps) - 1:
        gaps = tuple(Gap(steps[place], said[place - 1]) for place in range(last + 1, len(steps) - 1))
        yield Then(steps[last], steps[-1], said[-1], gaps)


def _together(found: Iterable[Parts]) -> Parts:
    return tuple(dict.fromkeys(part for parts in found for part in parts))


def _steps(condition: Condition) -> tuple[list[Condition], list[int | None]]:
    """The factors of a sequence, those of sequences inside it among them, and the windows between them."""
    factors: list[Condition] = []
    windows: list[int | None] = []
    waiting: list[Condition | tuple[int | None]] = [condition]
    while waiting:
        match waiting.pop():
            case FollowedBy(first=first, second=second, within=within):
                waiting += [second, (within,), first]
            case (within,):
                windows.append(within)
            case AllOf(parts=(only,)) | AnyOf(parts=(only,)):
                waiting.append(only)
            case factor:
                factors.append(factor)
    return factors, windows


def _parts(condition: Condition) -> tuple[Condition, ...]:
    assert isinstance(condition, AllOf)  # steps inside of each other are taken apart
    return condition.parts


def _has_or(condition: Condition) -> bool:
    match condition:
        case Holds():
            return False
        case AnyOf(parts=parts):
            return len(parts) > 1 or any(map(_has_or, parts))
        case AllOf(parts=parts):
            return any(map(_has_or, parts))
        case FollowedBy():
            return any(map(_has_or, _steps(condition)[0]))
        case _:
            assert_never(condition)


def _without_first_or(condition: Condition) -> tuple[Condition, ...] | None:
    """The condition once for each branch of the first ``or`` in it; None if there is none."""
    match condition:
        case Holds():
            return None
        case AnyOf(parts=parts):
            return parts
        case AllOf(parts=parts):
            for place, part in enumerate(parts):
                if (found := _without_first_or(part)) is not None:
                    return tuple(
                        replace(condition, parts=(*parts[:place], each, *parts[place + 1 :])) for each in found
                    )
            return None
        case FollowedBy(first=first, second=second):
            if (found := _without_first_or(first)) is not None:
                return tuple(replace(condition, first=each) for each in found)
            if (found := _without_first_or(second)) is not None:
                return tuple(replace(condition, second=each) for each in found)
            return None
        case _:
            assert_never(condition)


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


def place_of(condition: Condition) -> Location | None:
    """Where a condition stands, or the first part of it that says."""
    while condition.location is None:
        match condition:
            case AllOf(parts=(first, *_)) | AnyOf(parts=(first, *_)) | FollowedBy(first=first):
                condition = first
            case _:
                break
    return condition.location


def too_large(place: Location | None, found: int, limit: int) -> SituError:
    shown = f"{found:,}" if found < 10**12 else f"more than 10^{len(str(found)) - 1}"
    return SituError(NORMAL_FORM_TOO_LARGE(place, found=shown, limit=limit))
