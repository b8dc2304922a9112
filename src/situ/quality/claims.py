"""Claims: what each expectation needs of the profiles that a plan moves for it.

A claim holds no more than its expectation needs by itself, so that what is left of a plan when some expectations go
follows from the claims that stay. Who serves whom is settled with the plan; what that is in values is worked out for
whoever is asked about.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from types import MappingProxyType

from situ.quality.expectation import Expectation
from situ.quality.field import Field
from situ.quality.ground import Ground
from situ.quality.operating import cheapest
from situ.quality.problem import STAY, Claim, Problem, Target
from situ.quality.profile import Profile

Serving = Mapping[str, tuple[Expectation, tuple[str, ...]]]
"""Expectation, by its id → the profiles that are moved for it."""
_NOBODY: Mapping[str, tuple[str, ...]] = MappingProxyType({})


class Claims(Mapping[str, tuple[Claim, ...]]):
    """The claims of all that a plan serves, by the ids of expectations."""

    def __init__(self, problem: Problem, targets: Mapping[str, Target], serving: Serving) -> None:
        self._problem = problem
        self._targets = targets
        self._serving = serving

    def __getitem__(self, id: str) -> tuple[Claim, ...]:
        expectation, profiles = self._serving[id]
        return tuple(self._claim(expectation, self._problem.profiles[each]) for each in profiles)

    def __contains__(self, id: object) -> bool:
        return id in self._serving

    def __iter__(self) -> Iterator[str]:
        return iter(self._serving)

    def __len__(self) -> int:
        return len(self._serving)

    def on(self, profiles: Set[str]) -> Iterator[Claim]:
        """All claims on some profiles."""
        for expectation, serving in self._serving.values():
            for id in serving:
                if id in profiles:
                    yield self._claim(expectation, self._problem.profiles[id])

    def __repr__(self) -> str:
        return repr(dict(self))

    def _claim(self, expectation: Expectation, profile: Profile) -> Claim:
        values = {}
        for id, need in expectation.needs.items():
            capability = profile.capabilities.get(id)
            if capability and not need.about.at_least(capability.cv, need.floor):
                values[id] = cheapest(capability, need.floor, self._problem.actions)
        mode = self._targets[profile.id].mode if any(id in profile.moded for id in expectation.needs) else ""
        return Claim(expectation=expectation.id, profile=profile.id, target=Target(values=values, mode=mode))


def serving(
    ground: Ground,
    wanting: Iterable[tuple[Field, Sequence[Expectation]]],
    moved_for: Mapping[str, tuple[str, ...]] = _NOBODY,
) -> Iterator[tuple[str, tuple[Expectation, tuple[str, ...]]]]:
    """Of those that are not satisfied as things are, by their fields, which profiles each is satisfied by in the plan.

    ``moved_for`` says which profiles were moved for an expectation, where that is known.
    """
    for field, some in wanting:
        if moved := sorted(field.profiles.keys() & ground.targets.keys()):
            yield from _serving(field, some, moved, moved_for)


def for_nobody(ground: Ground, adopted: Claims, among: Sequence[str]) -> Mapping[str, Target]:
    """What a plan does to some profiles that no claim asks for: it is cheaper so."""
    claimed: dict[str, list[Target]] = {id: [ground.problem.start.get(id, STAY)] for id in among}
    for each in adopted.on(claimed.keys()):
        claimed[each.profile].append(each.target)
    found = {id: _without(ground.targets[id], claims) for id, claims in claimed.items()}
    return {id: target for id, target in found.items() if target}


def _without(target: Target, claimed: Sequence[Target]) -> Target:
    values = {
        id: value for id, value in target.values.items() if not any(each.values.get(id) == value for each in claimed)
    }
    return Target(values=values, mode="" if any(each.mode for each in claimed) else target.mode)


def _serving(
    field: Field, expectations: Sequence[Expectation], moved: Sequence[str], moved_for: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, tuple[Expectation, tuple[str, ...]]]]:
    lasting = {id for id in moved if not field.profiles[id].modes}
    """Free properties only get better: whoever is moved for somebody stays good enough, unless a mode is another."""
    by_the_way = []
    for each in expectations:
        if each.publishers > 1:
            if field.is_met(each):
                yield each.id, (each, tuple(_several(field, each)))
        elif (first := moved_for.get(each.id)) and (first[0] in lasting or field.meets(first[0], each)):
            yield each.id, (each, first)
        else:
            by_the_way.append(each)
    alone = {id: (id,) for id in moved}
    firsts = field.firsts_that_meet(by_the_way, moved) if by_the_way else []
    for each, id in zip(by_the_way, firsts, strict=True):
        if id is not None:
            yield each.id, (each, alone[id])


def _several(field: Field, expectation: Expectation) -> Iterator[str]:
    """As many publishers as it takes, besides those that meet it as they are."""
    meeting = [field.profiles[id] for id in field.meeting(expectation)]
    counted = {each.publisher for each in meeting if expectation.is_met_by(each.current())}
    for each in meeting:
        if len(counted) < expectation.publishers and each.publisher not in counted:
            counted.add(each.publisher)
            yield each.id
