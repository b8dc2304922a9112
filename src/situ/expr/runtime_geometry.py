"""What generated Python calls for places, on a plane and on the globe.

Like all that generated Python calls, each equals its Spark text on every input (:mod:`situ.expr.runtime`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def distance(x1: float, y1: float, x2: float, y2: float) -> float:
    across, along = x1 - x2, y1 - y2
    return math.sqrt(across * across + along * along)


FARTHEST = 1e100  # beyond it the products in the polygon test could overflow
EARTH_RADIUS = 6371008.8  # metres, mean
RADIANS = 0.017453292519943295


def geo_distance(lat1: float, lon1: float, lat2: float, lon2: float) -> float:
    """Great-circle distance by the haversine formula."""
    if not (abs(lat1) <= 90.0 and abs(lat2) <= 90.0 and abs(lon1) <= 360.0 and abs(lon2) <= 360.0):
        raise ArithmeticError("not a place on Earth")
    up = math.sin((lat2 - lat1) * RADIANS / 2.0)
    side = math.sin((lon2 - lon1) * RADIANS / 2.0)
    chord = up * up + math.cos(lat1 * RADIANS) * math.cos(lat2 * RADIANS) * (side * side)
    return 2.0 * EARTH_RADIUS * math.asin(math.sqrt(min(1.0, chord)))


def _near(point: Mapping[str, float | None] | None) -> bool:
    x, y = (point["x"], point["y"]) if point is not None else (None, None)
    return x is not None and y is not None and abs(x) <= FARTHEST and abs(y) <= FARTHEST


def in_polygon(x: float, y: float, points: Sequence[Mapping[str, float] | None]) -> bool:
    """Even-odd rule; of the border, the lower and left part counts as inside."""
    if not (abs(x) <= FARTHEST and abs(y) <= FARTHEST):
        raise ArithmeticError("too far out")
    if not all(_near(point) for point in points):
        raise ArithmeticError("too far out")
    inside = False
    corners = [point for point in points if point is not None]
    for here, there in zip(corners, (*corners[1:], *corners[:1]), strict=True):
        ax, ay, bx, by = here["x"], here["y"], there["x"], there["y"]
        if (ay > y) != (by > y) and x < (bx - ax) * (y - ay) / (by - ay) + ax:
            inside = not inside
    return inside
