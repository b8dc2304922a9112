"""Policies that read what other policies publish: what all of them tell of some events, by definition.

The slow and obvious way: policies are gone through in an order in which each comes after those that feed it, each is
given everything at once, and what its actions come to is put among the events for the ones behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from situ.model import Deployment
from situ.policies import lifecycle
from situ.policies.actions.action_events import action_events, published_by
from situ.policies.enrichment.observations import observe
from situ.policies.lifecycle import SituationTransition
from situ.policies.model import InstancesByConcept, Policy, Side
from situ.policies.plan import literal_relations
from situ.policies.reference import detect

FOREVER = 1 << 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """An event in root's terms."""

    type: str
    id: str
    source: str
    time: int
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """What policies tell, and the events that their actions come to."""

    told: tuple[SituationTransition, ...]
    acted: tuple[Said, ...]

    def before(self, instant: int) -> Meaning:
        """As much of it as is about that time."""
        return Meaning(
            told=tuple(each for each in self.told if each.time < instant),
            acted=tuple(each for each in self.acted if each.time < instant),
        )


def meaning_of(deployment: Deployment, events: Iterable[Said], instances: InstancesByConcept) -> Meaning:
    """What the policies of a deployment come to, given these events."""
    known, told, done = list(events), list[SituationTransition](), list[Said]()
    for policy in in_order_of_feeding(deployment):
        observations = list(observe(known, deployment.push, deployment.types))
        found = detect(policy, deployment.ontology, observations, instances)
        transitions = lifecycle.step({}, found, FOREVER, policy.hold)[1]
        told += transitions
        new = [
            Said(type=each.type, id=each.id, source=policy.name, time=one.time, data=json.loads(each.data))
            for one in transitions
            for each in action_events(one, policy, deployment.actions, deployment.ontology, instances)
        ]
        done += new
        known += new
    return Meaning(told=tuple(told), acted=tuple(done))


def in_order_of_feeding(deployment: Deployment) -> list[Policy]:
    """Each behind all those that publish what it reads."""
    heard = {each.attribute: each.event for each in deployment.push.values()}
    feeds = {name: published_by(each, deployment.actions) for name, each in deployment.policies.items()}
    left, ordered = dict(deployment.policies), list[Policy]()
    while left:
        fed = {type for name in left for type in feeds[name]}
        ready = [
            each
            for each in left.values()
            if not fed & {heard[side.event] for side in _sides(each) if side.event in heard}
        ]
        assert ready, f"these feed each other: {sorted(left)}"
        for each in ready:
            ordered.append(left.pop(each.name))
    return ordered


def _sides(policy: Policy) -> list[Side]:
    relations = [
        part.relation for clause in policy.clauses for literal in clause for part in literal_relations(literal)
    ]
    return [side for relation in relations for side in relation.sides]
