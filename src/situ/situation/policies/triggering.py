"""Which policies can trigger which: through the events their actions publish, and through their situations.

A policy can trigger another if something it publishes is of a type that a push source takes, and that push source
feeds what the other waits for. One that can trigger itself without end is refused; several that can trigger each other
in a circle are warned of.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from situ.catalogue import TRIGGER_EACH_OTHER, TRIGGERS_ITSELF
from situ.errors import Location, Problem
from situ.expr.tree import And, Compare, Literal, Node, Read, walk
from situ.situation.actions.action import Actions, DeletePolicy, Publish, Step, SuspendPolicy
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.ontology import Ontology
from situ.situation.policies.impossible import is_impossible
from situ.situation.policies.leaves import signed_relations
from situ.situation.policies.policy import LEFT, RIGHT, Policy, Relation, Side
from situ.sources.model import Push
from situ.types.model import STRING, is_subtype
from situ.types.table import Types

SITUATION = "situ.situation"
_POLICY = ("policy",)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wait:
    """What a policy waits for: an attribute of an alias in a relation that it wants to hold."""

    relation: Relation
    variable: str
    side: Side


def triggering(
    policies: Mapping[str, Policy], actions: Actions, ontology: Ontology, push: Mapping[str, Push], types: Types
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


def circles(
    policies: Mapping[str, Policy], actions: Actions, ontology: Ontology, push: Mapping[str, Push], types: Types
) -> Iterator[Problem]:
    """What is wrong with who triggers whom."""
    edges = triggering(policies, actions, ontology, push, types)
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


def _waits(policy: Policy) -> Iterator[_Wait]:
    for part in signed_relations(policy):
        if part.negated:
            continue
        for variable, side in zip((LEFT, RIGHT), part.relation.sides, strict=False):
            if side.event:
                yield _Wait(relation=part.relation, variable=variable, side=side)


def _published(policy: Policy, actions: Actions, push: Push, types: Types) -> str | None:
    """The type of an event of the policy that the push source takes, empty for its situations; None if it has none."""
    if push.event == SITUATION or push.event.startswith(f"{SITUATION}."):
        return ""
    taken = types.event(push.event)
    for step in all_steps(policy, actions):
        if isinstance(step, Publish) and taken is not None:
            made = types.event(step.type)
            if made is not None and is_subtype(made, taken):
                return step.type
    return None


def all_steps(policy: Policy, actions: Actions) -> Iterator[Step]:
    """Everything that the actions of a policy come to."""
    for action in policy.actions:
        yield from steps_of(action, actions)


def _ends_itself(policy: Policy, actions: Actions) -> bool:
    return any(
        isinstance(step, DeletePolicy | SuspendPolicy) and str(step.policy) in (policy.name, "{policy}")
        for step in all_steps(policy, actions)
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
