"""Select: events of some publishers only."""

from __future__ import annotations

from collections.abc import Sequence

from situ.event.row import Row


def of_publishers(rows: Sequence[Row], publishers: frozenset[str]) -> list[Row]:
    return [row for row in rows if row.client in publishers]
