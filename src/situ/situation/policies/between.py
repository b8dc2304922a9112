"""Policies held against each other: opposed actions, circles of triggering, likeness.

One policy can be right by itself and wrong beside another. All of this is said when policies are checked together, and
nothing of it is known to engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from situ.catalogue import NO_SUCH_POLICY, SIMILAR_POLICIES
from situ.errors import Problem, nearest
from situ.situation.actions.action import Actions, DeletePolicy, SuspendPolicy
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.ontology import Ontology
from situ.situation.policies.leaves import relations_of
from situ.situation.policies.opposing import opposed
from situ.situation.policies.policy import Policy
from situ.situation.policies.triggering import circles
from situ.sources.model import Push
from situ.types.table import Types

ALIKE = 0.5
"""How much of what two policies speak of they must share to be called similar."""
_MOST_LISTED = 20
_MOST_NAMED = 3
_VALUE = re.compile(r"'(?:[^']|'')*'|\b[0-9][0-9.]*")


def judge_policies(
    policies: Mapping[str, Policy], actions: Actions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Iterator[Problem]:
    """All that is to be said about these policies together. Their actions are resolved."""
    yield from circles(policies, actions, ontology, push, types)
    yield from opposed(policies, actions, ontology)
    yield from _without_policy(policies, actions)
    yield from _similar(policies)


# ── policies that are not there ───────────────────────────────────────────────────────────────────


def _without_policy(policies: Mapping[str, Policy], actions: Actions) -> Iterator[Problem]:
    for policy in policies.values():
        for action in policy.actions:
            for step in steps_of(action, actions):
                if not isinstance(step, DeletePolicy | SuspendPolicy) or step.policy.references:
                    continue
                name = str(step.policy)
                if name not in policies:
                    verb = "delete" if isinstance(step, DeletePolicy) else "suspend"
                    yield NO_SUCH_POLICY(action.location, name=name, verb=verb, nearest=nearest(name, policies))


# ── likeness ──────────────────────────────────────────────────────────────────────────────────────


def _similar(policies: Mapping[str, Policy]) -> Iterator[Problem]:
    spoken = {name: _speaks_of(policies[name]) for name in sorted(policies)}
    by: dict[str, list[str]] = {}
    listed = 0
    for name, about in spoken.items():
        if listed == _MOST_LISTED:
            return
        candidates = {other for feature in about for other in by.get(feature, ())}
        rated = sorted((-alike(about, spoken[other]), other) for other in candidates)
        close = tuple(other for rating, other in rated if -rating >= ALIKE)[:_MOST_NAMED]
        for feature in about:
            by.setdefault(feature, []).append(name)
        if close:
            listed += 1
            yield SIMILAR_POLICIES(policies[name].location, policy=name, others=close)


def alike(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of what either speaks of that both do."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _speaks_of(policy: Policy) -> frozenset[str]:
    """Concepts and relations between them, each with its values and without: whatever the aliases are called."""
    concepts = {alias.name: f"{alias.concept} ({alias.text})" for alias in policy.aliases}
    names = re.compile(r"\b(?:" + "|".join(map(re.escape, concepts)) + r")\b")
    relations = [names.sub(lambda found: concepts[found[0]], each.text) for each in relations_of(policy)]
    said = (*concepts.values(), *relations)
    return frozenset((*said, *(_VALUE.sub("…", each) for each in said)))
