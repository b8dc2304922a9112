"""The ground on which expectations are decided one after the other: what a plan does for all, and who could do more.

Owns candidates: which profiles could be moved so that they meet an expectation, to what, at what extra cost to the plan
so far, and whom that would harm. Candidates are ranked by extra cost, then by how few properties they change, then by
id, then by the order of modes.
"""

from __future__ import annotations

import dataclasses
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from situ.quality.expectation import Expectation
from situ.quality.field import Field
from situ.quality.matching import State, match
from situ.quality.operating import cheapest, cost_of
from situ.quality.problem import STAY, Problem, Target
from situ.quality.profile import Profile

_CLOSE = 1e-9
"""Rough costs that differ by less, as a part of the largest cost, may be in another order in truth."""


@dataclass(frozen=True, slots=True, order=True)
class Candidate:
    """A profile that would meet an expectation if it were moved. The least one is the best."""

    extra: float
    changed: int
    profile: str
    mode: int
    target: Target = dataclasses.field(compare=False)


class Ground:
    """A problem and a plan for it that is being made."""

    def __init__(self, problem: Problem, targets: Mapping[str, Target] | None = None) -> None:
        self.problem = problem
        self.targets: dict[str, Target] = dict(problem.start if targets is None else targets)
        self._asking: dict[frozenset[str], list[Expectation]] = defaultdict(list)
        for each in problem.expectations:
            self._asking[problem.relevant.get(each.subscription, frozenset())].append(each)
        self._touching: dict[str, list[frozenset[str]]] = defaultdict(list)
        for pools in self._asking:
            for pool in pools:
                self._touching[pool].append(pools)
        self._fields: dict[frozenset[str], Field] = {}

    def field(self, expectation: Expectation) -> Field:
        return self._field(self.problem.relevant.get(expectation.subscription, frozenset()))

    def is_met(self, expectation: Expectation) -> bool:
        field = self.field(expectation)
        return field.is_met(field.numbers[expectation.id])

    def is_met_unmoved(self, expectation: Expectation) -> bool:
        """Whether those profiles meet it that stay as they are."""
        field = self.field(expectation)
        meeting = (field.profiles[place] for place in field.meeting(field.numbers[expectation.id]))
        publishers = {each.publisher for each in meeting if each.id not in self.targets}
        return len(publishers) >= expectation.publishers

    def publishers(self, expectation: Expectation) -> frozenset[str]:
        """Those that meet an expectation by the plan."""
        field = self.field(expectation)
        return field.publishers(field.numbers[expectation.id])

    def has_other(self, expectation: Expectation) -> bool:
        """Whether another alternative of its subscription is met by the plan."""
        field = self.field(expectation)
        return field.has_other(field.numbers[expectation.id])

    def state(self, expectation: Expectation) -> State:
        """The state as things are, whatever the plan."""
        if self.problem.state is not None:
            return self.problem.state(expectation.id)
        return match(expectation, self.field(expectation).profiles).state

    def candidates(self, expectation: Expectation) -> Iterator[Candidate]:
        """Profiles that do not meet an expectation and could, best first."""
        field = self.field(expectation)
        number = field.numbers[expectation.id]
        rough = field.rough_costs(number)
        if expectation.publishers > 1:
            rough[np.isin(field.owners, field.meeting(number))] = np.inf
        if self.problem.actions.declared:
            rough[np.isfinite(rough)] = np.nan
        known: dict[int, Candidate] = {}

        def candidate(row: int) -> Candidate:
            if row not in known:
                place = int(field.owners[row])
                known[row] = self._candidate(expectation, field.profiles[place], row - field.firsts[place])
            return known[row]

        for row in np.flatnonzero(np.isnan(rough)).tolist():
            rough[row] = candidate(row).extra
        while (least := rough.min(initial=np.inf)) < np.inf:
            near = np.flatnonzero(rough <= least + _CLOSE * field.magnitude).tolist()
            first = near[0] if len(near) == 1 else min(near, key=candidate)
            yield candidate(first)
            rough[first] = np.inf

    def harms(self, id: str, target: Target) -> bool:
        """Whether a subscription gets less than by the plan so far if a profile is moved."""
        # Free properties only get better, and satisfaction is upward closed.
        is_free = target.mode == self.targets.get(id, STAY).mode
        return not is_free and any(_harms(field, *field.swayed(id, target)) for field in self._fields_of(id))

    def move(self, id: str, target: Target) -> None:
        """Have a profile moved by the plan."""
        for field in self._fields_of(id):
            field.move(id, target)
        if target:
            self.targets[id] = target
        else:
            self.targets.pop(id, None)

    def cost(self) -> float:
        """What the plan costs more than what it began with."""
        profiles, actions = self.problem.profiles, self.problem.actions
        return math.fsum(
            cost_of(profiles[id], target, actions, self.problem.start.get(id, STAY))
            for id, target in sorted(self.targets.items())
        )

    def _candidate(self, expectation: Expectation, profile: Profile, mode: int) -> Candidate:
        before = self.targets.get(profile.id, STAY)
        values = dict(before.values)
        for id, need in expectation.needs.items():
            capability = profile.capabilities.get(id)
            if capability and not need.about.at_least(values.get(id, capability.cv), need.floor):
                values[id] = cheapest(capability, need.floor, self.problem.actions)
        changed = sum(value != before.values.get(id) for id, value in values.items())
        name = ""
        if profile.modes:
            now, then = profile.mode_named(before.mode or profile.mode), profile.modes[mode]
            name = "" if then.name == profile.mode else then.name
            changed += sum(now.values[id] != then.values[id] for id in profile.moded)
        target = Target(values=values, mode=name)
        extra = cost_of(profile, target, self.problem.actions, before)
        return Candidate(extra, changed, profile.id, mode, target)

    def _fields_of(self, id: str) -> list[Field]:
        return [self._field(pools) for pools in self._touching.get(self.problem.pools.get(id, ""), ())]

    def _field(self, pools: frozenset[str]) -> Field:
        if pools not in self._fields:
            ids = sorted(id for pool in pools for id in self._members.get(pool, ()))
            profiles = [self.problem.profiles[id] for id in ids]
            self._fields[pools] = Field(self._asking[pools], profiles, self.targets)
        return self._fields[pools]

    @cached_property
    def _members(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for id in self.problem.profiles:
            if id in self.problem.pools:
                found[self.problem.pools[id]].append(id)
        return found


def _harms(field: Field, lost: Sequence[int], won: Sequence[int]) -> bool:
    return any(_falls(field, field.alternatives[field.expectations[each].subscription], lost, won) for each in lost)


def _falls(field: Field, alternatives: Sequence[int], lost: Sequence[int], won: Sequence[int]) -> bool:
    """Whether the best satisfied one of some alternatives is better now than it would be, or the only one."""
    met = {each for each in alternatives if field.is_met(each)}
    before, after = (
        max(((field.expectations[each].utility, True) for each in some), default=(0.0, False))
        for some in (met, met - set(lost) | set(won) & set(alternatives))
    )
    return after < before
