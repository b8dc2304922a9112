"""The negotiator: a state machine without I/O, for one zone.

``step`` takes what happened and gives what to do. It is total: whatever is unknown, stale or not allowed changes
nothing and is answered where somebody waits for an answer. Nothing in here reads a clock or draws a number, so the same
inputs give the same effects. Each step keeps what it changes before it tells anybody, in one piece.

Expectations are matched against effective profiles, satisfiable ones decided on by a strategy; what is approved becomes
a claim in the ledger of a profile, and the difference between claims and what a publisher does becomes advice. What was
decided stays so until something happens to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from situ.errors import SituError
from situ.quality.advising import relax
from situ.quality.calling import (
    answered,
    provide,
    register,
    resume,
    retract,
    revise,
    revoke,
    suspend,
    update,
)
from situ.quality.causes import STARTED, Cause, causes_of
from situ.quality.declared import PARETO
from situ.quality.deploying import came, deploy, disown, left
from situ.quality.effects import Effect, Keep, Shaped, Tell, Wake
from situ.quality.inputs import (
    Answered,
    Came,
    Deployed,
    Gone,
    Input,
    Measured,
    Providing,
    Registering,
    Restored,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Tick,
    Updating,
)
from situ.quality.keeping import kept_values, take_up
from situ.quality.measuring import measured
from situ.quality.presence import put_expectations
from situ.quality.problem import Decide, Plan, Problem
from situ.quality.settling import settle
from situ.quality.state import Known, State
from situ.quality.strategies.named import NAMED
from situ.quality.telling import AT_ONCE, NEXT_LOT, review_usage
from situ.quality.work import Work


def new_state(named: Mapping[str, Decide] = NAMED) -> State:
    """A negotiator that knows nothing yet, with strategies by their names.

    It begins with :class:`Restored` and :class:`Deployed`, in any order; what comes before is not heard. Where a
    strategy fails, or is not there, ``pareto`` decides.
    """

    def decide(problem: Problem) -> Plan:
        chosen = named.get(problem.strategy.name, named[PARETO])
        if chosen is named[PARETO]:
            return chosen(problem)
        try:
            return chosen(problem)
        except Exception:  # noqa: BLE001 - strategies of packages may do anything; nobody waits for them to be mended
            return named[PARETO](problem)

    return State(decide=decide)


def step(state: State, given: Input, now: float) -> tuple[Effect, ...]:
    """What follows from an input. The state is the machine's own and changed in place."""
    work = Work(now=now)
    if isinstance(given, Restored | Deployed) and not state.begun:
        _begin(state, work, given)
    elif state.begun:
        work.causes = causes_of(state, given)
        try:
            _STEPS[type(given)](state, work, given)
        except SituError as error:
            # Only calls are refused, and every call has a ticket.
            answered(work, given.ticket, error.problems[0])  # type: ignore[union-attr, arg-type]
    if state.begun:
        settle(state, work)
    return tuple(_effects(state, work))


def _effects(state: State, work: Work) -> Iterator[Effect]:
    if values := kept_values(state, work):
        yield Keep(values=values)
    if work.shaped:
        yield Shaped(shapes=work.shaped)
    yield from work.tells
    yield from work.replies
    at = state.next_alarm()
    if at != state.woken:
        state.woken = at
        yield Wake(at=at)


# ── beginning ──


def _begin(state: State, work: Work, given: Restored | Deployed) -> None:
    if isinstance(given, Restored):
        state.restored = given
    else:
        state.deployed = given
    if state.restored is None or state.deployed is None:
        return
    kept, deployed, state.number = state.restored.kept, state.deployed, state.restored.number
    state.begun, state.restored = True, Restored()
    work.causes.add(state, Cause(what=STARTED))
    lost = take_up(state, kept, deployed.quality.known)
    state.base = state.number
    # Whoever was told something last may not have heard it; the same goes for shapes.
    work.tells += state.told
    work.shaped |= dict.fromkeys(state.unshaped)
    for id, held in lost:
        disown(state, work, id, held)
    work.shaped |= state.shapes
    deploy(state, work, deployed, first=True)
    put_expectations(state, work, list(state.expectations.values()))
    work.profiles |= state.profiles.keys()
    work.advise |= state.profiles.keys()
    for pool in {state.pool_of(id) for id in state.profiles} - {None}:
        state.set_alarm(("usages", str(pool)), work.now + 1.0)


# ── what happens ──


def _deployed(state: State, work: Work, given: Deployed) -> None:
    deploy(state, work, given)


def _restored(state: State, work: Work, given: Restored) -> None:
    """It has begun: what was kept is known."""


def _answered(state: State, work: Work, given: Answered) -> None:
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
        answered(work, given.ticket, None)


def _look_at(work: Work, known: Known) -> None:
    work.profiles.add(known.profile.id)
    work.advise.add(known.profile.id)
    work.expectations |= known.ledger.claims.keys()
    work.keep_profile(known.profile.id)


def _tick(state: State, work: Work, given: Tick) -> None:
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


def _course(state: State, work: Work, known: Known) -> None:
    """Time has passed for a publisher: to answer, to show what it accepted, to rest, to fall back."""
    course, now = known.course, work.now
    if course.until is not None and now >= course.until:
        course.thaw()
        work.causes.add(state, Cause(what="may be asked again", profile=known.profile.id))
    if course.open is not None and course.open.status == "sent" and now >= course.deadline:
        if course.open.repeated:
            course.expire(now)
            work.causes.add(state, Cause(what="did not answer an advice", profile=known.profile.id))
        else:
            again = course.send_again(known.profile, now, state.next_number(known.profile.publisher, now))
            work.tells.append(Tell(client=known.profile.publisher, kind="pub", id=again.id, message=again))
    elif course.is_late(now, state.mark):
        course.fail(known.profile, known.estimate.measured, now)
        work.causes.add(state, Cause(what="did not do what it had accepted", profile=known.profile.id))
    if course.relax_at is not None and now >= course.relax_at:
        relax(state, work, known)
    _look_at(work, known)


def _gone(state: State, work: Work, given: Gone) -> None:
    left(state, work, given.client)


def _came(state: State, work: Work, given: Came) -> None:
    came(state, work, given.client)


_STEPS: Mapping[type[Input], Callable[[State, Work, Any], None]] = {
    Restored: _restored,
    Deployed: _deployed,
    Registering: register,
    Updating: update,
    Suspending: suspend,
    Resuming: resume,
    Revoking: revoke,
    Providing: provide,
    Revising: revise,
    Retracting: retract,
    Answered: _answered,
    Measured: measured,
    Gone: _gone,
    Came: _came,
    Tick: _tick,
}
