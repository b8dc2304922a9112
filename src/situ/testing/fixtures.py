"""What a zone and a policy case begin with: a clock, and a project that a test can change without harm."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from textwrap import dedent

from situ.event.instants import microseconds
from situ.lang.catalogue import NO_PROJECT
from situ.lang.problems import SituError
from situ.project.check import LoadedProject, check_folder

Project = str | os.PathLike[str] | Mapping[str, str]
"""A project folder, or the files of one: path → text."""

SETTINGS_FILE = "situ.yaml"
_NOT_DECLARED = shutil.ignore_patterns(".*", "__pycache__")  # runs, versions, virtual environments


class Clock:
    """Time that stands still until a test moves it on. A :class:`Zone` and a :class:`PolicyCase` go by it.

    It begins in the year 2000, or ``at`` an instant: a datetime with a time zone, or its ISO text.

    >>> clock = situ.testing.Clock("2026-11-01T08:00:00Z")
    >>> clock.advance(minutes=90)
    >>> clock.now.isoformat()
    '2026-11-01T09:30:00+00:00'
    """

    def __init__(self, at: datetime | str = "2000-01-01T00:00:00Z") -> None:
        self._now = _instant(at)

    @property
    def now(self) -> datetime:
        """What it says."""
        return self._now

    def advance(self, seconds: float = 0.0, *, minutes: float = 0.0, hours: float = 0.0, days: float = 0.0) -> None:
        """Move it on. It never goes back."""
        step = timedelta(seconds=seconds, minutes=minutes, hours=hours, days=days)
        if step < timedelta(0):
            raise ValueError(f"a clock does not go back, not even by {-step}")
        self._now += step

    def __call__(self) -> int:
        """Microseconds since 1970, as buses and engines ask for them."""
        return microseconds(self._now)

    def __repr__(self) -> str:
        return f"Clock({self._now.isoformat()!r})"


def _instant(at: datetime | str) -> datetime:
    found = datetime.fromisoformat(at) if isinstance(at, str) else at
    if found.tzinfo is None:
        raise ValueError(f"{found.isoformat()} has no time zone; write {found.isoformat()}Z for UTC")
    return found.astimezone(UTC)


def copy_project(project: Project, target: Path) -> Path:
    """The declarations of a project in another folder; what a run left in ``.situ`` is not."""
    if isinstance(project, Mapping):
        for name, text in project.items():
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(dedent(text), encoding="utf-8")
        return target
    folder = Path(project)
    if not (folder / SETTINGS_FILE).is_file():
        raise SituError(NO_PROJECT(place=str(folder)))
    shutil.copytree(folder, target, ignore=_NOT_DECLARED, dirs_exist_ok=True)
    return target


def load_project(folder: Path) -> LoadedProject:
    """A project that was checked; :class:`SituError` with all of its errors, if it has some."""
    checked = check_folder(folder)
    if checked.errors or checked.deployment is None:
        raise SituError(*checked.errors)
    return LoadedProject(path=folder, deployment=checked.deployment)
