"""Sight: what routing asks of visibility, which it knows nothing else of."""

from __future__ import annotations

from typing import Protocol, TypeAlias

from situ.event.row import Row
from situ.tags import TagSet

Look: TypeAlias = tuple[int, int, int, int, str]
"""All that an event's visibility depends on: its tags, the epoch it was stamped in, its bits then and in the epoch in
force, and the stamps of its parts. Events that look alike are seen by the same."""


class Sight(Protocol):
    """Decides whether events are visible to tag sets."""

    @property
    def epoch(self) -> int:
        """The epoch in force."""

    def look(self, row: Row) -> Look: ...

    def sees(self, look: Look, subscribed: TagSet) -> bool:
        """Whether what looks so may be handed to a subscription with these tags."""

    def saw(self, look: Look, subscribed: TagSet) -> bool:
        """Whether it was visible to these tags when it was stamped, whatever has changed since."""

    def asked(self, tags: int, epoch: int, subscribed: TagSet) -> tuple[int, int]:
        """On which bits it depends, then and in the epoch in force, for what has these tags and no parts."""
