"""The work of one step: what has become different and is to be looked at, and what is going to be done about it."""

from __future__ import annotations

from dataclasses import dataclass, field

from situ.quality.causes import Causes
from situ.quality.effects import Reply, Tell
from situ.quality.shape import Shape


@dataclass(slots=True)
class Work:
    """Of one step, at one time."""

    now: float
    causes: Causes = field(default_factory=Causes)
    """What has happened."""
    profiles: set[str] = field(default_factory=set)
    """That may have to be matched otherwise."""
    violating: set[str] = field(default_factory=set)
    """Of these, those that were found to do less than they say."""
    expectations: set[str] = field(default_factory=set)
    """Whose state, or ways to satisfy them, may be others."""
    pools: set[str] = field(default_factory=set)
    """In which something may be possible now that was not before."""
    advise: set[str] = field(default_factory=set)
    """Profiles of which more or less may be asked now."""
    subscriptions: set[str] = field(default_factory=set)
    """Whose expectation in force, or shape, may be another."""
    tell: set[str] = field(default_factory=set)
    """Expectations whose client may have to be told."""
    usage: set[str] = field(default_factory=set)
    """Profiles whose publisher is to be told at once how they are used."""
    keep: set[str] = field(default_factory=set)
    """Keys of what is to be written down."""
    shaped: dict[str, Shape | None] = field(default_factory=dict)
    tells: list[Tell] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def keep_expectation(self, id: str) -> None:
        self.keep.add(f"expectation/{id}")

    def keep_profile(self, id: str) -> None:
        self.keep.add(f"profile/{id}")
