"""Who sees what: the paper's example, the table of several dimensions, and what the three rules do not allow."""

from __future__ import annotations

import pytest

from situ.lang.tags import ANY, TagSet
from situ.scopes.explanation import RootEvent
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.graph import BoundaryFilter, Dimension, Scope, ScopeGraph, ScopeLink
from situ.scopes.visibility_plan import Verdict, compile_visibility, number_filters
from tests.oracles.visibility import Brokers, delivery_path, transformation_path, travel, visible
from tests.scopes import EVERYTHING, FILTERS, PAPER, PAPER_BROKERS, dimension, graph_of, stamp_bits, tags

ROWS = [
    ("ls ch", "is lo tm", False),
    ("ls ch", "is tm any", False),
    ("ls ch any", "is lo tm", True),
    ("ls ch any", "is tm any", True),
]


def sees(graph: ScopeGraph, producer: str | TagSet, consumer: str | TagSet, event: RootEvent = EVERYTHING) -> bool:
    """What the rules say; the plan must say the same, and the brokers that are in all overlays."""
    ad = tags(producer, graph) if isinstance(producer, str) else producer
    sub = tags(consumer, graph) if isinstance(consumer, str) else consumer
    expected = visible(graph, event, ad, sub)
    plan = compile_visibility(graph, [ad], [sub], number_filters(graph, NO_NUMBERS))
    assert plan.pair(ad, sub).visible(stamp_bits(plan.numbers, plan.stamped, event)) == expected
    everywhere = frozenset(scope for each in graph.dimensions.values() for scope in each.scopes)
    one = Brokers(neighbours={"b": ()}, overlays={"b": everywhere})
    assert (travel(graph, event, one, (ad, "b"), (sub, "b")) is not None) == expected
    return expected


@pytest.mark.parametrize(("producer", "consumer", "expected"), ROWS)
def test_the_rows_of_the_paper(producer: str, consumer: str, expected: bool) -> None:
    assert sees(PAPER, producer, consumer) == expected


def test_the_membership_path_of_the_paper_and_what_is_not_in_what() -> None:
    one = graph_of(PAPER.dimensions["d1"])
    everywhere = Brokers(neighbours={"b": ()}, overlays={"b": frozenset(one.dimensions["d1"].scopes)})
    path = travel(one, EVERYTHING, everywhere, (tags("ls", one), "b"), (tags("is", one), "b"))
    assert path is not None
    assert path[-1].paths == (("ls", "us", "es", "fs", "is"),)
    assert "ir" not in one.dimensions["d1"].above("us")
    assert "us" not in one.dimensions["d1"].above("ir")


def test_the_worked_transition_path_of_the_paper() -> None:
    two = graph_of(PAPER.dimensions["d1"], PAPER.dimensions["d2"])
    path = travel(two, EVERYTHING, PAPER_BROKERS, (tags("ls ch", two), "B3"), (tags("is lo", two), "B5"))
    assert path is not None
    assert delivery_path(path) == ("B3", "B2", "B1", "B5")
    carried = transformation_path(path)
    assert len(carried) - 1 == 9, "transformations"
    assert len(path) - len(carried) == 3, "forwardings"
    assert list(dict.fromkeys(paths[0] for paths in carried)) == [
        ("ls",), ("ls", "us"), ("ls", "us", "es"), ("ls", "us", "es", "fs"), ("ls", "us", "es", "fs", "is"),
    ]  # fmt: skip
    assert list(dict.fromkeys(paths[1] for paths in carried)) == [
        ("ch",), ("ch", "bo"), ("ch", "bo", "fr"), ("ch", "bo", "fr", "eu"), ("ch", "bo", "fr", "eu", "uk"),
        ("ch", "bo", "fr", "eu", "uk", "lo"),
    ]  # fmt: skip
    at = [(each.broker, *each.lasts) for each in path]
    assert at == [
        ("B3", "ls", "ch"), ("B3", "us", "ch"), ("B3", "us", "bo"), ("B3", "us", "fr"), ("B2", "us", "fr"),
        ("B2", "es", "fr"), ("B2", "es", "eu"), ("B1", "es", "eu"), ("B1", "fs", "eu"), ("B1", "fs", "uk"),
        ("B5", "fs", "uk"), ("B5", "is", "uk"), ("B5", "is", "lo"),
    ]  # fmt: skip
    turned = [each.going_up for each in path]
    assert turned[7] == (True, True)
    assert turned[8:10] == [(False, True), (False, False)]


# ── the table of several dimensions ───────────────────────────────────────────────────────────────

ANYS = {
    "named": TagSet.of({"d": ANY}),
    "rest": TagSet.of(rest=True),
    "named, rest besides": TagSet.of({"d": ANY}, rest=True),
}
NOTHING = {"nothing": TagSet(), "rest none": TagSet.of({})}
SCOPES = {"scope": TagSet.of({"d": "s"}), "scope, rest besides": TagSet.of({"d": "s"}, rest=True)}
CELLS = [
    # producer, consumer, open, closed
    (SCOPES, SCOPES, True, True),
    (SCOPES, {"other": TagSet.of({"d": "t"})}, False, False),
    (SCOPES, ANYS, True, True),
    (SCOPES, NOTHING, False, False),
    (ANYS, SCOPES, True, True),
    (ANYS, ANYS, True, True),
    (ANYS, NOTHING, True, False),
    (NOTHING, SCOPES, False, False),
    (NOTHING, ANYS, True, True),
    (NOTHING, NOTHING, True, False),
]


@pytest.mark.parametrize("closed", [False, True])
@pytest.mark.parametrize(
    ("producer", "consumer", "expected"),
    [
        pytest.param(ad, sub, (open_, closed_), id=f"{one} to {other}")
        for producers, consumers, open_, closed_ in CELLS
        for one, ad in producers.items()
        for other, sub in consumers.items()
    ],
)
def test_every_cell_of_the_table(producer: TagSet, consumer: TagSet, expected: tuple[bool, bool], closed: bool) -> None:
    graph = graph_of(dimension("d", {"s": "", "t": ""}, closed=closed))
    assert sees(graph, producer, consumer) == expected[closed]
    plan = compile_visibility(graph, [producer], [consumer], NO_NUMBERS)
    assert plan.pair(producer, consumer).verdict is (Verdict.ALWAYS if expected[closed] else Verdict.NEVER)


def test_all_dimensions_must_agree() -> None:
    graph = graph_of(dimension("d", {"a": "r", "b": "r"}), dimension("e", {"x": "", "y": ""}))
    assert sees(graph, "a x", "b x")
    assert not sees(graph, "a x", "b y")


def test_without_dimensions_everybody_sees_everything() -> None:
    assert sees(graph_of(), TagSet(), TagSet())


def test_a_scope_that_is_not_there_sees_nothing_and_is_not_seen() -> None:
    graph = graph_of(dimension("d", {"a": "r"}))
    for gone in (TagSet.of({"d": "gone"}), TagSet.of({"gone": "a"}, rest=True)):
        assert not sees(graph, gone, TagSet.of(rest=True))
        assert not sees(graph, TagSet.of(rest=True), gone)
        assert not sees(graph, gone, gone)


# ── the rules ─────────────────────────────────────────────────────────────────────────────────────


def alarm(**data: object) -> RootEvent:
    return RootEvent(filters=FILTERS, type="Alarm", envelope={"source": "p1"}, data={"severity": 5, **data})


def test_an_unknown_filter_blocks_and_so_does_one_that_fails() -> None:
    null = graph_of(dimension("d", {"a": "r", "b": "r"}, input_b="vendor = 'acme'"))
    assert sees(null, "a", "b", alarm(vendor="acme"))
    assert not sees(null, "a", "b", alarm(vendor="other"))
    assert not sees(null, "a", "b", alarm())
    failing = graph_of(dimension("d", {"a": "r", "b": "r"}, output_a="10 / severity > 1"))
    assert sees(failing, "a", "b", alarm())
    assert not sees(failing, "a", "b", alarm(severity=0))


def test_types_have_what_they_have_though_others_were_lent_it_to_read_the_filter() -> None:
    note = RootEvent(filters=FILTERS, type="Note", envelope={}, data={"sampled": True, "severity": 6})
    text = "(load <= 0.8 OR severity > 2) AND (vendor IS NULL OR vendor <> 'acme') AND machine IS NULL"
    assert note.passes(text)
    assert not RootEvent(filters=FILTERS, type="Note", envelope={}, data={"sampled": True}).passes(text)


def test_who_takes_everything_is_past_output_filters_and_who_puts_no_limit_past_input_filters() -> None:
    graph = graph_of(dimension("d", {"a": "r", "b": "r"}, output_a="FALSE", input_b="FALSE"))
    assert not sees(graph, "a", "r")
    assert sees(graph, "a", "any")
    assert not sees(graph, "r", "b")
    assert sees(graph, "any", "b")


def test_a_shared_member_does_not_connect_and_neither_does_a_common_nothing() -> None:
    graph = graph_of(dimension("d", {"m": "x y", "z": ""}))
    assert not sees(graph, "x", "y")
    assert sees(graph, "m", "x")
    assert sees(graph, "y", "m")
    assert not sees(graph, "x", "z"), "no declared container in common"


def test_the_filters_of_the_highest_scope_are_not_asked_and_traffic_inside_a_scope_is_not_filtered() -> None:
    shut = {"output_top": "FALSE", "input_top": "FALSE"}
    graph = graph_of(dimension("d", {"a": "top", "b": "top", "top": "world"}, **shut))
    assert sees(graph, "a", "b")
    assert sees(graph, "top", "top")
    assert not sees(graph, "a", "world")
    assert not sees(graph, "world", "a")


def test_filters_of_links_add_to_those_of_interfaces() -> None:
    severe, acme = BoundaryFilter(text="severity >= 4"), BoundaryFilter(text="vendor = 'acme'")
    member = Scope(
        name="a", containers=("r", "t"), output=severe, input=severe, links=(("r", ScopeLink(up=acme, down=acme)),)
    )
    graph = graph_of(Dimension(name="d", scopes={"a": member, "r": Scope(name="r"), "t": Scope(name="t")}))
    for ends in (("a", "r"), ("r", "a")):
        assert sees(graph, *ends, alarm(vendor="acme"))
        assert not sees(graph, *ends, alarm())
        assert not sees(graph, *ends, alarm(vendor="acme", severity=1))
    assert sees(graph, "a", "t", alarm()), "the other link asks for nothing more"


def test_one_way_that_is_open_is_enough() -> None:
    graph = graph_of(
        dimension("d", {"a": "x y", "x": "r", "y": "r"}, output_x="severity < 4", output_y="severity >= 4")
    )
    assert sees(graph, "a", "r", alarm(severity=1))
    assert sees(graph, "a", "r", alarm(severity=5))
    shut = graph_of(dimension("d", {"a": "x y", "x": "r", "y": "r"}, output_x="severity < 4", output_y="severity > 8"))
    assert not sees(shut, "a", "r", alarm(severity=5))
