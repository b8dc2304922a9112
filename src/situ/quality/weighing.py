"""Weighing: what a choice for a part is worth by the rule of a strategy, in whole numbers.

All utilities and costs of a part are multiples of one unit, so sums and differences are exact and comparing them needs
no tolerance. More is better, in everything that a rule says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from fractions import Fraction
from typing import Any

from situ.quality.declared import Strategy
from situ.quality.parts import Part, Stake

Result = tuple[int, bool]
"""The highest utility among satisfied alternatives of a subscription, and whether there is any."""
Worth = Any
"""Something that compares with others of its kind."""
Rule = Callable[["Weighing", Sequence[Result], int], Worth]
"""What the results of all subscriptions and a cost are worth. Never less for better results or a lower cost."""


class Weighing:
    """One part, one rule."""

    def __init__(self, part: Part, rule: Rule, strategy: Strategy, costs: Iterable[Fraction]) -> None:
        self.part = part
        self.rule = rule
        self.weight = Fraction(strategy.weight)
        utilities = [Fraction(utility) for each in part.stakes for _, utility in each.alternatives]
        budget = None if strategy.budget is None else Fraction(strategy.budget)
        numbers = (*utilities, *costs, *(() if budget is None else (budget,)))
        self.unit = math.lcm(*(each.denominator for each in numbers)) if numbers else 1
        self.budget = None if budget is None else self.scaled(budget)
        self.stakes = [
            [(1 << bit, self.scaled(Fraction(utility))) for bit, utility in each.alternatives] for each in part.stakes
        ]
        self.most = [alternatives[0][1] for alternatives in self.stakes]
        self.now = self.results(part.met_by([each.now for each in part.choices]))
        self.protect = strategy.protect

    def within(self, part: Part, stakes: Sequence[int]) -> Weighing:
        """The same for some of the subscriptions, by their places, which are all that are in a smaller part."""
        found = copy(self)
        found.part = part
        found.stakes = [self.stakes[at] for at in stakes]
        found.most = [self.most[at] for at in stakes]
        found.now = [self.now[at] for at in stakes]
        return found

    def scaled(self, number: Fraction) -> int:
        return int(number * self.unit)

    def results(self, met: int) -> list[Result]:
        """What every subscription gets if this is met."""
        return [
            next(((utility, True) for bit, utility in alternatives if met & bit), (0, False))
            for alternatives in self.stakes
        ]

    def harms(self, results: Sequence[Result]) -> bool:
        """Whether somebody gets less than now."""
        return any(after < before for after, before in zip(results, self.now, strict=True))

    def permits(self, results: Sequence[Result], cost: int) -> bool:
        """Whether that is within the budget and harms nobody, as far as that is asked for."""
        return (self.budget is None or cost <= self.budget) and not (self.protect and self.harms(results))

    def worth(self, results: Sequence[Result], cost: int) -> Worth:
        return self.rule(self, results, cost)


def cheapest(weighing: Weighing, results: Sequence[Result], cost: int) -> Worth:
    """As many subscriptions as possible; then as cheaply as possible; then as useful as possible."""
    return (sum(served for _, served in results), -cost, sum(value for value, _ in results))


def utility(weighing: Weighing, results: Sequence[Result], cost: int) -> Worth:
    """As useful as possible, less what it costs; then as cheaply as possible."""
    useful = sum(value for value, _ in results)
    return (useful * weighing.weight.denominator - cost * weighing.weight.numerator, -cost)


def fairness(weighing: Weighing, results: Sequence[Result], cost: int) -> Worth:
    """Whoever gets the least of what it could wish for, gets as much as possible, and so on; then as cheaply."""
    shares = (
        value / most if most else float(served) for (value, served), most in zip(results, weighing.most, strict=True)
    )
    return (sorted(shares), -cost)


def is_simple(stake: Stake) -> bool:
    """Whether a subscription has one expectation."""
    return len(stake.alternatives) == 1
