"""Changing scopes: what operations do and need, that doing one again is nothing, and what refusals do not tell."""

from __future__ import annotations

import pytest

from situ.lang.problems import render
from situ.scopes.change import ScopeChangeEnvironment, change
from situ.scopes.diff import diff_scopes
from situ.scopes.graph import BoundaryFilter, Grant, ScopeGraph, ScopeLink
from situ.scopes.json_form import scopes_as_json
from situ.scopes.operations import (
    ApplyScopes,
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
from tests.unit.scopes.test_load_scopes import FILTERS, PLANT, load

GRAPH = load(PLANT)[0]
KNOWN = ScopeChangeEnvironment(filters=FILTERS, clients=("desk",))
ROOT = Principal(name="root", operator=True)
SITE = Principal(name="site-admin")
STRANGER = Principal(name="stranger")
M = "membership"


def after(operation: Operation, by: Principal = ROOT, graph: ScopeGraph = GRAPH) -> ScopeGraph:
    changed = change(graph, operation, by, KNOWN, epoch=7, current=7)
    assert [render(each) for each in changed.problems if each.is_error] == []
    again = change(changed.graph, operation, ROOT, KNOWN, epoch=8, current=8)
    assert not again.refused
    assert again.graph is changed.graph, "done twice"
    return changed.graph


def refused(operation: Operation, by: Principal = ROOT, graph: ScopeGraph = GRAPH) -> list[str]:
    changed = change(graph, operation, by, KNOWN, epoch=7, current=7)
    assert changed.graph is graph
    return [each.code.code for each in changed.problems if each.is_error]


def join(member: str, scope: str, dimension: str = M) -> JoinScope:
    return JoinScope(member=member, scope=scope, dimension=dimension)


def leave(member: str, scope: str, dimension: str = M) -> LeaveScope:
    return LeaveScope(member=member, scope=scope, dimension=dimension)


def test_joining_and_leaving() -> None:
    joined = after(join("desk", "line-a"), SITE)
    assert joined.memberships("desk", M) == ("line-a",)
    assert after(leave("desk", "line-a"), SITE, joined) == GRAPH
    assert after(leave("desk", "line-a"), Principal(name="desk"), joined) == GRAPH
    lifted = after(join("supplier-acme", "operations"), SITE)
    assert lifted.dimensions[M].containers("supplier-acme") == ("maintenance", "operations")
    parted = after(leave("line-a", "maintenance"), SITE)
    assert parted.dimensions[M].scopes["line-a"].links == ()
    assert after(join("line-a", "operations"), SITE) is GRAPH
    assert after(leave("line-a", "group")) is GRAPH


def test_what_keeps_from_joining() -> None:
    assert refused(join("plant-lyon", "line-a")) == ["V004"]
    assert refused(join("line-a", "line-a")) == ["V004"]
    assert refused(join("line-a", "press-7")) == ["V005"]
    assert refused(join("desk", "any")) == ["V007"]
    assert refused(join("⊥", "group")) == ["V007"]
    assert refused(join("desk", "nowhere")) == ["V002"]
    assert refused(join("hall-2", "group")) == ["V002"]
    assert refused(join("desk", "group", "altitude")) == ["V001"]
    assert refused(join("front desk", "group")) == ["INT110"]
    problem = change(GRAPH, join("group", "line-a"), ROOT, KNOWN, epoch=1, current=1).problems[0]
    assert "group → line-a → maintenance → plant-lyon → group" in problem.message


def test_both_sides_must_agree_to_a_scope_in_a_scope() -> None:
    assert refused(join("plant-lyon", "group"), SITE) == ["V014"]
    assert refused(join("group", "plant-lyon"), SITE) == ["V014"]
    assert refused(join("desk", "line-a"), STRANGER) == ["V014"]
    assert refused(leave("press-7", "line-a"), STRANGER) == ["V014"]
    assert refused(leave("line-a", "operations"), STRANGER) == ["V014"]


@pytest.mark.parametrize(
    "of",
    [
        lambda scope: join("desk", scope),
        lambda scope: join("line-a", scope),
        lambda scope: leave("desk", scope),
        lambda scope: DropScope(dimension=M, scope=scope),
        lambda scope: SetFilter(dimension=M, scope=scope, side="input", text=None),
        lambda scope: SetCarriers(dimension=M, scope=scope, carriers=None),
        lambda scope: SetLink(dimension=M, member=scope, scope="line-a"),
        lambda scope: PutScope(dimension=M, scope="new", containers=(scope,)),
        lambda scope: GrantRights(grant=Grant(to="x", dimension=M, may=("admin",), scopes=(scope,))),
    ],
)
@pytest.mark.parametrize("by", [SITE, STRANGER])
def test_a_foreign_scope_and_one_that_is_not_there_read_alike(of: object, by: Principal) -> None:
    def refusal(scope: str) -> str:
        changed = change(GRAPH, of(scope), by, KNOWN, epoch=7, current=7)  # type: ignore[operator]
        assert changed.graph is GRAPH
        return "\n".join(map(render, changed.problems)).replace(scope, "it")

    assert "V014" in refusal("group")
    assert refusal("group") == refusal("nowhere")


def test_an_old_epoch_is_refused() -> None:
    changed = change(GRAPH, join("desk", "line-a"), ROOT, KNOWN, epoch=6, current=7)
    assert [each.code.code for each in changed.problems] == ["V015"]
    assert changed.graph is GRAPH
    both = change(GRAPH, join("desk", "nowhere"), ROOT, KNOWN, epoch=6, current=7)
    assert [each.code.code for each in both.problems] == ["V015", "V002"]


def test_putting_and_dropping_scopes() -> None:
    put = PutScope(
        dimension=M,
        scope="line-b",
        containers=("operations", "maintenance"),
        output="type   is Alarm",
        links={"operations": ("TRUE", None), "maintenance": (None, None)},
        carriers=("main",),
    )
    added = after(put, SITE)
    scope = added.dimensions[M].scopes["line-b"]
    assert scope.containers == ("maintenance", "operations")
    assert scope.output == BoundaryFilter(text="type IS Alarm")
    assert scope.links == (("operations", ScopeLink(up=BoundaryFilter(text="TRUE"))),)
    assert after(DropScope(dimension=M, scope="line-b"), SITE, added) == GRAPH
    assert after(PutScope(dimension=M, scope="other-group")).dimensions[M].containers("other-group") == ()
    assert refused(PutScope(dimension=M, scope="other-group"), SITE) == ["V014"]
    assert refused(PutScope(dimension=M, scope="group", containers=("line-a",))) == ["V004"]
    assert refused(PutScope(dimension=M, scope="hall-2")) == ["V003"]
    assert refused(PutScope(dimension=M, scope="desk")) == ["V003"]
    assert refused(PutScope(dimension=M, scope="any")) == ["V007"]
    assert refused(PutScope(dimension=M, scope="x", containers=("press-7",))) == ["V005"]
    assert refused(PutScope(dimension=M, scope="x", output="severty > 1", input="n", carriers=("Z",))) == [
        "INT110",
    ]
    assert refused(PutScope(dimension=M, scope="x", output="severty > 1", input="n")) == ["V008", "V010"]


def test_a_scope_with_members_is_not_dropped() -> None:
    assert refused(DropScope(dimension=M, scope="plant-lyon")) == ["V013"]
    assert refused(DropScope(dimension=M, scope="supplier-acme")) == ["V013"]
    gone = after(leave("acme-remote", "supplier-acme"))
    granted = after(
        GrantRights(grant=Grant(to="x", dimension=M, may=("admin",), scopes=("supplier-acme",))), ROOT, gone
    )
    dropped = after(DropScope(dimension=M, scope="supplier-acme"), ROOT, granted)
    assert "supplier-acme" not in dropped.dimensions[M].scopes
    assert not [each for each in dropped.grants if each.to == "x"], "never one on everything"


def test_filters_links_carriers_and_modes() -> None:
    closed = after(SetFilter(dimension=M, scope="line-a", side="input", text="type IS Alarm"), SITE)
    assert closed.dimensions[M].down("operations", "line-a") == (BoundaryFilter(text="type IS Alarm"),)
    assert after(SetFilter(dimension=M, scope="line-a", side="input", text=None), SITE, closed) == GRAPH
    assert refused(SetFilter(dimension=M, scope="line-a", side="output", text="rand() > 1")) == ["V009"]
    linked = after(SetLink(dimension=M, member="line-a", scope="operations", down="TRUE"), SITE)
    assert linked.dimensions[M].scopes["line-a"].link("operations") == ScopeLink(down=BoundaryFilter(text="TRUE"))
    assert after(SetLink(dimension=M, member="line-a", scope="operations"), SITE, linked) == GRAPH
    assert refused(SetLink(dimension=M, member="line-a", scope="group")) == ["V006"]
    carried = after(SetCarriers(dimension=M, scope="plant-lyon", carriers=("b", "a")), SITE)
    assert carried.dimensions[M].scopes["plant-lyon"].carriers == ("a", "b")
    assert refused(SetCarriers(dimension=M, scope="line-a", carriers=("c",)), SITE, carried) == ["V017", "V017"]
    opened = after(SetMode(dimension=M, closed=False))
    assert not opened.dimensions[M].closed
    assert refused(SetMode(dimension=M, closed=False), SITE) == ["V014"]


def test_granting_and_revoking() -> None:
    grant = Grant(to="desk", dimension=M, may=("observe", "admin"), scopes=("line-a",))
    granted = after(GrantRights(grant=grant), SITE)
    assert grant in granted.grants
    partly = after(
        RevokeRights(grant=Grant(to="desk", dimension=M, may=("observe",), scopes=("line-a",))), SITE, granted
    )
    assert Grant(to="desk", dimension=M, may=("admin",), scopes=("line-a",)) in partly.grants
    assert after(RevokeRights(grant=grant), SITE, granted) == GRAPH
    whole = Grant(to="desk", dimension=M, may=("admin",))
    assert refused(GrantRights(grant=whole), SITE) == ["V014"]
    assert after(join("desk", "group"), Principal(name="desk"), after(GrantRights(grant=whole))).memberships("desk", M)


def test_applying_a_whole_document() -> None:
    other = load(PLANT.replace("in: [operations, maintenance]", "in: [maintenance]"))[0]
    assert after(ApplyScopes(graph=other)) == other
    assert refused(ApplyScopes(graph=other), SITE) == ["V014"]
    whole = after(GrantRights(grant=Grant(to="site-admin", dimension=M, may=("admin",))))
    kept = after(GrantRights(grant=Grant(to="site-admin", dimension=M, may=("admin",))), graph=other)
    assert after(ApplyScopes(graph=kept), SITE, whole) == kept
    wrong = load(PLANT.replace("bus-2: { in: [ot-lan]", "bus-2: { in: [nowhere]"))[0]
    assert wrong != GRAPH
    broken = ScopeGraph(**{**_parts(GRAPH), "clients": {"press-7": {M: ("nowhere",), "altitude": ("x",)}}})
    assert refused(ApplyScopes(graph=broken)) == ["V002", "V001", "V006"]


def _parts(graph: ScopeGraph) -> dict[str, object]:
    return {name: getattr(graph, name) for name in ("dimensions", "clients", "policies", "grants", "releases")}


@pytest.mark.parametrize(
    ("operation", "shown", "narrows"),
    [
        (join("desk", "line-a"), ["added: client desk in membership/line-a"], False),
        (leave("press-7", "line-a"), ["removed: client press-7 in membership/line-a"], True),
        (join("supplier-acme", "operations"), ["added: scope membership/supplier-acme in operations"], False),
        (leave("line-a", "operations"), ["removed: scope membership/line-a in operations"], True),
        (PutScope(dimension=M, scope="x", containers=("group",)), ["added: scope membership/x"], False),
        (
            SetFilter(dimension=M, scope="line-a", side="output", text=None),
            ["removed: scope membership/line-a output"],
            False,
        ),
        (
            SetFilter(dimension=M, scope="line-a", side="output", text="TRUE"),
            ["changed: scope membership/line-a output"],
            True,
        ),
        (
            SetLink(dimension=M, member="line-a", scope="operations", up="TRUE"),
            ["added: scope membership/line-a link operations up"],
            True,
        ),
        (SetMode(dimension=M, closed=False), ["changed: dimension membership mode"], False),
        (SetMode(dimension="network", closed=True), ["changed: dimension network mode"], True),
        (
            SetCarriers(dimension="geography", scope="lyon", carriers=None),
            ["changed: scope geography/hall-2 carriers", "changed: scope geography/lyon carriers"],
            False,
        ),
        (
            SetCarriers(dimension="geography", scope="hall-2", carriers=("zone-lyon",)),
            ["changed: scope geography/hall-2 carriers"],
            True,
        ),
        (
            GrantRights(grant=Grant(to="x", dimension=M, may=("observe",))),
            ["added: grant x observe membership"],
            False,
        ),
        (
            RevokeRights(grant=Grant(to="evacuation", dimension=M, may=("broadcast",))),
            ["removed: grant evacuation broadcast membership"],
            True,
        ),
    ],
)
def test_what_is_different_and_whether_it_narrows(operation: Operation, shown: list[str], narrows: bool) -> None:
    found = diff_scopes(GRAPH, after(operation))
    assert [str(each) for each in found.changes] == shown
    assert found.narrows == narrows
    assert not diff_scopes(GRAPH, GRAPH).changes


def test_tags_of_policies_and_dimensions_are_different_too() -> None:
    other = load(PLANT.replace("publishes: { membership: any, ", "publishes: { "))[0]
    assert [str(each) for each in diff_scopes(GRAPH, other).changes] == [
        "changed: policy evacuation publishes membership"
    ]
    text = "dimensions: {d: {mode: closed, scopes: {a: {}}}}"
    assert [str(each) for each in diff_scopes(ScopeGraph(), load(text)[0]).changes] == [
        "added: dimension d",
        "added: scope d/a",
    ]
    assert diff_scopes(ScopeGraph(), load(text)[0]).narrows
    assert diff_scopes(load(text)[0], ScopeGraph()).narrows
    assert scopes_as_json(ScopeGraph()) == {}


def test_who_administers_one_dimension_learns_nothing_of_another() -> None:
    put = change(
        GRAPH, PutScope(dimension=M, scope="hall-2", containers=("plant-lyon",)), SITE, KNOWN, epoch=1, current=1
    )
    joined = change(GRAPH, join("hall-2", "plant-lyon"), SITE, KNOWN, epoch=1, current=1)
    assert [[each.code.code for each in done.problems] for done in (put, joined)] == [["V003"], ["V002"]]
    assert not [each for done in (put, joined) for each in done.problems if "geography" in render(each)]
    assert "geography" in render(
        change(GRAPH, join("hall-2", "plant-lyon"), ROOT, KNOWN, epoch=1, current=1).problems[0]
    )
