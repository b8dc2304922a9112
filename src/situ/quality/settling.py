"""What follows when something has changed: match, see who did as advised, decide, advise, shape, tell.

Only what a change touches is looked at. Each part hands on to the next what it found to be different; none goes back to
one before it, so a step ends.
"""

from __future__ import annotations

from situ.quality.advising import advise, see_effect
from situ.quality.deciding import decide
from situ.quality.expectation import Expectation
from situ.quality.matching import State as Standing
from situ.quality.presence import match, reconsider_reasons
from situ.quality.shape import Shape
from situ.quality.shaping_plan import Surroundings, shape_in_force, shape_of_none
from situ.quality.state import State
from situ.quality.telling import tell_states, tell_usage
from situ.quality.work import Work


def settle(state: State, work: Work) -> None:
    """Draw all consequences."""
    _match_profiles(state, work)
    see_effect(state, work)
    decide(state, work)
    advise(state, work)
    _put_in_force(state, work)
    _shape(state, work)
    tell_states(state, work)
    tell_usage(state, work)
    for pool in work.pools:
        if pool in state.in_pool:
            state.stirred[pool] = work.now
        else:
            state.stirred.pop(pool, None)


# ── matching ──


def _match_profiles(state: State, work: Work) -> None:
    for id in sorted(work.profiles & state.profiles.keys()):
        known = state.profiles[id]
        after, pool = state.as_matched(known), state.pool_of(id)
        if known.course.holds_back != (id in state.limited):
            state.limited ^= {id}
            if pool is not None:
                reconsider_reasons(state, work, pool)
        if after != known.effective or pool != known.pool:
            match(state, work, known, after, pool if after is not None else None)


# ── in force ──


def _put_in_force(state: State, work: Work) -> None:
    """Of the alternatives of a subscription the best that is satisfied is in force."""
    for id in work.expectations & state.expectations.keys():
        work.subscriptions.add(state.expectations[id].expectation.subscription)
        work.tell.add(id)
    for subscription in work.subscriptions:
        satisfied = (
            each.expectation.id
            for each in state.alternatives(subscription)
            if state.standing.state(each.expectation.id) is Standing.SATISFIED
        )
        best = next(satisfied, None)
        if best == state.in_force.get(subscription):
            continue
        if best is None:
            del state.in_force[subscription]
        else:
            state.in_force[subscription] = best
        work.tell.update(state.by_subscription.get(subscription, ()))
        for pool in state.relevance.relevant.get(subscription, ()):
            if pool in state.in_pool:
                state.stirred[pool] = work.now
                if ("usages", pool) not in state.times:
                    state.set_alarm(("usages", pool), work.now + 1.0)


# ── shapes ──


def _shape(state: State, work: Work) -> None:
    for subscription in work.subscriptions:
        before = state.shapes.get(subscription)
        after = _shape_of(state, subscription, before)
        if after == before:
            continue
        work.shaped[subscription] = after
        work.keep.add(f"shape/{subscription}")
        if after is None:
            del state.shapes[subscription]
        else:
            state.shapes[subscription] = after


def _shape_of(state: State, subscription: str, before: Shape | None) -> Shape | None:
    id = state.in_force.get(subscription)
    if id is None:
        return shape_of_none(next((each.expectation for each in state.alternatives(subscription)), None))
    expectation = state.expectations[id].expectation
    return shape_in_force(expectation, surroundings(state, expectation), before)


def surroundings(state: State, expectation: Expectation) -> Surroundings:
    """What the shape of a subscription depends on besides its expectation in force."""
    wanted = expectation.selected or any(need.about.exceed != "allow" for need in expectation.needs.values())
    if not wanted:
        return Surroundings(mark=state.mark)
    profiles = [each for pool in sorted(state.pools_of(expectation)) for each in state.in_pool.get(pool, {}).values()]
    satisfying = frozenset(state.standing.candidates(expectation.id)[0])
    gaps = {each: gap for each in satisfying if (gap := state.profiles[each].estimate.gap) is not None}
    return Surroundings(profiles=profiles, satisfying=satisfying, gaps=gaps, mark=state.mark)
