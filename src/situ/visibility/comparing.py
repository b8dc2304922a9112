"""Two decisions between the same sides, before and after a change: do fewer events pass, or more?

Filters are compared by their texts alone: whether one condition follows from another is not looked at. So a decision by
another filter is neither narrower nor wider, but another one.
"""

from __future__ import annotations

from enum import Enum

from situ.visibility.families import Family, Sets
from situ.visibility.plan import Pair, Verdict


class Direction(Enum):
    """What a change means for those who receive."""

    SAME = "same"
    NARROWER = "narrower"
    WIDER = "wider"
    OTHER = "other"


def compare(before: Pair, after: Pair) -> Direction:
    """Both compiled with the same numbers of filters."""
    if before == after:
        return Direction.SAME
    fewer, more = _follows(after, before), _follows(before, after)
    if fewer and more:
        return Direction.SAME
    return Direction.NARROWER if fewer else Direction.WIDER if more else Direction.OTHER


def _follows(one: Pair, other: Pair) -> bool:
    """Whether all that the one lets pass is let pass by the other; False also where that is not sure."""
    if one.verdict is Verdict.NEVER or other.verdict is Verdict.ALWAYS:
        return True
    if other.verdict is Verdict.NEVER or one.verdict is Verdict.ALWAYS:
        return False
    return all(any(_family_follows(mine, theirs) for mine in one.families) for theirs in other.families)


def _family_follows(one: Family, other: Family) -> bool:
    if isinstance(one, Sets) and isinstance(other, Sets):
        return all(any(mine & theirs == theirs for theirs in other.sets) for mine in one.sets)
    return one == other
