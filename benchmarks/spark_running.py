"""A run on Spark as users have it: latency from publication to callback, and memory over time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

from benchmarks.bench import Bench
from benchmarks.clients import publish, subscribe
from benchmarks.edge import latencies, project_files
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, Run, exchange, situ_run

RATES = (500, 2_000)
HEAP = "Java, live"
COLLECTIONS = "collections.log"
_COLLECTION = re.compile(r"^\[([0-9]+)ms\].*Pause Full.* [0-9]+M->([0-9]+)M\(", re.MULTILINE)
KINDS = {"situ": "driver", "java": "Java", "workers": "workers", "bus": "bus"}
_WARM = 0.3
"""The share of a run in which memory may grow: heaps and caches fill."""


def _name(rate: int) -> str:
    return f"{rate:,} events/s"


def _latency_variants(bench: Bench) -> list[Variant]:
    folder = (_shared(bench) if bench.quick else bench.open(_run(bench.folder("spark")))).folder

    def exchanged(rate: int, seconds: int) -> Taken:
        turn = bench.number()
        common = {"folder": str(folder), "type": "Reading", "count": rate * seconds}
        receiver = Client(subscribe, client=f"desk-{turn}", where="number >= 0", durable=True, **common)
        sender = Client(publish, client=f"press-{turn}", rate=float(rate), **common)
        return latencies(exchange(receiver, sender)[0]["ages"])

    def work(rate: int) -> Callable[[], Taken]:
        return lambda: exchanged(rate, bench.some(30, 1))

    if not bench.quick:
        exchanged(RATES[0], 15)  # Java compiles what is used most
    return [Variant(name=_name(rate), work=work(rate)) for rate in RATES]


def _latency_verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(
            what=f"pipeline, p99 from publication to callback at {name}, ms",
            value=medians[name],
            goal="< 600",
            met=medians[name] < 600,
        )
        for name in map(_name, RATES)
    ]


def _run(folder: Path, options: str = "") -> AbstractContextManager[Run]:
    return situ_run(folder, project_files(situ=options), engine="spark")


def _collecting(folder: Path, every: int) -> AbstractContextManager[Run]:
    """A run in which Java looks for garbage thoroughly so often, as it would by itself when its heap is full."""
    log = f"spark.driver.extraJavaOptions: '-Xlog:gc:file={folder / COLLECTIONS}:timemillis'"
    return _run(folder, f"spark: {{conf: {{{log}, spark.cleaner.periodicGC.interval: {every}s}}}}\n")


def _shared(bench: Bench) -> Run:
    """In a quick run both scenarios have the same: what takes longest is to start it."""
    return bench.share("spark", lambda: _collecting(bench.lasting_folder("spark"), every=2))


def _memory_variants(bench: Bench) -> list[Variant]:
    rate, seconds = bench.some(2_000, 200), bench.some(600, 5)

    def work() -> Taken:
        curves: dict[str, list[tuple[float, float]]] = {each: [] for each in KINDS.values()}
        with nullcontext(_shared(bench)) if bench.quick else _collecting(bench.folder("spark"), every=30) as run:
            common = {"folder": str(run.folder), "type": "Reading", "count": rate * seconds}
            receiver = Client(subscribe, client="desk", where="number >= 0", durable=True, **common)
            sender = Client(publish, client="press", rate=float(rate), **common)
            receiver.hear()
            sender.hear()
            sender.say()
            began, at = time.monotonic(), time.time()
            while (passed := time.monotonic() - began) < seconds:
                for kind, name in KINDS.items():
                    curves[name].append((passed / 60, run.figures["memory"].get(kind, 0) / 1e6))
                time.sleep(bench.some(2, 1))
            sender.hear()
            receiver.hear()
            for client in (sender, receiver):
                client.end()
        log = (run.folder / COLLECTIONS).read_text()
        assert _COLLECTION.search(log), "Java has never looked for garbage thoroughly"
        curves[HEAP] = _heap(log, at, seconds)
        steady = {name: [each for each in points if each[0] > _WARM * seconds / 60] for name, points in curves.items()}
        growth = {f"{name}, MB/min": slope(points) for name, points in steady.items()}
        sizes = {f"{name}, MB": points[-1][1] if points else 0.0 for name, points in steady.items()}
        total = sum(size for name, size in sizes.items() if not name.startswith(HEAP))
        return Taken(value=total, figures={**sizes, **growth}, curves=curves)

    return [Variant(name=_name(2_000), work=work)]


def _heap(log: str, began: float, seconds: float) -> list[tuple[float, float]]:
    """What was left of Java's heap after each thorough collection, in megabytes, by minutes."""
    found = [(int(at) / 1000 - began, float(left) * 1.048576) for at, left in _COLLECTION.findall(log)]
    return [(at / 60, left) for at, left in found if 0 <= at <= seconds]


def slope(points: list[tuple[float, float]]) -> float:
    """Of the line that fits these points best."""
    if not points:
        return 0.0
    middle_x = sum(x for x, _ in points) / len(points)
    middle_y = sum(y for _, y in points) / len(points)
    across = sum((x - middle_x) ** 2 for x, _ in points)
    return sum((x - middle_x) * (y - middle_y) for x, y in points) / across if across else 0.0


def _memory_verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for name in ("driver", HEAP, "workers", "bus"):
        key = f"{_name(2_000)}: {name}, MB"
        share = 100 * medians[f"{key}/min"] / max(medians[key], 1.0)
        what = f"memory, growth of {name} in % a minute"
        verdicts.append(Verdict(what=what, value=share, goal="≤ 1", met=share <= 1))
    return verdicts


SCENARIOS = [
    Scenario(
        name="spark-latency",
        title="Latency of the pipeline on Spark",
        unit="ms (p99)",
        about="`situ run` with the settings it has by default; from the call that publishes to the callback of a "
        "durable subscription with a filter, for 30 seconds, all in processes of their own on the same cores.",
        variants=_latency_variants,
        judge=_latency_verdicts,
        repetitions=2,
        warm=False,
        plot=Plot(x="% of the events", y="ms", curves=True, log_x=False),
    ),
    Scenario(
        name="memory",
        title="Memory over ten minutes",
        unit="MB in the end",
        about="`situ run` on Spark at 2,000 events/s with a durable subscriber. Growth is the slope of the line "
        "through the last 70 % of the time. The *driver* holds router and engine, *workers* are Spark's Python "
        "processes, the *bus* is the embedded server. Java takes what its heap may have (2 GiB) before it cleans up "
        "thoroughly; here it is told to every 30 s, and *Java, live* is what is left of the heap then.",
        variants=_memory_variants,
        judge=_memory_verdicts,
        repetitions=1,
        warm=False,
        plot=Plot(x="minutes", y="MB", curves=True, log_x=False),
    ),
]
