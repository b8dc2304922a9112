"""Functions of the language on arrays: the rows of the function table that numpy computes as Python does, bit by bit.

Each takes arrays of arguments, which are neither null nor beyond what the function tolerates where the result counts,
and the constants among its arguments; it gives the values, and where the function fails. What is not here runs row by
row: sines and logarithms, because numpy's differ from Python's in the last digit; text, time zones, lists and decimals.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from situ.lang.expr.checker.arithmetic import DIVIDED_BY_CONSTANT
from situ.lang.expr.emit.vectors import FAILED, Array, Bools
from situ.lang.expr.functions.table import overloads
from situ.lang.expr.functions.time import TIME_ARITHMETIC
from situ.lang.expr.overload import Overload
from situ.lang.expr.runtime import EARTH_RADIUS, FAILURES, FARTHEST, LONG_MAX, RADIANS, geo_distance

Result = tuple[Array, Bools | None]
VectorFunction = Callable[..., Result]

_LONGEST = 9223372036854775808.0  # 2^63
_WHOLE = 4503599627370496.0  # 2^52: from here on every double is a whole number


def _sure(function: Callable[..., Any]) -> VectorFunction:
    """One that never fails."""
    return lambda *args: (np.asarray(function(*args)), None)


def _add_long(a: Array, b: Array) -> Result:
    total = a + b
    return total, ((a ^ total) & (b ^ total)) < 0


def _subtract_long(a: Array, b: Array) -> Result:
    difference = a - b
    return difference, ((a ^ b) & (a ^ difference)) < 0


def _multiply_long(a: Array, b: Array) -> Result:
    product = np.asarray(a * b)
    # The product of doubles tells, but for those close to the limit, which Python's integers settle.
    large = np.abs(np.asarray(a, np.float64) * np.asarray(b, np.float64))
    failing = np.asarray(large >= _LONGEST)
    close = np.asarray((large > _LONGEST * 0.999) & (large < _LONGEST * 1.001))
    if close.any():
        left, right = (np.broadcast_to(each, close.shape)[close].tolist() for each in (a, b))
        exact = [not -LONG_MAX - 1 <= x * y <= LONG_MAX for x, y in zip(left, right, strict=True)]
        failing = failing.copy()
        failing[close] = exact
    return product, failing


def _divide(a: Array, b: Array) -> Result:
    return np.asarray(a / b), np.asarray(b == 0.0)


def _remainder(a: Array, b: Array) -> Result:
    return np.asarray(np.fmod(a, b)), np.asarray(b == 0)


def _negate_long(a: Array) -> Result:
    return -a, np.asarray(a == -LONG_MAX - 1)


def _abs_long(a: Array) -> Result:
    return np.abs(a), np.asarray(a == -LONG_MAX - 1)


def _round(value: Array, digits: Any = None) -> Result:
    factor = 10.0 ** int(digits or 0)
    size = np.abs(value)
    product = size * factor
    below = np.floor(product)
    rounded = np.copysign((below + (size >= (below + 0.5) / factor)) / factor, value)
    return np.where(product < _WHOLE, rounded, value), None


def _to_long(change: Callable[[Array], Array]) -> VectorFunction:
    def run(value: Array) -> Result:
        whole = np.asarray(change(value))
        failing = ~((whole >= -_LONGEST) & (whole < _LONGEST))
        return np.where(failing, 0.0, whole).astype(np.int64), failing

    return run


def _sqrt(value: Array) -> Result:
    return np.sqrt(value), np.asarray(value < 0.0)


def _distance(x1: Array, y1: Array, x2: Array, y2: Array) -> Array:
    across, along = x1 - x2, y1 - y2
    return np.asarray(np.sqrt(across * across + along * along))


def _seconds(value: Array) -> Array:
    return value.astype(np.float64) / 1000000.0


def _ratio(a: Array, b: Array) -> Result:
    return np.asarray(a.astype(np.float64) / b.astype(np.float64)), np.asarray(b == 0)


def _overload(name: str, *parameters: str) -> Overload:
    return next(each for each in overloads(name) if each.parameters == parameters)


_BOTH_DOUBLE = ("double", "double")
_BOTH_LONG = ("long", "long")
_BOTH_INT = ("int", "int")

VECTOR_FUNCTIONS: Mapping[Overload, VectorFunction] = MappingProxyType(
    {
        _overload("+", *_BOTH_INT): _sure(np.add),
        _overload("+", *_BOTH_LONG): _add_long,
        _overload("+", *_BOTH_DOUBLE): _sure(np.add),
        _overload("-", *_BOTH_INT): _sure(np.subtract),
        _overload("-", *_BOTH_LONG): _subtract_long,
        _overload("-", *_BOTH_DOUBLE): _sure(np.subtract),
        _overload("*", *_BOTH_INT): _sure(np.multiply),
        _overload("*", *_BOTH_LONG): _multiply_long,
        _overload("*", *_BOTH_DOUBLE): _sure(np.multiply),
        _overload("/", *_BOTH_DOUBLE): _divide,
        DIVIDED_BY_CONSTANT: _sure(np.divide),
        _overload("%", *_BOTH_LONG): _remainder,
        _overload("%", *_BOTH_DOUBLE): _remainder,
        _overload("negate", "int"): _sure(np.negative),
        _overload("negate", "long"): _negate_long,
        _overload("negate", "double"): _sure(np.negative),
        _overload("negate", "duration"): _negate_long,
        _overload("abs", "int"): _sure(np.abs),
        _overload("abs", "long"): _abs_long,
        _overload("abs", "double"): _sure(np.abs),
        _overload("round", "double", "int"): _round,
        _overload("floor", "double"): _to_long(np.floor),
        _overload("ceil", "double"): _to_long(np.ceil),
        _overload("sqrt", "double"): _sqrt,
        _overload("radians", "double"): _sure(lambda value: value * RADIANS),
        _overload("degrees", "double"): _sure(lambda value: value * 57.29577951308232),
        _overload("to_double", "double"): _sure(np.asarray),
        _overload("to_long", "long"): _sure(np.asarray),
        _overload("to_long", "double"): _to_long(np.trunc),
        _overload("seconds", "duration"): _sure(_seconds),
        _overload("distance", *_BOTH_DOUBLE, *_BOTH_DOUBLE): _sure(_distance),
        TIME_ARITHMETIC["-", "timestamp", "timestamp"]: _sure(np.subtract),
        TIME_ARITHMETIC["+", "duration", "duration"]: _add_long,
        TIME_ARITHMETIC["-", "duration", "duration"]: _subtract_long,
        TIME_ARITHMETIC["/", "duration", "duration"]: _ratio,
    }
)
"""By overload. ``in_polygon`` is :func:`in_polygons`, a comparison of ``geo_distance`` is :func:`geo_compared`."""

TEXT_TESTS: Mapping[Overload, Callable[..., pa.Array]] = MappingProxyType(
    {
        _overload("starts_with", "string", "string"): pc.starts_with,
        _overload("ends_with", "string", "string"): pc.ends_with,
        _overload("contains", "string", "string"): pc.match_substring,
    }
)
"""Arrow's tests of a column of texts against a constant."""


# ── geometry ──────────────────────────────────────────────────────────────────────────────────────


def in_polygons(x: Array, y: Array, codes: Array, polygons: Sequence[Any]) -> Result:
    """As :func:`situ.lang.expr.runtime.in_polygon`, for points each of which has the number of its polygon.

    A polygon is a list of corners; for what is none, the result does not count.
    """
    shape = np.broadcast_shapes(x.shape, y.shape, codes.shape)
    inside, failing = np.zeros(shape, np.bool_), np.zeros(shape, np.bool_)
    corners = [_corners(polygon) for polygon in polygons]
    if len(shape) == 2 and codes.shape[0] == 1:  # a column of the result has one polygon
        x, y = (np.broadcast_to(each, shape) for each in (x, y))
        for place in range(shape[1]):
            inside[:, place], failing[:, place] = _in_polygon(x[:, place], y[:, place], corners[int(codes[0, place])])
        return inside, failing
    x, y, codes = (np.broadcast_to(each, shape) for each in (x, y, codes))
    order = np.argsort(codes, axis=None, kind="stable")
    ends = np.cumsum(np.bincount(codes.ravel(), minlength=len(polygons)))
    flat_x, flat_y, begin = x.ravel(), y.ravel(), 0
    flat_inside, flat_failing = inside.reshape(-1), failing.reshape(-1)
    for number, end in enumerate(ends.tolist()):
        rows = order[begin:end]
        begin = end
        if len(rows):
            flat_inside[rows], flat_failing[rows] = _in_polygon(flat_x[rows], flat_y[rows], corners[number])
    return inside, failing


_Corners = tuple[list[float], list[float]] | None


def _corners(polygon: Any) -> _Corners:
    """Their coordinates; None if the test fails on each point, or does not count."""
    if polygon is None or polygon is FAILED:
        return None
    xs: list[float] = []
    ys: list[float] = []
    for point in polygon:
        x, y = (None, None) if point is None else (point.get("x"), point.get("y"))
        if x is None or y is None or not (abs(x) <= FARTHEST and abs(y) <= FARTHEST):
            return None
        xs.append(x)
        ys.append(y)
    return xs, ys


def _in_polygon(x: Array, y: Array, corners: _Corners) -> tuple[Array, Array]:
    if corners is None:
        return np.zeros(x.shape, np.bool_), np.ones(x.shape, np.bool_)
    failing = ~((np.abs(x) <= FARTHEST) & (np.abs(y) <= FARTHEST))
    inside = np.zeros(x.shape, np.bool_)
    xs, ys = corners
    if not xs:
        return inside, failing
    near = np.flatnonzero((y >= min(ys)) & (y <= max(ys)) & ~failing)  # no edge crosses the height of others
    px, py = x[near], y[near]
    found = np.zeros(len(near), np.bool_)
    for ax, ay, bx, by in zip(xs, ys, (*xs[1:], xs[0]), (*ys[1:], ys[0]), strict=True):
        crossing = (ay > py) != (by > py)
        found ^= crossing & (px < (bx - ax) * (py - ay) / (by - ay or 1.0) + ax)
    inside[near] = found
    return inside, failing


def geo_compared(args: Sequence[Array], bound: Array, compare: Callable[[Any, Any], Any]) -> Result:
    """``compare(geo_distance(…), bound)``.

    Numpy's sines may differ from Python's in the last digit. A distance that is clearly on one side of the bound is
    compared as it is; one that is close is computed again by Python.
    """
    lat1, lon1, lat2, lon2 = args
    failing = ~((np.abs(lat1) <= 90.0) & (np.abs(lat2) <= 90.0) & (np.abs(lon1) <= 360.0) & (np.abs(lon2) <= 360.0))
    up = np.sin((lat2 - lat1) * RADIANS / 2.0)
    side = np.sin((lon2 - lon1) * RADIANS / 2.0)
    chord = up * up + np.cos(lat1 * RADIANS) * np.cos(lat2 * RADIANS) * (side * side)
    about = 2.0 * EARTH_RADIUS * np.arcsin(np.sqrt(np.minimum(1.0, chord)))
    # Near the other end of the Earth the arc sine makes metres of the last digit.
    unsure = np.where(about < 1.9e7, about * 1e-9 + 1e-9, 10.0)
    failing, about, unsure, limit = np.broadcast_arrays(failing, about, unsure, bound)
    values = np.array(compare(about, limit), np.bool_)
    close = (np.abs(about - limit) <= unsure) & ~failing
    if close.any():
        places = [np.broadcast_to(each, close.shape)[close].tolist() for each in (*args, limit)]
        values[close] = [_settled(compare, *row) for row in zip(*places, strict=True)]
    return values, failing


def _settled(compare: Callable[[Any, Any], Any], *values: float) -> bool:
    try:
        return bool(compare(geo_distance(*values[:4]), values[4]))
    except FAILURES:  # null in a coordinate: whatever stands there does not count
        return False
