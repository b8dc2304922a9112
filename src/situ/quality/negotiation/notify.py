"""Telling: which message follows from how things stand, to whom, and not too often.

A subscriber hears of a change at once, and then at most once a second of the same expectation: the latest. A publisher
hears within a second that a profile is used or no longer is, each minute by whom while it is used, and at once that it
was found to do less than it says. What is not used hears nothing more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from situ.lang.records import replace
from situ.quality.match.satisfaction import Satisfaction as Standing
from situ.quality.match.satisfaction import reasons
from situ.quality.model.declarations import Profile, QualityProperty
from situ.quality.negotiation.decide import is_pending
from situ.quality.negotiation.feedback import Reason, StateChange, Usage, Value, Why
from situ.quality.negotiation.inputs_and_effects import NotifyClient
from situ.quality.negotiation.state import (
    ExpectationDecision,
    ExpectationRecord,
    NegotiatorState,
    ProfileRecord,
    StepWork,
)

SPACING = 1.0
"""Seconds between two messages about one expectation."""
MINUTE = 60.0
AT_ONCE = 100
"""Profiles whose use is worked out in one step; others wait for the next."""
NEXT_LOT = 0.1


# ── to subscribers ──


def notify_states(state: NegotiatorState, work: StepWork) -> None:
    for id in sorted(work.tell & state.expectations.keys(), key=lambda id: state.expectations[id].expectation.order):
        held = state.expectations[id]
        if held.active:
            _tell_state(state, work, held)


def _tell_state(state: NegotiatorState, work: StepWork, held: ExpectationRecord) -> None:
    id = held.expectation.id
    state.set_alarm(("tell", id), None)
    now = state_of(state, held)
    _note_decided(state, work, held, now)
    if held.told is not None and _gist(now) == _gist(held.told):
        return
    if held.told_at is not None and work.now < held.told_at + SPACING:
        state.set_alarm(("tell", id), held.told_at + SPACING)
        return
    number = state.next_number(held.expectation.client, work.now)
    since = held.told.since if held.told is not None and held.told.state == now.state else work.now
    held.told = replace(now, number=number, since=since, reasons=_reasons(state, held, now))
    held.told_at = work.now
    work.tells.append(NotifyClient(client=held.expectation.client, kind="sub", id=id, message=held.told))
    work.keep_expectation(id)


def _note_decided(state: NegotiatorState, work: StepWork, held: ExpectationRecord, now: StateChange) -> None:
    """After what it stands as it does. What was decided again as it was before changes nothing."""
    refused = ("", "") if held.refusal is None else (held.refusal.why, held.refusal.profile)
    claimed = sorted(state.claimed.get(now.expectation, ())) if now.why == "adapting" else ()
    outcome = (str(now.version), now.state, now.why, *refused, *claimed)
    if held.told is None or held.decided is None or held.decided.outcome != outcome:
        held.decided = ExpectationDecision(outcome=outcome, at=work.now, cause=work.causes.concerning(state, held))
        work.keep_expectation(now.expectation)


def _gist(change: StateChange) -> tuple[object, ...]:
    """What makes it worth telling: values that change while nothing follows from them are not."""
    return change.version, change.state, change.why, change.in_force


def state_change_of(state: NegotiatorState, id: str) -> StateChange:
    """How an expectation stands now, with reasons, for somebody who asks."""
    held = state.expectations[id]
    found = state_of(state, held)
    since = held.told.since if held.told is not None and held.told.state == found.state else 0.0
    return replace(found, since=since, reasons=_reasons(state, held, found))


def state_of(state: NegotiatorState, held: ExpectationRecord) -> StateChange:
    """How an expectation stands, without reasons."""
    expectation = held.expectation
    satisfied = held.active and state.standing.state(expectation.id) is Standing.SATISFIED
    return StateChange(
        expectation=expectation.id,
        version=expectation.version,
        number=state.last_number(expectation.client),
        state="satisfied" if satisfied else "unsatisfied",
        why="" if satisfied else _why(state, held),
        in_force=state.in_force.get(expectation.subscription),
        absent=0 if satisfied else sum(len(state.absent.get(pool, ())) for pool in held.pools),
    )


def _why(state: NegotiatorState, held: ExpectationRecord) -> Why:
    wanted = held.expectation.needs.keys()
    kinds = [state.kinds[pool] for pool in held.pools if pool in state.kinds]
    if not kinds:
        return "no-publisher"
    if held.violated:
        return "violated"
    if is_pending(state, held):
        return "adapting"
    if held.expectation.id in state.declined or _is_held_back(state, held):
        return "declined"
    return "out-of-reach" if any(wanted <= each for some in kinds for each in some) else "missing"


def _is_held_back(state: NegotiatorState, held: ExpectationRecord) -> bool:
    """Whether somebody could by what it declares, but would not."""
    for id in state.limited:
        known = state.profiles[id]
        if known.pool in held.pools and any(held.expectation.is_met_by(point) for point in known.profile.reach()):
            return True
    return False


def _reasons(state: NegotiatorState, held: ExpectationRecord, change: StateChange) -> tuple[Reason, ...]:
    if change.state == "satisfied" or not held.active:
        return ()
    id = held.expectation.id
    several = held.expectation.publishers > 1
    profiles: Iterable[Profile] = state.standing.leading(id)
    if several:
        profiles = map(state.standing.profile, state.standing.relevant(id))
    return tuple(
        Reason(
            property=each.about.id,
            current=_written(each.about, each.current),
            reachable=_written(each.about, each.reachable),
        )
        for each in reasons(held.expectation, profiles)
    )


def _written(about: QualityProperty, value: float | None) -> Value | None:
    """In the form of messages, in which there are no infinities."""
    return None if value is None or not math.isfinite(value) else about.written(value)


# ── to publishers ──


def notify_usage(state: NegotiatorState, work: StepWork) -> None:
    for id in sorted(work.usage & state.profiles.keys()):
        _tell_usage(state, work, state.profiles[id])


def review_usage(state: NegotiatorState, work: StepWork, id: str) -> None:
    """Tell how a profile is used, if it is time."""
    known = state.profiles[id]
    last, before = known.told_at, known.told or Usage(profile=id, number=0)
    if last is not None and _is_as_told(state, known, last):
        now = before
    else:
        now = usage_of(state, known)
    changed = replace(now, number=0, since=0.0) != replace(before, number=0, since=0.0)
    if not changed and not now.used:
        return
    if now.used != before.used or last is None or work.now >= last + MINUTE:
        _tell(state, work, known, now, changed=changed)
    else:
        state.set_alarm(("usage", id), last + MINUTE)


def _is_as_told(state: NegotiatorState, known: ProfileRecord, told_at: float) -> bool:
    """Whether nothing has happened in its pool since: to find out who relies on a profile may take long."""
    return known.pool is not None and state.stirred.get(known.pool, told_at) < told_at


def _tell_usage(state: NegotiatorState, work: StepWork, known: ProfileRecord) -> None:
    _tell(state, work, known, usage_of(state, known), changed=True)


def _tell(state: NegotiatorState, work: StepWork, known: ProfileRecord, now: Usage, *, changed: bool) -> None:
    number = state.next_number(known.profile.publisher, work.now)
    used_before = known.told is not None and known.told.used
    since = known.told.since if known.told is not None and used_before == now.used else work.now
    known.told = replace(now, number=number, since=since)
    known.told_at = work.now
    state.set_alarm(("usage", known.profile.id), work.now + MINUTE if now.used else None)
    work.tells.append(NotifyClient(client=known.profile.publisher, kind="pub", id=known.profile.id, message=known.told))
    if changed:
        work.keep_profile(known.profile.id)


def usage_of(state: NegotiatorState, known: ProfileRecord) -> Usage:
    """How a profile is used now."""
    id = known.profile.id
    relying = () if known.effective is None else state.standing.relying(id)
    in_force = [
        held.expectation
        for each in relying
        if state.in_force.get((held := state.expectations[each]).expectation.subscription) == each
    ]
    floors: dict[str, tuple[QualityProperty, float]] = {}
    for expectation in in_force:
        for need in expectation.needs.values():
            about, floor = floors.get(need.about.id, (need.about, need.floor))
            floors[need.about.id] = (about, about.better(floor, need.floor))
    return Usage(
        profile=id,
        number=state.last_number(known.profile.publisher),
        subscriptions=len({each.subscription for each in in_force}),
        expectations=len(in_force),
        floors={
            name: shown
            for name, (about, floor) in sorted(floors.items())
            if (shown := _written(about, floor)) is not None
        },
        violated=tuple(sorted(known.violated)),
        since=known.told.since if known.told is not None else 0.0,
    )
