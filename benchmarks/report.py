"""docs/benchmarks.md, written from the stored results: no figure in the documentation is typed by hand."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import stored
from benchmarks.plots import draw

_HEAD = """# Benchmarks

Generated from `benchmarks/results/` by `make bench`; figures are medians of several repetitions, variants measured in
turns in one run. Compare ratios: absolute figures belong to the machine they were measured on.
[How to run them](internals/benchmarking.md) says more.
"""
_GOALS = """
## Goals

| figure | measured | goal | met |
| --- | ---: | --- | --- |
"""


def write_page(path: Path, order: Sequence[str], images: Path) -> None:
    """The page of all stored results, in this order of their scenarios; their plots into the folder of images."""
    results: dict[str, dict[str, Any]] = {str(each["scenario"]): each for each in stored()}
    sorted_ = [results[name] for name in order if name in results]
    goals = "".join(_goal(result, verdict) for result in sorted_ for verdict in result["verdicts"])
    path.write_text(_HEAD + _GOALS + goals + "".join(_section(result, images) for result in sorted_))


def _goal(result: dict[str, Any], verdict: dict[str, Any]) -> str:
    linked = {**verdict, "what": f"[{verdict['what']}](#{result['scenario']})"}
    return _verdict(linked) + "\n"


def _verdict(verdict: dict[str, Any]) -> str:
    met = {True: "yes", False: "**no**", None: "–"}[verdict["met"]]
    return f"| {verdict['what']} | {_number(verdict['value'])} | {verdict['goal'] or '–'} | {met} |"


def _section(result: dict[str, Any], images: Path) -> str:
    machine = result["machine"]
    lines = [f"\n## {result['title']} {{#{result['scenario']}}}\n", result["about"] + "\n"]
    picture = draw(result, images)
    if picture is not None:
        lines.append(f"![{result['title']}](images/{picture.name})\n")
    lines += _table(result)
    if result["verdicts"]:
        lines += ["", "| figure | measured | goal | met |", "| --- | ---: | --- | --- |"]
        lines += map(_verdict, result["verdicts"])
    lines.append(
        f"\n`python -m benchmarks {result['scenario']}` · {machine['cores']} cores, {machine['memory_gib']} GiB, "
        f"Python {machine['python']}, {machine['system']}{_busy(machine)}\n"
    )
    return "\n".join(lines)


def _busy(machine: dict[str, Any]) -> str:
    """A machine that has other things to do makes figures that are worth less; the reader should know."""
    load = machine.get("load", 0.0)
    return f" · **the machine was busy with other things** (load {load:.1f})" if load > machine["cores"] else ""


def _table(result: dict[str, Any]) -> list[str]:
    variants = result["variants"]
    figures = list(dict.fromkeys(name for variant in variants for name in variant["figures"]))
    heads = ["variant", result["unit"], *(["lowest – highest"] if len(variants[0]["rates"]) > 1 else []), *figures]
    rows = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for variant in variants:
        cells = [variant["name"], _number(variant["median"])]
        if len(variant["rates"]) > 1:
            cells.append(f"{_number(min(variant['rates']))} – {_number(max(variant['rates']))}")
        for name in figures:
            values = variant["figures"].get(name)
            cells.append(_number(statistics.median(values)) if values else "")
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:,.1f}" if abs(value) >= 10 else f"{value:,.2f}"
