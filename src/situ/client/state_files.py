"""What a client must not forget, on its own disk: incarnation and session, ids it published, events it has had.

`Journal` appends lines to a file without a system call for each. `ClientFiles` has all files of one client.
"""

from __future__ import annotations

import fcntl
import json
import logging
import mmap
import os
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from situ.bus.folder_lock import private_folder
from situ.protocol.dedup_window import DedupWindow, SequenceSet, TokenSet, token_number

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The journal. The end of the file is room that is mapped into memory: a line is copied there. The system writes it to
# the disk in its own time, and keeps it whatever becomes of the process; only if the machine dies are the last lines
# lost. The room is filled with zeros beforehand, so a full disk is noticed when room is made and not in the middle of a
# line.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The files of a client: under ``.situ/clients/<client>/`` of the project, or in the user's state folder without a
# project. Where nothing can be written the client remembers as long as it runs, and says so. Files are appended to
# event by event without waiting for the disk: what a process has written survives its death, which is what they are
# for.

_log = logging.getLogger("situ.client")
_IDS_AGE, _MOST_IDS = 600.0, 100_000
_APPENDED = 100_000
"""Lines appended to a file after which it is written anew."""


def state_folder(project: Path | None, zone: str, client: str) -> Path:
    """Where a client keeps what it must not forget."""
    if project is not None:
        return project / ".situ" / "clients" / client
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "situ" / zone / "clients" / client


class ClientFiles:
    """The files of one client; ``folder`` None keeps everything in memory."""

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        if folder is not None and not _is_writable(folder):
            _log.warning("%s cannot be written: after a restart this client may see events again", folder)
            self.folder = None
        self.incarnation, self.session = self._raise_numbers()
        self.ids = IdWindow(self._file("ids"))

    @property
    def on_disk(self) -> bool:
        return self.folder is not None

    def seen(self, subscription: str) -> SeenFile:
        """What the durable subscription of this name has had."""
        return SeenFile(self._file(f"seen-{subscription}"))

    def forget(self, subscription: str) -> None:
        if (file := self._file(f"seen-{subscription}")) is not None:
            file.unlink(missing_ok=True)

    def close(self) -> None:
        self.ids.close()

    def _file(self, name: str) -> Path | None:
        return self.folder / name if self.folder is not None else None

    def _raise_numbers(self) -> tuple[int, int]:
        """Both begin at the clock, so that they rise even if the disk was lost."""
        now = time.time_ns() // 1_000_000
        if self.folder is None:
            return now, now
        with _locked(self.folder / "numbers.lock"):
            file = self.folder / "numbers"
            known = _read_json(file)
            incarnation = max(now, _number(known, "incarnation") + 1)
            session = max(now, _number(known, "session") + 1)
            _write_whole(file, json.dumps({"incarnation": incarnation, "session": session}))
        return incarnation, session


class IdWindow:
    """Ids the application gave to events that are stored: for ten minutes, and the last 100,000 of them."""

    def __init__(self, file: Path | None) -> None:
        self._known: OrderedDict[str, float] = OrderedDict()
        self._file = file
        self._appended = 0
        self._open: Any = None
        if file is not None:
            for line in _lines(file):
                if isinstance(line, list) and len(line) == 2 and isinstance(line[1], str):
                    self._known[line[1]] = float(line[0])
            self._forget(time.time())
            self._rewrite()

    def __contains__(self, id: str) -> bool:
        self._forget(time.time())
        return id in self._known

    def expect(self, id: str) -> None:
        """The event is under way: the same id again is a repetition already now."""
        self._known[id] = time.time()

    def add(self, id: str) -> None:
        """The event is stored: from here on not even a restart forgets it."""
        now = self._known[id] = time.time()
        if self._open is not None:
            self._open.write(json.dumps([now, id]) + "\n")
            self._appended += 1
            if self._appended > _APPENDED:
                self._rewrite()

    def discard(self, id: str) -> None:
        """The event was not published after all."""
        self._known.pop(id, None)

    def flush(self) -> None:
        if self._open is not None:
            self._open.flush()

    def close(self) -> None:
        if self._open is not None:
            self._open.close()
            self._open = None

    def _forget(self, now: float) -> None:
        while self._known:
            id, at = next(iter(self._known.items()))
            if now - at <= _IDS_AGE and len(self._known) <= _MOST_IDS:
                return
            del self._known[id]

    def _rewrite(self) -> None:
        if self._file is None:
            return
        self.close()
        _write_whole(self._file, "".join(json.dumps([at, id]) + "\n" for id, at in self._known.items()))
        self._open = self._file.open("a", encoding="utf-8")
        self._appended = 0


class SeenFile:
    """The window of one durable subscription: a file of what was done with, one line an event."""

    def __init__(self, file: Path | None) -> None:
        self.window = DedupWindow()
        self.given = 0
        """Events that the application is done with: the next one has the number after that."""
        self.history: dict[str, Any] = {}
        """How far reading of history is: ``after``, and whether it is ``done``."""
        self._file = file
        self._journal: Journal | None = None
        if file is not None:
            for line in _lines(file):
                self._take(line)
            self._rewrite()

    def of(self, producer: str) -> DoneEvents:
        """What was done with of this producer: all of its keys but what follows the last dot."""
        client, _, incarnation = producer.rpartition(".")
        if not client:  # its keys are sealed
            return DoneEvents(self, self.window.tokens, b"[", partial(token_number, producer))
        numbers = self.window.of(client, int(incarnation))
        return DoneEvents(self, numbers, f'["{client}",{incarnation},'.encode(), int)

    def add(self, key: str) -> None:
        """This event is done with."""
        producer, _, last = key.rpartition(".")
        done = self.of(producer)
        done.add(done.number(last))

    def append(self, line: bytes) -> None:
        if self._journal is not None and not self._journal.append(line):
            self._rewrite()

    def note_history(self, after: str, *, done: bool) -> None:
        self.history = {"after": after, "done": done}
        self.append(_line(self.history | {"given": self.given}))

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _take(self, line: Any) -> None:
        if isinstance(line, dict):
            self.given = _number(line, "given") or self.given
            self.history = {name: value for name, value in line.items() if name != "given"}
        elif isinstance(line, list) and len(line) == 1:
            self.given += self.window.tokens.add(line[0])
        elif isinstance(line, list) and len(line) == 3:
            self.given += self.window.add(line[0], line[1], line[2])
        elif isinstance(line, list) and len(line) == 4:
            self.window.restore(line[0], line[1], line[2], int(line[3], 16))

    def _rewrite(self) -> None:
        """What is known by now, in as few lines as it takes."""
        if self._file is None:
            return
        self.close()
        lines = [_line([*row[:3], f"{row[3]:x}"]) for row in self.window.rows()]
        lines += [b"[%d]\n" % token for token in self.window.tokens]
        lines.append(_line(self.history | {"given": self.given}))
        self._journal = Journal(self._file, lines)


class DoneEvents:
    """The events of one producer that one durable subscription is done with."""

    __slots__ = ("_file", "_numbers", "_start", "has", "number")

    def __init__(
        self, file: SeenFile, numbers: SequenceSet | TokenSet, start: bytes, number: Callable[[str], int]
    ) -> None:
        self.has = numbers.has
        self.number = number
        """What is remembered of the end of a key."""
        self._file = file
        self._numbers = numbers
        self._start = start

    def add(self, seq: int) -> None:
        """This event is done with."""
        self._numbers.add(seq)
        self._file.given += 1
        self._file.append(b"%b%d]\n" % (self._start, seq))


def _is_writable(folder: Path) -> bool:
    try:
        private_folder(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK)


@contextmanager
def _locked(file: Path) -> Iterator[None]:
    file.touch(mode=0o600)
    with file.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _read_json(file: Path) -> Any:
    try:
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _number(known: Any, key: str) -> int:
    value = known.get(key) if isinstance(known, dict) else None
    return value if isinstance(value, int) else 0


def _line(value: Any) -> bytes:
    return (json.dumps(value) + "\n").encode()


def _lines(file: Path) -> Iterator[Any]:
    """The lines that are whole; a torn last one was being written when the process died."""
    for line in read_journal(file):
        try:
            yield json.loads(line)
        except ValueError:
            _log.warning("%s has a line that cannot be read, which is left out", file)


def _write_whole(file: Path, text: str) -> None:
    new = file.with_name(file.name + ".new")
    new.touch(mode=0o600)
    new.write_text(text, encoding="utf-8")
    new.replace(file)
