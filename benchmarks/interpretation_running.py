"""Interpretation in runs as users have them: the edge engine end to end, and a change of a context in the middle."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench import Bench
from benchmarks.clients import paced
from benchmarks.edge import latencies
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.interpretation import BEFORE
from benchmarks.running import Client, Pipe, exchange, percentile, situ_run

CONTENT, MEDIATED = "content-based", "mediated"
EDGE, SPARK = "edge", "Spark"
TURNS = 40
RATE = 1_000
LATENCY_RATE = 2_000
TYPES = """
version: 1
types:
  Address: {name: string, specifics: string}
events:
  Shipment: {number: long, sent: long, distance: double m, weight: double kg, address: Address}
"""
CARRIER = """
version: 1
context: carrier
events:
  Load: {number: long, sent: long, distance: double ft, weight: double lb, address: string}
maps: [in: Load -> Shipment]
rules: {in: [Load.address -> to_address]}
functions:
  to_address: string -> Address = struct(split_part(value, '/', 1) AS name, split_part(value, '/', 2) AS specifics)
"""
DESK = """
version: 1
context: desk
types:
  Parts: {name: string, street: optional string, zip: optional string}
events:
  Delivery: {number: long, sent: long, distance: double yd, weight: double g, address: Parts}
maps: [out: Shipment -> Delivery]
rules: {out: [Address -> to_parts]}
functions:
  to_parts: Address -> Parts = struct(value.name AS name,
    kv(value.specifics, 'street') AS street, kv(value.specifics, 'zip') AS zip)
"""
ADDRESS = "N-17/street=Main 3;zip=30834"


def _files(*, situ: str = "") -> dict[str, str]:
    """A project with trucks and desks in contexts of theirs; all other clients are in root."""
    clients = "".join(
        f"  {name}-{turn}: {{context: {context}}}\n"
        for turn in range(TURNS)
        for name, context in (("truck", "carrier"), ("desk", "desk"))
    )
    return {
        "situ.yaml": f"version: 1\nname: bench\n{situ}",
        "types/all.yaml": TYPES,
        "contexts/carrier.yaml": CARRIER,
        "contexts/desk.yaml": DESK,
        "clients/all.yaml": f"version: 1\nclients:\n{clients}",
    }


# ── clients ──


def publish(pipe: Pipe, *, folder: str, client: str, mediated: bool, count: int, rate: float) -> None:
    """Publish so many shipments, or as many as there is time for until told to end; in the carrier's terms or root's.

    Says in the end how many there were.
    """

    async def work() -> None:
        import situ

        type = "Load" if mediated else "Shipment"
        name, specifics = ADDRESS.split("/")
        address: Any = ADDRESS if mediated else {"name": name, "specifics": specifics}
        async with situ.connect(folder, client=client, queue_timeout=120.0) as node:
            await node.advertise(type)
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            began = time.monotonic()
            sent = 0
            async for number in paced(count or sys.maxsize, rate):
                if not count and pipe.poll():
                    break
                sent += 1
                await node.publish_event(
                    type, number=number, sent=time.monotonic_ns(), distance=number / 8, weight=2.5, address=address
                )
            await node.flush()
            pipe.send({"begin": began, "end": time.monotonic(), "sent": sent})

    asyncio.run(work())


def subscribe(pipe: Pipe, *, folder: str, client: str, mediated: bool, count: int) -> None:
    """Take so many shipments by a callback, or as many as it is told; tell when each came, and how old it was."""

    async def work() -> None:
        import situ

        arrivals: list[tuple[int, int]] = []
        numbers: set[int] = set()
        wanted, done = count, asyncio.Event()

        def take(event: Any) -> None:
            arrivals.append((time.monotonic_ns(), event.data["sent"]))
            numbers.add(event.data["number"])
            if len(numbers) == wanted:
                done.set()

        async with situ.connect(folder, client=client) as node:
            type, where = ("Delivery", "distance >= 0 yd") if mediated else ("Shipment", "distance >= 0 m")
            subscription = await node.register_for_events(type, where=where, durable="bench")
            await node.add_listener(subscription, take)
            pipe.send("ready")
            if not count:
                wanted = await asyncio.to_thread(pipe.recv)
            if len(numbers) < wanted:
                await done.wait()
            assert len(arrivals) == wanted, "none twice"
            pipe.send({"end": time.monotonic(), "arrivals": arrivals})

    asyncio.run(work())


@dataclass(frozen=True, slots=True)
class _Run:
    """A run of that project, and the numbers that none of its clients has had."""

    folder: Path
    turns: Iterator[int]


def _run(bench: Bench, engine: str) -> _Run:
    """In a quick run all scenarios have the same: what takes longest is to start it."""

    @contextmanager
    def opened() -> Iterator[_Run]:
        folder = bench.lasting_folder(engine)
        with situ_run(folder, _files(), engine=engine):
            yield _Run(folder, iter(range(TURNS)))

    return bench.share(("interpretation", engine), opened)


def _pair(run: _Run, *, mediated: bool, count: int, rate: float) -> tuple[Client, Client]:
    turn = next(run.turns)
    common: dict[str, Any] = {"folder": str(run.folder), "mediated": mediated, "count": count}
    to, by = ("desk", "truck") if mediated else ("shop", "van")
    receiver = Client(subscribe, client=f"{to}-{turn}", **common)
    return receiver, Client(publish, client=f"{by}-{turn}", rate=rate, **common)


# ── throughput ──


def _throughput_variants(bench: Bench) -> list[Variant]:
    count = bench.some(100_000, 500)

    run = _run(bench, "edge")

    def exchanged(*, mediated: bool) -> Callable[[], Taken]:
        def work() -> Taken:
            received, sent = exchange(*_pair(run, mediated=mediated, count=count, rate=0.0))
            return Taken(value=count / (received["end"] - sent["begin"]))

        return work

    return [Variant(name=name, work=exchanged(mediated=name == MEDIATED)) for name in (CONTENT, MEDIATED)]


def _throughput_verdicts(medians: dict[str, float]) -> list[Verdict]:
    ratio = medians[MEDIATED] / medians[CONTENT]
    return [Verdict(what="edge, mediated against content-based", value=ratio, goal="≥ 0.95", met=ratio >= 0.95)]


# ── latency on Spark ──


def _latency_variants(bench: Bench) -> list[Variant]:
    count = bench.some(30 * LATENCY_RATE, LATENCY_RATE // 4)
    # To start Spark takes longer than all the rest of a quick run.
    run = _run(bench, "edge" if bench.quick else "spark")

    def exchanged(*, mediated: bool) -> Callable[[], Taken]:
        def work() -> Taken:
            received, _ = exchange(*_pair(run, mediated=mediated, count=count, rate=LATENCY_RATE))
            return latencies([(at - sent) / 1e6 for at, sent in received["arrivals"]])

        return work

    if not bench.quick:
        exchanged(mediated=True)()  # Java compiles what is used most
    return [Variant(name=name, work=exchanged(mediated=name == MEDIATED)) for name in (CONTENT, MEDIATED)]


def _latency_verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for figure, key in (("p50", ": p50"), ("p99", "")):
        ratio = medians[MEDIATED + key] / medians[CONTENT + key]
        what = f"Spark at {LATENCY_RATE:,} events/s, {figure}, mediated against content-based"
        verdicts.append(Verdict(what=what, value=ratio, goal="≤ 1.05", met=ratio <= 1.05))
    return verdicts


# ── change ──


def _change_variants(bench: Bench) -> list[Variant]:
    variants = []
    engines = ((EDGE, "edge"), (SPARK, "spark"))
    for name, engine in engines[:1] if bench.quick else engines:  # to start Spark takes longer than all the rest
        variants.append(Variant(name=name, work=_changed(bench, _run(bench, engine))))
    return variants


def _changed(bench: Bench, run: _Run) -> Callable[[], Taken]:
    before, after = bench.some(5, 2), bench.some(15, 1)

    def work() -> Taken:
        receiver, sender = _pair(run, mediated=True, count=0, rate=float(bench.some(RATE, 200)))
        try:
            receiver.hear()
            sender.hear()
            sender.say()
            time.sleep(before)
            changed = _change(run.folder, bench.number())
            time.sleep(after)
            sender.say("end")
            receiver.say(sender.hear()["sent"])
            arrivals = receiver.hear()["arrivals"]
        finally:
            sender.end()
            receiver.end()
        return _around(arrivals, changed)

    return work


def _change(folder: Path, turn: int) -> float:
    """Give the consumers' context another event type, while it is in use; when that was in force."""
    types, desk = folder / "types/all.yaml", folder / "contexts/desk.yaml"
    types.write_text(types.read_text() + f"  More{turn}: {{length: double m, to: Address}}\n")
    text = desk.read_text()
    text = text.replace(
        "maps: [", f"  Much{turn}: {{length: double yd, to: Parts}}\nmaps: [out: More{turn} -> Much{turn}, "
    )
    desk.write_text(text)
    command = [sys.executable, "-m", "situ", "apply", "--project", str(folder), "--quiet"]
    done = subprocess.run(command, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    return time.monotonic()


def _around(arrivals: list[tuple[int, int]], changed: float) -> Taken:
    """The longest time without an event in the two seconds around the change, and latencies before and after."""
    came = [at / 1e9 for at, _ in arrivals]
    gaps = [(came[place], (came[place] - came[place - 1]) * 1000) for place in range(1, len(came))]
    near = [gap for at, gap in gaps if changed - 1 <= at <= changed + 1]
    elsewhere = [gap for at, gap in gaps if at < changed - 1] or [0.0]
    ages = [(at / 1e9, (at - sent) / 1e6) for at, sent in arrivals]
    early = sorted(age for at, age in ages if at < changed - 1)
    late = sorted(age for at, age in ages if at > changed + 1) or early
    curve: dict[int, list[float]] = {}
    for at, age in ages:
        curve.setdefault(round((at - changed) * 10), []).append(age)
    return Taken(
        value=max(near, default=0.0),
        figures={
            "longest before": max(elsewhere),
            "p50 before": percentile(early, 0.5),
            "p50 after 1 s": percentile(late, 0.5),
            "p99 before": percentile(early, 0.99),
            "p99 after 1 s": percentile(late, 0.99),
        },
        curves={"": [(tenth / 10, sorted(each)[len(each) // 2]) for tenth, each in sorted(curve.items())]},
    )


def _change_verdicts(medians: dict[str, float]) -> list[Verdict]:
    verdicts = []
    for name, most in ((EDGE, 50.0), (SPARK, 1_000.0)):
        if name not in medians:  # a quick run has the edge only
            continue
        gap, back = medians[name], medians[f"{name}: p50 after 1 s"] / medians[f"{name}: p50 before"]
        what = f"{name}, longest time without an event around the change, ms"
        verdicts.append(Verdict(what=what, value=gap, goal=f"≤ {most:,.0f}", met=gap <= most))
        what = f"{name}, latency a second after the change against before"
        verdicts.append(Verdict(what=what, value=back, goal="≤ 1.25", met=back <= 1.25))
    return verdicts


SCENARIOS = [
    Scenario(
        name="interpretation-edge",
        title="Interpretation by the edge engine",
        unit="events/s",
        about="100,000 events, from the first publication to the last callback; publisher, engine, bus and subscriber "
        "are processes of their own. *Mediated*: the publisher speaks of feet, pounds and addresses in one text, the "
        "durable subscriber asks and hears in yards, grams and addresses in parts. *Content-based*: the same events, "
        "all in the terms of root. " + BEFORE + "no difference could be measured at the broker.",
        variants=_throughput_variants,
        judge=_throughput_verdicts,
        repetitions=5,
        warm=False,
    ),
    Scenario(
        name="interpretation-latency",
        title="Latency of interpretation on Spark",
        unit="ms (p99)",
        about=f"`situ run` on Spark with the settings it has by default; {LATENCY_RATE:,} events/s for 30 seconds, "
        "from the call that publishes to the callback of a durable subscription with a filter. *Mediated* and "
        "*content-based* as above, in turns in one run.",
        variants=_latency_variants,
        judge=_latency_verdicts,
        repetitions=5,
        warm=False,
        plot=Plot(x="% of the events", y="ms", curves=True, log_x=False),
    ),
    Scenario(
        name="interpretation-change",
        title="Changing a context while events flow",
        unit="ms without an event",
        about=f"{RATE:,} events/s from one context to another. After five seconds `situ apply` gives root another "
        "event type and the consumer's context a type and a mapping for it: a new version of both, compiled and taken "
        "over by the engine. All events come, each once. The value is the longest time without an event in the two "
        "seconds around the moment when the change is in force; on Spark events come in batches, and no more than two "
        "may be missed. " + BEFORE + "latency rises for a moment, most of which is Java compiling and loading classes.",
        variants=_change_variants,
        judge=_change_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(
            x="seconds from the change", y="ms from publication to callback", curves=True, log_x=False, log_y=True
        ),
    ),
]
