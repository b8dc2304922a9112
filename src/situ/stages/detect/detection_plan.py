"""The detection plan: the policies of a deployment, compiled for all engines, and the tables and events that they see.

`visible_rows` leaves out events that a policy does not see, `InstanceTables` makes instances of rows of tables,
`DetectionPlan` holds enrichment, decoder and kernels of all policies.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.lang.types.model import RESERVED_PREFIX
from situ.lang.types.table import Types
from situ.model.deployment import Deployment
from situ.policies.actions.action_events import publications, published_by
from situ.policies.actions.model import DeclaredActions
from situ.policies.check.interactions import feeding_graph
from situ.policies.enrichment.enrich import Enrichment, PushObservations
from situ.policies.enrichment.observations import ObservationDecoder
from situ.policies.kernel.kept_values import KeptValues, KeptValuesKernel, plan_kept_values
from situ.policies.kernel.kernel import Kernel
from situ.policies.lifecycle import POLICY_STOPPED, POLICY_SUSPENDED
from situ.policies.model import InstancesByConcept, Policy, derived_id
from situ.policies.ontology.model import IDENTITY, ConceptAttribute, Ontology, containers_of
from situ.policies.plan import Leaf, PolicyPlan, leaves_of, partition_rows, plan_policy, relations_of
from situ.policies.source_coverage import SourceCover, attributes_needed, cover_attributes, provided_attributes
from situ.policies.watermark import SourceTimeouts
from situ.settings.model import Defaults
from situ.sources.model import Push, Source
from situ.sources.table import Keyed, Table

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Events that policies do not see: where they are in the log, by what policies read as. Rows of them are left out.

Positions = np.ndarray[tuple[int], np.dtype[np.int64]]
Hidden = Mapping[TagSet, Positions]
"""What policies read as → the positions of the events that are not visible to that."""

NOTHING_HIDDEN: Hidden = MappingProxyType({})


def visible_rows(rows: pa.RecordBatch, reads: TagSet | None, hidden: Hidden) -> pa.RecordBatch:
    """The rows, which have positions, of events that are visible to those who read like this."""
    if reads is None or reads not in hidden:
        return rows
    seen = ~np.isin(rows.column("pos").to_numpy(), hidden[reads])
    return rows if seen.all() else rows.filter(pa.array(seen))


def visible_positions(positions: pa.Array, reads: TagSet | None, hidden: Hidden) -> list[int]:
    """Those of these positions at which there are such events."""
    if reads is None or reads not in hidden:
        found: list[int] = positions.to_pylist()
        return found
    given = positions.to_numpy()
    return [int(pos) for pos in given[~np.isin(given, hidden[reads])]]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Rows of tables → what is known of the instances of concepts, as policies see it.
#
# Several tables of one concept are put together by identity; where more than one says something of an attribute, the
# first in the order of names that says anything counts. What a table does not say of a container follows from the
# container's own. As long as the tables are the same, so is what is made of them, object for object: whoever worked
# something out of it need not do so again.

KnownOf = Mapping[str, Mapping[str, Any]]


class InstanceTables:
    """The tables that provide what is needed (:func:`situ.policies.source_coverage.attributes_needed`), and what is in
    them.
    """

    def __init__(self, needed: Iterable[ConceptAttribute], ontology: Ontology, sources: Mapping[str, Source]) -> None:
        self.cover: SourceCover = cover_attributes(needed, ontology, sources)
        self._ontology = ontology
        self._sources = {name: sources[name] for name in sorted(self.cover.tables)}
        self._made: dict[str, tuple[tuple[Table, ...], KnownOf]] = {}
        self._last: tuple[tuple[Table, ...], InstancesByConcept] | None = None

    @property
    def keyed(self) -> Mapping[str, frozenset[Keyed]]:
        """The tables to read, by the columns that tell their rows apart: one with two rows for a key is refused."""
        return MappingProxyType({name: frozenset({(each.key, "")}) for name, each in self._sources.items()})

    def of(self, tables: Mapping[str, Table]) -> InstancesByConcept:
        """What these tables know; KeyError if one of those that are needed is not among them."""
        read = tuple(tables[name] for name in self._sources)
        last = self._last
        if last is None or not _same(last[0], read):
            found = {concept: self._concept(concept, tables) for concept in self.cover.sources}
            last = self._last = (read, MappingProxyType(found))
        return last[1]

    def _concept(self, concept: str, tables: Mapping[str, Table]) -> KnownOf:
        chain = containers_of(concept, self._ontology.containers)
        used = (concept, *(member for container in chain for member in self._members(container)))
        read = tuple(tables[name] for each in used for name in self.cover.sources[each])
        made = self._made.get(concept)
        if made is None or not _same(made[0], read):
            found = self._together(concept, tables)
            self._fill_in(chain, found, tables)
            made = self._made[concept] = (read, MappingProxyType(found))
        return made[1]

    def _members(self, concept: str) -> list[str]:
        return [each for each in self._ontology.concepts[concept].members if each in self.cover.sources]

    def _together(self, concept: str, tables: Mapping[str, Table]) -> dict[str, dict[str, Any]]:
        chosen = [self._sources[name] for name in self.cover.sources[concept]]
        found: dict[str, dict[str, Any]] = {}
        for source in chosen:
            if source.concept == concept:
                for row in tables[source.name].rows:
                    if (identity := _identity(source, row)) is not None:
                        found.setdefault(identity, {IDENTITY: identity})
        for source in chosen:
            columns = tuple(provided_attributes(source, self._ontology.concepts[source.concept]).items())
            for row in tables[source.name].rows:
                identity = _identity(source, row)
                known = found.get(identity) if identity is not None else None
                if known is not None:
                    for attribute, column in columns:
                        if (value := row.get(column)) is not None:
                            known.setdefault(attribute, value)
        return found

    def _fill_in(
        self, chain: tuple[str, ...], found: Mapping[str, dict[str, Any]], tables: Mapping[str, Table]
    ) -> None:
        """Containers further out, from those that are nearer: a room is in the building that its floor is in."""
        for nearer, further in pairwise(chain):
            for member in self._members(nearer):
                above = self._concept(member, tables)
                for known in found.values():
                    container = above.get(known.get(nearer, ""), {})
                    if further in container:
                        known.setdefault(further, container[further])


def _same(tables: tuple[Table, ...], others: tuple[Table, ...]) -> bool:
    return all(one is other for one, other in zip(tables, others, strict=True))


def _identity(source: Source, row: Mapping[str, Any]) -> str | None:
    value = row.get(source.key[0])
    return None if value is None else str(value)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The plan: what enrichment makes rows of, and what each policy does with them. What is remembered from step to step is
# not here: states of kernels are values, and the rest is :mod:`situ.stages.detect.progress`.

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyRuntime:
    """One policy at work: its plan, and how long it waits for each push source that it listens to."""

    policy: Policy
    plan: PolicyPlan
    keeping: KeptValues
    """What is repeated of values that push sources keep."""
    patience: Mapping[str, SourceTimeouts]
    digest: str
    """What is remembered under another one belongs to another policy."""
    publishes: frozenset[str]
    """The types of the events that come from it."""
    reads: TagSet | None = None
    """The tags as which it sees events; None: there are no scopes, and it sees them all."""
    fed: frozenset[str] = frozenset()
    """The policies whose events it reads; it decides nothing before they did."""
    circular: bool = False
    """Whether policies feed each other in a circle with it: then it waits for their events as for those of others."""
    awaited: frozenset[str] = frozenset()
    """The push sources that it waits for before anything was heard of them: publishers may bring them."""

    @property
    def name(self) -> str:
        return self.policy.name


class DetectionPlan:
    """All policies of one deployment."""

    def __init__(
        self,
        policies: Iterable[Policy],
        ontology: Ontology,
        push: Mapping[str, Push],
        sources: Mapping[str, Source],
        types: Types,
        defaults: Defaults,
        actions: DeclaredActions | None = None,
        reads: Mapping[str, TagSet] | None = None,
        offered: frozenset[str] = frozenset(),
        resting: Collection[Policy] = (),
        *,
        linked: bool = True,
    ) -> None:
        """``reads``: the tags of each policy that sees only what is visible to them; None: there are no scopes.

        ``offered``: the types of events that publishers advertise; ``resting``: policies that are not at work, whose
        events nobody else brings. Not ``linked``: what policies published is in the log already, and none of them waits
        for another.
        """
        self.ontology = ontology
        self.actions = actions or DeclaredActions()
        self._made_of = (push, sources, types, defaults)
        self._reads = reads
        self._offered = offered
        self._rest = resting
        self._resting_types = frozenset[str]().union(*(published_by(each, self.actions) for each in resting))
        self._terms: tuple[object, ...] = ()
        self.resting: Mapping[str, str] = MappingProxyType({})
        """Policies that are declared and do not run, and which of both reasons that has."""
        found = [
            _watch(policy, ontology, push, defaults, self.actions, None if reads is None else reads[policy.name])
            for policy in policies
        ]
        found = _linked(found, ontology, push, types, offered, self._resting_types, linked=linked)
        self.watches: Mapping[str, PolicyRuntime] = MappingProxyType({each.name: each for each in found})
        leaves = dict.fromkeys(leaf.leaf for each in found for leaf in each.plan.leaves)
        self.enrichment = Enrichment(leaves, ontology)
        self.leaves: tuple[Leaf, ...] = self.enrichment.leaves
        needed = frozenset().union(*(attributes_needed(each.policy) for each in found))
        self.tables = InstanceTables(needed, ontology, sources)
        listened = {name for each in found for name in each.patience}
        self.push: Mapping[str, Push] = MappingProxyType({name: push[name] for name in sorted(listened)})
        self.observing = ObservationDecoder(self.push, types, self.enrichment, frozenset(self.watches))
        self.feeders: frozenset[str] = frozenset().union(*(each.fed for each in found))
        """The policies whose events others read."""
        self._kernels: dict[tuple[str, int, int], Kernel] = {}
        self._ways: list[tuple[Leaf, PolicyRuntime]] = []
        """Each leaf as often as policies divide its rows among partitions in different ways; who does it first."""
        self._numbers: dict[str, dict[Leaf, int]] = {}
        known: dict[tuple[Leaf, str, bool, TagSet | None], int] = {}
        for watch in found:
            numbers = self._numbers.setdefault(watch.name, {})
            for each in watch.plan.leaves:
                way = (each.leaf, each.column, bool(watch.plan.partition), watch.reads)
                if way not in known:
                    known[way] = len(self._ways)
                    self._ways.append((each.leaf, watch))
                numbers[each.leaf] = known[way]

    @classmethod
    def of(cls, deployment: Deployment, previous: DetectionPlan | None = None) -> DetectionPlan:
        """Those of a deployment; the same as before if nothing that they depend on is another."""
        terms = (
            tuple(deployment.running.values()),
            deployment.ontology,
            deployment.push,
            deployment.sources,
            deployment.types,
            deployment.settings.defaults,
            deployment.actions,
            _reads(deployment),
            frozenset(each.type for each in deployment.advertisements.values())
            & frozenset(each.event for each in deployment.push.values()),
            tuple(each for name, each in deployment.policies.items() if name not in deployment.running),
        )
        # Of a policy its text counts; what its words mean depends on functions, too.
        known = (*terms, deployment.functions)
        if previous is not None and previous._terms == known:
            return previous
        made = cls(*terms)
        made._terms = known
        made.resting = MappingProxyType(
            {
                **dict.fromkeys(deployment.stopped, POLICY_STOPPED),
                **dict.fromkeys(deployment.suspended, POLICY_SUSPENDED),
            }
        )
        return made

    def only(self, names: Collection[str]) -> DetectionPlan:
        """Only those of its policies, over what the log holds already."""
        push, sources, types, defaults = self._made_of
        policies = [watch.policy for name, watch in self.watches.items() if name in names]
        others = [watch.policy for name, watch in self.watches.items() if name not in names]
        return DetectionPlan(
            policies,
            self.ontology,
            push,
            sources,
            types,
            defaults,
            self.actions,
            self._reads,
            self._offered,
            [*self._rest, *others],
            linked=False,
        )

    @property
    def is_empty(self) -> bool:
        return not self.watches

    def late(
        self, observed: Iterable[PushObservations], reached: Mapping[str, int], hidden: Hidden = NOTHING_HIDDEN
    ) -> dict[int, list[str]]:
        """Where in the log events are that came too late, and for which of the policies that see them."""
        found: dict[int, list[str]] = {}
        for each in observed:
            if not each.rows.num_rows:
                continue
            push = each.rows.column("push")[0].as_py()
            times = each.rows.column("time").to_numpy()
            earliest = times.min()
            of_policies = self.push[push].event.startswith(RESERVED_PREFIX)
            for name, watch in self.watches.items():
                if push in watch.patience and name in reached and earliest < reached[name]:
                    is_late = pa.array(times < reached[name])
                    if of_policies and not watch.circular:
                        # Some policies tell of situations that it does not ask for.
                        unread = pa.array(sorted(self.watches.keys() - watch.fed), pa.string())
                        is_late = pc.and_(is_late, pc.invert(pc.is_in(each.rows.column("source"), unread)))
                    positions = each.rows.column("pos").filter(is_late)
                    for pos in visible_positions(positions, watch.reads, hidden):
                        found.setdefault(pos, []).append(name)
        return found

    def kernel(self, policy: str, partition: int = 0, partitions: int = 1) -> Kernel:
        """The kernel of a policy in one of several partitions."""
        place = (policy, partition, partitions)
        if place not in self._kernels:
            plan, keeping = self.watches[policy].plan, self.watches[policy].keeping
            self._kernels[place] = (
                KeptValuesKernel(plan, keeping, partition=partition, partitions=partitions)
                if keeping
                else Kernel(plan, partition=partition, partitions=partitions)
            )
        return self._kernels[place]

    def parts(
        self, rows: Mapping[Leaf, pa.RecordBatch], partitions: int, hidden: Hidden = NOTHING_HIDDEN
    ) -> list[dict[int, pa.RecordBatch]]:
        """What each partition gets of the rows of all leaves, by number.

        Policies that divide a leaf alike share it, if they see the same events.
        """
        found: list[dict[int, pa.RecordBatch]] = [{} for _ in range(partitions)]
        for number, (leaf, watch) in enumerate(self._ways):
            batch = rows.get(leaf)
            if batch is not None:
                seen = visible_rows(batch, watch.reads, hidden)
                for place, part in enumerate(partition_rows(watch.plan, leaf, seen, partitions)):
                    if part.num_rows:
                        found[place][number] = part
        return found

    def leaf_of(self, number: int) -> Leaf:
        """The leaf whose rows have this number."""
        return self._ways[number][0]

    def rows_of(self, policy: str, part: Mapping[int, pa.RecordBatch]) -> dict[Leaf, pa.RecordBatch]:
        """What a policy gets of the rows of a partition."""
        numbers = self._numbers[policy]
        return {leaf: part[number] for leaf, number in numbers.items() if number in part}


def partial_source_key(push: str, reads: TagSet | None) -> str:
    """The name under which it is remembered what those have heard of a push source who see only a part of it."""
    return push if reads is None else f"{push}@{json.dumps(reads.as_json(), separators=(',', ':'))}"


def _linked(
    watches: list[PolicyRuntime],
    ontology: Ontology,
    push: Mapping[str, Push],
    types: Types,
    offered: frozenset[str],
    resting: frozenset[str],
    *,
    linked: bool,
) -> list[PolicyRuntime]:
    """With whom they read, and what they wait for before anything was heard of it."""
    publishes = {each.name: each.publishes for each in watches}
    fed, circular = feeding_graph({each.name: each.policy for each in watches}, publishes, ontology, push, types)
    published = resting.union(*publishes.values())

    def awaited(name: str) -> bool:
        declared = types.event(push[name].event)
        taken = {push[name].event, *map(str, types.subtypes(declared) if declared is not None else ())}
        return not push[name].event.startswith(RESERVED_PREFIX) and (not taken & published or bool(taken & offered))

    waited_for = frozenset(name for name in {name for each in watches for name in each.patience} if awaited(name))
    return [
        replace(
            each,
            fed=fed[each.name] if linked else frozenset(),
            circular=each.name in circular,
            awaited=waited_for & each.patience.keys(),
        )
        for each in watches
    ]


def _reads(deployment: Deployment) -> dict[str, TagSet] | None:
    """None: there are no scopes, and never were."""
    if not deployment.scopes.dimensions and not deployment.numbers:
        return None
    return {name: deployment.scopes.tags_of(name).reads for name in deployment.running}


def _watch(
    policy: Policy,
    ontology: Ontology,
    push: Mapping[str, Push],
    defaults: Defaults,
    actions: DeclaredActions,
    reads: TagSet | None,
) -> PolicyRuntime:
    fed = {(leaf.concept, leaf.attribute) for relation in relations_of(policy) for leaf in leaves_of(policy, relation)}
    patience = {
        name: _patience(policy, each, defaults)
        for name, each in push.items()
        if any(
            each.attribute == attribute and each.concept in _members(ontology, concept) for concept, attribute in fed
        )
    }
    plan, keeping = plan_kept_values(plan_policy(policy, ontology), {name: push[name] for name in patience})
    declared = {name: push[name].as_json() for name in sorted(patience)}
    digest = derived_id(policy.text, policy.window, declared, sorted(fed))
    return PolicyRuntime(
        policy=policy,
        plan=plan,
        keeping=keeping,
        patience=MappingProxyType(patience),
        digest=digest,
        publishes=publications({policy.name: policy}, actions)[policy.name],
        reads=reads,
    )


def _members(ontology: Ontology, concept: str) -> tuple[str, ...]:
    return ontology.concepts[concept].members or (concept,)


def _patience(policy: Policy, push: Push, defaults: Defaults) -> SourceTimeouts:
    lateness = (push.lateness if push.lateness is not None else defaults.lateness) // _MICROSECOND
    idle = (push.idle if push.idle is not None else defaults.idle) // _MICROSECOND
    return SourceTimeouts(lateness=policy.lateness if policy.lateness >= 0 else lateness, idle=idle)
