"""Who runs in a project folder: ``.situ/lock`` is held by the one run, and tells others its process and ports.

The lock is the kernel's (flock), so it ends with the process however that ends; the text in the file only informs. This
module also owns the version of the layout of ``.situ`` (``.situ/format``), and that what is there is for its owner
only. It starts nothing and knows no bus.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any

import msgspec

from situ.lang.catalogue import FOLDER_IN_USE, OTHER_LAYOUT
from situ.lang.problems import SituError

STATE = Path(".situ")
LOCK = STATE / "lock"
FORMAT = STATE / "format"
CREDENTIALS = STATE / "credentials"
LAYOUT = 1
"""The version of what is under ``.situ`` that this release reads and writes."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MOST = 1024 * 1024  # bytes of the text that are read
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class LockHolder(msgspec.Struct, frozen=True, kw_only=True):
    """The run that holds a folder."""

    pid: int
    start: str = ""
    ports: Mapping[str, int] = msgspec.field(default_factory=lambda: _NOTHING)
    settings: Mapping[str, Any] = msgspec.field(default_factory=lambda: _NOTHING)
    """Those it was started with, as JSON: it is reached by them, whatever situ.yaml says by now."""


class FolderLock:
    """Held while a run owns the folder. A second one is refused with P120."""

    def __init__(self, folder: Path, settings: Mapping[str, Any] = _NOTHING) -> None:
        self._folder = folder
        self._settings = dict(settings)
        self._file: int | None = None
        self._start = ""

    @property
    def held(self) -> bool:
        return self._file is not None

    def acquire(self) -> None:
        keep_private(private_folder(self._folder / STATE))
        file = os.open(self._folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if not _try_lock(file):
            holder = _parse(os.pread(file, _MOST, 0))
            os.close(file)
            pid = holder.pid if holder is not None else 0
            raise SituError(FOLDER_IN_USE(folder=str(self._folder), pid=pid))
        try:
            _check_layout(self._folder)
        except BaseException:
            os.close(file)
            raise
        self._file = file
        self._start = datetime.now(UTC).isoformat(timespec="milliseconds")
        self.announce({})

    def announce(self, ports: Mapping[str, int]) -> None:
        """Tell others the ports of this run, by what listens there (``bus``)."""
        assert self._file is not None, "only the holder announces"
        said = {"pid": os.getpid(), "start": self._start, "ports": dict(ports), "settings": self._settings}
        text = json.dumps(said).encode()
        # Readers see the old text, a prefix of the new, or the new: what does not parse they read again.
        os.pwrite(self._file, text, 0)
        os.ftruncate(self._file, len(text))

    def release(self) -> None:
        if self._file is not None:
            os.ftruncate(self._file, 0)
            os.close(self._file)
            self._file = None

    def __enter__(self) -> FolderLock:
        self.acquire()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.release()


def read_lock(folder: Path) -> LockHolder | None:
    """The run that holds the folder now; None if none does."""
    try:
        file = os.open(folder / LOCK, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _parse(os.pread(file, _MOST, 0)) or LockHolder(pid=0)
    else:
        return None
    finally:
        os.close(file)


def _try_lock(file: int) -> bool:
    """Take the lock; who only looks (:func:`read_lock`) has it for an instant, so one refusal is not yet an answer."""
    for _ in range(5):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return True
    return False


def _parse(text: bytes) -> LockHolder | None:
    try:
        fields = json.loads(text)
        return LockHolder(
            pid=int(fields["pid"]),
            start=str(fields["start"]),
            ports=MappingProxyType(dict(fields["ports"])),
            settings=MappingProxyType(dict(fields.get("settings", {}))),
        )
    except (ValueError, KeyError, TypeError):
        return None


def _check_layout(folder: Path) -> None:
    path = folder / FORMAT
    try:
        found = path.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        path.write_text(f"{LAYOUT}\n", encoding="utf-8")
        return
    if found != str(LAYOUT):
        raise SituError(OTHER_LAYOUT(folder=str(folder / STATE), found=found[:40], known=LAYOUT))


# ── for the owner only ──


def private_folder(path: Path) -> Path:
    """Make a folder, and those above it that are not there, so that nobody but the owner can look into them."""
    missing: list[Path] = []
    here = path
    while not here.exists():
        missing.append(here)
        here = here.parent
    for each in reversed(missing):
        with suppress(FileExistsError):  # another process made it meanwhile
            each.mkdir(mode=0o700)
    return path


def keep_private(folder: Path) -> None:
    """Take the rights of others away from a folder and all in it, which a release before this one may have given."""
    _take_away(folder)
    for here, folders, files in os.walk(folder):
        for name in (*folders, *files):
            _take_away(Path(here) / name)


def _take_away(path: Path) -> None:
    with suppress(FileNotFoundError, PermissionError):  # gone meanwhile; or another user's, who may read it anyway
        mode = path.lstat().st_mode
        if mode & _OTHERS and not stat.S_ISLNK(mode):
            path.chmod(stat.S_IMODE(mode) & ~_OTHERS)
