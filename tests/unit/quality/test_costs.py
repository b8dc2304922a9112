"""Costs: what they are at a value, what they may be made of, and what hostile ones get."""

from __future__ import annotations

import json
import math

import pytest

from situ.lang.documents import Reader, parse_json, parse_yaml
from situ.lang.problems import Problems
from situ.lang.units import Units
from situ.quality.model.allocation_problem import slope
from situ.quality.model.costs import (
    FREE,
    UNAFFORDABLE,
    ConstantCost,
    Cost,
    Formula,
    LevelCost,
    PiecewiseCost,
    read_formula,
)
from situ.quality.model.declarations import BUILT_IN, Capability, QualityProperty
from situ.quality.model.json_form import cost_as_json, cost_from_json
from situ.quality.parse.values import SAMPLES, Values, read_cost, samples

RATE, TRUST, FRESHNESS = BUILT_IN["rate"], BUILT_IN["trust"], BUILT_IN["freshness"]


def read(text: str, about: QualityProperty = RATE, lb: float = 1, ub: float = 60) -> tuple[Cost | None, Problems]:
    problems = Problems()
    root = parse_yaml(text, "cost.yaml").root
    return read_cost(Values(Reader(problems), Units()), about, root, lb, ub), problems


def refused(text: str, about: QualityProperty = RATE, lb: float = 1, ub: float = 60) -> str:
    cost, problems = read(text, about, lb, ub)
    assert cost is None
    assert {each.code.code for each in problems} == {"Q106"}, list(problems)
    assert all(each.location is not None and each.hint for each in problems)
    return " ".join(each.message.removeprefix("This is no cost. ") for each in problems)


class TestValues:
    def test_points_are_joined_by_lines_and_go_on_as_they_end(self) -> None:
        points = PiecewiseCost(((1, 9), (2, 1), (3, 4), (6, 4)))
        found = [points.at(each) for each in (0, 1, 1.5, 2, 2.5, 3, 4, 6, 7)]
        assert found == [9, 9, 5, 1, 2.5, 4, 4, 4, 4]
        assert points.knots == (1, 2, 3, 6)

    @pytest.mark.parametrize("knot", [0.1, 0.3, 1 / 3, 1e9])
    def test_a_knot_costs_exactly_what_was_declared(self, knot: float) -> None:
        points = PiecewiseCost(((0.0, 0.7), (knot, 0.1), (2e9, 0.3)))
        assert points.at(knot) == 0.1

    def test_tables_have_a_cost_for_each_level(self) -> None:
        table = LevelCost(((1, 0), (2, 2), (3, 5)))
        assert [table.at(each) for each in (1, 2, 3)] == [0, 2, 5]

    @pytest.mark.parametrize(
        ("text", "at", "cost"),
        [
            ("0.1 * x", 60, 6),
            ("4 * x / 15", 55, 220 / 15),
            ("min(x, 3) + max(x, 3)", 5, 8),
            ("power(x, 2)", 3, 9),
            ("abs(x - 5) + sqrt(4) + ln(1) + exp(0) + floor(1.5) + ceil(1.5)", 5, 6),
            ("CASE WHEN x > 10 THEN 1 ELSE 0.5 END", 11, 1),
        ],
    )
    def test_formulas_are_expressions_of_x(self, text: str, at: float, cost: float) -> None:
        assert read_formula(text).at(at) == pytest.approx(cost)

    def test_where_a_formula_fails_it_is_not_affordable(self) -> None:
        assert read_formula("1 / (x - 1)").at(1) == UNAFFORDABLE
        assert read_formula("exp(x)").at(10_000) == UNAFFORDABLE
        assert read_formula("x - 5").at(1) == 0

    @pytest.mark.parametrize(
        "cost",
        [ConstantCost(2), PiecewiseCost(((0.0, 1.0), (10.0, 5.0), (20.0, 2.0))), read_formula("0.5 * power(x, 2) + 1")],
    )
    def test_moving_twice_is_moving_by_both(self, cost: Cost) -> None:
        moved = cost.moved(2, -3).moved(0.5, 1)
        for value in (0.0, 2.5, 7.0, 19.0):
            assert moved.at(value) == pytest.approx(cost.at((value * 0.5 + 1) * 2 - 3))

    def test_a_moved_formula_is_written_with_x_replaced(self) -> None:
        moved = read_formula("0.1 * x").moved(1, -3)
        assert isinstance(moved, Formula)
        assert read_formula(moved.text).at(10) == pytest.approx(0.7)


class TestForms:
    @pytest.mark.parametrize(
        ("text", "about"),
        [
            ("2.5", RATE),
            ("0.1 * x", RATE),
            ("{points: [[1, 4], [30, 2], [60, 9]]}", RATE),
            ("{low: 0, medium: 2, high: 5}", TRUST),
        ],
    )
    def test_what_is_read_is_written_and_read_again(self, text: str, about: QualityProperty) -> None:
        cost, problems = read(text, about, 1, 3 if about.levels else 60)
        assert list(problems) == []
        assert cost is not None
        assert cost_from_json(cost_as_json(cost, about), about) == cost

    def test_nothing_said_costs_nothing(self) -> None:
        assert read_cost(Values(Reader(Problems()), Units()), RATE, None, 0, math.inf) is FREE
        assert read("0")[0] is FREE

    def test_samples_are_the_ends_and_257_between(self) -> None:
        assert len(samples(1, 60)) == SAMPLES + 2
        assert (samples(1, 60)[0], samples(1, 60)[-1]) == (1, 60)
        assert samples(5, 5) == [5]


class TestRefused:
    """What is no cost is refused with a reason, however large, deep or clever."""

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("-1", "It is -1."),
            ("true", "It is neither"),
            ("[1, 2]", "It is neither"),
            ("x - 2", "At x = 1 it is -1."),
            ("10 - 0.1 * x", "Towards better values it falls, at x = 1.22868 from 9.9 to 9.87713."),
            ("1 / (x - 1)", "At x = 1 it has no value."),
            ("{points: [[1, 2], [1, 3]]}", "Two of its points are at the same value."),
            ("{points: [[2, 1], [60, 2]]}", "Its points go from 2 to 60, the range from 1 to 60."),
            ("{points: []}", "It has 0 points."),
            ("{points: [[1, 2], 3]}", "This is no point."),
        ],
    )
    def test_what_is_no_cost_over_its_range(self, text: str, what: str) -> None:
        assert what in refused(text)

    def test_of_what_is_better_when_less_a_formula_must_not_rise(self) -> None:
        assert "Towards better values it falls" in refused("x", FRESHNESS)
        assert read("61 - x", FRESHNESS)[0] is not None

    def test_a_formula_needs_a_range_that_ends(self) -> None:
        assert "has no end" in refused("0.1 * x", ub=math.inf)
        assert read("3", ub=math.inf)[0] == ConstantCost(3)

    @pytest.mark.parametrize(
        ("text", "what"),
        [
            ("{low: 0, high: 5}", "It has no cost of medium."),
            ("{low: 0, mdium: 2, high: 5}", "`trust` has no level `mdium`."),
            ("0.1 * x", "It is an expression, and levels are no numbers."),
        ],
    )
    def test_levels_need_a_table(self, text: str, what: str) -> None:
        assert what in refused(text, TRUST, 1, 3)

    @pytest.mark.parametrize(
        "text",
        [
            "+".join("x" * 200),
            "(" * 200 + "x" + ")" * 200,
            "abs(" * 100 + "x" + ")" * 100,
            "power(x, 1000000)",
            "power(x, 0.5)",
            "power(x, x)",
            "power(power(power(power(x, 9), 9), 9), 9)",
            "9" * 400,
            "y",
            "x + rate",
            "event.time",
            "__import__('os')",
            "1 / 0",
            "x % 2",
            "x / (x - 30)",
            "'a'",
            "x IS NULL",
            "NULL",
            "CASE WHEN x > 3 THEN 1 END",
            "exp(exp(exp(x)))",
            "coalesce(x, 1)",
            "now()",
            "x;x",
            "",
            "\u202ex",
        ],
    )
    def test_hostile_formulas_are_refused(self, text: str) -> None:
        problems = Problems()
        node = parse_json(json.dumps(text), "cost.json").root
        assert read_cost(Values(Reader(problems), Units()), RATE, node, 1, 60) is None
        assert {each.code.code for each in problems} == {"Q106"}
        assert all(len(each.message) < 500 for each in problems)


def test_a_cost_that_rises_beyond_all_numbers_rises_unevenly() -> None:
    steep = Capability(about=BUILT_IN["rate"], lb=0, ub=1e-300, cv=0, cost=PiecewiseCost(((0.0, 0.0), (1e-300, 1e300))))
    even = Capability(about=BUILT_IN["rate"], lb=0, ub=2, cv=0, cost=PiecewiseCost(((0.0, 0.0), (2.0, 1.0))))
    assert math.isnan(slope(steep)[0])
    assert slope(even) == (0.5, 1.0)
