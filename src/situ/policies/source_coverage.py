"""Which tables to read: the smallest set of pull sources that provides what policies need to know of a concept.

Exactly the smallest: the choice is made by trying, from few to many, which at this size costs nothing. Of sets of one
size the first in the order of names counts, so that the choice depends on what is declared and on nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.expr.tree import Read, walk
from situ.situation.actions.action import VERBS, Actions, references_of
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.check_sources import provided
from situ.situation.domain.concepts import IDENTITY, containers_of
from situ.situation.domain.ontology import End, Ontology
from situ.situation.policies.leaves import always_observed, relations_of
from situ.situation.policies.policy import Kind, Policy
from situ.sources.model import Source

NO_ACTIONS = Actions()


@dataclass(frozen=True, slots=True, kw_only=True)
class Cover:
    """The sources to read of each concept, in the order in which they count; and what nobody provides."""

    sources: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: MappingProxyType({}))
    missing: frozenset[End] = frozenset()

    @property
    def tables(self) -> frozenset[str]:
        return frozenset(name for names in self.sources.values() for name in names)


def cover(needed: Iterable[End], ontology: Ontology, sources: Mapping[str, Source]) -> Cover:
    """The tables that provide these attributes.

    Every source of a concept tells of all of its instances, so one of several that provide an attribute is enough.
    Those of a more special concept tell of other instances and are chosen for themselves; what is known of them stands
    in tables of the more general ones, too.
    """
    found = _Covering(ontology, sources)
    wanted: dict[str, set[str]] = {}
    missing: set[End] = set()
    for end in found.with_containers(needed):
        known = False
        for member in found.with_tables(end.concept):
            wanted.setdefault(member, {IDENTITY})
            if end.attribute in found.known(member):
                wanted[member].add(end.attribute)
                known = True
        if not known:
            missing.add(end)
    chosen = {concept: smallest(wanted[concept], found.given(concept)) for concept in sorted(wanted)}
    return Cover(sources=MappingProxyType(chosen), missing=frozenset(missing))


def needed_of(policy: Policy, actions: Actions = NO_ACTIONS) -> frozenset[End]:
    """What tables must know for a policy: query attributes of its aliases, and which instances there are.

    Instances are looked for where events do not say who is meant; an alias that events observe and of which nothing
    else than who it is is asked needs no table. What its ``actions`` say of instances must be known, too.
    """
    concepts = {each.name: each.concept for each in policy.aliases}
    found: set[End] = set()
    for alias in policy.aliases:
        if alias.constraint is not None:
            reads = {node.path[0] for node in walk(alias.constraint) if isinstance(node, Read) and node.path}
            found |= {End(concept=alias.concept, attribute=each) for each in reads}
    observed = always_observed(policy.conditions)
    for relation in relations_of(policy):
        for side in relation.sides:
            if relation.kind is Kind.CONSTRAINT and side.is_identity and side.alias in observed:
                continue
            asked = {*side.attributes, IDENTITY} if not side.event else set(side.attributes) - {side.event, IDENTITY}
            found |= {End(concept=concepts[side.alias], attribute=each) for each in asked}
    for action in policy.actions:
        for step in steps_of(action, actions) if action.name in (*VERBS, *actions.named) else ():
            asked_for = (each for each in references_of(step) if each.attribute and each.name in concepts)
            found |= {End(concept=concepts[each.name], attribute=each.attribute) for each in asked_for}
    return frozenset(found)


def smallest(needed: Set[str], given: Mapping[str, Set[str]]) -> tuple[str, ...]:
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
                found[name] = frozenset(provided(source, there).keys() | own)
        return found

    def known(self, concept: str) -> frozenset[str]:
        return frozenset().union(*self.given(concept).values())

    def with_containers(self, needed: Iterable[End]) -> set[End]:
        """What is needed, and what says which container is meant where only the container's own tables know."""
        found: set[End] = set()
        waiting = list(needed)
        while waiting:
            end = waiting.pop()
            chain = containers_of(end.concept, self._ontology.containers)
            further = end.attribute in chain[1:] and not any(
                end.attribute in self.known(member) for member in self.with_tables(end.concept)
            )
            if further:
                nearer = chain[chain.index(end.attribute) - 1]
                waiting.append(End(concept=end.concept, attribute=nearer))
                waiting.append(End(concept=nearer, attribute=end.attribute))
            else:
                found.add(end)
        return found
