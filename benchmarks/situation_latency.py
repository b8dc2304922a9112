"""The edge engine's detection latency: from the instant a situation may be told to the subscriber who is told.

When that instant is, a policy says itself: at the event that completes it, or a window later if something must stay
away, and the lateness that is granted on top. What is measured begins there.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from benchmarks.bench import Bench
from benchmarks.clients import paced
from benchmarks.edge import latencies
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.running import Client, Pipe, exchange, situ_run
from situ.lang.records import replace

RATE = 2_000
EVERY = 50
"""One event of so many is somebody who enters the lab: so many situations a second are told, and closed later."""
PASSERS = 100
"""Persons that all other events are about, out in the hall."""
WARM = 2
"""Seconds at the beginning that are not counted: what is used for the first time is compiled and loaded."""

_INSIDE = "in the engine, p99"
_ONTOLOGY = """
concepts:
  person: {id: string, role: string, position: Point m}
  room: {id: string, security: string, area: Box m}
relationships:
  inside: {between: [person.position, room.area], function: inside}
  within:
    between: [person.position, person.position]
    function: within
    parameter: {name: distance, unit: m}
    symmetric: true
"""
_HEAD = """policy entered
window 1 s
concepts
  person A (role = 'visitor')
  room R (security = 'restricted')
"""
_TAIL = "actions\n  raise alarm\n"
_PRESENT = f"{_HEAD}conditions\n  A is inside R\n{_TAIL}"
_ABSENT = f"{_HEAD}  person B (role = 'employee')\nconditions\n  A is inside R\n  A is not within 5 m of B\n{_TAIL}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A policy, and how long after the event that completes a situation it may be told, by definition."""

    name: str
    policy: str
    lateness: float
    waits: float


CASES = (
    Case(name="at the event", policy=_PRESENT, lateness=0.0, waits=0.0),
    Case(name="lateness of 200 ms, beyond it", policy=_PRESENT, lateness=0.2, waits=0.2),
    Case(name="absence for 1 s, beyond it", policy=_ABSENT, lateness=0.0, waits=1.0),
)


def project_files(case: Case, visitors: int) -> dict[str, str]:
    people = [f"v{number},visitor" for number in range(visitors)]
    people += [f"p{number},employee" for number in range(PASSERS)]
    source = f"""
pull:
  persons: {{csv: people.csv, columns: {{id: string, role: string}}, concept: person, key: id}}
  rooms: {{csv: rooms.csv, columns: {{id: string, security: string, area: Box m}}, concept: room, key: id}}
push:
  seen:
    event: Sighting
    concept: person
    id: who
    attribute: position
    value: at
    lateness: {case.lateness * 1000:.0f} ms
    idle: 10 s
"""
    return {
        "situ.yaml": "version: 1\nname: bench\n",
        "types/all.yaml": "version: 1\nevents:\n  Sighting: {who: string, at: Point m}\n  Alarm: {text: string}\n",
        "ontology.yaml": f"version: 1\n{_ONTOLOGY}",
        "sources/all.yaml": f"version: 1\n{source}",
        "people.csv": "\n".join(["id,role", *people, ""]),
        "rooms.csv": 'id,security,area\nlab,restricted,"{""x1"":0,""y1"":0,""x2"":10,""y2"":10}"\n',
        "policies/entered.dpl": case.policy,
        "actions.yaml": 'version: 1\nactions:\n  raise alarm: {publish: Alarm, data: {text: "{A.id} is in {R.id}"}}\n',
    }


# ── clients ──


def publish(pipe: Pipe, *, folder: str, visitors: int, count: int) -> None:
    """Publish so many sightings, one of each visitor among them; tell when each visitor was seen."""

    async def work() -> None:
        import situ

        sent: dict[str, int] = {}
        async with situ.connect(folder, client="reader", queue_timeout=120.0) as node:
            await node.advertise("Sighting")
            pipe.send("ready")
            await asyncio.to_thread(pipe.recv)
            async for number in paced(count, float(RATE)):
                if number % EVERY or number >= visitors * EVERY:
                    who, at = f"p{number % PASSERS}", {"x": 100.0 + number % 7, "y": 5.0}
                else:
                    who, at = f"v{number // EVERY}", {"x": 5.0, "y": 5.0}
                    sent[who] = time.monotonic_ns()
                await node.publish_event("Sighting", {"who": who, "at": at}, time=datetime.now(UTC))
            await node.flush()
            pipe.send(sent)

    asyncio.run(work())


def subscribe(pipe: Pipe, *, folder: str, count: int, sightings: int, waits: float) -> None:
    """Take so many situations that open; tell of each, by the visitor it is about, when it came, and how many
    milliseconds it was in the engine: since its sighting, and since the sighting that let it be told."""

    async def work() -> None:
        import situ

        told: dict[str, int] = {}
        published: dict[str, datetime] = {}
        done = asyncio.Event()

        def take(event: Any) -> None:
            at = time.monotonic_ns()
            who = next(each["id"] for each in event.data["bindings"] if each["alias"] == "A")
            assert who not in told, f"{who} is told twice"
            told[who], published[who] = at, event.received
            if len(told) == count:
                done.set()

        async with situ.connect(folder, client="desk") as node:
            wanted = await node.register_for_events("situ.situation.opened")
            await node.add_listener(wanted, take)
            pipe.send("ready")
            await done.wait()
            took: dict[str, tuple[float, float]] = {}
            waiting: deque[tuple[str, datetime, datetime]] = deque()
            async for each in node.events("Sighting", since="begin", limit=sightings):
                while waiting and waiting[0][1] < each.time:
                    who, _, received = waiting.popleft()
                    took[who] = (_milliseconds(published[who], received), _milliseconds(published[who], each.received))
                if (who := each.data["who"]) in published and who not in took:
                    if waits:
                        waiting.append((who, each.time + timedelta(seconds=waits), each.received))
                    else:
                        took[who] = (_milliseconds(published[who], each.received),) * 2
            pipe.send((told, took))

    asyncio.run(work())


def _milliseconds(later: datetime, earlier: datetime) -> float:
    return (later - earlier).total_seconds() * 1e3


# ── the scenario ──


def _variants(bench: Bench) -> list[Variant]:
    warm = bench.some(WARM, 0)
    seconds = bench.some(20, 1) + warm
    visitors = RATE * seconds // EVERY

    def work(case: Case) -> Callable[[], Taken]:
        def exchanged() -> Taken:
            with ExitStack() as stack:
                folder = bench.folder("edge")
                stack.enter_context(situ_run(folder, project_files(case, visitors), engine="edge"))
                # Event time must pass the last of them, too, and its window.
                count = RATE * seconds + round(RATE * (case.waits + 0.5))
                receiver = Client(subscribe, folder=str(folder), count=visitors, sightings=count, waits=case.waits)
                sender = Client(publish, folder=str(folder), visitors=visitors, count=count)
                (told, took), sent = exchange(receiver, sender)
            counted = [who for who in told if int(who[1:]) >= warm * RATE // EVERY]
            whole = latencies([(told[who] - sent[who]) / 1e6 - case.waits * 1e3 for who in counted])
            inside = latencies([took[who][1] for who in counted])
            beyond = latencies([took[who][0] - case.waits * 1e3 for who in counted])
            figures = {"in the engine, p50": inside.figures["p50"], _INSIDE: inside.value}
            figures["since its sighting, beyond the wait, p99"] = beyond.value
            return replace(whole, figures={**whole.figures, **figures})

        return exchanged

    return [Variant(name=case.name, work=work(case)) for case in (CASES[-1:] if bench.quick else CASES)]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    measured = [
        (f"{whose}, {case.name}", medians[f"{case.name}{figure}"])
        for case in CASES
        if case.name in medians
        for whose, figure in (("from publisher to subscriber", ""), ("in the engine", f": {_INSIDE}"))
    ]
    return [
        Verdict(what=f"edge, p99 of detection at {RATE:,} events/s, ms, {what}", value=value, goal="< 5", met=value < 5)
        for what, value in measured
    ]


SCENARIOS = [
    Scenario(
        name="situation-edge-latency",
        title="Latency of detection at the edge",
        unit="ms (p99)",
        about=f"{RATE:,} sightings/s for 20 seconds; one in {EVERY} lets a situation open. From the call that "
        "publishes the sighting that completes a situation, to the callback of a subscriber with the situation, its "
        "causes in it; publisher, engine, bus and subscriber are processes of their own, and both the sighting and "
        "the situation are in the root log on the way. When a situation may be told is part of its meaning: at the "
        "event; or not before events that may still come late, here 200 ms; or when somebody stayed away for a "
        "window of 1 s. What is measured is the time beyond that. Of it, in the engine: from the instant the event "
        "reaches the engine that lets the situation be told, its own sighting or the first one behind what is waited "
        "for, to the instant the engine publishes the situation.",
        variants=_variants,
        judge=_verdicts,
        repetitions=3,
        warm=False,
        plot=Plot(x="% of the situations", y="ms", curves=True, log_x=False, log_y=True),
    )
]
