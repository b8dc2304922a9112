"""Advising: what publishers are asked to do follows from their ledgers, and what they do from what they say or show.

More is asked for at once, less after a minute of grace in which somebody else may want it. Nobody loses by that:
whoever relies on what was raised for others claims it when they are gone.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from situ.quality.advice import SPACING
from situ.quality.causes import Cause
from situ.quality.deciding import is_mode_needed, outstanding
from situ.quality.effects import Tell
from situ.quality.feedback import Advice
from situ.quality.ledger import lowers
from situ.quality.problem import STAY, Target, point_at
from situ.quality.profile import Profile
from situ.quality.state import Held, Known, State
from situ.quality.work import Work

GRACE = 60.0
"""Seconds from when something is no longer needed until it is no longer asked for."""


def advise(state: State, work: Work) -> None:
    """Ask for what is claimed, take back what nobody waits for any more, and plan to fall back."""
    for id in sorted(work.advise & state.profiles.keys()):
        known = state.profiles[id]
        known.ledger.settle(known.profile)
        _ask(state, work, known)
        _plan_relaxing(state, work, known)
        _wait(state, known, work.now)
        work.keep_profile(id)


def _ask(state: State, work: Work, known: Known) -> None:
    course = known.course
    wanted = outstanding(state, known)
    if course.open is not None:
        given = course.open.target
        if not (given.values.keys() & wanted.values.keys() or (given.mode and given.mode == wanted.mode)):
            tell(state, work, known, course.withdraw(known.profile, _next(state, work, known)))
    if wanted and course.open is None and course.may_send(work.now):
        tell(state, work, known, course.send(known.profile, wanted, work.now, _next(state, work, known)))


# ── falling back ──


def _excess(state: State, known: Known) -> Target:
    """What is done and nobody needs."""
    if known.effective is None or known.course.open is not None:
        return STAY
    target = known.ledger.target(known.profile, state.meets)
    if target.mode and target.mode != known.profile.mode and is_mode_needed(state, known):
        target = replace(target, mode="")
    return lowers(target, known.profile)


def _plan_relaxing(state: State, work: Work, known: Known) -> None:
    if not _excess(state, known):
        known.course.relax_at = None
    elif known.course.relax_at is None:
        known.course.relax_at = work.now + GRACE


def relax(state: State, work: Work, known: Known) -> None:
    """The grace is over: let a publisher fall back to what is needed. It is taken to have done so at once."""
    known.course.relax_at = None
    target = _excess(state, known)
    for held in _relying(state, known, target):
        _claim_late(state, known, held)
        target = _excess(state, known)
    if target and known.effective is not None:
        before = known.profile
        tell(state, work, known, known.course.relax(before, target, work.now, _next(state, work, known)))
        known.profile = moved(before, target)
        work.causes.add(state, Cause(what="was told to fall back", profile=known.profile.id))
        known.estimate.restart(before, known.profile, state.mark)
        known.violated = known.estimate.violations(known.profile)
        work.profiles.add(known.profile.id)
    work.advise.add(known.profile.id)
    work.keep_profile(known.profile.id)


def _relying(state: State, known: Known, target: Target) -> list[Held]:
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


def _claim_late(state: State, known: Known, held: Held) -> None:
    needs = held.expectation.needs
    values = {id: needs[id].floor for id in known.ledger.baseline if id in needs}
    mode = known.profile.mode if known.ledger.mode and needs.keys() & known.profile.moded.keys() else ""
    target = Target(values=MappingProxyType(values), mode=mode)
    known.ledger.claim(known.profile, held.expectation.id, target)
    state.claimed.setdefault(held.expectation.id, set()).add(known.profile.id)


def moved(profile: Profile, target: Target) -> Profile:
    """A profile that does what a target says."""
    capabilities = {
        id: replace(each, cv=target.values[id]) if id in target.values else each
        for id, each in profile.capabilities.items()
    }
    return replace(profile, capabilities=MappingProxyType(capabilities), mode=target.mode or profile.mode)


# ── what becomes of advice ──


def see_effect(state: State, work: Work) -> None:
    """Find out which advice has been followed."""
    for id in work.profiles & state.profiles.keys():
        known = state.profiles[id]
        if known.course.open is None or known.effective is None:
            continue
        target = known.course.open.target
        if does(known.effective, target):
            known.course.took_effect(known.profile if does(known.profile, target) else None)
            work.advise.add(id)
            work.keep_profile(id)


def does(profile: Profile, target: Target) -> bool:
    """Whether a profile does at least what a target says."""
    now = profile.current()
    if target.mode and all(each.name != target.mode for each in profile.modes):
        return False
    if not target.values.keys() <= profile.capabilities.keys():
        return False  # it has become a matter of modes since, or is not there any more
    wanted = point_at(profile, target)
    asked = (*target.values, *(profile.moded if target.mode and target.mode != profile.mode else ()))
    return all(now[id] >= wanted[id] for id in asked)


def _wait(state: State, known: Known, now: float) -> None:
    """Come back when something is due."""
    course, at = known.course, known.course.next_time()
    if course.open is None and course.last is not None and outstanding(state, known):
        at = min(course.last + SPACING, at if at is not None else course.last + SPACING)
    state.set_alarm(("course", known.profile.id), at)


def tell(state: State, work: Work, known: Known, advice: Advice) -> None:
    work.tells.append(Tell(client=known.profile.publisher, kind="pub", id=advice.id, message=advice))
    work.keep_profile(known.profile.id)


def _next(state: State, work: Work, known: Known) -> int:
    return state.next_number(known.profile.publisher, work.now)
