"""Files that are named on the command line: read and written with problems instead of exceptions."""

from __future__ import annotations

import sys
from pathlib import Path

from situ.catalogue import FILE_EXISTS, FILE_UNREADABLE
from situ.cli.exits import Exit, Stop
from situ.errors import Location

STDIN = "-"
_MOST = 64 * 1024 * 1024


def read_file(path: str) -> bytes:
    """The bytes of a file, of standard input for ``-``. What nobody meant to be read whole is refused, not read."""
    try:
        if path == STDIN:
            return sys.stdin.buffer.read(_MOST)
        with Path(path).open("rb") as file:
            return file.read(_MOST)
    except IsADirectoryError:
        raise _unreadable(path, "it is a folder", "Name a file in it.") from None
    except FileNotFoundError:
        remedy = "Look at the name; it is taken from the current folder."
        raise _unreadable(path, "there is none of this name", remedy) from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise _unreadable(path, reason[:1].lower() + reason[1:], "Look at its rights, then try again.") from None


def write_new(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file, in a folder that is made if there is none; never over another unless told so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise Stop(Exit.REFUSED, FILE_EXISTS(Location(file=str(path)))) from None


def _unreadable(path: str, reason: str, remedy: str) -> Stop:
    return Stop(Exit.USAGE, FILE_UNREADABLE(Location(file=path), reason=reason, remedy=remedy))
