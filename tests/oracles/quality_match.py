"""The slow, obvious meaning of matching: try every value that could matter, in every combination.

For what can be had of a property it is enough to try the ends of its range, the current value and all bounds of the
need that lie between: whatever is accepted is accepted from one of these on. Everything fast must agree with this.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import product

from situ.quality.match.satisfaction import QualityMatch, Satisfaction
from situ.quality.model.declarations import Capability, Expectation, Need, Profile

Values = Mapping[str, float]
"""Property → value."""


def accepts(need: Need, value: float) -> bool:
    """Whether a single value is good enough: it is wanted, or better than what is wanted."""
    wanted = need.lb <= value <= need.ub
    return wanted or (value > need.ub if need.about.maximise else value < need.lb)


def values_of(capability: Capability, need: Need | None) -> tuple[float, ...]:
    """Values of a range, among them one that is accepted, if there is any."""
    between = (need.lb, need.ub) if need is not None else ()
    return (
        capability.lb,
        capability.ub,
        capability.cv,
        *(each for each in between if capability.lb <= each <= capability.ub),
    )


def points_of(profile: Profile, expectation: Expectation) -> Iterator[Values]:
    """What a profile can do, all properties at once."""
    free = sorted(profile.capabilities)
    choices = [values_of(profile.capabilities[id], expectation.needs.get(id)) for id in free]
    for mode in [each.values for each in profile.modes] or [{}]:
        for chosen in product(*choices):
            yield {**dict(zip(free, chosen, strict=True)), **mode}


def current_values(profile: Profile) -> Values:
    mode = profile.mode_named(profile.mode).values if profile.modes else {}
    return {**{id: each.cv for id, each in profile.capabilities.items()}, **mode}


def meets(expectation: Expectation, values: Values) -> bool:
    return all(id in values and accepts(need, values[id]) for id, need in expectation.needs.items())


def match_by_enumeration(expectation: Expectation, profiles: Iterable[Profile]) -> QualityMatch:
    now, able = set(), set()
    for profile in profiles:
        if meets(expectation, current_values(profile)):
            now.add(profile.id)
        elif any(meets(expectation, values) for values in points_of(profile, expectation)):
            able.add(profile.id)
    return QualityMatch(
        state=_state(expectation.publishers, now, able), now=tuple(sorted(now)), able=tuple(sorted(able))
    )


def _state(needed: int, now: set[str], able: set[str]) -> Satisfaction:
    if len({_publisher(id) for id in now}) >= needed:
        return Satisfaction.SATISFIED
    return (
        Satisfaction.SATISFIABLE if len({_publisher(id) for id in now | able}) >= needed else Satisfaction.UNSATISFIED
    )


def _publisher(id: str) -> str:
    return id.partition("/")[0]


def is_covered(need: Need, capability: Capability) -> bool:
    """Some value that can be had is good enough."""
    return need.about.at_least(capability.best, need.floor)


def is_fully_covered(need: Need, capability: Capability) -> bool:
    """Every value that is wanted, or a better one, can be had."""
    return need.about.at_least(capability.best, need.goal)


def is_guaranteed(need: Need, capability: Capability) -> bool:
    """No value of the range is too bad."""
    return need.about.at_least(capability.worst, need.floor)
