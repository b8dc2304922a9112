"""The benchmark harness: what it computes, and that the page in the documentation is that of the stored results."""

from __future__ import annotations

from pathlib import Path

from benchmarks.__main__ import IMAGES, ORDER, PAGE
from benchmarks.bench import Bench
from benchmarks.building_events import project_files
from benchmarks.harness import RESULTS, Plot, Scenario, Taken, Variant, Verdict, measure
from benchmarks.plots import draw
from benchmarks.report import write_page
from situ.project.check import check_folder
from tests.project_files import write


def scenario() -> Scenario:
    values = iter((5.0, 1.0, 3.0))

    def work() -> Taken:
        value = next(values)
        return Taken(value=value, figures={"double": 2 * value}, curves={"": [(0.0, value), (1.0, value)]})

    return Scenario(
        name="numbers",
        title="Numbers",
        unit="ms",
        about="Three numbers.",
        variants=lambda bench: [Variant(name="a", work=work, point=1.0)],
        judge=lambda medians: [
            Verdict(what="double", value=medians["a: double"], goal="≤ 6", met=medians["a: double"] <= 6)
        ],
        repetitions=3,
        warm=False,
        plot=Plot(x="x", y="y", curves=True),
    )


def test_verdicts_are_on_medians_and_curves_are_those_of_the_last_repetition() -> None:
    with Bench() as bench:
        result = measure(scenario(), bench)
    (variant,) = result["variants"]  # type: ignore[misc]
    assert (variant["rates"], variant["median"]) == ([5.0, 1.0, 3.0], 3.0)
    assert variant["curves"] == {"": [(0.0, 3.0), (1.0, 3.0)]}
    assert result["verdicts"] == [{"what": "double", "value": 6.0, "goal": "≤ 6", "met": True}]


def test_variants_take_turns() -> None:
    calls: list[str] = []

    def variant(name: str) -> Variant:
        def work() -> int:
            calls.append(name)
            return 1

        return Variant(name=name, work=work)

    turns = Scenario(
        name="turns",
        title="",
        unit="",
        about="",
        variants=lambda bench: [variant("a"), variant("b")],
        repetitions=2,
        warm=False,
    )
    with Bench() as bench:
        measure(turns, bench)
    assert calls == ["a", "b", "a", "b"]


def test_what_a_scenario_opens_is_closed_at_its_end() -> None:
    made: list[Path] = []

    def variants(bench: Bench) -> list[Variant]:
        made.append(bench.folder("x"))
        return [Variant(name="a", work=lambda: int(made[0].is_dir()))]

    with Bench() as bench:
        result = measure(Scenario(name="f", title="", unit="", about="", variants=variants, repetitions=1), bench)
    assert result["variants"][0]["median"] > 0  # type: ignore[index]
    assert not made[0].exists()


def test_a_plot_is_the_same_whenever_it_is_drawn(tmp_path: Path) -> None:
    with Bench() as bench:
        result = measure(scenario(), bench)
    first, second = (draw(result, tmp_path / each) for each in ("a", "b"))
    assert first is not None
    assert second is not None
    assert first.read_bytes() == second.read_bytes()


def test_the_page_is_that_of_the_results(tmp_path: Path) -> None:
    write_page(tmp_path / "benchmarks.md", ORDER, tmp_path / "images")
    assert PAGE.read_text() == (tmp_path / "benchmarks.md").read_text()
    drawn = {path.name for path in (tmp_path / "images").glob("*.svg")}
    assert drawn == {path.name for path in IMAGES.glob("bench-*.svg")}
    assert {path.stem for path in RESULTS.glob("*.json")} <= set(ORDER)


def test_the_projects_of_the_pipeline_are_in_order(tmp_path: Path) -> None:
    """They are made of the example, which may come to declare what benchmarks leave out."""
    checked = check_folder(write(tmp_path, project_files()))
    assert not checked.errors
