"""Policies held against each other: opposed actions, circles of triggering, likeness.

One policy can be right by itself and wrong beside another. All of this is said when policies are checked together, and
nothing of it is known to engines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import combinations_with_replacement

from situ.catalogue import NO_SUCH_POLICY, OPPOSED_TOGETHER, SIMILAR_POLICIES
from situ.errors import Problem, nearest
from situ.expr.tree import Node
from situ.situation.actions.action import Actions, DeletePolicy, SuspendPolicy, references_of
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.ontology import Ontology
from situ.situation.policies.impossible import exclude_each_other
from situ.situation.policies.leaves import relations_of
from situ.situation.policies.policy import Action, Alias, Policy
from situ.situation.policies.triggering import circles
from situ.sources.model import Push
from situ.types.table import Types

ALIKE = 0.5
"""How much of what two policies speak of they must share to be called similar."""
_MOST_OPPOSED = 50
_MOST_LISTED = 20
_MOST_NAMED = 3
_VALUE = re.compile(r"'(?:[^']|'')*'|\b[0-9][0-9.]*")


def judge_policies(
    policies: Mapping[str, Policy], actions: Actions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Iterator[Problem]:
    """All that is to be said about these policies together. Their actions are resolved."""
    yield from circles(policies, actions, ontology, push, types)
    yield from _opposed(policies, actions, ontology)
    yield from _without_policy(policies, actions)
    yield from _similar(policies)


# ── opposed actions ───────────────────────────────────────────────────────────────────────────────


def _opposed(policies: Mapping[str, Policy], actions: Actions, ontology: Ontology) -> Iterator[Problem]:
    names = {name for pair in actions.opposed for name in pair}
    acting = [
        (policy, action) for _, policy in sorted(policies.items()) for action in policy.actions if action.name in names
    ]
    told = 0
    for (one, action), (other, opposite) in combinations_with_replacement(acting, 2):
        if told == _MOST_OPPOSED or not actions.oppose(action.name, opposite.name):
            continue
        what = _same_thing(one, action, other, opposite, actions, ontology)
        if what:
            told += 1
            yield OPPOSED_TOGETHER(
                action.location or one.location,
                action=action.name,
                other_action=opposite.name,
                other=other.name,
                what=what,
            )


def _same_thing(
    one: Policy, action: Action, other: Policy, opposite: Action, actions: Actions, ontology: Ontology
) -> str:
    """What both actions can be about at the same time; empty if there is nothing."""
    for left in _about(one, action, actions):
        for right in _about(other, opposite, actions):
            common = [each for each in _members(left.concept, ontology) if each in _members(right.concept, ontology)]
            if common and not _exclude(left.constraint, right.constraint):
                return f"the same {common[0]}"
    return ""


def _about(policy: Policy, action: Action, actions: Actions) -> tuple[Alias, ...]:
    """The aliases that the action refers to; if it refers to none, all of the policy."""
    named = {each.name for step in steps_of(action, actions) for each in references_of(step) if each.is_alias}
    return tuple(alias for alias in policy.aliases if alias.name in named) or policy.aliases


def _members(concept: str, ontology: Ontology) -> tuple[str, ...]:
    declared = ontology.concepts.get(concept)
    return (declared.members or (concept,)) if declared is not None else (concept,)


def _exclude(one: Node | None, other: Node | None) -> bool:
    """Whether no instance can satisfy both."""
    return one is not None and other is not None and exclude_each_other((one, other))


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
