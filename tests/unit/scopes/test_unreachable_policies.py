"""Policies whose situations can reach nobody."""

from __future__ import annotations

from situ.lang.tags import TagSet
from situ.scopes.epochs import Epochs, could_reach, unreached
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
