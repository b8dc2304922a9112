"""Where a new policy starts, if not with what comes from now on: at an instant that the log still holds.

It is said once, when a policy is added, and counts for a policy that nothing is remembered of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from situ.event.instants import print_instant, read_instant


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """``at``, in microseconds; ``acts``: what its actions come to for what happened since then is done, too."""

    at: int
    acts: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"at": print_instant(self.at), **({"acts": True} if self.acts else {})}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Start:
        """What :meth:`as_json` gave; KeyError or ValueError for what it cannot have given."""
        at = read_instant(value["at"])
        if at is None:
            raise ValueError(f"{value['at']} is no instant")
        return cls(at=at, acts=bool(value.get("acts", False)))


Starts = Mapping[str, Start]
"""By the names of policies."""


def starts_as_json(starts: Starts) -> dict[str, Any]:
    return {name: starts[name].as_json() for name in sorted(starts)}


def starts_from_json(value: Mapping[str, Any]) -> Starts:
    return MappingProxyType({name: Start.from_json(body) for name, body in sorted(value.items())})
