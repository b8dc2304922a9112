"""Expressions: the front end against size; generated Python against code written by hand and against tree walking."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from benchmarks.bench import Bench
from benchmarks.harness import Scenario, Variant, Verdict
from situ.lang.expr.checker.check import check_condition
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.interpret import interpret
from situ.lang.expr.scope import NameScope, event_scope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import walk
from situ.lang.types.model import DOUBLE, LONG, POINT, STRING, Attribute, Struct
from situ.lang.units import Units

UNITS = Units()
METRE = UNITS.parse("m")
SIGHTING = Struct(
    "Sighting",
    (
        Attribute(name="who", type=STRING),
        Attribute(name="room", type=STRING, optional=True),
        Attribute(name="at", type=POINT, unit=METRE),
        Attribute(name="floor", type=LONG),
        Attribute(name="speed", type=DOUBLE, unit=UNITS.parse("m/s")),
    ),
)
EVENTS = 20_000


def scope() -> NameScope:
    return event_scope(SIGHTING, units=UNITS)


def sightings(count: int) -> list[dict[str, Any]]:
    dice = random.Random(7)
    return [
        {
            "who": f"p{dice.randrange(1000)}",
            "at": {"x": dice.uniform(0, 40), "y": dice.uniform(0, 20)},
            "floor": dice.randrange(4),
            "speed": dice.uniform(0, 3),
            **({"room": dice.choice(("hall", "lab", "vault"))} if dice.random() < 0.8 else {}),
        }
        for _ in range(count)
    ]


FILTERS: dict[str, tuple[str, Callable[[Any, Any], bool]]] = {
    "area": (
        "at.x BETWEEN 10 m AND 25 m AND at.y < 8 m AND floor = 2",
        lambda event, data: 10.0 <= data["at"]["x"] <= 25.0 and data["at"]["y"] < 8.0 and data["floor"] == 2,
    ),
    "optional": (
        "room = 'vault' OR (room IN ('lab', 'hall') AND speed > 5 [km/h])",
        lambda event, data: (
            data.get("room") == "vault" or (data.get("room") in ("lab", "hall") and data["speed"] > 1.3888888888888888)
        ),
    ),
    "arithmetic": (
        "(at.x - 20 m) * (at.x - 20 m) + (at.y - 10 m) * (at.y - 10 m) < 25 [m^2] AND who LIKE 'p1%'",
        lambda event, data: (
            (data["at"]["x"] - 20.0) * (data["at"]["x"] - 20.0) + (data["at"]["y"] - 10.0) * (data["at"]["y"] - 10.0)
            < 25.0
            and data["who"].startswith("p1")
        ),
    ),
}


def _filter_variants(bench: Bench, name: str) -> list[Variant]:
    text, by_hand = FILTERS[name]
    node = simplify(check_condition(text, scope()).tree())
    generated = compile_test(node, ("event", "data")).call
    rows = sightings(bench.some(EVENTS, 500))
    envelope: dict[str, Any] = {}
    expected = [by_hand(envelope, row) for row in rows]
    assert [bool(generated(envelope, row)) for row in rows] == expected
    assert [interpret(node, {"event": envelope, "data": row}) is True for row in rows] == expected

    def run(function: Callable[[Any, Any], Any], times: int = 1) -> int:
        for _ in range(times):
            for row in rows:
                function(envelope, row)
        return len(rows) * times

    return [
        Variant(name="generated Python", work=lambda: run(generated, 10)),
        Variant(name="written by hand", work=lambda: run(by_hand, 10)),
        Variant(name="walking the tree", work=lambda: run(lambda e, d: interpret(node, {"event": e, "data": d}))),
    ]


def _filter_verdicts(medians: dict[str, float]) -> list[Verdict]:
    hand = medians["generated Python"] / medians["written by hand"]
    walking = medians["generated Python"] / medians["walking the tree"]
    return [
        Verdict(what="generated against written by hand", value=hand, goal="≥ 0.9", met=hand >= 0.9),
        Verdict(what="generated against walking the tree", value=walking, goal="≥ 10", met=walking >= 10),
    ]


SIZES = (25, 50, 100, 200, 400, 800)


def _text_of(nodes: int) -> str:
    """A filter of about so many nodes: comparisons joined by AND and OR, as users write them."""
    return " AND ".join(f"(at.x > {n} m OR floor = {n})" for n in range(max(1, nodes // 7)))


def _front_variants(bench: Bench) -> list[Variant]:
    known = scope()

    def variant(size: int) -> Variant:
        text = _text_of(size)
        nodes = sum(1 for _ in walk(check_condition(text, known).tree()))
        times = max(1, bench.some(1600, 100) // size)

        def work() -> int:
            for _ in range(times):
                check_condition(text, known)
            return times * nodes

        return Variant(name=f"{nodes} nodes", work=work, point=float(nodes))

    return [variant(size) for size in (SIZES[:2] if bench.quick else SIZES)]


def _front_verdicts(medians: dict[str, float]) -> list[Verdict]:
    rates = list(medians.values())
    spread = max(rates) / min(rates)
    return [
        Verdict(
            what="nodes a second, fastest size against slowest (linear: near 1)",
            value=spread,
            goal="≤ 2",
            met=spread <= 2,
        )
    ]


SCENARIOS = [
    Scenario(
        name="expression-front-end",
        title="Reading and checking an expression, against its size",
        unit="nodes/s",
        about="Parse, resolve, type and unit check of filters of growing size. Linear cost shows as a flat rate.",
        variants=_front_variants,
        judge=_front_verdicts,
    ),
    *(
        Scenario(
            name=f"expression-{name}",
            title=f"Evaluating a filter on Python: {name}",
            unit="events/s",
            about=f"`{text}` on {EVENTS:,} events: the function Situ generates, the same filter as a Python lambda, "
            "and the reference interpreter.",
            variants=lambda bench, name=name: _filter_variants(bench, name),  # type: ignore[misc]
            judge=_filter_verdicts,
        )
        for name, (text, _) in FILTERS.items()
    ),
]
