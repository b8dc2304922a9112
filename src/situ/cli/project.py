"""The project a command works on: found, checked, and refused if it has errors.

Owns what that means for the exit code: no project is wrong usage, a project with errors is a refusal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from situ.catalogue import FILE_UNREADABLE
from situ.cli.exits import Exit, Stop
from situ.errors import Location, Problem, SituError
from situ.project.folder import find_project

if TYPE_CHECKING:
    from situ.deployment import Deployment
    from situ.expr.definitions import Function
    from situ.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A project without errors."""

    path: Path
    deployment: Deployment
    digests: Mapping[str, str] = field(default_factory=dict)
    """Of its files, by which one sees later whether they were edited."""

    @property
    def settings(self) -> Settings:
        return self.deployment.settings


def locate_project(project: Path | None) -> Path:
    """The nearest project at or above what ``--project`` names, else the current folder."""
    if project is not None and not project.exists():
        reason = "there is no such folder"
        remedy = "Look at the path; it is taken from the current folder."
        raise Stop(Exit.USAGE, FILE_UNREADABLE(Location(file=str(project)), reason=reason, remedy=remedy))
    return project_of(project if project is not None else _here())


def project_of(path: Path) -> Path:
    """The project that a folder or file is in, as short as the path to it can be."""
    try:
        found = find_project(path)
    except SituError as error:
        raise Stop(Exit.USAGE, *error.problems) from None
    return path if found == path.absolute() else found


def open_project(project: Path | None) -> Opened:
    """The project, checked; refused with its errors if it has some."""
    from situ.project.check import check_folder

    path = locate_project(project)
    checked = check_folder(path)
    if checked.deployment is None:
        raise Stop(Exit.REFUSED, *seen_from_here(checked.errors, path))
    return Opened(path=path, deployment=checked.deployment, digests=checked.digests)


def open_functions(project: Path | None) -> Mapping[str, Function]:
    """The functions of the project; none where there is no project and none was named."""
    try:
        return open_project(project).deployment.functions
    except Stop as stop:
        if project is None and stop.code is Exit.USAGE:
            return {}
        raise


def type_names() -> tuple[str, ...]:
    """The names of the types here, for the completion of shells: nothing rather than a complaint."""
    try:
        return open_project(None).deployment.types.names
    except (Stop, OSError):
        return ()


def seen_from_here(problems: tuple[Problem, ...], path: Path) -> tuple[Problem, ...]:
    """The problems with file names as they are called from the current folder, so that terminals can open them."""
    prefix = _way(path)
    return problems if prefix is None else tuple(_moved(problem, prefix) for problem in problems)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        reason, remedy = "the current folder is gone", "Go to one that is there, or name the project with `--project`."
        raise Stop(Exit.USAGE, FILE_UNREADABLE(Location(file="."), reason=reason, remedy=remedy)) from None


def _way(path: Path) -> Path | None:
    here, there = _here(), path.absolute()
    if there == here:
        return None
    return there.relative_to(here) if there.is_relative_to(here) else path


def _moved(problem: Problem, prefix: Path) -> Problem:
    place = problem.location
    if place is None:
        return problem
    moved: Location = replace(place, file=str(prefix / place.file))
    return replace(problem, location=moved)
