"""The kernel of policies alone: rows of leaves a second against identities, window and number of policies."""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.situation_events import SECOND, Building, domain, security_plan
from situ.policies.kernel.kernel import Kernel
from situ.policies.plan import PolicyPlan

LATENESS = 1 * SECOND
IDENTITIES = (100, 1_000, 10_000, 100_000)
WINDOWS = (1, 5, 20, 60)
POLICIES = (1, 10, 100, 1_000)
EVENTS = 10_000
ROWS_AN_EVENT = 1.2
"""Every fifth person is in a restricted room, and is there in two leaves."""


class Flowing:
    """Kernels in steady state: windows are full, and every step takes in a batch more."""

    def __init__(self, plans: list[PolicyPlan], people: int, batch: int, *, idle: int = 0) -> None:
        self._building = Building(people)
        self._plan = plans[0]
        self._kernels = [Kernel(plan) for plan in plans]
        self._states = [kernel.start() for kernel in self._kernels]
        self._batch, self._idle, self._at = batch, idle, 0
        full = 4 * plans[0].policy.window // SECOND * people
        while self._at < full:
            self.step(max(batch, min(full, 200_000)))

    def step(self, events: int = 0) -> tuple[int, float]:
        """How many rows there were, and how long they took; policies that are idle are given none."""
        events = events or self._batch
        rows = self._building.rows(self._plan, self._at, events)
        self._at += events
        watermark = self._building.time(self._at) - LATENESS
        start = time.perf_counter()
        for place, kernel in enumerate(self._kernels):
            given = rows if place >= self._idle else {}
            self._states[place], _ = kernel.step(self._states[place], given, watermark, {})
        return sum(map(len, rows.values())), time.perf_counter() - start

    @property
    def size(self) -> float:
        """Of all states, in megabytes."""
        return sum(state.size for state in self._states) / 1e6


def _work(flowing: Flowing, steps: int) -> Callable[[], Taken]:
    def work() -> Taken:
        taken = [flowing.step() for _ in range(steps)]
        rate = sum(rows for rows, _ in taken) / sum(seconds for _, seconds in taken)
        return Taken(value=rate, figures={"state in MB": flowing.size})

    return work


def _identity_variants(bench: Bench) -> list[Variant]:
    batch = bench.some(100_000, 2_000)
    plan = security_plan(domain())
    return [
        Variant(name=f"{people:,} identities", work=_work(Flowing([plan], people, batch), 3), point=float(people))
        for people in (IDENTITIES if not bench.quick else IDENTITIES[:2])
    ]


def _identity_verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(
            what=f"rows/s of the kernel on one core, {people:,} identities",
            value=medians[f"{people:,} identities"],
            goal="≥ 1,000,000",
            met=medians[f"{people:,} identities"] >= 1e6,
        )
        for people in (1_000, 100_000)
        if f"{people:,} identities" in medians
    ]


def _window_variants(bench: Bench) -> list[Variant]:
    people, batch = bench.some(10_000, 300), bench.some(100_000, 2_000)
    of = domain()
    return [
        Variant(
            name=f"window of {window} s",
            work=_work(Flowing([security_plan(of, window=window)], people, batch), 3),
            point=float(window),
        )
        for window in WINDOWS
    ]


def _policy_variants(bench: Bench) -> list[Variant]:
    batch = bench.some(EVENTS, 500)
    of = domain()
    found = []
    for count in POLICIES if not bench.quick else POLICIES[:2]:
        plans = [security_plan(of, name=f"policy-{number}") for number in range(count)]
        found.append(
            Variant(
                name=f"{count:,} policies, one of them in use",
                work=_work(Flowing(plans, 1_000, batch, idle=count - 1), 3),
                point=float(count),
                series="one in use",
            )
        )
        if count <= 100:
            found.append(
                Variant(
                    name=f"{count:,} policies, all in use",
                    work=_work(Flowing(plans, 1_000, batch), 2),
                    point=float(count),
                    series="all in use",
                )
            )
    return found


def _policy_verdicts(medians: dict[str, float]) -> list[Verdict]:
    one, many = "1 policies, one of them in use", "1,000 policies, one of them in use"
    if many not in medians:
        return []
    rows = ROWS_AN_EVENT * EVENTS
    idle = (rows / medians[many] - rows / medians[one]) / 999 * 1e6
    return [Verdict(what="µs in a step for a policy without anything to do", value=idle, goal="≤ 20", met=idle <= 20)]


SCENARIOS = [
    Scenario(
        name="situation-kernel",
        title="Detection: rows a second against the number of identities",
        unit="rows/s",
        about="The security policy with a window of 5 s: guests in restricted rooms without an employee near. Everyone "
        "is seen once a second; batches of 100,000 events, windows full, one core. Rows are those of leaves, after "
        "enrichment; what is encoded, sorted, joined, forgotten and reported of them counts.",
        variants=_identity_variants,
        judge=_identity_verdicts,
        repetitions=5,
        plot=Plot(x="identities", y="rows/s"),
    ),
    Scenario(
        name="situation-kernel-window",
        title="Detection: what is remembered against the window",
        unit="rows/s",
        about="The same policy with 10,000 identities and other windows. What is remembered grows with the window, and "
        "so does the number of events that an event can be paired with.",
        variants=_window_variants,
        repetitions=3,
        plot=Plot(x="window in s", y="MB", figure="state in MB"),
    ),
    Scenario(
        name="situation-kernel-policies",
        title="Detection: rows a second against the number of policies",
        unit="rows/s",
        about="Policies over the same leaves, 1,000 identities, batches of 10,000 events. All are in use, each with "
        "its own state; or only one, and the others have nothing to do.",
        variants=_policy_variants,
        judge=_policy_verdicts,
        repetitions=3,
        plot=Plot(x="policies", y="rows/s", log_y=True),
    ),
]
