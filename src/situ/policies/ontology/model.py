"""The ontology: concepts with their attributes, relationships between them, measures over them.

`Ontology` is plain data, checked; `make_concepts` makes its concepts of what is declared. How an ontology is written is
:mod:`situ.policies.ontology.load`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import msgspec

from situ.lang.catalogue import (
    CONCEPT_CYCLE,
    CONCEPT_DEFAULT,
    CONFLICTING_ATTRIBUTE,
    CONTAINER_UNFIT,
    DECLARED_TWICE,
    NO_IDENTITY,
    UNKNOWN_CONCEPT,
)
from situ.lang.expr.faults import Faults
from situ.lang.expr.scope import Definition
from situ.lang.problems import Location, Problems, nearest
from situ.lang.records import replace
from situ.lang.types.dependency_order import dependency_order
from situ.lang.types.lookup import Lookup
from situ.lang.types.model import STRING, Attribute, Struct, combine, find_conflicts, plain
from situ.lang.types.table import Types
from situ.lang.units import NO_UNIT, Unit
from situ.policies.ontology.declare import ConceptText, ContainerText, OntologyText

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The model. Generalisation, groups and containers have been worked into the three elements by whoever made it: a
# concept lists the concepts that are instances of it, too. So an alias of concept ``c`` can stand at an end ``e`` of a
# relationship exactly if ``c in ontology.concepts[e.concept].members``, and of relationships with one name no two fit
# the same two concepts.


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


class ConceptAttribute(msgspec.Struct, frozen=True, kw_only=True):
    """One end of a relationship or measure: an attribute of a concept."""

    concept: str
    attribute: str

    def __str__(self) -> str:
        return f"{self.concept}.{self.attribute}"


class RelationshipParameter(msgspec.Struct, frozen=True, kw_only=True):
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
    left: ConceptAttribute
    right: ConceptAttribute
    function: str
    test: Definition
    parameter: RelationshipParameter | None = None
    symmetric: bool = False
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConceptMeasure:
    """A value over two ends. ``value`` is a definition over ``left`` and ``right``."""

    name: str
    left: ConceptAttribute
    right: ConceptAttribute
    function: str
    value: Definition
    location: Location | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ontology:
    """All concepts by name; relationships and measures by the name policies use, each between other concepts."""

    concepts: Mapping[str, Concept] = field(default_factory=lambda: MappingProxyType({}))
    relationships: Mapping[str, tuple[Relationship, ...]] = field(default_factory=lambda: MappingProxyType({}))
    measures: Mapping[str, tuple[ConceptMeasure, ...]] = field(default_factory=lambda: MappingProxyType({}))
    containers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Of which concept a concept is part; its attribute of that name is the identity of the container."""
    declared: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    """All of it as it is written, in JSON values: see :func:`situ.policies.ontology.load.ontology_as_json`."""

    def __hash__(self) -> int:
        return hash((tuple(self.concepts), tuple(self.relationships), tuple(self.measures)))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Concepts from what is declared. A concept has the attributes of those it specialises, and may narrow them. A group is
# a concept with what its members have in common. A concept that is part of another has an attribute named like it, the
# identity of its container, and one for every container further out.

IDENTITY = "id"


class ConceptTable(msgspec.Struct, frozen=True, kw_only=True):
    """All concepts, groups among them; containers; and what is missing because of a fault that is reported already."""

    by_name: Mapping[str, Concept]
    containers: Mapping[str, str]
    own: Mapping[str, tuple[Attribute, ...]]
    """What each concept declares itself."""
    below: Mapping[str, tuple[str, ...]]
    """The members of each group as they are listed."""
    faulty: Mapping[str, frozenset[str]]


def containers_of(concept: str, containers: Mapping[str, str]) -> tuple[str, ...]:
    """What a concept is part of: its container, the container of that, and so on."""
    found: list[str] = []
    while (above := containers.get(concept)) is not None:
        found.append(above)
        concept = above
    return tuple(found)


def make_concepts(text: OntologyText, types: Types, problems: Problems, faults: Faults) -> ConceptTable:
    """The concepts that are declared; what is wrong with them is reported and left out."""
    return _Making(text, types, problems, faults).concepts()


class _Making:
    def __init__(self, text: OntologyText, types: Types, problems: Problems, faults: Faults) -> None:
        self._text, self._types, self._problems, self._faults = text, types, problems, faults
        self._known = text.concepts.keys() | text.groups.keys()

    def concepts(self) -> ConceptTable:
        for name in self._text.groups.keys() & self._text.concepts.keys():
            first, second = self._text.concepts[name].location, self._text.groups[name].location
            self._problems.add(DECLARED_TWICE(second, what="The concept", name=name, first=str(first)))
        supers = self._supers()
        order, _ = dependency_order(supers)
        containers = self._containers(order, supers)
        own = {name: self._own(each) for name, each in self._text.concepts.items()}
        structs: dict[str, Struct] = {}
        for name in order:
            made = self._struct(self._text.concepts[name], supers[name], own[name], structs)
            structs[name] = self._contained(made, containers)
        below = self._groups()
        by_name = {
            name: Concept(name=name, attributes=each.attributes, location=self._text.concepts[name].location)
            for name, each in structs.items()
        }
        for name in dependency_order(below)[0]:
            if name not in by_name:
                by_name[name] = self._group(name, [by_name[each] for each in below[name] if each in by_name])
        members = {name: _members(name, supers, below) for name in by_name}
        return ConceptTable(
            by_name=MappingProxyType({name: replace(by_name[name], members=members[name]) for name in sorted(by_name)}),
            containers=MappingProxyType(dict(sorted(containers.items()))),
            own=MappingProxyType(own),
            below=MappingProxyType({name: each for name, each in below.items() if name not in own}),
            faulty=MappingProxyType({name: self._missing(name, own, supers) for name in own}),
        )

    # ── what is above ─────────────────────────────────────────────────────────────────────────────

    def _supers(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for name, each in self._text.concepts.items():
            found[name] = []
            for ref in each.supers:
                if ref.name not in self._text.concepts:
                    self._unknown(ref.name, ref.place(), tuple(self._text.concepts))
                elif ref.name in found[name]:
                    what = "The more general concept"
                    self._problems.add(DECLARED_TWICE(ref.place(), what=what, name=ref.name, first=str(each.location)))
                else:
                    found[name].append(ref.name)
        for circle in dependency_order(found)[1]:
            name, above = circle.closing
            place = next(ref.place() for ref in self._text.concepts[name].supers if ref.name == above)
            self._circle(place, name, "specialises", str(circle), "Take one of these more general concepts out.")
            found[name].remove(above)
        return {name: tuple(above) for name, above in found.items()}

    def _groups(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for name, group in self._text.groups.items():
            found[name] = []
            for member in group.members:
                if member.text in self._known:
                    found[name].append(member.text)
                else:
                    self._unknown(member.text, member.location, tuple(self._known))
        for circle in dependency_order(found)[1]:
            name, closing = circle.closing
            place = next(each.location for each in self._text.groups[name].members if each.text == closing)
            self._circle(place, name, "is a member of", str(circle), "Take one of these members out.")
            found[name].remove(closing)
        return {name: tuple(members) for name, members in found.items()}

    def _containers(self, order: Iterable[str], supers: Mapping[str, tuple[str, ...]]) -> dict[str, str]:
        """The container of each concept, its own or that of a more general one."""
        said: dict[str, ContainerText] = {}
        for name, each in self._text.containers.items():
            wrong = [side for side in (each.part, each.container) if side.text not in self._text.concepts]
            for side in wrong:
                self._unknown(side.text, side.location, tuple(self._text.concepts))
            if not wrong:
                said[name] = each
        for name in order:
            inherited = next((said[above] for above in supers[name] if above in said), None)
            if inherited is not None:
                said.setdefault(name, inherited)
        found = {name: each.container.text for name, each in said.items()}
        for circle in dependency_order({name: (above,) for name, above in found.items()})[1]:
            name, _ = circle.closing
            remedy = "Give every level a concept of its own, such as `room`, `floor` and `building`."
            self._circle(said[name].container.location, name, "is part of", str(circle), remedy)
            del found[name]
        return found

    # ── what there is of each ─────────────────────────────────────────────────────────────────────

    def _own(self, concept: ConceptText) -> tuple[Attribute, ...]:
        noted = Problems()
        lookup = Lookup(self._types.types, self._types.units, noted)
        found: list[Attribute] = []
        for declaration in concept.attributes:
            if declaration.default is not None:
                place = declaration.default.place()
                self._problems.add(CONCEPT_DEFAULT(place, concept=concept.name, attribute=declaration.name))
            attribute = lookup.attribute(replace(declaration, default=None))
            if attribute is not None:
                # Nobody need know anything of an instance but which one it is, whatever is written.
                found.append(replace(attribute, optional=attribute.name != IDENTITY))
        self._problems.extend(each for each in noted if not self._faults.explain(each))
        return tuple(found)

    def _struct(
        self,
        concept: ConceptText,
        supers: tuple[str, ...],
        own: tuple[Attribute, ...],
        structs: Mapping[str, Struct],
    ) -> Struct:
        above = tuple(structs[name] for name in supers if name in structs)
        by_name = {each.name: each for each in own}
        places = {each.name: each.place() for each in concept.attributes}
        for conflict in find_conflicts(concept.name, above, by_name):
            self._problems.add(
                CONFLICTING_ATTRIBUTE(
                    places.get(conflict.attribute) or concept.location,
                    name=concept.name,
                    attribute=conflict.attribute,
                    found=conflict.found,
                    above=conflict.above,
                    expected=conflict.expected,
                    remedy=conflict.remedy,
                )
            )
        attributes = combine(above, own)
        self._check_identity(concept, attributes)
        return Struct(concept.name, attributes, above)

    def _check_identity(self, concept: ConceptText, attributes: tuple[Attribute, ...]) -> None:
        identity = next((each for each in attributes if each.name == IDENTITY), None)
        if identity is None:
            if not any(each.name == IDENTITY for each in concept.attributes) and IDENTITY not in concept.faulty:
                reason = "it has no attribute `id`"
                self._problems.add(NO_IDENTITY(concept.location, concept=concept.name, reason=reason))
        elif plain(identity.type) != STRING or identity.unit != NO_UNIT:
            place = next((each.place() for each in concept.attributes if each.name == IDENTITY), None)
            if place is not None:
                reason = f"its `id` is of type `{identity.type}`"
                self._problems.add(NO_IDENTITY(place, concept=concept.name, reason=reason))

    def _contained(self, struct: Struct, containers: Mapping[str, str]) -> Struct:
        attributes = list(struct.attributes)
        for container in containers_of(struct.name, containers):
            present = next((each for each in attributes if each.name == container), None)
            if present is None:
                attributes.append(Attribute(name=container, type=STRING, optional=True))
            elif plain(present.type) != STRING:
                place = self._text.concepts[struct.name].location
                problem = CONTAINER_UNFIT(place, part=struct.name, container=container, type=str(present.type))
                self._problems.add(problem)
        return Struct(struct.name, tuple(attributes), struct.supers)

    def _group(self, name: str, members: list[Concept]) -> Concept:
        first, *others = members or [Concept(name=name, attributes=())]
        shared = tuple(each for each in first.attributes if all(each in other.attributes for other in others))
        if not any(each.name == IDENTITY for each in shared):
            # Named texts may differ from member to member: what they have in common is that they are texts.
            shared = (Attribute(name=IDENTITY, type=STRING), *shared)
        return Concept(name=name, attributes=shared, group=True, location=self._text.groups[name].location)

    def _missing(
        self, name: str, own: Mapping[str, tuple[Attribute, ...]], supers: Mapping[str, tuple[str, ...]]
    ) -> frozenset[str]:
        """Attributes that are written for a concept or above it, but that could not be made."""
        found: set[str] = set()
        for each in (name, *_above(name, supers)):
            text = self._text.concepts[each]
            made = {attribute.name for attribute in own[each]}
            found |= text.faulty | {attribute.name for attribute in text.attributes} - made
        return frozenset(found)

    # ── problems ──────────────────────────────────────────────────────────────────────────────────

    def _unknown(self, name: str, place: Location | None, known: tuple[str, ...]) -> None:
        self._problems.add(UNKNOWN_CONCEPT(place, name=name, nearest=nearest(name, known)))

    def _circle(self, place: Location | None, name: str, what: str, cycle: str, remedy: str) -> None:
        self._problems.add(CONCEPT_CYCLE(place, name=name, what=what, cycle=cycle, remedy=remedy))


def _above(name: str, supers: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Every more general concept, each once."""
    seen: set[str] = set()
    waiting = list(supers.get(name, ()))
    while waiting:
        above = waiting.pop()
        if above not in seen:
            seen.add(above)
            yield above
            waiting.extend(supers.get(above, ()))


def _members(name: str, supers: Mapping[str, tuple[str, ...]], below: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The concept itself, then all that specialise it and, of a group, all members, theirs included."""
    seen = {name}
    waiting = [name]
    while waiting:
        each = waiting.pop()
        found = {special for special, above in supers.items() if each in above} | set(below.get(each, ()))
        waiting.extend(found - seen)
        seen |= found
    return (name, *sorted(seen - {name}))
