"""The simulator: how fast it makes events, for benchmarks that must not measure it instead of Situ."""

from __future__ import annotations

from datetime import timedelta

from simulator import example_building, simulate

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Variant, Verdict

GOALS = {"JSON lines": 300_000.0, "Arrow columns": 2_000_000.0}


def _variants(bench: Bench) -> list[Variant]:
    building, lasting = example_building(), timedelta(minutes=bench.some(10, 1))

    def lines() -> int:
        run = simulate(building, seed=7, duration=lasting)
        return sum(chunk.count(b"\n") for chunk in run.json_lines())

    def columns() -> int:
        run = simulate(building, seed=7, duration=lasting)
        return sum(batch.num_rows for batch in run.batches())

    return [Variant(name="JSON lines", work=lines), Variant(name="Arrow columns", work=columns)]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(what=f"{name}, events a second", value=medians[name], goal=f"≥ {goal:,.0f}", met=medians[name] >= goal)
        for name, goal in GOALS.items()
    ]


SCENARIOS = [
    Scenario(
        name="simulator",
        title="Making events: the smart-building simulator",
        unit="events/s",
        about="Forty people walking for ten minutes of event time: CloudEvents in JSON lines, Arrow columns; one core.",
        variants=_variants,
        judge=_verdicts,
        repetitions=5,
    )
]
