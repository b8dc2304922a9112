"""Sources held against the ontology: what they say of which attributes of concepts, and which tables must be read.

`check_sources` finds what is wrong with sources of concepts, `attributes_needed` says what a policy needs to know,
`cover_attributes` chooses the fewest pull sources that provide it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from types import MappingProxyType

import msgspec

from situ.lang.catalogue import (
    COLUMN_NOT_ATTRIBUTE,
    CONCEPT_KEY,
    FED_AND_READ,
    GROUP_FED,
    IDENTITY_FED,
    PUSH_UNFIT,
    UNKNOWN_CONCEPT,
    UNKNOWN_CONCEPT_ATTRIBUTE,
)
from situ.lang.expr.tree import Read, walk
from situ.lang.problems import Location, Problem, Problems, nearest
from situ.lang.types.model import Attribute, fits, format_attribute
from situ.lang.types.table import Types
from situ.policies.actions.model import VERBS, DeclaredActions, references_of
from situ.policies.actions.resolve import steps_of
from situ.policies.model import Policy, RelationKind
from situ.policies.ontology.model import IDENTITY, Concept, ConceptAttribute, Ontology, containers_of
from situ.policies.plan import always_observed, relations_of
from situ.sources.declare import attribute_at
from situ.sources.model import Push, Source

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A pull source with a concept provides those attributes that have a column, of the same name or of the one that is
# listed. A push source feeds one attribute. Types and units must be those of the ontology: contexts convert events,
# views and statements convert rows.

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


def provided_attributes(source: Source, concept: Concept) -> Mapping[str, str]:
    """The attributes of a concept that a table of it provides, with their columns; the identity is not one of them."""
    listed = dict(source.attributes)
    found = {
        each.name: column
        for each in concept.attributes
        if each.name != IDENTITY and source.column(column := listed.get(each.name, each.name)) is not None
    }
    return MappingProxyType(found)


def fed_attributes(pushes: Iterable[Push]) -> frozenset[ConceptAttribute]:
    """The attributes that events bring, of the concepts that push sources name."""
    return frozenset(ConceptAttribute(concept=each.concept, attribute=each.attribute) for each in pushes)


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
    for name, column in provided_attributes(source, concept).items():
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
            if (
                concept is not None
                and source.concept == push.concept
                and push.attribute in provided_attributes(source, concept)
            ):
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which tables to read: exactly the smallest set of pull sources. The choice is made by trying, from few to many, which
# at this size costs nothing. Of sets of one size the first in the order of names counts, so that the choice depends on
# what is declared and on nothing else.

NO_ACTIONS = DeclaredActions()


class SourceCover(msgspec.Struct, frozen=True, kw_only=True):
    """The sources to read of each concept, in the order in which they count; and what nobody provides."""

    sources: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=lambda: MappingProxyType({}))
    missing: frozenset[ConceptAttribute] = frozenset()

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(name for names in self.sources.values() for name in names)


def cover_attributes(
    needed: Iterable[ConceptAttribute], ontology: Ontology, sources: Mapping[str, Source]
) -> SourceCover:
    """The tables that provide these attributes.

    Every source of a concept tells of all of its instances, so one of several that provide an attribute is enough.
    Those of a more special concept tell of other instances and are chosen for themselves; what is known of them stands
    in tables of the more general ones, too.
    """
    found = _Covering(ontology, sources)
    wanted: dict[str, set[str]] = {}
    missing: set[ConceptAttribute] = set()
    for end in found.with_containers(needed):
        known = False
        for member in found.with_tables(end.concept):
            wanted.setdefault(member, {IDENTITY})
            if end.attribute in found.known(member):
                wanted[member].add(end.attribute)
                known = True
        if not known:
            missing.add(end)
    chosen = {concept: smallest_cover(wanted[concept], found.given(concept)) for concept in sorted(wanted)}
    return SourceCover(sources=MappingProxyType(chosen), missing=frozenset(missing))


def attributes_needed(policy: Policy, actions: DeclaredActions = NO_ACTIONS) -> frozenset[ConceptAttribute]:
    """What tables must know for a policy: query attributes of its aliases, and which instances there are.

    Instances are looked for where events do not say who is meant; an alias that events observe and of which nothing
    else than who it is is asked needs no table. What its ``actions`` say of instances must be known, too.
    """
    concepts = {each.name: each.concept for each in policy.aliases}
    found: set[ConceptAttribute] = set()
    for alias in policy.aliases:
        if alias.constraint is not None:
            reads = {node.path[0] for node in walk(alias.constraint) if isinstance(node, Read) and node.path}
            found |= {ConceptAttribute(concept=alias.concept, attribute=each) for each in reads}
    observed = always_observed(policy.conditions)
    for relation in relations_of(policy):
        for side in relation.sides:
            if relation.kind is RelationKind.CONSTRAINT and side.is_identity and side.alias in observed:
                continue
            asked = {*side.attributes, IDENTITY} if not side.event else set(side.attributes) - {side.event, IDENTITY}
            found |= {ConceptAttribute(concept=concepts[side.alias], attribute=each) for each in asked}
    for action in policy.actions:
        for step in steps_of(action, actions) if action.name in (*VERBS, *actions.named) else ():
            # Who an alias stands for is known wherever something was detected.
            about = (each for each in references_of(step) if each.name in concepts)
            asked_for = (each for each in about if each.attribute not in ("", IDENTITY))
            found |= {ConceptAttribute(concept=concepts[each.name], attribute=each.attribute) for each in asked_for}
    return frozenset(found)


def smallest_cover(needed: Set[str], given: Mapping[str, Set[str]]) -> tuple[str, ...]:
    """The fewest names whose sets together hold all that is needed, the first such in the order of names.

    All of what is needed must be in some set.
    """
    if not needed:
        return ()
    first: dict[frozenset[str], str] = {}
    for name in sorted(given):
        # Of those that say the same the first is as good as any, and comes first.
        first.setdefault(frozenset(given[name] & needed), name)
    return _Search({name: of for of, name in first.items() if of}).run(frozenset(needed))


class _Search:
    """Goes deeper by one until there is a solution; below, only sets with the rarest missing thing are tried."""

    def __init__(self, given: Mapping[str, frozenset[str]]) -> None:
        self._given = given

    def run(self, needed: frozenset[str]) -> tuple[str, ...]:
        for count in range(1, len(needed) + 1):
            solutions = self._of_size(count, needed, frozenset())
            if solutions:
                return min(tuple(sorted(each)) for each in solutions)
        raise ValueError(f"nobody provides all of {sorted(needed)}")

    def _of_size(self, count: int, needed: frozenset[str], used: frozenset[str]) -> set[frozenset[str]]:
        """All sets of at most so many more names that cover what is needed."""
        if not needed:
            return {used}
        if count == 0 or max(map(len, self._given.values()), default=0) * count < len(needed):
            return set()
        rarest = min(sorted(needed), key=lambda each: sum(each in of for of in self._given.values()))
        found: set[frozenset[str]] = set()
        for name, of in self._given.items():
            if rarest in of and name not in used:
                found |= self._of_size(count - 1, needed - of, used | {name})
        return found


class _Covering:
    def __init__(self, ontology: Ontology, sources: Mapping[str, Source]) -> None:
        self._ontology = ontology
        self._sources = {name: each for name, each in sources.items() if each.concept in ontology.concepts}

    def with_tables(self, concept: str) -> Iterator[str]:
        """The concepts whose instances are instances of this one, as far as there are tables of them."""
        of = {each.concept for each in self._sources.values()}
        return (member for member in self._ontology.concepts[concept].members if member in of)

    def given(self, concept: str) -> dict[str, frozenset[str]]:
        """What sources of the concept and of more general ones say of its instances; which there are, its own say."""
        found: dict[str, frozenset[str]] = {}
        for name, source in self._sources.items():
            there = self._ontology.concepts[source.concept]
            if concept in there.members:
                own = {IDENTITY} if source.concept == concept else set()
                found[name] = frozenset(provided_attributes(source, there).keys() | own)
        return found

    def known(self, concept: str) -> frozenset[str]:
        return frozenset().union(*self.given(concept).values())

    def with_containers(self, needed: Iterable[ConceptAttribute]) -> set[ConceptAttribute]:
        """What is needed, and what says which container is meant where only the container's own tables know."""
        found: set[ConceptAttribute] = set()
        waiting = list(needed)
        while waiting:
            end = waiting.pop()
            chain = containers_of(end.concept, self._ontology.containers)
            further = end.attribute in chain[1:] and not any(
                end.attribute in self.known(member) for member in self.with_tables(end.concept)
            )
            if further:
                nearer = chain[chain.index(end.attribute) - 1]
                waiting.append(ConceptAttribute(concept=end.concept, attribute=nearer))
                waiting.append(ConceptAttribute(concept=nearer, attribute=end.attribute))
            else:
                found.add(end)
        return found
