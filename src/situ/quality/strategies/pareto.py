"""``pareto``: one expectation at a time, in the order of registration, each against the plan so far.

Whoever is not satisfied and could be gets the cheapest candidate that harms nobody. It is declined if there is none, or
if another alternative of its subscription is satisfied and it costs anything to satisfy this one as well. Where harm is
permitted, it is declined as well if somebody later has its publisher be in another mode.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from situ.quality.claims import Claims, for_nobody, serving
from situ.quality.expectation import Expectation
from situ.quality.foremost import Foremost
from situ.quality.ground import Candidate, Ground
from situ.quality.problem import STAY, Plan, Problem, Refusal, Why
from situ.quality.turns import Part, parts_of


def decide(problem: Problem) -> Plan:
    making = _Making(Ground(problem))
    with np.errstate(over="ignore", invalid="ignore"):
        for part in parts_of(making.ground):
            making.decide_part(part)
    targets = making.ground.targets
    adopted = Claims(problem, dict(targets), making.served)
    return Plan(
        targets={id: each for id, each in targets.items() if each != problem.start.get(id)},
        cost=making.ground.cost(),
        adopted=adopted,
        for_nobody=for_nobody(making.ground, adopted, making.unclaimed()),
        declined={id: each for id, each in making.declined.items() if id not in adopted},
    )


@dataclass(slots=True)
class _Making:
    ground: Ground
    declined: dict[str, Refusal] = field(default_factory=dict)
    refused: dict[str, Foremost] = field(default_factory=dict)
    """Those of one part who would have to pay for it, while another alternative of their subscription is satisfied."""
    moved_for: dict[str, tuple[str, ...]] = field(default_factory=dict)
    served: dict[str, tuple[Expectation, tuple[str, ...]]] = field(default_factory=dict)
    """Those that depend on what the plan moves, with the profiles that it moves for them."""

    def decide_part(self, part: Part) -> None:
        for each in part.unmet():
            self.decide(each)
        relying = self.ground.by_field(each for each in part.lost if not self.ground.is_met_unmoved(each))
        self.served.update(serving(self.ground, (*part.wanting, *relying), self.moved_for))
        part.look_away()
        for id, foremost in self.refused.items():
            if id not in self.served:
                self.declined[id] = self.ground.refused(foremost, "alternative")
        self.refused.clear()
        if not self.ground.problem.strategy.protect:
            self._decline_lost(part)

    def _decline_lost(self, part: Part) -> None:
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

    def _candidates(self, expectation: Expectation) -> list[Candidate] | Refusal:
        """As many as are needed; why not, if there are some but not enough; none, if it is out of reach."""
        if expectation.publishers == 1:
            found = self._first(expectation)
            return [found] if isinstance(found, Candidate) else found or []
        return self._several(expectation)

    def _several(self, expectation: Expectation) -> list[Candidate] | Refusal:
        before = dict(self.ground.targets)
        taken: list[Candidate] = []
        refusal: Refusal | None = None
        while not self.ground.is_met(expectation):
            found = self._first(expectation)
            if not isinstance(found, Candidate):
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

    def _first(self, expectation: Expectation) -> Candidate | Refusal | None:
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

    def _forbids(self, candidate: Candidate) -> Why | None:
        strategy = self.ground.problem.strategy
        if strategy.protect and self.ground.harms(candidate.profile, candidate.target):
            return "harm"
        if strategy.budget is None:
            return None
        cost = self.ground.cost({candidate.profile: candidate.target})
        return "budget" if cost > strategy.budget else None
