"""Calls of clients: what they register, change and take back of expectations and profiles.

A call that is refused changes nothing. One that was carried out before is answered as it was then, so a client that
does not know whether it was heard asks again.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from situ.catalogue import BAD_MODES, CALL_NOT_ALLOWED, CURRENT_OUTSIDE, UNKNOWN_PROPERTY
from situ.errors import Problem, SituError, nearest
from situ.quality.advising import moved
from situ.quality.effects import Reply
from situ.quality.expectation import Expectation
from situ.quality.inputs import (
    Providing,
    Registering,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)
from situ.quality.lifecycle import Call, Life, Step
from situ.quality.lifecycle import step as life_step
from situ.quality.presence import drop_expectation, drop_profile, put_expectation, release
from situ.quality.problem import STAY, Target
from situ.quality.profile import Capability, Profile
from situ.quality.state import Held, Known, State
from situ.quality.work import Work

_CHANGEABLE = frozenset(("needs", "utility", "selected", "otherwise_nothing", "publishers", "aggregate"))


def answered(work: Work, ticket: int, result: Expectation | Profile | Problem | None) -> None:
    work.replies.append(Reply(ticket=ticket, result=result))


# ── expectations ──


def register(state: State, work: Work, given: Registering) -> None:
    wanted = given.expectation
    held = state.expectations.get(wanted.id)
    _own(given.client, wanted.id, wanted.client if held is None else held.expectation.client, "registered")
    _own(given.client, wanted.id, wanted.client, "registered")
    if wanted.subscription not in state.relevance.relevant:
        about = f"is about the subscription `{wanted.subscription}`, which there is not"
        raise _refused(wanted.id, "registered", about, "Subscribe first.")
    version = None if wanted.version == 1 else wanted.version
    same = held is not None and _says(held.expectation) == _says(wanted)
    step = life_step("register", wanted.id, _life(held), _version(held), version, same=same)
    if not step.happens:
        assert held is not None
        answered(work, given.ticket, held.expectation)
        return
    if held is None:
        state.order += 1
        # Of a client that was away it may be one that rests.
        new = replace(wanted, order=state.order, version=step.version)
        state.expectations[wanted.id] = held = Held(expectation=new)
    else:
        before = held.expectation
        _leave(state, held)
        new = replace(wanted, order=before.order, version=step.version, suspended=before.suspended)
    _replace(state, work, held, new)
    answered(work, given.ticket, held.expectation)


def _says(expectation: Expectation) -> Expectation:
    """What an expectation is about, however it stands."""
    return replace(expectation, order=0, version=1, suspended=False)


def _leave(state: State, held: Held) -> None:
    """An expectation may go over to another subscription."""
    mine = state.by_subscription[held.expectation.subscription]
    del mine[held.expectation.id]
    if not mine:
        del state.by_subscription[held.expectation.subscription]


def update(state: State, work: Work, given: Updating) -> None:
    held, step = _called(state, "update", given)
    if unknown := given.changes.keys() - _CHANGEABLE:
        raise _refused(given.id, "updated", f"has no {', '.join(sorted(unknown))} to change", "Leave that out.")
    if step.happens:
        _replace(state, work, held, replace(held.expectation, **given.changes, version=step.version))
    answered(work, given.ticket, held.expectation)


def suspend(state: State, work: Work, given: Suspending) -> None:
    held, step = _called(state, "suspend", given)
    if step.happens:
        held.told = held.told_at = None
        held.violated, held.refusal = False, None
        state.set_alarm(("tell", given.id), None)
        _replace(state, work, held, replace(held.expectation, suspended=True))
    answered(work, given.ticket, held.expectation)


def resume(state: State, work: Work, given: Resuming) -> None:
    held, step = _called(state, "resume", given)
    if step.happens:
        _replace(state, work, held, replace(held.expectation, suspended=False))
    answered(work, given.ticket, held.expectation)


def revoke(state: State, work: Work, given: Revoking) -> None:
    if given.id in state.expectations:
        held, _ = _called(state, "revoke", given)
        drop_expectation(state, work, held.expectation.id)
    answered(work, given.ticket, None)


def _replace(state: State, work: Work, held: Held, new: Expectation) -> None:
    """An expectation is another now; what was claimed for it as it was is not claimed any more."""
    release(state, work, new.id)
    work.subscriptions.add(held.expectation.subscription)
    held.expectation = new
    held.away = held.declared and is_away(state, new)
    put_expectation(state, work, held)
    work.keep_expectation(new.id)


def is_away(state: State, expectation: Expectation) -> bool:
    return expectation.client in state.gone or expectation.subscription not in state.relevance.relevant


def _called(state: State, call: Call, given: Updating | Suspending | Resuming | Revoking) -> tuple[Held, Step]:
    held = state.expectations.get(given.id)
    if held is not None:
        _own(given.client, given.id, held.expectation.client, "changed")
    step = life_step(call, given.id, _life(held), _version(held), given.version)
    assert held is not None
    return held, step


def _life(held: Held | None) -> Life:
    if held is None:
        return Life.UNKNOWN
    return Life.SUSPENDED if held.expectation.suspended else Life.ACTIVE


def _version(held: Held | None) -> int:
    return 0 if held is None else held.expectation.version


def _own(client: str, id: str, owner: str, done: str) -> None:
    if client != owner:
        raise _refused(id, done, "belongs to another client", "Take a name of your own.")


def _refused(id: str, done: str, state: str, remedy: str) -> SituError:
    return SituError(CALL_NOT_ALLOWED(id=id, done=done, state=state, remedy=remedy))


# ── profiles ──


def provide(state: State, work: Work, given: Providing) -> None:
    wanted = given.profile
    known = state.profiles.get(wanted.id)
    _own(given.client, wanted.id, wanted.publisher, "registered")
    if state.pool_of(wanted.id) is None:
        about = "is of a type that its publisher does not advertise"
        raise _refused(wanted.id, "registered", about, "Advertise it first.")
    version = None if wanted.version == 1 else wanted.version
    life = Life.UNKNOWN if known is None else Life.ACTIVE
    same = known is not None and replace(known.profile, version=1) == replace(wanted, version=1)
    current = 0 if known is None else known.profile.version
    step = life_step("register", wanted.id, life, current, version, same=same)
    if step.happens:
        new = replace(wanted, version=step.version)
        if known is None:
            state.profiles[wanted.id] = Known(profile=new)
            _look_at(work, wanted.id)
        else:
            known.course.heard(new.properties, mode=True)
            change_profile(state, work, known, new)
    elif same and known is not None and known.course.relaxed:
        known.course.heard(wanted.properties, mode=True)  # whoever does this has nothing left to fall back to
        work.keep_profile(wanted.id)
    answered(work, given.ticket, state.profiles[wanted.id].profile)


def revise(state: State, work: Work, given: Revising) -> None:
    known = state.profiles.get(given.id)
    if known is not None:
        _own(given.client, given.id, known.profile.publisher, "changed")
    life = Life.UNKNOWN if known is None else Life.ACTIVE
    step = life_step("update", given.id, life, 0 if known is None else known.profile.version, given.version)
    assert known is not None
    if step.happens:
        revised = replace(_revised(known.profile, given), version=step.version)
        known.course.heard(given.capabilities.keys() | given.values.keys(), mode=given.mode is not None)
        change_profile(state, work, known, revised)
    answered(work, given.ticket, known.profile)


def _revised(profile: Profile, given: Revising) -> Profile:
    capabilities = dict(profile.capabilities) | dict(given.capabilities)
    for id, value in given.values.items():
        if id not in capabilities:
            known = tuple(sorted(capabilities))
            raise SituError(UNKNOWN_PROPERTY(name=id, nearest=nearest(id, known), known=known))
        capabilities[id] = _at(capabilities[id], value)
    if given.mode is not None and given.mode not in {each.name for each in profile.modes}:
        names = ", ".join(each.name for each in profile.modes) or "none"
        raise SituError(BAD_MODES(what=f"There is no mode `{given.mode}`", remedy=f"Modes of `{profile.id}`: {names}."))
    return replace(profile, capabilities=MappingProxyType(capabilities), mode=given.mode or profile.mode)


def _at(capability: Capability, value: float) -> Capability:
    if not capability.lb <= value <= capability.ub:
        about = capability.about
        lb, ub = about.shown(capability.lb), about.shown(capability.ub)
        raise SituError(CURRENT_OUTSIDE(name=about.id, cv=about.shown(value), lb=lb, ub=ub))
    return replace(capability, cv=value)


def change_profile(state: State, work: Work, known: Known, new: Profile) -> None:
    """A publisher declares something else. What it does because it was advised to is not what it does by itself."""
    before, known.profile = known.profile, new
    done = _followed(before, new, known.course.asked)
    known.ledger.follow(before, done)
    followed = moved(before, done)
    # Whoever does what it was advised to, if late, need not be waited for.
    known.course.thaw()
    if replace(followed, version=new.version) != new:
        known.course.forget()
        claimants = set(known.ledger.claims)
        known.ledger.rebase(followed, new)
        for id in claimants - known.ledger.claims.keys():
            state.claimed[id].discard(new.id)
            work.expectations.add(id)
    known.estimate.restart(before, new, state.mark)
    known.violated = known.estimate.violations(new)
    _look_at(work, new.id)


def _followed(before: Profile, new: Profile, asked: Target | None) -> Target:
    """The part of a change that is what was asked for."""
    if asked is None:
        return STAY
    values: dict[str, float] = {}
    for id, wanted in asked.values.items():
        if id in before.capabilities and id in new.capabilities:
            was, now = before.capabilities[id], new.capabilities[id].cv
            if now == wanted or (was.about.at_least(now, wanted) and not was.about.at_least(was.cv, wanted)):
                values[id] = now
    mode = new.mode if asked.mode and new.mode == asked.mode else ""
    return Target(values=MappingProxyType(values), mode=mode)


def retract(state: State, work: Work, given: Retracting) -> None:
    known = state.profiles.get(given.id)
    if known is not None:
        _own(given.client, given.id, known.profile.publisher, "revoked")
        life_step("revoke", given.id, Life.ACTIVE, known.profile.version, given.version)
        drop_profile(state, work, given.id)
    answered(work, given.ticket, None)


def _look_at(work: Work, id: str) -> None:
    work.profiles.add(id)
    work.advise.add(id)
    work.keep_profile(id)
