"""Explaining visibility: the way that is shown, the filters that were asked, what would help, and who may know."""

from __future__ import annotations

from textwrap import dedent

import pytest

from situ.lang.problems import Location
from situ.lang.tags import TagSet
from situ.scopes.explanation import (
    DimensionCase,
    RootEvent,
    VisibilityExplanation,
    dimension_lines,
    explain_visibility,
    may_know_all,
    summary,
)
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import BoundaryFilter, Dimension, Grant, Scope, ScopeGraph, ScopeLink
from situ.scopes.rights import Principal
from situ.stages.explain_visibility import explanation_lines, of_one_side
from tests.oracles.visibility import visible
from tests.scopes import EVERYTHING, PAPER, dimension, graph_of, tags
from tests.types_files import types_of

TYPES = FilterMeanings(
    types_of(
        """
        events:
          Alarm: {severity: int}
          ShiftReport: {}
          CycleCount: {}
          ServiceNote: {}
          MachineState: {machine_class: string, vendor: optional string, bytes: int, sampled: boolean}
        """
    )
)
STATE = RootEvent(
    filters=TYPES,
    type="MachineState",
    envelope={"source": "press-7"},
    data={"machine_class": "press", "bytes": 100, "sampled": True},
)


def at(text: str, line: int, column: int) -> BoundaryFilter:
    return BoundaryFilter(text=text, place=Location(file="scopes.yaml", line=line, column=column))


def plant() -> ScopeGraph:
    membership = [
        Scope(name="group"),
        Scope(name="plant-lyon", containers=("group",), output=BoundaryFilter(text="type IS Alarm AND severity >= 4")),
        Scope(
            name="operations",
            containers=("plant-lyon",),
            output=BoundaryFilter(text="type IS Alarm OR type IS ShiftReport"),
        ),
        Scope(
            name="maintenance",
            containers=("plant-lyon",),
            input=BoundaryFilter(text="type IS Alarm OR type IS MachineState"),
        ),
        Scope(
            name="line-a",
            containers=("maintenance", "operations"),
            output=at("NOT type IS CycleCount", 11, 31),
            links=(("maintenance", ScopeLink(up=at("machine_class = 'press'", 12, 51))),),
        ),
        Scope(
            name="supplier-acme",
            containers=("maintenance",),
            input=at("vendor = 'acme'", 13, 50),
            output=BoundaryFilter(text="type IS ServiceNote"),
        ),
    ]
    return ScopeGraph(
        dimensions={
            "membership": Dimension(name="membership", closed=True, scopes={each.name: each for each in membership}),
            "geography": dimension("geography", {"lyon": "eu", "hall-2": "lyon"}),
            "network": dimension(
                "network",
                {"ot-lan": "wan", "bus-2": "ot-lan"},
                **{"output_ot-lan": "bytes <= 65536", "output_bus-2": "type IS Alarm OR sampled"},
            ),
        },
        grants=(
            Grant(to="safety-office", dimension="membership", may=("observe",)),
            Grant(to="site-admin", dimension="membership", may=("admin",), scopes=("plant-lyon",)),
            Grant(to="line-admin", dimension="membership", may=("admin",), scopes=("line-a",)),
        ),
    )


AD = TagSet.of({"membership": "line-a", "geography": "hall-2", "network": "bus-2"})
SUB = TagSet.of({"membership": "supplier-acme", "network": "wan"})


def explain_text(explained: VisibilityExplanation) -> str:
    return "\n".join((*dimension_lines(explained), summary(explained)))


def test_the_example_of_a_machine_and_its_supplier() -> None:
    explained = explain_visibility(plant(), STATE, AD, SUB)
    expected = """\
        geography   hall-2 → nothing said   NOT VISIBLE (a scope against nothing)
        membership  line-a → supplier-acme  NOT VISIBLE
           line-a ↑ maintenance         output(line-a)        NOT type IS CycleCount   true   scopes.yaml:11:31
                                        link up               machine_class = 'press'  true   scopes.yaml:12:51
           maintenance ↓ supplier-acme  input(supplier-acme)  vendor = 'acme'          NULL: data.vendor is missing   scopes.yaml:13:50
           also tried: line-a ↑ operations ↑ plant-lyon ↓ maintenance ↓ supplier-acme, blocked first at output(operations)
        network     bus-2 ↑ ot-lan ↑ wan    visible  type IS Alarm OR sampled; bytes <= 65536
        not visible (geography, membership); would be visible if: the subscription named a geography scope that sees hall-2, or any, and vendor = 'acme'"""  # noqa: E501
    assert explain_text(explained) == dedent(expected)
    assert not explained.visible
    membership = explained.dimensions[1]
    assert membership.blocked is not None
    assert membership.blocked.interface == "input(supplier-acme)"
    assert membership.lacking == (("vendor = 'acme'",),)


def test_the_way_of_the_paper() -> None:
    explained = explain_visibility(PAPER, EVERYTHING, tags("ls ch any", PAPER), tags("is lo tm", PAPER))
    first, second, third = explained.dimensions
    assert [step.end for step in first.way] == ["us", "es", "fs", "is"]
    assert [step.direction for step in first.way] == ["up", "up", "down", "down"]
    assert [step.end for step in second.way] == ["bo", "fr", "eu", "uk", "lo"]
    assert third.cell is DimensionCase.NO_LIMIT
    text = explain_text(explained)
    assert "d1  ls ↑ us ↑ es ↓ fs ↓ is       visible\n" in text
    assert text.endswith("\nvisible")


def test_the_shortest_way_is_shown_and_by_name_among_equally_short_ones() -> None:
    graph = graph_of(dimension("d", {"a": "b2 b1 c", "b1": "r", "b2": "r", "c": "c2", "c2": "r", "r": ""}))
    (found,) = explain_visibility(graph, EVERYTHING, tags("a", graph), tags("r", graph)).dimensions
    assert [step.end for step in found.way] == ["b1", "r"]
    shut = graph_of(
        dimension(
            "d", {"a": "b2 b1 c", "b1": "r", "b2": "r", "c": "c2", "c2": "r"}, output_b1="FALSE", output_b2="FALSE"
        )
    )
    (found,) = explain_visibility(shut, EVERYTHING, tags("a", shut), tags("r", shut)).dimensions
    assert found.visible
    assert [step.end for step in found.way] == ["c", "c2", "r"], "the shortest that is open"


@pytest.mark.parametrize(
    ("advertised", "subscribed", "closed", "cell", "remedy"),
    [
        ("a", "", False, DimensionCase.SCOPE_AGAINST_NOTHING, "the subscription named a d scope that sees a, or any"),
        ("", "a", False, DimensionCase.NOTHING_AGAINST_SCOPE, "the advertisement named a d scope that a sees, or any"),
        ("", "", True, DimensionCase.CLOSED, "both named d scopes, or the subscription any"),
        ("any", "", True, DimensionCase.CLOSED, "both named d scopes, or the subscription any"),
        ("a", "any", True, DimensionCase.ANY_WANTED, ""),
        ("any", "any", True, DimensionCase.ANY_WANTED, ""),
        ("any", "a", True, DimensionCase.NO_LIMIT, ""),
        ("", "any", False, DimensionCase.UNUSED, ""),
    ],
)
def test_what_the_table_alone_decides(
    advertised: str, subscribed: str, closed: bool, cell: DimensionCase, remedy: str
) -> None:
    graph = graph_of(dimension("d", {"a": "r"}, closed=closed))
    ad, sub = tags(advertised, graph), tags(subscribed, graph)
    explained = explain_visibility(graph, EVERYTHING, ad, sub)
    assert explained.dimensions[0].cell is cell
    assert explained.visible == visible(graph, EVERYTHING, ad, sub) == (not remedy)
    assert explain_text(explained).endswith(f"would be visible if: {remedy}" if remedy else "\nvisible")


def test_what_no_event_could_change_is_said_so() -> None:
    graph = graph_of(dimension("d", {"a": "r", "z": "", "s": "r"}, output_s="FALSE"))
    apart = explain_visibility(graph, EVERYTHING, tags("a", graph), tags("z", graph))
    assert "no scope leads from the one to the other" in explain_text(apart)
    for other in (apart, explain_visibility(graph, EVERYTHING, tags("s", graph), tags("r", graph))):
        assert explain_text(other).endswith("not visible (d); no event would be")
    gone = explain_visibility(graph, EVERYTHING, TagSet.of({"d": "gone"}), tags("any", graph))
    assert gone.dimensions[0].cell is DimensionCase.NO_SUCH_SCOPE


def test_filters_that_fail_or_find_nothing_are_told_as_such() -> None:
    graph = graph_of(dimension("d", {"a": "r"}, output_a="10 / severity > 2"))
    event = RootEvent(filters=EVERYTHING.filters, type="Alarm", envelope={}, data={"severity": 0})
    (found,) = explain_visibility(graph, event, tags("a", graph), tags("r", graph)).dimensions
    assert found.blocked is not None
    assert found.blocked.value == "fails"
    state = RootEvent(filters=EVERYTHING.filters, type="State", envelope={}, data={"machine": "x", "load": 0.1})
    (found,) = explain_visibility(graph, state, tags("a", graph), tags("r", graph)).dimensions
    assert found.blocked is not None
    assert (found.blocked.value, found.blocked.reason) == ("NULL", "data.severity is missing")


def test_of_many_lacking_sets_the_smallest_are_told() -> None:
    filters = {"output_a": "severity > 7", "output_x": "vendor = 'x'", "output_y": "FALSE"}
    graph = graph_of(
        dimension("d", {"s": "a y b", "a": "x", "x": "r", "y": "r", "b": "r"}, output_b="severity > 8", **filters)
    )
    (found,) = explain_visibility(graph, EVERYTHING, tags("s", graph), tags("r", graph)).dimensions
    assert found.lacking == (("severity > 8",),)


def test_serial_diamonds_are_explained_without_listing_all_ways() -> None:
    edges: dict[str, str] = {}
    filters: dict[str, str] = {}
    for number in range(40):
        edges |= {f"k{number:02}": f"l{number:02} r{number:02}", f"l{number:02}": f"k{number + 1:02}"}
        edges[f"r{number:02}"] = f"k{number + 1:02}"
        filters |= {
            f"output_l{number:02}": f"severity > {10 + number}",
            f"output_r{number:02}": f"severity > {60 + number}",
        }
    graph = graph_of(dimension("d", edges, **filters))
    (found,) = explain_visibility(graph, EVERYTHING, tags("k00", graph), tags("k40", graph)).dimensions
    assert len(found.way) == 80
    assert len(found.others) == 3
    assert found.lacking == (tuple(f"severity > {10 + number}" for number in range(40)),)


def test_who_may_know_all_and_what_the_others_get() -> None:
    graph = plant()
    rights = {
        name: may_know_all(graph, Principal(name=name), AD, SUB)
        for name in ("safety-office", "site-admin", "line-admin", "press-7")
    }
    assert rights == {"safety-office": True, "site-admin": True, "line-admin": False, "press-7": False}
    assert may_know_all(graph, Principal(name="op", operator=True), AD, SUB)
    explained = explain_visibility(graph, STATE, AD, SUB)
    assert not explained.visible
    named = {"event": "cry"}
    own = explanation_lines(of_one_side(explained.visible, "producer", AD).about(named, "acme/notes"))
    assert own == "event cry\ngeography  hall-2\nmembership  line-a\nnetwork  bus-2\nnot visible"
    theirs = explanation_lines(of_one_side(explained.visible, "consumer", SUB).about(named, "acme/notes"))
    assert theirs == "event cry\nmembership  supplier-acme\nnetwork  wan\nnot visible"
    for foreign in ("line-a", "hall-2", "maintenance", "vendor", "press", "NULL"):
        assert foreign not in theirs
