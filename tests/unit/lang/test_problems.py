"""How problems are made, collected and shown."""

from __future__ import annotations

import pytest

from situ.lang.catalogue import CODES, SYNTAX, UNKNOWN_NAME
from situ.lang.problems import Location, Problems, Severity, SituError, nearest, render

PLACE = Location(file="types/a.yaml", line=3, column=9, length=4, text="  at.x < whoo")


def unknown(location: Location | None = PLACE, close: tuple[str, ...] = ("who",)):
    return UNKNOWN_NAME(location, kind="name", name="whoo", nearest=close, instead="Known are `at`.")


def test_rendered_with_place_line_caret_and_hint() -> None:
    assert render(unknown()) == (
        "types/a.yaml:3:9: error X102: There is no name `whoo` here.\n"
        "  |   at.x < whoo\n"
        "  |         ^^^^\n"
        "  hint: Did you mean `who`?"
    )


def test_the_other_hint_where_nothing_comes_close() -> None:
    assert unknown(close=()).hint == "Known are `at`."


def test_parameters_are_checked() -> None:
    with pytest.raises(TypeError, match="takes"):
        SYNTAX(PLACE)
    with pytest.raises(TypeError, match="must be str"):
        SYNTAX(PLACE, found=3)


def test_a_problem_is_collected_once_and_sorted_by_place() -> None:
    later = SYNTAX(Location(file="types/a.yaml", line=9), found="`x`")
    problems = Problems([later, unknown(), unknown(), SYNTAX(None, found="`y`")])
    assert len(problems) == 3
    assert [problem.location and problem.location.line for problem in problems.sorted()] == [None, 3, 9]
    with pytest.raises(SituError) as raised:
        problems.raise_errors()
    assert len(raised.value.problems) == 3
    assert raised.value.code == "X101"


def test_causes_are_told() -> None:
    outer = SYNTAX(PLACE, found="`f`", cause=unknown())
    assert "  because X102: There is no name `whoo` here.\n" in render(outer)
    assert outer.as_json()["cause"]["code"] == "X102"


def test_hostile_text_cannot_reach_the_terminal_as_it_is() -> None:
    hostile = UNKNOWN_NAME(
        Location(file="a", column=3, text="\x1b[31mred\x07" + "y" * 500),
        kind="name",
        name="\x1b]0;x\n",
        nearest=(),
        instead="",
    )
    shown = render(hostile)
    assert "\x1b" not in shown
    assert "\x07" not in shown
    assert all(len(line) < 250 for line in shown.splitlines())


def test_nearest_names_ignore_case_and_give_none_when_far() -> None:
    assert nearest("Sightng", ["sighting", "Door"]) == ("sighting",)
    assert nearest("zzz", ["sighting", "Door"]) == ()


def test_nearest_names_among_thousands() -> None:
    known = [f"function{n}" for n in range(5000)] + ["distance", "Position"]
    assert nearest("distnace", known)[0] == "distance"
    assert nearest("Positon", known)[0] == "Position"


def test_severities_of_the_catalogue() -> None:
    assert all(isinstance(code.severity, Severity) for code in CODES.values())
    assert all(code.code == name for name, code in CODES.items())
