"""The registry a command works on, and handing a changed deployment to the run that is active.

`registry_of` opens the registry of the project, whatever state the rest of its folder is in. `roll_out` waits for the
engines to adopt the deployment; without a run it takes effect with the next one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from situ.cli.exits import CommandError, Exit, exit_of
from situ.cli.project import locate_project, settings_in_use
from situ.cli.render.text import plural
from situ.lang.catalogue import NO_BUS, NOT_ADOPTED, UNKNOWN_OBJECT
from situ.lang.problems import Problem, SituError
from situ.registry import KINDS, Kind, Registry, open_registry
from situ.settings import Settings

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.model import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenRegistry:
    """An open registry and the project it belongs to."""

    path: Path
    settings: Settings
    registry: Registry


@contextmanager
def registry_of(project: Path | None) -> Iterator[OpenRegistry]:
    """The registry of the project, open as long as the block runs."""
    path = locate_project(project)
    settings = settings_in_use(path)
    with open_registry(path, settings) as registry:
        yield OpenRegistry(path=path, settings=settings, registry=registry)


@contextmanager
def refused_as_error() -> Iterator[None]:
    """A change that is not possible is refused; a registry that does not answer is another matter."""
    try:
        yield
    except SituError as error:
        code = exit_of(error)
        refused = code is Exit.NO and error.code != UNKNOWN_OBJECT.code
        raise CommandError(Exit.REFUSED if refused else code, *error.problems) from None


def read_kind(text: str) -> Kind | None:
    """The kind of that name, in the singular or in the plural."""
    return next((kind for kind in KINDS if text in (kind, plural(kind))), None)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# When a change takes effect.

PATIENCE = 10.0
_CONNECT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """Which engines work with the deployment, and which do not yet. None of both: nothing runs."""

    version: int
    adopted: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()

    def __str__(self) -> str:
        if self.adopted or self.waiting:
            return f"in force in {', '.join(self.adopted)}" if self.adopted else "not in force yet"
        return "in force with the next `situ run`"

    def as_json(self) -> dict[str, Any]:
        return {
            "engines": list(self.adopted),
            "waiting": list(self.waiting),
            "problems": [problem.as_json() for problem in self.problems],
        }


def roll_out(registered: OpenRegistry, deployment: Deployment) -> Adoption:
    """Hand the deployment to the active run and wait for its engines; what is in the way of that is a warning."""
    from situ.bus.address import resolve_address

    try:
        address = resolve_address(registered.path, registered.settings)
        return asyncio.run(_publish(address, deployment))
    except SituError as error:
        # It is stored, and the run publishes what is stored as soon as it can: this command need not fail for it.
        problems = () if error.code == NO_BUS.code else error.problems
        return Adoption(version=deployment.version, problems=problems)


def show_adoption(output: Output, effect: Adoption) -> None:
    """The version and when it is effective, and what is in the way."""
    output.say(f"Version {effect.version}, {effect}.")
    if not output.json:
        output.warn(effect.problems)


async def _publish(address: Any, deployment: Deployment) -> Adoption:
    from situ.bus.nats import open_bus
    from situ.registry.snapshots import adopted_versions, publish_deployment, wait_adopted

    bus = await open_bus(address, name="situ apply", timeout=_CONNECT, patience=_CONNECT)
    try:
        await publish_deployment(bus, deployment)
        waiting = await wait_adopted(bus, deployment.version, PATIENCE)
        versions = await adopted_versions(bus)
    finally:
        await bus.close()
    adopted = sorted(engine for engine, version in versions.items() if version >= deployment.version)
    late = NOT_ADOPTED(seconds=f"{PATIENCE:g}", version=deployment.version, engines=waiting)
    return Adoption(
        version=deployment.version,
        adopted=tuple(adopted),
        waiting=waiting,
        problems=(late,) if waiting else (),
    )
