"""``scripts/compare_benchmarks.py FOLDER NAME …``: benchmarks of this clone and of another one, in turns.

What a machine does beside changes from minute to minute, so both clones are measured alternately in one run: this one
first in odd rounds, the other one first in even ones. For each variant it prints the best and the median of both, and
the ratio of the best: noise only ever makes a run slower. Results go to `benchmarks/results` of each clone; those of
this one are put back at the end.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
Figures = dict[str, list[float]]
"""By variant, a figure for each repetition of each round."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="scripts/compare_benchmarks.py", description=__doc__)
    parser.add_argument("folder", type=Path, help="the other clone; the interpreter of this one runs both")
    parser.add_argument("names", nargs="+", metavar="NAME", help="scenarios, as `python -m benchmarks --list` has them")
    parser.add_argument("--rounds", type=int, default=2, help="how often each clone has a turn (default: %(default)s)")
    options = parser.parse_args(arguments)
    for name in options.names:
        _show(name, *_compare(name, options.folder.resolve(), options.rounds))
    return 0


def _compare(name: str, other: Path, rounds: int) -> tuple[Figures, Figures, str]:
    """What both clones came to, and in which unit."""
    mine: Figures = {}
    others: Figures = {}
    unit = ""
    for turn in range(rounds):
        order = [(HERE, mine), (other, others)]
        for clone, figures in order if turn % 2 == 0 else order[::-1]:
            unit = _take(name, clone, figures)
    return mine, others, unit


def _take(name: str, clone: Path, figures: Figures) -> str:
    stored = clone / "benchmarks" / "results" / f"{name}.json"
    before = stored.read_bytes() if stored.exists() else None
    page = clone / "docs" / "benchmarks.md"
    pages = page.read_bytes()
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(clone), str(clone / "src")])}
    try:
        subprocess.run([sys.executable, "-m", "benchmarks", name], cwd=clone, env=environment, check=True)
        result = json.loads(stored.read_text())
    finally:
        page.write_bytes(pages)
        if before is not None:
            stored.write_bytes(before)
    for variant in result["variants"]:
        figures.setdefault(variant["name"], []).extend(variant["rates"])
    return str(result["unit"])


def _show(name: str, mine: Figures, others: Figures, unit: str) -> None:
    # A unit of time is better when it is less; all others are rates.
    best = min if unit.split(",")[0].split(" ")[0] in ("ms", "µs", "ns", "s", "MB", "MiB") else max
    print(f"\n{name}, {unit}: this clone best/median · the other best/median · ratio of the best")
    for variant, found in mine.items():
        there = others.get(variant)
        if there is None:
            print(f"  {variant:44} only here")
            continue
        ratio = best(found) / best(there)
        one, two = (f"{best(each):,.4g} / {statistics.median(each):,.4g}" for each in (found, there))
        print(f"  {variant:44} {one} · {two} · {ratio:.3f}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
