"""Conditions that no times can meet: steps whose windows exclude each other, and absences of what must be there.

The times of the steps of a match are bound to each other: a step follows another by at most its window, all literals
lie within the window of the policy, and an absence with a length takes that long. Each bound says that one time is at
most so much later than another. They can be met together unless a circle of them comes to less than nothing; and the
shortest way from one time to another says by how much that one can be later at most.

What is found is surely dead; there are dead policies that are not recognised.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from situ.situation.policies.policy import Absence, Choice, Is, Literal, Part, Then, is_negative, literals_of
from situ.situation.policies.wording import duration_text, literal_text

_MOST_TIMES = 60
"""Of more it takes too long, and nobody writes so many by hand."""

_FAR = 1 << 62


@dataclass(frozen=True, slots=True)
class Dead:
    """What can never be met, by its first literal, and why."""

    literal: Literal
    reason: str


def dead_conditions(conditions: Iterable[Part], window: int) -> Iterator[Dead]:
    """All that can never be met: the conditions as a whole, else single branches."""
    yield from _dead(tuple(conditions), (), window)


def _dead(parts: tuple[Part, ...], beside: tuple[Part, ...], window: int) -> list[Dead]:
    """Of parts that must be met beside others."""
    certain = (*beside, *(part for part in parts if not isinstance(part, Choice)))
    dead = _Times(certain, window).dead()
    if dead is not None:
        return [Dead(next(literals_of(parts)), dead.reason) if beside else dead]
    found: list[Dead] = []
    for choice in (part for part in parts if isinstance(part, Choice)):
        for branch in choice.branches:
            found += _dead(branch, certain, window)
    return found


class _Times:
    """The times of what is picked for some parts, all of which are chosen."""

    def __init__(self, parts: Iterable[Part], window: int) -> None:
        self.window = window
        self.absences = [part for part in parts if isinstance(part, Absence)]
        literals = [part for part in parts if isinstance(part, Is | Then)]
        self.sequences = [each for each in literals if isinstance(each, Then)]
        self.numbers: dict[object, int] = {}
        self.present: list[tuple[str, int]] = []
        """What is there, by its text, and when."""
        bounds: list[tuple[int, int, int]] = []
        self.ends = [self._end(literal, bounds) for literal in literals]
        """When literals occur; the latest of them is the activation."""
        bounds += [(one, other, window) for one in self.ends for other in self.ends if one != other]
        self.most = self._closed(bounds) if len(self.numbers) <= _MOST_TIMES else None

    def _number(self, of: object) -> int:
        return self.numbers.setdefault(of, len(self.numbers))

    def _end(self, literal: Literal, bounds: list[tuple[int, int, int]]) -> int:
        """When the literal occurs, as a number; a bound (a, b, c) says that b is at most c later than a."""
        if isinstance(literal, Is):
            end = self._number(literal)
            self.present.append((literal.relation.text, end))
            return end
        steps = {part: self._number(part) for part in (literal.first, literal.second) if not part.negated}
        self.present += [(part.relation.text, number) for part, number in steps.items()]
        if literal.second.negated:
            end = self._number(literal)
            bounds += [(steps[literal.first], end, literal.span), (end, steps[literal.first], -literal.span)]
            return end
        end = steps[literal.second]
        if not literal.first.negated:
            bounds += [(steps[literal.first], end, literal.within), (end, steps[literal.first], -literal.gaps - 1)]
        return end

    def _closed(self, bounds: Iterable[tuple[int, int, int]]) -> list[list[int]]:
        """By how much each time can be later than each other."""
        count = len(self.numbers)
        most = [[0 if one == other else _FAR for other in range(count)] for one in range(count)]
        for one, other, by in bounds:
            most[one][other] = min(most[one][other], by)
        for middle in range(count):
            for one in range(count):
                if most[one][middle] < _FAR:
                    for other, further in enumerate(most[middle]):
                        if further < _FAR:
                            most[one][other] = min(most[one][other], most[one][middle] + further)
        return most

    # ── what is wrong ──

    def dead(self) -> Dead | None:
        if self.most is None or not self.numbers:
            return None
        for then in self.sequences:
            if not (then.first.negated or then.second.negated) and then.gaps >= then.within:
                absent = f"the {duration_text(then.gaps)} in which something is absent"
                comes = f"`{literal_text(then.second)}` comes after {absent}"
                return Dead(then, f"{comes}, and has to come within {duration_text(then.within)}")
        if any(self.most[each][each] < 0 for each in range(len(self.numbers))):
            then = max(self.sequences, key=lambda each: each.span)
            wide = f"its steps lie further apart than the {duration_text(self.window)} of the window"
            return Dead(then, f"{wide} in which all of it has to happen")
        return self._there()

    def _there(self) -> Dead | None:
        """An absence of something that is there in every match."""
        for absence in self.absences:
            if all(self._surely_against(literal) for literal in absence.literals):
                texts = " and ".join(f"`{each.relation.text}`" for each in absence.literals if isinstance(each, Is))
                return Dead(absence.literals[0], f"{texts} has to be absent, and is among what has to happen")
        for then in self.sequences:
            for part, start, end in self._gaps(then):
                if any(text == part.relation.text and self._inside(when, start, end) for text, when in self.present):
                    return Dead(then, f"`{part.relation.text}` has to be absent where it has to happen")
        return None

    def _surely_against(self, literal: Literal) -> bool:
        """Whether something that happens refutes it, whichever literal is the latest."""
        if not isinstance(literal, Is):
            return False
        there = [when for text, when in self.present if text == literal.relation.text]
        return any(
            all(self._inside(when, (end, -self.window), (end, self.window)) for end in self.ends) for when in there
        )

    def _inside(self, when: int, start: tuple[int, int], end: tuple[int, int]) -> bool:
        """Whether a time surely lies between two others, each so much later than one that is known, both included."""
        assert self.most is not None
        return self.most[when][start[0]] <= -start[1] and self.most[end[0]][when] <= end[1]

    def _gaps(self, then: Then) -> Iterator[tuple[Is, tuple[int, int], tuple[int, int]]]:
        """What is to be absent in a sequence, from when to when."""
        if is_negative(then):
            return
        if then.first.negated:
            last, at = self.numbers[then.second], 0
            lengths = [(then.first, then.within), *((gap.absent, gap.within) for gap in then.between)]
            for part, within in reversed(lengths):
                yield part, (last, at - within), (last, at - 1)
                at -= within
            return
        first, at = self.numbers[then.first], 0
        for gap in then.between:
            until = (first, at + gap.within) if gap.within else (self.numbers[then.second], -1)
            yield gap.absent, (first, at + 1), until
            at += gap.within
        if then.second.negated:
            yield then.second, (first, at + 1), (first, at + then.within)
