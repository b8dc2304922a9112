"""The negotiator of one zone: a state machine without I/O. `step` takes what happened and gives what to do.

`take_measurements` takes in what engines measured, `propagate` draws all consequences of a step, `new_state` and `step`
are the machine. Expectations are matched against effective profiles, satisfiable ones decided on by a strategy; what is
approved becomes a claim in the ledger of a profile, and the difference between claims and what a publisher does becomes
advice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.quality.allocation.strategies import BUILT_IN_STRATEGIES
from situ.quality.match.satisfaction import Satisfaction as Standing
from situ.quality.match.satisfaction import capability_of
from situ.quality.measurement.estimator import ADDED, ValueShift
from situ.quality.measurement.panes import LONGEST, WINDOW, Pane
from situ.quality.model.allocation_problem import AllocationPlan, AllocationProblem, Decide
from situ.quality.model.declarations import PARETO, Expectation
from situ.quality.model.shapes import Shape
from situ.quality.negotiation.apply_deployment import (
    client_connected,
    client_left,
    deploy,
    drop_unowned,
    publisher_active,
)
from situ.quality.negotiation.calls import provide, register, reply_to, resume, retract, revise, revoke, suspend, update
from situ.quality.negotiation.decide import advise, decide, note_followed_advice, relax
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    DeployedQuality,
    Effect,
    Gone,
    Input,
    Measured,
    NotifyClient,
    Providing,
    Registering,
    Restored,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    ShapesChanged,
    StoreValues,
    Suspending,
    Tick,
    Updating,
    Wake,
)
from situ.quality.negotiation.notify import AT_ONCE, NEXT_LOT, notify_states, notify_usage, review_usage
from situ.quality.negotiation.persistence import restore_values, values_to_store
from situ.quality.negotiation.presence import put_expectations, reconsider_reasons, rematch_profile
from situ.quality.negotiation.state import STARTED, DecisionCause, NegotiatorState, ProfileRecord, StepWork, causes_of
from situ.quality.shaping.derive_shape import ShapeInputs, shape_in_force, shape_of_none

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Measurements: who does otherwise than it says, and who did as it was advised.


def take_measurements(state: NegotiatorState, work: StepWork, given: Measured) -> None:
    panes = tuple(_not_ahead(given.panes, round(work.now * 1_000_000)))
    state.gathered.add(panes)
    latest = (each.last for each in panes if each.last is not None)
    state.mark = max(given.until, *latest, state.mark if state.mark is not None else given.until)
    by_profile: dict[str, list[Pane]] = {}
    for pane in panes:
        by_profile.setdefault(pane.profile, []).append(pane)
        if pane.events and pane.last is not None:
            publisher_active(state, work, pane.publisher, pane.last)
    for id, known in state.profiles.items():
        if known.effective is not None:
            known.estimate.hear(by_profile.get(id, ()))
            moves = known.estimate.observe(known.profile, state.gathered, given.until)
            _confirm(work, known)
            if moves:
                _correct(state, work, known, moves)
            elif known.course.is_late(work.now, state.mark):
                state.set_alarm(("course", id), work.now)
    state.gathered.prune(given.until - LONGEST - WINDOW)
    _loosen(state, work)


def _not_ahead(panes: Iterable[Pane], now: int) -> Iterator[Pane]:
    """Panes as somebody saw them whose clock is right: no event is later than now, whatever its publisher says, and
    what is further ahead than any window is long would not be looked at before it is forgotten."""
    for pane in panes:
        if pane.start <= now + LONGEST:
            yield pane if pane.last is None or pane.last <= now else replace(pane, last=now)


def _correct(state: NegotiatorState, work: StepWork, known: ProfileRecord, moves: tuple[ValueShift, ...]) -> None:
    id = known.profile.id
    before, known.violated = known.violated, known.estimate.violations(known.profile)
    if known.violated != before:
        work.usage.add(id)
    for move in moves:
        work.causes.add(state, DecisionCause(what=f"was measured to have {_shown(known, move)}", profile=id))
        if not move.worse:
            continue
        work.violating.add(id)
        work.usage.add(id)
        if move.property in known.course.unproven:
            # It said that it had done as advised, and has not.
            known.course.limits[move.property] = move.after
            known.course.unproven = {}
            known.course.come_to_nothing(work.now)
    work.profiles.add(id)
    work.keep_profile(id)


def _shown(known: ProfileRecord, move: ValueShift) -> str:
    capability = capability_of(known.profile, move.property)
    about = ADDED[move.property] if capability is None else capability.about
    return f"{move.property} {about.shown(move.after)}"


def _confirm(work: StepWork, known: ProfileRecord) -> None:
    """Somebody does what it said it does on advice."""
    course = known.course
    if course.unproven and course.unproven.keys() & known.estimate.confirmed:
        course.unproven = {id: each for id, each in course.unproven.items() if id not in known.estimate.confirmed}
        if not course.unproven:
            course.failures = 0
        work.keep_profile(known.profile.id)


def _loosen(state: NegotiatorState, work: StepWork) -> None:
    """Where events no longer come evenly, one of each slot may be too few: such subscriptions are looked at again."""
    for subscription, shape in state.shapes.items():
        if _has_slots(shape) and subscription in state.in_force:
            expectation = state.expectations[state.in_force[subscription]].expectation
            if expectation.needs["rate"].floor > 0:
                work.subscriptions.add(subscription)


def _has_slots(shape: Shape) -> bool:
    return shape.thin is not None and shape.thin.limits[-1].form == "slot"


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Consequences of a change: match, see who did as advised, decide, advise, shape, tell. Only what a change touches is
# looked at. Each part hands on to the next what it found to be different; none goes back to one before it, so a step
# ends.


def propagate(state: NegotiatorState, work: StepWork) -> None:
    """Draw all consequences."""
    _match_profiles(state, work)
    note_followed_advice(state, work)
    decide(state, work)
    advise(state, work)
    _put_in_force(state, work)
    _shape(state, work)
    notify_states(state, work)
    notify_usage(state, work)
    for pool in work.pools:
        if pool in state.in_pool:
            state.stirred[pool] = work.now
        else:
            state.stirred.pop(pool, None)


# ── matching ──


def _match_profiles(state: NegotiatorState, work: StepWork) -> None:
    for id in sorted(work.profiles & state.profiles.keys()):
        known = state.profiles[id]
        after, pool = state.as_matched(known), state.pool_of(id)
        if known.course.holds_back != (id in state.limited):
            state.limited ^= {id}
            if pool is not None:
                reconsider_reasons(state, work, pool)
        if after != known.effective or pool != known.pool:
            rematch_profile(state, work, known, after, pool if after is not None else None)


# ── in force ──


def _put_in_force(state: NegotiatorState, work: StepWork) -> None:
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


def _shape(state: NegotiatorState, work: StepWork) -> None:
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


def _shape_of(state: NegotiatorState, subscription: str, before: Shape | None) -> Shape | None:
    id = state.in_force.get(subscription)
    if id is None:
        return shape_of_none(next((each.expectation for each in state.alternatives(subscription)), None))
    expectation = state.expectations[id].expectation
    return shape_in_force(expectation, shape_inputs(state, expectation), before)


def shape_inputs(state: NegotiatorState, expectation: Expectation) -> ShapeInputs:
    """What the shape of a subscription depends on besides its expectation in force."""
    wanted = expectation.selected or any(need.about.exceed != "allow" for need in expectation.needs.values())
    if not wanted:
        return ShapeInputs(mark=state.mark)
    profiles = [each for pool in sorted(state.pools_of(expectation)) for each in state.in_pool.get(pool, {}).values()]
    satisfying = frozenset(state.standing.candidates(expectation.id)[0])
    gaps = {each: gap for each in satisfying if (gap := state.profiles[each].estimate.gap) is not None}
    return ShapeInputs(profiles=profiles, satisfying=satisfying, gaps=gaps, mark=state.mark)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The machine. ``step`` is total: whatever is unknown, stale or not allowed changes nothing and is answered where
# somebody waits for an answer. Nothing in here reads a clock or draws a number, so the same inputs give the same
# effects. Each step keeps what it changes before it tells anybody, in one piece.


def new_state(named: Mapping[str, Decide] = BUILT_IN_STRATEGIES) -> NegotiatorState:
    """A negotiator that knows nothing yet, with strategies by their names.

    It begins with :class:`Restored` and :class:`DeployedQuality`, in any order; what comes before is not heard. Where a
    strategy fails, or is not there, ``pareto`` decides.
    """

    def decide(problem: AllocationProblem) -> AllocationPlan:
        chosen = named.get(problem.strategy.name, named[PARETO])
        if chosen is named[PARETO]:
            return chosen(problem)
        try:
            return chosen(problem)
        except Exception:  # noqa: BLE001 - strategies of packages may do anything; nobody waits for them to be mended
            return named[PARETO](problem)

    return NegotiatorState(decide=decide)


def step(state: NegotiatorState, given: Input, now: float) -> tuple[Effect, ...]:
    """What follows from an input. The state is the machine's own and changed in place."""
    work = StepWork(now=now)
    if isinstance(given, Restored | DeployedQuality) and not state.begun:
        _begin(state, work, given)
    elif state.begun:
        work.causes = causes_of(state, given)
        try:
            _STEPS[type(given)](state, work, given)
        except SituError as error:
            # Only calls are refused, and every call has a ticket.
            reply_to(work, given.ticket, error.problems[0])  # type: ignore[union-attr, arg-type]
    if state.begun:
        propagate(state, work)
    return tuple(_effects(state, work))


def _effects(state: NegotiatorState, work: StepWork) -> Iterator[Effect]:
    if values := values_to_store(state, work):
        yield StoreValues(values=values)
    if work.shaped:
        yield ShapesChanged(shapes=work.shaped)
    yield from work.tells
    yield from work.replies
    at = state.next_alarm()
    if at != state.woken:
        state.woken = at
        yield Wake(at=at)


# ── beginning ──


def _begin(state: NegotiatorState, work: StepWork, given: Restored | DeployedQuality) -> None:
    if isinstance(given, Restored):
        state.restored = given
    else:
        state.deployed = given
    if state.restored is None or state.deployed is None:
        return
    kept, deployed, state.number = state.restored.kept, state.deployed, state.restored.number
    state.begun, state.restored = True, Restored()
    work.causes.add(state, DecisionCause(what=STARTED))
    lost = restore_values(state, kept, deployed.quality.known)
    state.base = state.number
    # Whoever was told something last may not have heard it; the same goes for shapes.
    work.tells += state.told
    work.shaped |= dict.fromkeys(state.unshaped)
    for id, held in lost:
        drop_unowned(state, work, id, held)
    work.shaped |= state.shapes
    deploy(state, work, deployed, first=True)
    put_expectations(state, work, list(state.expectations.values()))
    work.profiles |= state.profiles.keys()
    work.advise |= state.profiles.keys()
    for pool in {state.pool_of(id) for id in state.profiles} - {None}:
        state.set_alarm(("usages", str(pool)), work.now + 1.0)


# ── what happens ──


def _deployed(state: NegotiatorState, work: StepWork, given: DeployedQuality) -> None:
    deploy(state, work, given)


def _restored(state: NegotiatorState, work: StepWork, given: Restored) -> None:
    """It has begun: what was kept is known."""


def _answered(state: NegotiatorState, work: StepWork, given: Answered) -> None:
    known = state.profiles.get(given.advice.rpartition("#")[0])
    course = known.course if known is not None and known.profile.publisher == given.client else None
    if known is not None and course is not None and course.open is not None and course.open.id == given.advice:
        if given.verdict == "accepted":
            course.accept(work.now, state.mark)
        elif given.verdict == "refused":
            course.refuse(known.profile, given.values)
        else:
            course.fail(known.profile, given.values, work.now)
        _look_at(work, known)
    if given.ticket is not None:
        reply_to(work, given.ticket, None)


def _look_at(work: StepWork, known: ProfileRecord) -> None:
    work.profiles.add(known.profile.id)
    work.advise.add(known.profile.id)
    work.expectations |= known.ledger.claims.keys()
    work.keep_profile(known.profile.id)


def _tick(state: NegotiatorState, work: StepWork, given: Tick) -> None:
    looked_at = 0
    for kind, id in state.due(work.now):
        if kind == "tell":
            work.tell.add(id)
        elif kind == "course":
            _course(state, work, state.profiles[id])
        elif kind == "usages":
            for profile in state.in_pool.get(id, ()):
                state.set_alarm(("usage", profile), work.now + NEXT_LOT)
        elif looked_at < AT_ONCE:
            looked_at += 1
            review_usage(state, work, id)
        else:
            state.set_alarm((kind, id), work.now + NEXT_LOT)
    state.woken = None


def _course(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    """Time has passed for a publisher: to answer, to show what it accepted, to rest, to fall back."""
    course, now = known.course, work.now
    if course.until is not None and now >= course.until:
        course.thaw()
        work.causes.add(state, DecisionCause(what="may be asked again", profile=known.profile.id))
    if course.open is not None and course.open.status == "sent" and now >= course.deadline:
        if course.open.repeated:
            course.expire(now)
            work.causes.add(state, DecisionCause(what="did not answer an advice", profile=known.profile.id))
        else:
            again = course.send_again(known.profile, now, state.next_number(known.profile.publisher, now))
            work.tells.append(NotifyClient(client=known.profile.publisher, kind="pub", id=again.id, message=again))
    elif course.is_late(now, state.mark):
        course.fail(known.profile, known.estimate.measured, now)
        work.causes.add(state, DecisionCause(what="did not do what it had accepted", profile=known.profile.id))
    if course.relax_at is not None and now >= course.relax_at:
        relax(state, work, known)
    _look_at(work, known)


def _gone(state: NegotiatorState, work: StepWork, given: Gone) -> None:
    client_left(state, work, given.client)


def _came(state: NegotiatorState, work: StepWork, given: Came) -> None:
    client_connected(state, work, given.client)


_STEPS: Mapping[type[Input], Callable[[NegotiatorState, StepWork, Any], None]] = {
    Restored: _restored,
    DeployedQuality: _deployed,
    Registering: register,
    Updating: update,
    Suspending: suspend,
    Resuming: resume,
    Revoking: revoke,
    Providing: provide,
    Revising: revise,
    Retracting: retract,
    Answered: _answered,
    Measured: take_measurements,
    Gone: _gone,
    Came: _came,
    Tick: _tick,
}
