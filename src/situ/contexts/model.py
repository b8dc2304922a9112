"""Interpretation contexts: what is declared in them, looked up and settled.

A context has types, mappings (which event type becomes which), rules (which places a function converts) and functions,
and inherits those of its parent; ``root`` has none. This module owns what contexts *are*; how they are written is
:mod:`situ.contexts.declarations`, what follows for an event :mod:`situ.contexts.resolve_rules` and
:mod:`situ.contexts.transform.transformation`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

import msgspec

from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.syntax import Locate
from situ.lang.expr.tree import Node
from situ.lang.problems import Location
from situ.lang.types.model import Struct, Type
from situ.lang.types.table import Types

ROOT = "root"
IDENTITY, KEEP = "identity", "keep"
"""Functions that are always there: the value as it is; and, in rules that are put in, whoever would win without."""


def former_root(id: str) -> int:
    """Which of the roots that were replaced this is, counted from 1; 0 if it is none."""
    number = id.removeprefix(f"{ROOT}.v") if id.startswith(f"{ROOT}.v") else ""
    return int(number) if number.isascii() and number.isdigit() and not number.startswith("0") else 0


class Direction(StrEnum):
    """``in``: from a client to root; ``out``: from root to a client."""

    IN = "in"
    OUT = "out"


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


# ── rules ─────────────────────────────────────────────────────────────────────────────────────────


class Qualifier(msgspec.Struct, frozen=True, kw_only=True):
    """A step of a pattern, normalised: it holds where the value's type is ``type`` or below it.

    With an ``attribute`` it is one about that attribute, or with ``elements`` about the elements of that list.
    """

    type: Type
    attribute: str = ""
    elements: bool = False

    def __str__(self) -> str:
        if not self.attribute:
            return str(self.type)
        return f"{self.attribute}{'[]' if self.elements else ''}({self.type})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Which places of events a rule is about: a type, then qualifiers. Equal patterns are identical ones."""

    head: Type
    qualifiers: tuple[Qualifier, ...] = ()
    text: str = field(default="", compare=False)
    """As it was written."""

    @property
    def target(self) -> Type:
        """The type named last: what the function of the rule is given."""
        return self.qualifiers[-1].type if self.qualifiers else self.head

    def __str__(self) -> str:
        return ".".join(map(str, (self.head, *self.qualifiers)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """``pattern -> function``, for one direction. ``context`` declares it, as the ``order``-th of its rules."""

    direction: Direction
    pattern: Pattern
    function: str
    context: str = ROOT
    order: int = 0
    kept: bool = field(default=False, compare=False)
    """Nobody declared it: it was put in so that a new rule further up changes nothing here."""
    location: Location | None = field(default=None, compare=False)

    def __str__(self) -> str:
        return f"{self.pattern.text or self.pattern} -> {self.function}"


# ── mappings ──────────────────────────────────────────────────────────────────────────────────────

Path = tuple[str, ...]
"""Attributes, each of what the one before it leads to."""


class FromPath(msgspec.Struct, frozen=True, kw_only=True):
    """A target attribute gets what is at this place of the source; the rules for that place apply."""

    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class FromExpression:
    """A target attribute gets the value of an expression over the source as it came; no rules apply."""

    text: str
    node: Node = field(compare=False)


class FromDefault(msgspec.Struct, frozen=True, kw_only=True):
    """A target attribute always has this value."""

    value: Any


Origin = FromPath | FromExpression | FromDefault


@dataclass(frozen=True, slots=True, kw_only=True)
class EventMapping:
    """Events of type ``source`` become events of type ``target``.

    ``attributes`` are those that do not go by name: target path → where its value comes from.
    """

    direction: Direction
    source: Struct
    target: Struct
    attributes: Mapping[Path, Origin] = field(default_factory=lambda: MappingProxyType({}))
    context: str = ROOT
    order: int = 0
    location: Location | None = field(default=None, compare=False)

    def __hash__(self) -> int:
        return hash((self.direction, self.source, self.target, self.context))


# ── functions ─────────────────────────────────────────────────────────────────────────────────────


class MissingValue(StrEnum):
    """What a function gives where a table or a state has nothing for it."""

    ERROR = "error"
    NULL = "null"
    DEFAULT = "default"
    HOLD = "hold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expression:
    """An expression of a function, in canonical spelling.

    What its names mean depends on the event whose value is converted: :mod:`situ.contexts.function_bodies`.
    """

    text: str
    written: str = field(default="", compare=False)
    """As somebody wrote it, at the place that ``locate`` knows."""
    locate: Locate | None = field(default=None, compare=False, repr=False)


class TableLookup(msgspec.Struct, frozen=True, kw_only=True):
    """The row of a pull table that a conversion reads as a variable of its own."""

    name: str
    source: str
    keys: tuple[tuple[str, Expression], ...]
    """Column → the expression whose value it must have."""
    as_of: str = ""
    """The column of instants: the last row not after the time that the function means."""
    row: Struct = msgspec.field(default_factory=lambda: Struct("", ()))
    """What a row of the table is."""


class ReferenceState(msgspec.Struct, frozen=True, kw_only=True):
    """What a conversion remembers of another event stream, per key: the latest not later than the event's own time."""

    name: str
    event: Struct
    """The event type of root whose events are remembered."""
    key: Expression
    """Of an event that is remembered; the function's own ``key`` is that of the event being converted."""
    keep: tuple[tuple[str, Expression], ...]
    """Name → the expression over the remembered event that gives its value."""
    ttl: timedelta
    max_keys: int
    history: timedelta = timedelta()
    row: Struct = msgspec.field(default_factory=lambda: Struct("", ()))
    """What the conversion reads: the names of ``keep``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A function from one value to another: ``parameter`` is the type and unit of ``value``.

    The expression reads the variables ``value``, ``event`` (envelope and attributes of the source event), ``data``
    (the attributes alone) and the rows of its ``lookups`` and ``states`` by their names. A function of ``python`` has
    none. What the expression means for an event type is :func:`situ.contexts.function_bodies.body_for`.
    """

    name: str
    parameter: Variable
    result: Variable
    expression: Expression | None = None
    body: Node | None = field(default=None, compare=False, repr=False)
    """What the expression means if it reads no attribute of the source event: the same everywhere."""
    time: str = ""
    """``event``, ``now`` or an instant: which time it means. Currencies must say so."""
    lookups: tuple[TableLookup, ...] = ()
    key: Expression | None = None
    """Which of the remembered values belongs to the event being converted."""
    states: tuple[ReferenceState, ...] = ()
    missing: MissingValue = MissingValue.ERROR
    default: Any = field(default=None, hash=False)
    hold: timedelta = timedelta()
    """How much event time to wait for a state that is missing."""
    lossy: bool = False
    inverse: str = ""
    nulls: bool = False
    """It is called for nulls, too."""
    python: str = ""
    """``file.function``: instead of an expression."""
    code: str = field(default="", repr=False)
    """The text of the file that has the function of ``python``."""
    context: str = ROOT
    scope: NameScope = field(default_factory=NameScope, compare=False, repr=False)
    """What its expressions see besides the event."""
    location: Location | None = field(default=None, compare=False)

    @property
    def text(self) -> str:
        return self.expression.text if self.expression is not None else ""


# ── contexts ──────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Context:
    """One version of a context. ``types`` is everything visible in it: its own types, then those of its ancestors."""

    id: str
    version: int = 1
    parent: Context | None = None
    types: Types = field(default_factory=lambda: Types(types={}))
    own: frozenset[str] = frozenset()
    """The names of the types it declares itself."""
    mappings: tuple[EventMapping, ...] = ()
    rules: tuple[Rule, ...] = ()
    functions: Mapping[str, Conversion] = field(default_factory=_nothing)
    bridge: Context | None = None
    """Of a root that was replaced, as those see it who extend it: the context that leads from it to what came after."""
    derive: bool = False
    """Event types that rules change and no mapping names get a type of their own name with the changed attributes."""
    compiled: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)
    """What :mod:`situ.contexts.transform.transformation` made of it. Everything that needs it reads it here, so that a
    context is compiled once however many ask; one that is changed is another context."""

    @property
    def chain(self) -> Iterator[Context]:
        """The context and its ancestors, root last."""
        each: Context | None = self
        while each is not None:
            yield each
            each = each.parent

    @property
    def root(self) -> Context:
        """The context at the top."""
        *_, last = self.chain
        return last

    @property
    def name(self) -> str:
        return f"{self.id}@{self.version}"

    @property
    def derives(self) -> bool:
        """Whether it, or one that it extends, derives types."""
        return any(each.derive for each in self.chain)

    def declares(self, name: str) -> bool:
        """Whether it, or one between it and root, declares a type of this name."""
        return any(name in each.own for each in self.chain)

    def type_text(self, type: Type) -> str:
        """The name of a type; where another context of the chain has one of that name, with the one whose it is."""
        name = str(type)
        named = [
            each
            for each in self.chain
            if name in each.own or (each.parent is None and each.types.get(name) is not None)
        ]
        owner = next((each.id for each in named if each.types.get(name) == type), "")
        return f"{owner}:{name}" if owner and len(named) > 1 else name

    def types_of(self, direction: Direction) -> Types:
        """What the names of source types, and in patterns, mean in this direction."""
        return self.types if direction is Direction.IN else self.root.types

    def targets_of(self, direction: Direction) -> Types:
        """What the names of target types mean in this direction."""
        return self.root.types if direction is Direction.IN else self.types

    def conversion(self, name: str) -> Conversion | None:
        """The function of this name: the nearest context's own."""
        return next((each.functions[name] for each in self.chain if name in each.functions), None)
