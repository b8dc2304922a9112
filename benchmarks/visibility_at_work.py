"""Visibility at work: what stamping, routing and the lines of the log cost an event, with scopes and without."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import cache

from benchmarks.bench import Bench
from benchmarks.harness import Plot, Scenario, Taken, Variant, Verdict
from situ.event.lines import encode_rows, stamped_lines
from situ.event.row import Row
from situ.lang.records import replace
from situ.lang.tags import NO_TAGS, TagSet
from situ.lang.types.model import LONG, STRING, Attribute, Struct
from situ.lang.types.table import Types
from situ.model import Deployment
from situ.routing.model import Advertisement, Subscription
from situ.scopes.graph import NO_SCOPES, BoundaryFilter, Dimension, Scope, ScopeGraph
from situ.stages.plan import Plan, compile_plan

EVENTS, MESSAGE = 20_000, 500
SUBSCRIPTIONS, DESKS = 1_000, 50
FILTERS = 10
SEEN = Struct("Seen", (Attribute(name="tag", type=STRING), Attribute(name="level", type=LONG)))
TYPES = Types(types={SEEN.name: SEEN}, events=frozenset({SEEN.name}))


def _graph(filters: int) -> ScopeGraph:
    """A site with desks, each with one of so many filters at its entrance, and a gate that events leave."""
    scopes = {"site": Scope(name="site"), "gate": Scope(name="gate", containers=("site",))}
    for number in range(DESKS):
        entrance = BoundaryFilter(text=f"level >= {number % filters}") if filters else None
        scopes[f"desk{number}"] = Scope(name=f"desk{number}", containers=("site",), input=entrance)
    return ScopeGraph(dimensions={"place": Dimension(name="place", closed=True, scopes=scopes)})


@cache
def _plan(filters: int | None) -> Plan:
    """``None``: without scopes. An event is wanted by twenty subscriptions of a thousand."""

    def at(scope: str) -> TagSet:
        return NO_TAGS if filters is None else TagSet.of({"place": scope})

    wanted = [
        Subscription(
            client=f"c{number}",
            name="s",
            types=(SEEN.name,),
            where=f"tag = 'T{number % DESKS}'",
            durable=number % 4 == 0,
            scopes=at(f"desk{number // 20}"),
        )
        for number in range(SUBSCRIPTIONS)
    ]
    return compile_plan(
        Deployment(
            types=TYPES,
            scopes=NO_SCOPES if filters is None else _graph(filters),
            advertisements={"gate/seen": Advertisement(client="gate", name="seen", type=SEEN.name, scopes=at("gate"))},
            subscriptions={each.id: each for each in wanted},
        )
    )


def _rows(count: int) -> list[Row]:
    return [
        Row(
            number + 1, "gate", 1, number + 1, "root", 0, f"x{number}", "gate", SEEN.name, number, "gate/seen", None,
            "", b'{"tag":"T%d","level":%d}' % (number * 7 % DESKS, number * 11 % 13),
        )
        for number in range(count)
    ]  # fmt: skip


def _work(plan: Plan, count: int) -> Callable[[], Taken]:
    rows = _rows(count)

    def work() -> Taken:
        deliveries = 0
        start = time.perf_counter()
        for first in range(0, count, MESSAGE):
            some = rows[first : first + MESSAGE]
            plan.stamp.each(some)
            if plan.seeing is not None:
                plan.seeing.stamp(some)
            stamped_lines(some, encode_rows(some))
            routed = plan.routing.route(some)
            deliveries += len(routed.durable) + len(routed.live)
        taken = time.perf_counter() - start
        return Taken(value=taken / count * 1e6, figures={"deliveries": float(deliveries)})

    return work


def _replayed(count: int) -> Callable[[], Taken]:
    """Events that were stamped under other scopes: decided by both, and asked what is new."""
    before = _plan(FILTERS)
    gate = replace(
        before.deployment.scopes.dimensions["place"].scopes["gate"], output=BoundaryFilter(text="level >= 1")
    )
    place = before.deployment.scopes.dimensions["place"]
    graph = ScopeGraph(dimensions={"place": replace(place, scopes={**place.scopes, "gate": gate})})
    now = compile_plan(replace(before.deployment, scopes=graph, epoch=2), before)
    rows = _rows(count)
    assert before.seeing is not None
    before.seeing.stamp(rows)

    def work() -> Taken:
        start = time.perf_counter()
        for first in range(0, count, MESSAGE):
            some = rows[first : first + MESSAGE]
            encode_rows(some)
            now.routing.route(some)
        return Taken(value=(time.perf_counter() - start) / count * 1e6)

    return work


def _variants(bench: Bench) -> list[Variant]:
    count = bench.some(EVENTS, 1_000)
    chosen = (0, 1, 10, 25, 50) if not bench.quick else (10,)
    return [
        Variant(name="without scopes", work=_work(_plan(None), count)),
        Variant(name="stamped in another epoch", work=_replayed(count)),
        *(
            Variant(
                name=f"{filters} filters", work=_work(_plan(filters), count), point=float(filters), series="with scopes"
            )
            for filters in chosen
        ),
    ]


def _verdicts(medians: dict[str, float]) -> list[Verdict]:
    without, usual = medians["without scopes"], medians[f"{FILTERS} filters"]
    more = usual - without
    return [
        Verdict(what=f"what {FILTERS} filters add to an event, µs", value=more, goal="≤ 5", met=more <= 5),
        Verdict(what=f"with {FILTERS} filters against without scopes", value=usual / without),
        Verdict(what="of another epoch against without scopes", value=medians["stamped in another epoch"] / without),
    ]


SCENARIOS = [
    Scenario(
        name="visibility-at-work",
        title="Visibility: stamping and routing with scopes and without",
        unit="µs",
        about=f"{EVENTS:,} events in messages of {MESSAGE}, {SUBSCRIPTIONS:,} subscriptions of which twenty want each, "
        f"in {DESKS} scopes with so many different filters at their entrances. Stamped, written as lines of the log "
        "and routed; then the same events, written and routed by scopes that came after they were stamped. One core.",
        variants=_variants,
        judge=_verdicts,
        plot=Plot(x="filters", y="µs an event"),
    ),
]
