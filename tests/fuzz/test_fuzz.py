"""Fuzzing: so many inputs for each target in every run, an hour at length. A finding prints the input that shows it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.policies import OF_THE_LITERATURE

_EXAMPLE = Path(__file__).parents[2] / "examples" / "smart-building"
_EVENT = (
    b'{"specversion":"1.0","id":"1","source":"a/b","type":"Row","time":"2026-11-01T12:00:00Z","confidence":"80 %",'
    b'"data":{"b":true,"i":1,"l":2,"d":1.5,"m":2,"t":21,"dec":"1.25","s":"x","date":"2026-11-01","ts":'
    b'"2026-11-01T12:00:00+01:00","dur":"PT5S","at":{"x":1,"y":2},"lines":[{"qty":1,"sku":"a","tags":["b"]}]}}'
)
_OPTIONS = "policy p\nwindow 5 s\nlateness 1 s\nhold 2 s\nconsumption all\n"
SEEDS = {
    "expressions": (b"\1at.x < 5 m AND s LIKE 'a%' OR exists(lines, x -> x.qty > 3)", b"\1round(d * 1.09, 2) / l_ > 3"),
    "documents": tuple(path.read_bytes() for path in sorted(_EXAMPLE.rglob("*.yaml"))),
    "policies": tuple(f"{options}{text}".encode() for text in OF_THE_LITERATURE.values() for options in ("", _OPTIONS)),
    "events": (_EVENT, b"[\n" + _EVENT + b",\n" + _EVENT + b"\n]"),
}
TARGETS = tuple(SEEDS)
INPUTS = {"expressions": 2000, "documents": 1500, "policies": 500, "events": 4000}
"""About a second each, when all is loaded."""


def run(target: str, seconds: int, folder: Path, *options: str) -> None:
    corpus = folder / "corpus"
    corpus.mkdir()
    for place, seed in enumerate(SEEDS[target]):
        (corpus / str(place)).write_bytes(b"\0" + seed)  # the first byte chooses raw input over made-up pieces
    command = [
        sys.executable, str(Path(__file__).parent / f"fuzz_{target}.py"), f"-max_total_time={seconds}", "-timeout=30",
        "-rss_limit_mb=2048", "-max_len=4096", "-len_control=0", "-print_final_stats=1", *options,
        f"-artifact_prefix={folder}/", str(corpus),
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=seconds + 120, check=False)
    findings = [path.read_bytes() for path in folder.iterdir() if path.is_file()]
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-5000:]}\ninput: {findings}"
    assert "stat::number_of_executed_units" in done.stderr, done.stderr[-2000:]


@pytest.mark.parametrize("target", TARGETS)
def test_any_input_gives_a_result_or_one_of_our_errors(target: str, tmp_path: Path) -> None:
    # The same inputs each time: a failure is a change, not a draw of luck.
    run(target, 300, tmp_path, "-seed=7", f"-runs={INPUTS[target]}")


@pytest.mark.soak
@pytest.mark.parametrize("target", TARGETS)
def test_any_input_gives_a_result_or_one_of_our_errors_at_length(target: str, tmp_path: Path) -> None:
    run(target, 1200, tmp_path)
