"""Which policies can trigger which: through the events their actions publish, and through their situations.

A policy can trigger another if something it publishes is of a type that a push source takes, and that push source
feeds what the other waits for. One that can trigger itself without end is refused; several that can trigger each other
in a circle are warned of. It *feeds* another if that one reads it at all, be it to see that something is absent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from situ.catalogue import TRIGGER_EACH_OTHER, TRIGGERS_ITSELF, WAITS_FOR_POLICIES
from situ.errors import Location, Problem
from situ.expr.tree import And, Compare, Literal, Node, Read, walk
from situ.situation.actions.action import Actions, DeletePolicy, Publish, Step, SuspendPolicy
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.ontology import Ontology
from situ.situation.policies.impossible import is_impossible
from situ.situation.policies.leaves import signed_relations
from situ.situation.policies.policy import LEFT, RIGHT, Policy, Relation, Side
from situ.situation.policies.wording import duration_text
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


def feeding(
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Delay:
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


def delays(
    policies: Mapping[str, Policy],
    publishes: Mapping[str, frozenset[str]],
    ontology: Ontology,
    push: Mapping[str, Push],
    types: Types,
    lateness: timedelta,
) -> dict[str, Delay]:
    """Of policies that read what others publish. ``lateness`` is that of sources and policies which say nothing."""
    fed, _ = feeding(policies, publishes, ontology, push, types)
    reading = _Feeding(policies, ontology, {name: tuple(_waits(each, absent=True)) for name, each in policies.items()})
    published = frozenset[str]().union(*publishes.values())
    own = dict.fromkeys(policies, 0)
    for each in push.values():
        if each.event not in published and not each.event.startswith(SITUATION):
            granted = (lateness if each.lateness is None else each.lateness) // timedelta(microseconds=1)
            for name in reading.policies(each):
                own[name] = max(own[name], policies[name].lateness if policies[name].lateness >= 0 else granted)
    found: dict[str, Delay] = {}
    left = dict(fed)
    while left:  # there are no circles in it
        for name in [name for name, feeders in left.items() if not feeders & left.keys()]:
            below = [found[feeder] for feeder in left.pop(name)]
            found[name] = Delay(
                fed=tuple(sorted(fed[name])),
                own=own[name],
                total=max([own[name], *(each.total for each in below)]),
                steps=max((each.steps + 1 for each in below), default=0),
            )
    return {name: each for name, each in found.items() if each.fed}


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


def _waits(policy: Policy, *, absent: bool = False) -> Iterator[_Wait]:
    """What it waits for; with what must be ``absent``, if that is asked for."""
    for part in signed_relations(policy):
        if part.negated and not absent:
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
