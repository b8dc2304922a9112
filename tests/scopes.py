"""Scope graphs, tag sets, events and brokers for tests: the paper's example, and generated ones, the same by seed."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from situ.lang.records import replace
from situ.lang.tags import ANY, TagSet
from situ.scopes.explanation import RootEvent
from situ.scopes.filter_sets import NO_NUMBERS, FilterNumbers, bits_of, numbers_in
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import BoundaryFilter, Dimension, Scope, ScopeGraph, ScopeLink
from situ.scopes.visibility_plan import VisibilityPlan, compile_visibility, number_filters
from tests.oracles.visibility import Brokers
from tests.types_files import types_of

TYPES = types_of(
    """
    events:
      Alarm: {severity: int, vendor: optional string}
      Fire(Alarm): {hall: string}
      State: {machine: string, load: double}
      Note: {severity: optional int, sampled: boolean}
    """
)
FILTERS = FilterMeanings(TYPES)
TEXTS = (
    "type IS Alarm",
    "type IS Fire",
    "NOT type IS State",
    "type IS Alarm OR type IS Note",
    "severity >= 4",
    "severity < 7",
    "10 / severity > 2",
    "vendor = 'acme'",
    "vendor IS NULL OR vendor <> 'acme'",
    "load > 0.5",
    "load <= 0.8 OR severity > 2",
    "machine = 'press'",
    "sampled",
    "event.source = 'p1'",
    "event.confidence > 50 [%]",
    "hall IN ('a', 'b')",
    "TRUE",
    "FALSE",
)


@dataclass(frozen=True, slots=True)
class Passed:
    """An event of which only the filters are known that are true for it."""

    texts: frozenset[str]

    def passes(self, text: str) -> bool:
        return text == "TRUE" or text in self.texts


EVERYTHING = RootEvent(filters=FILTERS, type="Alarm", envelope={}, data={"severity": 5})


def stamp_bits(numbers: FilterNumbers, stamped: int, event: RootEvent) -> int:
    """The filters that are TRUE for an event, asked one by one."""
    texts = numbers.texts()
    return bits_of(number for number in numbers_in(stamped) if event.passes(texts[number]))


def dimension(name: str, edges: Mapping[str, str], *, closed: bool = False, **filters: str) -> Dimension:
    """A dimension from ``member: "container container"``, without filters but ``output_x="…"`` and ``input_x="…"``."""
    names = {*edges, *(container for containers in edges.values() for container in containers.split())}
    scopes = {
        each: Scope(
            name=each,
            containers=tuple(sorted(edges.get(each, "").split())),
            output=_filter(filters.get(f"output_{each}")),
            input=_filter(filters.get(f"input_{each}")),
        )
        for each in names
    }
    return Dimension(name=name, closed=closed, scopes=scopes)


def _filter(text: str | None) -> BoundaryFilter | None:
    return None if text is None else BoundaryFilter(text=text)


def graph_of(*dimensions: Dimension) -> ScopeGraph:
    return ScopeGraph(dimensions={each.name: each for each in dimensions})


def tags(text: str, graph: ScopeGraph) -> TagSet:
    """The tag set of these scopes, each in its dimension; ``any`` is for all the rest, ``d: any`` for one dimension."""
    named: dict[str, str] = {}
    rest = False
    for word in text.split():
        if word == ANY:
            rest = True
        elif word.endswith(":any"):
            named[word.removesuffix(":any")] = ANY
        else:
            named[graph.dimension_of(word) or "nowhere"] = word
    return TagSet.of(named, rest=rest)


PAPER = graph_of(
    dimension("d1", {"ls": "us", "us": "es", "is": "fs", "fs": "es", "ir": "es"}),
    dimension("d2", {"ch": "bo", "bo": "fr", "fr": "eu", "lo": "uk", "uk": "eu"}),
    dimension("d3", {"tm": ""}),
)
PAPER_BROKERS = Brokers(
    neighbours={"B3": ["B2"], "B2": ["B1", "B3"], "B1": ["B2", "B5"], "B5": ["B1"]},
    overlays={
        "B3": frozenset("ls us ch bo fr".split()),
        "B2": frozenset("us es fr eu".split()),
        "B1": frozenset("es fs eu uk".split()),
        "B5": frozenset("fs is uk lo".split()),
    },
)


# ── generated ─────────────────────────────────────────────────────────────────────────────────────


def make_graph(dice: random.Random, *, most_dimensions: int = 4, most_scopes: int = 10) -> ScopeGraph:
    """Diamonds, several roots, filters at interfaces and links; dimensions open and closed."""
    return graph_of(
        *(make_dimension(f"d{number}", dice, most_scopes) for number in range(1, dice.randint(1, most_dimensions) + 1))
    )


def make_dimension(name: str, dice: random.Random, most_scopes: int = 10) -> Dimension:
    names = [f"{name}s{number}" for number in range(dice.randint(1, most_scopes))]
    density, steep = dice.choice((0.2, 0.5, 0.8, 1.0)), dice.random() < 0.5
    scopes: dict[str, Scope] = {}
    for place, each in enumerate(names):
        wanted = 0 if place == 0 or dice.random() < 0.1 else dice.choice((1, 2, 2, 3))
        near = names[max(0, place - 3) if steep else 0 : place]
        containers = tuple(sorted(dice.sample(near, min(len(near), wanted))))
        scopes[each] = Scope(
            name=each,
            containers=containers,
            output=make_filter(dice, density),
            input=make_filter(dice, density),
            links=tuple(
                (container, ScopeLink(up=make_filter(dice, 0.5), down=make_filter(dice, 0.5)))
                for container in containers
                if dice.random() < 0.2
            ),
        )
    return Dimension(name=name, closed=dice.random() < 0.4, scopes=scopes)


def changed(dice: random.Random, graph: ScopeGraph) -> ScopeGraph:
    """One thing is another now: an edge, a filter, a scope, a mode, a whole dimension."""
    name = dice.choice(list(graph.dimensions))
    dimension = graph.dimensions[name]
    scopes = dict(dimension.scopes)
    scope = scopes[dice.choice(list(scopes))]
    match dice.randrange(8):
        case 0 | 1:  # another edge, never into itself
            free = [each for each in scopes if each not in dimension.below(scope.name)]
            kept = [each for each in scope.containers if dice.random() < 0.5]
            containers = tuple(sorted({*kept, *dice.sample(free, min(len(free), 1))}))
            scopes[scope.name] = replace(scope, containers=containers, links=())
        case 2 | 3:
            scopes[scope.name] = replace(scope, output=make_filter(dice, 0.7))
        case 4:
            scopes[scope.name] = replace(scope, input=make_filter(dice, 0.7))
        case 5:
            gone = [each for each in scopes if not dimension.members(each)]
            if len(scopes) > 1:
                del scopes[dice.choice(gone)]
        case 6:
            new = f"{name}n{dice.randrange(1000)}"
            scopes[new] = Scope(name=new, containers=(scope.name,), output=make_filter(dice, 0.7))
        case _:
            if dice.random() < 0.5:
                return graph_of(
                    *(each for each in graph.dimensions.values() if each is not dimension),
                    replace(dimension, closed=not dimension.closed),
                )
            return graph_of(*graph.dimensions.values(), make_dimension(f"x{dice.randrange(1000)}", dice, 4))
    return graph_of(
        *(each for each in graph.dimensions.values() if each is not dimension),
        Dimension(name=name, closed=dimension.closed, scopes=scopes),
    )


def make_filter(dice: random.Random, density: float) -> BoundaryFilter | None:
    return BoundaryFilter(text=dice.choice(TEXTS)) if dice.random() < density else None


def make_tags(dice: random.Random, graph: ScopeGraph) -> TagSet:
    """Mostly scopes, so that most pairs are neither always nor never for a cheap reason."""
    named: dict[str, str] = {}
    for name, each in graph.dimensions.items():
        draw = dice.random()
        if draw < 0.85:
            named[name] = dice.choice(list(each.scopes))
        elif draw < 0.92:
            named[name] = ANY
    return TagSet.of(named, rest=dice.random() < 0.5)


def make_event(dice: random.Random) -> RootEvent:
    severity = dice.choice((0, 1, 3, 4, 6, 9))
    data: dict[str, object]
    match type := dice.choice(("Alarm", "Fire", "State", "Note")):
        case "State":
            data = {"machine": dice.choice(("press", "saw")), "load": dice.choice((0.1, 0.6, 0.9))}
        case "Note":
            data = {"sampled": dice.random() < 0.5} | ({"severity": severity} if dice.random() < 0.6 else {})
        case _:
            data = {"severity": severity} | ({"vendor": dice.choice(("acme", "other"))} if dice.random() < 0.6 else {})
            if type == "Fire":
                data["hall"] = dice.choice("abc")
    envelope: dict[str, object] = {
        "id": str(dice.randrange(10**6)),
        "source": dice.choice(("p1", "p2")),
        "type": type,
        "time": dt.datetime(2026, 11, 1, tzinfo=dt.UTC),
    }
    if dice.random() < 0.7:
        envelope["confidence"] = dice.choice((20.0, 80.0))
    return RootEvent(filters=FILTERS, type=type, envelope=envelope, data=data)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A graph with tag sets in use, and an event for each pair of them."""

    seed: int
    graph: ScopeGraph
    ads: tuple[TagSet, ...]
    subs: tuple[TagSet, ...]
    plan: VisibilityPlan
    cases: tuple[tuple[TagSet, TagSet, RootEvent], ...]


def make_world(seed: int, *, tag_sets: int = 5, most_dimensions: int = 4) -> World:
    dice = random.Random(seed)
    graph = make_graph(dice, most_dimensions=most_dimensions)
    ads = tuple(make_tags(dice, graph) for _ in range(tag_sets))
    subs = tuple(make_tags(dice, graph) for _ in range(tag_sets))
    return World(
        seed=seed,
        graph=graph,
        ads=ads,
        subs=subs,
        plan=compile_visibility(graph, ads, subs, number_filters(graph, NO_NUMBERS)),
        cases=tuple((ad, sub, make_event(dice)) for ad in ads for sub in subs),
    )


def worlds(cases: int, *, start: int = 0) -> Iterator[World]:
    """As many as it takes for so many cases."""
    seed = start
    while cases > 0:
        world = make_world(seed)
        yield world
        cases -= len(world.cases)
        seed += 1


def make_brokers(dice: random.Random, graph: ScopeGraph) -> Brokers:
    """Connected brokers, with cycles. One dimension is divided among them, the overlay of each of its scopes connected
    and overlapping with those of its containers; brokers are in the overlays of all scopes of the others."""
    names = [f"b{number}" for number in range(dice.randint(1, 5))]
    neighbours: dict[str, set[str]] = {each: set() for each in names}
    for place, each in enumerate(names[1:], 1):
        for other in dice.sample(names[:place], min(place, dice.choice((1, 1, 2)))):
            neighbours[each].add(other)
            neighbours[other].add(each)
    divided = dice.choice(list(graph.dimensions))
    everywhere = {scope for name, each in graph.dimensions.items() if name != divided for scope in each.scopes}
    overlays: dict[str, set[str]] = {each: set(everywhere) for each in names}
    spread: dict[str, set[str]] = {}
    whole = graph.dimensions[divided]
    for scope in reversed(whole.upwards()):
        overlay = {dice.choice(names)}
        for container in whole.containers(scope):
            overlay |= _path_to(overlay, spread[container], neighbours)
        spread[scope] = overlay
        for broker in overlay:
            overlays[broker].add(scope)
    return Brokers(
        neighbours={each: sorted(others) for each, others in neighbours.items()},
        overlays={each: frozenset(scopes) for each, scopes in overlays.items()},
    )


def _path_to(start: set[str], goal: set[str], neighbours: Mapping[str, set[str]]) -> set[str]:
    """Brokers that join the one set with the other."""
    came: dict[str, str | None] = dict.fromkeys(start)
    waiting = list(came)
    for here in waiting:
        if here in goal:
            path, at = set(), here
            while at is not None:
                path.add(at)
                at = came[at]
            return path
        for following in sorted(neighbours[here]):
            if following not in came:
                came[following] = here
                waiting.append(following)
    raise AssertionError("brokers are connected")
