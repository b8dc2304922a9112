"""Advice from end to end: from the call that registers an expectation until a publisher follows it."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import situ
from benchmarks.bench import Bench
from benchmarks.edge import latencies
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, Pipe, percentile, situ_run
from situ.client.capabilities import ReactionManager
from situ.quality.negotiation.feedback import Advice

SITU = "Situ"
GOAL = 26.0
_PAUSE = 0.03


def files(count: int) -> dict[str, str]:
    """One type, one publication and one subscription for each expectation: nobody is advised twice in a second."""
    events = "".join(f"  Reading{number}: {{value: double}}\n" for number in range(count))
    ads = "".join(f"      a{number}: {{type: Reading{number}}}\n" for number in range(count))
    subs = "".join(f"      s{number}: {{types: [Reading{number}], durable: true}}\n" for number in range(count))
    clients = f"clients:\n  press:\n    advertisements:\n{ads}  desk:\n    subscriptions:\n{subs}"
    return {
        "situ.yaml": "version: 1\nname: bench\n",
        "types/all.yaml": f"version: 1\nevents:\n{events}",
        "clients/all.yaml": f"version: 1\n{clients}",
    }


def publisher(pipe: Pipe, folder: str, count: int) -> None:
    """Follows advice at once, and says when it did."""

    async def main() -> None:
        followed: dict[str, float] = {}
        done = asyncio.Event()

        async def adapt(advice: Advice) -> None:
            followed[advice.profile] = time.monotonic()
            if len(followed) == count:
                done.set()

        async with situ.connect(folder, client="press") as node:
            rate: Any = {"rate": {"lb": 1, "ub": 60, "cv": 1, "cost": "0.1 * x"}}
            for number in range(count):
                await node.capabilities.register(f"Reading{number}", rate)
            ReactionManager(node.capabilities, adapt)
            pipe.send("ready")
            async with asyncio.timeout(240):
                await done.wait()
            pipe.send(followed)

    asyncio.run(main())


def subscriber(pipe: Pipe, folder: str, count: int) -> None:
    """Registers one expectation after the other, and says when it began with each."""

    async def main() -> None:
        begun: dict[str, float] = {}
        async with situ.connect(folder, client="desk") as node:
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            for number in range(count):
                begun[f"press/Reading{number}"] = time.monotonic()
                await node.expectations.register(f"s{number}", {"rate": {"lb": 5, "ub": 10}}, id=f"e{number}")
                await asyncio.sleep(_PAUSE)
            pipe.send(begun)
            await asyncio.to_thread(pipe.recv)

    asyncio.run(main())


def _variants(bench: Bench) -> list[Variant]:
    count = bench.some(200, 5)

    def work() -> Taken:
        folder = bench.folder("advice")
        with situ_run(folder, files(count), engine="edge"):
            press = Client(publisher, folder=str(folder), count=count)
            press.hear()
            desk = Client(subscriber, folder=str(folder), count=count)
            try:
                desk.hear()
                desk.say()
                begun, followed = desk.hear(), press.hear()
                desk.say()
            finally:
                desk.end()
                press.end()
        ages = sorted(1000 * (followed[id] - begun[id]) for id in begun)
        taken = latencies(ages)
        figures = {"p50": percentile(ages, 0.5), "p99": percentile(ages, 0.99), "highest": ages[-1]}
        return Taken(value=percentile(ages, 0.95), figures=figures, curves=taken.curves)

    return [Variant(name=SITU, work=work)]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    what = "p95 from register() to the publisher's `adapt` called and `accepted` received, ms"
    return [Verdict(what=what, value=medians[SITU], goal=f"< {GOAL:g}", met=medians[SITU] < GOAL)]


SCENARIOS = [
    Scenario(
        name="quality-advice",
        title="Advice from end to end",
        unit="ms (p95)",
        about="200 expectations, one after the other, each of which a publisher has to be advised for. From the call "
        "that registers one to the call of the publisher's `adapt`, which does nothing; by then the router has the "
        "answer `accepted`, and has written it down. Edge engine and embedded bus; publisher, subscriber, router and "
        "bus are processes of their own.",
        variants=_variants,
        judge=_verdicts,
        repetitions=5,
        warm=False,
        plot=Plot(x="% of the advices", y="ms", curves=True, log_x=False, log_y=True),
    ),
]
