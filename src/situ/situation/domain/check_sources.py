"""Sources held against the ontology: what tables and events say of which attributes of which concepts.

A pull source with a concept provides those attributes that have a column, of the same name or of the one that is
listed. A push source feeds one attribute. Types and units must be those of the ontology: contexts convert events, views
and statements convert rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from situ.catalogue import (
    COLUMN_NOT_ATTRIBUTE,
    CONCEPT_KEY,
    FED_AND_READ,
    GROUP_FED,
    IDENTITY_FED,
    PUSH_UNFIT,
    UNKNOWN_CONCEPT,
    UNKNOWN_CONCEPT_ATTRIBUTE,
)
from situ.errors import Location, Problem, Problems, nearest
from situ.situation.domain.concepts import IDENTITY
from situ.situation.domain.ontology import Concept, End, Ontology
from situ.sources.declare_push import attribute_at
from situ.sources.model import Push, Source
from situ.types.model import Attribute, fits
from situ.types.syntax import format_attribute
from situ.types.table import Types

_AS_DECLARED = "Declare the attribute of the concept as the column is, or convert it in a SELECT or a view."
_AS_EVENT = "Declare the attribute of the concept as the event has it, or let a context convert the event."


def check_sources(
    ontology: Ontology, sources: Mapping[str, Source], pushes: Mapping[str, Push], types: Types, problems: Problems
) -> None:
    """Note everything that is wrong with sources of concepts."""
    for source in sources.values():
        if source.concept:
            problems.extend(_check_pull(source, ontology))
    for push in pushes.values():
        problems.extend(_check_push(push, ontology, types))
    problems.extend(_fed_and_read(ontology, sources, pushes))


def provided(source: Source, concept: Concept) -> Mapping[str, str]:
    """The attributes of a concept that a table of it provides, with their columns; the identity is not one of them."""
    listed = dict(source.attributes)
    found = {
        each.name: column
        for each in concept.attributes
        if each.name != IDENTITY and source.column(column := listed.get(each.name, each.name)) is not None
    }
    return MappingProxyType(found)


def fed(pushes: Iterable[Push]) -> frozenset[End]:
    """The attributes that events bring, of the concepts that push sources name."""
    return frozenset(End(concept=each.concept, attribute=each.attribute) for each in pushes)


# ── pull ──────────────────────────────────────────────────────────────────────────────────────────


def _check_pull(source: Source, ontology: Ontology) -> Iterator[Problem]:
    concept = ontology.concepts.get(source.concept)
    if concept is None or concept.group:
        yield _no_concept(source.concept, concept, source.name, source.location, ontology)
        return
    for name, column in source.attributes:
        if concept.attribute(name) is None:
            yield _no_attribute(concept, name, source.location)
        elif name == IDENTITY and source.key != (column,):
            remedy = f"Write `key: {column}`, or leave `id` out of `attributes`."
            reason = f"its key is not the column `{column}` that is listed as `id`"
            yield CONCEPT_KEY(source.location, source=source.name, concept=source.concept, reason=reason, remedy=remedy)
    for name, column in provided(source, concept).items():
        attribute, found = concept.attribute(name), source.column(column)
        assert attribute is not None
        assert found is not None
        if not _is(found, attribute):
            yield COLUMN_NOT_ATTRIBUTE(
                source.location,
                source=source.name,
                column=column,
                found=_shown(found),
                concept=concept.name,
                attribute=name,
                expected=_shown(attribute),
                remedy=_AS_DECLARED,
            )


def _fed_and_read(ontology: Ontology, sources: Mapping[str, Source], pushes: Mapping[str, Push]) -> Iterator[Problem]:
    for push in pushes.values():
        concept = ontology.concepts.get(push.concept)
        for source in sources.values():
            if concept is not None and source.concept == push.concept and push.attribute in provided(source, concept):
                yield FED_AND_READ(
                    source.location,
                    concept=push.concept,
                    attribute=push.attribute,
                    push=push.name,
                    source=source.name,
                )


# ── push ──────────────────────────────────────────────────────────────────────────────────────────


def _check_push(push: Push, ontology: Ontology, types: Types) -> Iterator[Problem]:
    concept = ontology.concepts.get(push.concept)
    if concept is None or concept.group:
        yield _no_concept(push.concept, concept, push.name, push.location, ontology)
        return
    attribute = concept.attribute(push.attribute)
    if attribute is None:
        yield _no_attribute(concept, push.attribute, push.location)
        return
    if push.attribute == IDENTITY:
        yield IDENTITY_FED(push.location, push=push.name, concept=push.concept)
        return
    event = types.event(push.event)
    found = attribute_at(event, push.value) if event is not None else None
    if isinstance(found, Attribute) and not _is(found, attribute):
        yield PUSH_UNFIT(
            push.location,
            path=".".join(push.value),
            event=push.event,
            found=_shown(found),
            concept=concept.name,
            attribute=push.attribute,
            expected=_shown(attribute),
            remedy=_AS_EVENT,
        )


# ── both ──────────────────────────────────────────────────────────────────────────────────────────


def _is(found: Attribute, wanted: Attribute) -> bool:
    return fits(found.type, wanted.type) and found.unit == wanted.unit


def _shown(attribute: Attribute) -> str:
    return format_attribute(attribute).removeprefix("optional ")


def _no_concept(name: str, group: Concept | None, source: str, place: Location | None, ontology: Ontology) -> Problem:
    if group is not None:
        members = tuple(each for each in group.members if not ontology.concepts[each].group)
        return GROUP_FED(place, group=name, source=source, members=members)
    return UNKNOWN_CONCEPT(place, name=name, nearest=nearest(name, ontology.concepts))


def _no_attribute(concept: Concept, name: str, place: Location | None) -> Problem:
    known = tuple(each.name for each in concept.attributes)
    similar = nearest(name, known)
    return UNKNOWN_CONCEPT_ATTRIBUTE(place, concept=concept.name, name=name, nearest=similar, known=known)
