"""Lines appended to a file without a call of the system for each.

The end of the file is room that is mapped into memory: a line is copied there. The system writes it to the disk in its
own time, and keeps it whatever becomes of the process; only if the machine dies are the last lines lost. The room is
filled with zeros beforehand, so a full disk is noticed when room is made and not in the middle of a line.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOM = 1024 * 1024
"""Bytes of lines until the file is to be written anew."""


class Journal:
    """A file that holds these lines to begin with, whatever it held before. Every line ends with a break."""

    def __init__(self, file: Path, lines: Iterable[bytes] = ()) -> None:
        whole = b"".join(lines)
        new = file.with_name(f"{file.name}.new")
        new.touch(mode=0o600)
        with new.open("wb") as opened:
            opened.write(whole + bytes(ROOM))
        with new.open("r+b") as opened:
            self._memory = mmap.mmap(opened.fileno(), 0)
        new.replace(file)
        self._file = file
        self._end, self._most = len(whole), len(whole) + ROOM

    def append(self, line: bytes) -> bool:
        """False if there is no room left: then the file wants to be written anew, without what has become old."""
        start = self._end
        end = start + len(line)
        if end > self._most:
            return False
        self._memory[start:end] = line
        self._end = end
        return True

    def close(self) -> None:
        """The file ends where its last line ends."""
        self._memory.close()
        with self._file.open("r+b") as opened:
            opened.truncate(self._end)


def read_journal(file: Path) -> Iterator[bytes]:
    """The lines of a file, whether it was closed or its process died; the last may be torn."""
    try:
        content = file.read_bytes()
    except OSError:
        return
    yield from filter(None, (line.strip(b"\0") for line in content.split(b"\n")))
