"""Feedback: what subscribers and publishers are told, as messages with a JSON form.

A subscriber hears of the state of its expectations and never who publishes; a publisher hears how its profiles are used
and what it is advised to do, and never who subscribes. Numbers of messages only grow, so whoever gets one twice can
tell: a message whose number is not higher than the last one's with the same id says nothing new.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

Outcome = Literal["satisfied", "unsatisfied", "revoked"]
Why = Literal["", "no-publisher", "missing", "out-of-reach", "declined", "adapting", "violated"]
Kind = Literal["raise", "relax", "withdraw"]
Value = float | str
"""A value of a property in its unit, or the name of a level."""

STATE = "situ.quality.state"
USAGE = "situ.quality.usage"
ADVICE = "situ.quality.advice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A property in which the closest publisher falls short."""

    property: str
    current: Value | None
    """What there is; None: the property is missing."""
    reachable: Value | None = None
    """The best that could be had."""

    def as_json(self) -> dict[str, Any]:
        return {"property": self.property, "current": self.current, "reachable": self.reachable}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Reason:
        return cls(property=value["property"], current=value["current"], reachable=value["reachable"])


@dataclass(frozen=True, slots=True, kw_only=True)
class StateChange:
    """How an expectation stands. What is satisfiable counts as unsatisfied: it is being adapted to, or declined."""

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

    def as_json(self) -> dict[str, Any]:
        return {
            "message": STATE,
            "expectation": self.expectation,
            "version": self.version,
            "number": self.number,
            "state": self.state,
            "why": self.why,
            "reasons": [each.as_json() for each in self.reasons],
            "in_force": self.in_force,
            "since": self.since,
            **({"absent": self.absent} if self.absent else {}),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> StateChange:
        plain = {key: each for key, each in value.items() if key not in ("message", "reasons")}
        return cls(**plain, reasons=tuple(Reason.from_json(each) for each in value["reasons"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """How a profile is used."""

    profile: str
    number: int
    subscriptions: int = 0
    """That are served."""
    expectations: int = 0
    """That rely on it."""
    floors: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
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

    def as_json(self) -> dict[str, Any]:
        return {
            "message": USAGE,
            "profile": self.profile,
            "number": self.number,
            "subscriptions": self.subscriptions,
            "expectations": self.expectations,
            "floors": dict(self.floors),
            "violated": list(self.violated),
            "since": self.since,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Usage:
        plain = {key: each for key, each in value.items() if key not in ("message", "violated")}
        return cls(**plain, violated=tuple(value["violated"]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """What a publisher is asked to do: to operate at these values, or in this mode.

    ``withdraw`` takes back the advice that has the same id. ``relax`` needs no answer.
    """

    id: str
    kind: Kind
    profile: str
    number: int
    """Another one each time it is sent."""
    values: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
    """Of free properties, by their ids."""
    mode: str = ""
    deadline: float | None = None
    """Until when it has to be answered, in seconds since the epoch."""

    def as_json(self) -> dict[str, Any]:
        return {
            "message": ADVICE,
            "id": self.id,
            "kind": self.kind,
            "profile": self.profile,
            "number": self.number,
            "values": dict(self.values),
            "mode": self.mode,
            "deadline": self.deadline,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Advice:
        return cls(**{key: each for key, each in value.items() if key != "message"})


Feedback = StateChange | Usage | Advice

_FORMS: Mapping[str, type[StateChange] | type[Usage] | type[Advice]] = {
    STATE: StateChange,
    USAGE: Usage,
    ADVICE: Advice,
}


def feedback_from_json(value: Mapping[str, Any]) -> Feedback:
    """The message that has this JSON form; KeyError or TypeError if none has."""
    return _FORMS[value["message"]].from_json(value)
