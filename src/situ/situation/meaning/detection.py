"""What comes of detecting: observations go in, detections come out. Shared by the reference and the kernel."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Cause(NamedTuple):
    """An event by its source and id. The k-th repetition of a kept value has ``+k`` behind the id."""

    source: str
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What an event said of one attribute of one instance, through one push source."""

    push: str
    concept: str
    identity: str
    attribute: str
    value: Any
    time: int
    cause: Cause


Instances = Mapping[str, Mapping[str, Mapping[str, Any]]]
"""What pull sources know: concept → identity → attribute → value. A missing attribute is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detection:
    """A policy was met by these identities because of these events. ``time`` is when it can be reported.

    ``activation`` is the time of the latest occurrence; they differ where something had to be absent.
    """

    policy: str
    bindings: tuple[tuple[str, str], ...]
    """(alias, identity), in the order of aliases by name."""
    causes: tuple[Cause, ...]
    """Sorted, each once."""
    time: int
    activation: int = field(compare=False)
    positions: tuple[int, ...] = field(default=(), compare=False)
    """Where the causes are in the root log, one for each, if that is known."""

    @property
    def id(self) -> str:
        return derived_id(self.policy, dict(self.bindings), [list(cause) for cause in self.causes])


_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def derived_id(*parts: Any) -> str:
    """The first 128 bits of SHA-256 over the canonical JSON of these parts, in hexadecimal."""
    return hashlib.sha256(_CANONICAL.encode(parts).encode()).hexdigest()[:32]


def in_order(detections: Iterable[Detection]) -> list[Detection]:
    """As they are reported: by time, those of one time by id."""
    return sorted(detections, key=lambda each: (each.time, each.id))
