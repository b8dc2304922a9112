"""Properties: named scales of quality, each with a direction that is better.

Inside the core every value is a number: a level is its place on the scale. What only compares, matching and skylines,
works with *goodness*: the value, or its negative where less is better. More goodness is always better, and it is always
finite, so that the infinities are free to stand for "not asked" and "not there".
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

Determined = Literal["publisher", "middleware", "both"]
Hop = Literal["same", "add", "multiply", "worst"]
Exceed = Literal["allow", "shape", "use"]
Point = Mapping[str, float]
"""Property → goodness."""

_MOST = sys.float_info.max


@dataclass(frozen=True, slots=True, kw_only=True)
class Property:
    """A scale: a range of numbers with a unit, or levels in ascending order."""

    name: str
    lo: float = -math.inf
    hi: float = math.inf
    unit: str = ""
    levels: tuple[str, ...] = ()
    maximise: bool = True
    determined_by: Determined = "publisher"
    hop: Hop = "same"
    """What a link between routers does to a value."""
    exceed: Exceed = "allow"
    """What becomes of more than the goal of a need."""
    of: str = ""
    """The attribute that it is a property of, if it is one of single attributes."""
    scale: float | None = None
    """By which shortfalls are divided to be compared; None: the width of the domain."""
    quantum: float | None = None
    """To whose multiples values are rounded between routers; None: two digits, 0: not at all."""

    @property
    def id(self) -> str:
        """Each attribute makes a property of its own."""
        return f"{self.name} of {self.of}" if self.of else self.name

    @property
    def worst(self) -> float:
        """The value at the worse end of the domain."""
        return self.lo if self.maximise else self.hi

    @property
    def best(self) -> float:
        return self.hi if self.maximise else self.lo

    def goodness(self, value: float) -> float:
        return min(max(value if self.maximise else -value, -_MOST), _MOST)

    def value(self, goodness: float) -> float:
        """The value of this goodness."""
        found = goodness if self.maximise else -goodness
        return math.copysign(math.inf, found) if abs(found) >= _MOST else found + 0.0

    def at_least(self, a: float, b: float) -> bool:
        """Whether the value ``a`` is at least as good as ``b``."""
        return a >= b if self.maximise else a <= b

    def better(self, a: float, b: float) -> float:
        """The better of two values."""
        return a if self.at_least(a, b) else b

    def worse(self, a: float, b: float) -> float:
        return b if self.at_least(a, b) else a

    def written(self, value: float) -> float | str:
        """A value as declarations have it: levels by name."""
        return self.levels[int(value)] if self.levels else value

    def shown(self, value: float) -> str:
        """A value in words, without its unit."""
        return self.levels[int(value)] if self.levels else f"{value:g}"


_BUILT_IN = (
    Property(name="rate", lo=0, unit="1/min", determined_by="both", hop="worst", exceed="shape"),
    Property(name="confidence", lo=0, hi=100, unit="%"),
    Property(name="latency", lo=0, unit="ms", maximise=False, determined_by="middleware", hop="add"),
    Property(name="freshness", lo=0, unit="s", maximise=False, determined_by="both", hop="add"),
    Property(name="completeness", lo=0, hi=1, determined_by="both", hop="multiply"),
    Property(name="reliability", lo=0, hi=1, determined_by="both", hop="multiply"),
    Property(name="order", levels=("none", "source", "total"), lo=0, hi=2, determined_by="both", hop="worst"),
    Property(name="imprecision", lo=0, maximise=False, determined_by="both", hop="add", exceed="use"),
    Property(name="trust", levels=("none", "low", "medium", "high"), lo=0, hi=3),
)
BUILT_IN: Mapping[str, Property] = MappingProxyType({each.name: each for each in _BUILT_IN})
"""What every project has, by name. ``imprecision`` is always of an attribute, in its unit."""
