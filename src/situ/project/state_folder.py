"""Where a run writes what happened: ``.situ/logs/situ.log``, a few files that never grow beyond a size.

Everything goes through the standard library's logging, so that what people see on the terminal and what stands in the
file is the same record. Loggers of ours are below ``situ``; of others only warnings are kept. No record holds a secret:
addresses are logged as people may see them, settings not at all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path

from situ.bus.folder_lock import STATE, private_folder

LOGS = STATE / "logs"
LOG = LOGS / "situ.log"
SPARK_LOG = LOGS / "spark.log"
"""What Spark and Java say on their own; begun anew with each run."""

_SIZE = 4 * 1024 * 1024
_FILES = 4
_FORM = "%(asctime)s.%(msecs)03dZ %(process)d %(levelname)-7s %(name)s: %(message)s"


@contextmanager
def logging_to(folder: Path) -> Iterator[Path]:
    """Log into this project while the context lasts; gives the file."""
    file = folder / LOG
    private_folder(file.parent)
    handler = RotatingFileHandler(file, maxBytes=_SIZE, backupCount=_FILES, encoding="utf-8", delay=True)
    handler.setFormatter(_formatter())
    # A full disk must not end the run, nor fill the terminal with tracebacks of the log that could not be written.
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    root, ours = logging.getLogger(), logging.getLogger("situ")
    before = ours.level
    root.addHandler(handler)
    ours.setLevel(logging.INFO)
    try:
        yield file
    finally:
        ours.setLevel(before)
        root.removeHandler(handler)
        handler.close()


def _formatter() -> logging.Formatter:
    formatter = logging.Formatter(_FORM, datefmt="%Y-%m-%dT%H:%M:%S")
    formatter.converter = time.gmtime
    return formatter
