"""Decisions of the negotiator: who is going to be satisfied and by whom, and which advice publishers get for it.

`decide` makes problems, has strategies solve them and adopts their plans as claims. `advise` and `relax` turn claims
into advice.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from types import MappingProxyType

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction as Standing
from situ.quality.model.allocation_problem import (
    STAY,
    AllocationPlan,
    AllocationProblem,
    Target,
    point_at,
    terms_between,
    terms_from,
    without_savings,
)
from situ.quality.model.declarations import DEFAULT, PARETO, Profile, Strategy
from situ.quality.negotiation.advice import SPACING, improves, lowers
from situ.quality.negotiation.feedback import Advice
from situ.quality.negotiation.inputs_and_effects import NotifyClient
from situ.quality.negotiation.presence import release_claims
from situ.quality.negotiation.state import DecisionCause, ExpectationRecord, NegotiatorState, ProfileRecord, StepWork

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Deciding. What was decided stays so until something happens to it. Only those are decided on whose state or means
# changed, and those that were declined where something may be possible now; so a change costs what it touches.
# ``pareto`` decides one expectation at a time and goes on from the plan so far; other strategies weigh all against each
# other, and get all that hangs together.
#
# A budget is for all that is in force by advice, against what publishers did by themselves: what was followed long ago
# counts as what is decided now. A plan gets what is left of it, and has to do with that as it is carried out: what it
# would save for nobody's sake nobody does. What is still to be done and has become too dear is decided on again.


def decide(state: NegotiatorState, work: StepWork) -> None:
    """Decide on all that are touched and could be satisfied."""
    _take_back_what_is_too_dear(state, work)
    undecided = {id for id in _considered(state, work) if _is_open(state, work, id)}
    for strategy, ids in _by_strategy(state, undecided):
        problem = _problem(state, strategy, ids)
        _adopt(state, work, problem, _plan(state, problem), ids)


def _considered(state: NegotiatorState, work: StepWork) -> set[str]:
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


def _lacks_budget(held: ExpectationRecord) -> bool:
    return held.refusal is not None and held.refusal.why == "budget"


def _is_open(state: NegotiatorState, work: StepWork, id: str) -> bool:
    """Whether there is something to decide; notes what is decided by itself."""
    held = state.expectations[id]
    stands = state.standing.state(id)
    if stands is Standing.SATISFIED and held.violated:
        held.violated = False
        work.keep_expectation(id)
    if stands is not Standing.SATISFIED and not is_pending(state, held):
        release_claims(state, work, id)
        if stands is Standing.SATISFIABLE:
            return True
    held.refusal = None
    state.declined.discard(id)
    return False


# ── what is under way ──


def is_pending(state: NegotiatorState, held: ExpectationRecord) -> bool:
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


def outstanding(state: NegotiatorState, known: ProfileRecord) -> Target:
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


def is_mode_needed(state: NegotiatorState, known: ProfileRecord) -> bool:
    """Whether somebody who claims a mode does not have what it needs in the current one."""
    assert known.effective is not None
    now = known.effective.current()
    return any(target.mode and not state.meets(id, now) for id, target in known.ledger.claims.items())


# ── problems ──


def _by_strategy(state: NegotiatorState, undecided: set[str]) -> list[tuple[Strategy, set[str]]]:
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


def strategy_of(state: NegotiatorState, held: ExpectationRecord) -> Strategy:
    types = {profile.type for pool in held.pools for profile in state.in_pool.get(pool, {}).values()}
    return state.quality.strategy_for(types.pop() if len(types) == 1 else DEFAULT)


def _problem(state: NegotiatorState, strategy: Strategy, undecided: set[str]) -> AllocationProblem:
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
    return AllocationProblem(
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


def _pools(state: NegotiatorState, expectations: Iterable[str]) -> set[str]:
    return {pool for id in expectations for pool in state.expectations[id].pools}


def _connected(state: NegotiatorState, pools: set[str]) -> set[str]:
    """All pools that hang together with these by expectations that can use either."""
    found, new = set(pools), set(pools)
    while new:
        more = _pools(state, {id for pool in new for id in state.by_pool.get(pool, ())})
        new = more - found
        found |= new
    return found


def _start(state: NegotiatorState, profiles: Mapping[str, Profile]) -> Mapping[str, Target]:
    """What was decided before and has not taken effect."""
    found = {}
    for id in profiles:
        known = state.profiles[id]
        if known.ledger.claims and (target := outstanding(state, known)):
            found[id] = target
    return found


def _in_force(state: NegotiatorState, strategy: Strategy, anew: Mapping[str, Profile]) -> Iterator[float]:
    """The summands of what all that is in force by advice of a strategy costs, against what publishers did by
    themselves. What is outstanding of those in ``anew`` is decided with the plan."""
    for id, known in state.profiles.items():
        profile, ledger = known.effective, known.ledger
        if profile is None or not ledger or strategy not in _advised_by(state, known):
            continue
        target = STAY if id in anew else outstanding(state, known)
        yield from terms_from(ledger.baseline, ledger.mode, profile, target, state.actions)


def _take_back_what_is_too_dear(state: NegotiatorState, work: StepWork) -> None:
    """Who does less by itself than when it was decided what it is to do has further to go, which costs more."""
    if all(each.budget is None for each in state.quality.strategies.values()):
        return
    for id in sorted(work.profiles & state.profiles.keys()):
        known = state.profiles[id]
        if known.effective is None or not outstanding(state, known):
            continue
        if any(_is_overdrawn(state, each) for each in _advised_by(state, known)):
            _take_back(state, work, known, known.ledger.claims.keys())


def _take_back(state: NegotiatorState, work: StepWork, known: ProfileRecord, claimants: Set[str]) -> None:
    """Nothing more is to be done by a profile for these than it does."""
    assert known.effective is not None
    now = known.effective.current()
    for id in [each for each in known.ledger.claims if each in claimants and not state.meets(each, now)]:
        known.ledger.release(id)
        state.claimed[id].discard(known.profile.id)
        work.expectations.add(id)
        work.advise.add(known.profile.id)
        work.keep_profile(known.profile.id)


def _is_overdrawn(state: NegotiatorState, strategy: Strategy) -> bool:
    return strategy.budget is not None and math.fsum(_in_force(state, strategy, {})) > strategy.budget


def _advised_by(state: NegotiatorState, known: ProfileRecord) -> list[Strategy]:
    """The strategies by which it was decided what a profile is to do."""
    strategies = state.quality.strategies
    if strategies.keys() <= {DEFAULT}:
        return [state.quality.strategy_for(DEFAULT)]
    claimants = [state.expectations[id] for id in known.ledger.claims if id in state.expectations]
    found = [strategy_of(state, each) for each in claimants]
    return found or [state.quality.strategy_for(known.profile.type)]


# ── what was decided ──


def _plan(state: NegotiatorState, problem: AllocationProblem) -> AllocationPlan:
    """A plan within the budget, as it is carried out. One that is so only by what it saves for nobody's sake is made
    again, with nothing to save."""
    plan = state.decide(problem)
    budget = problem.strategy.budget
    if budget is None or not plan.for_nobody or math.fsum(_done(problem, plan)) <= budget:
        return plan
    return state.decide(replace(problem, profiles={id: without_savings(each) for id, each in problem.profiles.items()}))


def _done(problem: AllocationProblem, plan: AllocationPlan) -> Iterator[float]:
    """The summands of what a plan costs, apart from what it does for nobody."""
    for id, target in plan.targets.items():
        idle = plan.for_nobody.get(id, STAY)
        values = {each: value for each, value in target.values.items() if each not in idle.values}
        done = Target(values=MappingProxyType(values), mode="" if idle.mode else target.mode)
        yield from terms_between(problem.profiles[id], done, problem.actions, problem.start.get(id, STAY))


def _adopt(
    state: NegotiatorState, work: StepWork, problem: AllocationProblem, plan: AllocationPlan, undecided: set[str]
) -> None:
    if problem.undecided is None:
        for expectation in problem.expectations:
            # Who is not in the plan any more loses to those who are.
            if expectation.id not in plan.adopted and state.standing.state(expectation.id) is Standing.SATISFIABLE:
                release_claims(state, work, expectation.id)
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
            release_claims(state, work, id)
        for claim in plan.adopted[id]:
            known = state.profiles[claim.profile]
            known.ledger.claim(known.profile, id, _whole(claim.target, held, known))
            state.claimed.setdefault(id, set()).add(claim.profile)
            work.advise.add(claim.profile)
            work.keep_profile(claim.profile)


def _take_back_what_is_not_waited_for(state: NegotiatorState, work: StepWork, problem: AllocationProblem) -> None:
    """Who got elsewhere what it needs is in no plan for all: what was still to be done for it is not paid for."""
    for id in problem.profiles:
        known = state.profiles[id]
        satisfied = {each for each in known.ledger.claims if state.standing.state(each) is Standing.SATISFIED}
        if satisfied:
            _take_back(state, work, known, satisfied)


def _lost(state: NegotiatorState, work: StepWork, problem: AllocationProblem, plan: AllocationPlan) -> set[str]:
    """Those for whom a profile was to be moved that is moved elsewhere now; another alternative of theirs is served."""
    found = set()
    for profile, target in plan.targets.items():
        point = point_at(problem.profiles[profile], target)
        for id in list(state.profiles[profile].ledger.claims):
            if id not in plan.adopted and not state.meets(id, point):
                release_claims(state, work, id)
                if state.standing.state(id) is Standing.SATISFIABLE:
                    found.add(id)
    return found


def _whole(target: Target, held: ExpectationRecord, known: ProfileRecord) -> Target:
    """A claim with the mode it relies on, where the publisher is in that for others only."""
    if target.mode or not known.ledger.mode or not held.expectation.needs.keys() & known.profile.moded.keys():
        return target
    return replace(target, mode=known.profile.mode)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Advising: what publishers are asked to do follows from their ledgers, and what they do from what they say or show.
# More is asked for at once, less after a minute of grace in which somebody else may want it. Nobody loses by that:
# whoever relies on what was raised for others claims it when they are gone.

GRACE = 60.0
"""Seconds from when something is no longer needed until it is no longer asked for."""


def advise(state: NegotiatorState, work: StepWork) -> None:
    """Ask for what is claimed, take back what nobody waits for any more, and plan to fall back."""
    for id in sorted(work.advise & state.profiles.keys()):
        known = state.profiles[id]
        known.ledger.settle(known.profile)
        _ask(state, work, known)
        _plan_relaxing(state, work, known)
        _wait(state, known, work.now)
        work.keep_profile(id)


def _ask(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    course = known.course
    wanted = outstanding(state, known)
    if course.open is not None:
        given = course.open.target
        if not (given.values.keys() & wanted.values.keys() or (given.mode and given.mode == wanted.mode)):
            notify_advice(state, work, known, course.withdraw(known.profile, _next(state, work, known)))
    if wanted and course.open is None and course.may_send(work.now):
        notify_advice(state, work, known, course.send(known.profile, wanted, work.now, _next(state, work, known)))


# ── falling back ──


def _excess(state: NegotiatorState, known: ProfileRecord) -> Target:
    """What is done and nobody needs."""
    if known.effective is None or known.course.open is not None:
        return STAY
    target = known.ledger.target(known.profile, state.meets)
    if target.mode and target.mode != known.profile.mode and is_mode_needed(state, known):
        target = replace(target, mode="")
    return lowers(target, known.profile)


def _plan_relaxing(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    if not _excess(state, known):
        known.course.relax_at = None
    elif known.course.relax_at is None:
        known.course.relax_at = work.now + GRACE


def relax(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    """The grace is over: let a publisher fall back to what is needed. It is taken to have done so at once."""
    known.course.relax_at = None
    target = _excess(state, known)
    for held in _relying(state, known, target):
        _claim_late(state, known, held)
        target = _excess(state, known)
    if target and known.effective is not None:
        before = known.profile
        notify_advice(state, work, known, known.course.relax(before, target, work.now, _next(state, work, known)))
        known.profile = profile_at_target(before, target)
        work.causes.add(state, DecisionCause(what="was told to fall back", profile=known.profile.id))
        known.estimate.restart(before, known.profile, state.mark)
        known.violated = known.estimate.violations(known.profile)
        work.profiles.add(known.profile.id)
    work.advise.add(known.profile.id)
    work.keep_profile(known.profile.id)


def _relying(state: NegotiatorState, known: ProfileRecord, target: Target) -> list[ExpectationRecord]:
    """Those in force that have what they need of this profile alone, and would not after it fell back."""
    if not target or known.effective is None:
        return []
    # By what is declared: a mode that it is not expected to take on advice it can still go back to.
    after = point_at(known.profile, target)
    moved = (*target.values, *(known.profile.moded if target.mode else ()))
    less = {**known.effective.current(), **{id: after[id] for id in moved}}
    found = []
    for id in state.by_pool.get(known.pool or "", ()):
        held = state.expectations[id]
        if state.in_force.get(held.expectation.subscription) != id or held.expectation.is_met_by(less):
            continue
        now, _ = state.standing.candidates(id)
        if known.profile.id in now and len(now) <= held.expectation.publishers:
            found.append(held)
    return sorted(found, key=lambda each: each.expectation.order)


def _claim_late(state: NegotiatorState, known: ProfileRecord, held: ExpectationRecord) -> None:
    needs = held.expectation.needs
    values = {id: needs[id].floor for id in known.ledger.baseline if id in needs}
    mode = known.profile.mode if known.ledger.mode and needs.keys() & known.profile.moded.keys() else ""
    target = Target(values=MappingProxyType(values), mode=mode)
    known.ledger.claim(known.profile, held.expectation.id, target)
    state.claimed.setdefault(held.expectation.id, set()).add(known.profile.id)


def profile_at_target(profile: Profile, target: Target) -> Profile:
    """A profile that does what a target says."""
    capabilities = {
        id: replace(each, cv=target.values[id]) if id in target.values else each
        for id, each in profile.capabilities.items()
    }
    return replace(profile, capabilities=MappingProxyType(capabilities), mode=target.mode or profile.mode)


# ── what becomes of advice ──


def note_followed_advice(state: NegotiatorState, work: StepWork) -> None:
    """Find out which advice has been followed."""
    for id in work.profiles & state.profiles.keys():
        known = state.profiles[id]
        if known.course.open is None or known.effective is None:
            continue
        target = known.course.open.target
        if reaches_target(known.effective, target):
            known.course.took_effect(known.profile if reaches_target(known.profile, target) else None)
            work.advise.add(id)
            work.keep_profile(id)


def reaches_target(profile: Profile, target: Target) -> bool:
    """Whether a profile does at least what a target says."""
    now = profile.current()
    if target.mode and all(each.name != target.mode for each in profile.modes):
        return False
    if not target.values.keys() <= profile.capabilities.keys():
        return False  # it has become a matter of modes since, or is not there any more
    wanted = point_at(profile, target)
    asked = (*target.values, *(profile.moded if target.mode and target.mode != profile.mode else ()))
    return all(now[id] >= wanted[id] for id in asked)


def _wait(state: NegotiatorState, known: ProfileRecord, now: float) -> None:
    """Come back when something is due."""
    course, at = known.course, known.course.next_time()
    if course.open is None and course.last is not None and outstanding(state, known):
        at = min(course.last + SPACING, at if at is not None else course.last + SPACING)
    state.set_alarm(("course", known.profile.id), at)


def notify_advice(state: NegotiatorState, work: StepWork, known: ProfileRecord, advice: Advice) -> None:
    work.tells.append(NotifyClient(client=known.profile.publisher, kind="pub", id=advice.id, message=advice))
    work.keep_profile(known.profile.id)


def _next(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> int:
    return state.next_number(known.profile.publisher, work.now)
