"""Counterexamples: what refutes something that is to be absent beside a match.

There is one if something occurred against every one of the literals that are judged together, all of it agreeing. The
search starts from the few matches that are due, and goes from relation to relation by the identities it knows. Most
counterexamples are close in time to what they refute, and few pairs lie there; so it looks there first, and tries a few
identities before it tries all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from situ.policies.kernel.relations import (
    ConstraintOperator,
    CorrelationOperator,
    OccurrenceQuery,
    QueryOperator,
    RelationOperator,
    StepContext,
)
from situ.policies.kernel.table import Ints, SortedTable, each_once
from situ.policies.model import Absence, ConditionLiteral, RelationLiteral

FEW = 16
"""For so few matches it looks everywhere at once."""
Stages = Sequence[tuple[int, int]]
"""What part of the window is looked at, and how many identities are tried for a row at most, 0 for all."""
EVERYWHERE: Stages = ((1, 0),)


@dataclass(frozen=True, slots=True)
class CounterexampleRange:
    """What would be against a literal: an occurrence of a relation from so much before an activation to after it."""

    relation: RelationOperator
    before: int
    after: int


class AbsenceOperator:
    """What is to be absent at work: negative literals judged together."""

    def __init__(self, absence: Absence, relations: Mapping[str, RelationOperator], window: int) -> None:
        choices = [_against(literal, relations, window) for literal in absence.literals]
        self._examples = list(product(*choices))
        self._window = window

    def refuted(self, step: StepContext, table: SortedTable, bound: frozenset[str]) -> Ints:
        """The places of matches with these aliases bound for which there is a counterexample."""
        left = np.arange(len(table))
        found: list[Ints] = []
        for example in self._examples:
            for part, most in _stages(step, example) if len(table) > FEW else EVERYWHERE:
                if not len(left):
                    break
                rows = self._search(step, table.take(left), bound, example, part, most)
                found.append(left[rows])
                left = np.delete(left, rows)
        return np.concatenate(found) if found else left[:0]

    def _search(
        self,
        step: StepContext,
        table: SortedTable,
        bound: frozenset[str],
        example: Sequence[CounterexampleRange],
        part: int,
        most: int,
    ) -> Ints:
        """The rows for which all of it was found to have occurred; in a part of the window, entirely in that."""
        back = self._window if part == 1 else 0
        owners = np.arange(len(table))
        codes = {name: table[f"@{name}"] for name in bound}
        rest = list(example)
        while rest and len(owners):
            step_on = min(rest, key=lambda each: _effort(each.relation, codes, rest))
            rest.remove(step_on)
            wanted = frozenset(name for each in rest for name in each.relation.aliases)
            shared = {name: codes[name] for name in step_on.relation.aliases if name in codes}
            first = table.time[owners] - step_on.before // part
            last = table.time[owners] + step_on.after // part
            rows, new = step_on.relation.extend(step, OccurrenceQuery(shared, first, last, wanted, back, most))
            owners = owners[rows]
            codes = {name: each[rows] for name, each in codes.items()} | new
        return each_once(owners, len(table))


def _stages(step: StepContext, example: Sequence[CounterexampleRange]) -> Stages:
    """At first so close by that an identity was seen there about once, at last everywhere."""
    densities = [each.relation.density(step) for each in example if isinstance(each.relation, CorrelationOperator)]
    if not densities:
        return EVERYWHERE
    part = min(max(2, round(2 * max(densities))), 256)
    return ((part, 2), (part, 0), *([(part // 8, 0)] if part >= 16 else []), *EVERYWHERE)


def _effort(
    relation: RelationOperator, bound: Mapping[str, Ints], rest: Sequence[CounterexampleRange]
) -> tuple[bool, bool, int]:
    """First what only has to be looked up, then what leads on, then what has to be tried.

    Last of all, where only the identity of somebody is asked for, what something else will say who it is: it may be
    somebody that no table knows.
    """
    unbound = [name for name in relation.aliases if name not in bound]
    apart = len(unbound) == len(relation.aliases)
    kind = 3 if isinstance(relation, QueryOperator) else 4 if isinstance(relation, ConstraintOperator) else 5
    named = relation.named if isinstance(relation, ConstraintOperator) else frozenset()
    seen = {
        name for each in rest if not isinstance(each.relation, ConstraintOperator) for name in each.relation.aliases
    }
    return not named.isdisjoint(seen.intersection(unbound)), apart, kind if unbound else kind - 3


def _against(
    literal: ConditionLiteral, relations: Mapping[str, RelationOperator], window: int
) -> list[CounterexampleRange]:
    if isinstance(literal, RelationLiteral):
        return [CounterexampleRange(relations[literal.relation.text], window, window)]
    return [
        CounterexampleRange(relations[part.relation.text], 0, literal.within)
        for part in (literal.first, literal.second)
    ]
