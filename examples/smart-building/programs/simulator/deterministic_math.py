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
