"""What stands in ``quality/*.yaml``, what it means, and everything that can be wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from situ.lang.problems import Problem
from situ.model import diff_deployments
from situ.project.check import CheckedProject, check_folder
from situ.quality.match.satisfaction import Satisfaction, match, reasons
from situ.quality.model.costs import ConstantCost, Formula, LevelCost, PiecewiseCost
from situ.quality.model.declarations import Aggregate, Quality, Strategy
from tests.project_files import write

MINUTE = 60_000_000
FILES = {
    "situ.yaml": "name: plant\n",
    "types/plant.yaml": (
        "events:\n"
        "  temperatureEvent: {temperature: double degC, node: string, count: int}\n"
        "  hotEvent(temperatureEvent): {}\n"
        "  cpuEvent: {load: double}\n"
    ),
    "clients/plant.yaml": (
        "clients:\n"
        "  monitor: {subscriptions: {temperature: {types: [temperatureEvent]}}}\n"
        "  plant-P: {advertisements: {a: {type: temperatureEvent}}}\n"
        "  plant-Q: {advertisements: {a: {type: temperatureEvent}}}\n"
    ),
}
SPEC = """\
properties:
  trust: {levels: [none, low, medium, high], improve: maximise, determined_by: publisher}
expectations:
  - subscription: monitor/temperature
    any_of:
      - {id: M1, utility: 10, need: {rate: {lb: 5, ub: 10}, confidence: {lb: 75, ub: 95, each: true}}}
      - {id: M2, utility: 6,  need: {rate: {lb: 30, ub: 45}, confidence: {lb: 50, ub: 60}}}
profiles:
  - {publisher: plant-P, type: temperatureEvent, mode: eco,
     capabilities: {trust: {lb: low, ub: high, cv: low, cost: {low: 0, medium: 2, high: 5}}},
     modes: [{name: eco,  values: {rate: 2,  confidence: 90}, cost: 1},
             {name: mid,  values: {rate: 10, confidence: 88}, cost: 2},
             {name: fast, values: {rate: 60, confidence: 80}, cost: 8}]}
  - {publisher: plant-Q, type: temperatureEvent,
     capabilities: {rate: {lb: 1, ub: 60, cv: 60, cost: 0.1 * x},
                    confidence: {lb: 40, ub: 70, cv: 55, cost: 4 * x / 15}}}
actions:
  - {property: rate, direction: down, action: thin, cost: 0.1}
strategy: {default: pareto, cpuEvent: {name: utility, lambda: 1, budget: 50}}
"""


def check(tmp_path: Path, **files: str) -> CheckedProject:
    return check_folder(write(tmp_path, FILES | {f"quality/{name}.yaml": text for name, text in files.items()}), {})


def right(tmp_path: Path, text: str) -> Quality:
    checked = check(tmp_path, a=text)
    assert [str(each) for each in checked.problems] == []
    assert checked.deployment is not None
    return checked.deployment.quality


def wrong(tmp_path: Path, text: str) -> tuple[Problem, ...]:
    checked = check(tmp_path, a=text)
    assert checked.deployment is None
    return checked.errors


def places(problems: tuple[Problem, ...]) -> list[str]:
    return [f"{each.location}: {each.code.code}" for each in problems]


def expectation(options: str) -> str:
    return f"expectations: [{{subscription: monitor/temperature, {options}}}]\n"


def need(options: str) -> str:
    return expectation(f"id: E, need: {{{options}}}")


def profile(options: str) -> str:
    return f"profiles: [{{publisher: plant-P, type: temperatureEvent, {options}}}]\n"


class TestMeaning:
    def test_the_example(self, tmp_path: Path) -> None:
        quality = right(tmp_path, SPEC)
        assert list(quality.expectations) == ["M1", "M2"]
        first = quality.expectations["M1"]
        assert (first.subscription, first.utility, first.version) == ("monitor/temperature", 10, 1)
        assert {id: (each.lb, each.ub, each.each) for id, each in first.needs.items()} == {
            "rate": (5, 10, False),
            "confidence": (75, 95, True),
        }
        P, Q = quality.profiles["plant-P/temperatureEvent"], quality.profiles["plant-Q/temperatureEvent"]  # noqa: N806
        assert (P.mode, [each.name for each in P.modes], sorted(P.moded)) == (
            "eco",
            ["eco", "mid", "fast"],
            ["confidence", "rate"],
        )
        assert P.capabilities["trust"].cost == LevelCost(((1, 0), (2, 2), (3, 5)))
        assert isinstance(Q.capabilities["rate"].cost, Formula)
        assert quality.actions[0].cost == ConstantCost(0.1)
        assert quality.strategy_for("cpuEvent") == Strategy(name="utility", budget=50)
        assert quality.strategy_for("temperatureEvent") == Strategy()
        states = {id: match(each, (P, Q)).state for id, each in quality.expectations.items()}
        assert states == {"M1": Satisfaction.SATISFIABLE, "M2": Satisfaction.SATISFIED}

    @pytest.mark.parametrize(
        ("written", "lb", "ub"),
        [
            ("rate: {lb: 300/h, ub: 1 Hz}", 5, 60),
            ("rate: {lb: 1, ub: 2, unit: Hz}", 60, 120),
            ("freshness: {ub: 500 ms}", 0, 0.5),
            ("latency: {ub: 2 s}", 0, 2000),
            ("completeness: {lb: 95 %}", 0.95, 1),
            ("confidence: {lb: 80 %}", 80, 100),
            ("order: {lb: source}", 1, 2),
        ],
    )
    def test_values_are_in_the_unit_of_the_property(self, tmp_path: Path, written: str, lb: float, ub: float) -> None:
        (found,) = right(tmp_path, need(written)).expectations["E"].needs.values()
        assert (found.lb, found.ub) == (lb, ub)

    @pytest.mark.parametrize(
        "written", ["imprecision: {of: temperature, ub: 0.5}", "imprecision of temperature: {ub: 0.5 K}"]
    )
    def test_an_imprecision_is_that_of_an_attribute_in_its_unit(self, tmp_path: Path, written: str) -> None:
        needs = right(tmp_path, need(written)).expectations["E"].needs
        found = needs["imprecision of temperature"]
        assert (found.about.of, found.about.unit, found.floor) == ("temperature", "delta_degC", 0.5)

    def test_each_attribute_is_a_property_of_its_own(self, tmp_path: Path) -> None:
        written = "imprecision of temperature: {ub: 1}, imprecision of count: {ub: 2}"
        assert len(right(tmp_path, need(written)).expectations["E"].needs) == 2

    def test_options_of_needs(self, tmp_path: Path) -> None:
        written = (
            "rate: {lb: 5, per: node, across: true, keep: best}, freshness: {ub: 5, each: true, missing: keep}, "
            "imprecision: {of: temperature, ub: 30, max_silence: 1 min, per_key: {node7: 5}, per: node}"
        )
        rate, freshness, imprecision = right(tmp_path, need(written)).expectations["E"].needs.values()
        assert (rate.per, rate.across, rate.keep) == ("node", True, "best")
        assert (freshness.each, freshness.keep_missing) == (True, True)
        assert (imprecision.max_silence, dict(imprecision.per_key), imprecision.per) == (MINUTE, {"node7": 5}, "node")

    def test_options_of_expectations(self, tmp_path: Path) -> None:
        text = (
            "expectations: [{subscription: monitor/temperature, id: E, need: {rate: {lb: 5}}, sources: selected, "
            "else: nothing, from: 2, aggregate: {fn: avg, of: temperature, window: 60 s}}]\n"
        )
        found = right(tmp_path, text).expectations["E"]
        assert (found.selected, found.otherwise_nothing, found.publishers) == (True, True, 2)
        assert found.aggregate == Aggregate(function="avg", attribute="temperature", window=MINUTE, every=MINUTE // 6)

    def test_properties_of_the_project(self, tmp_path: Path) -> None:
        text = (
            "properties:\n"
            "  noise: {range: [0, null], unit: m, improve: minimise, hop: add, quantum: 0, scale: 9}\n"
            "  rate: {quantum: 5}\n"
            "profiles: [{publisher: plant-P, type: hotEvent, capabilities: {noise: {cv: 3 cm, "
            "cost: {points: [[0, 5], [10 km, 0]]}, ub: 10 km}}}]\n"
        )
        quality = right(tmp_path, text)
        noise = quality.known["noise"]
        assert (noise.hi, noise.maximise, noise.quantum, noise.scale) == (float("inf"), False, 0, 9)
        assert (quality.known["rate"].quantum, quality.known["rate"].exceed) == (5, "shape")
        capability = quality.profiles["plant-P/hotEvent"].capabilities["noise"]
        assert (capability.cv, capability.ub, capability.cost) == (0.03, 10_000, PiecewiseCost(((0, 5), (10_000, 0))))

    def test_files_count_together_in_the_order_of_their_names(self, tmp_path: Path) -> None:
        one = "expectations: [{subscription: monitor/temperature, id: Z, need: {noise: {lb: 1}}}]\n"
        two = "properties: {noise: {range: [0, 5]}}\n" + one.replace("Z", "A")
        checked = check(tmp_path, a=one, b=two)
        assert checked.deployment is not None
        assert list(checked.deployment.quality.expectations) == ["Z", "A"]

    def test_a_sequence_is_an_action(self, tmp_path: Path) -> None:
        text = "actions: [{property: imprecision, direction: up, sequence: [suppress, aggregate]}]\n"
        (action,) = right(tmp_path, text).actions
        assert (action.action, action.steps) == ("suppress then aggregate", ("suppress", "aggregate"))


class TestWarnings:
    @pytest.mark.parametrize(
        ("text", "code", "message"),
        [
            (need(""), "Q201", "`E` needs nothing: it is satisfied as soon as anybody publishes."),
            (
                need("rate: {lb: 100}") + SPEC[SPEC.index("profiles") : SPEC.index("actions")],
                "Q202",
                "No declared profile covers what `E` needs: `rate` 100, the closest reaches 60.",
            ),
            (
                "expectations: [{subscription: montor/temperature, id: E, need: {rate: {lb: 1}}}]\n",
                "Q203",
                "The project has no subscription `montor/temperature`.",
            ),
            (
                "profiles: [{publisher: plant-R, type: hotEvent, capabilities: {rate: {cv: 3}}}]\n",
                "Q203",
                "The project has no client `plant-R`.",
            ),
        ],
    )
    def test_what_is_allowed_and_hardly_meant(self, tmp_path: Path, text: str, code: str, message: str) -> None:
        checked = check(tmp_path, a=text)
        assert checked.deployment is not None
        (problem,) = checked.problems
        assert (problem.code.code, problem.message) == (code, message)


class TestProblems:
    @pytest.mark.parametrize(
        ("code", "marked"),
        [
            ("Q101", need("§rat: {lb: 5}")),
            ("Q102", need("confidence: {lb: 5, ub: §101}")),
            ("Q102", need("order: {lb: §sorce}")),
            ("Q102", need("rate: {lb: §-1}")),
            ("Q103", need("rate: {lb: §10, ub: 5}")),
            ("Q103", need("latency: {lb: §10, ub: 5}")),
            ("Q104", need("rate: {lb: §5 km}")),
            ("Q104", need("latency: {ub: §5/min}")),
            ("Q104", need("rate: {lb: §5, unit: m}")),
            ("INT105", need("rate: {lb: §5 mim}")),
            ("P105", need("rate: {lb: §[5]}")),
            ("P103", need("rate: {§lob: 5}")),
            ("Q117", need("§imprecision: {ub: 5}")),
            ("Q117", need("imprecision: {of: §node, ub: 5}")),
            ("Q117", need("imprecision: {of: §temprature, ub: 5}")),
            ("Q117", need("rate: {of: §temperature, lb: 5}")),
            ("Q118", need("rate: {lb: 5, §each: true}")),
            ("Q118", need("confidence: {lb: 5, §missing: keep}")),
            ("Q118", need("confidence: {lb: 5, §keep: last}")),
            ("Q102", need("imprecision: {of: count, ub: 5, per_key: {a: §6}}")),
            ("P105", need("imprecision: {of: count, ub: 5, max_silence: §0 s}")),
            ("Q105", profile("capabilities: {rate: {lb: 2, ub: 60, cv: §90}}")),
            ("Q106", profile("capabilities: {rate: {lb: 2, ub: 60, cv: 9, cost: §1 / (x - 2)}}")),
            ("Q106", profile("capabilities: {rate: {ub: 60, cv: 9, cost: §y + 1}}")),
            ("Q107", profile("mode: §b, modes: [{name: a, values: {rate: 1}}]")),
            ("Q107", profile("modes: §[{name: a, values: {rate: 1}}]")),
            ("Q107", profile("mode: §a")),
            ("Q107", profile("mode: a, modes: [{name: a, values: {rate: 1}}, {name: §b, values: {confidence: 1}}]")),
            ("Q107", profile("mode: a, modes: [{name: a, values: {rate: 1}}], capabilities: {§rate: {cv: 1}}")),
            ("Q108", profile("capabilities: {§latency: {cv: 5}}")),
            ("Q108", profile("mode: a, modes: [{name: a, values: {§latency: 1}}]")),
            ("Q109", "actions: [{property: rate, direction: down, action: §thinn}]"),
            ("Q109", "actions: [{property: rate, direction: up, action: §thin}]"),
            ("Q109", "actions: [{property: rate, direction: down, sequence: [thin, §suppress]}]"),
            ("Q110", "properties: {a: {levels: [x, y], hop: §add}}"),
            ("Q110", "properties: {a: {range: [0, 1], hop: §add}}"),
            ("Q110", "properties: {a: {range: [-1, 1], hop: §multiply}}"),
            ("Q110", "properties: {a: {range: [0, 1], improve: minimise, hop: §multiply}}"),
            ("Q113", expectation("id: E, from: §0")),
            ("Q113", expectation("id: E, from: §{north: 1}")),
            ("Q114", "properties: {§rate: {unit: 1/s}}"),
            ("Q114", "properties: {§order: {levels: [a, b]}}"),
            ("Q115", "strategy: {default: §parto}"),
            ("P103", "strategy: {default: {name: utility, §lamda: 1}}"),
            ("Q116", "strategy: {§cpEvent: pareto}"),
            ("Q116", "profiles: [{publisher: plant-P, type: §hootEvent}]"),
            ("Q119", "properties: {§a: {}}"),
            ("Q119", "properties: {a: {range: §[5, 1]}}"),
            ("Q119", "properties: {a: {levels: §[x]}}"),
            ("Q119", "properties: {§a: {levels: [x, y], range: [0, 1]}}"),
            ("INT110", "properties: {§a b: {range: [0, 1]}}"),
            ("P105", "expectations: [{subscription: §temperature, id: E}]"),
            ("P104", "expectations: [§{subscription: monitor/temperature}]"),
            ("INT106", expectation("any_of: [{id: E}, {id: §E}]")),
            ("Q117", expectation("id: E, aggregate: {fn: avg, of: §node, window: 1 s}")),
            ("P105", expectation("id: E, aggregate: {fn: avg, of: temperature, window: 1 h, every: §999 ms}")),
            ("Q118", expectation("id: E, sources: any, §else: nothing")),
        ],
    )
    def test_it_is_said_what_is_wrong_and_where(self, tmp_path: Path, code: str, marked: str) -> None:
        """The place is marked with a §."""
        (problem,) = wrong(tmp_path, marked.replace("§", ""))
        assert (problem.code.code, str(problem.location)) == (code, f"quality/a.yaml:1:{marked.index('§') + 1}")
        assert problem.hint or code == "P105"

    def test_who_is_far_from_any_level_is_told_which_there_are(self, tmp_path: Path) -> None:
        (problem,) = wrong(tmp_path, need("order: {lb: by time}"))
        assert problem.hint == "Did you mean `none`, `source` or `total`?"
        (problem,) = wrong(tmp_path, need("order: {lb: sorce}"))
        assert problem.hint == "Did you mean `source`?"

    @pytest.mark.parametrize("number", ["1" + "0" * 350, "-1" + "0" * 350, "1e999 Hz", "9" * 399])
    @pytest.mark.parametrize(
        "text",
        [
            need("rate: {lb: NUMBER}"),
            expectation("id: E, utility: NUMBER"),
            profile("capabilities: {rate: {cv: 1, ub: 2, cost: NUMBER}}"),
            profile("capabilities: {rate: {ub: 1, cv: 1, cost: {points: [[0, NUMBER], [1, 1]]}}}"),
            profile("capabilities: {trust: {ub: low, cv: low, cost: {none: 0, low: NUMBER}}}"),
            profile("mode: a, modes: [{name: a, values: {rate: 1}, cost: NUMBER}]"),
            "properties: {a: {range: [0, NUMBER]}}\n",
            "properties: {a: {range: [0, 1], scale: NUMBER}}\n",
            "strategy: {default: {name: utility, budget: NUMBER}}\n",
        ],
    )
    def test_numbers_that_no_double_holds_are_refused(self, tmp_path: Path, text: str, number: str) -> None:
        marked = text.replace("NUMBER", f"§{number}")
        (problem,) = wrong(tmp_path, marked.replace("§", ""))
        assert problem.location is not None
        assert problem.location.column == marked.index("§") + 1

    def test_who_names_a_property_that_is_wrong_is_told_nothing_more(self, tmp_path: Path) -> None:
        text = (
            "properties: {noise: {levels: [x]}}\n" + need("noise: {lb: x}") + profile("capabilities: {noise: {cv: x}}")
        )
        assert [each.code.code for each in wrong(tmp_path, text)] == ["Q119"]

    def test_all_problems_of_a_folder_are_reported_at_once(self, tmp_path: Path) -> None:
        one = """\
properties:
  trust: {levels: [low]}
  noise: {range: [0, 9], hop: add}
expectations:
  - {subscription: monitor/temperature, id: E, need: {rate: {lb: 10, ub: 5}, cofidence: {lb: 1}}}
  - subscription: monitor/temperature
    any_of:
      - {id: F, need: {latency: {ub: 5 km}, confidence: {ub: 200}}}
      - {id: E, from: -1}
"""
        two = """\
profiles:
  - publisher: plant-P
    type: temperatureEvent
    mode: fast
    modes: [{name: eco, values: {rate: 1}}]
    capabilities:
      rate: {cv: 1}
      confidence: {lb: 80, ub: 90, cv: 95}
      latency: {cv: 1}
      completeness: {lb: 0, cv: 1, cost: 1 - x}
actions:
  - {property: rate, direction: down, action: thn}
strategy: {default: none}
"""
        problems = check(tmp_path, a=one, b=two).errors
        assert places(problems) == [
            "quality/a.yaml:2:19: Q119",
            "quality/a.yaml:3:31: Q110",
            "quality/a.yaml:5:66: Q103",
            "quality/a.yaml:5:78: Q101",
            "quality/a.yaml:8:38: Q104",
            "quality/a.yaml:8:62: Q102",
            "quality/a.yaml:9:14: INT106",
            "quality/a.yaml:9:23: Q113",
            "quality/b.yaml:4:11: Q107",
            "quality/b.yaml:7:7: Q107",
            "quality/b.yaml:8:40: Q105",
            "quality/b.yaml:9:7: Q108",
            "quality/b.yaml:10:42: Q106",
            "quality/b.yaml:12:47: Q109",
            "quality/b.yaml:13:21: Q115",
        ]


def test_a_folder_that_was_checked_is_the_same_from_json(tmp_path: Path) -> None:
    deployment = check(tmp_path, a=SPEC).deployment
    assert deployment is not None
    again = type(deployment).from_json(deployment.as_json())
    assert again.quality == deployment.quality
    assert again.digest == deployment.digest


def test_a_difference_tells_expectations_profiles_and_the_rest_one_by_one(tmp_path: Path) -> None:
    before = check(tmp_path / "before").deployment
    after = check(tmp_path / "after", a=SPEC).deployment
    later = check(tmp_path / "later", a=SPEC.replace("utility: 6,", "utility: 7,")).deployment
    assert before is not None
    assert after is not None
    assert later is not None
    assert [str(each) for each in diff_deployments(before, after)] == [
        "property trust added",
        "expectation M1 added",
        "expectation M2 added",
        "profile plant-P/temperatureEvent added",
        "profile plant-Q/temperatureEvent added",
        "adaptation rate down thin added",
        "strategy cpuEvent added",
        "strategy default added",
    ]
    (change,) = diff_deployments(after, later)
    assert str(change) == "expectation M2 changed"
    assert [(each.part, each.before, each.after) for each in change.details] == [("utility", "6", "7")]


def test_the_example_of_the_page_about_quality_is_what_the_page_says(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs" / "concepts" / "quality.md").read_text()
    quality = right(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])
    P, Q = (quality.profiles[f"plant-{name}/temperatureEvent"] for name in "PQ")  # noqa: N806 - as the page calls them
    M1, M2 = (quality.expectations[name] for name in ("M1", "M2"))  # noqa: N806
    assert [match(each, [P]).state for each in (M1, M2)] == [Satisfaction.SATISFIABLE, Satisfaction.SATISFIABLE]
    assert [match(each, [Q]).state for each in (M1, M2)] == [Satisfaction.UNSATISFIED, Satisfaction.SATISFIED]
    assert [match(each, [P, Q]).state for each in (M1, M2)] == [Satisfaction.SATISFIABLE, Satisfaction.SATISFIED]
    assert [each.name for each in P.modes if M1.is_met_by(each.values)] == ["mid", "fast"]
    assert [(each.about.id, each.current, each.reachable) for each in reasons(M1, [Q])] == [("confidence", 55, 70)]
