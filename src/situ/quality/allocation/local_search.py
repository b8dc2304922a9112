"""A good choice for a component that is too large for an exact solution: greedy, then local search.

`greedy` is the way in: it takes options by what they bring for their cost, and hands the choice to `local_search`,
which improves it profile by profile until nothing changes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop, heappush

from situ.lang.records import replace
from situ.quality.allocation.exact import Chosen
from situ.quality.allocation.search_space import (
    Objective,
    ProblemComponent,
    ProfileOption,
    ProfileOptions,
    combine_levels,
    rule_cheapest,
    rule_utility,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Local search: every profile gets what is best for the whole as the others are. What a profile has matters only to the
# subscriptions that it could serve, and what they get depends only on those who could serve them, too. So no more than
# that is weighed. That is the same as to weigh the whole: all rules compare two choices alike, whatever it is that both
# give to others.


def local_search(
    weighing: Objective, options: Sequence[Sequence[ProfileOption]], start: Chosen, *, rounds: int
) -> Chosen:
    """A choice that is no worse than one that harms nobody, among the options of each profile."""
    nearby = _all_nearby(weighing) if rounds else ()
    chosen = list(start)
    cost = sum(weighing.scaled(each.cost) for each in chosen)
    for _ in range(rounds):
        before = tuple(chosen)
        for near, some in zip(nearby, options, strict=True):
            others = cost - weighing.scaled(chosen[near.place].cost)
            chosen[near.place] = near.best(chosen, some, others)
            cost = others + weighing.scaled(chosen[near.place].cost)
        if tuple(chosen) == before:
            break
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Neighbourhood:
    """A profile with all that it matters to, and all that matters to these."""

    place: int
    weighing: Objective
    """Of those alone."""
    members: tuple[int, ...]
    """The places of the profiles in it."""

    def best(self, chosen: Sequence[ProfileOption], options: Sequence[ProfileOption], others: int) -> ProfileOption:
        """The option of the profile that is worth the most; unless another is worth more, it keeps its.

        ``others`` is what all other profiles cost.
        """
        weighing = self.weighing
        masks = [chosen[place].met for place in self.members]
        at = self.members.index(self.place)
        best, most = chosen[self.place], None
        for option in (best, *options):
            masks[at] = option.met
            results = weighing.results(weighing.part.met_by(masks))
            cost = others + weighing.scaled(option.cost)
            if not weighing.permits(results, cost):
                continue
            worth = weighing.worth(results, cost)
            if most is None or worth > most:
                best, most = option, worth
        return best


def _all_nearby(weighing: Objective) -> list[_Neighbourhood]:
    part = weighing.part
    asked = [sum(1 << bit for bit, _ in each.alternatives) for each in part.stakes]
    able = [each.able for each in part.choices]
    found = []
    for place, mine in enumerate(able):
        stakes = [at for at, mask in enumerate(asked) if mask & mine]
        wanted = 0
        for at in stakes:
            wanted |= asked[at]
        members = tuple(at for at, mask in enumerate(able) if mask & wanted or at == place)
        near = replace(
            part,
            choices=tuple(part.choices[at] for at in members),
            stakes=tuple(part.stakes[at] for at in stakes),
            always=part.always & wanted,
            several={bit: least for bit, least in part.several.items() if wanted >> bit & 1},
        )
        found.append(_Neighbourhood(place, weighing.within(near, stakes), members))
    return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Greedy. Without modes: the option that brings the most for its cost, again and again as long as the budget allows it,
# against the best single option; options of one profile are joined, property by property. What a set of options brings
# is monotone and submodular, joining costs no more than the sum, so that is at least (1 − 1/e)/2 of what the best plan
# within the budget brings, as long as no cost falls and all options were there to be taken.
#
# With modes a profile has exactly one option, and all profiles get theirs one after the other, by what it brings: at
# least half of the best, if there is neither a budget nor anybody to be protected.
#
# Local search comes after that: never worse, and all there is for rules that are no sums.

MOST_OPTIONS = 4096
"""Of one profile; of more, only those for single expectations are considered."""
BOUND_OF_SUMS = (1 - 1 / math.e) / 2
BOUND_OF_MODES = 0.5
_ROUNDS = 20
_FREE, _WORTH_IT, _NOT_WORTH_IT = range(3)

_Move = tuple[int, ProfileOption, dict[int, int]]
"""The place of a profile, one of its options, and what that brings to which subscription."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeuristicSolution:
    """A choice, and which part of the best one it is worth at least; None: nothing is known."""

    chosen: Chosen
    bound: float | None


def considered_options(
    choices: ProfileOptions, options: tuple[ProfileOption, ...] | None
) -> tuple[tuple[ProfileOption, ...], bool]:
    """The options of a profile that are considered, and whether these are all; ``options`` are all, if known."""
    if options is not None and len(options) <= MOST_OPTIONS:
        return options, True
    return choices.single_options(), False


def greedy(weighing: Objective, options: Sequence[Sequence[ProfileOption]], *, complete: bool) -> HeuristicSolution:
    """A choice among the options; ``complete``: there are no others."""
    part = weighing.part
    staying = tuple(each.staying() for each in part.choices)
    gains = OptionGains.of(weighing)
    start, bound = staying, None
    if gains is not None and not any(each.profile.modes for each in part.choices):
        start, bound = by_ratio(weighing, gains, options), BOUND_OF_SUMS
        complete = complete and not _falls(part)
    elif gains is not None and weighing.budget is None and not weighing.protect:
        start, bound = by_gain(gains, options), BOUND_OF_MODES
    if start is not staying and not _is_permitted(weighing, start):
        start, bound = staying, None
    certain = complete and not part.several and gains is not None and gains.weight == 0
    return HeuristicSolution(
        chosen=local_search(weighing, options, start, rounds=_ROUNDS), bound=bound if certain else None
    )


@dataclass(frozen=True, slots=True)
class OptionGains:
    """What options bring, where the rule is a sum over subscriptions less the cost times a weight."""

    weighing: Objective
    counted: bool
    """Every subscription counts alike."""
    weight: Fraction

    @staticmethod
    def of(weighing: Objective) -> OptionGains | None:
        if weighing.rule is rule_utility:
            return OptionGains(weighing, False, weighing.weight)
        return OptionGains(weighing, True, Fraction(0)) if weighing.rule is rule_cheapest else None

    def values(self, met: int) -> list[int]:
        """What each subscription has of what is met."""
        results = self.weighing.results(met & ~_of_several(self.weighing.part))
        return [int(served) if self.counted else value for value, served in results]

    def of_met(self, met: int) -> dict[int, int]:
        """The same, without those that have nothing."""
        return {place: value for place, value in enumerate(self.values(met)) if value}


def _of_several(part: ProblemComponent) -> int:
    return sum(1 << bit for bit in part.several)


def by_ratio(weighing: Objective, gains: OptionGains, options: Sequence[Sequence[ProfileOption]]) -> Chosen:
    """The better of two: always what brings the most for its cost and fits; the one option that brings the most."""
    part = weighing.part
    moves = [(place, each, gains.of_met(each.met)) for place, some in enumerate(options) for each in some]
    staying = [each.staying() for each in part.choices]
    base = gains.values(part.met_by([each.met for each in staying]))
    so_far, chosen = list(base), list(staying)
    waiting = [(*_order(gains, each, so_far), number) for number, each in enumerate(moves)]
    heapify(waiting)
    while waiting:
        before = heappop(waiting)
        place, option, brings = moves[before[-1]]
        # What an option brings only ever gets less, so one that is still before all others is the first.
        now = (*_order(gains, moves[before[-1]], so_far), before[-1])
        if now != before:
            heappush(waiting, now)
        elif now[0] == _NOT_WORTH_IT:
            break
        else:
            after = [*chosen[:place], _both(part.choices[place], chosen[place], option), *chosen[place + 1 :]]
            if weighing.budget is None or sum(weighing.scaled(each.cost) for each in after) <= weighing.budget:
                chosen = after
                so_far = [max(value, brings.get(at, 0)) for at, value in enumerate(so_far)]
    single = _best_single(weighing, moves, base)
    if single is not None and sum(so_far) < sum(base) + _gain(single[2], base):
        place, option, _ = single
        chosen = [*staying[:place], option, *staying[place + 1 :]]
    return tuple(chosen)


def by_gain(gains: OptionGains, options: Sequence[Sequence[ProfileOption]]) -> Chosen:
    """One option for each profile, always that which brings the most."""
    so_far = [0] * len(gains.weighing.stakes)
    brings = [[gains.of_met(each.met) for each in some] for some in options]
    chosen: dict[int, ProfileOption] = {}
    while len(chosen) < len(options):
        scores = [
            (_gain(brings[place][number], so_far) - gains.weight * gains.weighing.scaled(option.cost), -place, -number)
            for place, some in enumerate(options)
            if place not in chosen
            for number, option in enumerate(some)
        ]
        _, place, number = max(scores)
        chosen[-place] = options[-place][-number]
        so_far = [max(value, brings[-place][-number].get(at, 0)) for at, value in enumerate(so_far)]
    return tuple(chosen[place] for place in range(len(options)))


def _best_single(weighing: Objective, moves: Sequence[_Move], base: Sequence[int]) -> _Move | None:
    fit = [each for each in moves if weighing.budget is None or weighing.scaled(each[1].cost) <= weighing.budget]
    return max(fit, key=lambda each: _gain(each[2], base), default=None)


def _gain(brings: dict[int, int], so_far: Sequence[int]) -> int:
    return sum(value - so_far[at] for at, value in brings.items() if value > so_far[at])


def _order(gains: OptionGains, move: _Move, so_far: Sequence[int]) -> tuple[int, Fraction, int]:
    """The lower, the sooner: what costs nothing, then what brings the most for its cost."""
    _, option, brings = move
    gain, cost = _gain(brings, so_far), gains.weighing.scaled(option.cost)
    if gain <= gains.weight * cost and cost >= 0:
        return (_NOT_WORTH_IT, Fraction(0), 0)
    if cost <= 0:
        return (_FREE, Fraction(-gain), cost)
    return (_WORTH_IT, Fraction(-gain, cost), -gain)


def _both(choices: ProfileOptions, one: ProfileOption, other: ProfileOption) -> ProfileOption:
    """Of each property the better of two values."""
    if not one.taken:
        return other
    pairs = zip(one.taken, other.taken, strict=True)
    return combine_levels(choices, [max(pair, key=lambda level: level.rank) for pair in pairs])


def _falls(part: ProblemComponent) -> bool:
    return any(level.cost < 0 for each in part.choices for levels in each.levels for level in levels)


def _is_permitted(weighing: Objective, chosen: Sequence[ProfileOption]) -> bool:
    results = weighing.results(weighing.part.met_by([each.met for each in chosen]))
    return weighing.permits(results, sum(weighing.scaled(each.cost) for each in chosen))
