"""Negotiation: matching and deciding on everything from nothing, what one change costs, and how both grow."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import cached_property
from multiprocessing import get_context

import psutil

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from benchmarks.quality_world import EXPECTATIONS, PROFILES, TYPES, World, changed, make_world
from situ.gc_tuning import freeze_loaded
from situ.quality.allocation.sequential import decide_pareto
from situ.quality.match.match_index import MatchIndex
from situ.quality.match.satisfaction import Satisfaction
from situ.quality.model.allocation_problem import AllocationPlan, AllocationProblem, Target
from situ.quality.model.declarations import Expectation, Profile

UPDATES = 1_000
_FEW = (2_000, 200, 20)


class _Zone:
    """A world, made when it is needed."""

    def __init__(self, expectations: int, profiles: int, types: int, *, zipf: bool) -> None:
        self._sizes = (expectations, profiles, types)
        self._zipf = zipf

    @cached_property
    def world(self) -> World:
        return make_world(*self._sizes, zipf=self._zipf)

    def negotiate(self) -> Taken:
        """Everything from nothing: put what is declared into pools, match, decide."""
        world = self.world
        freeze_loaded()  # as the router does
        start = time.perf_counter()
        standing = MatchIndex()
        standing.put_many(world.profiles, world.expectations)
        matched = time.perf_counter()
        plan = decide_pareto(_problem(world, standing))
        end = time.perf_counter()
        states = list(standing.states().values())
        figures = {
            "matching": (matched - start) * 1e3,
            "deciding": (end - matched) * 1e3,
            "satisfied": float(states.count(Satisfaction.SATISFIED)),
            "satisfiable": float(states.count(Satisfaction.SATISFIABLE)),
            "adopted": float(len(plan.adopted)),
            "profiles moved": float(len(plan.targets)),
        }
        return Taken(value=(end - start) * 1e3, figures=figures)


def _problem(world: World, standing: MatchIndex) -> AllocationProblem:
    return AllocationProblem(
        expectations=tuple(each for each, _ in world.expectations),
        profiles={each.id: each for each, _ in world.profiles},
        pools=world.pools,
        relevant=world.relevant,
        standing=standing,
    )


class _Negotiated:
    """A zone in which everything is decided, and then publishers change, one after the other."""

    def __init__(self, zone: _Zone, updates: int, *, plans: bool) -> None:
        self._zone = zone
        self._updates = updates
        self._plans = plans
        self._dice = random.Random(11)

    @cached_property
    def _begun(self) -> tuple[MatchIndex, dict[str, Profile], dict[str, Target], dict[str, set[str]]]:
        world = self._zone.world
        standing = MatchIndex()
        standing.put_many(world.profiles, world.expectations)
        profiles = {each.id: each for each, _ in world.profiles}
        claims: dict[str, set[str]] = {}
        targets: dict[str, Target] = {}
        if self._plans:
            plan = decide_pareto(_problem(world, standing))
            targets.update(plan.targets)
            _take_claims(claims, plan)
        return standing, profiles, targets, claims

    @cached_property
    def _expectations(self) -> dict[str, Expectation]:
        return {each.id: each for each, _ in self._zone.world.expectations}

    @cached_property
    def _alternatives(self) -> dict[str, list[tuple[int, str]]]:
        """Expectation → all of its subscription, with their places in the order of registration."""
        together: dict[str, list[tuple[int, str]]] = {}
        for each in self._expectations.values():
            together.setdefault(each.subscription, []).append((each.order, each.id))
        return {id: together[each.subscription] for id, each in self._expectations.items()}

    def update(self) -> Taken:
        _ = self._alternatives
        standing, profiles, _, _ = self._begun
        taken: list[float] = []
        touched: list[float] = []
        for _ in range(self._updates):
            before = self._dice.choice(self._zone.world.profiles)[0]
            after = changed(self._dice, profiles[before.id])
            start = time.perf_counter()
            states = standing.put_profile(after, after.type)
            profiles[after.id] = after
            if self._plans:
                self._plan(after.id, states)
            taken.append((time.perf_counter() - start) * 1e3)
            touched.append(float(len(states)))
        percentiles = statistics.quantiles(taken, n=100)
        figures = {"median": percentiles[49], "slowest": max(taken), "most states changed": max(touched)}
        return Taken(value=percentiles[98], figures=figures)

    def _plan(self, id: str, states: frozenset[str]) -> None:
        """Decide again on those whose state is another, and on those for whom this profile was to be moved."""
        standing, profiles, targets, claims = self._begun
        targets.pop(id, None)
        touched = states | claims.pop(id, set())
        undecided = frozenset(each for each in touched if standing.state(each) is Satisfaction.SATISFIABLE)
        if not undecided:
            return
        asking = sorted({each for one in undecided for each in self._alternatives[one]})
        known = {each: profiles[each] for each in standing.relevant(asking[0][1])}
        plan = decide_pareto(
            AllocationProblem(
                expectations=tuple(self._expectations[each] for _, each in asking),
                profiles=known,
                pools={each: profiles[each].type for each in known},
                relevant=self._zone.world.relevant,
                standing=standing,
                start={each: targets[each] for each in known.keys() & targets.keys()},
                undecided=undecided,
            )
        )
        targets.update(plan.targets)
        _take_claims(claims, plan)


def _take_claims(claims: dict[str, set[str]], plan: AllocationPlan) -> None:
    for made in plan.adopted.values():
        for claim in made:
            claims.setdefault(claim.profile, set()).add(claim.expectation)


def _memory(sizes: tuple[int, int, int]) -> float:
    """What a process takes that has everything declared, matched and decided, in MiB."""
    world = make_world(*sizes, zipf=True)
    standing = MatchIndex()
    standing.put_many(world.profiles, world.expectations)
    plan = decide_pareto(_problem(world, standing))
    taken = psutil.Process().memory_info().rss / 2**20
    assert plan.adopted
    return taken


def _memory_of(sizes: tuple[int, int, int]) -> Callable[[], Taken]:
    def work() -> Taken:
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            return Taken(value=pool.submit(_memory, sizes).result())

    return work


def _sizes(bench: Bench) -> tuple[int, int, int]:
    return _FEW if bench.quick else (EXPECTATIONS, PROFILES, TYPES)


def _negotiation_variants(bench: Bench) -> list[Variant]:
    expectations, profiles, types = _sizes(bench)
    variants = [
        Variant(name=name, work=_Zone(expectations, profiles, types, zipf=name == "Zipf").negotiate)
        for name in ("uniform", "Zipf")
    ]
    for share in (0.1, 0.3, 1.0) if not bench.quick else (0.5,):
        for name in ("uniform", "Zipf"):
            zone = _Zone(int(expectations * share), profiles, types, zipf=name == "Zipf")
            point = expectations * share
            variants.append(
                Variant(name=f"{point:,.0f} expectations, {name}", work=zone.negotiate, point=point, series=name)
            )
    for share in (0.1, 0.3, 1.0) if not bench.quick else (0.5,):
        zone = _Zone(expectations, int(profiles * share), types, zipf=False)
        point = profiles * share
        variants.append(
            Variant(name=f"{point:,.0f} profiles", work=zone.negotiate, point=point, series="uniform, profiles")
        )
    return variants


def _negotiation_verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(
            what=f"everything from nothing, {name}, ms", value=medians[name], goal="< 2,000", met=medians[name] < 2_000
        )
        for name in ("uniform", "Zipf")
    ]


def _update_variants(bench: Bench) -> list[Variant]:
    expectations, profiles, types = _sizes(bench)
    updates = bench.some(UPDATES, 50)
    variants = []
    for name in ("uniform", "Zipf"):
        for plans in (False, True):
            zone = _Zone(expectations, profiles, types, zipf=name == "Zipf")
            what = "states and plan" if plans else "states"
            variants.append(Variant(name=f"{what}, {name}", work=_Negotiated(zone, updates, plans=plans).update))
    for share in (0.1, 0.3, 1.0) if not bench.quick else (0.5,):
        zone = _Zone(int(expectations * share), profiles, types, zipf=True)
        point = expectations * share
        work = _Negotiated(zone, updates, plans=True).update
        variants.append(Variant(name=f"{point:,.0f} expectations", work=work, point=point, series="Zipf"))
    return variants


def _update_verdicts(medians: dict[str, float]) -> list[Verdict]:
    return [
        Verdict(what=f"99th percentile, {name}, ms", value=medians[name], goal="< 10", met=medians[name] < 10)
        for name in ("states and plan, uniform", "states and plan, Zipf")
    ]


def _memory_verdicts(medians: dict[str, float]) -> list[Verdict]:
    taken = medians["everything"]
    return [Verdict(what="one process with all of it, MiB", value=taken, goal="< 1,024", met=taken < 1_024)]


_WORLD = (
    f"{EXPECTATIONS:,} expectations of one to four properties, every fourth subscription with two alternatives; "
    f"{PROFILES:,} profiles of four properties with costs that rise, every tenth with three modes; {TYPES:,} event "
    "types, drawn evenly or by Zipf's law (the largest has 13 % of both). One core."
)
SCENARIOS = [
    Scenario(
        name="quality-negotiation",
        title="Quality: negotiating everything from nothing",
        unit="ms",
        about=f"{_WORLD} What is declared is put into pools and matched by their skylines, then `pareto` decides.",
        variants=_negotiation_variants,
        judge=_negotiation_verdicts,
        repetitions=5,
        plot=Plot(x="expectations, profiles", y="ms", log_y=True),
    ),
    Scenario(
        name="quality-update",
        title="Quality: one publisher changes",
        unit="ms, 99th percentile",
        about=f"{_WORLD} {UPDATES:,} times a publisher drawn at random declares other ranges, values and costs: the "
        "states that follow, and with a plan, deciding again on those whose state is another or who relied on it.",
        variants=_update_variants,
        judge=_update_verdicts,
        repetitions=3,
        plot=Plot(x="expectations", y="ms, 99th percentile", log_y=True),
    ),
    Scenario(
        name="quality-memory",
        title="Quality: memory of one process",
        unit="MiB",
        about=f"{_WORLD} A fresh process that has everything declared, matched and decided.",
        variants=lambda bench: [Variant(name="everything", work=_memory_of(_sizes(bench)))],
        judge=_memory_verdicts,
        repetitions=1,
        warm=False,
    ),
]
