"""Settling a choice: every profile gets what is best for the whole as the others are, until nothing changes.

What a profile has does not matter but to the subscriptions that it could serve, and they get what they get by those
alone who could serve them, too. So no more than that is weighed. That is the same as to weigh the whole: all rules
compare two choices alike, whatever it is that both give to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from situ.quality.choices import Option
from situ.quality.exact import Chosen
from situ.quality.weighing import Weighing


def settled(weighing: Weighing, options: Sequence[Sequence[Option]], start: Chosen, *, rounds: int) -> Chosen:
    """A choice that is no worse than one that harms nobody, among the options of each profile."""
    nearby = _all_nearby(weighing) if rounds else ()
    chosen = list(start)
    cost = sum(weighing.scaled(each.cost) for each in chosen)
    for _ in range(rounds):
        before = tuple(chosen)
        for near, some in zip(nearby, options, strict=True):
            others = cost - weighing.scaled(chosen[near.place].cost)
            chosen[near.place] = near.best(chosen, some, others)
            cost = others + weighing.scaled(chosen[near.place].cost)
        if tuple(chosen) == before:
            break
    return tuple(chosen)


@dataclass(frozen=True, slots=True)
class _Near:
    """A profile with all that it matters to, and all that matters to these."""

    place: int
    weighing: Weighing
    """Of those alone."""
    members: tuple[int, ...]
    """The places of the profiles in it."""

    def best(self, chosen: Sequence[Option], options: Sequence[Option], others: int) -> Option:
        """The option of the profile that is worth the most; unless another is worth more, it keeps its.

        ``others`` is what all other profiles cost.
        """
        weighing = self.weighing
        masks = [chosen[place].met for place in self.members]
        at = self.members.index(self.place)
        best, most = chosen[self.place], None
        for option in (best, *options):
            masks[at] = option.met
            results = weighing.results(weighing.part.met_by(masks))
            cost = others + weighing.scaled(option.cost)
            if not weighing.permits(results, cost):
                continue
            worth = weighing.worth(results, cost)
            if most is None or worth > most:
                best, most = option, worth
        return best


def _all_nearby(weighing: Weighing) -> list[_Near]:
    part = weighing.part
    asked = [sum(1 << bit for bit, _ in each.alternatives) for each in part.stakes]
    able = [each.able for each in part.choices]
    found = []
    for place, mine in enumerate(able):
        stakes = [at for at, mask in enumerate(asked) if mask & mine]
        wanted = 0
        for at in stakes:
            wanted |= asked[at]
        members = tuple(at for at, mask in enumerate(able) if mask & wanted or at == place)
        near = replace(
            part,
            choices=tuple(part.choices[at] for at in members),
            stakes=tuple(part.stakes[at] for at in stakes),
            always=part.always & wanted,
            several={bit: least for bit, least in part.several.items() if wanted >> bit & 1},
        )
        found.append(_Near(place, weighing.within(near, stakes), members))
    return found
