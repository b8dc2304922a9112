"""Random numbers that depend on what they are for, not on when they are asked for.

A value is a hash of (seed, purpose, counters), so person 17's fifth step is the same whether the walk is sampled
every millisecond or every minute, in small blocks or large ones, alone or among a hundred thousand. Only integer
arithmetic modulo 2⁶⁴ and exact conversions are used: every machine and every numpy gives the same bits.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bits: TypeAlias = NDArray[np.uint64]
Integers: TypeAlias = NDArray[np.int64]
Reals: TypeAlias = NDArray[np.float64]

# The increment and the two multipliers of SplitMix64 (Steele, Lea, Flood 2014).
_GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_UNIT: Final = 2.0**-53


def stream(seed: int, purpose: str, *, size: int) -> Bits:
    """One starting point for each of ``size`` independent sequences serving ``purpose``."""
    start = np.array([seed % 2**64], dtype=np.uint64)
    for byte in np.frombuffer(purpose.encode(), dtype=np.uint8).reshape(-1, 1):
        start = _mix(start + byte.astype(np.uint64) * _GOLDEN)
    return _mix(start + np.arange(1, size + 1, dtype=np.uint64) * _GOLDEN)


def draw(starts: Bits, counter: Integers) -> Bits:
    """64 random bits for each sequence at its counter."""
    return _mix(starts + counter.astype(np.uint64) * _GOLDEN)


def unit(bits: Bits) -> Reals:
    """Evenly spread over [0, 1)."""
    return (bits >> np.uint64(11)).astype(np.float64) * _UNIT


def below(bits: Bits, limit: Integers | int) -> Integers:
    """Evenly spread over 0 … limit - 1, for limits far below 2³²."""
    return ((bits >> np.uint64(32)) * np.asarray(limit, dtype=np.uint64) >> np.uint64(32)).astype(np.int64)


def error(bits: Bits, part: int) -> Reals:
    """A measuring error in (-1, 1), small ones likelier: part 0 and part 1 of the same bits are independent."""
    low = np.uint64(32 * part)
    first = (bits >> low) & np.uint64(0xFFFF)
    second = (bits >> (low + np.uint64(16))) & np.uint64(0xFFFF)
    return (first.astype(np.float64) - second.astype(np.float64)) * (1.0 / 65536.0)


def _mix(bits: Bits) -> Bits:
    bits = (bits ^ (bits >> np.uint64(30))) * _FIRST
    bits = (bits ^ (bits >> np.uint64(27))) * _SECOND
    return bits ^ (bits >> np.uint64(31))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Angles from additions, multiplications, divisions and square roots alone.
#
# The sines and arc tangents of mathematical libraries differ in the last bit between machines, and a reading that
# falls on the wrong side of a rounding step would change the simulated bytes. IEEE arithmetic does not differ.

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
