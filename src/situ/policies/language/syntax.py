"""A policy as it is written: the tree the parser makes and the printer prints, before any name is looked up.

Places travel along and do not count when trees are compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from situ.lang.problems import Location


def _place() -> Any:
    return field(default=None, compare=False, repr=False, kw_only=True)


class ConsumptionMode(StrEnum):
    """Which pairs of events make occurrences of a relation between two event-based attributes."""

    CHRONICLE = "chronicle"
    RECENT = "recent"
    ALL = "all"


class When(StrEnum):
    """When the actions of a policy run."""

    OPENING = "opening"
    EVERY_DETECTION = "every detection"
    CLOSE = "close"


@dataclass(frozen=True, slots=True)
class Name:
    """A word that names something."""

    text: str
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class ValueText:
    """A constant as the expression language writes it: ``'guest'``, ``5 m``, ``90 [km/h]``, ``('a', 'b')``."""

    text: str
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class PropertyText:
    """``status = 'guest'``; ``operator`` is one of ``= != < > <= >= in like``."""

    attribute: Name
    operator: str
    value: ValueText
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class ConceptDefinition:
    """``person A (status = 'guest')``."""

    concept: Name
    alias: Name
    properties: tuple[PropertyText, ...] = ()
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class RelationText:
    """``A is not within 5 m of B``; ``is`` and ``of`` are there for the reader and mean nothing."""

    left: Name
    relationship: Name
    right: Name
    negated: bool = False
    parameter: ValueText | None = None
    says_is: bool = field(default=True, compare=False, repr=False)
    says_of: bool = field(default=False, compare=False, repr=False)
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class MeasureOf:
    """``distance(A, B)``."""

    measure: Name
    left: Name
    right: Name
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class AttributeOf:
    """``A.speed``."""

    alias: Name
    attribute: Name
    location: Location | None = _place()


Operand = MeasureOf | AttributeOf | ValueText


@dataclass(frozen=True, slots=True)
class Comparison:
    """``distance(A, B) < 5 m``, with ``not`` before it if it is negated; ``operator`` is one of ``= != < > <= >=``."""

    left: Operand
    operator: str
    right: Operand
    negated: bool = False
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class FollowedBy:
    """``first followed-by [within 10 s] second``; the window as it is written, if it is."""

    first: Condition
    second: Condition
    within: timedelta | None = None
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class AllOf:
    """Parts joined by ``and``, or by line breaks (``lines``)."""

    parts: tuple[Condition, ...]
    lines: bool = False
    location: Location | None = _place()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """Parts joined by ``or``."""

    parts: tuple[Condition, ...]
    location: Location | None = _place()


Condition = RelationText | Comparison | FollowedBy | AllOf | AnyOf


@dataclass(frozen=True, slots=True)
class ActionText:
    """``raise alarm``, ``suspend policy night-watch``: the words, as they stand."""

    words: tuple[Name, ...]
    location: Location | None = _place()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyText:
    """One policy. A name that is not written is that of its file. What is None is not written."""

    name: Name | None = None
    window: timedelta | None = None
    lateness: timedelta | None = None
    hold: timedelta | None = None
    consumption: ConsumptionMode | None = None
    concepts: tuple[ConceptDefinition, ...]
    conditions: Condition
    when: When | None = None
    actions: tuple[ActionText, ...]
    location: Location | None = field(default=None, compare=False, repr=False)
