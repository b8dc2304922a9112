"""Explaining an expectation: every profile against every need, what would satisfy it, and what it would take less.

Owns what is worked out from declarations alone. Who decided what, and when, is told by whoever knows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.quality.actions import NO_ACTIONS, Actions
from situ.quality.declared import Strategy
from situ.quality.expectation import Expectation, Need
from situ.quality.explained import Change, Declined, Explanation, Judged, Relaxed, Value, Viewed, Wanted
from situ.quality.ground import Ground
from situ.quality.matching import State, capability_of, match
from situ.quality.operating import cost_of
from situ.quality.problem import Problem, Refusal, Target, point_at
from situ.quality.profile import Profile
from situ.quality.property import Property

_POOL = "relevant"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
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
    actions: Actions = NO_ACTIONS
    strategy: Strategy = field(default_factory=Strategy)
    refusal: Refusal | None = None


def explain(case: Case) -> Explanation:
    """What can be said without knowing what was decided but for a refusal."""
    expectation = case.expectation
    found = match(expectation, case.profiles)
    changes = _changes(case)
    return Explanation(
        expectation=expectation.id,
        subscription=expectation.subscription,
        utility=expectation.utility,
        state=found.state.name.lower(),
        by=tuple(case.names[id] for id in found.now),
        needs=tuple(_wanted(need) for _, need in _needs(case)),
        profiles=tuple(_viewed(case, each, changes) for each in _in_order(case)),
        changes=() if found.state is State.SATISFIED else tuple(changes.values()),
        relaxations=() if found.state is State.SATISFIED else tuple(_relaxations(case)),
        declined=None if case.refusal is None else _declined(case, case.refusal),
    )


def change_of(profile: Profile, target: Target, name: str, cost: float | None) -> Change:
    """A target in the words of declarations."""
    values: dict[str, Value] = {}
    if target.mode:
        mode = profile.mode_named(target.mode)
        values = {id: about.written(mode.values[id]) for id, about in profile.moded.items()}
    values |= {id: profile.capabilities[id].about.written(value) for id, value in target.values.items()}
    return Change(profile=name, mode=target.mode, values=values, cost=cost)


# ── one profile ──


def _needs(case: Case) -> list[tuple[str, Need]]:
    """In the order in which they were declared."""
    return list(case.expectation.needs.items())


def _in_order(case: Case) -> list[Profile]:
    return sorted(case.profiles, key=lambda each: each.id)


def _wanted(need: Need) -> Wanted:
    about = need.about
    return Wanted(
        property=about.id,
        unit=about.unit,
        lb=_number(about, need.lb),
        ub=_number(about, need.ub),
        floor=_number(about, need.floor),
        maximise=about.maximise,
    )


def _viewed(case: Case, profile: Profile, changes: Mapping[str, Change]) -> Viewed:
    return Viewed(
        name=case.names[profile.id],
        mode=profile.mode,
        needs=tuple(_judged(case, profile, id, need) for id, need in _needs(case)),
        satisfies=case.expectation.is_met_by(profile.current()),
        change=changes.get(profile.id),
    )


def _judged(case: Case, profile: Profile, id: str, need: Need) -> Judged:
    about, effective = need.about, capability_of(profile, id)
    if effective is None:
        return Judged(property=id, verdict="missing")
    declared = capability_of(case.declared.get(profile.id, profile), id)
    measured = case.measured.get(profile.id, {}).get(id)
    good = about.at_least(effective.cv, need.floor)
    within_reach = about.at_least(effective.best, need.floor)
    return Judged(
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


def _changes(case: Case) -> dict[str, Change]:
    """Of every profile that does not satisfy it and could, the cheapest change, cheapest first."""
    expectation = case.expectation
    ground = Ground(
        Problem(
            expectations=(expectation,),
            profiles={each.id: each for each in case.profiles},
            pools={each.id: _POOL for each in case.profiles},
            relevant={expectation.subscription: frozenset({_POOL})},
            actions=case.actions,
        )
    )
    met = set(ground.field(expectation).meeting(expectation))
    found: dict[str, Change] = {}
    for each in ground.candidates(expectation):
        if each.profile not in found and each.profile not in met:
            profile = ground.problem.profiles[each.profile]
            found[each.profile] = change_of(profile, each.target, case.names[each.profile], each.extra)
    return found


def _relaxations(case: Case) -> Iterator[Relaxed]:
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


def _best_of(case: Case, id: str, need: Need, ways: Sequence[tuple[Profile, Target]]) -> tuple[float, Relaxed] | None:
    """The best value of a need that is too little for it, among profiles that meet all the others, or can."""
    found: list[tuple[float, float, Relaxed]] = []
    for profile, target in ways:
        good = point_at(profile, target).get(id)
        others = None if good is None or good >= need.asked else _with_others(case, id, profile, target)
        if good is not None and others is not None:
            cost = cost_of(profile, others, case.actions)
            relaxed = Relaxed(
                property=id,
                to=need.about.written(need.about.value(good)),
                maximise=need.about.maximise,
                change=change_of(profile, others, case.names[profile.id], cost),
            )
            found.append((good, -cost, relaxed))
    best = max(found, key=lambda each: each[:2], default=None)
    return None if best is None else (best[0], best[2])


def _with_others(case: Case, id: str, profile: Profile, target: Target) -> Target | None:
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


def _declined(case: Case, refusal: Refusal) -> Declined:
    profiles = {each.id: each for each in case.profiles}
    profile = profiles.get(refusal.profile)
    change = Change(profile=case.names.get(refusal.profile, ""), cost=refusal.extra)
    if profile is not None:
        change = change_of(profile, refusal.target, case.names[profile.id], refusal.extra)
    satisfied = [each for each in case.alternatives if match(each, case.profiles).state is State.SATISFIED]
    first = max(satisfied, key=lambda each: (each.utility, -each.order), default=None)
    return Declined(
        strategy=case.strategy.name,
        why=refusal.why,
        change=change,
        alternative="" if first is None or refusal.why != "alternative" else first.id,
        alternative_by=()
        if first is None or refusal.why != "alternative"
        else tuple(case.names[id] for id in match(first, case.profiles).now),
        exact=refusal.exact,
        tipped="" if refusal.extra is None else _tipped(case, profile, refusal, refusal.extra),
    )


def _tipped(given: Case, profile: Profile | None, refusal: Refusal, extra: float) -> str:
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


def _number(about: Property, value: float) -> Value | None:
    return about.written(value) if math.isfinite(value) else None
