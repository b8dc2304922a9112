"""What a situation shows of what caused it: releases, absence that depends on a filter, and policies nobody can see."""

from __future__ import annotations

from situ.lang.tags import NO_TAGS, TagSet
from situ.scopes.epochs import (
    Epochs,
    VisibilityStamp,
    absent,
    could_reach,
    meet,
    merge,
    reaches,
    release,
    released_data,
    unreached,
)
from situ.scopes.filter_sets import NO_NUMBERS
from situ.scopes.visibility_plan import compile_visibility, number_filters
from tests.scopes import dimension, graph_of

GRAPH = graph_of(
    dimension("d", {"line": "plant", "office": "plant", "guest": ""}, closed=True, output_line="severity >= 4"),
    dimension("g", {"hall": "town"}),
)
LINE, OFFICE, PLANT, GUEST = (TagSet.of({"d": scope}, rest=True) for scope in ("line", "office", "plant", "guest"))
NUMBERS = number_filters(GRAPH, NO_NUMBERS)
EPOCHS = Epochs({1: compile_visibility(GRAPH, [LINE], [OFFICE], NUMBERS)})
SEVERE = 1 << NUMBERS["severity >= 4"]


def stamp(tags: TagSet, bits: int = 0) -> VisibilityStamp:
    return VisibilityStamp(tags=tags, epoch=1, bits=bits)


def test_one_part_that_is_not_visible_hides_the_situation() -> None:
    own = stamp(OFFICE)
    assert reaches(EPOCHS, 1, meet(own, [stamp(LINE, SEVERE)]), OFFICE)
    assert not reaches(EPOCHS, 1, meet(own, [stamp(LINE, SEVERE), stamp(LINE)]), OFFICE)
    assert not reaches(EPOCHS, 1, meet(stamp(GUEST), [stamp(LINE, SEVERE)]), OFFICE), "nor does it reach by its parts"
    assert reaches(EPOCHS, 1, meet(stamp(LINE), [stamp(LINE)]), LINE)


def test_a_release_lifts_the_parts_in_its_dimensions_only() -> None:
    in_hall = TagSet.of({"d": "line", "g": "hall"})
    found = meet(stamp(TagSet.of(rest=True)), [stamp(in_hall)])
    office_in_hall = TagSet.of({"d": "office", "g": "hall"})
    office_elsewhere = TagSet.of({"d": "office"})
    assert not reaches(EPOCHS, 1, found, office_in_hall)
    let_go = release(found, ["d"])
    assert reaches(EPOCHS, 1, let_go, office_in_hall)
    assert not reaches(EPOCHS, 1, let_go, office_elsewhere), "where nothing was released, parts count"
    assert reaches(EPOCHS, 1, release(let_go, ["g"]), office_elsewhere)
    assert not reaches(EPOCHS, 1, release(let_go, ["g"]), NO_TAGS), (
        "closed, and it says nothing: not even the situation"
    )
    assert released_data({"hall": "a", "who": "x", "events": [1]}, ["hall", "level"]) == {"hall": "a"}


def test_absence_that_depends_on_a_filter_is_not_seen() -> None:
    own = stamp(TagSet.of(rest=True))
    gone = absent(EPOCHS, 1, LINE, [LINE, GUEST])
    assert gone == {stamp(LINE)}, "what the policy could not have seen says nothing"
    assert reaches(EPOCHS, 1, meet(own, [], absent=gone), LINE)
    assert not reaches(EPOCHS, 1, meet(own, [], absent=gone), OFFICE)


def test_merged_parts_hide_what_took_different_ways() -> None:
    graph = graph_of(dimension("d", {"a": "x y", "x": "r", "y": "r"}, output_x="severity < 4", output_y="severity > 3"))
    numbers = number_filters(graph, NO_NUMBERS)
    here, there = TagSet.of({"d": "a"}), TagSet.of({"d": "r"})
    epochs = Epochs({1: compile_visibility(graph, [here], [there], numbers)})
    parts = [stamp(here, 1 << number) for number in numbers.given.values()]
    assert all(epochs.visible(each, 1, there) for each in parts)
    kept, merged = merge(parts, 1)
    assert merged == 1
    assert not any(epochs.visible(each, 1, there) for each in kept), "narrower, and never wider"


def test_v110_names_policies_whose_situations_reach_no_subscription() -> None:
    hidden = {"desk/alarms": GUEST, "door/alarms": GUEST}
    found = unreached(EPOCHS, 1, "evacuation", (PLANT, PLANT), [[LINE]], hidden)
    assert found is not None
    assert found.code.code == "V110"
    assert "desk/alarms, door/alarms" in found.message
    assert unreached(EPOCHS, 1, "evacuation", (PLANT, PLANT), [[LINE]], {**hidden, "office/alarms": OFFICE}) is None
    assert unreached(EPOCHS, 1, "evacuation", (PLANT, PLANT), [[LINE]], {}) is None


def test_policies_whose_situations_can_reach_nobody_are_found() -> None:
    assert could_reach(EPOCHS, 1, PLANT, PLANT, [[LINE], [OFFICE, GUEST]], OFFICE)
    assert not could_reach(EPOCHS, 1, GUEST, PLANT, [[LINE]], OFFICE), "its own tags"
    assert not could_reach(EPOCHS, 1, PLANT, PLANT, [[LINE], [GUEST]], OFFICE), "it reads nothing of that type"
    all_d = TagSet.of({"d": "any"}, rest=True)
    assert not could_reach(EPOCHS, 1, all_d, all_d, [[LINE]], GUEST), "what it reads is hidden there"
    assert could_reach(EPOCHS, 1, all_d, all_d, [[LINE]], GUEST, released=frozenset({"d"}))
