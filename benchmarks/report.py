"""docs/benchmarks.md, written from the stored results: no figure in the documentation is typed by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.harness import stored

_HEAD = """# Benchmarks

Generated from `benchmarks/results/` by `make bench`; figures are medians of several repetitions, variants measured in
turns in one run. Compare ratios: absolute figures belong to the machine they were measured on.
"""


def write_page(path: Path) -> None:
    results = list(stored())
    path.write_text(_HEAD + "".join(_section(result) for result in results))


def _section(result: dict[str, Any]) -> str:
    machine = result["machine"]
    lines = [f"\n## {result['title']}\n", result["about"] + "\n", *_rates(result)]
    if result["verdicts"]:
        lines += ["", "| figure | measured | goal | met |", "| --- | ---: | --- | --- |"]
        lines += [
            f"| {v['what']} | {v['value']:,.2f} | {v['goal']} | {'yes' if v['met'] else 'no'} |"
            for v in result["verdicts"]
        ]
    lines.append(
        f"\n`python -m benchmarks {result['scenario']}` · {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Python {machine['python']}, {machine['system']}\n"
    )
    return "\n".join(lines)


def _rates(result: dict[str, Any]) -> list[str]:
    rows = [f"| variant | {result['unit']} | lowest – highest |", "| --- | ---: | ---: |"]
    for variant in result["variants"]:
        low, high = min(variant["rates"]), max(variant["rates"])
        rows.append(f"| {variant['name']} | {variant['median']:,.0f} | {low:,.0f} – {high:,.0f} |")
    return rows
