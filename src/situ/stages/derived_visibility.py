"""Visibility of what policies derive: releases of situations, and what counts for tables and for absences.

`Releases` and `released_situation` let situations go further than what they come from, `check_releases` checks the
declarations, `NonEventStamps` gives the stamps of what policies use beside events.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from situ.event.instants import print_instant
from situ.lang.catalogue import REQUIRED_NOT_KEPT, UNKNOWN_KEPT
from situ.lang.problems import Problem, nearest
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.lang.types.model import supertypes
from situ.lang.types.table import ACTION, COMMAND, NOTICE, SITUATION
from situ.model.deployment import Deployment
from situ.policies.actions.action_events import ActionEvent
from situ.policies.actions.model import ActionStep, CommandStep, NotifyStep, PublishStep, RecordData
from situ.policies.actions.resolve import steps_of
from situ.policies.lifecycle import SituationTransition, situation_data
from situ.policies.model import Policy, Relation
from situ.policies.ontology.model import containers_of
from situ.policies.plan import leaves_of, signed_relations
from situ.policies.source_coverage import attributes_needed, provided_attributes
from situ.routing.model import ROOT
from situ.scopes.graph import Release, ScopeGraph
from situ.scopes.stamp_codec import StampPart
from situ.sources.model import Source
from situ.stages.visibility import EventVisibility

if TYPE_CHECKING:
    from situ.stages.detect.detection_plan import DetectionPlan, PolicyRuntime

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Releases: an administrator lets situations of a policy go further than what they come from may be seen. In the
# dimensions that are named only the situation's own tags count. So that nothing else gets out by that, no event is
# inside any more, and of attributes only those are left that are to be kept. What is released says so, in the attribute
# ``released`` of its envelope. Requests for actions are not released: whoever does them needs all of what they say.
# What was taken out stays in the log, beside the stamps, for operators.


_WHICH = ("situation", "policy", "end")
"""What every event of a situation says, however little of it is left. Only a closed one has an end, which is the time
of that event itself: without it nobody could tell that the situation is over."""
_TIMES = ("start", "last")
_INSIDE = "causes"
_DEFAULT = ("situation", "bindings")
"""What a command says of which nothing else is declared."""


class ReleaseRule(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for the situations of a policy that are released."""

    dimensions: frozenset[str]
    keep: frozenset[str]
    """Of several releases, what all of them keep."""
    by: str

    @property
    def text(self) -> str:
        return ",".join(sorted(self.dimensions))


class Releases:
    """Those of one scope graph, by policy."""

    def __init__(self, graph: ScopeGraph) -> None:
        self._of: dict[str, ReleaseRule] = {}
        for name in sorted({each.policy for each in graph.releases}):
            some = [each for each in graph.releases if each.policy == name]
            dimensions = frozenset(dimension for each in some for dimension in each.dimensions)
            if dimensions:
                keep = frozenset(some[0].keep).intersection(*(each.keep for each in some))
                by = ", ".join(sorted({each.by for each in some}))
                self._of[name] = ReleaseRule(dimensions=dimensions, keep=keep, by=by)

    def get(self, policy: str) -> ReleaseRule | None:
        return self._of.get(policy)

    def let_go(self, policy: str, parts: Iterable[StampPart]) -> Iterator[StampPart]:
        """What situations of a policy come from, as it counts for these."""
        found = self._of.get(policy)
        for each in parts:
            yield each if found is None else each._replace(released=each.released | found.dimensions)


def released_situation(
    transition: SituationTransition, policy: Policy, keep: Collection[str]
) -> tuple[bytes, Mapping[str, Any]]:
    """The data of the event that tells a transition, and the attributes that it does not tell.

    Where a time must be, and is not kept, it is the event's own.
    """
    data: dict[str, Any] = msgspec.json.decode(situation_data(transition, policy, ()))
    now = print_instant(transition.time)
    left: dict[str, Any] = {}
    for attribute in SITUATION.attributes:
        name = attribute.name
        if name in data and (name in keep or name in _WHICH or name == _INSIDE):
            left[name] = data[name]
        elif not attribute.optional:
            left[name] = now if name in _TIMES else type(data[name])()
    return msgspec.json.encode(left), {name: data[name] for name in data if left.get(name) != data[name]}


def released_event(event: ActionEvent, keep: Collection[str]) -> ActionEvent:
    """What is left of an event that an action came to."""
    data: dict[str, Any] = msgspec.json.decode(event.data)
    if event.type == NOTICE.name:
        data["text"] = data["text"] if "text" in keep else ""
    elif event.type == COMMAND.name:
        sent = msgspec.json.decode(data["data"])
        wanted = {*keep, "situation"}
        left = {name: value for name, value in sent.items() if name in wanted} if isinstance(sent, dict) else None
        data["data"] = msgspec.json.encode(left).decode()
    else:
        data = {name: value for name, value in data.items() if name in keep}
    return replace(event, data=msgspec.json.encode(data))


def is_released(event: ActionEvent) -> bool:
    """Whether releases are for such an event at all."""
    return event.type != ACTION.name


# ── checking ──────────────────────────────────────────────────────────────────────────────────────────


def check_releases(deployment: Deployment) -> Iterator[Problem]:
    """Attributes to keep that nothing has, and types that cannot be without what is not kept."""
    for release in deployment.scopes.releases:
        policy = deployment.policies.get(release.policy)
        if policy is not None:
            yield from _check_release(deployment, release, policy)


def _check_release(deployment: Deployment, release: Release, policy: Policy) -> Iterator[Problem]:
    steps = [step for action in policy.actions for step in steps_of(action, deployment.actions)]
    known = {each.name for each in SITUATION.attributes} - {_INSIDE}
    known.update(name for step in steps for name in _names(step, deployment))
    for name in release.keep:
        if name not in known:
            place = release.keep_places.get(name, release.place)
            near = nearest(name, known)
            yield UNKNOWN_KEPT(place, policy=policy.name, name=name, nearest=near, known=tuple(sorted(known)))
    for type in sorted({step.type for step in steps if isinstance(step, PublishStep)}):
        for name, required in _attributes(deployment, type).items():
            if required and name not in release.keep:
                yield REQUIRED_NOT_KEPT(release.place, policy=policy.name, name=name, type=type)


def _names(step: ActionStep, deployment: Deployment) -> Iterator[str]:
    match step:
        case PublishStep(type=type):
            yield from _attributes(deployment, type)
        case NotifyStep():
            yield "text"
        case CommandStep(data=RecordData(entries=entries)):
            yield from (name for name, _ in entries)
        case CommandStep(data=None):
            yield from _DEFAULT
        case _:
            pass


def _attributes(deployment: Deployment, type: str) -> Mapping[str, bool]:
    """Those of an event type; whether each must be there."""
    declared = deployment.types.event(type)
    if declared is None:
        return {}
    return {each.name: not each.optional and each.default is None for each in declared.attributes}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What policies use beside events: rows of tables, and that something did not happen.
#
# A row was stamped by nobody: it has the tags of its source and passes no filter. Of what did not happen there is no
# event to test either: every tag set counts under which the policy could have seen one, with the bits of those filters
# only that its type alone makes true, so that only those see it to whom such events are always visible. An event of
# another policy does not come because what that one reads did not come: then that counts, too.


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
        given = provided_attributes(source, ontology.concepts[source.concept])
        return source.concept == concept or attribute in given or not given.keys().isdisjoint(around)

    found: set[str] = set()
    for end in attributes_needed(policy, deployment.actions):
        for concept in members(end.concept):
            chain = containers_of(concept, ontology.containers)
            around = chain if end.attribute in chain else ()
            for each in (concept, *(member for container in around for member in members(container))):
                found.update(name for name in cover.get(each, ()) if tells(name, each, end.attribute, around))
    return found


def sees_rows(seeing: EventVisibility, source: Source, reads: TagSet) -> bool:
    """Whether those who read as this see the rows of a table: they have its tags and pass no filter."""
    return seeing.sees((seeing.numbers.of(source.scopes), seeing.epoch, 0, 0, ""), reads)


class NonEventStamps:
    """What the policies of one version use beside events."""

    def __init__(
        self, deployment: Deployment, detecting: DetectionPlan, seeing: EventVisibility, releases: Releases
    ) -> None:
        self._deployment, self._detecting, self._seeing = deployment, detecting, seeing
        self._releases = releases

    def sources(self, watch: PolicyRuntime) -> set[str]:
        """The tables that say something which the policy asks for, of instances or of what these are in."""
        return tables_of(watch.policy, self._deployment, self._detecting.tables.cover.sources)

    def of_sources(self, watch: PolicyRuntime) -> frozenset[StampPart]:
        """The stamps of their rows."""
        return frozenset(map(self.row_of, self.sources(watch)))

    def row_of(self, source: str) -> StampPart:
        """The stamp of the rows of a table."""
        return self._part(self._deployment.sources[source].scopes)

    def of_absence(self, watch: PolicyRuntime) -> frozenset[StampPart]:
        """What counts because the policy asks for something that is not."""
        negated = [each.relation for each in signed_relations(watch.policy) if each.negated]
        return frozenset(self._absent(watch, negated, ()))

    def _absent(
        self, watch: PolicyRuntime, relations: Iterable[Relation], above: Collection[str]
    ) -> Iterator[StampPart]:
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

    def _unheard(self, advertised: TagSet, reads: TagSet, types: Collection[str]) -> Iterator[StampPart]:
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

    def _part(self, tags: TagSet, bits: int = 0) -> StampPart:
        return StampPart(self._seeing.numbers.of(tags), self._seeing.epoch, bits)
