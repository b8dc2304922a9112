"""The policies of a deployment, compiled: what enrichment makes rows of, and what each policy does with them.

The same for all engines. What is remembered from step to step is not here: states of kernels are values, and the rest
is :mod:`situ.deployment.progress`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from types import MappingProxyType

import pyarrow as pa
import pyarrow.compute as pc

from situ.deployment.acting import publications, published_by
from situ.deployment.hiding import NOTHING_HIDDEN, Hidden, left_of, positions_left
from situ.deployment.instances import InstanceTables
from situ.deployment.snapshot import Deployment
from situ.settings.model import Defaults
from situ.situation.actions.action import Actions
from situ.situation.domain.cover import needed_of
from situ.situation.domain.ontology import Ontology
from situ.situation.enrichment.enrich import Enrichment, Observed
from situ.situation.enrichment.observe_columns import Observing
from situ.situation.kernel.kernel import Kernel
from situ.situation.meaning.detection import derived_id
from situ.situation.meaning.keeping import Keeping, KeepingKernel, plan_keeping
from situ.situation.meaning.lifecycle import POLICY_STOPPED, POLICY_SUSPENDED
from situ.situation.meaning.watermark import Patience
from situ.situation.policies.leaves import Leaf, leaves_of, relations_of
from situ.situation.policies.plan import PolicyPlan, partition_rows, plan_policy
from situ.situation.policies.policy import Policy
from situ.situation.policies.triggering import feeding
from situ.sources.model import Push, Source
from situ.tags import TagSet
from situ.types.syntax import RESERVED_PREFIX
from situ.types.table import Types

_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watch:
    """One policy at work: its plan, and how long it waits for each push source that it listens to."""

    policy: Policy
    plan: PolicyPlan
    keeping: Keeping
    """What is repeated of values that push sources keep."""
    patience: Mapping[str, Patience]
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


class Detecting:
    """All policies of one deployment."""

    def __init__(
        self,
        policies: Iterable[Policy],
        ontology: Ontology,
        push: Mapping[str, Push],
        sources: Mapping[str, Source],
        types: Types,
        defaults: Defaults,
        actions: Actions | None = None,
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
        self.actions = actions or Actions()
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
        self.watches: Mapping[str, Watch] = MappingProxyType({each.name: each for each in found})
        leaves = dict.fromkeys(leaf.leaf for each in found for leaf in each.plan.leaves)
        self.enrichment = Enrichment(leaves, ontology)
        self.leaves: tuple[Leaf, ...] = self.enrichment.leaves
        needed = frozenset().union(*(needed_of(each.policy) for each in found))
        self.tables = InstanceTables(needed, ontology, sources)
        listened = {name for each in found for name in each.patience}
        self.push: Mapping[str, Push] = MappingProxyType({name: push[name] for name in sorted(listened)})
        self.observing = Observing(self.push, types, self.enrichment, frozenset(self.watches))
        self.feeders: frozenset[str] = frozenset().union(*(each.fed for each in found))
        """The policies whose events others read."""
        self._kernels: dict[tuple[str, int, int], Kernel] = {}
        self._ways: list[tuple[Leaf, Watch]] = []
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
    def of(cls, deployment: Deployment, previous: Detecting | None = None) -> Detecting:
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

    def only(self, names: Collection[str]) -> Detecting:
        """Only those of its policies, over what the log holds already."""
        push, sources, types, defaults = self._made_of
        policies = [watch.policy for name, watch in self.watches.items() if name in names]
        others = [watch.policy for name, watch in self.watches.items() if name not in names]
        return Detecting(
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
        self, observed: Iterable[Observed], reached: Mapping[str, int], hidden: Hidden = NOTHING_HIDDEN
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
                    for pos in positions_left(positions, watch.reads, hidden):
                        found.setdefault(pos, []).append(name)
        return found

    def kernel(self, policy: str, partition: int = 0, partitions: int = 1) -> Kernel:
        """The kernel of a policy in one of several partitions."""
        place = (policy, partition, partitions)
        if place not in self._kernels:
            plan, keeping = self.watches[policy].plan, self.watches[policy].keeping
            self._kernels[place] = (
                KeepingKernel(plan, keeping, partition=partition, partitions=partitions)
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
                seen = left_of(batch, watch.reads, hidden)
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


def heard_as(push: str, reads: TagSet | None) -> str:
    """The name under which it is remembered what those have heard of a push source who see only a part of it."""
    return push if reads is None else f"{push}@{json.dumps(reads.as_json(), separators=(',', ':'))}"


def _linked(
    watches: list[Watch],
    ontology: Ontology,
    push: Mapping[str, Push],
    types: Types,
    offered: frozenset[str],
    resting: frozenset[str],
    *,
    linked: bool,
) -> list[Watch]:
    """With whom they read, and what they wait for before anything was heard of it."""
    publishes = {each.name: each.publishes for each in watches}
    fed, circular = feeding({each.name: each.policy for each in watches}, publishes, ontology, push, types)
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
    actions: Actions,
    reads: TagSet | None,
) -> Watch:
    fed = {(leaf.concept, leaf.attribute) for relation in relations_of(policy) for leaf in leaves_of(policy, relation)}
    patience = {
        name: _patience(policy, each, defaults)
        for name, each in push.items()
        if any(
            each.attribute == attribute and each.concept in _members(ontology, concept) for concept, attribute in fed
        )
    }
    plan, keeping = plan_keeping(plan_policy(policy, ontology), {name: push[name] for name in patience})
    declared = {name: push[name].as_json() for name in sorted(patience)}
    digest = derived_id(policy.text, policy.window, declared, sorted(fed))
    return Watch(
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


def _patience(policy: Policy, push: Push, defaults: Defaults) -> Patience:
    lateness = (push.lateness if push.lateness is not None else defaults.lateness) // _MICROSECOND
    idle = (push.idle if push.idle is not None else defaults.idle) // _MICROSECOND
    return Patience(lateness=policy.lateness if policy.lateness >= 0 else lateness, idle=idle)
