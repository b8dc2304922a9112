"""Feedback: what subscribers and publishers are told, as messages with a JSON form.

A subscriber hears of the state of its expectations and never who publishes; a publisher hears how its profiles are used
and what it is advised to do, and never who subscribes. Numbers of messages only grow, so whoever gets one twice can
tell: a message whose number is not higher than the last one's with the same id says nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from situ.lang.json_form import StoredForm

Outcome = Literal["satisfied", "unsatisfied", "revoked"]
Why = Literal["", "no-publisher", "missing", "out-of-reach", "declined", "adapting", "violated"]
Kind = Literal["raise", "relax", "withdraw"]
Value = int | float | str
"""A value of a property in its unit, or the name of a level."""

STATE = "situ.quality.state"
USAGE = "situ.quality.usage"
ADVICE = "situ.quality.advice"


class Reason(StoredForm, frozen=True, kw_only=True):
    """A property in which the closest publisher falls short."""

    property: str
    current: Value | None
    """What there is; None: the property is missing."""
    reachable: Value | None = None
    """The best that could be had."""


class StateChange(StoredForm, frozen=True, kw_only=True, tag_field="message", tag=STATE):
    """How an expectation stands. What is satisfiable counts as unsatisfied: it is being adapted to, or declined.

    >>> trucks = await office.register_for_events("TruckSeen")
    >>> wanted = await office.expectations.register(trucks, {"confidence": {"lb": 80}})
    >>> change = await office.expectations.state(wanted)
    >>> change.state
    'unsatisfied'
    """

    OMITTED = ("absent",)
    expectation: str
    version: int
    number: int
    state: Outcome
    why: Why = ""
    reasons: tuple[Reason, ...] = ()
    in_force: str | None = None
    """The alternative of the same subscription that is in force."""
    since: float = 0.0
    """Seconds since the epoch."""
    absent: int = 0
    """Profiles that are declared, and would count if their publishers were connected."""

    @property
    def id(self) -> str:
        return self.expectation


class Usage(StoredForm, frozen=True, kw_only=True, tag_field="message", tag=USAGE):
    """How a profile is used: how many rely on it, and how much they ask.

    >>> profile = await gate.capabilities.register("TruckSeen", {"rate": {"lb": 1, "ub": 60, "cv": 2}})
    >>> usage = await gate.capabilities.usage(profile)
    >>> usage.profile
    'gate/TruckSeen'
    >>> await gate.capabilities.revoke(profile)
    """

    profile: str
    number: int
    subscriptions: int = 0
    """That are served."""
    expectations: int = 0
    """That rely on it."""
    floors: Mapping[str, Value] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """Property → the highest floor asked."""
    violated: tuple[str, ...] = ()
    """Properties of which less is measured than it declares."""
    since: float = 0.0

    @property
    def id(self) -> str:
        return self.profile

    @property
    def used(self) -> bool:
        return self.expectations > 0


class Advice(StoredForm, frozen=True, kw_only=True, tag_field="message", tag=ADVICE):
    """What a publisher is asked to do: to operate at these values, or in this mode.

    ``withdraw`` takes back the advice that has the same id. ``relax`` needs no answer.

    >>> def answer(advice: situ.Advice):
    ...     return situ.Accept() if advice.values.get("rate", 0) <= 30 else situ.Refuse({"rate": 30})
    >>> answer(situ.Advice(id="a1", kind="raise", profile="gate/TruckSeen", number=1, values={"rate": 45}))
    Refuse(value={'rate': 30})
    """

    id: str
    kind: Kind
    profile: str
    number: int
    """Another one each time it is sent."""
    values: Mapping[str, Value] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """Of free properties, by their ids."""
    mode: str = ""
    deadline: float | None = None
    """Until when it has to be answered, in seconds since the epoch."""


Feedback = StateChange | Usage | Advice


def feedback_from_json(value: Any) -> Feedback:
    """The message that has this JSON form; ValueError if none has."""
    found: Feedback = msgspec.convert(value, Feedback)
    return found
