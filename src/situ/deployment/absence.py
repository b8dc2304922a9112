"""What counts for that which policies use beside events: rows of tables, and that something did not happen.

A row was stamped by nobody: it has the tags of its source and passes no filter. Of what did not happen there is no
event to test either: every tag set counts under which the policy could have seen one, with the bits of those filters
only that its type alone makes true, so that only those see it to whom such events are always visible. An event of
another policy does not come because what that one reads did not come: then that counts, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from situ.deployment.parts import Part
from situ.deployment.releasing import Releases
from situ.deployment.seeing import Seeing
from situ.deployment.snapshot import Deployment
from situ.situation.domain.check_sources import provided
from situ.situation.domain.concepts import containers_of
from situ.situation.domain.cover import needed_of
from situ.situation.policies.leaves import leaves_of, signed_relations
from situ.situation.policies.policy import Policy, Relation
from situ.sources.model import Source
from situ.subscription.model import ROOT
from situ.tags import TagSet
from situ.types.model import supertypes

if TYPE_CHECKING:
    from situ.deployment.detecting import Detecting, Watch


def tables_of(policy: Policy, deployment: Deployment, cover: Mapping[str, Sequence[str]]) -> set[str]:
    """The tables that say something which the policy asks for, of instances or of what these are in.

    ``cover``: the tables that are read of each concept.
    """
    ontology = deployment.ontology

    def members(concept: str) -> tuple[str, ...]:
        return ontology.concepts[concept].members or (concept,)

    def tells(name: str, concept: str, attribute: str, around: Collection[str]) -> bool:
        """Whether a table says which instances of a concept there are, or this of them; or where they are."""
        source = deployment.sources[name]
        given = provided(source, ontology.concepts[source.concept])
        return source.concept == concept or attribute in given or not given.keys().isdisjoint(around)

    found: set[str] = set()
    for end in needed_of(policy, deployment.actions):
        for concept in members(end.concept):
            chain = containers_of(concept, ontology.containers)
            around = chain if end.attribute in chain else ()
            for each in (concept, *(member for container in around for member in members(container))):
                found.update(name for name in cover.get(each, ()) if tells(name, each, end.attribute, around))
    return found


def sees_rows(seeing: Seeing, source: Source, reads: TagSet) -> bool:
    """Whether those who read as this see the rows of a table: they have its tags and pass no filter."""
    return seeing.sees((seeing.numbers.of(source.scopes), seeing.epoch, 0, 0, ""), reads)


class Beside:
    """What the policies of one version use beside events."""

    def __init__(self, deployment: Deployment, detecting: Detecting, seeing: Seeing, releases: Releases) -> None:
        self._deployment, self._detecting, self._seeing = deployment, detecting, seeing
        self._releases = releases

    def sources(self, watch: Watch) -> set[str]:
        """The tables that say something which the policy asks for, of instances or of what these are in."""
        return tables_of(watch.policy, self._deployment, self._detecting.tables.cover.sources)

    def of_sources(self, watch: Watch) -> frozenset[Part]:
        """The stamps of their rows."""
        return frozenset(map(self.row_of, self.sources(watch)))

    def row_of(self, source: str) -> Part:
        """The stamp of the rows of a table."""
        return self._part(self._deployment.sources[source].scopes)

    def of_absence(self, watch: Watch) -> frozenset[Part]:
        """What counts because the policy asks for something that is not."""
        negated = [each.relation for each in signed_relations(watch.policy) if each.negated]
        return frozenset(self._absent(watch, negated, ()))

    def _absent(self, watch: Watch, relations: Iterable[Relation], above: Collection[str]) -> Iterator[Part]:
        assert watch.reads is not None
        relations = tuple(relations)
        heard = {event for each in relations for event in self._heard(watch.policy, each)}
        below = {each for event in heard for each in (event, *self._below(event))}
        types = {type for event in heard for type in self._above_and_below(event)}
        for ad in self._deployment.advertisements.values():
            # In the terms of another context it may be of any type of root.
            of_root = self._deployment.clients[ad.client].context == ROOT
            if not of_root or ad.type in types:
                yield from self._unheard(ad.scopes, watch.reads, below)
        for name, other in self._detecting.watches.items():
            publishes = self._seeing.graph.tags_of(name).publishes
            counts = [] if name in above else list(self._unheard(publishes, watch.reads, below & other.publishes))
            if not counts:
                continue
            yield from counts
            read = [each.relation for each in signed_relations(other.policy)]
            inner = {*self._absent(other, read, (*above, name)), *self.of_sources(other)}
            yield from self._releases.let_go(name, inner)

    def _unheard(self, advertised: TagSet, reads: TagSet, types: Collection[str]) -> Iterator[Part]:
        """What counts of events of these types that were not published under these tags."""
        if self._seeing.could_see(advertised, reads, types):
            yield self._part(advertised, self._seeing.surely(advertised, types))

    def _heard(self, policy: Policy, relation: Relation) -> Iterator[str]:
        """The types of the events that tell of the relation; those below them do, too."""
        ontology = self._detecting.ontology
        for leaf in leaves_of(policy, relation):
            members = ontology.concepts[leaf.concept].members or (leaf.concept,)
            for push in self._detecting.push.values():
                if push.attribute == leaf.attribute and push.concept in members:
                    yield push.event

    def _above_and_below(self, event: str) -> Iterator[str]:
        """The types under which such events may be advertised."""
        declared = self._deployment.types.event(event)
        if declared is not None:
            yield event
            yield from map(str, supertypes(declared))
            yield from self._below(event)

    def _below(self, event: str) -> Iterator[str]:
        declared = self._deployment.types.event(event)
        return map(str, self._deployment.types.subtypes(declared)) if declared is not None else iter(())

    def _part(self, tags: TagSet, bits: int = 0) -> Part:
        return Part(self._seeing.numbers.of(tags), self._seeing.epoch, bits)
