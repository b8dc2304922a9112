"""The shaper of a subscription: its filters one behind the other, what they remember, and what they dropped.

`of_publishers` and `good_enough` are the filters without memory: select, and floors of single events. `Shaper` has all:
select, each, aggregate, suppress, thin.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from situ.event.row import Row
from situ.quality.model.shapes import EventFloor, Shape, Suppress, shape_as_json, shape_from_json
from situ.quality.shaping.aggregate import Aggregator, Put, put_number
from situ.quality.shaping.suppress import Read, Suppressor
from situ.quality.shaping.thin import Thinner
from situ.quality.shaping.watermark import LatenessBounds

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Select: events of some publishers only.


def of_publishers(rows: Sequence[Row], publishers: frozenset[str]) -> list[Row]:
    return [row for row in rows if row.client in publishers]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Each: single events that are not good enough are dropped. That guards single events only: dropping some lowers the
# rate, and never makes an expectation satisfied.

_SECOND = 1_000_000


def good_enough(rows: Sequence[Row], each: EventFloor, now: int | None) -> list[Row]:
    """``now`` is the instant that ages are taken at, which whoever repeats this has to know; None: when each came."""
    return confident(rows, each) if each.about == "confidence" else fresh(rows, each.floor, now)


def confident(rows: Sequence[Row], each: EventFloor) -> list[Row]:
    floor, keep_missing = each.floor, each.keep_missing
    return [row for row in rows if (keep_missing if row.confidence is None else row.confidence >= floor)]


def fresh(rows: Sequence[Row], most: float, now: int | None) -> list[Row]:
    """What is not older than so many seconds. An event from the future is as fresh as can be."""
    limit = most * _SECOND
    return [row for row in rows if max((row.recv if now is None else now) - row.time, 0) <= limit]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The shaper. What passes one filter comes to the next. All that a shaper knows can be written down and read again,
# whole or in parts: what concerns single sources apart, so that those who share the clients among them can share it,
# too.

SOURCE, CONFIDENCE, FRESHNESS, AGGREGATED = "source", "confidence", "freshness", "aggregated"
IMPRECISION, RATE, LATE = "imprecision", "rate", "late"
REASONS = (SOURCE, CONFIDENCE, FRESHNESS, AGGREGATED, IMPRECISION, RATE, LATE)
"""Why events of a subscription are not delivered, which is what was asked for."""

Mine = Callable[[str], bool]
"""Whether events of this client come here."""


class Shaper:
    """What one subscription gets. Rows are given in the order of the log, those of a client in the order of theirs."""

    def __init__(
        self, subscription: str, shape: Shape, patience: LatenessBounds, read: Read, put: Put = put_number
    ) -> None:
        self.subscription = subscription
        self.shape = shape
        self.dropped: Counter[str] = Counter()
        """By reason, since the start."""
        self._patience, self._read, self._put = patience, read, put
        self._aggregated = self._aggregate(shape)
        self._suppressed = [Suppressor(each, read) for each in shape.suppress]
        self._thinned = Thinner(shape.thin, patience, read) if shape.thin is not None else None

    @property
    def holds(self) -> bool:
        """Whether something waits that the clock lets go."""
        waiting = (each for each in (self._aggregated, self._thinned) if each is not None)
        return any(each.holds for each in waiting)

    def take(self, rows: Sequence[Row], now: int | None = None) -> list[Row]:
        """What is delivered now that these events have come: of them, and of those that have waited.

        ``now`` is the instant at which ages are taken, the same whenever this is repeated; None: when each came.
        """
        shape = self.shape
        if shape.sources is not None:
            chosen = of_publishers(rows, shape.sources)
            self._drop(SOURCE, len(rows) - len(chosen))
            rows = chosen
        for each in shape.each:
            good = good_enough(rows, each, now)
            self._drop(each.about, len(rows) - len(good))
            rows = good
        return self._behind_single(list(rows))

    def _behind_single(self, rows: list[Row]) -> list[Row]:
        """The filters that remember."""
        if self._aggregated is not None and rows:
            late = self._aggregated.late
            made = self._aggregated.take(rows)
            late = self._aggregated.late - late
            self._drop(LATE, late)
            self._drop(AGGREGATED, len(rows) - late)
            rows = made
        return self._behind_aggregate(rows)

    def _behind_aggregate(self, rows: list[Row], first: int = 0) -> list[Row]:
        for each in self._suppressed[first:]:
            if not rows:
                break
            passed = each.take(rows)
            self._drop(IMPRECISION, len(rows) - len(passed))
            rows = passed
        thinned = self._thinned
        if thinned is None or not rows:
            return rows
        late, crowded = thinned.late, thinned.dropped
        rows = thinned.take(rows)
        self._drop(LATE, thinned.late - late)
        self._drop(RATE, thinned.dropped - crowded)
        return rows

    def _drop(self, reason: str, number: int) -> None:
        if number:
            self.dropped[reason] += number

    def tick(self, now: int) -> list[Row]:
        """What is delivered because nothing has come for long."""
        made = self._aggregated.tick(now) if self._aggregated is not None else []
        passed = self._behind_aggregate(made)
        return passed + (self._thinned.tick(now) if self._thinned is not None else [])

    def adopt(self, shape: Shape) -> list[Row]:
        """Go on with another shape; what is delivered because of that, in order.

        A filter that stays what it is, but for its numbers, goes on with what it knows.
        """
        passed: list[Row] = []
        if shape.aggregate != self.shape.aggregate:
            self._aggregated = self._aggregate(shape)
        passed += self._adopt_thin(shape)
        lowered = self._adopt_suppress(shape)
        self.shape = shape
        return passed + lowered

    def _adopt_thin(self, shape: Shape) -> list[Row]:
        thinned = self._thinned
        if thinned is not None and shape.thin is not None and thinned.adopt(shape.thin):
            return []
        self._thinned = Thinner(shape.thin, self._patience, self._read) if shape.thin is not None else None
        return thinned.end() if thinned is not None else []

    def _adopt_suppress(self, shape: Shape) -> list[Row]:
        before = {_same(each.suppress): each for each in self._suppressed}
        released: list[tuple[int, list[Row]]] = []
        kept: list[Suppressor] = []
        for place, each in enumerate(shape.suppress):
            known = before.pop(_same(each), None)
            if known is None:
                known = Suppressor(each, self._read)
            else:
                released.append((place + 1, known.adopt(each)))
            kept.append(known)
        self._suppressed = kept
        released += [(0, each.end()) for each in before.values()]
        passed: list[Row] = []
        for behind, rows in released:
            self._drop(IMPRECISION, -len(rows))
            passed += self._behind_aggregate(rows, behind)
        return passed

    def imprecision(self, row: Row) -> str:
        """How far what is delivered as this event may be from the latest, as the event says it; empty: not at all."""
        if not self._suppressed:
            return ""
        deltas = [(each.suppress.attribute, each.delta(row)) for each in self._suppressed]
        if len(deltas) == 1:
            return _number(deltas[0][1]) if deltas[0][1] else ""
        return ",".join(f"{attribute}={_number(delta)}" for attribute, delta in deltas if delta)

    def _aggregate(self, shape: Shape) -> Aggregator | None:
        if shape.aggregate is None:
            return None
        return Aggregator(self.subscription, shape.aggregate, self._patience, self._read, self._put)

    # ── kept somewhere ──

    def as_json(self) -> dict[str, Any]:
        """What it does and what it remembers; only what there is of it."""
        found = {
            "shape": shape_as_json(self.shape),
            "aggregate": self._aggregated.as_json() if self._aggregated is not None else [],
            "suppress": [each.as_json() for each in self._suppressed],
            "thin": self._thinned.as_json() if self._thinned is not None else [],
        }
        return {name: part for name, part in found.items() if part}

    def restore(self, stored: Mapping[str, Any], mine: Mine | None = None) -> None:
        """Go on with what a shaper of the same shape has written down, as far as it is about clients that come here."""
        if self._aggregated is not None:
            self._aggregated.restore(_of(mine, stored.get("aggregate", ())))
        for each, part in zip(self._suppressed, stored.get("suppress", ()), strict=False):
            each.restore(_of(mine, part))
        if self._thinned is not None:
            self._thinned.restore(_of(mine, stored.get("thin", ())))


def shape_of(stored: Mapping[str, Any]) -> Shape:
    """The shape by which something was remembered. What waits under it is let go by adopting another."""
    return shape_from_json(stored.get("shape", {}))


def _of(mine: Mine | None, parts: Sequence[Sequence[Any]]) -> list[Sequence[Any]]:
    """Those of the clients that come here; what is of no single client is everybody's."""
    return [part for part in parts if mine is None or not part[0] or mine(part[0][0])]


def _same(suppress: Suppress) -> tuple[str, str]:
    """By what the same filter is known, whatever its δ is."""
    return (suppress.attribute, suppress.per)


def _number(value: float) -> str:
    return f"{value:.15g}"
