"""What there is to know about a policy: its text, its normal form, its logic tree, and how it is detected.

Decides and lays nothing out: :mod:`situ.cli.render.policy` does that, and draws the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from situ.lang.catalogue import UNKNOWN_POLICY
from situ.lang.expr.format import print_expression
from situ.lang.json_form import TEXT_ONLY, Explanation
from situ.lang.problems import Problem, SituError, nearest
from situ.model import Deployment
from situ.policies.logic_tree import (
    MEANINGS,
    Component,
    LogicNode,
    duration_text,
    literal_text,
    logic_tree,
    part_text,
    walk,
)
from situ.policies.model import Disjunction, Policy
from situ.policies.ontology.model import Ontology
from situ.policies.plan import Leaf, OperatorMode, PolicyPlan, leaves_of, plan_policy, relations_of


class PolicyOptions(Explanation, frozen=True, kw_only=True):
    """The options of a policy, with what holds where it says nothing."""

    window: str
    hold: str
    lateness: str
    consumption: str
    actions_on: str


class TreeNode(Explanation, frozen=True, kw_only=True, omit_defaults=True):
    """A node of the logic tree, with what is below it."""

    component: Component
    text: str
    negated: bool = False
    window: str = ""
    """Of pairs and sequences, and of the policy."""
    attributes: dict[str, Literal["event", "query"]] | msgspec.UnsetType = msgspec.UNSET
    """Of a leaf: the attributes that the relation above uses, and whether events or tables bring them."""
    below: tuple[TreeNode, ...] = ()

    @property
    def edges(self) -> tuple[str, ...]:
        """The attributes, each with who brings it."""
        return tuple(f"{name} ({by})" for name, by in self.attributes.items()) if self.attributes else ()


class LeafExplanation(Explanation, frozen=True, kw_only=True):
    """One leaf of the plan: which events, as which aliases, meeting what."""

    events: str
    aliases: tuple[str, ...]
    constraint: str | None
    joined: str | None
    """What its events are joined with, where they are."""
    test: str | None
    """What is asked of its events before anything else."""
    partition: str | None
    """The alias by which its rows are divided; null: they go to every partition."""
    kept: str
    """For how long its rows are kept."""
    shared: tuple[str, ...]
    """Which other policies use it, too."""


class OperatorExplanation(Explanation, frozen=True, kw_only=True):
    """A node of the logic tree as it is run."""

    component: str
    text: str
    runs: OperatorMode
    window: str | None


class PlanExplanation(Explanation, frozen=True, kw_only=True):
    """How a policy is detected."""

    partition: str | None
    """The alias by which the work is divided; null: it is not."""
    reason: str
    """Why so."""
    warning: Problem | None
    reported_after: str
    """How long after the last of its events a detection is told, at most."""
    leaves: tuple[LeafExplanation, ...]
    operators: tuple[OperatorExplanation, ...]
    waits: Annotated[bool, TEXT_ONLY]
    """Whether a detection is told later than the last of its events: where something must stay absent."""


class PolicyExplanation(Explanation, frozen=True, kw_only=True):
    """A policy: its text, its normal form, its logic tree, and the plan by which it is detected."""

    name: str
    text: str
    options: PolicyOptions
    clauses: tuple[tuple[str, ...], ...]
    """The normal form: the texts of the literals of each clause."""
    choices: tuple[str, ...]
    """Every `or` that the clauses do not show as it is written: a match chooses one of its branches."""
    tree: TreeNode
    plan: PlanExplanation
    components: Annotated[dict[str, str], TEXT_ONLY]
    """What the kinds of component that this policy has do, from below."""


def find_policy(name: str, deployment: Deployment) -> Policy:
    """The policy of that name; :class:`SituError` if there is none, or why it is stopped."""
    found = deployment.policies.get(name)
    if found is not None:
        return found
    if name in deployment.stopped:
        raise SituError(*deployment.stopped[name].reasons)
    raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, (*deployment.policies, *deployment.stopped))))


def explain_policy(policy: Policy, ontology: Ontology, others: Iterable[Policy] = ()) -> PolicyExplanation:
    """Explain a policy. ``others`` run beside it, and may share leaves."""
    plan, tree = plan_policy(policy, ontology), logic_tree(policy)
    beside = [(each.name, _leaves(each)) for each in others if each.name != policy.name]
    there = {node.component for node in walk(tree)}
    window = policy.window
    parts = (part for part in policy.conditions if isinstance(part, Disjunction))
    return PolicyExplanation(
        name=policy.name,
        text=policy.text,
        options=PolicyOptions(
            window=duration_text(window),
            hold=duration_text(policy.hold),
            lateness=duration_text(policy.lateness) if policy.lateness >= 0 else "that of its sources",
            consumption=policy.consumption.value,
            actions_on=policy.when.value,
        ),
        clauses=tuple(tuple(literal_text(each, window) for each in clause) for clause in policy.clauses),
        choices=tuple(part_text(each, window) for each in parts if any(len(way) > 1 for way in each.branches)),
        tree=_node(tree),
        plan=PlanExplanation(
            partition=plan.partition or None,
            reason=plan.reason,
            warning=plan.warning,
            reported_after=duration_text(plan.wait),
            leaves=tuple(_leaf(plan, place, beside) for place in range(len(plan.leaves))),
            operators=tuple(
                OperatorExplanation(
                    component=each.kind,
                    text=each.text,
                    runs=each.runs,
                    window=duration_text(each.window) if each.window else None,
                )
                for each in plan.operators
            ),
            waits=bool(plan.wait),
        ),
        components={each.value: meaning for each, meaning in MEANINGS.items() if each in there},
    )


def _node(node: LogicNode) -> TreeNode:
    attributes: dict[str, Literal["event", "query"]] = {
        each.attribute: "event" if each.event_based else "query" for each in node.edges
    }
    return TreeNode(
        component=node.component,
        text=node.text,
        negated=node.negated,
        window=duration_text(node.window) if node.window else "",
        attributes=attributes or msgspec.UNSET,
        below=tuple(_node(each) for each in node.below),
    )


def _leaf(plan: PolicyPlan, place: int, beside: Iterable[tuple[str, frozenset[Leaf]]]) -> LeafExplanation:
    policy, each = plan.policy, plan.leaves[place]
    uses = [use for relation in plan.relations for use in relation.uses if use.leaf == place]
    first = uses[0]
    other = policy.alias(first.other) if first.other else None
    joined = None if other is None else f"{other.concept} ({other.text})" if other.text else other.concept
    return LeafExplanation(
        events=f"{each.leaf.concept}.{each.leaf.attribute}",
        aliases=tuple(dict.fromkeys(use.observed for use in uses)),
        constraint=policy.alias(first.observed).text or None,
        joined=joined,
        test=None if each.leaf.test is None else print_expression(each.leaf.test),
        partition=(plan.partition or None) if each.column else None,
        kept=duration_text(each.kept),
        shared=tuple(name for name, leaves in beside if each.leaf in leaves),
    )


def _leaves(policy: Policy) -> frozenset[Leaf]:
    return frozenset(leaf for relation in relations_of(policy) for leaf in leaves_of(policy, relation))
