"""Shapes: what stage ``shape`` of an engine does to the events of one subscription, as plain data.

A shape is made by negotiation and is part of the deployment, so both engines and every replay work by the same one.
A limit that changes carries the instant of event time from which it holds; times are in µs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from situ.quality.expectation import Aggregate, Keep


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """At most ``events`` in ``minutes`` minutes, for windows that start at or after ``since``."""

    events: int
    minutes: int = 1
    form: Literal["slot", "quota"] = "slot"
    since: int | None = None
    """None: from the beginning of time."""
    until: int | None = None
    """From here on nothing is thinned; None: it holds until the next one begins."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Thin:
    """Rate down. ``limits`` in the order of time."""

    limits: tuple[Limit, ...]
    per: str = ""
    across: bool = False
    keep: Keep = "first"


@dataclass(frozen=True, slots=True, kw_only=True)
class Each:
    """Events below the floor are dropped; those that say nothing, too, unless they are kept."""

    about: Literal["confidence", "freshness"]
    floor: float
    keep_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Suppress:
    """Imprecision up: an event passes if its attribute differs by more than ``delta`` from the last that passed."""

    attribute: str
    delta: float
    per: str = ""
    per_key: tuple[tuple[str, float], ...] = ()
    max_silence: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What is done to the events of a subscription, in this order: select, each, aggregate, suppress, thin."""

    sources: frozenset[str] | None = None
    """Publishers whose events are delivered; None: all."""
    each: tuple[Each, ...] = ()
    aggregate: Aggregate | None = None
    suppress: tuple[Suppress, ...] = ()
    thin: Thin | None = None


UNSHAPED = Shape()
