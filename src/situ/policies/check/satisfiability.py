"""Conditions that can never be met, because of the values or of the times that they ask for.

`is_impossible`, `outside_domain` and `exclude_each_other` look at values of attributes, `dead_conditions` at windows of
steps and at absences. What is found is surely dead; there are dead policies that are not recognised.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import msgspec

from situ.lang.expr.tree import And, Apply, Compare, In, IsNull, Literal, Node, Not, Or, Read, rebuild
from situ.lang.records import replace
from situ.policies.logic_tree import duration_text, literal_text
from situ.policies.model import (
    Absence,
    ConditionLiteral,
    ConditionPart,
    Disjunction,
    RelationLiteral,
    SequenceLiteral,
    is_negative,
    literals_of,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Values: what conditions ask of one attribute excludes each other.

_TESTS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

Path = tuple[str, tuple[str, ...]]
"""A variable, and where an attribute is below it."""

_DISTANCES = ("distance", "geo_distance")
"""Never below zero."""


def is_impossible(node: Node) -> bool:
    """Whether a simplified condition is surely never true; there are impossible ones that are not recognised."""
    match node:
        case Literal(value=value):
            return value is not True
        case Or(args=args):
            return all(is_impossible(arg) for arg in args)
        case And(args=args):
            return any(is_impossible(arg) for arg in args) or _have_nothing_common(args)
        case Compare(right=Literal(value=None)):
            return True
        case Compare(op="<" | "<=" as op, left=Apply(overload=overload), right=Literal(value=most)):
            return overload.name in _DISTANCES and (most < 0 or (most == 0 and op == "<"))
        case _:
            return False


def outside_domain(test: Node) -> tuple[bool, Read, str] | None:
    """Of a simplified comparison that no value of its attribute can decide: what it always is, and why.

    The attribute is the one that is read. Only what holds of every value is known: numbers of so many bits, and that
    nothing is colder than absolute zero.
    """
    match test:
        case Or(args=(Not(arg=IsNull(arg=Read() as read)), Literal(value=None))):
            return True, read, f"it is of type {read.type}"
        case Compare(op=op, left=Read(unit=unit) as read, right=Literal(value=int() | float() as value)) if (
            unit.is_point
        ):
            coldest = -unit.offset / unit.scale
            shown = f"nothing is colder than {float(coldest):g} {unit}"
            if value < coldest or (value == coldest and op in ("<", ">=")):
                return _TESTS[op](coldest + 1, value), read, shown
    return None


def exclude_each_other(conditions: Iterable[Node]) -> bool:
    """Whether simplified conditions over the same variables are surely never true together."""
    asked = [part for each in conditions for part in (each.args if isinstance(each, And) else (each,))]
    return len(asked) > 1 and is_impossible(And(tuple(asked)))


def listed_values(condition: Node) -> dict[Path, tuple[Any, ...]]:
    """For attributes of which a simplified condition lists values: one of these it is, if the condition is true."""
    found: dict[Path, tuple[Any, ...]] = {}
    for part in condition.args if isinstance(condition, And) else (condition,):
        if (read := _attribute(part)) is not None and (values := _listed(part)) is not None:
            found.setdefault((read.variable, read.path), values)
    return found


def renamed(node: Node, variable: str, name: str) -> Node:
    """The same condition, over a variable of another name."""
    if isinstance(node, Read):
        return replace(node, variable=name) if node.variable == variable else node
    return rebuild(node, lambda part: renamed(part, variable, name))


def _have_nothing_common(parts: Iterable[Node]) -> bool:
    """Bounds and lists of one attribute that have no value in common."""
    asked: dict[Path, list[Node]] = {}
    for part in parts:
        if (read := _attribute(part)) is not None:
            asked.setdefault((read.variable, read.path), []).append(part)
    return any(len(together) > 1 and not _have_common(together) for together in asked.values())


def _attribute(part: Node) -> Read | None:
    match part:
        case Compare(left=Read() as read, right=Literal()) | In(item=Read() as read):
            return read
        case _:
            return None


def _have_common(conditions: list[Node]) -> bool:
    """Where values are listed, one of them must meet the rest; else no lower bound may be above an upper one."""
    listed = next((values for each in conditions if (values := _listed(each)) is not None), None)
    if listed is not None:
        return any(all(_meets(each, value) for each in conditions) for value in listed)
    compared = [each for each in conditions if isinstance(each, Compare)]
    lows = [each for each in compared if each.op in (">", ">=")]
    highs = [each for each in compared if each.op in ("<", "<=")]
    return not any(_apart(low, high) for low in lows for high in highs)


def _listed(condition: Node) -> tuple[Any, ...] | None:
    match condition:
        case In(values=values):
            return values
        case Compare(op="=", right=Literal(value=value)):
            return (value,)
        case _:
            return None


def _meets(condition: Node, value: Any) -> bool:
    match condition:
        case In(values=values):
            return value in values
        case Compare(op=op, right=Literal(value=other)):
            return _TESTS[op](value, other)
        case _:
            return True


def _apart(low: Compare, high: Compare) -> bool:
    match low.right, high.right:
        case Literal(value=bottom), Literal(value=top):
            return bool(bottom > top or (bottom == top and (low.op, high.op) != (">=", "<=")))
        case _:
            return False


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Times: steps whose windows exclude each other, and absences of what must be there.
#
# The times of the steps of a match are bound to each other: a step follows another by at most its window, all literals
# lie within the window of the policy, and an absence with a length takes that long. Each bound says that one time is at
# most so much later than another. They can be met together unless a circle of them comes to less than nothing; and the
# shortest way from one time to another says by how much that one can be later at most.

_MOST_TIMES = 60
"""Of more it takes too long, and nobody writes so many by hand."""

_FAR = 1 << 62


class DeadCondition(msgspec.Struct, frozen=True):
    """What can never be met, by its first literal, and why."""

    literal: ConditionLiteral
    reason: str


def dead_conditions(conditions: Iterable[ConditionPart], window: int) -> Iterator[DeadCondition]:
    """All that can never be met: the conditions as a whole, else single branches."""
    yield from _dead(tuple(conditions), (), window)


def _dead(parts: tuple[ConditionPart, ...], beside: tuple[ConditionPart, ...], window: int) -> list[DeadCondition]:
    """Of parts that must be met beside others."""
    certain = (*beside, *(part for part in parts if not isinstance(part, Disjunction)))
    dead = _Times(certain, window).dead()
    if dead is not None:
        return [DeadCondition(next(literals_of(parts)), dead.reason) if beside else dead]
    found: list[DeadCondition] = []
    for choice in (part for part in parts if isinstance(part, Disjunction)):
        for branch in choice.branches:
            found += _dead(branch, certain, window)
    return found


class _Times:
    """The times of what is picked for some parts, all of which are chosen."""

    def __init__(self, parts: Iterable[ConditionPart], window: int) -> None:
        self.window = window
        self.absences = [part for part in parts if isinstance(part, Absence)]
        literals = [part for part in parts if isinstance(part, RelationLiteral | SequenceLiteral)]
        self.sequences = [each for each in literals if isinstance(each, SequenceLiteral)]
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

    def _end(self, literal: ConditionLiteral, bounds: list[tuple[int, int, int]]) -> int:
        """When the literal occurs, as a number; a bound (a, b, c) says that b is at most c later than a."""
        if isinstance(literal, RelationLiteral):
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

    def dead(self) -> DeadCondition | None:
        if self.most is None or not self.numbers:
            return None
        for then in self.sequences:
            if not (then.first.negated or then.second.negated) and then.gaps >= then.within:
                absent = f"the {duration_text(then.gaps)} in which something is absent"
                comes = f"`{literal_text(then.second)}` comes after {absent}"
                return DeadCondition(then, f"{comes}, and has to come within {duration_text(then.within)}")
        if any(self.most[each][each] < 0 for each in range(len(self.numbers))):
            then = max(self.sequences, key=lambda each: each.span)
            wide = f"its steps lie further apart than the {duration_text(self.window)} of the window"
            return DeadCondition(then, f"{wide} in which all of it has to happen")
        return self._there()

    def _there(self) -> DeadCondition | None:
        """An absence of something that is there in every match."""
        for absence in self.absences:
            if all(self._surely_against(literal) for literal in absence.literals):
                texts = " and ".join(
                    f"`{each.relation.text}`" for each in absence.literals if isinstance(each, RelationLiteral)
                )
                return DeadCondition(absence.literals[0], f"{texts} has to be absent, and is among what has to happen")
        for then in self.sequences:
            for part, start, end in self._gaps(then):
                if any(text == part.relation.text and self._inside(when, start, end) for text, when in self.present):
                    return DeadCondition(then, f"`{part.relation.text}` has to be absent where it has to happen")
        return None

    def _surely_against(self, literal: ConditionLiteral) -> bool:
        """Whether something that happens refutes it, whichever literal is the latest."""
        if not isinstance(literal, RelationLiteral):
            return False
        there = [when for text, when in self.present if text == literal.relation.text]
        return any(
            all(self._inside(when, (end, -self.window), (end, self.window)) for end in self.ends) for when in there
        )

    def _inside(self, when: int, start: tuple[int, int], end: tuple[int, int]) -> bool:
        """Whether a time surely lies between two others, each so much later than one that is known, both included."""
        assert self.most is not None
        return self.most[when][start[0]] <= -start[1] and self.most[end[0]][when] <= end[1]

    def _gaps(self, then: SequenceLiteral) -> Iterator[tuple[RelationLiteral, tuple[int, int], tuple[int, int]]]:
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
