"""A plan while it is made, expectation by expectation: who is met so far, which profiles could be moved, and claims.

`PartialPlan` owns candidates (`AdaptationCandidate`). `Claims` says what each expectation needs of the profiles that a
plan moves for it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cached_property
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from situ.quality.allocation.pool_matrix import CheapestProfile, PoolMatrix, near_cheapest
from situ.quality.match.satisfaction import Satisfaction, match
from situ.quality.model.allocation_problem import (
    STAY,
    AllocationProblem,
    Claim,
    Refusal,
    Target,
    Why,
    cheapest,
    cost_of,
    terms_between,
)
from situ.quality.model.declarations import Expectation, Profile

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Candidates: which profiles could be moved so that they meet an expectation, to what, at what extra cost to the plan so
# far, and whom that would harm. They are ranked by extra cost, then by how few properties they change, then by id, then
# by the order of modes.

_UNCHANGED: Mapping[str, Target] = MappingProxyType({})


class AdaptationCandidate(NamedTuple):
    """A profile that would meet an expectation if it were moved. The least one is the best."""

    extra: float
    changed: int
    profile: str
    mode: int
    target: Target
    """Never compared: there is one of each profile and mode."""


class PartialPlan:
    """A problem and a plan for it that is being made."""

    def __init__(self, problem: AllocationProblem, targets: Mapping[str, Target] | None = None) -> None:
        self.problem = problem
        self._targets: dict[str, Target] = dict(problem.start if targets is None else targets)
        self._raised: dict[str, PoolMatrix] = {}
        """Profiles that are moved, whose targets were not worked out since; each with its field."""
        self._fields: dict[frozenset[str], PoolMatrix] = {}
        self._by_subscription: dict[str, PoolMatrix] = {}
        self._containing: dict[str, list[PoolMatrix]] = defaultdict(list)
        """Pool → the fields, of those made so far, that it is in."""
        self._switched = {problem.pools.get(id, "") for id, each in self._targets.items() if each.mode}
        """Pools in which a mode was another than now from the beginning."""
        self._states: dict[str, Satisfaction] = {}
        """Those that were worked out."""
        self._fallen: set[str] = set()
        """Expectations that lost somebody who met them when a mode became another."""
        self._would_lose: tuple[str, Target, list[tuple[PoolMatrix, list[Expectation]]]] | None = None
        """Whom the target that was asked about last takes something away from, if nothing was moved since."""
        self.fallen: list[Expectation] = []
        """The latest of them; whoever has taken note of them takes them out."""

    @property
    def targets(self) -> Mapping[str, Target]:
        """To what profiles are moved by the plan."""
        for id, field in self._raised.items():
            self._targets[id] = field.target(id, self.problem.start.get(id, STAY))
        self._raised.clear()
        return self._targets

    def field(self, expectation: Expectation) -> PoolMatrix:
        subscription = expectation.subscription
        found = self._by_subscription.get(subscription)
        if found is None:
            found = self.field_of(self.problem.relevant.get(subscription, frozenset()))
            self._by_subscription[subscription] = found
        return found

    def by_field(self, expectations: Iterable[Expectation]) -> list[tuple[PoolMatrix, list[Expectation]]]:
        """Expectations with the field of each."""
        found: dict[int, tuple[PoolMatrix, list[Expectation]]] = {}
        for each in expectations:
            field = self.field(each)
            found.setdefault(id(field), (field, []))[1].append(each)
        return list(found.values())

    def alternatives(self, subscription: str) -> Sequence[Expectation]:
        standing = self.problem.standing
        return self._together[subscription] if standing is None else standing.alternatives(subscription)

    def is_met(self, expectation: Expectation) -> bool:
        """Whether an expectation is satisfied by the plan."""
        state = self.state(expectation)
        if state is Satisfaction.UNSATISFIED:
            return False
        if state is Satisfaction.SATISFIED:
            # What is free only gets better: who is satisfied stays so, unless a mode is another.
            relevant = self.problem.relevant.get(expectation.subscription, ()) if self._switched else ()
            if expectation.id not in self._fallen and self._switched.isdisjoint(relevant):
                return True
        return self.field(expectation).is_met(expectation)

    def is_met_unmoved(self, expectation: Expectation) -> bool:
        """Whether those profiles meet it that stay as they are."""
        meeting = (id for id in self.field(expectation).meeting(expectation) if id not in self.targets)
        return len({self.problem.profiles[id].publisher for id in meeting}) >= expectation.publishers

    def publishers(self, expectation: Expectation) -> frozenset[str]:
        """Those that meet an expectation by the plan."""
        meeting = self.field(expectation).meeting(expectation)
        return frozenset(self.problem.profiles[id].publisher for id in meeting)

    def has_other(self, expectation: Expectation) -> bool:
        """Whether another alternative of its subscription is met by the plan."""
        every = self.alternatives(expectation.subscription)
        return len(every) > 1 and any(self.is_met(each) for each in every if each.id != expectation.id)

    def state(self, expectation: Expectation) -> Satisfaction:
        """The state as things are, whatever the plan."""
        if self.problem.standing is not None:
            return self.problem.standing.state(expectation.id)
        found = self._states.get(expectation.id)
        if found is None:
            found = self._states[expectation.id] = self._state(expectation)
        return found

    def _state(self, expectation: Expectation) -> Satisfaction:
        if self.problem.state is not None:
            return self.problem.state(expectation.id)
        return match(expectation, self.field(expectation).profiles.values()).state

    def is_switched(self, pools: Set[str]) -> bool:
        """Whether a mode was another than now from the beginning, in any of these pools."""
        return not self._switched.isdisjoint(pools)

    def foremost(self, expectation: Expectation) -> CheapestProfile | None:
        """The best candidate, where a look tells that it is, and that moving it harms nobody.

        So it is with most: costs rise evenly, one profile is the cheapest by far, and it has no modes.
        """
        field = self.field(expectation)
        found = None if self.problem.actions.declared else field.foremost(expectation)
        if found is None or len(self._containing[self.problem.pools.get(found.profile, "")]) > 1:
            return None
        return found

    def raise_to(self, foremost: CheapestProfile) -> None:
        """Have it moved by the plan: to what in values is worked out when somebody asks."""
        foremost.field.raise_to(foremost)
        self._would_lose = None
        self._raised[foremost.profile] = foremost.field

    def refused(self, foremost: CheapestProfile, why: Why) -> Refusal:
        """Why it is not moved, and what that would have cost."""
        id = foremost.profile
        before, target = foremost.field.between(foremost, self.problem.start.get(id, STAY))
        extra = cost_of(self.problem.profiles[id], target, self.problem.actions, before)
        return Refusal(why=why, profile=id, target=target, extra=extra)

    def candidates(self, expectation: Expectation) -> Iterator[AdaptationCandidate]:
        """Profiles that do not meet an expectation and could, best first."""
        field = self.field(expectation)
        rough = field.rough_costs(expectation).copy()
        if expectation.publishers > 1:
            meeting = set(field.meeting(expectation))
            rough[[row for row, (id, _) in enumerate(field.keys) if id in meeting]] = np.inf
        is_even = field.is_even
        if self.problem.actions.declared:
            rough[np.isfinite(rough)] = np.nan
            is_even = False
        known: dict[int, AdaptationCandidate] = {}

        def candidate(row: int) -> AdaptationCandidate:
            if row not in known:
                id, mode = field.keys[row]
                known[row] = self._candidate(expectation, id, field.profiles[id], mode)
            return known[row]

        for row in () if is_even else np.flatnonzero(np.isnan(rough)).tolist():
            rough[row] = candidate(row).extra
        while near := near_cheapest(rough, field.close):
            first = near[0] if len(near) == 1 else min(near, key=candidate)
            yield candidate(first)
            rough[first] = np.inf

    def harms(self, id: str, target: Target) -> bool:
        """Whether a subscription gets less than by the plan so far if a profile is moved."""
        if target.mode == self.targets.get(id, STAY).mode:
            return False  # free properties only get better, and satisfaction is upward closed
        gone, new = self._swayed(id, target)
        for subscription in {each.subscription for each in gone.values()}:
            alternatives = self.alternatives(subscription)
            now = {each.id: each for each in alternatives if self.is_met(each)}
            then = {
                each.id: each for each in alternatives if each.id in new or (each.id in now and each.id not in gone)
            }
            if _best(then) < _best(now):
                return True
        return False

    def _swayed(self, id: str, target: Target) -> tuple[Mapping[str, Expectation], Mapping[str, Expectation]]:
        """Expectations that would be lost, and if there are any, those that would be won, if a profile moved."""
        gone: dict[str, Expectation] = {}
        new: dict[str, Expectation] = {}
        for field, lost in self._lost_without(id, target):
            gone |= {
                each.id: each for each in lost if self._is_alone(field, each) or self.field(each).depends_on(id, each)
            }
        for field in self._asked_of(id) if gone else ():
            won = field.won_with(id, target)
            new |= {
                each.id: each for each in won if self._is_alone(field, each) or self.field(each).waits_for(id, each)
            }
        return gone, new

    def _lost_without(self, id: str, target: Target) -> list[tuple[PoolMatrix, list[Expectation]]]:
        """Expectations that a profile meets, alone in their field, and would not if it were moved. It is asked whom
        that harms, and if nobody, moved next."""
        if self._would_lose is None or self._would_lose[:2] != (id, target):
            self._would_lose = id, target, [(each, each.lost_without(id, target)) for each in self._asked_of(id)]
        return self._would_lose[2]

    def _is_alone(self, field: PoolMatrix, expectation: Expectation) -> bool:
        """Whether a field is all there is to an expectation, so that who meets it there by itself is all who do."""
        return expectation.publishers == 1 and self.field(expectation) is field

    def move(self, id: str, target: Target) -> None:
        """Have a profile moved by the plan."""
        if target.mode != self.targets.get(id, STAY).mode:
            for _, lost in self._lost_without(id, target):
                self.fallen += lost
                self._fallen.update(each.id for each in lost)
        self._would_lose = None
        before = self.targets.get(id, STAY)
        for field in self._containing[self.problem.pools.get(id, "")]:
            field.move(id, before, target)
        if target:
            self._targets[id] = target
        else:
            self._targets.pop(id, None)

    def cost(self, change: Mapping[str, Target] = _UNCHANGED) -> float:
        """What the plan costs more than what it began with; or what it would cost if it changed."""
        targets = {**self.targets, **change} if change else self.targets
        return math.fsum(
            term
            for id, target in targets.items()
            if target is not (before := self.problem.start.get(id, STAY))
            for term in terms_between(self.problem.profiles[id], target, self.problem.actions, before)
        )

    def _candidate(self, expectation: Expectation, id: str, profile: Profile, mode: int) -> AdaptationCandidate:
        before = self.targets.get(id, STAY)
        values = self._improved(expectation, id, profile)
        changed = sum(value != before.values.get(each) for each, value in values.items())
        name = ""
        if profile.modes:
            now, then = profile.mode_named(before.mode or profile.mode), profile.modes[mode]
            name = "" if then.name == profile.mode else then.name
            changed += sum(now.values[each] != then.values[each] for each in profile.moded)
        target = Target(values=values, mode=name)
        return AdaptationCandidate(cost_of(profile, target, self.problem.actions, before), changed, id, mode, target)

    def _improved(self, expectation: Expectation, id: str, profile: Profile) -> dict[str, float]:
        """To what free properties of a profile are moved so that they are good enough for an expectation as well."""
        values = dict(self.targets.get(id, STAY).values)
        for name, need in expectation.needs.items():
            capability, floor = profile.capabilities.get(name), need.floor
            if capability and not need.about.at_least(values.get(name, capability.cv), floor):
                values[name] = cheapest(capability, floor, self.problem.actions)
        return values

    def _asked_of(self, id: str) -> list[PoolMatrix]:
        """Fields that together have all expectations to which a profile is relevant."""
        pool = self.problem.pools.get(id, "")
        if self.problem.standing is not None:
            return [self.field_of(frozenset({pool}))]
        return [self.field_of(pools) for pools in self._touching.get(pool, ())]

    def field_of(self, pools: frozenset[str]) -> PoolMatrix:
        """The field of all to whom these pools are relevant."""
        field = self._fields.get(pools)
        if field is None:
            field = self._fields[pools] = self._made(pools)
            for pool in pools:
                self._containing[pool].append(field)
            if field.profiles.keys() & self.targets.keys():
                field.begin_with(self.targets)
        return field

    def _made(self, pools: frozenset[str]) -> PoolMatrix:
        standing = self.problem.standing
        if standing is not None:
            found = [each for name in pools if (each := standing.pool(name)) is not None and each.profiles]
            if len(pools) == 1 and found:
                return PoolMatrix.of_pool(standing, *pools)
            profiles = {id: each for pool in found for id, each in pool.profiles.items()}
        else:
            profiles = {id: self.problem.profiles[id] for pool in pools for id in self._members.get(pool, ())}
        asking = () if standing is not None else self._asking.get(pools, ())
        return PoolMatrix.of_all(asking, [profiles[id] for id in sorted(profiles)])

    @cached_property
    def _asking(self) -> Mapping[frozenset[str], list[Expectation]]:
        """Who asks, by the pools that are relevant to it."""
        found: dict[frozenset[str], list[Expectation]] = defaultdict(list)
        for each in self.problem.expectations:
            found[self.problem.relevant.get(each.subscription, frozenset())].append(each)
        return found

    @cached_property
    def _together(self) -> Mapping[str, list[Expectation]]:
        found: dict[str, list[Expectation]] = defaultdict(list)
        for each in self.problem.expectations:
            found[each.subscription].append(each)
        return found

    @cached_property
    def _touching(self) -> Mapping[str, list[frozenset[str]]]:
        """Pool → the fields that it is in."""
        found: dict[str, list[frozenset[str]]] = defaultdict(list)
        for pools in self._asking:
            for pool in pools:
                found[pool].append(pools)
        return found

    @cached_property
    def _members(self) -> Mapping[str, list[str]]:
        found: dict[str, list[str]] = defaultdict(list)
        for id in self.problem.profiles:
            if id in self.problem.pools:
                found[self.problem.pools[id]].append(id)
        return found


def _best(satisfied: Mapping[str, Expectation]) -> tuple[float, bool]:
    return max(((each.utility, True) for each in satisfied.values()), default=(0.0, False))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Claims. A claim holds no more than its expectation needs by itself, so that what is left of a plan when some
# expectations go follows from the claims that stay. Who serves whom is settled with the plan; what that is in values is
# worked out for whoever is asked about.

Serving = Mapping[str, tuple[Expectation, tuple[str, ...]]]
"""Expectation, by its id → the profiles that are moved for it."""
_NOBODY: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Claims(Mapping[str, tuple[Claim, ...]]):
    """The claims of all that a plan serves, by the ids of expectations."""

    def __init__(self, problem: AllocationProblem, targets: Mapping[str, Target], serving: Serving) -> None:
        self._problem = problem
        self._targets = targets
        self._serving = serving

    def __getitem__(self, id: str) -> tuple[Claim, ...]:
        expectation, profiles = self._serving[id]
        return tuple(self._claim(expectation, self._problem.profiles[each]) for each in profiles)

    def __contains__(self, id: object) -> bool:
        return id in self._serving

    def __iter__(self) -> Iterator[str]:
        return iter(self._serving)

    def __len__(self) -> int:
        return len(self._serving)

    def on(self, profiles: Set[str]) -> Iterator[Claim]:
        """All claims on some profiles."""
        for expectation, serving in self._serving.values():
            for id in serving:
                if id in profiles:
                    yield self._claim(expectation, self._problem.profiles[id])

    def __repr__(self) -> str:
        return repr(dict(self))

    def _claim(self, expectation: Expectation, profile: Profile) -> Claim:
        values = {}
        for id, need in expectation.needs.items():
            capability = profile.capabilities.get(id)
            if capability and not need.about.at_least(capability.cv, need.floor):
                values[id] = cheapest(capability, need.floor, self._problem.actions)
        mode = self._targets[profile.id].mode if any(id in profile.moded for id in expectation.needs) else ""
        return Claim(expectation=expectation.id, profile=profile.id, target=Target(values=values, mode=mode))


def profiles_serving(
    ground: PartialPlan,
    wanting: Iterable[tuple[PoolMatrix, Sequence[Expectation]]],
    moved_for: Mapping[str, tuple[str, ...]] = _NOBODY,
) -> Iterator[tuple[str, tuple[Expectation, tuple[str, ...]]]]:
    """Of those that are not satisfied as things are, by their fields, which profiles each is satisfied by in the plan.

    ``moved_for`` says which profiles were moved for an expectation, where that is known.
    """
    for field, some in wanting:
        if moved := sorted(field.profiles.keys() & ground.targets.keys()):
            yield from _serving(field, some, moved, moved_for)


def unclaimed_moves(ground: PartialPlan, adopted: Claims, among: Sequence[str]) -> Mapping[str, Target]:
    """What a plan does to some profiles that no claim asks for: it is cheaper so."""
    claimed: dict[str, list[Target]] = {id: [ground.problem.start.get(id, STAY)] for id in among}
    for each in adopted.on(claimed.keys()):
        claimed[each.profile].append(each.target)
    found = {id: _without(ground.targets[id], claims) for id, claims in claimed.items()}
    return {id: target for id, target in found.items() if target}


def _without(target: Target, claimed: Sequence[Target]) -> Target:
    values = {
        id: value for id, value in target.values.items() if not any(each.values.get(id) == value for each in claimed)
    }
    return Target(values=values, mode="" if any(each.mode for each in claimed) else target.mode)


def _serving(
    field: PoolMatrix,
    expectations: Sequence[Expectation],
    moved: Sequence[str],
    moved_for: Mapping[str, tuple[str, ...]],
) -> Iterator[tuple[str, tuple[Expectation, tuple[str, ...]]]]:
    lasting = {id for id in moved if not field.profiles[id].modes}
    """Free properties only get better: whoever is moved for somebody stays good enough, unless a mode is another."""
    by_the_way = []
    for each in expectations:
        if each.publishers > 1:
            if field.is_met(each):
                yield each.id, (each, tuple(_several(field, each)))
        elif (first := moved_for.get(each.id)) and (first[0] in lasting or field.meets(first[0], each)):
            yield each.id, (each, first)
        else:
            by_the_way.append(each)
    alone = {id: (id,) for id in moved}
    firsts = field.firsts_that_meet(by_the_way, moved) if by_the_way else []
    for each, id in zip(by_the_way, firsts, strict=True):
        if id is not None:
            yield each.id, (each, alone[id])


def _several(field: PoolMatrix, expectation: Expectation) -> Iterator[str]:
    """As many publishers as it takes, besides those that meet it as they are."""
    meeting = [field.profiles[id] for id in field.meeting(expectation)]
    counted = {each.publisher for each in meeting if expectation.is_met_by(each.current())}
    for each in meeting:
        if len(counted) < expectation.publishers and each.publisher not in counted:
            counted.add(each.publisher)
            yield each.id
