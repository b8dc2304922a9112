"""Visibility: compiling scope graphs, changing one edge, and what a decision costs at the edge."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from situ.lang.records import replace
from situ.lang.tags import TagSet
from situ.scopes.filter_sets import NO_NUMBERS, FilterSets
from situ.scopes.graph import BoundaryFilter, Dimension, Scope, ScopeGraph
from situ.scopes.visibility_plan import (
    ALWAYS_PAIR,
    NEVER_PAIR,
    TagSetPair,
    VisibilityPlan,
    compile_visibility,
    number_filters,
)
from situ.scopes.visibility_plan import Verdict as Kind

DIMENSIONS = 3
SCOPES, TAGS, FILTERS = 1_000, 200, 200
CHANGES = 50
DECISIONS = 200_000


def _graph(scopes: int, filters: int, dice: random.Random) -> ScopeGraph:
    """Trees with about eight members a scope, every third scope in two others; three of ten interfaces filter."""

    def interface() -> BoundaryFilter | None:
        return BoundaryFilter(text=f"level = {dice.randrange(filters)}") if dice.random() < 0.3 else None

    def dimension(name: str) -> Dimension:
        made: dict[str, Scope] = {}
        for place in range(scopes):
            above = place // 8
            near = range(max(0, above - 2), min(place, above + 1))
            containers = {f"{name}s{dice.choice(near)}" for _ in range(dice.choice((1, 1, 2)))} if place else set()
            made[f"{name}s{place}"] = Scope(
                name=f"{name}s{place}",
                containers=tuple(sorted(containers)),
                output=interface(),
                input=interface(),
            )
        return Dimension(name=name, scopes=made)

    return ScopeGraph(dimensions={f"d{number}": dimension(f"d{number}") for number in range(DIMENSIONS)})


def _tag_sets(count: int, scopes: int, dice: random.Random) -> list[TagSet]:
    return [
        TagSet.of({f"d{number}": f"d{number}s{dice.randrange(scopes)}" for number in range(DIMENSIONS)})
        for _ in range(count)
    ]


class _World:
    """A graph with tag sets; compiled anew by each ``compile``, and changed by one edge by each ``change``."""

    def __init__(self, scopes: int = SCOPES, tags: int = TAGS, filters: int = FILTERS) -> None:
        self._dice = random.Random(7)
        self.graph = _graph(scopes, filters, self._dice)
        self.ads, self.subs = (_tag_sets(tags, scopes, self._dice) for _ in range(2))
        self._plan: VisibilityPlan | None = None

    def compile(self) -> Taken:
        start = time.perf_counter()
        numbers = number_filters(self.graph, NO_NUMBERS)
        self._plan = compile_visibility(self.graph, self.ads, self.subs, numbers)
        return Taken(value=(time.perf_counter() - start) * 1e3, figures=_kinds(self._plan))

    def change(self) -> Taken:
        """One edge after the other, each from the plan of the graph as it was; building the graph does not count."""
        plan = self._plan
        if plan is None:
            self.compile()
            plan = self._plan
        assert plan is not None
        taken: list[float] = []
        for _ in range(CHANGES):
            graph = self._with_another_edge()
            start = time.perf_counter()
            compile_visibility(graph, self.ads, self.subs, number_filters(graph, plan.numbers), before=plan)
            taken.append((time.perf_counter() - start) * 1e3)
        return Taken(value=statistics.median(taken), figures={"slowest": max(taken)})

    def _with_another_edge(self) -> ScopeGraph:
        old = self._dice.choice(list(self.graph.dimensions.values()))
        place = self._dice.randrange(1, len(old.scopes))
        scope = old.scopes[f"{old.name}s{place}"]
        container = f"{old.name}s{self._dice.randrange(place)}"
        moved = replace(scope, containers=(container,), links=())
        new = Dimension(name=old.name, scopes={**old.scopes, scope.name: moved})
        return ScopeGraph(dimensions={**self.graph.dimensions, old.name: new})


def _kinds(plan: VisibilityPlan) -> dict[str, float]:
    pairs = [pair.verdict for _, _, pair in plan.pairs()]
    return {kind.value: float(pairs.count(kind)) for kind in Kind}


def _compile_variants(bench: Bench) -> list[Variant]:
    scopes, tags, filters = bench.some(SCOPES, 100), bench.some(TAGS, 20), FILTERS
    full = _World(scopes, tags, filters)
    variants = [
        Variant(name="all pairs", work=full.compile),
        Variant(name="one edge", work=full.change),
    ]
    for count in (100, 300, 1_000, 3_000) if not bench.quick else (50,):
        world = _World(count, tags, filters)
        variants.append(Variant(name=f"{count:,} scopes", work=world.compile, point=float(count), series="scopes"))
    for count in (25, 50, 100, 200, 400) if not bench.quick else (10,):
        world = _World(scopes, count, filters)
        variants.append(Variant(name=f"{count:,} tag sets", work=world.compile, point=float(count), series="tag sets"))
    for count in (10, 60, 200, 1_000) if not bench.quick else (10,):
        world = _World(scopes, tags, count)
        variants.append(Variant(name=f"{count:,} filters", work=world.compile, point=float(count), series="filters"))
    return variants


def _compile_verdicts(medians: dict[str, float]) -> list[Verdict]:
    whole, edge = medians["all pairs"], medians["one edge"]
    return [
        Verdict(what="compiling 200 × 200 pairs, ms", value=whole, goal="≤ 2,000", met=whole <= 2_000),
        Verdict(what="changing one edge, ms", value=edge, goal="≤ 50", met=edge <= 50),
        Verdict(what="changing one edge against compiling all", value=edge / whole),
    ]


def _decide(pair: TagSetPair, bits: int) -> Callable[[], Taken]:
    """As the edge does it: one look-up by the places of both tag sets, then the pair with the bits."""
    rows = tuple(tuple(pair for _ in range(TAGS)) for _ in range(TAGS))
    places = [(place % TAGS, place * 7 % TAGS) for place in range(DECISIONS)]

    def work() -> Taken:
        start = time.perf_counter()
        for advertised, subscribed in places:
            rows[advertised][subscribed].visible(bits)
        return Taken(value=(time.perf_counter() - start) / DECISIONS * 1e9)

    return work


def _decision_variants(bench: Bench) -> list[Variant]:
    # None of the sets but the last is contained in the bits, so all are looked at.
    sets = tuple(0b11 << (40 * place) for place in range(4))
    bits = sum(1 << (40 * place) for place in range(4))
    deep = TagSetPair(Kind.DEPENDS, tuple(FilterSets((*sets[:3], 1)) for _ in range(3)))
    return [
        Variant(name="never", work=_decide(NEVER_PAIR, bits)),
        Variant(name="always", work=_decide(ALWAYS_PAIR, bits)),
        Variant(name="depends on 1 set", work=_decide(TagSetPair(Kind.DEPENDS, (FilterSets(sets[:1]),)), bits)),
        Variant(name="depends on 4 sets", work=_decide(TagSetPair(Kind.DEPENDS, (FilterSets(sets),)), bits)),
        Variant(name="3 dimensions of 4 sets", work=_decide(deep, bits)),
    ]


def _decision_verdicts(medians: dict[str, float]) -> list[Verdict]:
    settled = max(medians["never"], medians["always"])
    depends = medians["depends on 4 sets"]
    return [
        Verdict(what="always or never, ns", value=settled, goal="< 2,000", met=settled < 2_000),
        Verdict(what="depends on up to 4 sets, ns", value=depends, goal="< 5,000", met=depends < 5_000),
    ]


SCENARIOS = [
    Scenario(
        name="visibility-compile",
        title="Visibility: compiling scope graphs, and changing one edge",
        unit="ms",
        about=f"{DIMENSIONS} dimensions of {SCOPES:,} scopes with {FILTERS} different filters at three of ten "
        f"interfaces, {TAGS} advertised and {TAGS} subscribed tag sets. All pairs from nothing; the same after one "
        f"edge, {CHANGES} times one drawn at random, from the plan before; and from nothing against the number of "
        "scopes in each dimension, of tag sets on each side, and of different filters. One core.",
        variants=_compile_variants,
        judge=_compile_verdicts,
        repetitions=5,
        plot=Plot(x="scopes, tag sets, filters", y="ms", log_y=True),
    ),
    Scenario(
        name="visibility-decision",
        title="Visibility: one decision at the edge",
        unit="ns",
        about=f"{DECISIONS:,} look-ups of a pair among {TAGS} × {TAGS}, each decided for the bits of an event; "
        "sets that are not contained are all looked at. One core.",
        variants=_decision_variants,
        judge=_decision_verdicts,
    ),
]
