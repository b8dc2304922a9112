"""What is in force: the run of a project and its deployment, in whatever state the folder is.

Commands about what runs find it by the settings that the run was started with, and look at what the registry put in
force. Somebody may be in the middle of editing the folder: that is mentioned, and is no reason to see nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from situ.bus.address import settings_of_run
from situ.bus.folder_lock import read_lock
from situ.cli.exits import Exit, Stop
from situ.cli.on_bus import bus_of
from situ.cli.opened import Opened, locate_project, open_project, seen_from_here
from situ.errors import SituError
from situ.project.drift import edited_files
from situ.project.folder import read_settings

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.deployment import Deployment
    from situ.settings import Settings

_NAMED = 3  # edited files that are named


class Place(Protocol):
    """A project, and by which settings its bus is found."""

    @property
    def path(self) -> Path: ...

    @property
    def settings(self) -> Settings: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
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
        raise Stop(Exit.REFUSED, *seen_from_here(error.problems, path)) from None


def find_run(project: Path | None, output: Output | None = None) -> Live:
    """The run of the project; what is said about the folder goes to ``output``, beside the answer."""
    path = locate_project(project)
    found = Live(path=path, settings=settings_in_use(path))
    if not found.may_run:
        return found
    edited = edited_files(path)
    if edited and output is not None:
        output.note(_mention(edited))
    return Live(path=path, settings=found.settings, edited=edited)


async def open_in_force(project: Path | None, output: Output) -> Opened:
    """What is in force, with what clients declared themselves; version 0 is that of the folder, which nobody runs."""
    live = find_run(project, output)
    if not live.may_run:
        return open_project(project)
    from situ.registry.snapshots import fetch_deployment

    async with bus_of(live, "explain") as bus:
        deployment = await fetch_deployment(bus)
    return Opened(path=live.path, deployment=deployment) if deployment.version else open_project(project)


async def deployment_in_force(project: Path | None, output: Output) -> Deployment:
    return (await open_in_force(project, output)).deployment


def _mention(edited: tuple[str, ...]) -> str:
    files = ", ".join(edited[:_NAMED])
    more = f" and {len(edited) - _NAMED} more" if len(edited) > _NAMED else ""
    return (
        f"The folder differs from what is in force: {files}{more} edited since. This is about what is in force; "
        "`situ check` checks the folder, `situ apply` puts it in force."
    )
