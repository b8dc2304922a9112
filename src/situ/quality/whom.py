"""Whose events are measured, and of whom it is counted whether what they publish is delivered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from situ.event.row import Row
from situ.quality.profile import Profile

_RELIABILITY = "reliability"


@dataclass(frozen=True, slots=True)
class Whom:
    """Publishers, by their names."""

    publishers: frozenset[str] = frozenset()
    """That have told what they can do."""
    counted: frozenset[str] = frozenset()
    """Those of them that speak of reliability: to count acknowledgements for nobody would be a waste."""

    @classmethod
    def of(cls, profiles: Iterable[Profile]) -> Whom:
        found = tuple(profiles)
        return cls(
            frozenset(each.publisher for each in found),
            frozenset(
                each.publisher for each in found if _RELIABILITY in each.capabilities or _RELIABILITY in each.moded
            ),
        )

    def __or__(self, other: Whom) -> Whom:
        return Whom(self.publishers | other.publishers, self.counted | other.counted)

    def origins(self, rows: Sequence[Row]) -> dict[tuple[str, str], int]:
        """Publisher and type → events, of those that are counted."""
        if self.counted.isdisjoint({row.client for row in rows}):
            return {}
        return Counter([(row.client, row.type) for row in rows if row.client in self.counted])

    def as_json(self) -> dict[str, Any]:
        return {"publishers": sorted(self.publishers), "counted": sorted(self.counted)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Whom:
        return cls(frozenset(value["publishers"]), frozenset(value["counted"]))


NOBODY = Whom()
