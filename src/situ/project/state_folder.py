"""Files that a run leaves in ``.situ``: its log, and the record of what was put in force from the folder.

`logging_to` writes ``logs/situ.log``. `note_applied` and `edited_files` tell which files of the folder differ from
those in force.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from situ.bus.folder_lock import STATE, private_folder
from situ.lang.problems import Problems
from situ.project.folder import OWN_FOLDER, digest_of, list_files, read_file

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The log: a few files of bounded size. Everything goes through the standard library's logging, so that the terminal and
# the file show the same records. Loggers of Situ are below ``situ``; of others only warnings are kept. No record holds
# a secret: addresses are logged without credentials, settings not at all.

LOGS = STATE / "logs"
LOG = LOGS / "situ.log"
SPARK_LOG = LOGS / "spark.log"
"""What Spark and Java say on their own; begun anew with each run."""
REAL_TIME_LOG = LOGS / "real-time.log"
"""The same for the process of real-time deliveries."""

_SIZE = 4 * 1024 * 1024
_FILES = 4
_FORM = "%(asctime)s.%(msecs)03dZ %(process)d %(levelname)-7s %(name)s: %(message)s"


@contextmanager
def logging_to(folder: Path) -> Iterator[Path]:
    """Log into this project while the context lasts; gives the file."""
    from logging.handlers import RotatingFileHandler

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Drift. The record of what was put in force is written when a run starts and by ``situ apply``. Comparing goes by the
# bytes of the files and understands none of them: it has to answer for a folder that is half edited, and cost next to
# nothing.

RECORD = Path(OWN_FOLDER) / "applied.json"
_FORMAT = 1


def note_applied(path: Path, digests: Mapping[str, str]) -> None:
    """Write down what is in force from this folder now; who reads meanwhile sees the old or the new record, whole."""
    file = path / RECORD
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    text = json.dumps({"format": _FORMAT, "files": dict(sorted(digests.items()))}, indent=1)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text + "\n")
    beside.replace(file)


def edited_files(path: Path) -> tuple[str, ...]:
    """The files that are edited, new or gone since; none if nothing was ever put in force from this folder."""
    before = _recorded(path)
    if before is None:
        return ()
    problems = Problems()
    files = list_files(path, problems)
    now = {file: digest_of(data) for file in files if (data := read_file(path, file, problems)) is not None}
    return tuple(sorted(file for file in {*before, *now} if before.get(file) != now.get(file)))


def _recorded(path: Path) -> Mapping[str, str] | None:
    try:
        found = json.loads((path / RECORD).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found["files"] if isinstance(found, dict) and found.get("format") == _FORMAT else None
