"""Rough costs: what is the cheapest by far, and what is so near to it that only exact costs tell.

Costs are infinite where something cannot be had.
"""

from __future__ import annotations

import math

from situ.quality.rows import Matrix

CLOSE = 1e-9
"""Rough costs that differ by less, as a part of the largest cost, may be in another order in truth."""
_FEW = 32
"""Costs that are compared in less time than it takes numpy to begin."""


def cheapest_of(costs: Matrix, close: float) -> list[int]:
    """The places of what costs least, or hardly more; none if nothing can be had."""
    if len(costs) <= _FEW:
        listed = costs.tolist()
        least = min(listed, default=math.inf)
        return [place for place, cost in enumerate(listed) if cost <= least + close] if least < math.inf else []
    least = costs.item(costs.argmin())
    return (costs <= least + close).nonzero()[0].tolist() if least < math.inf else []


def by_far_cheapest_of(costs: Matrix, close: float) -> int | None:
    """The place of what costs least, if nothing else is near."""
    near = cheapest_of(costs, close)
    return near[0] if len(near) == 1 else None
