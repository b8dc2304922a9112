"""Explanations of an expectation and of what is claimed of a publisher, worked out from the state of a negotiator.

`explain` says what follows from declarations alone: every profile against every need, what would satisfy the
expectation, and what less it could ask for. `explain_expectation` and `explain_publisher` add what the negotiator
decided and when.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from situ.lang.records import replace
from situ.quality.allocation.candidates import PartialPlan
from situ.quality.explanation.model import (
    AdviceExplanation,
    CandidateExplanation,
    ClaimExplanation,
    ExpectationExplanation,
    NeedExplanation,
    NeedRelaxation,
    NeedVerdict,
    ProfileAdaptation,
    ProfileExplanation,
    PublisherExplanation,
    RefusalExplanation,
    Value,
)
from situ.quality.match.satisfaction import Satisfaction, capability_of, match
from situ.quality.model.allocation_problem import (
    NO_ACTIONS,
    AllocationProblem,
    PublisherActions,
    Refusal,
    Target,
    cost_of,
    point_at,
)
from situ.quality.model.declarations import Expectation, Need, Profile, QualityProperty, Strategy
from situ.quality.model.shapes import Shape, shape_as_json
from situ.quality.negotiation.advice import ENOUGH
from situ.quality.negotiation.decide import is_pending, strategy_of
from situ.quality.negotiation.notify import state_change_of
from situ.quality.negotiation.state import ExpectationRecord, NegotiatorState, ProfileRecord

_POOL = "relevant"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplanationCase:
    """An expectation, and all that bears on it."""

    expectation: Expectation
    profiles: Sequence[Profile]
    """Effective ones that are relevant."""
    names: Mapping[str, str]
    """Profile → what it is called for whoever asked."""
    declared: Mapping[str, Profile] = field(default_factory=lambda: MappingProxyType({}))
    measured: Mapping[str, Mapping[str, float]] = field(default_factory=lambda: MappingProxyType({}))
    """Profile → property → value."""
    alternatives: Sequence[Expectation] = ()
    """The others of the subscription."""
    actions: PublisherActions = NO_ACTIONS
    strategy: Strategy = field(default_factory=Strategy)
    refusal: Refusal | None = None


def explain(case: ExplanationCase) -> ExpectationExplanation:
    """What can be said without knowing what was decided but for a refusal."""
    expectation = case.expectation
    found = match(expectation, case.profiles)
    changes = _changes(case)
    return ExpectationExplanation(
        expectation=expectation.id,
        subscription=expectation.subscription,
        utility=expectation.utility,
        state=found.state.name.lower(),
        by=tuple(case.names[id] for id in found.now),
        needs=tuple(_wanted(need) for _, need in _needs(case)),
        profiles=tuple(_viewed(case, each, changes) for each in _in_order(case)),
        changes=() if found.state is Satisfaction.SATISFIED else tuple(changes.values()),
        relaxations=() if found.state is Satisfaction.SATISFIED else tuple(_relaxations(case)),
        declined=None if case.refusal is None else _declined(case, case.refusal),
    )


def change_of(profile: Profile, target: Target, name: str, cost: float | None) -> ProfileAdaptation:
    """A target in the words of declarations."""
    values: dict[str, Value] = {}
    if target.mode:
        mode = profile.mode_named(target.mode)
        values = {id: about.written(mode.values[id]) for id, about in profile.moded.items()}
    values |= {id: profile.capabilities[id].about.written(value) for id, value in target.values.items()}
    return ProfileAdaptation(profile=name, mode=target.mode, values=values, cost=cost)


# ── one profile ──


def _needs(case: ExplanationCase) -> list[tuple[str, Need]]:
    """In the order in which they were declared."""
    return list(case.expectation.needs.items())


def _in_order(case: ExplanationCase) -> list[Profile]:
    return sorted(case.profiles, key=lambda each: each.id)


def _wanted(need: Need) -> NeedExplanation:
    about = need.about
    return NeedExplanation(
        property=about.id,
        unit=about.unit,
        lb=_number(about, need.lb),
        ub=_number(about, need.ub),
        floor=_number(about, need.floor),
        maximise=about.maximise,
    )


def _viewed(case: ExplanationCase, profile: Profile, changes: Mapping[str, ProfileAdaptation]) -> CandidateExplanation:
    return CandidateExplanation(
        name=case.names[profile.id],
        mode=profile.mode,
        needs=tuple(_judged(case, profile, id, need) for id, need in _needs(case)),
        satisfies=case.expectation.is_met_by(profile.current()),
        change=changes.get(profile.id),
    )


def _judged(case: ExplanationCase, profile: Profile, id: str, need: Need) -> NeedVerdict:
    about, effective = need.about, capability_of(profile, id)
    if effective is None:
        return NeedVerdict(property=id, verdict="missing")
    declared = capability_of(case.declared.get(profile.id, profile), id)
    measured = case.measured.get(profile.id, {}).get(id)
    good = about.at_least(effective.cv, need.floor)
    within_reach = about.at_least(effective.best, need.floor)
    return NeedVerdict(
        property=id,
        verdict="ok" if good else "short" if within_reach else "out of reach",
        declared=None if declared is None else _number(about, declared.cv),
        measured=None if measured is None else _number(about, measured),
        effective=_number(about, effective.cv),
        short_by=None if good else _distance(need.floor, effective.cv),
        best=_number(about, effective.best),
    )


def _distance(floor: float, value: float) -> float | None:
    found = abs(floor - value)
    return found if math.isfinite(found) else None


# ── what would satisfy it ──


def _changes(case: ExplanationCase) -> dict[str, ProfileAdaptation]:
    """Of every profile that does not satisfy it and could, the cheapest change, cheapest first."""
    expectation = case.expectation
    ground = PartialPlan(
        AllocationProblem(
            expectations=(expectation,),
            profiles={each.id: each for each in case.profiles},
            pools={each.id: _POOL for each in case.profiles},
            relevant={expectation.subscription: frozenset({_POOL})},
            actions=case.actions,
        )
    )
    met = set(ground.field(expectation).meeting(expectation))
    found: dict[str, ProfileAdaptation] = {}
    for each in ground.candidates(expectation):
        if each.profile not in found and each.profile not in met:
            profile = ground.problem.profiles[each.profile]
            found[each.profile] = change_of(profile, each.target, case.names[each.profile], each.extra)
    return found


def _relaxations(case: ExplanationCase) -> Iterator[NeedRelaxation]:
    """For each need the smallest step that would do as things are, and a smaller one that would do if they changed."""
    if case.expectation.publishers > 1:
        return  # what one publisher would do then is not enough
    for id, need in _needs(case):
        now = _best_of(case, id, need, [(each, Target()) for each in _in_order(case)])
        if now is not None:
            yield now[1]
        able = _best_of(case, id, need, [(each, target) for each in _in_order(case) for target in _bests(each, id)])
        if able is not None and (now is None or able[0] > now[0]):
            yield able[1]


def _bests(profile: Profile, id: str) -> Iterator[Target]:
    """What a profile can do most of one property."""
    if id in profile.capabilities:
        capability = profile.capabilities[id]
        yield Target(values={id: capability.best} if capability.best != capability.cv else {})
    for each in profile.modes if id in profile.moded else ():
        yield Target(mode="" if each.name == profile.mode else each.name)


def _best_of(
    case: ExplanationCase, id: str, need: Need, ways: Sequence[tuple[Profile, Target]]
) -> tuple[float, NeedRelaxation] | None:
    """The best value of a need that is too little for it, among profiles that meet all the others, or can."""
    found: list[tuple[float, float, NeedRelaxation]] = []
    for profile, target in ways:
        good = point_at(profile, target).get(id)
        others = None if good is None or good >= need.asked else _with_others(case, id, profile, target)
        if good is not None and others is not None:
            cost = cost_of(profile, others, case.actions)
            relaxed = NeedRelaxation(
                property=id,
                to=need.about.written(need.about.value(good)),
                profile=case.names[profile.id],
                cost=cost,
                maximise=need.about.maximise,
                change=change_of(profile, others, case.names[profile.id], cost),
            )
            found.append((good, -cost, relaxed))
    best = max(found, key=lambda each: each[:2], default=None)
    return None if best is None else (best[0], best[2])


def _with_others(case: ExplanationCase, id: str, profile: Profile, target: Target) -> Target | None:
    """The same with all other needs met; None, if they cannot be, or are not where nothing is to be changed."""
    values = dict(target.values)
    point = point_at(profile, target)
    for name, need in case.expectation.needs.items():
        if name == id or (name in point and point[name] >= need.asked):
            continue
        capability = profile.capabilities.get(name)
        if not target or capability is None or not need.about.at_least(capability.best, need.floor):
            return None
        values[name] = need.floor
    return Target(values=values, mode=target.mode)


# ── why it is not done ──


def _declined(case: ExplanationCase, refusal: Refusal) -> RefusalExplanation:
    profiles = {each.id: each for each in case.profiles}
    profile = profiles.get(refusal.profile)
    change = ProfileAdaptation(profile=case.names.get(refusal.profile, ""), cost=refusal.extra)
    if profile is not None:
        change = change_of(profile, refusal.target, case.names[profile.id], refusal.extra)
    others = case.alternatives if refusal.why == "alternative" else ()
    satisfied = [each for each in others if match(each, case.profiles).state is Satisfaction.SATISFIED]
    first = max(satisfied, key=lambda each: (each.utility, -each.order), default=None)
    return RefusalExplanation(
        strategy=case.strategy.name,
        why=refusal.why,
        change=change,
        alternative=None if first is None else first.id,
        alternative_by=() if first is None else tuple(case.names[id] for id in match(first, case.profiles).now),
        exact=refusal.exact,
        tipped=None if refusal.extra is None else _tipped(case, profile, refusal, refusal.extra),
    )


def _tipped(given: ExplanationCase, profile: Profile | None, refusal: Refusal, extra: float) -> str:
    """What would have had to be different for it to be adopted."""
    match refusal.why:
        case "alternative":
            if profile is not None and refusal.target.mode and not refusal.target.values:
                least = profile.mode_named(refusal.target.mode).cost - extra
                if least >= 0:
                    return f"mode {refusal.target.mode} cost at most {least:g}"
            return f"that cost {extra:g} less"
        case "budget":
            return f"the budget were larger by up to {extra:g}"
        case "worth":
            return f"its utility were more than {given.strategy.weight * extra:g}"
        case "harm" | "conflict":
            return "it took nothing from others"


def _number(about: QualityProperty, value: float) -> Value | None:
    return about.written(value) if math.isfinite(value) else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a negotiator knows. Only an administrator is told who publishes; for others publishers are numbered.

_MOST_NAMED = 10
_NO_DROPS: Mapping[str, int] = MappingProxyType({})


def explain_expectation(
    state: NegotiatorState, id: str, *, named: bool, drops: Mapping[str, int] = _NO_DROPS
) -> ExpectationExplanation:
    """How an expectation stands and why. ``named``: whoever asks may know who publishes."""
    held = state.expectations[id]
    expectation = held.expectation
    profiles = _relevant(state, held)
    names = _names(profiles, named=named)
    case = ExplanationCase(
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
    told = state_change_of(state, id)
    shape = state.shapes.get(expectation.subscription)
    return replace(
        found,
        state="suspended" if expectation.suspended else "away" if held.away else found.state,
        why=(told.why if held.active else "") or None,
        in_force=told.in_force or None,
        adapting=_adapting(state, held, names) if found.state != "satisfied" else (),
        since=_clock(held.decided.at if held.active and held.decided is not None else told.since) or None,
        after=_after(state, held, names, named=named) if held.active else None,
        shape={} if shape is None or told.in_force != id else _shape(shape, profiles, named=named),
        drops=drops,
        absent=told.absent,
        absent_by=_absent(state, held) if named and told.absent else (),
    )


def explain_publisher(state: NegotiatorState, publisher: str) -> PublisherExplanation:
    """What is claimed of all profiles of a publisher, what they did before, and what is advised."""
    profiles = tuple(_profile(state, each) for _, each in sorted(state.profiles.of(publisher).items()))
    return PublisherExplanation(profiles=profiles)


# ── an expectation ──


def _relevant(state: NegotiatorState, held: ExpectationRecord) -> list[Profile]:
    found = (profile for pool in held.pools for profile in state.in_pool.get(pool, {}).values())
    return sorted(found, key=lambda each: each.id)


def _absent(state: NegotiatorState, held: ExpectationRecord) -> tuple[str, ...]:
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


def _shape(shape: Shape, profiles: list[Profile], *, named: bool) -> dict[str, Any]:
    found = shape_as_json(shape)
    if shape.sources is not None and not named:
        numbers = _numbers(profiles)
        found["sources"] = sorted(numbers.get(each, "another publisher") for each in shape.sources)
    return found


def _adapting(
    state: NegotiatorState, held: ExpectationRecord, names: Mapping[str, str]
) -> tuple[ProfileAdaptation, ...]:
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


def _after(state: NegotiatorState, held: ExpectationRecord, names: Mapping[str, str], *, named: bool) -> str | None:
    """What happened before it was decided as it stands; whoever may not know names is not told them."""
    cause = None if held.decided is None else held.decided.cause
    if cause is None:
        return None
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


def _profile(state: NegotiatorState, known: ProfileRecord) -> ProfileExplanation:
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


def _claimed(state: NegotiatorState, known: ProfileRecord, id: str, target: Target) -> ClaimExplanation:
    held = state.expectations.get(id)
    return ClaimExplanation(
        expectation=id,
        subscription="" if held is None else held.expectation.subscription,
        utility=0.0 if held is None else held.expectation.utility,
        change=change_of(known.profile, target, known.profile.id, _cost(state, known, target)),
    )


def _cost(state: NegotiatorState, known: ProfileRecord, target: Target) -> float:
    """What a claim alone costs more than what the publisher did before anybody asked."""
    profile, ledger = known.profile, known.ledger
    capabilities = {id: replace(each, cv=ledger.baseline.get(id, each.cv)) for id, each in profile.capabilities.items()}
    before = replace(profile, capabilities=capabilities, mode=ledger.mode or profile.mode)
    return cost_of(before, target, state.actions)


def _advice(known: ProfileRecord) -> AdviceExplanation | None:
    advice = known.course.open
    if advice is None:
        return None
    change = change_of(known.profile, advice.target, known.profile.id, None)
    since = _clock(advice.since)
    return AdviceExplanation(id=advice.id, status=advice.status, since=since, values=change.values, mode=change.mode)


def _held_back(known: ProfileRecord) -> str | None:
    course = known.course
    if known.away:
        return "declared, not connected: it counts when its publisher is there"
    if known.deaf:
        return "its events come, but it is not connected: nobody can advise it"
    if course.until is None:
        return None
    rests = course.failures < ENOUGH
    what = "resting: it did not follow the last advice" if rests else "frozen: it did not follow advice"
    return f"{what}, until {_clock(course.until)}"


def _clock(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%H:%M:%S") if at else ""
