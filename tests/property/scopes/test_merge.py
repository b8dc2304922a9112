"""Scope documents put together: what one side changed is there, what both did is never decided in silence."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from situ.scopes.change import ScopeChangeEnvironment, change
from situ.scopes.diff import diff_scopes, merge_scopes
from situ.scopes.graph import Grant, ScopeGraph
from situ.scopes.json_form import scopes_as_json
from situ.scopes.operations import GrantRights, JoinScope, LeaveScope, Operation, PutScope, SetFilter, SetMode
from situ.scopes.rights import Principal
from tests.unit.scopes.test_load_scopes import FILTERS, PLANT, load
from tests.volume import examples

GRAPH = load(PLANT)[0]
ROOT = Principal(name="root", operator=True)
KNOWN = ScopeChangeEnvironment(filters=FILTERS)
SCOPES = sorted(GRAPH.dimensions["membership"].scopes)


def operations(chance: random.Random) -> Operation:
    scope, other = chance.choice(SCOPES), chance.choice(SCOPES)
    member = chance.choice(["press-7", "acme-remote", "desk", scope])
    return chance.choice(
        [
            JoinScope(member=member, scope=other, dimension="membership"),
            LeaveScope(member=member, scope=other, dimension="membership"),
            SetFilter(dimension="membership", scope=scope, side="output", text=chance.choice([None, "severity > 2"])),
            PutScope(dimension="membership", scope=f"new-{chance.randint(1, 3)}", containers=(other,)),
            SetMode(dimension="geography", closed=chance.random() < 0.5),
            GrantRights(grant=Grant(to="desk", dimension="membership", may=("observe",))),
        ]
    )


def changed(graph: ScopeGraph, chance: random.Random) -> ScopeGraph:
    for _ in range(chance.randint(0, 4)):
        graph = change(graph, operations(chance), ROOT, KNOWN, epoch=1, current=1).graph
    return graph


def whats(one: ScopeGraph, other: ScopeGraph) -> set[tuple[str, ...]]:
    return {each.what for each in diff_scopes(one, other).changes}


@examples(75, 10_000)
@given(st.integers(0, 10**9))
def test_each_side_has_what_it_changed(seed: int) -> None:
    chance = random.Random(seed)
    ours, theirs = changed(GRAPH, chance), changed(GRAPH, chance)
    assert merge_scopes(GRAPH, ours, GRAPH).graph == ours
    assert merge_scopes(GRAPH, GRAPH, theirs).graph == theirs
    assert merge_scopes(GRAPH, ours, ours) == merge_scopes(ours, ours, ours)
    merged = merge_scopes(GRAPH, ours, theirs)
    assert scopes_as_json(merged.graph) == scopes_as_json(merge_scopes(GRAPH, theirs, ours).graph) or merged.conflicts
    if not merged.conflicts:
        mine, yours = whats(GRAPH, ours), whats(GRAPH, theirs)
        assert whats(ours, merged.graph) <= whats(ours, theirs), "nothing that neither says"
        assert {what for what in mine if what[-1] != "carriers"} <= whats(GRAPH, merged.graph) | yours
