"""The requests for actions of one project, kept as files below ``.situ/actions`` until they are done.

`ActionRequest` is one request, `ActionQueue` the folder: the worker keeps, notes, fails and drops requests there.
`QueuedAction` and the functions behind it are the same files as commands list them; they need no run.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from situ.bus.folder_lock import STATE, private_folder
from situ.lang.problems import Problem

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Files. ``waiting`` holds requests to be done, ``failed`` those that were given up, ``again`` failed ones that somebody
# wants tried once more, ``tried`` what became so far of those that wait; ``cursor.json`` says how far the root log was
# read.
#
# A request that waits is written once and removed once, by whoever does it or drops it, and never written in between.
# Nothing in it is secret: values of the environment are put in when it is done, and kept nowhere.

ACTIONS = STATE / "actions"
WAITING, FAILED, AGAIN, TRIED = "waiting", "failed", "again", "tried"

_log = logging.getLogger("situ.host")
_FORMAT = 1
_KEY = re.compile(r"[0-9a-zA-Z][0-9a-zA-Z.-]{0,199}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRequest:
    """One thing to do, as an engine asked for it. ``about`` is the data of the ``situ.action`` event."""

    key: str
    pos: int
    """Where the root log has it: what belongs to one situation is done in this order."""
    about: Mapping[str, Any]
    attempts: int = 0
    target: str = ""
    """Where it goes to, for people; what comes from the environment as it is written."""
    problem: Mapping[str, str] = field(default_factory=dict)
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

    def as_json(self) -> dict[str, Any]:
        return {
            "key": self.key,
            "pos": self.pos,
            "about": dict(self.about),
            "attempts": self.attempts,
            "target": self.target,
            "problem": dict(self.problem),
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> ActionRequest:
        """What :meth:`as_json` gave; KeyError, TypeError or ValueError for what it cannot have given."""
        if not _KEY.fullmatch(stored["key"]):
            raise ValueError("its key is none")
        return cls(
            key=stored["key"],
            pos=int(stored["pos"]),
            about=dict(stored["about"]),
            attempts=int(stored["attempts"]),
            target=str(stored["target"]),
            problem=dict(stored["problem"]),
        )


class ActionQueue:
    """The folder of the requests of one project."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder / ACTIONS

    # ── how far the log was read ──

    def reached(self) -> int | None:
        """The last message of the root log whose requests are kept here; None if that is not known."""
        file = self._folder / "cursor.json"
        try:
            stored = json.loads(file.read_text(encoding="utf-8"))
            if stored["format"] != _FORMAT:
                raise ValueError(f"its format is {stored['format']}")
            return int(stored["reached"])
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError) as error:
            _log.warning("%s cannot be read (%s): actions go on behind the end of the log", file, error)
            return None

    def reach(self, seq: int) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        _write(self._folder / "cursor.json", {"format": _FORMAT, "reached": seq})

    # ── requests ──

    def keep(self, request: ActionRequest, state: str = WAITING) -> None:
        """It is there for the next process when this returns."""
        folder = self._folder / state
        folder.mkdir(parents=True, exist_ok=True)
        _write(folder / f"{request.key}.json", {"format": _FORMAT, **request.as_json()})

    def note(self, request: ActionRequest) -> None:
        """It still waits, and this became of it so far."""
        self.keep(request, TRIED)

    def done(self, key: str) -> None:
        self.drop(key, WAITING)
        self.drop(key, TRIED)

    def fail(self, request: ActionRequest) -> None:
        """It is given up, unless somebody dropped it meanwhile."""
        self.keep(request, FAILED)
        if not self.drop(request.key, WAITING):
            self.drop(request.key, FAILED)
        self.drop(request.key, TRIED)

    def again(self, key: str) -> bool:
        """A failed one is to be tried once more, by the run that is there or by the next; False if there is none."""
        private_folder(self._folder / AGAIN)
        try:
            self._file(key, FAILED).replace(self._file(key, AGAIN))
        except (FileNotFoundError, ValueError):
            return False
        return True

    def taken_again(self) -> list[ActionRequest]:
        """Those that are to be tried once more, which wait from now on, in the order of the log."""
        found = list(self.all(AGAIN))
        for each in found:
            self.keep(replace(each, attempts=0))
            self.drop(each.key, AGAIN)
            self.drop(each.key, TRIED)
        return found

    def is_waiting(self, key: str) -> bool:
        """False when somebody dropped it."""
        return self._file(key, WAITING).exists()

    def drop(self, key: str, state: str) -> bool:
        """It is done, or nobody wants it any more; False if it was not there."""
        try:
            self._file(key, state).unlink()
        except (FileNotFoundError, ValueError):
            return False
        return True

    def find(self, key: str) -> tuple[ActionRequest, str] | None:
        """A request and its state."""
        for state in (FAILED, AGAIN, WAITING):
            with suppress(FileNotFoundError, ValueError):
                found = _read(self._file(key, state))
                return None if found is None else (self._tried(found, state), state)
        return None

    def all(self, state: str) -> Iterator[ActionRequest]:
        """In the order of the log; what cannot be read is left out, and said."""
        files = sorted((self._folder / state).glob("*.json"))
        read = [request for file in files if (request := _read_or_none(file)) is not None]
        found = [self._tried(each, state) for each in read]
        yield from sorted(found, key=lambda each: (each.pos, each.key))

    def count(self, state: str) -> int:
        folder = self._folder / state
        return sum(file.suffix == ".json" for file in folder.iterdir()) if folder.is_dir() else 0

    def _tried(self, request: ActionRequest, state: str) -> ActionRequest:
        """With what became of it so far, if it waits."""
        file = self._file(request.key, TRIED)
        return request if state != WAITING else _read_or_none(file) or request

    def _file(self, key: str, state: str) -> Path:
        if not _KEY.fullmatch(key):
            raise ValueError("no key")
        return self._folder / state / f"{key}.json"


def is_key(key: str) -> bool:
    """Whether requests can have this key."""
    return _KEY.fullmatch(key) is not None


def _write(file: Path, content: Mapping[str, Any]) -> None:
    new = file.with_suffix(".new")
    new.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    new.replace(file)


def _read_or_none(file: Path) -> ActionRequest | None:
    with suppress(FileNotFoundError):  # it was done meanwhile
        return _read(file)
    return None


def _read(file: Path) -> ActionRequest | None:
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["format"] != _FORMAT:
            raise ValueError(f"its format is {stored['format']}")
        return ActionRequest.from_json(stored)
    except (ValueError, KeyError, TypeError) as error:
        _log.warning("%s cannot be read: %s", file, error)
        return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The queue as commands show it: read from the files of the project, whether or not there is a run.


@dataclass(frozen=True, slots=True)
class QueuedAction:
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
