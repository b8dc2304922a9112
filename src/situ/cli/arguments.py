"""Arguments of commands: files that are read or written, durations and instants.

What is wrong with a file becomes a problem instead of an exception; a wrong duration or instant is wrong usage.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from situ.cli.exits import CommandError, Exit
from situ.lang.catalogue import FILE_EXISTS, FILE_UNREADABLE
from situ.lang.problems import Location, SituError
from situ.lang.quantities import parse_duration, parse_moment

if TYPE_CHECKING:
    from situ.project.event_files import InputError, InputEvent

STDIN = "-"
_MOST = 64 * 1024 * 1024
_CHUNK = 1024 * 1024


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


async def read_events(path: str, type: str, limit: int, form: str = "") -> AsyncIterator[list[InputEvent | InputError]]:
    """What each line of a file is, of standard input for ``-``; as many at a time as are there.

    ``type`` is that of bare data, ``form`` how one names it, ``limit`` the most bytes of an event.
    """
    import asyncio

    from situ.project.event_files import PUBLISH_FORM, EventLineReader

    reader = EventLineReader(path, type, limit, form or PUBLISH_FORM)
    with _opened(path) as file:
        while chunk := await asyncio.to_thread(os.read, file, _CHUNK):
            if found := reader.feed(chunk):
                yield found
    if found := reader.finish():
        yield found


@contextmanager
def _opened(path: str) -> Iterator[int]:
    if path == STDIN:
        yield sys.stdin.fileno()
        return
    try:
        with Path(path).open("rb") as file:
            yield file.fileno()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise _unreadable(path, reason, "Look at the name; it is taken from the current folder.") from None


def write_new(path: Path, text: str, *, overwrite: bool) -> None:
    """Write a file, in a folder that is made if there is none; never over another unless told so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with path.open("w" if overwrite else "x", encoding="utf-8", newline="\n") as file:
            file.write(text)
    except FileExistsError:
        raise CommandError(Exit.REFUSED, FILE_EXISTS(Location(file=str(path)))) from None


def _unreadable(path: str, reason: str, remedy: str) -> CommandError:
    return CommandError(Exit.USAGE, FILE_UNREADABLE(Location(file=path), reason=reason, remedy=remedy))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Durations and instants as options take them: ``30s`` and ``1 h ago``.

# On a command line a space costs quotes: `--for 30s` is as good as `--for '30 s'`.
_TIGHT = re.compile(r"^(\s*[0-9.]+)([A-Za-zµ])")


def read_duration(text: str, option: str) -> timedelta:
    try:
        return parse_duration(_TIGHT.sub(r"\1 \2", text))
    except SituError as error:
        raise _wrong(error, option) from None


def read_moment(text: str, option: str) -> datetime:
    try:
        return parse_moment(_TIGHT.sub(r"\1 \2", text), datetime.now(UTC))
    except SituError as error:
        raise _wrong(error, option) from None


def _wrong(error: SituError, option: str) -> typer.BadParameter:
    problem = error.problems[0]
    return typer.BadParameter(f"{problem.message} {problem.hint}", param_hint=f"'{option}'")
