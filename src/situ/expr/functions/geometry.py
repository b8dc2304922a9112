"""Geometry on coordinates. The checker takes points, boxes and polygons apart, so these see plain numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from situ.expr.overload import Arithmetic, Function, Overload, UnitRule

_FAR = "1.0E100D"


def _in_polygon(args: Sequence[str], constants: Sequence[Any]) -> str:
    x, y, points = args
    far = f"exists({points}, _situ_p -> abs(_situ_p.x) > {_FAR} OR abs(_situ_p.y) > {_FAR})"
    following = f"concat(slice({points}, 2, greatest(size({points}) - 1, 0)), slice({points}, 1, 1))"
    crossing = (
        f"CASE WHEN (_situ_a.y > {y}) <> (_situ_b.y > {y}) THEN "
        f"CASE WHEN {x} < try_divide((_situ_b.x - _situ_a.x) * ({y} - _situ_a.y), _situ_b.y - _situ_a.y) + _situ_a.x THEN 1 ELSE 0 END ELSE 0 END"
    )
    count = f"aggregate(zip_with({points}, {following}, (_situ_a, _situ_b) -> {crossing}), 0, (_situ_n, _situ_c) -> _situ_n + _situ_c)"
    return f"CASE WHEN abs({x}) <= {_FAR} AND abs({y}) <= {_FAR} AND NOT {far} THEN {count} % 2 = 1 END"


_GEO_DISTANCE = (
    "CASE WHEN abs({0}) <= 90D AND abs({2}) <= 90D AND abs({1}) <= 360D AND abs({3}) <= 360D THEN "
    "2D * 6371008.8D * asin(sqrt(least(1D, "
    "sin(({2} - {0}) * 0.017453292519943295D / 2D) * sin(({2} - {0}) * 0.017453292519943295D / 2D) + "
    "cos({0} * 0.017453292519943295D) * cos({2} * 0.017453292519943295D) * "
    "(sin(({3} - {1}) * 0.017453292519943295D / 2D) * sin(({3} - {1}) * 0.017453292519943295D / 2D))))) END"
)
_FOUR = ("double", "double", "double", "double")

GEOMETRY: tuple[Function, ...] = (
    Function(
        name="distance",
        group="geometry",
        doc="Distance of two points, `distance(a, b)`: straight for points with x and y, in their unit; along the Earth's surface for points with lat and lon, in metres. Also of coordinates: `distance(x1, y1, x2, y2)`.",
        overloads=(Overload(name="distance", parameters=_FOUR, result="double", spark="sqrt(({0} - {2}) * ({0} - {2}) + ({1} - {3}) * ({1} - {3}))", python="_distance({0}, {1}, {2}, {3})", arithmetic=Arithmetic.NORM, unit=UnitRule.SAME),),
        examples=(("distance(0, 0, 3, 4)", "5.0"),),
    ),
    Function(
        name="geo_distance",
        group="geometry",
        doc="Distance along the Earth's surface, in metres, of `lat1, lon1, lat2, lon2` in degrees. Fails outside ±90° and ±360°.",
        overloads=(Overload(name="geo_distance", parameters=_FOUR, result="double", spark=_GEO_DISTANCE, python="_geo_distance({0}, {1}, {2}, {3})", fails=True, inexact=True, unit=UnitRule.METRES),),
        examples=(("round(geo_distance(47, 8, 48, 8) / 1000)", "111.0"),),
    ),
    Function(
        name="in_polygon",
        group="geometry",
        doc="Whether the point x, y lies in the polygon given as a list of points; `inside(point, polygon)` is written in terms of it. Of the border, the lower and left part counts.",
        overloads=(Overload(name="in_polygon", parameters=("double", "double", "points"), result="boolean", spark=_in_polygon, python="_in_polygon({0}, {1}, {2})", fails=True, unit=UnitRule.FREE),),
    ),
)  # fmt: skip
