"""What there is to know about a policy: its text, its normal form, its logic tree, and how it is detected.

Decides and lays nothing out: :mod:`situ.cli.render.policy` does that, and :mod:`situ.cli.render.policy` draws the tree.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from situ.lang.catalogue import UNKNOWN_POLICY
from situ.lang.expr.format import print_expression
from situ.lang.problems import Problems, SituError, nearest
from situ.model import Deployment
from situ.policies.check.policy import check_policy
from situ.policies.language.parse import parse_policy
from situ.policies.load import name_of
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
from situ.policies.plan import Leaf, LeafPlan, PolicyPlan, leaves_of, plan_policy, relations_of


@dataclass(frozen=True, slots=True, kw_only=True)
class LeafExplanation:
    """One leaf of the plan: which events, as which aliases, meeting what; and which other policies use it, too."""

    plan: LeafPlan
    aliases: tuple[str, ...]
    constraint: str
    joined: str
    """What its events are joined with, where they are."""
    partition: str
    """The alias by which its rows are divided; empty: they go to every partition."""
    shared: tuple[str, ...]

    @property
    def events(self) -> str:
        return f"{self.plan.leaf.concept}.{self.plan.leaf.attribute}"

    def as_json(self) -> dict[str, Any]:
        test = self.plan.leaf.test
        return {
            "events": self.events,
            "aliases": list(self.aliases),
            "constraint": self.constraint or None,
            "joined": self.joined or None,
            "test": None if test is None else print_expression(test),
            "partition": self.partition or None,
            "kept": duration_text(self.plan.kept),
            "shared": list(self.shared),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyExplanation:
    policy: Policy
    tree: LogicNode
    plan: PolicyPlan
    leaves: tuple[LeafExplanation, ...]

    @property
    def clauses(self) -> tuple[tuple[str, ...], ...]:
        """The normal form: the texts of the literals of each clause."""
        window = self.policy.window
        return tuple(tuple(literal_text(each, window) for each in clause) for clause in self.policy.clauses)

    @property
    def choices(self) -> tuple[str, ...]:
        """Every ``or`` that the clauses do not show as it is written: a match chooses one of its branches."""
        parts = (part for part in self.policy.conditions if isinstance(part, Disjunction))
        return tuple(
            part_text(each, self.policy.window) for each in parts if any(len(way) > 1 for way in each.branches)
        )

    @property
    def components(self) -> tuple[tuple[Component, str], ...]:
        """What the kinds of component that this policy has do, from below."""
        there = {node.component for node in walk(self.tree)}
        return tuple((each, meaning) for each, meaning in MEANINGS.items() if each in there)

    @property
    def options(self) -> tuple[tuple[str, str], ...]:
        policy = self.policy
        lateness = duration_text(policy.lateness) if policy.lateness >= 0 else "that of its sources"
        return (
            ("window", duration_text(policy.window)),
            ("hold", duration_text(policy.hold)),
            ("lateness", lateness),
            ("consumption", policy.consumption.value),
            ("actions on", policy.when.value),
        )

    def as_json(self) -> dict[str, Any]:
        plan = self.plan
        return {
            "name": self.policy.name,
            "text": self.policy.text,
            "options": {name.replace(" ", "_"): value for name, value in self.options},
            "clauses": [list(each) for each in self.clauses],
            "choices": list(self.choices),
            "tree": _tree_as_json(self.tree),
            "plan": {
                "partition": plan.partition or None,
                "reason": plan.reason,
                "warning": plan.warning.as_json() if plan.warning is not None else None,
                "reported_after": duration_text(plan.wait),
                "leaves": [each.as_json() for each in self.leaves],
                "operators": [
                    {
                        "component": each.kind,
                        "text": each.text,
                        "runs": each.runs.value,
                        "window": duration_text(each.window) if each.window else None,
                    }
                    for each in plan.operators
                ],
            },
        }


def find_policy(name: str, deployment: Deployment) -> Policy:
    """The policy of that name; :class:`SituError` if there is none, or why it is stopped."""
    found = deployment.policies.get(name)
    if found is not None:
        return found
    if name in deployment.stopped:
        raise SituError(*deployment.stopped[name].reasons)
    raise SituError(UNKNOWN_POLICY(name=name, nearest=nearest(name, (*deployment.policies, *deployment.stopped))))


def read_policy(data: bytes, file: str, deployment: Deployment) -> Policy:
    """The policy that stands in a file; :class:`SituError` with all that is wrong with it."""
    problems = Problems()
    written = parse_policy(data, file)
    policy = check_policy(written, deployment.domain, problems, name=name_of(written, file))
    if policy is None:
        raise SituError(*problems.sorted())
    return policy


def explain_policy(policy: Policy, ontology: Ontology, others: Iterable[Policy] = ()) -> PolicyExplanation:
    """Explain a policy. ``others`` run beside it, and may share leaves."""
    plan = plan_policy(policy, ontology)
    beside = [(each.name, _leaves(each)) for each in others if each.name != policy.name]
    return PolicyExplanation(
        policy=policy,
        tree=logic_tree(policy),
        plan=plan,
        leaves=tuple(_leaf(plan, place, beside) for place in range(len(plan.leaves))),
    )


def _leaf(plan: PolicyPlan, place: int, beside: Iterable[tuple[str, frozenset[Leaf]]]) -> LeafExplanation:
    policy, each = plan.policy, plan.leaves[place]
    uses = [use for relation in plan.relations for use in relation.uses if use.leaf == place]
    first = uses[0]
    other = policy.alias(first.other) if first.other else None
    return LeafExplanation(
        plan=each,
        aliases=tuple(dict.fromkeys(use.observed for use in uses)),
        constraint=policy.alias(first.observed).text,
        joined="" if other is None else f"{other.concept} ({other.text})" if other.text else other.concept,
        partition=plan.partition if each.column else "",
        shared=tuple(name for name, leaves in beside if each.leaf in leaves),
    )


def _leaves(policy: Policy) -> frozenset[Leaf]:
    return frozenset(leaf for relation in relations_of(policy) for leaf in leaves_of(policy, relation))


def _tree_as_json(node: LogicNode) -> dict[str, Any]:
    result: dict[str, Any] = {"component": node.component.value, "text": node.text}
    if node.negated:
        result["negated"] = True
    if node.window:
        result["window"] = duration_text(node.window)
    if node.edges:
        result["attributes"] = {each.attribute: "event" if each.event_based else "query" for each in node.edges}
    if node.below:
        result["below"] = [_tree_as_json(each) for each in node.below]
    return result
