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
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way of doing the work: ``work`` does it once and returns how many units of it were done."""

    name: str
    work: Callable[[], int]
    point: float | None = None  # where on a curve it lies, for scenarios that vary a size


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """What is compared, and its goals. ``judge`` turns medians (units a second, by variant) into verdicts."""

    name: str
    title: str
    unit: str
    about: str
    variants: Callable[[], list[Variant]]
    judge: Callable[[dict[str, float]], list[Verdict]] = field(default=lambda medians: [])
    repetitions: int = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """A figure with the goal it was measured against."""

    what: str
    value: float
    goal: str
    met: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """The rates of one variant, in units a second, one for each repetition."""

    name: str
    rates: list[float]
    point: float | None

    @property
    def median(self) -> float:
        return statistics.median(self.rates)


def measure(
    scenario: Scenario, *, quick: bool = False, say: Callable[[str], None] = lambda text: None
) -> dict[str, object]:
    """Run a scenario and return its result as plain data."""
    variants = scenario.variants()
    repetitions = 2 if quick else scenario.repetitions
    rates: dict[str, list[float]] = {variant.name: [] for variant in variants}
    for variant in variants:
        variant.work()  # warm: caches filled, code compiled
    for turn in range(repetitions):
        say(f"{scenario.name}: {turn + 1} of {repetitions}")
        for variant in variants:
            rates[variant.name].append(_rate(variant))
    measured = [Measured(name=v.name, rates=rates[v.name], point=v.point) for v in variants]
    medians = {m.name: m.median for m in measured}
    return {
        "scenario": scenario.name,
        "title": scenario.title,
        "about": scenario.about,
        "unit": scenario.unit,
        "machine": machine(),
        "variants": [{**asdict(m), "median": m.median} for m in measured],
        "verdicts": [asdict(verdict) for verdict in scenario.judge(medians)],
    }


def _rate(variant: Variant) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.perf_counter()
        done = variant.work()
        return done / (time.perf_counter() - start)
    finally:
        gc.enable()


def machine() -> dict[str, object]:
    """What the figures were measured on."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
    }


def store(result: dict[str, object]) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{result['scenario']}.json"
    path.write_text(json.dumps(result, indent=2, sort_keys=True) + "\n")
    return path


def stored() -> Iterator[dict[str, object]]:
    for path in sorted(RESULTS.glob("*.json")):
        yield json.loads(path.read_text())
