"""Explaining what a negotiator knows: one expectation, or what is claimed of a publisher.

Only an administrator is told who publishes; for others publishers are numbered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from situ.quality.advice import ENOUGH
from situ.quality.deciding import is_pending, strategy_of
from situ.quality.explain import Case, change_of, explain
from situ.quality.explained import Change, Claimed, Explanation, Json, ProfileExplanation
from situ.quality.json_form import shape_as_json
from situ.quality.matching import capability_of
from situ.quality.operating import cost_of
from situ.quality.problem import Target
from situ.quality.profile import Profile
from situ.quality.shape import Shape
from situ.quality.state import Held, Known, State
from situ.quality.telling import look

_MOST_NAMED = 10
_NO_DROPS: Mapping[str, int] = MappingProxyType({})


def explain_expectation(state: State, id: str, *, named: bool, drops: Mapping[str, int] = _NO_DROPS) -> Explanation:
    """How an expectation stands and why. ``named``: whoever asks may know who publishes."""
    held = state.expectations[id]
    expectation = held.expectation
    profiles = _relevant(state, held)
    names = _names(profiles, named=named)
    case = Case(
        expectation=expectation,
        profiles=profiles,
        names=names,
        declared={each.id: state.profiles[each.id].profile for each in profiles},
        measured={each.id: state.profiles[each.id].estimate.measured for each in profiles},
        alternatives=[each.expectation for each in state.alternatives(expectation.subscription) if each is not held],
        actions=state.actions,
        strategy=strategy_of(state, held),
        refusal=held.refusal if held.active else None,
    )
    found = explain(case)
    told = look(state, id)
    shape = state.shapes.get(expectation.subscription)
    return replace(
        found,
        state="suspended" if expectation.suspended else "away" if held.away else found.state,
        why=told.why if held.active else "",
        in_force=told.in_force or "",
        adapting=_adapting(state, held, names) if found.state != "satisfied" else (),
        since=_clock(held.decided.at if held.active and held.decided is not None else told.since),
        after=_after(state, held, names, named=named) if held.active else "",
        shape={} if shape is None or told.in_force != id else _shape(shape, profiles, named=named),
        drops=drops,
        absent=told.absent,
        absent_by=_absent(state, held) if named and told.absent else (),
    )


def explain_publisher(state: State, publisher: str) -> tuple[ProfileExplanation, ...]:
    """What is claimed of all profiles of a publisher, what they did before, and what is advised."""
    return tuple(_profile(state, each) for _, each in sorted(state.profiles.of(publisher).items()))


# ── an expectation ──


def _relevant(state: State, held: Held) -> list[Profile]:
    found = (profile for pool in held.pools for profile in state.in_pool.get(pool, {}).values())
    return sorted(found, key=lambda each: each.id)


def _absent(state: State, held: Held) -> tuple[str, ...]:
    """Who would have to be connected for more profiles to count; of many the first."""
    found = (state.profiles[id].client for pool in held.pools for id in state.absent.get(pool, ()))
    return tuple(sorted(set(found))[:_MOST_NAMED])


def _names(profiles: list[Profile], *, named: bool) -> Mapping[str, str]:
    """By their publishers, as far as these have one profile each."""
    publishers = [each.publisher for each in profiles]
    numbers = _numbers(profiles)
    found = {}
    for each in profiles:
        name = each.publisher if named else numbers[each.publisher]
        found[each.id] = name if publishers.count(each.publisher) == 1 else f"{name}/{each.type}"
    return found


def _numbers(profiles: list[Profile]) -> Mapping[str, str]:
    publishers = sorted({each.publisher for each in profiles})
    return {name: f"publisher {number}" for number, name in enumerate(publishers, start=1)}


def _shape(shape: Shape, profiles: list[Profile], *, named: bool) -> Json:
    found = shape_as_json(shape)
    if shape.sources is not None and not named:
        numbers = _numbers(profiles)
        found["sources"] = sorted(numbers.get(each, "another publisher") for each in shape.sources)
    return found


def _adapting(state: State, held: Held, names: Mapping[str, str]) -> tuple[Change, ...]:
    """What is claimed for it of whom, where that is going to be enough."""
    id = held.expectation.id
    if not held.active or not is_pending(state, held):
        return ()
    found = []
    for each in sorted(state.claimed.get(id, ())):
        known = state.profiles[each]
        target = known.ledger.claims[id]
        found.append(change_of(known.profile, target, names.get(each, each), _cost(state, known, target)))
    return tuple(found)


def _after(state: State, held: Held, names: Mapping[str, str], *, named: bool) -> str:
    """What happened before it was decided as it stands; whoever may not know names is not told them."""
    cause = None if held.decided is None else held.decided.cause
    if cause is None:
        return ""
    if cause.expectation:
        alternatives = state.by_subscription.get(held.expectation.subscription, ())
        if cause.expectation == held.expectation.id:
            return f"it {cause.what}"
        known = named or cause.expectation in alternatives
        return f"{cause.expectation if known else 'another expectation'} {cause.what}"
    if cause.profile:
        other = cause.profile if named else "a publisher"
        return f"{names.get(cause.profile, other)} {cause.what}"
    return cause.what


# ── a profile ──


def _profile(state: State, known: Known) -> ProfileExplanation:
    profile, ledger = known.profile, known.ledger
    abouts = {id: each.about for id, each in profile.capabilities.items()}
    current = {id: capability_of(known.effective or profile, id) for id in sorted(profile.properties)}
    return ProfileExplanation(
        profile=profile.id,
        mode=profile.mode,
        values={id: each.about.written(each.cv) for id, each in current.items() if each is not None},
        baseline={id: abouts[id].written(value) for id, value in sorted(ledger.baseline.items()) if id in abouts},
        baseline_mode=ledger.mode,
        claims=tuple(_claimed(state, known, id, target) for id, target in sorted(ledger.claims.items())),
        advice=_advice(known),
        held_back=_held_back(known),
        violated=tuple(sorted(known.violated)),
    )


def _claimed(state: State, known: Known, id: str, target: Target) -> Claimed:
    held = state.expectations.get(id)
    return Claimed(
        expectation=id,
        subscription="" if held is None else held.expectation.subscription,
        utility=0.0 if held is None else held.expectation.utility,
        change=change_of(known.profile, target, known.profile.id, _cost(state, known, target)),
    )


def _cost(state: State, known: Known, target: Target) -> float:
    """What a claim alone costs more than what the publisher did before anybody asked."""
    profile, ledger = known.profile, known.ledger
    capabilities = {id: replace(each, cv=ledger.baseline.get(id, each.cv)) for id, each in profile.capabilities.items()}
    before = replace(profile, capabilities=capabilities, mode=ledger.mode or profile.mode)
    return cost_of(before, target, state.actions)


def _advice(known: Known) -> Json | None:
    advice = known.course.open
    if advice is None:
        return None
    change = change_of(known.profile, advice.target, known.profile.id, None)
    return {
        "id": advice.id,
        "status": advice.status,
        "since": _clock(advice.since),
        "values": dict(change.values),
        "mode": change.mode,
    }


def _held_back(known: Known) -> str:
    course = known.course
    if known.away:
        return "declared, not connected: it counts when its publisher is there"
    if known.deaf:
        return "its events come, but it is not connected: nobody can advise it"
    if course.until is None:
        return ""
    rests = course.failures < ENOUGH
    what = "resting: it did not follow the last advice" if rests else "frozen: it did not follow advice"
    return f"{what}, until {_clock(course.until)}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S") if at else ""
