"""The requests for actions of one project, kept in the database ``.situ/actions/queue.db`` until they are done.

`ActionRequest` is one request, `ActionQueue` the database: the worker takes, notes, fails and drops requests there.
`QueuedAction` and the functions behind it are the same requests as commands list them; they need no run.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import msgspec

from situ.bus.folder_lock import STATE, private_folder
from situ.lang.problems import Problem
from situ.lang.records import replace

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The database. A request is ``waiting`` to be done, ``failed`` when it was given up, or ``again`` when somebody wants a
# failed one tried once more. ``log`` says how far the root log was read: requests and how far are written together.
#
# In WAL mode commands read while a run writes, and a commit does not wait for the disk: it survives the death of the
# process; only if the machine dies may the last ones be lost. Nothing in it is secret: values of the environment are
# put in when a request is done, and kept nowhere.

ACTIONS = STATE / "actions"
QUEUE = ACTIONS / "queue.db"
WAITING, FAILED, AGAIN = "waiting", "failed", "again"

_log = logging.getLogger("situ.host")
_FORMAT = 1
_PATIENCE = 30.0  # seconds to wait while another process writes
_TABLES = """
CREATE TABLE log (reached INTEGER NOT NULL);
CREATE TABLE request (
    key TEXT PRIMARY KEY, state TEXT NOT NULL, pos INTEGER NOT NULL, about TEXT NOT NULL,
    attempts INTEGER NOT NULL, target TEXT NOT NULL, problem TEXT NOT NULL
);
CREATE INDEX request_in_order ON request (state, pos, key);
"""
_COLUMNS = "key, pos, about, attempts, target, problem"
_KEY = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z.-]{0,199}")


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to do, as an engine asked for it. ``about`` is the data of the ``situ.action`` event."""

    key: str
    pos: int
    """Where the root log has it: what belongs to one situation is done in this order."""
    about: Mapping[str, Any]
    attempts: int = 0
    target: str = ""
    """Where it goes to, for people; what comes from the environment as it is written."""
    problem: Mapping[str, str] = msgspec.field(default_factory=dict)
    """Why the last attempt failed: code, message, hint."""

    @property
    def verb(self) -> str:
        return str(self.about["verb"])

    @property
    def action(self) -> str:
        return str(self.about["action"])

    @property
    def policy(self) -> str:
        return str(self.about["policy"])

    @property
    def situation(self) -> str:
        return str(self.about["situation"])

    @property
    def time(self) -> str:
        return str(self.about["time"])

    def tried(self, problem: Problem | None, target: str, attempts: int) -> ActionRequest:
        """With what came of an attempt."""
        said = {} if problem is None else {"code": problem.code.code, "message": problem.message, "hint": problem.hint}
        return replace(self, problem=said, target=target, attempts=attempts)


class ActionQueue:
    """The requests of one project. Any thread and any process may use it; OSError if it cannot be read or written."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / QUEUE
        self._lock = Lock()
        self._opened: sqlite3.Connection | None = None

    # ── how far the log was read ──

    def reached(self) -> int | None:
        """The last message of the root log whose requests are kept here; None if that is not known."""
        found = self._read("SELECT reached FROM log")
        return int(found[0][0]) if found else None

    def reach(self, seq: int) -> None:
        self.take((), seq)

    def take(self, found: Iterable[ActionRequest], seq: int) -> None:
        """Requests of the log up to this message; they are there for the next process when this returns."""
        with self._change() as database:
            for each in found:
                _insert(database, "INSERT OR IGNORE", each, WAITING)
            database.execute("DELETE FROM log")
            database.execute("INSERT INTO log VALUES (?)", (seq,))

    # ── requests ──

    def note(self, request: ActionRequest) -> None:
        """It still waits, unless somebody dropped it, and this became of it so far."""
        with self._change() as database:
            _update(database, request, WAITING)

    def fail(self, request: ActionRequest) -> None:
        """It is given up, unless somebody dropped it meanwhile."""
        with self._change() as database:
            _update(database, request, FAILED)

    def again(self, key: str) -> bool:
        """A failed one is to be tried once more, by the run that is there or by the next; False if there is none."""
        with self._change() as database:
            turn = "UPDATE request SET state = ? WHERE key = ? AND state = ?"
            return database.execute(turn, (AGAIN, key, FAILED)).rowcount > 0

    def taken_again(self) -> list[ActionRequest]:
        """Those that are to be tried once more, which wait from now on, in the order of the log."""
        if not self.count(AGAIN):
            return []
        with self._change() as database:
            found = [replace(each, attempts=0) for each in _requests(database, AGAIN)]
            for each in found:
                _insert(database, "INSERT OR REPLACE", each, WAITING)
        return found

    def is_waiting(self, key: str) -> bool:
        """False when somebody dropped it."""
        return bool(self._read("SELECT 1 FROM request WHERE key = ? AND state = ?", key, WAITING))

    def drop(self, key: str, state: str = WAITING) -> bool:
        """It is done, or nobody wants it any more; False if it was not there."""
        with self._change() as database:
            return database.execute("DELETE FROM request WHERE key = ? AND state = ?", (key, state)).rowcount > 0

    def find(self, key: str) -> tuple[ActionRequest, str] | None:
        """A request and its state."""
        found = self._read(f"SELECT {_COLUMNS}, state FROM request WHERE key = ?", key)
        return (_request(found[0]), str(found[0][-1])) if found else None

    def all(self, state: str) -> list[ActionRequest]:
        """In the order of the log."""
        with self._lock, _as_os_errors(self._file):
            database = self._open(make=False)
            return [] if database is None else _requests(database, state)

    def count(self, state: str) -> int:
        found = self._read("SELECT count(*) FROM request WHERE state = ?", state)
        return int(found[0][0]) if found else 0

    # ── the database ──

    def _read(self, query: str, *values: str) -> list[tuple[Any, ...]]:
        with self._lock, _as_os_errors(self._file):
            database = self._open(make=False)
            return [] if database is None else database.execute(query, values).fetchall()

    @contextmanager
    def _change(self) -> Iterator[sqlite3.Connection]:
        """One transaction, alone."""
        with self._lock, _as_os_errors(self._file):
            database = self._open(make=True)
            assert database is not None
            with _transaction(database):
                yield database

    def _open(self, *, make: bool) -> sqlite3.Connection | None:
        """None if nothing was ever kept. One that cannot be read is said, and put aside by whoever writes."""
        if self._opened is None:
            former = _former_files(self._file.parent)
            if not (make or former or self._file.exists()):
                return None
            private_folder(self._file.parent)
            try:
                self._opened = _connect(self._file)
            except sqlite3.OperationalError:
                raise
            except sqlite3.DatabaseError as error:
                _log.warning("%s cannot be read (%s): actions in it are not done", self._file, error)
                if not make:  # to look at it changes nothing
                    return None
                for file in self._file.parent.glob(f"{self._file.name}*"):  # with what SQLite keeps beside it
                    file.replace(file.with_name(f"damaged-{file.name}"))
                self._opened = _connect(self._file)
            for file in former:
                file.unlink(missing_ok=True)
        return self._opened


def is_key(key: str) -> bool:
    """Whether requests can have this key."""
    return _KEY.fullmatch(key) is not None


def _connect(file: Path) -> sqlite3.Connection:
    os.close(os.open(file, os.O_CREAT | os.O_CLOEXEC, 0o600))  # SQLite gives its other files the same rights
    database = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        with _transaction(database):
            (version,) = database.execute("PRAGMA user_version").fetchone()
            if version == 0:
                for statement in filter(str.strip, _TABLES.split(";")):
                    database.execute(statement)
                _take_files_over(database, file.parent)
                database.execute(f"PRAGMA user_version = {_FORMAT}")
            elif version != _FORMAT:
                raise sqlite3.DatabaseError(f"its format is {version}")
    except sqlite3.Error:
        database.close()
        raise
    return database


@contextmanager
def _transaction(database: sqlite3.Connection) -> Iterator[None]:
    database.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        database.execute("ROLLBACK")
        raise
    database.execute("COMMIT")


@contextmanager
def _as_os_errors(file: Path) -> Iterator[None]:
    """A full disk and a database that somebody holds are troubles of the system, as with any file."""
    try:
        yield
    except sqlite3.Error as error:
        raise OSError(f"{file}: {error}") from error


def _insert(database: sqlite3.Connection, how: str, request: ActionRequest, state: str) -> None:
    about, problem = (json.dumps(dict(each), ensure_ascii=False) for each in (request.about, request.problem))
    row = (request.key, state, request.pos, about, request.attempts, request.target, problem)
    database.execute(f"{how} INTO request VALUES (?, ?, ?, ?, ?, ?, ?)", row)


def _update(database: sqlite3.Connection, request: ActionRequest, state: str) -> None:
    """What became of one that waits."""
    problem = json.dumps(dict(request.problem), ensure_ascii=False)
    database.execute(
        "UPDATE request SET state = ?, attempts = ?, target = ?, problem = ? WHERE key = ? AND state = ?",
        (state, request.attempts, request.target, problem, request.key, WAITING),
    )


def _requests(database: sqlite3.Connection, state: str) -> list[ActionRequest]:
    ordered = f"SELECT {_COLUMNS} FROM request WHERE state = ? ORDER BY pos, key"
    return [_request(row) for row in database.execute(ordered, (state,))]


def _request(row: tuple[Any, ...]) -> ActionRequest:
    key, pos, about, attempts, target, problem, *_ = row
    return ActionRequest(
        key=key, pos=pos, about=json.loads(about), attempts=attempts, target=target, problem=json.loads(problem)
    )


# A release before this one kept a file for each request: ``waiting/<key>.json`` and so on, ``tried/<key>.json`` for
# what became so far of one that waits, ``cursor.json`` for how far the log was read. They are read into a new database,
# and removed when that is kept.


def _former_files(folder: Path) -> list[Path]:
    return [*folder.glob("*/*.json"), *folder.glob("cursor.json")]


def _take_files_over(database: sqlite3.Connection, folder: Path) -> None:
    files = sorted(_former_files(folder), key=lambda file: (file.parent.name == "tried", file))
    for file in files:
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if file.name == "cursor.json":
                database.execute("INSERT INTO log VALUES (?)", (int(stored["reached"]),))
                continue
            request = ActionRequest(**{name: stored[name] for name in _COLUMNS.split(", ")})
        except (ValueError, KeyError, TypeError) as error:
            _log.warning("%s cannot be read: %s", file, error)
            continue
        if file.parent.name in _STATES:
            _insert(database, "INSERT OR REPLACE", request, file.parent.name)
        else:
            _update(database, request, WAITING)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The queue as commands show it: read from the files of the project, whether or not there is a run.


class QueuedAction(msgspec.Struct, frozen=True):
    """A request and where it stands: ``waiting`` or ``failed``."""

    request: ActionRequest
    state: str

    @property
    def key(self) -> str:
        return self.request.key

    @property
    def policy(self) -> str:
        return self.request.policy

    def as_json(self) -> dict[str, Any]:
        request = self.request
        return {
            "key": request.key,
            "state": self.state,
            "verb": request.verb,
            "action": request.action,
            "policy": request.policy,
            "situation": request.situation,
            "time": request.time,
            "bindings": {each["alias"]: each["id"] for each in request.about["bindings"]},
            "target": request.target or None,
            "attempts": request.attempts,
            "problem": dict(request.problem) or None,
        }


def queued_actions(asked: ActionQueue) -> list[QueuedAction]:
    """In the order in which they were asked for."""
    return sorted(_all(asked), key=lambda each: (each.request.pos, each.key))


def find_action(asked: ActionQueue, key: str) -> QueuedAction | None:
    found = asked.find(key)
    return None if found is None else QueuedAction(found[0], _STATES[found[1]])


def count_actions(asked: ActionQueue) -> dict[str, int]:
    """How many wait, and how many failed."""
    return {
        "waiting": sum(asked.count(state) for state, said in _STATES.items() if said == "waiting"),
        "failed": asked.count(FAILED),
    }


_STATES = {WAITING: "waiting", AGAIN: "waiting", FAILED: "failed"}


def _all(asked: ActionQueue) -> Iterator[QueuedAction]:
    for state, said in _STATES.items():
        yield from (QueuedAction(each, said) for each in asked.all(state))
