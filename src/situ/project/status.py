"""What a project does right now, from outside: who runs it, what its bus holds, who is connected.

Decides and lays nothing out: :mod:`situ.cli.render.status` does that.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from situ.bus.folder_lock import LockHolder
from situ.bus.interface import Bus, ConsumerState, StreamState
from situ.event.subjects import BusNames, subscription_of
from situ.lang.problems import Problem
from situ.registry.run_metrics import METRICS_PREFIX, RunMetrics, decode_metrics
from situ.registry.snapshots import adopted_versions, current_deployment, troubles_of

_OF = {"detect": "spark"}
"""Parts of engines that have troubles of their own, and which engines these are."""
_SILENCE = 30.0  # seconds after which a run that says nothing is taken for gone; clocks need not agree to the second


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``holder`` is the run in this folder, if there is one; ``problem`` why the bus says nothing."""

    project: str
    zone: str
    holder: LockHolder | None = None
    problem: Problem | None = None
    version: int = 0
    engines: Mapping[str, RunMetrics] = msgspec.field(default_factory=dict)
    adopted: Mapping[str, int] = msgspec.field(default_factory=dict)
    streams: Mapping[str, StreamState] = msgspec.field(default_factory=dict)
    consumers: tuple[ConsumerState, ...] = ()
    clients: tuple[str, ...] = ()
    edited: tuple[str, ...] = ()
    """Files of the folder that are not what is in force."""
    troubles: Mapping[str, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """What engines go on without, by their names."""

    @property
    def running(self) -> bool:
        return bool(self.engines) or self.holder is not None

    def as_json(self) -> dict[str, Any]:
        return {
            "project": self.project,
            "zone": self.zone,
            "running": self.running,
            "pid": self.holder.pid if self.holder else None,
            "started": self.holder.start if self.holder else None,
            "ports": dict(self.holder.ports) if self.holder else {},
            "deployment": self.version,
            "engines": {
                name: {**figures.as_json(), "adopted": self.adopted.get(name, 0)}
                for name, figures in self.engines.items()
            },
            "streams": {
                name: {"first": state.first, "last": state.last, "messages": state.messages, "bytes": state.size}
                for name, state in self.streams.items()
            },
            "consumers": {
                subscription_of(each.name): {
                    "acknowledged": each.acknowledged,
                    "waiting": each.waiting,
                    "unacknowledged": each.unacknowledged,
                }
                for each in self.consumers
            },
            "clients": list(self.clients),
            "troubles": {name: list(each) for name, each in self.troubles.items()},
            "edited": list(self.edited),
            "problem": self.problem.as_json() if self.problem else None,
        }


async def read_status_on_bus(bus: Bus, project: str, holder: LockHolder | None = None) -> RunStatus:
    """What the bus of a project says."""
    names = BusNames(bus.zone)
    current = await current_deployment(bus)
    figures = await live_metrics(bus)
    clients = [entry.key for entry in await bus.entries(names.clients) if _is_here(entry.value)]
    return RunStatus(
        project=project,
        zone=bus.zone,
        holder=holder,
        version=current.version if current else 0,
        engines=figures,
        adopted=await adopted_versions(bus),
        streams={name: await bus.state(name) for name in names.streams},
        consumers=await bus.consumers(),
        clients=tuple(sorted(clients)),
        troubles={name: each for name, each in (await troubles_of(bus)).items() if _OF.get(name, name) in figures},
    )


async def live_metrics(bus: Bus) -> dict[str, RunMetrics]:
    """What those engines say that are alive, by their names."""
    return {
        entry.key.removeprefix(METRICS_PREFIX): found
        for entry in await bus.entries(BusNames(bus.zone).metrics, METRICS_PREFIX)
        if entry.value and (found := decode_metrics(entry.value)) is not None and _is_alive(found)
    }


async def running_engine(bus: Bus) -> str:
    """The engine that runs, whatever situ.yaml says; empty if none does."""
    return next((figures.engine for figures in (await live_metrics(bus)).values()), "")


def _is_alive(figures: RunMetrics) -> bool:
    """A run that was killed leaves its last figures behind."""
    return abs(time.time() - figures.at / 1e6) < _SILENCE


def _is_here(value: bytes | None) -> bool:
    return bool(value) and json.loads(value or b"null") is not None
