"""Generated scope graphs: read back as they were written, sound after every change, narrowed only where it is said."""

from __future__ import annotations

import json
import random

from situ.lang.documents import parse_json
from situ.lang.problems import Problems
from situ.scopes.change import ScopeChangeEnvironment, change
from situ.scopes.diff import diff_scopes
from situ.scopes.graph import Grant, ScopeGraph
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.load_scopes import check_graph, load_scopes
from situ.scopes.operations import (
    DropScope,
    GrantRights,
    JoinScope,
    LeaveScope,
    Operation,
    PutScope,
    RevokeRights,
    SetCarriers,
    SetFilter,
    SetLink,
    SetMode,
)
from situ.scopes.rights import Principal
from tests.oracles.visibility import visible
from tests.scopes import FILTERS, TEXTS, make_event, make_graph, make_tags
from tests.volume import cases

KNOWN = ScopeChangeEnvironment(filters=FILTERS)


def make_operation(dice: random.Random, graph: ScopeGraph) -> Operation:
    dimension = graph.dimensions[dice.choice(list(graph.dimensions))]
    scopes = [*dimension.scopes, "nowhere"]
    one, other = dice.choice(scopes), dice.choice(scopes)
    text = dice.choice((None, *TEXTS))
    zones = dice.choice((None, None, ("a",), ("a", "b")))
    grant = Grant(to=dice.choice("xy"), dimension=dimension.name, may=("admin",), scopes=dice.choice(((), (one,))))
    name = dimension.name
    return dice.choice(
        (
            JoinScope(member=dice.choice((one, "c1", "c2")), scope=other, dimension=name),
            LeaveScope(member=dice.choice((one, "c1", "c2")), scope=other, dimension=name),
            PutScope(dimension=name, scope=dice.choice((one, f"{name}new")), containers=(other,), output=text),
            DropScope(dimension=name, scope=one),
            SetFilter(dimension=name, scope=one, side=dice.choice(("output", "input")), text=text),
            SetLink(dimension=name, member=one, scope=other, up=text),
            SetCarriers(dimension=name, scope=one, carriers=zones),
            SetMode(dimension=name, closed=dice.random() < 0.5),
            GrantRights(grant=grant),
            RevokeRights(grant=grant),
        )
    )


def test_written_and_read_again() -> None:
    for seed in range(150):
        graph = make_graph(random.Random(seed))
        written = scopes_as_json(graph)
        assert scopes_from_json(json.loads(json.dumps(written))) == graph
        problems = Problems()
        document = parse_json(json.dumps(written), "scopes.json")
        assert load_scopes([document], FILTERS, problems) == graph, seed
        assert not problems.errors


@cases(30, 120)
def test_changes_are_sound_and_done_twice_are_nothing(cases: int) -> None:
    done = 0
    for seed in range(cases):
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=2)
        for epoch in range(25):
            by = Principal(name=dice.choice("xyz"), operator=dice.random() < 0.6)
            operation = make_operation(dice, graph)
            changed = change(graph, operation, by, KNOWN, epoch=epoch, current=epoch)
            assert changed.refused <= (changed.graph is graph)
            assert not diff_scopes(graph, changed.graph).changes or changed.graph is not graph
            problems = Problems()
            assert check_graph(changed.graph, problems) == changed.graph, (seed, operation)
            assert list(problems) == []
            if not changed.refused:
                again = change(changed.graph, operation, Principal(name="", operator=True), KNOWN, epoch=0, current=0)
                assert again.graph is changed.graph, (seed, operation)
                done += changed.graph is not graph
            assert scopes_from_json(scopes_as_json(changed.graph)) == changed.graph
            graph = changed.graph
    assert done > 4 * cases


@cases(50, 200)
def test_what_does_not_narrow_hides_nothing(cases: int) -> None:
    """And where nothing is different nothing is seen otherwise; a good part of both is looked at."""
    looked_at = hidden = 0
    for seed in range(cases):
        dice = random.Random(seed)
        graph = make_graph(dice, most_dimensions=2, most_scopes=6)
        pairs = [(make_tags(dice, graph), make_tags(dice, graph), make_event(dice)) for _ in range(12)]
        for _ in range(10):
            operation = make_operation(dice, graph)
            after = change(graph, operation, Principal(name="", operator=True), KNOWN, epoch=0, current=0).graph
            lost = any(
                visible(graph, event, ad, sub) and not visible(after, event, ad, sub) for ad, sub, event in pairs
            )
            narrows = diff_scopes(graph, after).narrows
            assert narrows or not lost, (seed, operation)
            looked_at += not narrows and after is not graph
            hidden += lost
            graph = after
    assert looked_at > cases
    assert hidden > cases / 10
