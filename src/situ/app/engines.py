"""What a run asks of an engine, and how each engine is hosted.

An engine is started, ends by itself only when it fails, and is stopped in order. After a failure it may be started
again and goes on where it was. This module is the only one that knows both engines; neither is imported before it is
asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from situ.bus.address import Address
from situ.bus.interface import Bus
from situ.quality.measurement.panes import Pane
from situ.registry.run_metrics import EngineSize, ExecutorLoad
from situ.settings import Settings
from situ.stages.detect.situation_events import DetectionStatus, PolicyMessage

OnMeasured = Callable[[tuple[Pane, ...], int], None]
"""Takes panes, and the instant of event time up to which all are complete."""


class EngineCounts(Protocol):
    """What an engine has done since the run began."""

    @property
    def types(self) -> Mapping[str, int]:
        """Events accepted, by type."""

    @property
    def groups(self) -> Mapping[str, int]:
        """Events delivered to durable subscriptions, by delivery group."""

    @property
    def live(self) -> Mapping[str, int]:
        """Events sent to volatile subscriptions, by subscription."""

    @property
    def dead(self) -> Mapping[str, int]:
        """Dead letters, by code."""

    @property
    def origins(self) -> Mapping[str, int]:
        """Events accepted that came in other terms than root's, as `TYPE CONTEXT`."""

    @property
    def originals(self) -> Mapping[str, int]:
        """Events that those of their own context got as they were sent, by context."""

    @property
    def converted(self) -> Mapping[str, int]:
        """Events put in the terms of a context, by context: each once, however many get it."""

    @property
    def dropped(self) -> Mapping[str, int]:
        """Events that subscriptions did not want to get although they match, as `SUBSCRIPTION REASON`."""

    @property
    def failures(self) -> Mapping[str, int]:
        """What failed in a way that nobody foresaw and is no event of a client, by what it was."""


class Engine(Protocol):
    """An engine in the process of a run. It tells the bus that it is alive, and which deployment it works with."""

    on_measured: OnMeasured | None
    """Who is told what publishers do, on the loop of the run."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> int:
        """Of the deployment it works with; 0 before its first."""

    @property
    def reached(self) -> int | None:
        """The last message of the ingress stream it has taken; None if it does not read that stream."""

    @property
    def batch(self) -> float:
        """Seconds the last batch took; 0 where events are taken one by one."""

    @property
    def counts(self) -> EngineCounts: ...

    @property
    def watched(self) -> DetectionStatus:
        """How detection is."""

    @property
    def size(self) -> EngineSize: ...

    def executors_at_work(self) -> Sequence[ExecutorLoad]:
        """Those that said something of themselves, if the settings ask for it."""

    async def say(self, message: PolicyMessage) -> None:
        """Take events of Situ's own in, as those of a client."""

    async def start(self) -> None:
        """Start, or go on; :class:`situ.lang.problems.SituError` if that fails."""

    async def ended(self) -> None:
        """Wait until it ends; raises why, if it was not stopped."""

    async def stop(self) -> None:
        """Finish what is under way and end. Does nothing if it was never started."""


def spark_engine(bus: Bus, folder: Path, settings: Settings, address: Address) -> Engine:
    from situ.app.spark_engine import SparkHost

    return SparkHost(bus, folder, settings, address)
