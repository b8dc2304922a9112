"""What a run says about itself every second: how much came in and went out, what waits, how much memory it takes.

Plain data, on the bus under ``figures.<engine>`` for whoever asks (``situ status``), and in the hands of the live view.
Counts are those of this run, from its start on.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from situ.host.situation_figures import SituationFigures

STARTING, RUNNING, WAITING, STOPPING, STOPPED = "starting", "running", "waiting for the bus", "stopping", "stopped"

FIGURES = "figures."
"""What keys of figures on the bus begin with; the engine's name follows."""

_SHOWN = 200  # names with counts that go to the bus every second; a deployment may have tens of thousands
_WINDOW = 5.0  # seconds over which rates are taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """One look at a run. Instants are in microseconds since 1970, sizes in bytes."""

    engine: str
    state: str = STARTING
    pid: int = 0
    version: int = 0
    """Of the deployment the engine works with; 0 before its first."""
    started: int = 0
    at: int = 0
    taken: int = 0
    """Events that were accepted into the root log."""
    delivered: int = 0
    dead: int = 0
    taken_rate: float = 0.0
    delivered_rate: float = 0.0
    waiting: int = 0
    """Messages that clients sent and the engine has not taken yet."""
    batch: float = 0.0
    """Seconds the last batch took; 0 for an engine that takes events one by one."""
    restarts: int = 0
    clients: int = 0
    """Clients that are connected."""
    types: Mapping[str, int] = field(default_factory=dict)
    """Events accepted, by type."""
    subscriptions: Mapping[str, int] = field(default_factory=dict)
    """Events delivered, by subscription."""
    codes: Mapping[str, int] = field(default_factory=dict)
    """Dead letters, by code."""
    origins: Mapping[str, int] = field(default_factory=dict)
    """Events accepted that came in other terms than root's, as `TYPE CONTEXT`."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """The contexts of those of the subscriptions that are in other terms than root's."""
    originals: Mapping[str, int] = field(default_factory=dict)
    """Events that those of their own context got as they were sent, by context."""
    converted: Mapping[str, int] = field(default_factory=dict)
    """Events put in the terms of a context, by context: each once, however many get it."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What failed in a way that nobody foresaw and is no event of a client, by what it was; the log has how."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Messages of clients that the router refused or reported, by code."""
    memory: Mapping[str, int] = field(default_factory=dict)
    situations: SituationFigures = field(default_factory=SituationFigures)
    """How policies are, if there are some."""

    @property
    def seconds(self) -> float:
        """How long the run has lasted."""
        return max(self.at - self.started, 0) / 1e6

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    def encode(self) -> bytes:
        """For the bus: of long lists only the names with the highest counts."""
        subscriptions = _highest(self.subscriptions)
        terms = {name: context for name, context in self.terms.items() if name in subscriptions}
        short = replace(
            self,
            types=_highest(self.types),
            origins=_highest(self.origins),
            dropped=_highest(self.dropped),
            subscriptions=subscriptions,
            terms=terms,
            situations=self.situations.shortened(),
        )
        return json.dumps(short.as_json(), separators=(",", ":")).encode()


def decode_figures(text: bytes) -> Figures | None:
    """The figures that a run wrote; None if they are those of another release or none at all."""
    try:
        found = json.loads(text)
        known = {each.name for each in fields(Figures)}
        if "situations" in found:
            found["situations"] = SituationFigures.from_json(found["situations"])
        return Figures(**{name: value for name, value in found.items() if name in known})
    except (ValueError, TypeError, AttributeError):
        return None


class Rates:
    """Events a second, over the last few seconds."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int, int]] = deque()

    def add(self, now: float, taken: int, delivered: int) -> tuple[float, float]:
        """Note the counts of now; the rates of both."""
        seen = self._seen
        seen.append((now, taken, delivered))
        while len(seen) > 2 and now - seen[0][0] > _WINDOW:
            seen.popleft()
        at, first_taken, first_delivered = seen[0]
        if now <= at:
            return 0.0, 0.0
        return round((taken - first_taken) / (now - at), 1), round((delivered - first_delivered) / (now - at), 1)


def _highest(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:_SHOWN])
