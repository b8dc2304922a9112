"""The logic tree: which nodes stand where, what each is, and that it never grows higher than five."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from situ.policies.logic_tree import MEANINGS, Component, LogicEdge, LogicNode, logic_tree, walk
from tests import domains
from tests.domains import UNACCOMPANIED_GUEST, conditions

BUILDING = domains.building()
_BELOW = {
    Component.AND: {Component.OR, Component.FOLLOWED_BY, Component.QUERY, Component.CORRELATION, Component.CONSTRAINT},
    Component.OR: {Component.FOLLOWED_BY, Component.QUERY, Component.CORRELATION, Component.CONSTRAINT},
    Component.FOLLOWED_BY: {Component.QUERY, Component.CORRELATION},
    Component.QUERY: {Component.LEAF},
    Component.CORRELATION: {Component.LEAF},
    Component.CONSTRAINT: {Component.LEAF},
    Component.LEAF: set(),
}


def tree(text: str) -> LogicNode:
    return logic_tree(domains.policy(text, BUILDING))


def outline(node: LogicNode, depth: int = 0) -> list[str]:
    named = [f"{each.attribute} ({'event' if each.event_based else 'query'})" for each in node.edges]
    edges = f" by {', '.join(named)}" if named else ""
    return [f"{'  ' * depth}{node.component}: {node.text}{edges}", *(
        line for each in node.below for line in outline(each, depth + 1)
    )]  # fmt: skip


def test_the_tree_of_the_security_policy() -> None:
    guest, employee = "person A (status = 'guest')", "person B (status = 'employee')"
    room, position = "room R (security = 'restricted') by area (query)", "position (event)"
    assert outline(tree(UNACCOMPANIED_GUEST)) == [
        "and: unaccompanied-guest",
        "  query: A is inside R",
        f"    leaf: {guest} by {position}",
        f"    leaf: {room}",
        "  or: one of",
        "    correlation: A is not within 5 m of B",
        f"      leaf: {guest} by {position}",
        f"      leaf: {employee} by {position}",
        "    query: B is not inside R",
        f"      leaf: {employee} by {position}",
        f"      leaf: {room}",
    ]


def test_sequences_stand_above_relations() -> None:
    root = tree(conditions("A is inside R followed-by within 1 min B is inside R", "A.status = 'guest'"))
    sequence, constraint = root.below
    assert (sequence.component, sequence.window) == (Component.FOLLOWED_BY, 60_000_000)
    assert [each.component for each in sequence.below] == [Component.QUERY, Component.QUERY]
    assert constraint.component is Component.CONSTRAINT
    assert constraint.below[0].edges == (LogicEdge("status", False),)


def test_every_component_has_a_meaning() -> None:
    assert set(MEANINGS) == set(Component)


_RELATIONS = st.sampled_from(
    ["A is inside R", "A is not inside R", "B is inside R", "A is within 5 m of B", "B is not within 2 m of A"]
)


def _joined(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    words = st.sampled_from([" and ", " or ", " followed-by "])
    return st.builds(lambda first, word, second: f"({first}{word}{second})", inner, words, inner)


def height(node: LogicNode) -> int:
    return 1 + max(map(height, node.below), default=0)


@given(st.recursive(_RELATIONS, _joined, max_leaves=6))
def test_no_tree_is_higher_than_five(condition: str) -> None:
    found, _ = domains.checked(conditions(condition), BUILDING)
    if found is None:
        return  # a contradiction, or nothing that happens
    root = logic_tree(found)
    assert height(root) <= 5
    for node in walk(root):
        assert {each.component for each in node.below} <= _BELOW[node.component]
