"""Policies held against each other: opposed actions, circles of triggering, similar policies.

`opposed_actions` finds actions that contradict each other for the same thing, `trigger_graph` and `feeding_graph` say
which policies trigger or feed which, `chain_delays` how long chains wait, `check_interactions` reports all of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from graphlib import TopologicalSorter
from typing import Any

import msgspec

from situ.lang.catalogue import (
    NO_SUCH_POLICY,
    OPPOSED_TOGETHER,
    SIMILAR_POLICIES,
    TRIGGER_EACH_OTHER,
    TRIGGERS_ITSELF,
    WAITS_FOR_POLICIES,
)
from situ.lang.expr.tree import And, Compare, Literal, Node, Read, walk
from situ.lang.problems import Location, Problem, nearest
from situ.lang.types.model import STRING, is_subtype
from situ.lang.types.table import Types
from situ.policies.actions.model import (
    ActionStep,
    DeclaredActions,
    DeletePolicyStep,
    PublishStep,
    SuspendPolicyStep,
    references_of,
)
from situ.policies.actions.resolve import steps_of
from situ.policies.check.satisfiability import Path, exclude_each_other, is_impossible, listed_values
from situ.policies.logic_tree import duration_text
from situ.policies.model import LEFT, RIGHT, Alias, Policy, PolicyAction, Relation, Side
from situ.policies.ontology.model import Ontology
from situ.policies.plan import relations_of, signed_relations
from situ.sources.model import Push

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Policies whose actions oppose each other and that can hold at the same time for the same thing. Every two policies
# could be such, and there may be thousands: those whose properties list different values of an attribute, ``floor =
# '1'`` and ``floor = '2'``, are told apart by an index and never looked at together.

_MOST_OPPOSED = 50


@dataclass(frozen=True)
class _Thing:
    """What an action may be about."""

    alias: Alias
    concepts: tuple[str, ...]

    @cached_property
    def listed(self) -> Mapping[Path, tuple[Any, ...]]:
        return {} if self.alias.constraint is None else listed_values(self.alias.constraint)


class _Acting(msgspec.Struct, frozen=True):
    """An action of a policy."""

    policy: Policy
    action: PolicyAction
    things: tuple[_Thing, ...]


def opposed_actions(policies: Mapping[str, Policy], actions: DeclaredActions, ontology: Ontology) -> Iterator[Problem]:
    """A warning for each two, as far as they are not too many."""
    names = {name for pair in actions.opposed for name in pair}
    acting = [
        _Acting(policy, action, _about(policy, action, actions, ontology))
        for _, policy in sorted(policies.items())
        for action in policy.actions
        if action.name in names
    ]
    index = _Index(acting)
    told = 0
    for place, one in enumerate(acting):
        against = [each for each in sorted(names) if actions.oppose(one.action.name, each)]
        for other in (acting[each] for each in index.candidates(one, against) if each >= place):
            if told == _MOST_OPPOSED:
                return
            if what := _same_thing(one, other):
                told += 1
                yield OPPOSED_TOGETHER(
                    one.action.location or one.policy.location,
                    action=one.action.name,
                    other_action=other.action.name,
                    other=other.policy.name,
                    what=what,
                )


def _about(policy: Policy, action: PolicyAction, actions: DeclaredActions, ontology: Ontology) -> tuple[_Thing, ...]:
    """The aliases that the action refers to; if it refers to none, all of the policy."""
    named = {each.name for step in steps_of(action, actions) for each in references_of(step) if each.is_alias}
    aliases = tuple(alias for alias in policy.aliases if alias.name in named) or policy.aliases
    return tuple(_Thing(alias, _members(alias.concept, ontology)) for alias in aliases)


def _members(concept: str, ontology: Ontology) -> tuple[str, ...]:
    declared = ontology.concepts.get(concept)
    return (declared.members or (concept,)) if declared is not None else (concept,)


def _same_thing(one: _Acting, other: _Acting) -> str:
    """What both actions can be about at the same time; empty if there is nothing."""
    for left in one.things:
        for right in other.things:
            common = [each for each in left.concepts if each in right.concepts]
            if common and not _exclude(left.alias, right.alias):
                return f"the same {common[0]}"
    return ""


def _exclude(one: Alias, other: Alias) -> bool:
    """Whether no instance can satisfy both."""
    if one.constraint is None or other.constraint is None:
        return False
    return exclude_each_other((one.constraint, other.constraint))


class _Index:
    """Who acts, by action and by concept of what it may be about."""

    def __init__(self, acting: Sequence[_Acting]) -> None:
        self._by: dict[tuple[str, str], _Things] = {}
        for place, each in enumerate(acting):
            for thing in each.things:
                for concept in thing.concepts:
                    self._by.setdefault((each.action.name, concept), _Things()).add(place, thing)

    def candidates(self, one: _Acting, against: Sequence[str]) -> list[int]:
        """Where those are who may be about the same and do one of these actions, in order."""
        found: set[int] = set()
        for thing in one.things:
            for concept in thing.concepts:
                for action in against:
                    if (things := self._by.get((action, concept))) is not None:
                        found.update(things.not_apart(thing))
        return sorted(found)


class _Things:
    """Who is about things of one concept, by what their properties list."""

    def __init__(self) -> None:
        self._all: list[tuple[int, _Thing]] = []
        self._by: dict[Path, dict[Any, list[int]]] = {}
        self._without: dict[Path, list[int]] = {}

    def add(self, place: int, thing: _Thing) -> None:
        self._all.append((place, thing))
        for path, values in thing.listed.items():
            by_value = self._by.setdefault(path, {})
            for value in values:
                by_value.setdefault(value, []).append(place)

    def not_apart(self, thing: _Thing) -> list[int]:
        """Those who do not list other values only, for the attribute for which these are fewest."""
        found = [place for place, _ in self._all]
        for path, values in thing.listed.items():
            by_value = self._by.get(path)
            if by_value is None:
                continue
            if path not in self._without:
                self._without[path] = [place for place, each in self._all if path not in each.listed]
            fitting = [*self._without[path], *(place for value in values for place in by_value.get(value, ()))]
            found = min(found, fitting, key=len)
        return found


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Which policies can trigger which: through the events their actions publish, and through their situations.
#
# A policy can trigger another if something it publishes is of a type that a push source takes, and that push source
# feeds what the other waits for. One that can trigger itself without end is refused; several that can trigger each
# other in a circle are warned of. It *feeds* another if that one reads it at all, be it to see that something is
# absent.

SITUATION = "situ.situation"
_POLICY = ("policy",)


class _Wait(msgspec.Struct, frozen=True, kw_only=True):
    """What a policy waits for: an attribute of an alias in a relation that it wants to hold."""

    relation: Relation
    variable: str
    side: Side


def trigger_graph(
    policies: Mapping[str, Policy], actions: DeclaredActions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Mapping[str, Mapping[str, str]]:
    """By policy: the policies that it can trigger, each with what it does so by."""
    waits = {name: tuple(_waits(policy)) for name, policy in policies.items()}
    feeding = _Feeding(policies, ontology, waits)
    found: dict[str, dict[str, str]] = {name: {} for name in policies}
    for name, policy in policies.items():
        for each in push.values():
            by = _published(policy, actions, each, types)
            if by is None:
                continue
            for other in feeding.policies(each):
                if by or not feeding.excludes(each, other, name):
                    found[name].setdefault(
                        other, f"the event `{by}` that it publishes brings" if by else "its own situations bring"
                    )
    return found


def feeding_graph(
    policies: Mapping[str, Policy],
    publishes: Mapping[str, frozenset[str]],
    ontology: Ontology,
    push: Mapping[str, Push],
    types: Types,
) -> tuple[Mapping[str, frozenset[str]], frozenset[str]]:
    """By policy: those whose events it reads, by the types that each publishes. And the policies that are in a circle.

    Those of a circle do not count as feeding each other: none of them could decide anything before the others.
    """
    waits = {name: tuple(_waits(policy, absent=True)) for name, policy in policies.items()}
    reading = _Feeding(policies, ontology, waits)
    edges: dict[str, set[str]] = {name: set() for name in policies}
    for each in push.values():
        readers = reading.policies(each)
        if not readers:
            continue
        declared = types.event(each.event)
        taken = {each.event, *(str(below) for below in types.subtypes(declared))} if declared is not None else set()
        for name, published in publishes.items():
            by = taken & published
            if by:
                only_situations = all(type.startswith(SITUATION) for type in by)
                edges[name] |= {
                    other for other in readers if not (only_situations and reading.excludes(each, other, name))
                }
    apart: dict[str, frozenset[str]] = {name: frozenset(group) for group in _circles(edges) for name in group}
    apart |= {name: frozenset([name]) for name, to in edges.items() if name in to and name not in apart}
    fed: dict[str, set[str]] = {name: set() for name in policies}
    for name, to in edges.items():
        for other in to:
            if name not in apart.get(other, ()):
                fed[other].add(name)
    return {name: frozenset(feeders) for name, feeders in fed.items()}, frozenset(apart)


class ChainDelay(msgspec.Struct, frozen=True, kw_only=True):
    """How long a policy that reads what others publish waits: for its own sources, and in all. In microseconds."""

    fed: tuple[str, ...]
    own: int
    total: int
    steps: int
    """How many policies decide one after the other before it."""

    def problem(self, policy: Policy) -> Problem:
        """What is said of it when policies are checked."""
        return WAITS_FOR_POLICIES(
            policy.location,
            policy=policy.name,
            feeders=", ".join(f"`{name}`" for name in self.fed),
            total=duration_text(self.total),
            own=duration_text(self.own),
            steps="one step" if self.steps == 1 else f"{self.steps} steps",
        )


def chain_delays(
    policies: Mapping[str, Policy],
    publishes: Mapping[str, frozenset[str]],
    ontology: Ontology,
    push: Mapping[str, Push],
    types: Types,
    lateness: timedelta,
) -> dict[str, ChainDelay]:
    """Of policies that read what others publish. ``lateness`` is that of sources and policies which say nothing."""
    fed, _ = feeding_graph(policies, publishes, ontology, push, types)
    reading = _Feeding(policies, ontology, {name: tuple(_waits(each, absent=True)) for name, each in policies.items()})
    published = frozenset[str]().union(*publishes.values())
    own = dict.fromkeys(policies, 0)
    for each in push.values():
        if each.event not in published and not each.event.startswith(SITUATION):
            granted = (lateness if each.lateness is None else each.lateness) // timedelta(microseconds=1)
            for name in reading.policies(each):
                own[name] = max(own[name], policies[name].lateness if policies[name].lateness >= 0 else granted)
    found: dict[str, ChainDelay] = {}
    for name in TopologicalSorter(fed).static_order():  # there are no circles in it
        below = [found[feeder] for feeder in fed[name]]
        found[name] = ChainDelay(
            fed=tuple(sorted(fed[name])),
            own=own[name],
            total=max([own[name], *(each.total for each in below)]),
            steps=max((each.steps + 1 for each in below), default=0),
        )
    return {name: found[name] for name, feeders in fed.items() if feeders}


def trigger_cycles(
    policies: Mapping[str, Policy], actions: DeclaredActions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Iterator[Problem]:
    """What is wrong with who triggers whom."""
    edges = trigger_graph(policies, actions, ontology, push, types)
    ending = {name for name, policy in policies.items() if _ends_itself(policy, actions)}
    for name, policy in policies.items():
        if name in edges[name] and name not in ending:
            remedy = "Let it publish a type that it does not observe, or let it suspend itself."
            how = f"{edges[name][name]} what it waits for"
            yield TRIGGERS_ITSELF(_place(policy), policy=name, how=how, remedy=remedy)
    lasting = {name: [each for each in to if each not in ending] for name, to in edges.items() if name not in ending}
    for circle in _circles(lasting):
        shown = ", ".join(f"`{name}`" for name in circle)
        yield TRIGGER_EACH_OTHER(_place(policies[circle[0]]), policies=shown)


class _Feeding:
    """Which policies wait for what a push source brings."""

    def __init__(
        self, policies: Mapping[str, Policy], ontology: Ontology, waits: Mapping[str, tuple[_Wait, ...]]
    ) -> None:
        self._policies, self._ontology = policies, ontology
        self._by: dict[tuple[str, str], dict[str, list[_Wait]]] = {}
        for name, each in waits.items():
            for wait in each:
                for concept in self._members(name, wait):
                    self._by.setdefault((concept, wait.side.event), {}).setdefault(name, []).append(wait)

    def _members(self, policy: str, wait: _Wait) -> tuple[str, ...]:
        concept = self._policies[policy].alias(wait.side.alias).concept
        declared = self._ontology.concepts.get(concept)
        return (declared.members or (concept,)) if declared is not None else (concept,)

    def policies(self, push: Push) -> Iterable[str]:
        return self._by.get((push.concept, push.attribute), {})

    def excludes(self, push: Push, policy: str, name: str) -> bool:
        """Whether the policy asks for the situations of other policies than the one of this name."""
        if push.value != _POLICY:
            return False
        waits = self._by[push.concept, push.attribute][policy]
        return all(_excludes(wait, push.attribute, name) for wait in waits)


def _excludes(wait: _Wait, attribute: str, name: str) -> bool:
    test = wait.relation.test
    reads = [
        node
        for node in walk(test)
        if isinstance(node, Read) and (node.variable, node.path) == (wait.variable, (attribute,))
    ]
    if not reads:
        return False
    asked: tuple[Node, ...] = tuple(test.args) if isinstance(test, And) else (test,)
    return is_impossible(And((*asked, Compare("=", reads[0], Literal(name, STRING)))))


def _waits(policy: Policy, *, absent: bool = False) -> Iterator[_Wait]:
    """What it waits for; with what must be ``absent``, if that is asked for."""
    for part in signed_relations(policy):
        if part.negated and not absent:
            continue
        for variable, side in zip((LEFT, RIGHT), part.relation.sides, strict=False):
            if side.event:
                yield _Wait(relation=part.relation, variable=variable, side=side)


def _published(policy: Policy, actions: DeclaredActions, push: Push, types: Types) -> str | None:
    """The type of an event of the policy that the push source takes, empty for its situations; None if it has none."""
    if push.event == SITUATION or push.event.startswith(f"{SITUATION}."):
        return ""
    taken = types.event(push.event)
    for step in action_steps(policy, actions):
        if isinstance(step, PublishStep) and taken is not None:
            made = types.event(step.type)
            if made is not None and is_subtype(made, taken):
                return step.type
    return None


def action_steps(policy: Policy, actions: DeclaredActions) -> Iterator[ActionStep]:
    """Everything that the actions of a policy come to."""
    for action in policy.actions:
        yield from steps_of(action, actions)


def _ends_itself(policy: Policy, actions: DeclaredActions) -> bool:
    return any(
        isinstance(step, DeletePolicyStep | SuspendPolicyStep) and str(step.policy) in (policy.name, "{policy}")
        for step in action_steps(policy, actions)
    )


def _place(policy: Policy) -> Location | None:
    return next((action.location for action in policy.actions if action.location is not None), policy.location)


def _circles(edges: Mapping[str, Iterable[str]]) -> Iterator[tuple[str, ...]]:
    """Groups of two or more that can all reach each other, in order. Tarjan's way, without recursion."""
    order: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    waiting: set[str] = set()
    """What is on the stack."""
    found: list[tuple[str, ...]] = []
    for root in sorted(edges):
        if root in order:
            continue
        work = [(root, iter(sorted(edges[root])))]
        order[root] = lowest[root] = len(order)
        stack.append(root)
        waiting.add(root)
        while work:
            node, below = work[-1]
            for each in below:
                if each not in order:
                    order[each] = lowest[each] = len(order)
                    stack.append(each)
                    waiting.add(each)
                    work.append((each, iter(sorted(edges.get(each, ())))))
                    break
                if each in waiting:
                    lowest[node] = min(lowest[node], order[each])
            else:
                work.pop()
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[node])
                if lowest[node] == order[node]:
                    group = stack[stack.index(node) :]
                    del stack[-len(group) :]
                    waiting.difference_update(group)
                    if len(group) > 1:
                        found.append(tuple(sorted(group)))
    yield from sorted(found)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All checks together. One policy can be right by itself and wrong beside another. This is said when policies are
# checked; engines do not use it.

ALIKE = 0.5
"""How much of what two policies speak of they must share to be called similar."""
_MOST_LISTED = 20
_MOST_NAMED = 3
_VALUE = re.compile(r"'(?:[^']|'')*'|\b[0-9][0-9.]*")


def check_interactions(
    policies: Mapping[str, Policy], actions: DeclaredActions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Iterator[Problem]:
    """All that is to be said about these policies together. Their actions are resolved."""
    yield from trigger_cycles(policies, actions, ontology, push, types)
    yield from opposed_actions(policies, actions, ontology)
    yield from _without_policy(policies, actions)
    yield from _similar(policies)


# ── policies that are not there ───────────────────────────────────────────────────────────────────


def _without_policy(policies: Mapping[str, Policy], actions: DeclaredActions) -> Iterator[Problem]:
    for policy in policies.values():
        for action in policy.actions:
            for step in steps_of(action, actions):
                if not isinstance(step, DeletePolicyStep | SuspendPolicyStep) or step.policy.references:
                    continue
                name = str(step.policy)
                if name not in policies:
                    verb = "delete" if isinstance(step, DeletePolicyStep) else "suspend"
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
        rated = sorted((-similarity(about, spoken[other]), other) for other in candidates)
        close = tuple(other for rating, other in rated if -rating >= ALIKE)[:_MOST_NAMED]
        for feature in about:
            by.setdefault(feature, []).append(name)
        if close:
            listed += 1
            yield SIMILAR_POLICIES(policies[name].location, policy=name, others=close)


def similarity(one: frozenset[str], other: frozenset[str]) -> float:
    """The share of what either speaks of that both do."""
    return len(one & other) / len(one | other) if one or other else 0.0


def _speaks_of(policy: Policy) -> frozenset[str]:
    """Concepts and relations between them, each with its values and without: whatever the aliases are called."""
    concepts = {alias.name: f"{alias.concept} ({alias.text})" for alias in policy.aliases}
    names = re.compile(r"\b(?:" + "|".join(map(re.escape, concepts)) + r")\b")
    relations = [names.sub(lambda found: concepts[found[0]], each.text) for each in relations_of(policy)]
    said = (*concepts.values(), *relations)
    return frozenset((*said, *(_VALUE.sub("…", each) for each in said)))
