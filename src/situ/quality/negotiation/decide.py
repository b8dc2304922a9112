"""Deciding: whether what could be satisfied is going to be, by whom, and who claims what for it.

What was decided stays so until something happens to it. Only those are decided on whose state or means changed, and
those that were declined where something may be possible now; so a change costs what it touches. ``pareto`` decides one
expectation at a time and goes on from the plan so far; other strategies weigh all against each other, and get all that
hangs together.

A budget is for all that is in force by advice, against what publishers did by themselves: what was followed long ago
counts as what is decided now. A plan gets what is left of it, and has to do with that as it is carried out: what it
would save for nobody's sake nobody does. What is still to be done and has become too dear is decided on again.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import replace
from types import MappingProxyType

from situ.quality.declared import DEFAULT, PARETO, Strategy
from situ.quality.ledger import improves
from situ.quality.matching import State as Standing
from situ.quality.operating import terms_between, terms_from, without_savings
from situ.quality.presence import release
from situ.quality.problem import STAY, Plan, Problem, Target, point_at
from situ.quality.profile import Profile
from situ.quality.state import Held, Known, State
from situ.quality.work import Work


def decide(state: State, work: Work) -> None:
    """Decide on all that are touched and could be satisfied."""
    _take_back_what_is_too_dear(state, work)
    undecided = {id for id in _considered(state, work) if _is_open(state, work, id)}
    for strategy, ids in _by_strategy(state, undecided):
        problem = _problem(state, strategy, ids)
        _adopt(state, work, problem, _plan(state, problem), ids)


def _considered(state: State, work: Work) -> set[str]:
    found = {id for id in work.expectations if id in state.expectations}
    for id in list(found):
        # Whether one is worth its cost depends on how the alternatives stand.
        found |= state.by_subscription[state.expectations[id].expectation.subscription].keys() & state.declined
    for pool in work.pools:
        found |= state.by_pool.get(pool, {}).keys() & state.declined
    if found or work.pools:
        # A budget joins all: what somebody gives back anywhere may be what these lacked.
        found |= {id for id in state.declined if _lacks_budget(state.expectations[id])}
    return {id for id in found if state.expectations[id].active}


def _lacks_budget(held: Held) -> bool:
    return held.refusal is not None and held.refusal.why == "budget"


def _is_open(state: State, work: Work, id: str) -> bool:
    """Whether there is something to decide; notes what is decided by itself."""
    held = state.expectations[id]
    stands = state.standing.state(id)
    if stands is Standing.SATISFIED and held.violated:
        held.violated = False
        work.keep_expectation(id)
    if stands is not Standing.SATISFIED and not is_pending(state, held):
        release(state, work, id)
        if stands is Standing.SATISFIABLE:
            return True
    held.refusal = None
    state.declined.discard(id)
    return False


# ── what is under way ──


def is_pending(state: State, held: Held) -> bool:
    """Whether an expectation is going to be satisfied when advice that was decided on takes effect."""
    expectation = held.expectation
    claimed = state.claimed.get(expectation.id, set())
    if not claimed:
        return False
    publishers = set()
    if expectation.publishers > 1:
        now, _ = state.standing.candidates(expectation.id)
        publishers = {state.profiles[each].profile.publisher for each in now}
    for id in claimed:
        known = state.profiles[id]
        if known.effective is None:
            continue
        if expectation.is_met_by(point_at(known.effective, outstanding(state, known))):
            publishers.add(known.profile.publisher)
    return len(publishers) >= expectation.publishers


def outstanding(state: State, known: Known) -> Target:
    """What a profile does not do yet of what is claimed of it, and can."""
    profile = known.effective
    if profile is None:
        return STAY
    target = known.ledger.claimed(profile, state.meets)
    values = {
        id: profile.capabilities[id].about.worse(value, profile.capabilities[id].best)
        for id, value in target.values.items()
    }
    there = any(each.name == target.mode for each in profile.modes)
    mode = target.mode if there and is_mode_needed(state, known) else ""
    return improves(Target(values=MappingProxyType(values), mode=mode), profile)


def is_mode_needed(state: State, known: Known) -> bool:
    """Whether somebody who claims a mode does not have what it needs in the current one."""
    assert known.effective is not None
    now = known.effective.current()
    return any(target.mode and not state.meets(id, now) for id, target in known.ledger.claims.items())


# ── problems ──


def _by_strategy(state: State, undecided: set[str]) -> list[tuple[Strategy, set[str]]]:
    """Who is decided on by which strategy: that of the type of all that it can get, if there is one."""
    if not undecided:
        return []
    if not state.quality.strategies.keys() - {DEFAULT}:
        return [(state.quality.strategy_for(DEFAULT), undecided)]
    groups: list[tuple[Strategy, set[str]]] = []
    for id in sorted(undecided):
        strategy = strategy_of(state, state.expectations[id])
        mine = next((ids for each, ids in groups if each == strategy), None)
        if mine is None:
            groups.append((strategy, mine := set()))
        mine.add(id)
    return groups


def strategy_of(state: State, held: Held) -> Strategy:
    types = {profile.type for pool in held.pools for profile in state.in_pool.get(pool, {}).values()}
    return state.quality.strategy_for(types.pop() if len(types) == 1 else DEFAULT)


def _problem(state: State, strategy: Strategy, undecided: set[str]) -> Problem:
    pools = _pools(state, undecided)
    whole = strategy.name != PARETO
    if whole:
        pools = _connected(state, pools)
    profiles = {id: each for pool in sorted(pools) for id, each in state.in_pool.get(pool, {}).items()}
    chosen = set(undecided)
    if whole:
        chosen |= {id for pool in pools for id in state.by_pool.get(pool, ())}
    subscriptions = {state.expectations[id].expectation.subscription for id in chosen}
    held = (each for subscription in subscriptions for each in state.alternatives(subscription))
    if strategy.budget is not None:
        used = math.fsum(_in_force(state, strategy, profiles if whole else {}))
        strategy = replace(strategy, budget=max(0.0, strategy.budget - used))
    return Problem(
        expectations=tuple(sorted((each.expectation for each in held), key=lambda each: each.order)),
        profiles=profiles,
        pools={id: state.relevance.pools[id] for id in profiles},
        relevant=state.relevance.relevant,
        actions=state.actions,
        strategy=strategy,
        start=MappingProxyType({}) if whole else _start(state, profiles),
        undecided=None if whole else frozenset(undecided),
        standing=None if whole else state.standing,
    )


def _pools(state: State, expectations: Iterable[str]) -> set[str]:
    return {pool for id in expectations for pool in state.expectations[id].pools}


def _connected(state: State, pools: set[str]) -> set[str]:
    """All pools that hang together with these by expectations that can use either."""
    found, new = set(pools), set(pools)
    while new:
        more = _pools(state, {id for pool in new for id in state.by_pool.get(pool, ())})
        new = more - found
        found |= new
    return found


def _start(state: State, profiles: Mapping[str, Profile]) -> Mapping[str, Target]:
    """What was decided before and has not taken effect."""
    found = {}
    for id in profiles:
        known = state.profiles[id]
        if known.ledger.claims and (target := outstanding(state, known)):
            found[id] = target
    return found


def _in_force(state: State, strategy: Strategy, anew: Mapping[str, Profile]) -> Iterator[float]:
    """The summands of what all that is in force by advice of a strategy costs, against what publishers did by
    themselves. What is outstanding of those in ``anew`` is decided with the plan."""
    for id, known in state.profiles.items():
        profile, ledger = known.effective, known.ledger
        if profile is None or not ledger or strategy not in _advised_by(state, known):
            continue
        target = STAY if id in anew else outstanding(state, known)
        yield from terms_from(ledger.baseline, ledger.mode, profile, target, state.actions)


def _take_back_what_is_too_dear(state: State, work: Work) -> None:
    """Who does less by itself than when it was decided what it is to do has further to go, which costs more."""
    if all(each.budget is None for each in state.quality.strategies.values()):
        return
    for id in sorted(work.profiles & state.profiles.keys()):
        known = state.profiles[id]
        if known.effective is None or not outstanding(state, known):
            continue
        if any(_is_overdrawn(state, each) for each in _advised_by(state, known)):
            _take_back(state, work, known, known.ledger.claims.keys())


def _take_back(state: State, work: Work, known: Known, claimants: Set[str]) -> None:
    """Nothing more is to be done by a profile for these than it does."""
    assert known.effective is not None
    now = known.effective.current()
    for id in [each for each in known.ledger.claims if each in claimants and not state.meets(each, now)]:
        known.ledger.release(id)
        state.claimed[id].discard(known.profile.id)
        work.expectations.add(id)
        work.advise.add(known.profile.id)
        work.keep_profile(known.profile.id)


def _is_overdrawn(state: State, strategy: Strategy) -> bool:
    return strategy.budget is not None and math.fsum(_in_force(state, strategy, {})) > strategy.budget


def _advised_by(state: State, known: Known) -> list[Strategy]:
    """The strategies by which it was decided what a profile is to do."""
    strategies = state.quality.strategies
    if strategies.keys() <= {DEFAULT}:
        return [state.quality.strategy_for(DEFAULT)]
    claimants = [state.expectations[id] for id in known.ledger.claims if id in state.expectations]
    found = [strategy_of(state, each) for each in claimants]
    return found or [state.quality.strategy_for(known.profile.type)]


# ── what was decided ──


def _plan(state: State, problem: Problem) -> Plan:
    """A plan within the budget, as it is carried out. One that is so only by what it saves for nobody's sake is made
    again, with nothing to save."""
    plan = state.decide(problem)
    budget = problem.strategy.budget
    if budget is None or not plan.for_nobody or math.fsum(_done(problem, plan)) <= budget:
        return plan
    return state.decide(replace(problem, profiles={id: without_savings(each) for id, each in problem.profiles.items()}))


def _done(problem: Problem, plan: Plan) -> Iterator[float]:
    """The summands of what a plan costs, apart from what it does for nobody."""
    for id, target in plan.targets.items():
        idle = plan.for_nobody.get(id, STAY)
        values = {each: value for each, value in target.values.items() if each not in idle.values}
        done = Target(values=MappingProxyType(values), mode="" if idle.mode else target.mode)
        yield from terms_between(problem.profiles[id], done, problem.actions, problem.start.get(id, STAY))


def _adopt(state: State, work: Work, problem: Problem, plan: Plan, undecided: set[str]) -> None:
    if problem.undecided is None:
        for expectation in problem.expectations:
            # Who is not in the plan any more loses to those who are.
            if expectation.id not in plan.adopted and state.standing.state(expectation.id) is Standing.SATISFIABLE:
                release(state, work, expectation.id)
                undecided.add(expectation.id)
        if problem.strategy.budget is not None:
            _take_back_what_is_not_waited_for(state, work, problem)
    undecided |= _lost(state, work, problem, plan)
    for id in undecided | plan.adopted.keys():
        held = state.expectations[id]
        work.expectations.add(id)
        if id not in plan.adopted:
            held.refusal = plan.declined.get(id)
            state.declined.add(id)
            continue
        held.refusal = None
        state.declined.discard(id)
        if problem.undecided is None:
            release(state, work, id)
        for claim in plan.adopted[id]:
            known = state.profiles[claim.profile]
            known.ledger.claim(known.profile, id, _whole(claim.target, held, known))
            state.claimed.setdefault(id, set()).add(claim.profile)
            work.advise.add(claim.profile)
            work.keep_profile(claim.profile)


def _take_back_what_is_not_waited_for(state: State, work: Work, problem: Problem) -> None:
    """Who got elsewhere what it needs is in no plan for all: what was still to be done for it is not paid for."""
    for id in problem.profiles:
        known = state.profiles[id]
        satisfied = {each for each in known.ledger.claims if state.standing.state(each) is Standing.SATISFIED}
        if satisfied:
            _take_back(state, work, known, satisfied)


def _lost(state: State, work: Work, problem: Problem, plan: Plan) -> set[str]:
    """Those for whom a profile was to be moved that is moved elsewhere now; another alternative of theirs is served."""
    found = set()
    for profile, target in plan.targets.items():
        point = point_at(problem.profiles[profile], target)
        for id in list(state.profiles[profile].ledger.claims):
            if id not in plan.adopted and not state.meets(id, point):
                release(state, work, id)
                if state.standing.state(id) is Standing.SATISFIABLE:
                    found.add(id)
    return found


def _whole(target: Target, held: Held, known: Known) -> Target:
    """A claim with the mode it relies on, where the publisher is in that for others only."""
    if target.mode or not known.ledger.mode or not held.expectation.needs.keys() & known.profile.moded.keys():
        return target
    return replace(target, mode=known.profile.mode)
