"""What is declared about quality: properties, expectations, capability profiles, actions and strategies.

`QualityProperty` to `Profile` are the parts, `Quality` is all that a project declares, `QualityEnvironment` what
declarations are checked against.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from situ.lang.types.model import DOUBLE, INT, LONG, Attribute, Decimal, Struct, plain
from situ.lang.types.table import Types
from situ.quality.model.costs import FREE, Cost

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Properties: named scales of quality, each with a direction that is better. Inside the core every value is a number: a
# level is its place on the scale. What only compares, matching and skylines, works with *goodness*: the value, or its
# negative where less is better. More goodness is always better, and it is always finite, so that the infinities are
# free to stand for "not asked" and "not there".

Determined = Literal["publisher", "middleware", "both"]
Hop = Literal["same", "add", "multiply", "worst"]
Exceed = Literal["allow", "shape", "use"]
Point = Mapping[str, float]
"""Property → goodness."""

_MOST = sys.float_info.max


class QualityProperty(msgspec.Struct, frozen=True, kw_only=True):
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
    QualityProperty(name="rate", lo=0, unit="1/min", determined_by="both", hop="worst", exceed="shape"),
    QualityProperty(name="confidence", lo=0, hi=100, unit="%"),
    QualityProperty(name="latency", lo=0, unit="ms", maximise=False, determined_by="middleware", hop="add"),
    QualityProperty(name="freshness", lo=0, unit="s", maximise=False, determined_by="both", hop="add"),
    QualityProperty(name="completeness", lo=0, hi=1, determined_by="both", hop="multiply"),
    QualityProperty(name="reliability", lo=0, hi=1, determined_by="both", hop="multiply"),
    QualityProperty(name="order", levels=("none", "source", "total"), lo=0, hi=2, determined_by="both", hop="worst"),
    QualityProperty(name="imprecision", lo=0, maximise=False, determined_by="both", hop="add", exceed="use"),
    QualityProperty(name="trust", levels=("none", "low", "medium", "high"), lo=0, hi=3),
)
BUILT_IN: Mapping[str, QualityProperty] = MappingProxyType({each.name: each for each in _BUILT_IN})
"""What every project has, by name. ``imprecision`` is always of an attribute, in its unit."""


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Expectations: what a subscription needs of each property, and what that is worth to it. Every value at the floor or
# better is good enough; the goal is where more stops being useful. Several expectations of one subscription are
# alternatives, ranked by utility, then by the order in which they were registered.

Keep = Literal["first", "last", "best"]


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """What is needed of one property: values from ``lb`` to ``ub``, or better."""

    about: QualityProperty
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
    per_key: Mapping[str, float] = msgspec.field(default_factory=lambda: MappingProxyType({}))
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


class Aggregate(msgspec.Struct, frozen=True, kw_only=True):
    """One event for many: a function of an attribute over a window, times in µs."""

    function: Literal["avg", "min", "max", "sum"]
    attribute: str
    window: int
    every: int


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What one subscription ``client/name`` needs; ``order`` is its place among all that were ever registered."""

    id: str
    subscription: str
    needs: Mapping[str, Need] = msgspec.field(default_factory=lambda: MappingProxyType({}))
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Capability profiles: what a publisher provides of an event type now, what it could provide, and at what cost.


class Capability(msgspec.Struct, frozen=True, kw_only=True):
    """The values of one property that can be had, from ``lb`` to ``ub``, and the current one."""

    about: QualityProperty
    lb: float
    ub: float
    cv: float
    cost: Cost = FREE

    @property
    def best(self) -> float:
        return self.ub if self.about.maximise else self.lb

    @property
    def worst(self) -> float:
        return self.lb if self.about.maximise else self.ub


class Mode(msgspec.Struct, frozen=True, kw_only=True):
    """Values that can be had together, and only together."""

    name: str
    values: Mapping[str, float]
    """By the ids of properties; every mode of a profile has the same."""
    cost: float = 0.0


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """All capabilities of one publisher for one event type.

    Properties in modes are not free: exactly one mode holds. All others are free of it and of each other.
    """

    publisher: str
    type: str
    capabilities: Mapping[str, Capability] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """Of free properties, by their ids."""
    modes: tuple[Mode, ...] = ()
    mode: str = ""
    """The name of the current one."""
    moded: Mapping[str, QualityProperty] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    """The properties in modes, by their ids."""
    version: int = 1

    @property
    def id(self) -> str:
        return f"{self.publisher}/{self.type}"

    @property
    def properties(self) -> frozenset[str]:
        return frozenset((*self.capabilities, *self.moded))

    def mode_named(self, name: str) -> Mode:
        return next(each for each in self.modes if each.name == name)

    def current(self) -> Point:
        """What holds now."""
        point = {id: each.about.goodness(each.cv) for id, each in self.capabilities.items()}
        return point | self._moded(self.mode_named(self.mode)) if self.modes else point

    def reach(self) -> tuple[Point, ...]:
        """The best points that can be had: one for each mode, in their order; without modes there is one."""
        best = {id: each.about.goodness(each.best) for id, each in self.capabilities.items()}
        return tuple(best | self._moded(mode) for mode in self.modes) if self.modes else (best,)

    def _moded(self, mode: Mode) -> dict[str, float]:
        return {id: each.goodness(mode.values[id]) for id, each in self.moded.items()}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What a project declares: properties of its own, expectations, profiles, actions and strategies.

Direction = Literal["up", "down"]
"""Of the value, not of its goodness: imprecision that goes up gets worse."""

PARETO = "pareto"
DEFAULT = "default"
"""The event type of the strategy for all types that have none of their own."""

BUILT_IN_ACTIONS = ("adaptPublisher", "thin", "suppress", "aggregate", "select")
STRATEGIES = (PARETO, "cheapest", "utility", "fairness")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class PublisherAction(msgspec.Struct, frozen=True, kw_only=True):
    """A way to move a property up or down. Several for one property and direction are alternatives."""

    property: str
    """The id of the property."""
    direction: Direction
    action: str
    """Its name; of a sequence, the names of its steps."""
    cost: Cost = FREE
    """Of the target."""
    steps: tuple[str, ...] = ()
    """The actions of a sequence, in their order; none, if it is no sequence."""


class Strategy(msgspec.Struct, frozen=True, kw_only=True):
    """By which rule it is decided whether satisfying an expectation is worth it."""

    name: str = PARETO
    weight: float = 1.0
    """What a unit of cost counts against a unit of utility, lambda."""
    budget: float | None = None
    """The most that all that is in force by advice may cost, against what publishers did by themselves. A problem is
    told what is left of it."""
    protect: bool = True
    """Nobody loses what it has."""
    options: Mapping[str, Any] = msgspec.field(default_factory=_nothing)
    """What plug-ins are told besides."""


class Quality(msgspec.Struct, frozen=True, kw_only=True):
    """All declarations about quality. Expectations are in the order of their registration."""

    properties: Mapping[str, QualityProperty] = msgspec.field(default_factory=_nothing)
    """The project's own, by name."""
    expectations: Mapping[str, Expectation] = msgspec.field(default_factory=_nothing)
    profiles: Mapping[str, Profile] = msgspec.field(default_factory=_nothing)
    actions: tuple[PublisherAction, ...] = ()
    strategies: Mapping[str, Strategy] = msgspec.field(default_factory=_nothing)
    """By event type; that of all others under ``default``."""

    def __bool__(self) -> bool:
        return bool(self.properties or self.expectations or self.profiles or self.actions or self.strategies)

    @property
    def known(self) -> Mapping[str, QualityProperty]:
        """All properties, the built-in ones among them, by name."""
        return known_properties(self.properties)

    def strategy_for(self, type: str) -> Strategy:
        return self.strategies.get(type) or self.strategies.get(DEFAULT) or Strategy()


NO_QUALITY = Quality()


def known_properties(own: Mapping[str, QualityProperty]) -> Mapping[str, QualityProperty]:
    """The built-in properties, and what a project says of these or adds."""
    return MappingProxyType({**BUILT_IN, **own})


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What declarations about quality are checked against: properties, units, event types, and who asks for which.


class QualityEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """All of it is input: quality does not know where subscriptions and types come from."""

    properties: Mapping[str, QualityProperty] = msgspec.field(default_factory=lambda: BUILT_IN)
    types: Types = msgspec.field(default_factory=lambda: Types(types={}))
    """Those of root, in whose terms events are shaped."""
    subscriptions: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=_nothing)
    """Their event types in root; none, where nobody can tell what they are called there."""
    clients: Mapping[str, Types] = msgspec.field(default_factory=_nothing)
    """Those that there are, with the types that they have names for."""
    strategies: Collection[str] = STRATEGIES
    faulty: Collection[str] = ()
    """Names of properties that are declared and not right: who uses them is told nothing more."""

    def types_of(self, subscription: str) -> tuple[str, ...]:
        return self.subscriptions.get(subscription, ())

    def types_for(self, client: str) -> Types:
        """What a client has names for; one that nobody knows yet is in root."""
        return self.clients.get(client, self.types)

    def attributes(self, name: str, types: Iterable[str]) -> Iterator[Attribute]:
        """What these event types and those below them have of this name; of all, if none is named."""
        wanted = [event for each in types if (event := self.types.event(each)) is not None]
        if not wanted:
            wanted = [event for each in sorted(self.types.events) if (event := self.types.event(each)) is not None]
        for event in wanted:
            for below in self.types.subtypes(event):
                if isinstance(below, Struct):
                    yield from (each for each in below.attributes if each.name == name)

    def below(self, type: str, types: Iterable[str]) -> bool:
        """Whether an event type is one of these, or below one."""
        found = (event for each in types if (event := self.types.event(each)) is not None)
        return any(getattr(each, "name", "") == type for event in found for each in self.types.subtypes(event))


def numeric(attributes: Iterable[Attribute]) -> list[Attribute]:
    """Those that are numbers."""
    types = ((each, plain(each.type)) for each in attributes)
    return [each for each, type in types if type in (INT, LONG, DOUBLE) or isinstance(type, Decimal)]
