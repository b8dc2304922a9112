"""The strategy ``pareto``: one expectation at a time, in the order of registration, each against the plan so far.

`TurnQueue` and `turn_components` say on whom a plan has to decide, and in which order; `decide_pareto` decides.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from heapq import heappop, heappush
from operator import itemgetter

import numpy as np

from situ.quality.allocation.candidates import (
    AdaptationCandidate,
    Claims,
    PartialPlan,
    profiles_serving,
    unclaimed_moves,
)
from situ.quality.allocation.pool_matrix import CheapestProfile, PoolMatrix
from situ.quality.allocation.search_space import DisjointSets
from situ.quality.match.satisfaction import Satisfaction
from situ.quality.model.allocation_problem import STAY, AllocationPlan, AllocationProblem, Refusal, Why
from situ.quality.model.declarations import Expectation

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Turns. Whoever is not satisfied as things are, and could be, has a turn. Who is satisfied needs none, as what is free
# only gets better. Only where a mode becomes another may somebody lose who satisfied it: then it has a turn as well,
# unless its place in the order has passed. Who shares no profile with others, nor a budget, has turns apart from
# theirs.

_AHEAD = 256
"""Expectations that are looked at together, with all profiles: what is in between must stay small."""
_Pools = frozenset[str]
_Places = Mapping[_Pools, Sequence[int]]
"""Places of expectations in the order of turns, by the pools that are relevant to them."""
_Turn = tuple[int, Expectation, PoolMatrix]
"""Whose it is, and its place in the order."""
_NO_POOLS = _Pools()


class TurnQueue:
    """All that are decided on, in the order of turns."""

    def __init__(self, ground: PartialPlan) -> None:
        problem = ground.problem
        self.ground = ground
        self.every: Sequence[Expectation] = problem.expectations
        if problem.undecided is not None:
            self.every = [each for each in self.every if each.id in problem.undecided]

    @cached_property
    def wanting(self) -> _Places:
        """Those that are not satisfied as things are, and could be."""
        return self._by_pools(Satisfaction.SATISFIABLE)

    @cached_property
    def satisfied(self) -> _Places:
        """Those that are satisfied as things are."""
        return self._by_pools(Satisfaction.SATISFIED)

    def _by_pools(self, state: Satisfaction) -> _Places:
        standing, relevant = self.ground.problem.standing, self.ground.problem.relevant
        if standing is not None:
            return standing.by_pools(self._numbers, state)
        found: dict[_Pools, list[int]] = defaultdict(list)
        for place, each in enumerate(self.every):
            if self.ground.state(each) is state:
                found[relevant.get(each.subscription, _NO_POOLS)].append(place)
        return found

    @cached_property
    def _numbers(self) -> Sequence[int]:
        """By which they are known to what is kept of all."""
        standing = self.ground.problem.standing
        return standing.numbers(self.every) if standing is not None else ()


class TurnComponent:
    """Those that have their turns among each other, and depend on nobody else."""

    def __init__(self, asking: TurnQueue, sets: Sequence[_Pools]) -> None:
        """``sets`` are the pools that are relevant to somebody of this part."""
        ground, wanting = asking.ground, asking.wanting
        self._ground = ground
        self._asking = asking
        self._sets = sets
        self._open = [(ground.field_of(pools), wanting[pools]) for pools in sets if pools in wanting]
        self._switched = [
            (ground.field_of(pools), places)
            for pools in filter(ground.is_switched, sets)
            if (places := asking.satisfied.get(pools))
        ]
        """Those that are satisfied as things are, where modes were others than now before anybody had a turn."""
        self.lost: list[Expectation] = []
        """Those of all that are satisfied as things are, who were not by the plan when it was their turn."""
        self._passed = -1
        """The place of whose turn it was last."""
        self._fallen: list[int] = []
        """Places of those that are satisfied as things are, and have lost somebody by the plan; a heap."""
        self._has_fallen = False
        self._looking: list[tuple[PoolMatrix, list[Expectation]]] = []

    @cached_property
    def wanting(self) -> Sequence[tuple[PoolMatrix, Sequence[Expectation]]]:
        """Those that are not satisfied as things are, and could be, by their fields."""
        every = self._asking.every
        return [(field, [every[place] for place in places]) for field, places in self._open]

    def unmet(self) -> Iterator[Expectation]:
        """Those that the plan does not meet when it is their turn. It may go on while they are given out."""
        for place, each, field in self._turns():
            self._passed = place
            if not field.is_met(each):
                if (self._has_fallen or self._switched) and each.id in self._could_fall:
                    self.lost.append(each)
                yield each
                if self._ground.fallen:
                    self._note_fallen()

    def _turns(self) -> Iterator[_Turn]:
        """Those that come next are looked at together."""
        fields, every = (*self._open, *self._switched), self._asking.every
        waiting = [(place, every[place], field) for field, places in fields for place in places]
        if len(fields) > 1:
            waiting.sort(key=itemgetter(0))
        for start in range(0, len(waiting), _AHEAD):
            coming = waiting[start : start + _AHEAD]
            self.look_away()
            self._looking = _by_field(coming)
            for field, some in self._looking:
                field.look_ahead(some)
            for turn in coming:
                if self._fallen:
                    yield from self._fallen_before(turn[0])
                yield turn
        yield from self._fallen_before(len(every))

    def look_away(self) -> None:
        """Nobody comes next. Until then it is known of the last ones what they ask."""
        for field, _ in self._looking:
            field.look_ahead(())

    def _note_fallen(self) -> None:
        self._has_fallen = True
        for each in self._ground.fallen:
            place = self._could_fall.get(each.id, -1)
            if place > self._passed:
                heappush(self._fallen, place)
        self._ground.fallen.clear()

    @cached_property
    def _could_fall(self) -> Mapping[str, int]:
        satisfied, every = self._asking.satisfied, self._asking.every
        return {every[place].id: place for pools in self._sets for place in satisfied.get(pools, ())}

    def _fallen_before(self, end: int) -> Iterator[_Turn]:
        while self._fallen and self._fallen[0] < end:
            place = heappop(self._fallen)
            if place > self._passed:  # it may have fallen twice
                each = self._asking.every[place]
                yield place, each, self._ground.field(each)


def turn_components(ground: PartialPlan) -> Iterator[TurnComponent]:
    """All that have a turn."""
    asking = TurnQueue(ground)
    sets = list(dict.fromkeys([*asking.wanting, *asking.satisfied]))
    for part in _joined(sets) if ground.problem.strategy.budget is None else [sets]:
        if not asking.wanting.keys().isdisjoint(part) or any(map(ground.is_switched, part)):
            yield TurnComponent(asking, part)


def _joined(sets: Sequence[_Pools]) -> Iterable[Sequence[_Pools]]:
    """Sets of pools, together where they have some in common."""
    groups = DisjointSets[str]()
    for pools in sets:
        groups.join(pools)
    parts: dict[str, list[_Pools]] = defaultdict(list)
    for pools in sets:
        parts[groups.of(min(pools, default=""))].append(pools)
    return parts.values()


def _by_field(turns: Iterable[_Turn]) -> list[tuple[PoolMatrix, list[Expectation]]]:
    """Those that one publisher is enough for."""
    found: dict[int, tuple[PoolMatrix, list[Expectation]]] = {}
    for _, each, field in turns:
        if each.publishers == 1:
            known = found.get(id(field))
            if known is None:
                known = found[id(field)] = (field, [])
            known[1].append(each)
    return list(found.values())


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Decisions. Whoever is not satisfied and could be gets the cheapest candidate that harms nobody. It is declined if
# there is none, or if another alternative of its subscription is satisfied and it costs anything to satisfy this one as
# well. Where harm is permitted, it is declined as well if somebody later has its publisher be in another mode.


def decide_pareto(problem: AllocationProblem) -> AllocationPlan:
    making = _SequentialPlanner(PartialPlan(problem))
    with np.errstate(over="ignore", invalid="ignore"):
        for part in turn_components(making.ground):
            making.decide_part(part)
    targets = making.ground.targets
    adopted = Claims(problem, dict(targets), making.served)
    return AllocationPlan(
        targets={id: each for id, each in targets.items() if each != problem.start.get(id)},
        cost=making.ground.cost(),
        adopted=adopted,
        for_nobody=unclaimed_moves(making.ground, adopted, making.unclaimed()),
        declined={id: each for id, each in making.declined.items() if id not in adopted},
    )


@dataclass(slots=True)
class _SequentialPlanner:
    ground: PartialPlan
    declined: dict[str, Refusal] = dataclasses.field(default_factory=dict)
    refused: dict[str, CheapestProfile] = dataclasses.field(default_factory=dict)
    """Those of one part who would have to pay for it, while another alternative of their subscription is satisfied."""
    moved_for: dict[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    served: dict[str, tuple[Expectation, tuple[str, ...]]] = dataclasses.field(default_factory=dict)
    """Those that depend on what the plan moves, with the profiles that it moves for them."""

    def decide_part(self, part: TurnComponent) -> None:
        for each in part.unmet():
            self.decide(each)
        relying = self.ground.by_field(each for each in part.lost if not self.ground.is_met_unmoved(each))
        self.served.update(profiles_serving(self.ground, (*part.wanting, *relying), self.moved_for))
        part.look_away()
        for id, foremost in self.refused.items():
            if id not in self.served:
                self.declined[id] = self.ground.refused(foremost, "alternative")
        self.refused.clear()
        if not self.ground.problem.strategy.protect:
            self._decline_lost(part)

    def _decline_lost(self, part: TurnComponent) -> None:
        """Whoever was served in its turn, and lost that to somebody who came later."""
        for _, some in part.wanting:
            for each in some:
                if each.id not in self.served and each.id not in self.declined:
                    profile = next(iter(self.moved_for.get(each.id, ())), "")
                    self.declined[each.id] = Refusal(why="conflict", profile=profile)

    def decide(self, expectation: Expectation) -> None:
        has_other = self.ground.has_other(expectation)
        foremost = self.ground.foremost(expectation) if self.ground.problem.strategy.budget is None else None
        if foremost is None or (has_other and not foremost.is_dear):
            self._decide_closely(expectation, has_other=has_other)
        elif has_other:
            self.refused[expectation.id] = foremost
        else:
            self.ground.raise_to(foremost)
            self.moved_for[expectation.id] = (foremost.profile,)

    def _decide_closely(self, expectation: Expectation, *, has_other: bool) -> None:
        found = self._candidates(expectation)
        if isinstance(found, Refusal):
            self.declined[expectation.id] = found
        elif found and has_other and (extra := math.fsum(each.extra for each in found)) > 0:
            first = found[0]
            self.declined[expectation.id] = Refusal(
                why="alternative", profile=first.profile, target=first.target, extra=extra
            )
        else:
            self.moved_for[expectation.id] = tuple(each.profile for each in found)
            for each in found:
                self.ground.move(each.profile, each.target)

    def unclaimed(self) -> list[str]:
        """Profiles that may have been moved further than somebody needs now."""
        protect, targets = self.ground.problem.strategy.protect, self.ground.targets
        several = any(len(each) > 1 for each in self.moved_for.values())
        return [id for id, each in targets.items() if each.mode or several or not protect]

    def _candidates(self, expectation: Expectation) -> list[AdaptationCandidate] | Refusal:
        """As many as are needed; why not, if there are some but not enough; none, if it is out of reach."""
        if expectation.publishers == 1:
            found = self._first(expectation)
            return [found] if isinstance(found, AdaptationCandidate) else found or []
        return self._several(expectation)

    def _several(self, expectation: Expectation) -> list[AdaptationCandidate] | Refusal:
        before = dict(self.ground.targets)
        taken: list[AdaptationCandidate] = []
        refusal: Refusal | None = None
        while not self.ground.is_met(expectation):
            found = self._first(expectation)
            if not isinstance(found, AdaptationCandidate):
                refusal = found
                break
            taken.append(found)
            self.ground.move(found.profile, found.target)
        enough = self.ground.is_met(expectation)
        for each in reversed(taken):
            self.ground.move(each.profile, before.get(each.profile, STAY))
        if enough:
            return taken
        return refusal or []

    def _first(self, expectation: Expectation) -> AdaptationCandidate | Refusal | None:
        """The best candidate that is permitted; why the best one is not, if none is."""
        refusal: Refusal | None = None
        counted = self.ground.publishers(expectation) if expectation.publishers > 1 else ()
        for each in self.ground.candidates(expectation):
            if counted and self.ground.problem.profiles[each.profile].publisher in counted:
                continue
            if why := self._forbids(each):
                refusal = refusal or Refusal(why=why, profile=each.profile, target=each.target, extra=each.extra)
            else:
                return each
        return refusal

    def _forbids(self, candidate: AdaptationCandidate) -> Why | None:
        strategy = self.ground.problem.strategy
        if strategy.protect and self.ground.harms(candidate.profile, candidate.target):
            return "harm"
        if strategy.budget is None:
            return None
        cost = self.ground.cost({candidate.profile: candidate.target})
        return "budget" if cost > strategy.budget else None
