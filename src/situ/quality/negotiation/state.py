"""What the negotiator knows: expectations, profiles, what was decided, and what is to be told and when."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from situ.quality.actions import NO_ACTIONS, Actions
from situ.quality.advice import Course
from situ.quality.causes import Decided
from situ.quality.declared import NO_QUALITY, Quality
from situ.quality.effective import Correction, effective
from situ.quality.effects import Tell
from situ.quality.estimator import Estimate
from situ.quality.expectation import Expectation
from situ.quality.feedback import StateChange, Usage
from situ.quality.gathered import Gathered
from situ.quality.inputs import Deployed, Relevance, Restored
from situ.quality.ledger import Ledger
from situ.quality.owned import Owned
from situ.quality.problem import Plan, Problem, Refusal
from situ.quality.profile import Profile
from situ.quality.property import Point
from situ.quality.shape import Shape
from situ.quality.standing import Standing

Alarm = tuple[str, str]
"""What is due: the kind of it, and an id."""


@dataclass(slots=True)
class Held:
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
    decided: Decided | None = None
    """How it stands, since when, and after what; None: nobody has looked yet."""

    @property
    def client(self) -> str:
        return self.expectation.client

    @property
    def active(self) -> bool:
        return not (self.away or self.expectation.suspended)


@dataclass(slots=True)
class Known:
    """A profile that there is."""

    profile: Profile
    """As its publisher declares it."""
    declared: bool = False
    away: bool = False
    """It is the project's, and its publisher is not there."""
    deaf: bool = False
    """Its publisher sends events and is not connected: nobody would hear an advice."""
    ledger: Ledger = field(default_factory=Ledger)
    course: Course = field(default_factory=Course)
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
class State:
    """All the negotiator knows. It begins when it knows what was kept and what is declared."""

    decide: Callable[[Problem], Plan]
    """By the strategy that a problem names."""
    restored: Restored | None = None
    deployed: Deployed | None = None
    begun: bool = False
    expectations: Owned[Held] = field(default_factory=Owned)
    profiles: Owned[Known] = field(default_factory=Owned)
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
    standing: Standing = field(default_factory=Standing)
    actions: Actions = NO_ACTIONS
    gathered: Gathered = field(default_factory=Gathered)
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
    told: tuple[Tell, ...] = ()
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

    def as_matched(self, known: Known) -> Profile | None:
        """The effective profile; None, if it is relevant to nobody."""
        if known.away or self.pool_of(known.profile.id) is None:
            return None
        return effective(known.profile, known.correction(), self.actions.can_improve)

    def alternatives(self, subscription: str) -> Iterator[Held]:
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
