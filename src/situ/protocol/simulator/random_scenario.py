"""Random scenarios: zones, routers, clients, scopes, workload and faults, all drawn from a seed."""

from __future__ import annotations

from functools import lru_cache

from situ.lang.documents import parse_yaml
from situ.lang.problems import Problems
from situ.lang.tags import ANY, NO_TAGS, TagSet
from situ.lang.types.resolve import load_types
from situ.lang.types.table import Types
from situ.protocol.overlay.state import Timing
from situ.protocol.simulator.chance import Chance
from situ.protocol.simulator.scenario import FAULTS, Action, ClientSpec, Offer, Scenario, Wish
from situ.scopes.graph import BoundaryFilter, Dimension, Scope, ScopeGraph

_TYPES = """
events:
  Reading: {value: long, place: string}
  Temperature(Reading): {}
  Pressure(Reading): {}
  Alarm: {severity: long}
"""
_WHERES = ("", "", "", "value >= 50", "value < 30", "place = 'p1'", "place IN ('p2', 'p3') AND value > 20")
_NAMED = ("Reading", "Temperature", "Pressure", "Alarm")

TIMING = Timing(
    heartbeat=1.0,
    suspected=3.0,
    removed=8.0,
    renew=2.0,
    stop=4.0,
    lease=6.0,
    epoch_lease=5.0,
    grace=8.0,
    withdrawal=6.0,
    install=2.0,
)


@lru_cache(maxsize=1)
def random_types() -> Types:
    problems = Problems()
    types = load_types([parse_yaml(_TYPES, "types")], problems)
    problems.raise_errors()
    return types


def random_scenario(
    seed: int,
    *,
    zones: int = 5,
    routers: int = 10,
    clients: int = 60,
    events: int = 120,
    faults: int = 6,
    lasting: float = 14.0,
    quiet: float = 28.0,
    flood: bool = False,
    kinds: tuple[str, ...] = FAULTS,
) -> Scenario:
    """A scenario that depends on these numbers alone. ``routers`` is per zone."""
    chance = Chance(seed * 7919 + 1)
    names = [chr(ord("a") + number) if zones <= 26 else f"z{number}" for number in range(zones)]
    layout = {zone: tuple(f"{zone}/{zone}{number + 1}" for number in range(routers)) for zone in names}
    graphs = _scopes(chance, names)
    specs = [
        _client(chance, f"c{number}", chance.one_of(layout[chance.one_of(names)]), graphs[0])
        for number in range(clients)
    ]
    actions = _workload(chance, specs, events, lasting, graphs)
    actions += _faults(chance, layout, specs, faults, lasting, kinds)
    return Scenario(
        zones=layout,
        home=names[0],
        types=random_types(),
        scopes=graphs,
        clients=tuple(specs),
        actions=tuple(sorted(actions, key=lambda each: each.at)),
        lasting=lasting,
        quiet=quiet,
        timing=TIMING,
        flood=flood,
    )


def _scopes(chance: Chance, zones: list[str]) -> tuple[ScopeGraph, ...]:
    """Two dimensions, one of them perhaps closed; and perhaps the same with a filter more or less in a second epoch."""
    if chance.happens(0.15):
        return (ScopeGraph(),)
    carried = (zones[0], zones[1]) if len(zones) > 1 and chance.happens(0.3) else None
    closed = chance.happens(0.5)

    def graph(shut: bool) -> ScopeGraph:
        out = BoundaryFilter(text="value >= 40") if shut else None
        lines = {
            "plant": Scope(name="plant"),
            "line-1": Scope(name="line-1", containers=("plant",), output=out),
            "line-2": Scope(name="line-2", containers=("plant",)),
            "office": Scope(name="office", carriers=carried),
        }
        halls = {"north": Scope(name="north"), "hall": Scope(name="hall", containers=("north",))}
        return ScopeGraph(
            dimensions={
                "line": Dimension(name="line", closed=closed, scopes=lines),
                "hall": Dimension(name="hall", scopes=halls),
            }
        )

    shut = chance.happens(0.5)
    return (graph(shut), graph(not shut)) if chance.happens(0.6) else (graph(shut),)


def _tags(chance: Chance, graph: ScopeGraph) -> TagSet:
    if not graph.dimensions:
        return NO_TAGS
    tags = {}
    if chance.happens(0.9):
        tags["line"] = chance.one_of(("plant", "line-1", "line-2", "line-1", "office", ANY))
    if chance.happens(0.3):
        tags["hall"] = chance.one_of(("north", "hall", ANY))
    return TagSet.of(tags)


def _client(chance: Chance, name: str, router: str, graph: ScopeGraph) -> ClientSpec:
    offers, wishes = {}, {}
    if chance.happens(0.5):
        for number in range(1 + chance.below(2)):
            offers[f"ad{number}"] = Offer(type=chance.one_of(_NAMED), tags=_tags(chance, graph))
    if not offers or chance.happens(0.6):
        for number in range(1 + chance.below(2)):
            wishes[f"sub{number}"] = _wish(chance, graph)
    return ClientSpec(name=name, router=router, offers=offers, wishes=wishes)


def _wish(chance: Chance, graph: ScopeGraph) -> Wish:
    type = chance.one_of(_NAMED)
    where = "" if type == "Alarm" else chance.one_of(_WHERES)
    return Wish(types=(type,), where=where, tags=_tags(chance, graph), durable=chance.happens(0.6))


def _workload(
    chance: Chance, specs: list[ClientSpec], events: int, lasting: float, graphs: tuple[ScopeGraph, ...]
) -> list[Action]:
    actions: list[Action] = []
    publishers = [each for each in specs if each.offers]
    for number in range(events if publishers else 0):
        client = chance.one_of(publishers)
        ad = chance.one_of(sorted(client.offers))
        data = (
            {"severity": chance.below(10)}
            if client.offers[ad].type == "Alarm"
            else {"value": chance.below(100), "place": f"p{chance.below(4)}"}
        )
        at = 3.0 + (lasting + 4.0) * number / events
        actions.append(Action(at=at, do="publish", who=client.name, name=ad, data=data))
    for client in specs:
        if chance.happens(0.1):
            wish = _wish(chance, graphs[0])
            actions.append(
                Action(at=chance.between(3, lasting), do="subscribe", who=client.name, name="more", wish=wish)
            )
        if chance.happens(0.2):
            offer = Offer(type="Alarm", tags=_tags(chance, graphs[0]))
            at = chance.between(3, lasting)
            actions.append(Action(at=at, do="advertise", who=client.name, name="late", offer=offer))
            actions.append(Action(at=at + 0.01, do="publish", who=client.name, name="late", data={"severity": 1}))
        if chance.happens(0.08) and client.wishes:
            name = chance.one_of(sorted(client.wishes))
            actions.append(Action(at=chance.between(6, lasting), do="unsubscribe", who=client.name, name=name))
        if chance.happens(0.15):
            actions.append(Action(at=chance.between(3, lasting), do="move", who=client.name))
    if len(graphs) > 1:
        actions.append(Action(at=chance.between(5, lasting), do="change-scopes"))
    return actions


def _faults(
    chance: Chance,
    layout: dict[str, tuple[str, ...]],
    specs: list[ClientSpec],
    faults: int,
    lasting: float,
    kinds: tuple[str, ...],
) -> list[Action]:
    zones = list(layout)
    routers = [name for members in layout.values() for name in members]
    actions: list[Action] = []
    for _ in range(faults):
        do = chance.one_of(kinds)
        at, long = chance.between(2.0, lasting), chance.between(0.5, 12.0)
        who, to, much = chance.one_of(routers), "", 0.0
        if do == "cut-zones":
            who, to = chance.one_of(zones), chance.one_of(zones)
        elif do in ("cut-inside", "cut-one-way"):
            to = chance.one_of(layout[who.partition("/")[0]])
        elif do in ("stop-store", "slow-disk", "depose", "jitter", "lose", "duplicate", "garble", "delay"):
            who = chance.one_of(zones)
            much = chance.between(0.05, 0.3)
        elif do == "drift":
            much = chance.between(-0.1, 0.1)
        elif do == "crash-client":
            who = chance.one_of(specs).name
        actions.append(Action(at=at, do=do, who=who, to=to, lasting=min(long, lasting + 2 - at), much=much))
    return actions
