"""The state of the negotiator: expectations, profiles, decisions with their causes, and the work of one step.

`DecisionCause` and `StepCauses` say why something stands as it does. `ClientIndex` finds what belongs to one client.
`NegotiatorState` is all that is known, `StepWork` what one step has still to look at and to do.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from situ.lang.json_form import StoredForm
from situ.quality.match.match_index import MatchIndex
from situ.quality.measurement.estimator import Correction, Estimate, effective_profile
from situ.quality.measurement.panes import PaneStore
from situ.quality.model.allocation_problem import (
    NO_ACTIONS,
    AllocationPlan,
    AllocationProblem,
    PublisherActions,
    Refusal,
)
from situ.quality.model.declarations import NO_QUALITY, Expectation, Point, Profile, Quality
from situ.quality.model.shapes import Shape
from situ.quality.negotiation.advice import AdviceCourse, Ledger
from situ.quality.negotiation.feedback import StateChange, Usage
from situ.quality.negotiation.inputs_and_effects import (
    Answered,
    Came,
    DeployedQuality,
    Gone,
    Input,
    NotifyClient,
    Providing,
    Registering,
    Relevance,
    Reply,
    Restored,
    Resuming,
    Retracting,
    Revising,
    Revoking,
    Suspending,
    Updating,
)

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Causes: after which change it was decided on an expectation as it stands. Each step notes what happened in it; an
# expectation that stands otherwise after it than before keeps the cause that concerns it most. Who looks at it later,
# or after a restart, is told that one.

PROJECT_CHANGED = "the project changed"
STARTED = "the router was started"

Outcome = tuple[str, ...]
"""How an expectation stands, as far as it was decided."""


class DecisionCause(StoredForm, frozen=True, kw_only=True):
    """Something that happened: to a profile, to an expectation, or to neither."""

    what: str
    """As the rest of a sentence that begins with what it happened to."""
    profile: str = ""
    expectation: str = ""


class ExpectationDecision(StoredForm, frozen=True, kw_only=True):
    """How an expectation stands, since when, and after what."""

    outcome: Outcome
    at: float
    """Seconds since the epoch."""
    cause: DecisionCause | None = None


# ── what happens in a step ──


def causes_of(state: NegotiatorState, given: Input) -> StepCauses:
    """What an input says has happened; what is found out by it is added by whoever does."""
    found, find = StepCauses(), _CAUSES.get(type(given))
    for each in find(state, given) if find is not None else ():
        found.add(state, each)
    return found


def _expectation(what: str) -> Callable[[NegotiatorState, Any], Iterator[DecisionCause]]:
    def find(_: NegotiatorState, given: Any) -> Iterator[DecisionCause]:
        yield DecisionCause(what=what, expectation=given.id)

    return find


def _profile(what: str) -> Callable[[NegotiatorState, Any], Iterator[DecisionCause]]:
    def find(_: NegotiatorState, given: Any) -> Iterator[DecisionCause]:
        yield DecisionCause(what=what, profile=given.id)

    return find


def _registered(state: NegotiatorState, given: Registering) -> Iterator[DecisionCause]:
    yield DecisionCause(what="was registered", expectation=given.expectation.id)


def _provided(state: NegotiatorState, given: Providing) -> Iterator[DecisionCause]:
    yield DecisionCause(what="was registered", profile=given.profile.id)


_ANSWERED = {"accepted": "accepted an advice", "refused": "refused an advice", "failed": "could not follow an advice"}


def _answered(state: NegotiatorState, given: Answered) -> Iterator[DecisionCause]:
    yield DecisionCause(what=_ANSWERED[given.verdict], profile=given.advice.rpartition("#")[0])


def _all_of_client(what: str) -> Callable[[NegotiatorState, Any], Iterator[DecisionCause]]:
    def find(state: NegotiatorState, given: Any) -> Iterator[DecisionCause]:
        yield from (DecisionCause(what=what, profile=id) for id in state.profiles.of(given.client))
        yield from (DecisionCause(what=what, expectation=id) for id in state.expectations.of(given.client))

    return find


def _came(state: NegotiatorState, given: Came) -> Iterator[DecisionCause]:
    yield from _all_of_client("came back" if given.client in state.gone else "came")(state, given)


def _deployed(state: NegotiatorState, given: DeployedQuality) -> Iterator[DecisionCause]:
    yield DecisionCause(what=PROJECT_CHANGED)


_CAUSES: Mapping[type[Input], Callable[[NegotiatorState, Any], Iterator[DecisionCause]]] = {
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
    DeployedQuality: _deployed,
}


# ── whom it concerns ──


@dataclass(slots=True)
class StepCauses:
    """All that happened in one step, by what it happened to."""

    profiles: dict[str, DecisionCause] = field(default_factory=dict)
    pools: dict[str, DecisionCause] = field(default_factory=dict)
    """Pool → the first that happened to a profile in it."""
    expectations: dict[str, DecisionCause] = field(default_factory=dict)
    first: DecisionCause | None = None

    def add(self, state: NegotiatorState, cause: DecisionCause) -> None:
        self.first = self.first or cause
        if cause.expectation:
            self.expectations.setdefault(cause.expectation, cause)
        if cause.profile:
            self.profiles.setdefault(cause.profile, cause)
            if (pool := state.pool_of(cause.profile)) is not None:
                self.pools.setdefault(pool, cause)

    def concerning(self, state: NegotiatorState, held: ExpectationRecord) -> DecisionCause | None:
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What belongs to clients: things by their ids, of which those of one client are found without going through all.


class OwnedByClient(Protocol):
    @property
    def client(self) -> str:
        """Whose it is, for as long as it is there."""


T = TypeVar("T", bound=OwnedByClient)


class ClientIndex(dict[str, T]):
    """By ids. Put by assignment and taken out by ``del`` or ``pop``; nothing else is kept in step."""

    def __init__(self) -> None:
        super().__init__()
        self._by_client: dict[str, dict[str, None]] = {}

    def __setitem__(self, id: str, thing: T) -> None:
        if id in self:
            self._forget(id)
        super().__setitem__(id, thing)
        self._by_client.setdefault(thing.client, {})[id] = None

    def __delitem__(self, id: str) -> None:
        self._forget(id)
        super().__delitem__(id)

    def pop(self, id: str) -> T:  # type: ignore[override]
        thing = self[id]
        del self[id]
        return thing

    def of(self, client: str) -> dict[str, T]:
        """Those of one client, as they are now."""
        return {id: self[id] for id in self._by_client.get(client, ())}

    def _forget(self, id: str) -> None:
        client = self[id].client
        del self._by_client[client][id]
        if not self._by_client[client]:
            del self._by_client[client]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What the negotiator knows: expectations, profiles, what was decided, and what is to be told and when.

Alarm = tuple[str, str]
"""What is due: the kind of it, and an id."""


@dataclass(slots=True)
class ExpectationRecord:
    """An expectation that there is."""

    expectation: Expectation
    declared: bool = False
    """By the project, not by its client."""
    away: bool = False
    """Its client or its subscription is not there. It is the project's, so it stays."""
    told: StateChange | None = None
    """What its client heard last."""
    told_at: float | None = None
    pools: frozenset[str] = frozenset()
    """In which it is matched."""
    violated: bool = False
    """It is not satisfied because somebody did less than it said."""
    refusal: Refusal | None = None
    """Why it could be satisfied and is not going to be."""
    decided: ExpectationDecision | None = None
    """How it stands, since when, and after what; None: nobody has looked yet."""

    @property
    def client(self) -> str:
        return self.expectation.client

    @property
    def active(self) -> bool:
        return not (self.away or self.expectation.suspended)


@dataclass(slots=True)
class ProfileRecord:
    """A profile that there is."""

    profile: Profile
    """As its publisher declares it."""
    declared: bool = False
    away: bool = False
    """It is the project's, and its publisher is not there."""
    deaf: bool = False
    """Its publisher sends events and is not connected: nobody would hear an advice."""
    ledger: Ledger = field(default_factory=Ledger)
    course: AdviceCourse = field(default_factory=AdviceCourse)
    estimate: Estimate = field(default_factory=Estimate)
    effective: Profile | None = None
    """As it is matched; None: it is relevant to nobody."""
    pool: str | None = None
    """In which it is matched."""
    violated: set[str] = field(default_factory=set)
    """Properties of which less is measured than is declared."""
    told: Usage | None = None
    told_at: float | None = None
    """What its publisher heard last about how it is used, and when."""

    @property
    def client(self) -> str:
        return self.profile.publisher

    def correction(self) -> Correction:
        course, found = self.course, self.estimate.correction()
        return Correction(
            measured=found.measured,
            added=found.added,
            limits=dict(course.limits),
            barred=frozenset(course.barred),
            frozen=course.is_frozen or self.deaf,
        )


@dataclass(slots=True)
class NegotiatorState:
    """All the negotiator knows. It begins when it knows what was kept and what is declared."""

    decide: Callable[[AllocationProblem], AllocationPlan]
    """By the strategy that a problem names."""
    restored: Restored | None = None
    deployed: DeployedQuality | None = None
    begun: bool = False
    expectations: ClientIndex[ExpectationRecord] = field(default_factory=ClientIndex)
    profiles: ClientIndex[ProfileRecord] = field(default_factory=ClientIndex)
    declarations: dict[str, str] = field(default_factory=dict)
    """Key of something the project declares → its text as it was taken over."""
    gone: set[str] = field(default_factory=set)
    """Clients that were here, and for which the project declares something."""
    here: set[str] = field(default_factory=set)
    """Clients that are connected."""
    heard: set[str] = field(default_factory=set)
    """Publishers for which the project declares something, whose events come though they are not connected."""
    noted: set[str] = field(default_factory=set)
    """Those of whom it is kept that they are here, or heard."""
    left_at: dict[str, float] = field(default_factory=dict)
    """When those left that are gone: what they sent before that says nothing."""
    absent: dict[str, set[str]] = field(default_factory=dict)
    """Pool → declared profiles that would be in it, if their publishers were there."""
    by_subscription: dict[str, dict[str, None]] = field(default_factory=dict)
    by_pool: dict[str, dict[str, None]] = field(default_factory=dict)
    """Pool → active expectations to which it is relevant."""
    several: set[str] = field(default_factory=set)
    """Active expectations of more than one publisher."""
    in_pool: dict[str, dict[str, Profile]] = field(default_factory=dict)
    """Pool → the effective profiles in it, by their ids."""
    kinds: dict[str, Counter[frozenset[str]]] = field(default_factory=dict)
    """Pool → the sets of properties that its profiles have."""
    limited: set[str] = field(default_factory=set)
    """Profiles that could do more by what they declare than is expected of them."""
    declined: set[str] = field(default_factory=set)
    """Expectations that could be satisfied and are not going to be."""
    claimed: dict[str, set[str]] = field(default_factory=dict)
    """Expectation → profiles on which it has a claim."""
    stirred: dict[str, float] = field(default_factory=dict)
    """Pool → when anything in it changed last, of its profiles or of those who could get something of them."""
    in_force: dict[str, str] = field(default_factory=dict)
    """Subscription → the expectation in force."""
    shapes: dict[str, Shape] = field(default_factory=dict)
    standing: MatchIndex = field(default_factory=MatchIndex)
    actions: PublisherActions = NO_ACTIONS
    gathered: PaneStore = field(default_factory=PaneStore)
    mark: int | None = None
    """How far event time is, in µs."""
    order: int = 0
    """Of the expectation that was registered last."""
    number: int = 0
    """The highest of all messages that were told."""
    numbers: dict[str, int] = field(default_factory=dict)
    """Client → the number of the message that it was told last, of those that were told something since the start."""
    base: int = 0
    """The highest of all messages that were told before the start."""
    told: tuple[NotifyClient, ...] = ()
    """What the last step told: known to be told when the next one begins."""
    unshaped: tuple[str, ...] = ()
    """Subscriptions that the last step took the shape from, likewise."""
    alarms: list[tuple[float, Alarm]] = field(default_factory=list)
    """A heap; those that are in ``times`` with another time are void."""
    times: dict[Alarm, float] = field(default_factory=dict)
    woken: float | None = None
    """For when the host was asked to wake the machine."""

    @property
    def quality(self) -> Quality:
        return NO_QUALITY if self.deployed is None else self.deployed.quality

    @property
    def relevance(self) -> Relevance:
        return Relevance() if self.deployed is None else self.deployed.relevance

    def pools_of(self, expectation: Expectation) -> frozenset[str]:
        return self.relevance.relevant.get(expectation.subscription, frozenset())

    def pool_of(self, profile: str) -> str | None:
        return self.relevance.pools.get(profile)

    def is_there(self, publisher: str) -> bool:
        return publisher in self.here or publisher in self.heard

    def meets(self, expectation: str, point: Point) -> bool:
        """Whether somebody who has a claim would be content; whoever is no more is with everything."""
        held = self.expectations.get(expectation)
        return held is None or held.expectation.is_met_by(point)

    def as_matched(self, known: ProfileRecord) -> Profile | None:
        """The effective profile; None, if it is relevant to nobody."""
        if known.away or self.pool_of(known.profile.id) is None:
            return None
        return effective_profile(known.profile, known.correction(), self.actions.can_improve)

    def alternatives(self, subscription: str) -> Iterator[ExpectationRecord]:
        """The active expectations of a subscription, the best first."""
        held = (self.expectations[id] for id in self.by_subscription.get(subscription, ()))
        active = [each for each in held if each.active]
        return iter(sorted(active, key=lambda each: (-each.expectation.utility, each.expectation.order)))

    # ── numbers ──

    def next_number(self, client: str, now: float) -> int:
        """Of the next message to a client: higher than all before, and a matter of the clock, so that it says nothing
        of how many others were told something."""
        found = max(self.last_number(client) + 1, int(now * 1_000_000))
        self.numbers[client], self.number = found, max(found, self.number)
        return found

    def last_number(self, client: str) -> int:
        """Of what a client was told last; who was told nothing since the start may have been told anything before."""
        return self.numbers.get(client, self.base)

    # ── alarms ──

    def set_alarm(self, alarm: Alarm, at: float | None) -> None:
        """Have something looked at when the time has come; None: no more."""
        if at is None:
            self.times.pop(alarm, None)
        elif self.times.get(alarm) != at:
            self.times[alarm] = at
            heapq.heappush(self.alarms, (at, alarm))

    def due(self, now: float) -> list[Alarm]:
        """What has come due, and is no longer waited for."""
        found = []
        while self.alarms and (self.alarms[0][0] <= now or self._is_void(self.alarms[0])):
            entry = heapq.heappop(self.alarms)
            if not self._is_void(entry):
                del self.times[entry[1]]
                found.append(entry[1])
        return found

    def next_alarm(self) -> float | None:
        while self.alarms and self._is_void(self.alarms[0]):
            heapq.heappop(self.alarms)
        return self.alarms[0][0] if self.alarms else None

    def _is_void(self, entry: tuple[float, Alarm]) -> bool:
        return self.times.get(entry[1]) != entry[0]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The work of one step: what has become different and is to be looked at, and what is going to be done about it.


@dataclass(slots=True)
class StepWork:
    """Of one step, at one time."""

    now: float
    causes: StepCauses = field(default_factory=StepCauses)
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
    tells: list[NotifyClient] = field(default_factory=list)
    replies: list[Reply] = field(default_factory=list)

    def keep_expectation(self, id: str) -> None:
        self.keep.add(f"expectation/{id}")

    def keep_profile(self, id: str) -> None:
        self.keep.add(f"profile/{id}")
