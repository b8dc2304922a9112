"""Claims: what each expectation needs of the profiles that a plan moves for it.

A claim holds no more than its expectation needs by itself, so that what is left of a plan when some expectations go
follows from the claims that stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from situ.quality.expectation import Expectation
from situ.quality.field import Field
from situ.quality.ground import Ground
from situ.quality.operating import cheapest
from situ.quality.problem import STAY, Claim, Target
from situ.quality.profile import Profile
from situ.quality.rows import first_that_meet


def claims_of(ground: Ground, wanting: list[Expectation]) -> dict[str, tuple[Claim, ...]]:
    """Of those that are not satisfied as things are, what each that the plan satisfies needs of whom."""
    by_field: dict[int, tuple[Field, list[Expectation]]] = {}
    for each in wanting:
        field = ground.field(each)
        by_field.setdefault(id(field), (field, []))[1].append(each)
    found = {each.id: claims for field, some in by_field.values() for each, claims in _claims(ground, field, some)}
    return {each.id: found[each.id] for each in wanting if each.id in found}


def for_nobody(ground: Ground, adopted: Mapping[str, tuple[Claim, ...]]) -> Mapping[str, Target]:
    """What a plan does to profiles that no claim asks for: it is cheaper so."""
    claimed: dict[str, list[Target]] = {}
    for claims in adopted.values():
        for each in claims:
            claimed.setdefault(each.profile, []).append(each.target)
    begun = ground.problem.start
    found = {id: _without(target, [*claimed.get(id, ()), begun.get(id, STAY)]) for id, target in ground.targets.items()}
    return {id: target for id, target in found.items() if target}


def _without(target: Target, claimed: Sequence[Target]) -> Target:
    values = {
        id: value for id, value in target.values.items() if not any(each.values.get(id) == value for each in claimed)
    }
    return Target(values=values, mode="" if any(each.mode for each in claimed) else target.mode)


def _claims(
    ground: Ground, field: Field, expectations: list[Expectation]
) -> Iterator[tuple[Expectation, tuple[Claim, ...]]]:
    moved = [place for place, each in enumerate(field.profiles) if each.id in ground.targets]
    if not moved:
        return
    numbers = [field.numbers[each.id] for each in expectations]
    points = field.now[:, [field.firsts[place] for place in moved]]
    firsts = first_that_meet(field.floors[:, numbers], points).tolist()
    for expectation, number, first in zip(expectations, numbers, firsts, strict=True):
        if expectation.publishers > 1:
            if field.is_met(number):
                yield expectation, tuple(_several(ground, field, number))
        elif first >= 0:
            yield expectation, (_claim(ground, expectation, field.profiles[moved[first]]),)


def _several(ground: Ground, field: Field, number: int) -> Iterator[Claim]:
    """Of as many publishers as it takes, besides those that meet it as they are."""
    expectation = field.expectations[number]
    meeting = [field.profiles[place] for place in field.meeting(number)]
    counted = {each.publisher for each in meeting if expectation.is_met_by(each.current())}
    for each in meeting:
        if len(counted) < expectation.publishers and each.publisher not in counted:
            counted.add(each.publisher)
            yield _claim(ground, expectation, each)


def _claim(ground: Ground, expectation: Expectation, profile: Profile) -> Claim:
    planned = ground.targets[profile.id]
    values = {}
    for id, need in expectation.needs.items():
        capability = profile.capabilities.get(id)
        if capability and not need.about.at_least(capability.cv, need.floor):
            values[id] = cheapest(capability, need.floor, ground.problem.actions)
    mode = planned.mode if any(id in profile.moded for id in expectation.needs) else ""
    return Claim(expectation=expectation.id, profile=profile.id, target=Target(values=values, mode=mode))
