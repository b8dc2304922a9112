"""Causes: after which change it was decided on an expectation as it stands.

Each step notes what happened in it; an expectation that stands otherwise after it than before keeps the cause that
concerns it most. Who looks at it later, or after a restart, is told that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from situ.quality.inputs import (
    Answered,
    Came,
    Deployed,
    Gone,
    Input,
    Providing,
    Registering,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)

if TYPE_CHECKING:
    from situ.quality.state import Held, State

PROJECT_CHANGED = "the project changed"
STARTED = "the router was started"

Outcome = tuple[str, ...]
"""How an expectation stands, as far as it was decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Something that happened: to a profile, to an expectation, or to neither."""

    what: str
    """As the rest of a sentence that begins with what it happened to."""
    profile: str = ""
    expectation: str = ""

    def as_json(self) -> dict[str, Any]:
        return {"what": self.what, "profile": self.profile, "expectation": self.expectation}


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """How an expectation stands, since when, and after what."""

    outcome: Outcome
    at: float
    """Seconds since the epoch."""
    cause: Cause | None = None

    def as_json(self) -> dict[str, Any]:
        cause = None if self.cause is None else self.cause.as_json()
        return {"outcome": list(self.outcome), "at": self.at, "cause": cause}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Decided:
        cause = None if value["cause"] is None else Cause(**value["cause"])
        return cls(outcome=tuple(value["outcome"]), at=value["at"], cause=cause)


# ── what happens in a step ──


def causes_of(state: State, given: Input) -> Causes:
    """What an input says has happened; what is found out by it is added by whoever does."""
    found, find = Causes(), _CAUSES.get(type(given))
    for each in find(state, given) if find is not None else ():
        found.add(state, each)
    return found


def _expectation(what: str) -> Callable[[State, Any], Iterator[Cause]]:
    def find(_: State, given: Any) -> Iterator[Cause]:
        yield Cause(what=what, expectation=given.id)

    return find


def _profile(what: str) -> Callable[[State, Any], Iterator[Cause]]:
    def find(_: State, given: Any) -> Iterator[Cause]:
        yield Cause(what=what, profile=given.id)

    return find


def _registered(state: State, given: Registering) -> Iterator[Cause]:
    yield Cause(what="was registered", expectation=given.expectation.id)


def _provided(state: State, given: Providing) -> Iterator[Cause]:
    yield Cause(what="was registered", profile=given.profile.id)


_ANSWERED = {"accepted": "accepted an advice", "refused": "refused an advice", "failed": "could not follow an advice"}


def _answered(state: State, given: Answered) -> Iterator[Cause]:
    yield Cause(what=_ANSWERED[given.verdict], profile=given.advice.rpartition("#")[0])


def _all_of_client(what: str) -> Callable[[State, Any], Iterator[Cause]]:
    def find(state: State, given: Any) -> Iterator[Cause]:
        yield from (Cause(what=what, profile=id) for id in state.profiles.of(given.client))
        yield from (Cause(what=what, expectation=id) for id in state.expectations.of(given.client))

    return find


def _came(state: State, given: Came) -> Iterator[Cause]:
    yield from _all_of_client("came back" if given.client in state.gone else "came")(state, given)


def _deployed(state: State, given: Deployed) -> Iterator[Cause]:
    yield Cause(what=PROJECT_CHANGED)


_CAUSES: Mapping[type[Input], Callable[[State, Any], Iterator[Cause]]] = {
    Registering: _registered,
    Updating: _expectation("was updated"),
    Suspending: _expectation("was suspended"),
    Resuming: _expectation("was resumed"),
    Revoking: _expectation("was revoked"),
    Providing: _provided,
    Revising: _profile("was updated"),
    Retracting: _profile("was revoked"),
    Answered: _answered,
    Gone: _all_of_client("left"),
    Came: _came,
    Deployed: _deployed,
}


# ── whom it concerns ──


@dataclass(slots=True)
class Causes:
    """All that happened in one step, by what it happened to."""

    profiles: dict[str, Cause] = field(default_factory=dict)
    pools: dict[str, Cause] = field(default_factory=dict)
    """Pool → the first that happened to a profile in it."""
    expectations: dict[str, Cause] = field(default_factory=dict)
    first: Cause | None = None

    def add(self, state: State, cause: Cause) -> None:
        self.first = self.first or cause
        if cause.expectation:
            self.expectations.setdefault(cause.expectation, cause)
        if cause.profile:
            self.profiles.setdefault(cause.profile, cause)
            if (pool := state.pool_of(cause.profile)) is not None:
                self.pools.setdefault(pool, cause)

    def concerning(self, state: State, held: Held) -> Cause | None:
        """That which concerns an expectation most: what happened to itself, to a profile that it relies on, to one that
        it could get something of, to an alternative, to anybody."""
        id = held.expectation.id
        nearest = (
            self.expectations.get(id),
            *(self.profiles.get(each) for each in sorted(state.claimed.get(id, ()))),
            *(self.pools.get(each) for each in sorted(held.pools)),
            *(self.expectations.get(each) for each in state.by_subscription.get(held.expectation.subscription, ())),
            self.first,
        )
        return next((each for each in nearest if each is not None), None)
