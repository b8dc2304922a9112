"""The meet: a situation is visible where it is itself, and where everything is that caused it.

It carries the stamps of its parts, each once. A part that is a situation brings its own stamp and those of its parts,
so whoever sees a situation may see every event inside it. What did not happen has no event to test: of it the stamps of
all advertisements count that could have shown it, without a bit, so that only pairs that always hold see it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from situ.tags import TagSet
from situ.visibility.epochs import Epochs, Evaluate, Stamp, nobody_knows
from situ.visibility.plan import Verdict

MOST_PARTS = 64
"""Beyond so many, parts of one tag set and epoch are merged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meet:
    """The visibility of a situation: its own stamp, and those of all that it comes from. ``merged`` counts what was."""

    own: Stamp
    parts: frozenset[Stamp] = frozenset()
    merged: int = 0

    @property
    def stamps(self) -> frozenset[Stamp]:
        """What it brings into a situation that it becomes part of."""
        return self.parts | {self.own}


def meet(own: Stamp, events: Iterable[Stamp], situations: Iterable[Meet] = (), absent: Iterable[Stamp] = ()) -> Meet:
    """The visibility of a situation that was detected from these."""
    inner = list(situations)
    parts: set[Stamp] = {*events, *absent}
    for each in inner:
        parts |= each.stamps
    kept, merged = merge(parts)
    return Meet(own=own, parts=kept, merged=merged + sum(each.merged for each in inner))


def merge(parts: Iterable[Stamp], most: int = MOST_PARTS) -> tuple[frozenset[Stamp], int]:
    """The parts, merged if they are too many: a filter counts as true only if it is so for all. How many are gone."""
    found = frozenset(parts)
    if len(found) <= most:
        return found, 0
    together: dict[Stamp, int] = {}
    for each in found:
        group = replace(each, bits=0)
        together[group] = together.get(group, each.bits) & each.bits
    kept = frozenset(replace(group, bits=bits) for group, bits in together.items())
    return kept, len(found) - len(kept)


def absent(epochs: Epochs, epoch: int, reads: TagSet, advertised: Iterable[TagSet]) -> frozenset[Stamp]:
    """What counts for an event that did not come: every tag set under which the policy could have seen one."""
    return frozenset(
        Stamp(tags=tags, epoch=epoch)
        for tags in advertised
        if epochs.pair(epoch, tags, reads).verdict is not Verdict.NEVER
    )


def release(found: Meet, dimensions: Iterable[str]) -> Meet:
    """An administrator lets go: in these dimensions parts count no longer, only what the situation is itself."""
    let_go = frozenset(dimensions)
    return replace(found, parts=frozenset(replace(each, released=each.released | let_go) for each in found.parts))


def released_data(data: Mapping[str, Any], keep: Iterable[str]) -> dict[str, Any]:
    """What is left of a situation that was released: no events inside, and only the attributes that may remain."""
    wanted = frozenset(keep)
    return {name: value for name, value in data.items() if name in wanted}


def reaches(epochs: Epochs, now: int, found: Meet, subscribed: TagSet, evaluate: Evaluate = nobody_knows) -> bool:
    """Whether a situation may be handed to a subscription: it itself, and each of its parts, by the rule of epochs.

    ``evaluate`` is of the situation. Its parts are not at hand, and some never were: filters that are new since they
    were stamped are not true for them.
    """
    return epochs.visible(found.own, now, subscribed, evaluate) and all(
        epochs.visible(each, now, subscribed) for each in found.parts
    )


def could_reach(
    epochs: Epochs,
    epoch: int,
    publishes: TagSet,
    reads: TagSet,
    advertised: Iterable[Iterable[TagSet]],
    subscribed: TagSet,
    released: frozenset[str] = frozenset(),
) -> bool:
    """Whether some situation of a policy may reach a subscription.

    ``advertised`` are the tag sets under which each of the types is published that the policy cannot do without.
    """
    if epochs.pair(epoch, publishes, subscribed).verdict is Verdict.NEVER:
        return False
    return all(
        any(
            epochs.pair(epoch, tags, reads).verdict is not Verdict.NEVER
            and epochs.pair(epoch, tags, subscribed, released).verdict is not Verdict.NEVER
            for tags in each
        )
        for each in advertised
    )
