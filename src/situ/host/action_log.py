"""``.situ/logs/actions.log``: what policies log, each line once, whatever breaks.

A line ends with the key of its request, and counts when it ends at all. So a request that is still kept when a process
begins is either in the file, whole, and done, or it is not. A few files that never grow beyond a size.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from situ.bus.folder_lock import private_folder
from situ.host.logs import LOGS

ACTION_LOG = LOGS / "actions.log"

_SIZE = 4 * 1024 * 1024
_FILES = 4


class ActionLog:
    """The file of one project; one process writes it."""

    def __init__(self, folder: Path, *, size: int = _SIZE) -> None:
        self._file = folder / ACTION_LOG
        self._size = size

    def mend(self) -> None:
        """Take away what a process that was killed did not write to the end."""
        try:
            content = self._file.read_bytes()
        except FileNotFoundError:
            return
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self._file, whole)

    def holds(self, keys: Iterable[str]) -> frozenset[str]:
        """Which of these keys have their lines in it."""
        wanted = frozenset(keys)
        return wanted & frozenset(self._keys()) if wanted else frozenset()

    def write(self, time: str, level: str, policy: str, text: str, key: str) -> None:
        """The text is one line already; so no line can look like two."""
        private_folder(self._file.parent)
        self._turn()
        line = f"{time} {level.upper():7} {policy}: {text} [{key}]\n".encode()
        file = os.open(self._file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            written = os.write(file, line)
        finally:
            os.close(file)
        if written < len(line):
            self.mend()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._file))

    def _turn(self) -> None:
        if not self._file.exists() or self._file.stat().st_size < self._size:
            return
        files = list(self._files())
        for older, newer in zip(reversed(files), [*reversed(files)][1:], strict=False):
            if newer.exists():
                newer.replace(older)

    def _files(self) -> Iterator[Path]:
        """Newest first."""
        yield self._file
        for number in range(1, _FILES):
            yield self._file.with_name(f"{self._file.name}.{number}")

    def _keys(self) -> Iterator[str]:
        for file in self._files():
            if not file.exists():
                continue
            with file.open("rb") as lines:
                for line in lines:
                    if line.endswith(b"]\n"):
                        yield line[line.rfind(b"[") + 1 : -2].decode("utf-8", "replace")
