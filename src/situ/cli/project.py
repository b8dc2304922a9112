"""The project a command works on: its folder, checked; its bus; its run and the deployment in force.

`locate_project` and `open_project` need the folder only, and refuse one with errors: no project is wrong usage, a
project with errors is a refusal. `bus_of` connects to its bus. `find_run` and `open_in_force` look at what runs,
whatever state the folder is in.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from situ.bus.address import resolve_address, settings_of_run
from situ.bus.folder_lock import read_lock
from situ.cli.exits import CommandError, Exit
from situ.lang.catalogue import FILE_UNREADABLE
from situ.lang.problems import Location, Problem, SituError
from situ.lang.records import replace
from situ.project.folder import find_project, read_settings
from situ.project.state_folder import edited_files

if TYPE_CHECKING:
    from situ.bus.nats import NatsBus
    from situ.cli.output import Output
    from situ.lang.expr.definitions import DefinedFunction
    from situ.model import Deployment
    from situ.project.check import LoadedProject
    from situ.settings import Settings


def locate_project(project: Path | None) -> Path:
    """The nearest project at or above what ``--project`` names, else the current folder."""
    if project is not None and not project.exists():
        reason = "there is no such folder"
        remedy = "Look at the path; it is taken from the current folder."
        raise CommandError(Exit.USAGE, FILE_UNREADABLE(Location(file=str(project)), reason=reason, remedy=remedy))
    return project_of(project if project is not None else _here())


def project_of(path: Path) -> Path:
    """The project that a folder or file is in, as short as the path to it can be."""
    try:
        found = find_project(path)
    except SituError as error:
        raise CommandError(Exit.USAGE, *error.problems) from None
    return path if found == path.absolute() else found


def open_project(project: Path | None) -> LoadedProject:
    """The project, checked; refused with its errors if it has some."""
    from situ.project.check import LoadedProject, check_folder

    path = locate_project(project)
    checked = check_folder(path)
    if checked.deployment is None:
        raise CommandError(Exit.REFUSED, *relative_to_here(checked.errors, path))
    return LoadedProject(path=path, deployment=checked.deployment, digests=checked.digests)


def find_named_tests(opened: LoadedProject, names: Sequence[str]) -> list[str]:
    """The files of the tests that are named; a file that is none is wrong usage, a policy without one an answer."""
    from situ.project.policy_tests import find_tests

    try:
        return find_tests(opened, names)
    except SituError as error:
        if error.code == FILE_UNREADABLE.code:
            raise CommandError(Exit.USAGE, *error.problems) from None
        raise


def open_functions(project: Path | None) -> Mapping[str, DefinedFunction]:
    """The functions of the project; none where there is no project and none was named."""
    try:
        return open_project(project).deployment.functions
    except CommandError as stop:
        if project is None and stop.code is Exit.USAGE:
            return {}
        raise


def type_names() -> tuple[str, ...]:
    """The names of the types here, for the completion of shells: nothing rather than a complaint."""
    try:
        return open_project(None).deployment.types.names
    except (CommandError, OSError):
        return ()


def relative_to_here(problems: tuple[Problem, ...], path: Path) -> tuple[Problem, ...]:
    """The problems with file names as they are called from the current folder, so that terminals can open them."""
    prefix = _way(path)
    return problems if prefix is None else tuple(_moved(problem, prefix) for problem in problems)


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        reason, remedy = "the current folder is gone", "Go to one that is there, or name the project with `--project`."
        raise CommandError(Exit.USAGE, FILE_UNREADABLE(Location(file="."), reason=reason, remedy=remedy)) from None


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The bus of a project, for commands that look or speak and then end.

_TIMEOUT = 5.0


@asynccontextmanager
async def bus_of(place: ProjectLocation, command: str) -> AsyncIterator[NatsBus]:
    """The bus the project uses now; B-codes if there is none or it does not answer."""
    from situ.bus.nats import open_bus

    address = resolve_address(place.path, place.settings)
    async with await open_bus(address, name=f"situ {command}", timeout=_TIMEOUT, patience=_TIMEOUT) as bus:
        yield bus


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What is in force. Commands about what runs find it by the settings that the run was started with, and look at what the
# registry put in force. Somebody may be in the middle of editing the folder: that is mentioned, and is no reason to see
# nothing.

_NAMED = 3  # edited files that are named


class ProjectLocation(Protocol):
    """A project, and by which settings its bus is found."""

    @property
    def path(self) -> Path: ...

    @property
    def settings(self) -> Settings: ...


class LiveRun(msgspec.Struct, frozen=True, kw_only=True):
    """Where the run of a project is, or would be. ``edited``: the files that are not what is in force."""

    path: Path
    settings: Settings
    edited: tuple[str, ...] = ()

    @property
    def may_run(self) -> bool:
        """Whether there can be a run: the embedded bus belongs to the run in this folder, others to anybody."""
        return self.settings.bus.kind != "embedded" or read_lock(self.path) is not None


def settings_in_use(path: Path) -> Settings:
    """Those of the run in this folder; without one, those of situ.yaml, which alone has to be in order."""
    try:
        return settings_of_run(path) or read_settings(path)
    except SituError as error:
        raise CommandError(Exit.REFUSED, *relative_to_here(error.problems, path)) from None


def find_run(project: Path | None, output: Output | None = None) -> LiveRun:
    """The run of the project; what is said about the folder goes to ``output``, beside the answer."""
    path = locate_project(project)
    found = LiveRun(path=path, settings=settings_in_use(path))
    if not found.may_run:
        return found
    edited = edited_files(path)
    if edited and output is not None:
        output.note(_mention(edited))
    return LiveRun(path=path, settings=found.settings, edited=edited)


async def open_in_force(project: Path | None, output: Output) -> LoadedProject:
    """What is in force, with what clients declared themselves; version 0 is that of the folder, which nobody runs."""
    live = find_run(project, output)
    if not live.may_run:
        return open_project(project)
    from situ.project.check import LoadedProject
    from situ.registry.snapshots import fetch_deployment

    async with bus_of(live, "explain") as bus:
        deployment = await fetch_deployment(bus)
    return LoadedProject(path=live.path, deployment=deployment) if deployment.version else open_project(project)


async def deployment_in_force(project: Path | None, output: Output) -> Deployment:
    return (await open_in_force(project, output)).deployment


def _mention(edited: tuple[str, ...]) -> str:
    files = ", ".join(edited[:_NAMED])
    more = f" and {len(edited) - _NAMED} more" if len(edited) > _NAMED else ""
    return (
        f"The folder differs from what is in force: {files}{more} edited since. This is about what is in force; "
        "`situ check` checks the folder, `situ apply` puts it in force."
    )
