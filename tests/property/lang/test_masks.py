"""Conditions over columns equal the same conditions over rows, whatever they are made of."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.numpy import Mask, compile_mask
from situ.lang.expr.emit.python import compile_test
from situ.lang.expr.emit.vectors import Batch, Frame, below, column, is_json, values_of
from situ.lang.expr.runtime import FAILURES, geo_distance
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Node
from situ.lang.types.model import BOX, DOUBLE, POINT, POLYGON, STRING, Attribute, Struct, geographic
from situ.lang.units import NO_UNIT
from tests.expressions import ROW, UNITS, Generator, M, make_row, row_scope
from tests.volume import seeds

Rows = Sequence[Mapping[str, Any]]
GEO_POINT, GEO_BOX, GEO_POLYGON = geographic(UNITS.parse("deg"))


def columns_of(mask: Mask, rows: Iterable[Mapping[str, Any]]) -> dict[Any, Any]:
    """What a mask reads of these rows, each of which has its variables by name."""
    rows = list(rows)
    return {
        (variable, path): column([below(row[variable], path) for row in rows], type)
        for (variable, path), type in mask.reads.items()
    }


def one_by_one(node: Node, variables: Sequence[str], rows: Rows) -> tuple[list[bool], list[bool]]:
    """In which rows a condition holds, in which it fails: one at a time."""
    call = compile_test(node, variables).call
    holds, failed = [], []
    for row in rows:
        try:
            holds.append(bool(call(*(row[variable] for variable in variables))))
            failed.append(False)
        except FAILURES:
            holds.append(False)
            failed.append(True)
    return holds, failed


def hold_equal(node: Node, variables: Sequence[str], rows: Rows, text: str) -> None:
    mask = compile_mask(node)
    frame = mask.frame(Batch(columns_of(mask, rows), len(rows)))
    found = mask.of(frame)
    holds, failed = one_by_one(node, variables, rows)
    assert found.holds.tolist() == holds, (
        text,
        [r for r, a, b in zip(rows, found.holds, holds, strict=True) if a != b],
    )
    assert (found.failed is None and not any(failed)) or (
        found.failed is not None and found.failed.tolist() == failed
    ), text
    assert mask(columns_of(mask, rows), len(rows)).tolist() == holds


def hold_generated(seeds: range, rows: int, *, strange: bool = False) -> None:
    scope, checked_ones = row_scope(trusted=not strange), 0
    for seed in seeds:
        text = Generator(seed).of("boolean", random.Random(seed).randrange(1, 5))
        node = check(text, scope).node
        if node is None:
            continue
        checked_ones += 1
        if strange and any(is_json(type) for type in compile_mask(node).reads.values()):
            continue  # JSON has no word for them
        dice = random.Random(text)
        given = [{"data": make_row(dice, strange=strange)} for _ in range(rows)]
        for form in (node, simplify(node)):
            hold_equal(form, ("data",), given, text)
    assert checked_ones > 0.85 * len(seeds)


@seeds(range(75), range(100_000, 115_000))
def test_masks_equal_tests(seeds: range) -> None:
    hold_generated(seeds, 16)


@seeds(range(50_000, 50_040), range(50_000, 50_150))
def test_masks_of_doubles_that_nobody_checked(seeds: range) -> None:
    hold_generated(seeds, 12, strange=True)


def test_no_rows() -> None:
    hold_generated(range(60), 0)


def test_columns_give_back_what_was_put_in() -> None:
    dice = random.Random(5)
    rows = [make_row(dice) for _ in range(200)]
    for attribute in ROW.attributes:
        values = [row.get(attribute.name) for row in rows]
        assert values_of(column(values, attribute.type), attribute.type) == values


# ── geometry: two sides ───────────────────────────────────────────────────────────────────────────

PLACE = Struct(
    "Place",
    tuple(
        Attribute(name=name, type=type, unit=M if name == "m" else NO_UNIT, optional=True)
        for name, type in (
            ("p", POINT),
            ("b", BOX),
            ("g", POLYGON),
            ("gp", GEO_POINT),
            ("gb", GEO_BOX),
            ("gg", GEO_POLYGON),
            ("r", DOUBLE),
            ("m", DOUBLE),
            ("name", STRING),
        )
    ),
)
TESTS = (
    "inside(left.p, right.b)",
    "inside(left.p, right.g)",
    "NOT inside(left.p, right.g)",
    "within(left.p, right.p, 2.5)",
    "within(left.p, right.p, right.r)",
    "distance(left.p, right.p) > left.r",
    "inside(left.gp, right.gb)",
    "inside(left.gp, right.gg)",
    "within(left.gp, right.gp, 100000)",
    "distance(left.gp, right.gp) <= right.m * 1e5",
    "distance(left.gp, right.gp) = 0",
    "distance(left.gp, right.gp) + 1 m > right.m",
    "left.name = right.name",
    "left.name < right.name AND left.r < right.r",
    "left.name || 'x' = right.name OR inside(left.p, right.b) OR left.r / right.r > 1",
    "coalesce(left.r, right.r) > 2 AND left.name IS NOT NULL",
    "CASE WHEN inside(left.p, right.b) THEN left.r < right.r ELSE within(left.p, right.p, left.r) END",
    "left.name LIKE 'a%' AND right.name LIKE '%b_'",
)
SPECIAL = (0.0, -0.0, 1.0, 2.5, -2.5, 1e100, 1.5e100, -1.7e308, 1.7e308, 5e-324)


def make_place(dice: random.Random) -> dict[str, Any]:
    def number(far: float = 5.0) -> float:
        kind = dice.random()
        if kind < 0.1 and far == 5.0:
            return dice.choice(SPECIAL)
        return float(dice.randrange(-3, 4)) if kind < 0.5 else round(dice.uniform(-far, far), 3)

    def ring(names: tuple[str, str], far: float) -> list[dict[str, float]]:
        return [{name: number(far) for name in names} for _ in range(dice.randrange(6))]

    def latitude(name: str) -> float:
        return dice.choice((90.0, -90.0, 90.5, 0.0)) if dice.random() < 0.1 else number(80.0 if "la" in name else 170.0)

    place = {
        "p": {"x": number(), "y": number()},
        "b": {"x1": number(), "y1": number(), "x2": number(), "y2": number()},
        "g": {"points": ring(("x", "y"), 5.0)},
        "gp": {"lat": latitude("lat"), "lon": latitude("lon")},
        "gb": {"south": number(), "west": number(), "north": number(), "east": number()},
        "gg": {"points": ring(("lat", "lon"), 80.0)},
        "r": dice.choice((0.0, 1.0, 2.5, 5.0, dice.uniform(0, 8))),
        "m": dice.choice((0.0, 1.0, dice.uniform(0, 200))),
        "name": dice.choice(("", "a", "ab", "abc", "Käse", "😀b")),
    }
    return {name: value for name, value in place.items() if dice.random() < 0.9}


def place_scope() -> NameScope:
    variable = Variable(type=PLACE, unit=NO_UNIT)
    return NameScope(variables={"left": variable, "right": variable}, units=UNITS)


@pytest.mark.parametrize("text", TESTS)
def test_two_sides_in_rows_and_in_pairs(text: str) -> None:
    node = check(text, place_scope()).tree()
    dice = random.Random(text)
    for form in (node, simplify(node)):
        mask = compile_mask(form)
        lefts, rights = ([make_place(dice) for _ in range(count)] for count in (40, 25))
        pairs = [{"left": left, "right": right} for left in lefts for right in rights]
        hold_equal(form, ("left", "right"), pairs, text)
        sides = []
        for name, rows in (("left", lefts), ("right", rights)):
            keys = {key: type for key, type in mask.reads.items() if key[0] == name}
            columns = {key: column([below(row, key[1]) for row in rows], type) for key, type in keys.items()}
            sides.append((name, Batch(columns, len(rows))))
        found = mask.of(Frame.of_pairs(sides[0], sides[1]))
        holds, failed = one_by_one(form, ("left", "right"), pairs)
        assert found.holds.shape == (40, 25)
        assert found.holds.ravel().tolist() == holds, text
        assert (np.zeros(1000, bool) if found.failed is None else found.failed.ravel()).tolist() == failed, text


def test_distances_on_the_globe_are_settled_at_the_border() -> None:
    """The bound is the very distance, and its neighbours: what numpy's sines would get wrong."""
    scope = place_scope()
    dice = random.Random(3)
    rows = []
    for _ in range(300):
        a, b = ({"lat": dice.uniform(-90, 90), "lon": dice.uniform(-180, 180)} for _ in range(2))
        if dice.random() < 0.3:
            b = {"lat": -a["lat"], "lon": a["lon"] + 180.0 + dice.choice((0.0, 1e-9, 1e-7))}
        exact = geo_distance(a["lat"], a["lon"], b["lat"], b["lon"])
        bounds = (exact, math.nextafter(exact, math.inf), math.nextafter(exact, 0.0))
        rows.extend({"left": {"gp": a}, "right": {"gp": b, "m": bound}} for bound in bounds)
    for op in ("<=", "<", "=", ">="):
        node = check(f"distance(left.gp, right.gp) {op} right.m", scope).tree()
        hold_equal(node, ("left", "right"), rows, op)
