"""How many executors a run has: asked for when events wait, let go when there is little to do.

Spark's own dynamic allocation counts tasks that have waited for a second. Batches of a stream are shorter, and have as
many tasks as there are cores, so it would never see that events wait on the bus. Here batches say it: how long they
take, and what waits behind them. Executors are asked for and let go by Spark's own interface; one that has a task is
not let go.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext

from situ.lang.catalogue import EXECUTORS_REFUSED
from situ.settings.kinds import AUTO
from situ.settings.model import Executors
from situ.spark.cluster.remote import is_remote
from situ.spark.elastic.sizes import Steady

_log = logging.getLogger("situ.spark")

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The decision.

_LONG = 10
"""So many triggers long is a batch that is too long, two seconds at least, if events wait behind it."""
_LEAST = 2.0
_SHORT = 0.25
"""Of that time takes a batch at most when there is little to do."""
_MORE_AFTER, _FEWER_AFTER = 5.0, 60.0
"""Seconds for which it has to be so. Executors take a while to start; they go one by one."""
_QUIET = 5.0
"""Seconds after which the last batch says nothing any more: nothing has come since."""


@dataclass(slots=True)
class Load:
    """What the last batch of a query says: how long it took, what waits behind it, and when that was."""

    seconds: float = 0.0
    waiting: int = 0
    at: float = -_QUIET


@dataclass(slots=True)
class ExecutorCount:
    """How many executors there are to be, by what the last batches of all queries say."""

    loads: dict[str, Load] = field(default_factory=dict)
    _pressed: Steady = field(default_factory=Steady)
    _slack: Steady = field(default_factory=Steady)

    def note(self, query: str, seconds: float, waiting: int, now: float) -> None:
        """A batch has ended."""
        self.loads[query] = Load(seconds, waiting, now)

    def wanted(self, limits: Executors, trigger: timedelta, there: int, now: float) -> int:
        """Twice as many when batches are long and events wait; one fewer when there is little to do for a minute."""
        long = max(_LONG * trigger.total_seconds(), _LEAST)
        recent = [each for each in self.loads.values() if now - each.at < max(_QUIET, 3 * each.seconds)]
        pressed = any(each.waiting and each.seconds > long for each in recent)
        slack = all(each.seconds < _SHORT * long for each in recent)
        count = there
        if self._pressed.lasts(pressed, now, _MORE_AFTER):
            count, self._pressed.since = max(2 * there, 1), None
        if self._slack.lasts(slack, now, _FEWER_AFTER):
            count, self._slack.since = there - 1, None
        return max(min(count, limits.max), limits.min)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What is done about it.


class ExecutorPool:
    """The executors of a session."""

    def __init__(self, context: SparkContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._context: Any = context
        self._clock = clock
        self._count = ExecutorCount()
        self._asked: int | None = None
        self._refused = False
        self._turn = threading.Lock()
        self.is_remote = is_remote(context.master or "")

    def note(self, query: str, seconds: float, waiting: int) -> None:
        """A batch of a query took so long, and so many messages wait behind it."""
        with self._turn:
            self._count.note(query, seconds, waiting, self._clock())

    def ids(self) -> list[str]:
        """The executors that are there; none where tasks run beside the driver."""
        if not self.is_remote:
            return []
        text = self._java.getExecutorIds().mkString(" ")
        return sorted(text.split(), key=lambda each: (len(each), each))

    def resize(self, limits: Executors, trigger: timedelta) -> int | None:
        """Ask for executors or let some go, if it is time; how many there are to be, None if it is not our matter."""
        if not self.is_remote or limits.max == AUTO:
            return None
        there = len(self.ids())
        with self._turn:
            # Those that were asked for and have not come yet count: else they would be asked for again.
            base = self._asked if self._asked is not None else there
            wanted = self._count.wanted(limits, trigger, base, self._clock())
        if wanted == self._asked and there <= wanted:
            return wanted
        try:
            self._have(wanted)
        except Py4JError as error:
            self._refuse(wanted, str(getattr(error, "java_exception", error)).splitlines()[0])
        return wanted

    @property
    def _java(self) -> Any:
        return self._context._jsc.sc()

    def _have(self, count: int) -> None:
        jvm = self._context._jvm
        nowhere = getattr(getattr(jvm.scala.collection.immutable, "Map$"), "MODULE$").empty()
        # First the number, then the executors: the cluster would replace one that goes while more are wanted.
        if not self._java.requestTotalExecutors(count, 0, nowhere):
            self._refuse(count, "the cluster manager said no")
            return
        self._refused = False
        if count != self._asked:
            _log.info("executors: %d are wanted", count)
        self._asked = count
        over = self.ids()[count:]
        if over:
            # Neither replaced nor counted as failed; and not while they have a task.
            self._java.schedulerBackend().killExecutors(jvm.PythonUtils.toSeq(over), False, False, False)

    def _refuse(self, count: int, reason: str) -> None:
        if not self._refused:
            _log.warning("%s", EXECUTORS_REFUSED(count=count, reason=reason))
        self._refused = True
