"""The harness: named scenarios, variants measured in turns, medians of several repetitions, results as JSON.

Variants of a scenario run interleaved (a, b, c, a, b, c, …), so that a noisy machine disturbs all of them alike and
ratios stay meaningful when absolute figures do not.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.bench import Bench

RESULTS = Path(__file__).parent / "results"
Points = Sequence[tuple[float, float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """What work says of itself, where units over the time of the whole call would not do.

    ``figures`` are further numbers (a percentile, megabytes a second); ``curves`` what the repetition looked like.
    """

    value: float
    figures: Mapping[str, float] = field(default_factory=dict)
    curves: Mapping[str, Points] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way of doing the work: ``work`` does it once and returns how many units were done, or what it measured.

    Where a scenario varies a size, ``point`` is that size, and ``series`` the curve that the variant is a point of.
    """

    name: str
    work: Callable[[], int | Taken]
    point: float | None = None
    series: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plot:
    """How a scenario is drawn: medians over the points of its variants, or the curves that its variants took."""

    x: str
    y: str
    curves: bool = False
    log_x: bool = True
    log_y: bool = False
    figure: str = ""
    """The figure to draw instead of the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is compared, and its goals.

    ``judge`` turns medians into verdicts: of values by the name of the variant, of figures by ``variant: figure``.
    """

    name: str
    title: str
    unit: str
    about: str
    variants: Callable[[Bench], list[Variant]]
    judge: Callable[[dict[str, float]], list[Verdict]] = field(default=lambda medians: [])
    repetitions: int = 7
    warm: bool = True
    """Run each variant once before measuring: caches filled, code compiled."""
    plot: Plot | None = None
    spark: bool = False
    """It uses the Spark session of the run; what is said here is held against what it does."""
    needs: str = ""
    """What it runs that no lock file has, and that is fetched when it runs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A figure with the goal it was measured against; ``met`` is None where there is none."""

    what: str
    value: float
    goal: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one variant gave: a value for each repetition, its figures likewise, the curves of the last one."""

    name: str
    rates: list[float]
    point: float | None
    series: str
    figures: dict[str, list[float]]
    curves: dict[str, list[tuple[float, float]]]

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def medians(self) -> dict[str, float]:
        """Of the value and of all figures."""
        return {self.name: self.median} | {
            f"{self.name}: {figure}": statistics.median(values) for figure, values in self.figures.items()
        }


def measure(scenario: Scenario, bench: Bench, *, say: Callable[[str], None] = lambda text: None) -> dict[str, object]:
    """Run a scenario and return its result as plain data."""
    described = machine()
    with bench.scenario(spark=scenario.spark):
        measured = _run(scenario, bench, say)
        assert bench.used_spark == scenario.spark, f"{scenario.name} is declared with spark=True and uses no session"
    medians: dict[str, float] = {}
    for each in measured:
        medians |= each.medians()
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "about": scenario.about,
        "unit": scenario.unit,
        "machine": described,
        "plot": asdict(scenario.plot) if scenario.plot is not None else None,
        "variants": [{**asdict(each), "median": each.median} for each in measured],
        "verdicts": [asdict(verdict) for verdict in scenario.judge(medians)],
    }


def _run(scenario: Scenario, bench: Bench, say: Callable[[str], None]) -> list[Measured]:
    variants = scenario.variants(bench)
    repetitions = 1 if bench.quick else scenario.repetitions
    taken: dict[str, list[Taken]] = {variant.name: [] for variant in variants}
    assert len(taken) == len(variants), f"variants of {scenario.name} have the same name: {[v.name for v in variants]}"
    if scenario.warm and not bench.quick:
        for variant in variants:
            variant.work()
    for turn in range(repetitions):
        for variant in variants:
            say(f"{scenario.name}: {turn + 1} of {repetitions}, {variant.name}")
            taken[variant.name].append(_take(variant))
    return [_measured(variant, taken[variant.name]) for variant in variants]


def _measured(variant: Variant, taken: list[Taken]) -> Measured:
    return Measured(
        name=variant.name,
        rates=[each.value for each in taken],
        point=variant.point,
        series=variant.series,
        figures={name: [each.figures[name] for each in taken] for name in taken[0].figures},
        curves={name: list(points) for name, points in taken[-1].curves.items()},
    )


def _take(variant: Variant) -> Taken:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        done = variant.work()
        return done if isinstance(done, Taken) else Taken(value=done / (time.perf_counter() - start))
    finally:
        gc.enable()


def machine() -> dict[str, object]:
    """What the figures are measured on, and how busy it is before they are."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "load": os.getloadavg()[0],
    }


def store(result: dict[str, object]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result['scenario']}.json"
    path.write_text(json.dumps(_rounded(result), indent=2, sort_keys=True, ensure_ascii=False) + "\n")
    return path


def _rounded(value: object) -> object:
    """Six digits: more than a measurement has."""
    match value:
        case float():
            return float(f"{value:.6g}")
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list() | tuple():
            return [_rounded(each) for each in value]
    return value


def stored() -> Iterator[dict[str, object]]:
    for path in sorted(RESULTS.glob("*.json")):
        yield json.loads(path.read_text())
