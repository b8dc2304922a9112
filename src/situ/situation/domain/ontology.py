"""The ontology: concepts with their attributes, relationships between them, measures over them.

Plain data, checked. Generalisation, groups and containers have been worked into the three elements by whoever made it:
a concept lists the concepts that are instances of it, too. So an alias of concept ``c`` can stand at an end ``e`` of a
relationship exactly if ``c in ontology.concepts[e.concept].members``, and of relationships with one name no two fit the
same two concepts. How an ontology is written is :mod:`situ.situation.domain.load_ontology`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.errors import Location
from situ.expr.scope import Definition
from situ.types.model import Attribute, Struct
from situ.units import NO_UNIT, Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """What there is: its attributes, those of more general concepts among them; ``id`` is its identity, a text.

    ``members`` are the names of the concepts whose instances are instances of this one, its own first. A group is a
    concept with the attributes that all of its members have alike, and with no instances but theirs.
    """

    name: str
    attributes: tuple[Attribute, ...]
    members: tuple[str, ...] = ()
    group: bool = False
    location: Location | None = field(default=None, compare=False)

    def attribute(self, name: str) -> Attribute | None:
        return next((each for each in self.attributes if each.name == name), None)

    @property
    def struct(self) -> Struct:
        """An instance as expressions see it; everything but the identity may be unknown."""
        return Struct(f"concept {self.name}", self.attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """One end of a relationship or measure: an attribute of a concept."""

    concept: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.concept}.{self.attribute}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """What a relationship is given beside the two: ``5 m`` in ``within 5 m``."""

    name: str
    unit: Unit = NO_UNIT


@dataclass(frozen=True, slots=True, kw_only=True)
class Relationship:
    """Two ends and a condition over their values.

    ``name`` is what policies say; several relationships may have it, between other concepts. ``test`` is a definition
    of a boolean over ``left``, ``right`` and, if there is one, the parameter.
    """

    name: str
    left: End
    right: End
    function: str
    test: Definition
    parameter: Parameter | None = None
    symmetric: bool = False
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A value over two ends. ``value`` is a definition over ``left`` and ``right``."""

    name: str
    left: End
    right: End
    function: str
    value: Definition
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ontology:
    """All concepts by name; relationships and measures by the name policies use, each between other concepts."""

    concepts: Mapping[str, Concept] = field(default_factory=lambda: MappingProxyType({}))
    relationships: Mapping[str, tuple[Relationship, ...]] = field(default_factory=lambda: MappingProxyType({}))
    measures: Mapping[str, tuple[Measure, ...]] = field(default_factory=lambda: MappingProxyType({}))
    containers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Of which concept a concept is part; its attribute of that name is the identity of the container."""
    declared: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """All of it as it is written, in JSON values: see :func:`situ.situation.domain.load_ontology.ontology_as_json`."""

    def __hash__(self) -> int:
        return hash((tuple(self.concepts), tuple(self.relationships), tuple(self.measures)))
