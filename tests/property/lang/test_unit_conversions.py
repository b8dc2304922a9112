"""Doubles in another unit, and doubles rounded: what the operations give, and that all ways of execution give the same.

The exact results are computed with rationals. Spark is asked the same in `tests/integration/spark/test_expressions.py`.
"""

from __future__ import annotations

import functools
import math
import random
from fractions import Fraction

import numpy as np
import pytest

from situ.lang.expr.checker.check import check
from situ.lang.expr.emit.python import compile_test, compile_value
from situ.lang.expr.emit.vector_functions import VECTOR_FUNCTIONS
from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES, format_number, round_double
from situ.lang.expr.scope import NameScope, Variable
from situ.lang.expr.simplify import simplify
from situ.lang.expr.tree import Compare, Node, Read, walk
from situ.lang.types.model import DOUBLE, Attribute, Struct
from situ.lang.units import Units, conversion, convert_double, double_steps

UNITS = Units()
factors = functools.cache(lambda source, target: conversion(UNITS.parse(source), UNITS.parse(target)))
steps = functools.cache(lambda source, target: double_steps(*factors(source, target)))
ONCE = (
    ("mm", "m"),
    ("m", "mm"),
    ("cm", "km"),
    ("min", "h"),
    ("h", "s"),
    ("kWh", "J"),
    ("g", "t"),
    ("in", "ft"),
    ("W", "kW"),
)
"""Pairs of which one is a whole number, or a power of two, times the other."""
TWICE = (("ft", "m"), ("m", "ft"), ("km/h", "m/s"), ("mph", "km/h"), ("in", "cm"), ("lb", "kg"))
LONG = (("bar", "psi"), ("deg", "rad"))
"""Whose factor has so many digits that whole numbers do not stay exact."""
SHIFTED = (("degC", "K"), ("K", "degC"), ("degF", "degC"), ("degC", "degF"), ("degF", "K"))
LARGEST = 1.7976931348623157e308
TWO_ROUNDINGS = Fraction(2, 2**53) * (1 + Fraction(1, 2**50))


def doubles(seed: int, number: int) -> list[float]:
    dice = random.Random(seed)
    some = [float(dice.randrange(-(10**6), 10**6)) for _ in range(number)]
    some += [round(dice.uniform(-500, 500), dice.randrange(4)) for _ in range(number)]
    some += [dice.uniform(-1, 1) * 10.0 ** dice.randrange(-290, 290) for _ in range(number)]
    return [*some, 0.0, -0.0, 946.0, LARGEST, -LARGEST, 1e-300]


def exact(value: float, source: str, target: str) -> Fraction:
    scale, offset = factors(source, target)
    return Fraction(value) * scale + offset


def nearest(value: Fraction) -> float:
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def converted(value: float, source: str, target: str) -> float:
    return convert_double(value, steps(source, target))


def node_of(text: str, source: str) -> Node:
    data = Struct("D", (Attribute(name="x", type=DOUBLE, unit=UNITS.parse(source)),))
    scope = NameScope(variables={"data": Variable(type=data, trusted=True)}, bare="data", units=UNITS)
    return check(text, scope).tree()


@pytest.mark.parametrize(("source", "target"), ONCE)
def test_what_takes_one_operation_is_rounded_once(source: str, target: str) -> None:
    assert len(steps(source, target)) == 1
    for value in doubles(1, 500):
        assert converted(value, source, target) == nearest(exact(value, source, target)), value


def test_no_whole_millimetre_is_off() -> None:
    assert [each for each in range(10_000) if converted(each, "mm", "m") != each / 1000] == []
    assert converted(converted(946.0, "mm", "m"), "m", "mm") == 946.0


@pytest.mark.parametrize(("source", "target"), [*ONCE, *TWICE, *SHIFTED])
def test_whole_numbers_are_rounded_once_between_all_units(source: str, target: str) -> None:
    for value in (*range(-1000, 1000), 10**6, 10**7 + 1):
        assert converted(float(value), source, target) == nearest(exact(float(value), source, target)), value


@pytest.mark.parametrize(("source", "target"), [*TWICE, *LONG])
def test_a_product_and_a_quotient_are_next_to_the_exact_result(source: str, target: str) -> None:
    for value in doubles(2, 500):
        right, found = exact(value, source, target), converted(value, source, target)
        if abs(right) > Fraction(LARGEST):
            continue
        assert abs(Fraction(found) - right) <= abs(right) * TWO_ROUNDINGS, value


@pytest.mark.parametrize(("source", "target"), SHIFTED)
def test_with_an_offset_the_error_is_that_of_the_largest_number_on_the_way(source: str, target: str) -> None:
    for value in doubles(3, 500):
        right, found = exact(value, source, target), converted(value, source, target)
        if abs(right) < Fraction(LARGEST):
            size = max(abs(nearest(right)), abs(nearest(exact(value, source, target) - exact(0.0, source, target))))
            assert abs(Fraction(found) - right) <= 2 * Fraction(math.ulp(max(size, 500.0))), value


@pytest.mark.parametrize(("source", "target"), [*ONCE, *TWICE, *LONG, *SHIFTED])
def test_generated_code_and_the_interpreter_convert_alike(source: str, target: str) -> None:
    node = node_of(f"to_unit(x, '{target}')", source)
    compiled = compile_value(node, ("data",)).call
    for value in doubles(4, 100):
        try:
            found: float | None = compiled({"x": value})
        except FAILURES:
            found = None
        expected = converted(value, source, target)
        assert found == (expected if math.isfinite(expected) else None)
        if found is not None:
            assert interpret(node, {"data": {"x": value}}) == found


@pytest.mark.parametrize(("source", "target"), [*ONCE, *TWICE, *LONG, *SHIFTED])
def test_thresholds_agree_with_the_conversion(source: str, target: str) -> None:
    """A comparison in another unit is one with the attribute itself, and holds for the very same doubles."""
    dice = random.Random(f"{source}{target}")
    for bound in (946.0, 0.1, 20.0, dice.uniform(-100, 100), float(dice.randrange(1000))):
        for op in ("<=", "<", ">", ">=", "="):
            written = node_of(f"to_unit(x, '{target}') {op} {bound!r} [{target}]", source)
            simplified = simplify(written)
            assert all(isinstance(each.left, Read) for each in walk(simplified) if isinstance(each, Compare))
            test = compile_test(simplified, ("data",)).call
            middle = nearest((Fraction(bound) - exact(0.0, source, target)) / factors(source, target)[0])
            near = [middle]
            for _ in range(4):
                near += [math.nextafter(near[-1], math.inf), math.nextafter(min(near), -math.inf)]
            for value in near:
                assert bool(test({"x": value})) == interpret(written, {"data": {"x": value}}), (op, bound, value)


def test_a_filter_in_millimetres_finds_946() -> None:
    """Published in mm, kept in m, wanted in mm."""
    kept = converted(946.0, "mm", "m")
    assert interpret(simplify(node_of("to_unit(x, 'mm') <= 946 [mm]", "m")), {"data": {"x": kept}}) is True


@pytest.mark.parametrize(
    ("point", "difference"), [("degC", "delta_degC"), ("degF", "delta_degC"), ("degC", "delta_degF")]
)
def test_a_temperature_is_no_difference_of_temperatures(point: str, difference: str) -> None:
    for source, target in ((point, difference), (difference, point)):
        with pytest.raises(ValueError, match="the other a difference"):
            conversion(UNITS.parse(source), UNITS.parse(target))
    assert conversion(UNITS.parse(difference), UNITS.parse("K"))[1] == 0
    assert converted(10.0, "degC", "K") == 283.15


# ── rounding ──────────────────────────────────────────────────────────────────────────────────────


def rounded(value: float, digits: int) -> float:
    """What is meant: the decimal that a double is written as, rounded, halves away from zero."""
    units = Fraction(repr(abs(value))) * 10**digits
    whole = math.floor(units + Fraction(1, 2))
    return math.copysign(nearest(Fraction(whole, 10**digits)), value)


def halves(seed: int, number: int) -> list[tuple[float, int]]:
    """Halves of some digit, and their neighbours; and any other numbers."""
    dice = random.Random(seed)
    found = []
    for _ in range(number):
        digits = dice.randrange(6)
        half = nearest(Fraction(2 * dice.randrange(-(10**7), 10**7) + 1, 2 * 10**digits))
        found += [(each, digits) for each in (half, math.nextafter(half, 0.0), math.nextafter(half, math.inf))]
        found.append((dice.uniform(-1000, 1000), digits))
    return found


@pytest.mark.parametrize(
    ("value", "digits", "result"),
    [
        (0.49999999999999994, 0, 0.0),
        (1.005, 2, 1.01),
        (2.675, 2, 2.68),
        (2.5, 0, 3.0),
        (-2.5, 0, -3.0),
        (0.285, 2, 0.29),
    ],
)
def test_halves_are_rounded_away_from_zero_as_they_are_written(value: float, digits: int, result: float) -> None:
    assert round_double(value, digits) == result == rounded(value, digits)
    assert float(format_number(value, digits)) == result


def test_rounding_equals_the_rounding_of_what_is_written() -> None:
    for value, digits in halves(5, 5_000):
        assert round_double(value, digits) == rounded(value, digits), (value, digits)


def test_rounding_in_columns_equals_that_of_single_values() -> None:
    run = next(run for overload, run in VECTOR_FUNCTIONS.items() if overload.name == "round")
    for digits in range(6):
        values = [value for value, _ in halves(6 + digits, 500)]
        found, _ = run(np.array(values), digits)
        assert found.tolist() == [round_double(value, digits) for value in values]
