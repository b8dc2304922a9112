"""Conditions of a policy with their names looked up: relations with signs, joined as they were written.

What the checker hands to :mod:`situ.situation.policies.normal_form`. Places travel along and do not count.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from situ.errors import Location
from situ.situation.policies.policy import Is


@dataclass(frozen=True, slots=True)
class Holds:
    """One relation, or its absence."""

    literal: Is
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AllOf:
    """Parts that must all be met."""

    parts: tuple[Condition, ...]
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Parts one of which must be met."""

    parts: tuple[Condition, ...]
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class FollowedBy:
    """``first followed-by second``, at most ``within`` microseconds later; None: nothing is written."""

    first: Condition
    second: Condition
    within: int | None = None
    location: Location | None = field(default=None, compare=False, repr=False, kw_only=True)


Condition = Holds | AllOf | AnyOf | FollowedBy
