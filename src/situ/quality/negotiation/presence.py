"""Who is there: how expectations and profiles come in, become others, and go with all that was done for them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from situ.quality.match.satisfaction import Satisfaction as Standing
from situ.quality.match.satisfaction import capability_of
from situ.quality.model.declarations import Expectation, Point, Profile
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord, StepWork

# ── expectations ──


def put_expectations(state: NegotiatorState, work: StepWork, many: Iterable[ExpectationRecord]) -> None:
    """Expectations are there, are others, or are looked for elsewhere."""
    active = []
    for held in many:
        expectation = held.expectation
        _take_out_of_pools(state, held)
        state.by_subscription.setdefault(expectation.subscription, {})[expectation.id] = None
        if held.active:
            held.pools = state.pools_of(expectation)
            for pool in held.pools:
                state.by_pool.setdefault(pool, {})[expectation.id] = None
            active.append((expectation, held.pools))
            if expectation.publishers > 1:
                state.several.add(expectation.id)
            work.pools |= held.pools
        else:
            state.standing.drop_expectation(expectation.id)
            state.declined.discard(expectation.id)
        _touch(work, expectation)
    state.standing.put_many(expectations=active)


def put_expectation(state: NegotiatorState, work: StepWork, held: ExpectationRecord) -> None:
    put_expectations(state, work, (held,))


def drop_expectation(state: NegotiatorState, work: StepWork, id: str) -> None:
    """An expectation is gone, with all that was done for it."""
    held = state.expectations[id]
    release_claims(state, work, id)
    _take_out_of_pools(state, held)
    del state.expectations[id]
    state.standing.drop_expectation(id)
    state.declined.discard(id)
    state.set_alarm(("tell", id), None)
    mine = state.by_subscription[held.expectation.subscription]
    del mine[id]
    if not mine:
        del state.by_subscription[held.expectation.subscription]
    work.pools |= state.pools_of(held.expectation)
    work.keep_expectation(id)
    _touch(work, held.expectation)


def _touch(work: StepWork, expectation: Expectation) -> None:
    work.expectations.add(expectation.id)
    work.subscriptions.add(expectation.subscription)


def _take_out_of_pools(state: NegotiatorState, held: ExpectationRecord) -> None:
    for pool in held.pools:
        mine = state.by_pool[pool]
        del mine[held.expectation.id]
        if not mine:
            del state.by_pool[pool]
    held.pools = frozenset()
    state.several.discard(held.expectation.id)


def release_claims(state: NegotiatorState, work: StepWork, id: str) -> None:
    """Take back all claims of an expectation."""
    for profile in state.claimed.pop(id, ()):
        if profile in state.profiles and state.profiles[profile].ledger.release(id):
            work.advise.add(profile)
            work.keep_profile(profile)


# ── profiles ──


def drop_profile(state: NegotiatorState, work: StepWork, id: str) -> None:
    """A profile is gone; who had a claim on it looks elsewhere."""
    known = state.profiles.pop(id)
    give_up_claims(state, work, known)
    if id in state.limited and known.pool is not None:
        reconsider_reasons(state, work, known.pool)
    rematch_profile(state, work, known, None, None)
    state.gathered.forget(id)
    state.limited.discard(id)
    _forget_absent(state, id)
    for alarm in ("course", "usage"):
        state.set_alarm((alarm, id), None)
    work.keep_profile(id)


def note_presence(state: NegotiatorState, known: ProfileRecord) -> None:
    """What is declared for a publisher is a promise: it counts when its publisher is there."""
    id, publisher = known.profile.id, known.profile.publisher
    known.away = known.declared and not state.is_there(publisher)
    known.deaf = known.declared and publisher in state.heard and publisher not in state.here
    pool = state.pool_of(id)
    if known.away and pool is not None:
        state.absent.setdefault(pool, set()).add(id)
    else:
        _forget_absent(state, id)


def _forget_absent(state: NegotiatorState, id: str) -> None:
    pool = state.pool_of(id)
    if pool is not None and pool in state.absent:
        state.absent[pool].discard(id)
        if not state.absent[pool]:
            del state.absent[pool]


def give_up_claims(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    """Nothing that was claimed of a profile is to be had of it any more."""
    for each in known.ledger.claims:
        if each in state.claimed:
            state.claimed[each].discard(known.profile.id)
        if each in state.expectations:
            work.expectations.add(each)


def rematch_profile(
    state: NegotiatorState, work: StepWork, known: ProfileRecord, after: Profile | None, pool: str | None
) -> None:
    """A profile is matched as this from now on."""
    id, before = known.profile.id, known.effective
    if known.pool is not None and known.pool != pool:
        _put_in_pool(state, work, known.pool, id, before, None)
    if after is None or pool is None:
        changed = state.standing.drop_profile(id)
    else:
        changed = state.standing.put_profile(after, pool)
        _put_in_pool(state, work, pool, id, before if known.pool == pool else None, after)
    for each in changed if id in work.violating else ():
        if state.standing.state(each) is not Standing.SATISFIED:
            state.expectations[each].violated = True
            work.keep_expectation(each)
    work.expectations |= changed
    # What was under way for those who claim something, here or of others besides, may lead nowhere now.
    around = {each for each in state.several if state.expectations[each].pools & {known.pool, pool}}
    work.expectations |= {
        each
        for each in known.ledger.claims.keys() | around
        if each in state.expectations and state.standing.state(each) is not Standing.SATISFIED
    }
    work.pools |= {each for each in (known.pool, pool) if each is not None}
    known.effective, known.pool = after, pool
    work.advise.add(id)


def _put_in_pool(
    state: NegotiatorState, work: StepWork, pool: str, id: str, before: Profile | None, after: Profile | None
) -> None:
    """Note of whom a pool consists; who cannot be satisfied by it may have another reason now."""
    kinds = state.kinds.setdefault(pool, Counter())
    known = set(kinds)
    for profile, count in ((before, -1), (after, 1)):
        if profile is not None:
            kinds[profile.properties] += count
            if not kinds[profile.properties]:
                del kinds[profile.properties]
    mine = state.in_pool.setdefault(pool, {})
    if after is not None:
        mine[id] = after
    else:
        del mine[id]
    if not mine:
        del state.in_pool[pool], state.kinds[pool]
    if known != set(kinds):
        reconsider_reasons(state, work, pool)
    _note_shapes(state, work, pool, id, before, after)


def reconsider_reasons(state: NegotiatorState, work: StepWork, pool: str) -> None:
    """Those of a pool that are not satisfied may be so for another reason."""
    work.tell |= {id for id in state.by_pool.get(pool, ()) if state.standing.state(id) is not Standing.SATISFIED}


def _note_shapes(
    state: NegotiatorState, work: StepWork, pool: str, id: str, before: Profile | None, after: Profile | None
) -> None:
    """Find those whose events are shaped according to what this profile does."""
    if not state.in_force:
        return
    others = [each for other, each in state.in_pool.get(pool, {}).items() if other != id]
    points = [each.current() if each is not None else None for each in (before, after)]
    matters = _ShapeSensitivity(others, *points)
    for each in state.by_pool.get(pool, ()):
        expectation = state.expectations[each].expectation
        if state.in_force.get(expectation.subscription) == each and matters(expectation):
            work.subscriptions.add(expectation.subscription)


class _ShapeSensitivity:
    """Whether the stream of an expectation may have to be shaped otherwise, now that a profile is another."""

    def __init__(self, others: Sequence[Profile], before: Point | None, after: Point | None) -> None:
        self._others = others
        self._before, self._after = before, after
        self._best: dict[str, float] = {}

    def __call__(self, expectation: Expectation) -> bool:
        for id, need in expectation.needs.items():
            exceed = need.about.exceed
            if exceed == "allow":
                continue
            before, after = _value(self._before, id), _value(self._after, id)
            goal = need.about.goodness(need.goal)
            # As long as anybody does more than is useful, the stream is brought back to it.
            if exceed == "shape" and (before > goal) != (after > goal) and self._best_of_others(id) <= goal:
                return True
            if exceed == "use" and (before != after or self._changes(expectation)):
                return True
        return expectation.selected and self._changes(expectation)

    def _best_of_others(self, id: str) -> float:
        found = self._best.get(id)
        if found is None:
            known = (capability_of(each, id) for each in self._others)
            values = (each.about.goodness(each.cv) for each in known if each is not None)
            found = self._best[id] = max(values, default=-math.inf)
        return found

    def _changes(self, expectation: Expectation) -> bool:
        """Whether the profile satisfies an expectation that it did not, or the other way round."""
        met = [each is not None and expectation.is_met_by(each) for each in (self._before, self._after)]
        return met[0] != met[1]


def _value(point: Point | None, id: str) -> float:
    return -math.inf if point is None else point.get(id, -math.inf)
