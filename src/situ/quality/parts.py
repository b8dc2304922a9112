"""Parts: a problem falls apart where no expectation joins two profiles, and each part is decided alone.

Alternatives of one subscription belong together, since only the best satisfied one counts. A budget is common to all,
so with one there is one part. Whatever is met in any case joins nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from situ.quality.choices import Choices, choices_of
from situ.quality.groups import Groups
from situ.quality.problem import Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class Stake:
    """What one subscription can win: bits of its alternatives with their utilities, best first."""

    subscription: str
    alternatives: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """Profiles and subscriptions that nothing outside has to do with."""

    choices: tuple[Choices, ...]
    """In the order of the ids of profiles."""
    stakes: tuple[Stake, ...]
    """In the order of subscriptions."""
    always: int
    """Expectations that are met whatever is chosen."""
    several: Mapping[int, int]
    """Bit of an expectation → how many publishers have to meet it, where that is more than one."""

    def met_by(self, masks: Sequence[int]) -> int:
        """What is met if each of the profiles meets this."""
        found = self.always
        for mask in masks:
            found |= mask
        for bit, least in self.several.items():
            if found >> bit & 1 and not self.always >> bit & 1 and self._publishers(masks, bit) < least:
                found ^= 1 << bit
        return found

    def _publishers(self, masks: Sequence[int], bit: int) -> int:
        pairs = zip(self.choices, masks, strict=True)
        return len({each.profile.publisher for each, mask in pairs if mask >> bit & 1})


def parts_of(problem: Problem) -> list[Part]:
    """The parts of a problem in which there is anything to choose."""
    choices = choices_of(problem)
    several = {bit: each.publishers for bit, each in enumerate(problem.expectations) if each.publishers > 1}
    always = _always(choices, several)
    stakes = _stakes(problem)
    groups = Groups[int]()
    swayed = [_swayed(each, choices, always) for each in stakes]
    for places in swayed:
        groups.join(places)
    if problem.strategy.budget is not None:
        groups.join(place for place, each in enumerate(choices) if _is_open(each))
    by_group: dict[int, list[Stake]] = defaultdict(list)
    for stake, places in zip(stakes, swayed, strict=True):
        for place in places[:1]:
            by_group[groups.of(place)].append(stake)
    members: dict[int, list[Choices]] = defaultdict(list)
    for place, each in enumerate(choices):
        members[groups.of(place)].append(each)
    return [
        Part(choices=tuple(each), stakes=tuple(by_group[group]), always=always, several=several)
        for group, each in members.items()
        if by_group[group] or any(map(_is_open, each))
    ]


def _is_open(choices: Choices) -> bool:
    """Whether there is anything to choose, or to pay."""
    return any(len(levels) > 1 or levels[0].cost for levels in choices.levels)


def _stakes(problem: Problem) -> list[Stake]:
    by_subscription: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for bit, each in enumerate(problem.expectations):
        by_subscription[each.subscription].append((bit, each.utility))
    return [
        Stake(subscription=name, alternatives=tuple(sorted(pairs, key=lambda pair: -pair[1])))
        for name, pairs in sorted(by_subscription.items())
    ]


def _always(choices: Sequence[Choices], several: Mapping[int, int]) -> int:
    found = 0
    for each in choices:
        found |= each.firm
    for bit, least in several.items():
        if len({each.profile.publisher for each in choices if each.firm >> bit & 1}) < least:
            found &= ~(1 << bit)
    return found


def _swayed(stake: Stake, choices: Sequence[Choices], always: int) -> list[int]:
    """The places of the profiles on which it depends what a subscription gets."""
    wanted = 0
    for bit, _ in stake.alternatives:
        if always >> bit & 1:
            break
        wanted |= 1 << bit
    return [place for place, each in enumerate(choices) if each.able & wanted]
