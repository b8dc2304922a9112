"""Calls of clients: what they register, update, suspend, resume and revoke of expectations and profiles.

`life_step` says which call is allowed when, and which version it is about; the other functions carry calls out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Literal

from situ.lang.catalogue import BAD_MODES, CALL_NOT_ALLOWED, CURRENT_OUTSIDE, STALE_VERSION, UNKNOWN_PROPERTY
from situ.lang.problems import Problem, SituError, nearest
from situ.lang.records import replace
from situ.quality.model.allocation_problem import STAY, Target
from situ.quality.model.declarations import Capability, Expectation, Profile
from situ.quality.negotiation.decide import profile_at_target
from situ.quality.negotiation.inputs_and_effects import (
    Providing,
    Registering,
    Reply,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)
from situ.quality.negotiation.presence import drop_expectation, drop_profile, put_expectation, release_claims
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord, StepWork

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Life cycle. A call that names a version says which one there is to be after it. The same version again is the same
# call again, and nothing happens; an older one is refused. What was revoked is not known any more, and can be
# registered anew.

Call = Literal["register", "update", "suspend", "resume", "revoke"]


class RegistrationState(Enum):
    """What somebody who looks at it finds."""

    UNKNOWN = "is not registered"
    ACTIVE = "is active"
    SUSPENDED = "is suspended"


UNKNOWN, ACTIVE, SUSPENDED = RegistrationState.UNKNOWN, RegistrationState.ACTIVE, RegistrationState.SUSPENDED

NEXT: Mapping[tuple[Call, RegistrationState], RegistrationState] = MappingProxyType(
    {
        ("register", UNKNOWN): ACTIVE,
        # Of a client that was away: it registers again what it has.
        ("register", ACTIVE): ACTIVE,
        ("register", SUSPENDED): SUSPENDED,
        ("update", ACTIVE): ACTIVE,
        ("update", SUSPENDED): SUSPENDED,
        ("suspend", ACTIVE): SUSPENDED,
        ("suspend", SUSPENDED): SUSPENDED,
        ("resume", SUSPENDED): ACTIVE,
        ("resume", ACTIVE): ACTIVE,
        ("revoke", ACTIVE): UNKNOWN,
        ("revoke", SUSPENDED): UNKNOWN,
        ("revoke", UNKNOWN): UNKNOWN,
    }
)
"""Calls that are not in it are not allowed."""

_REPLACING: tuple[Call, ...] = ("register", "update")
_DONE: Mapping[Call, str] = MappingProxyType(
    {
        "register": "registered",
        "update": "updated",
        "suspend": "suspended",
        "resume": "resumed",
        "revoke": "revoked",
    }
)


@dataclass(frozen=True, slots=True)
class LifecycleStep:
    """What a call leads to."""

    life: RegistrationState
    version: int
    happens: bool
    """False: it was done before, and there is nothing to do."""


def life_step(
    call: Call, id: str, life: RegistrationState, current: int = 0, version: int | None = None, *, same: bool = True
) -> LifecycleStep:
    """Where a call leads something that is at version ``current``; :class:`SituError` with Q111 or Q112.

    ``version`` is the one that there is to be after it; None: the next, if the call replaces something. ``same`` tells
    whether what is to be registered says what is there already.
    """
    after = NEXT.get((call, life))
    if after is None:
        raise _not_allowed(call, id, life, "Register it first.")
    if life is not UNKNOWN and version is not None and version < current:
        raise SituError(STALE_VERSION(id=id, given=version, current=current))
    if call not in _REPLACING:
        return LifecycleStep(after, current, after is not life)
    if life is UNKNOWN:
        return LifecycleStep(after, 1 if version is None else version, happens=True)
    if call == "register" and version is None:
        if not same:
            raise _not_allowed(call, id, life, "Update it, or take another id.")
        return LifecycleStep(after, current, happens=False)
    return LifecycleStep(after, current + 1 if version is None else version, version != current)


def _not_allowed(call: Call, id: str, life: RegistrationState, remedy: str) -> SituError:
    return SituError(CALL_NOT_ALLOWED(id=id, done=_DONE[call], state=life.value, remedy=remedy))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The calls. One that is refused changes nothing. One that was carried out before is answered as it was then, so a
# client that does not know whether it was heard asks again.

_CHANGEABLE = frozenset(("needs", "utility", "selected", "otherwise_nothing", "publishers", "aggregate"))


def reply_to(work: StepWork, ticket: int, result: Expectation | Profile | Problem | None) -> None:
    work.replies.append(Reply(ticket=ticket, result=result))


# ── expectations ──


def register(state: NegotiatorState, work: StepWork, given: Registering) -> None:
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
        reply_to(work, given.ticket, held.expectation)
        return
    if held is None:
        state.order += 1
        # Of a client that was away it may be one that rests.
        new = replace(wanted, order=state.order, version=step.version)
        state.expectations[wanted.id] = held = ExpectationRecord(expectation=new)
    else:
        before = held.expectation
        _leave(state, held)
        new = replace(wanted, order=before.order, version=step.version, suspended=before.suspended)
    _replace(state, work, held, new)
    reply_to(work, given.ticket, held.expectation)


def _says(expectation: Expectation) -> Expectation:
    """What an expectation is about, however it stands."""
    return replace(expectation, order=0, version=1, suspended=False)


def _leave(state: NegotiatorState, held: ExpectationRecord) -> None:
    """An expectation may go over to another subscription."""
    mine = state.by_subscription[held.expectation.subscription]
    del mine[held.expectation.id]
    if not mine:
        del state.by_subscription[held.expectation.subscription]


def update(state: NegotiatorState, work: StepWork, given: Updating) -> None:
    held, step = _called(state, "update", given)
    if unknown := given.changes.keys() - _CHANGEABLE:
        raise _refused(given.id, "updated", f"has no {', '.join(sorted(unknown))} to change", "Leave that out.")
    if step.happens:
        _replace(state, work, held, replace(held.expectation, **given.changes, version=step.version))
    reply_to(work, given.ticket, held.expectation)


def suspend(state: NegotiatorState, work: StepWork, given: Suspending) -> None:
    held, step = _called(state, "suspend", given)
    if step.happens:
        held.told = held.told_at = None
        held.violated, held.refusal = False, None
        state.set_alarm(("tell", given.id), None)
        _replace(state, work, held, replace(held.expectation, suspended=True))
    reply_to(work, given.ticket, held.expectation)


def resume(state: NegotiatorState, work: StepWork, given: Resuming) -> None:
    held, step = _called(state, "resume", given)
    if step.happens:
        _replace(state, work, held, replace(held.expectation, suspended=False))
    reply_to(work, given.ticket, held.expectation)


def revoke(state: NegotiatorState, work: StepWork, given: Revoking) -> None:
    if given.id in state.expectations:
        held, _ = _called(state, "revoke", given)
        drop_expectation(state, work, held.expectation.id)
    reply_to(work, given.ticket, None)


def _replace(state: NegotiatorState, work: StepWork, held: ExpectationRecord, new: Expectation) -> None:
    """An expectation is another now; what was claimed for it as it was is not claimed any more."""
    release_claims(state, work, new.id)
    work.subscriptions.add(held.expectation.subscription)
    held.expectation = new
    held.away = held.declared and is_away(state, new)
    put_expectation(state, work, held)
    work.keep_expectation(new.id)


def is_away(state: NegotiatorState, expectation: Expectation) -> bool:
    return expectation.client in state.gone or expectation.subscription not in state.relevance.relevant


def _called(
    state: NegotiatorState, call: Call, given: Updating | Suspending | Resuming | Revoking
) -> tuple[ExpectationRecord, LifecycleStep]:
    held = state.expectations.get(given.id)
    if held is not None:
        _own(given.client, given.id, held.expectation.client, "changed")
    step = life_step(call, given.id, _life(held), _version(held), given.version)
    assert held is not None
    return held, step


def _life(held: ExpectationRecord | None) -> RegistrationState:
    if held is None:
        return RegistrationState.UNKNOWN
    return RegistrationState.SUSPENDED if held.expectation.suspended else RegistrationState.ACTIVE


def _version(held: ExpectationRecord | None) -> int:
    return 0 if held is None else held.expectation.version


def _own(client: str, id: str, owner: str, done: str) -> None:
    if client != owner:
        raise _refused(id, done, "belongs to another client", "Take a name of your own.")


def _refused(id: str, done: str, state: str, remedy: str) -> SituError:
    return SituError(CALL_NOT_ALLOWED(id=id, done=done, state=state, remedy=remedy))


# ── profiles ──


def provide(state: NegotiatorState, work: StepWork, given: Providing) -> None:
    wanted = given.profile
    known = state.profiles.get(wanted.id)
    _own(given.client, wanted.id, wanted.publisher, "registered")
    if state.pool_of(wanted.id) is None:
        about = "is of a type that its publisher does not advertise"
        raise _refused(wanted.id, "registered", about, "Advertise it first.")
    version = None if wanted.version == 1 else wanted.version
    life = RegistrationState.UNKNOWN if known is None else RegistrationState.ACTIVE
    same = known is not None and replace(known.profile, version=1) == replace(wanted, version=1)
    current = 0 if known is None else known.profile.version
    step = life_step("register", wanted.id, life, current, version, same=same)
    if step.happens:
        new = replace(wanted, version=step.version)
        if known is None:
            state.profiles[wanted.id] = ProfileRecord(profile=new)
            _look_at(work, wanted.id)
        else:
            known.course.heard(new.properties, mode=True)
            change_profile(state, work, known, new)
    elif same and known is not None and known.course.relaxed:
        known.course.heard(wanted.properties, mode=True)  # whoever does this has nothing left to fall back to
        work.keep_profile(wanted.id)
    reply_to(work, given.ticket, state.profiles[wanted.id].profile)


def revise(state: NegotiatorState, work: StepWork, given: Revising) -> None:
    known = state.profiles.get(given.id)
    if known is not None:
        _own(given.client, given.id, known.profile.publisher, "changed")
    life = RegistrationState.UNKNOWN if known is None else RegistrationState.ACTIVE
    step = life_step("update", given.id, life, 0 if known is None else known.profile.version, given.version)
    assert known is not None
    if step.happens:
        revised = replace(_revised(known.profile, given), version=step.version)
        known.course.heard(given.capabilities.keys() | given.values.keys(), mode=given.mode is not None)
        change_profile(state, work, known, revised)
    reply_to(work, given.ticket, known.profile)


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


def change_profile(state: NegotiatorState, work: StepWork, known: ProfileRecord, new: Profile) -> None:
    """A publisher declares something else. What it does because it was advised to is not what it does by itself."""
    before, known.profile = known.profile, new
    done = _followed(before, new, known.course.asked)
    known.ledger.follow(before, done)
    followed = profile_at_target(before, done)
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


def retract(state: NegotiatorState, work: StepWork, given: Retracting) -> None:
    known = state.profiles.get(given.id)
    if known is not None:
        _own(given.client, given.id, known.profile.publisher, "revoked")
        life_step("revoke", given.id, RegistrationState.ACTIVE, known.profile.version, given.version)
        drop_profile(state, work, given.id)
    reply_to(work, given.ticket, None)


def _look_at(work: StepWork, id: str) -> None:
    work.profiles.add(id)
    work.advise.add(id)
    work.keep_profile(id)
