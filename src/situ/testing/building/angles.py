"""Angles from additions, multiplications, divisions and square roots alone.

The sines and arc tangents of mathematical libraries differ in the last bit between machines, and a reading that
falls on the wrong side of a rounding step would change the simulated bytes. IEEE arithmetic does not differ.
"""

from __future__ import annotations

import numpy as np

from situ.testing.building.chance import Reals

_DEGREE = 0.017453292519943295
_EIGHTH_TURN_TANGENT = 0.41421356237309503
_ARC_TERMS = tuple((-1.0) ** k / (2 * k + 1) for k in range(9))


def heading_vector(degrees: float) -> tuple[float, float]:
    """(cosine, sine) of an angle; exact for quarter turns."""
    quarters = round(degrees / 90.0)
    rest = (degrees - 90.0 * quarters) * _DEGREE
    cosine, sine, term = 1.0, 0.0, 1.0
    for k in range(1, 24):
        term *= rest / k
        if k % 2:
            sine += term if k % 4 == 1 else -term
        else:
            cosine += term if k % 4 == 0 else -term
    return ((cosine, sine), (-sine, cosine), (-cosine, -sine), (sine, -cosine))[quarters % 4]


def bearing(dx: Reals, dy: Reals) -> Reals:
    """The direction of (dx, dy) in degrees, -180 … 180, right to a millionth; 0 for no direction."""
    along, across = np.abs(dx), np.abs(dy)
    longer = np.maximum(along, across)
    slope = np.minimum(along, across) / np.where(longer > 0.0, longer, 1.0)
    steep = slope > _EIGHTH_TURN_TANGENT
    # atan(s) = 45° + atan((s - 1) / (s + 1)) keeps the argument of the series below tan(22.5°).
    reduced = np.where(steep, (slope - 1.0) / (slope + 1.0), slope)
    square = reduced * reduced
    series = np.full_like(square, _ARC_TERMS[-1])
    for coefficient in reversed(_ARC_TERMS[:-1]):
        series = series * square + coefficient
    angle: Reals = reduced * series * (1.0 / _DEGREE) + np.where(steep, 45.0, 0.0)
    angle = np.where(across > along, 90.0 - angle, angle)
    angle = np.where(dx < 0.0, 180.0 - angle, angle)
    return np.where(dy < 0.0, -angle, angle)


def half_turn(degrees: Reals) -> Reals:
    """The same direction as an angle in [-180, 180); for angles that are at most one turn away."""
    degrees = np.where(degrees >= 180.0, degrees - 360.0, degrees)
    return np.where(degrees < -180.0, degrees + 360.0, degrees)
