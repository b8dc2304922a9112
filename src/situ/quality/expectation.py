"""Expectations: what a subscription needs of each property, and what that is worth to it.

Every value at the floor or better is good enough; the goal is where more stops being useful. Several expectations of
one subscription are alternatives, ranked by utility, then by the order in which they were registered.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from situ.quality.property import Point, Property

Keep = Literal["first", "last", "best"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """What is needed of one property: values from ``lb`` to ``ub``, or better."""

    about: Property
    lb: float
    ub: float
    each: bool = False
    """Single events below the floor are dropped."""
    keep_missing: bool = False
    """Events that say nothing of the property are kept where ``each`` is asked for."""
    per: str = ""
    """The attribute that, with the source, tells apart what is thinned or suppressed on its own."""
    across: bool = False
    """Sources are not told apart."""
    keep: Keep = "first"
    """Which event of those in a window is kept."""
    max_silence: int | None = None
    """After this many µs one event gets through, however little it tells."""
    per_key: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Keys for which a smaller upper bound holds."""

    @property
    def floor(self) -> float:
        """The worst value that is good enough."""
        return self.lb if self.about.maximise else self.ub

    @property
    def goal(self) -> float:
        """Where more stops being useful."""
        return self.ub if self.about.maximise else self.lb

    @property
    def asked(self) -> float:
        """The goodness of the floor."""
        return self.about.goodness(self.floor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Aggregate:
    """One event for many: a function of an attribute over a window, times in µs."""

    function: Literal["avg", "min", "max", "sum"]
    attribute: str
    window: int
    every: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    """What one subscription ``client/name`` needs; ``order`` is its place among all that were ever registered."""

    id: str
    subscription: str
    needs: Mapping[str, Need] = field(default_factory=lambda: MappingProxyType({}))
    """By the ids of their properties."""
    utility: float = 1.0
    version: int = 1
    order: int = 0
    suspended: bool = False
    selected: bool = False
    """Events come from publishers that satisfy it alone, as long as there are any."""
    otherwise_nothing: bool = False
    """If there is none: nothing, instead of what all publish."""
    publishers: int = 1
    """How many different publishers have to satisfy it, each by itself."""
    aggregate: Aggregate | None = None

    @property
    def client(self) -> str:
        return self.subscription.partition("/")[0]

    @property
    def asked(self) -> Point:
        """The goodness of each floor."""
        return {id: need.asked for id, need in self.needs.items()}

    def is_met_by(self, point: Point) -> bool:
        """Whether a point has every property that is needed, none below its floor."""
        return all(id in point and point[id] >= need.asked for id, need in self.needs.items())
