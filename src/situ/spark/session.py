"""A streaming query of Spark: started, waited for, stopped between two batches.

Spark gives a Python process ten seconds to start and ends the query if it takes longer, which says something of how
busy the machine is and nothing of the query: it is started again, for as long as a quarter of an hour, and goes on
from its last batch.

What fails in a way that nobody foresaw is begun again, too: the batch that was under way is repeated. If that fails a
few times and no batch comes to its end between, the query is given up.
"""

from __future__ import annotations

import logging
import re
import threading
import time
import traceback
from collections.abc import Callable

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql.streaming.query import StreamingQuery

from situ.catalogue import ENGINE_FAILED
from situ.errors import SituError
from situ.event.isolation import is_of_event

_log = logging.getLogger("situ.pipeline")
_SLOW = "failed to connect back"
_PATIENCE = 900.0
"""Seconds for which it is tried, with no batch finished between: a busy machine may take long to come to its senses."""
_PAUSE = 1.0
_TRIES = 3
"""How often in a row a query is begun again after a failure that nobody foresaw."""
_AT_ONCE = 0.2
"""Seconds before it is begun again the first time; four times as long each time."""
_LONG_AGO = 600.0
"""Seconds after which a failure has nothing to do with the next one."""
_FORESEEN = re.compile(r"situ\.errors\.SituError: (?:\S+: )?[BDN]\d{3} ")
"""Bus, database of the registry and engine: to begin at once again does not help."""
_ABOUT = "=== Streaming Query ==="
_BEGINS = "Traceback (most recent call last):"
_RAISED = re.compile(r"[A-Za-z_][\w.]*: ")
_MOST_TOLD = 100
_STOP_WITHIN = 30
_FIRST_LOOK = 60.0
_REMEDY = "It goes on from its last batch when it is started again; nothing was lost."


class _Stopped(Exception):
    """Ends the query at a batch that has not done anything yet."""


class Query:
    """One query; ``begin`` starts it, or lets it go on where it was.

    ``on_failure`` is told of each failure that nobody foresaw.
    """

    def __init__(
        self,
        begin: Callable[[], StreamingQuery],
        *,
        name: str = "",
        on_failure: Callable[[], None] = lambda: None,
        patience: float = _PATIENCE,
        pause: float = _PAUSE,
    ) -> None:
        self._begin = begin
        self._name, self._on_failure = name, on_failure
        self._patience, self._pause = patience, pause
        self._query: StreamingQuery | None = None
        self._stopping, self._parked = threading.Event(), threading.Event()
        self._slow_since: float | None = None
        """Since when no process has started in time."""
        self._batch: int | None = None
        self._failed, self._failed_at = 0, 0.0
        """How often in a row, and when the last time."""
        self._told: set[str] = set()

    @property
    def is_started(self) -> bool:
        return self._query is not None

    def start(self) -> None:
        while not self._stopping.is_set():
            try:
                self._query = self._begin()
                return
            except PySparkException as error:
                self._forgive(error)
            except Py4JError:
                raise  # Java has ended
            except Exception as error:
                if not is_of_event(error):
                    raise
                self._note(error)

    def begin_batch(self, number: int) -> None:
        """What a batch calls first: if the query is to stop, that is here."""
        if number != self._batch:  # all before it is done: what failed then went well when it was repeated
            self._batch, self._failed = number, 0
        if self._stopping.is_set():
            self._parked.set()
            _await_interrupt()
            raise _Stopped

    def end_batch(self) -> None:
        """What a batch calls last."""
        if self._slow_since is not None:
            _log.warning("Python processes of Spark start again, after %.0f s", time.monotonic() - self._slow_since)
        self._slow_since = None

    def await_first_look(self) -> None:
        """Until the query has looked for events once; or has begun to work, or ended."""
        query, deadline = self._query, time.monotonic() + _FIRST_LOOK
        while query is not None and query.isActive and time.monotonic() < deadline:
            if query.status["isTriggerActive"] is False and query.status["message"].startswith("Waiting"):
                return
            if query.lastProgress is not None:
                return
            time.sleep(0.05)

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the query ends; True if it did. :class:`SituError` if it failed."""
        while self._query is not None:
            try:
                # Spark takes fractions of a second, whatever its annotation says.
                return bool(self._query.awaitTermination(seconds))  # type: ignore[arg-type]
            except PySparkException as error:
                if self._stopping.is_set():
                    return True
                self._forgive(error)
                self.start()
        return True

    def stop(self) -> None:
        """Finish the batch under way, then end. The next one, should it begin, is given up before it does anything."""
        self._stopping.set()
        query = self._query
        if query is None:
            return
        while query.isActive and query.status["isTriggerActive"] and not self._parked.is_set():
            time.sleep(0.01)
        query.stop()
        self.wait(_STOP_WITHIN)

    def _forgive(self, error: PySparkException) -> None:
        """Nothing if a process was merely slow, and not for too long; else why the query failed.

        It is said once: on a machine that is busy for minutes the log would hold nothing else.
        """
        now = time.monotonic()
        if _SLOW not in str(error):
            self._note(error)
            return
        if self._slow_since is None:
            self._slow_since = now
            _log.warning(
                "Python processes of Spark took more than ten seconds to start: this machine is busy. The query is "
                "started again until they do, for up to %.0f min",
                self._patience / 60,
            )
        elif now - self._slow_since > self._patience:
            reason = f"for {self._patience / 60:.0f} min no Python process of Spark started within ten seconds"
            raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=_REMEDY)) from error
        self._stopping.wait(self._pause)

    def _note(self, error: Exception) -> None:
        """Log and count what nobody foresaw. Why the query failed, if it is foreseen or has failed too often."""
        reason, now = _reason(error), time.monotonic()
        foreseen = _FORESEEN.search(str(error)) is not None
        if not foreseen:
            self._failed = self._failed + 1 if now - self._failed_at < _LONG_AGO else 1
            self._failed_at = now
            self._on_failure()
        if foreseen or self._failed > _TRIES:
            raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=_REMEDY)) from error
        if reason not in self._told:
            if len(self._told) >= _MOST_TOLD:
                self._told.clear()
            self._told.add(reason)
            trace = _trace(error).rstrip()
            _log.error("the query %s failed and goes on from its last batch: %s\n%s", self._name, reason, trace)
        self._stopping.wait(_AT_ONCE * 4 ** (self._failed - 1))


def _await_interrupt() -> None:
    """Wait in Java until the query is stopped, on the very thread that is interrupted then.

    A query that ends by an exception of its batch has failed, and Spark writes that with a traceback into the
    log. One that is interrupted has been stopped, and nothing is said.
    """
    context = SparkContext._active_spark_context
    if context is not None and context._jvm is not None:
        context._jvm.java.lang.Thread.sleep(_STOP_WITHIN * 1000)


def _reason(error: Exception) -> str:
    """The line that says most: a code of ours, else what was raised last, else the first."""
    lines = [line for line in str(error).partition(_ABOUT)[0].splitlines() if line.strip()]
    codes = [line for line in lines if line.startswith("situ.errors.SituError")]
    raised = [line for line in lines if _RAISED.match(line)]
    if not isinstance(error, PySparkException):
        codes = [f"{type(error).__name__}: {error}"]
    return (codes[:1] or raised[-1:] or lines[:1] or ["no reason given"])[0].strip()[:500]


def _trace(error: Exception) -> str:
    """All there is to know, without what Spark says of the query."""
    if not isinstance(error, PySparkException):
        return "".join(traceback.format_exception(error))
    text = str(error).partition(_ABOUT)[0]
    _, begins, rest = text.partition(_BEGINS)
    return f"{begins}{rest}" or text
