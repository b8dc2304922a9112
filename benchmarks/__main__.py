"""``python -m benchmarks [NAME …] [--quick] [--list] [--page]``: measure, store, and write docs/benchmarks.md."""

from __future__ import annotations

import argparse
import signal
import sys
from pathlib import Path

from benchmarks import (
    archive_backfill,
    decode,
    edge,
    expressions,
    folder,
    interpretation,
    interpretation_running,
    interpretation_spark,
    kafka_latency,
    matching,
    nexmark,
    pipeline,
    quality,
    quality_advice,
    quality_spark,
    scale,
    simulator,
    situation_bus,
    situation_enrichment,
    situation_esper,
    situation_flink,
    situation_kernel,
    situation_latency,
    situation_many,
    situation_operator,
    situation_spark,
    spark_running,
    visibility,
    visibility_at_work,
    visibility_spark,
)
from benchmarks.bench import Bench
from benchmarks.harness import Scenario, measure, store
from benchmarks.report import write_page

SCENARIOS: list[Scenario] = [
    *pipeline.SCENARIOS,
    *edge.SCENARIOS,
    *spark_running.SCENARIOS,
    *kafka_latency.SCENARIOS,
    *scale.SCENARIOS,
    *expressions.SCENARIOS,
    *folder.SCENARIOS,
    *simulator.SCENARIOS,
    *decode.SCENARIOS,
    *matching.SCENARIOS,
    *interpretation.SCENARIOS,
    *interpretation_spark.SCENARIOS,
    *interpretation_running.SCENARIOS,
    *situation_enrichment.SCENARIOS,
    *situation_kernel.SCENARIOS,
    *situation_latency.SCENARIOS,
    *situation_operator.SCENARIOS,
    *situation_many.SCENARIOS,
    *nexmark.SCENARIOS,
    *visibility.SCENARIOS,
    *visibility_at_work.SCENARIOS,
    *visibility_spark.SCENARIOS,
    *quality.SCENARIOS,
    *quality_advice.SCENARIOS,
    *quality_spark.SCENARIOS,
    *archive_backfill.SCENARIOS,
    *situation_spark.SCENARIOS,
    *situation_bus.SCENARIOS,
    *situation_esper.SCENARIOS,
    *situation_flink.SCENARIOS,
]
ORDER = [scenario.name for scenario in SCENARIOS]
PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
IMAGES = PAGE.parent / "images"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="scenarios to run (default: all)")
    parser.add_argument("--quick", action="store_true", help="small, once, nothing stored: does it run at all?")
    parser.add_argument("--list", action="store_true", help="name the scenarios")
    parser.add_argument("--page", action="store_true", help="measure nothing, write the page of what is stored")
    options = parser.parse_args()
    known = {scenario.name: scenario for scenario in SCENARIOS}
    if options.list:
        for scenario in SCENARIOS:
            print(f"{scenario.name:26} {scenario.title}{f' (needs {scenario.needs})' if scenario.needs else ''}")
        return 0
    if unknown := [name for name in options.names if name not in known]:
        print(f"unknown: {', '.join(unknown)}; --list shows what there is", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # what was started is ended
    with Bench(quick=options.quick) as bench:
        for name in () if options.page else options.names or known:
            result = measure(known[name], bench, say=_progress)
            _show(result)
            if not options.quick:
                store(result)
    if not options.quick:
        write_page(PAGE, ORDER, IMAGES)
        print(f"written: {PAGE}")
    return 0


def _progress(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:60}", end="", file=sys.stderr, flush=True)


def _show(result: dict[str, object]) -> None:
    print(f"\n{result['title']}")
    for variant in result["variants"]:  # type: ignore[attr-defined]
        print(f"  {variant['name']:34} {variant['median']:>16,.0f} {result['unit']}")
    for verdict in result["verdicts"]:  # type: ignore[attr-defined]
        met = {True: "met", False: "NOT MET", None: ""}[verdict["met"]]
        print(f"  {verdict['what']}: {verdict['value']:.2f} (goal {verdict['goal'] or '–'}) {met}")


if __name__ == "__main__":
    sys.exit(main())
