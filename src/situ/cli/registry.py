"""When a change takes effect: handed to the run that is active, and waited for; or with the next run."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from situ.catalogue import NO_BUS, NOT_ADOPTED
from situ.errors import Problem, SituError

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.cli.registered import Registered
    from situ.deployment import Deployment

PATIENCE = 10.0
_CONNECT = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
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


def bring_into_force(registered: Registered, deployment: Deployment) -> Effect:
    """Hand the deployment to the active run and wait for its engines; what is in the way of that is a warning."""
    from situ.bus.address import resolve_address

    try:
        address = resolve_address(registered.path, registered.settings)
        return asyncio.run(_publish(address, deployment))
    except SituError as error:
        # It is stored, and the run publishes what is stored as soon as it can: this command need not fail for it.
        problems = () if error.code == NO_BUS.code else error.problems
        return Effect(version=deployment.version, problems=problems)


def show_effect(output: Output, effect: Effect) -> None:
    """The version and when it is effective, and what is in the way."""
    output.say(f"Version {effect.version}, {effect}.")
    if not output.json:
        output.warn(effect.problems)


async def _publish(address: Any, deployment: Deployment) -> Effect:
    from situ.bus.nats import open_bus
    from situ.registry.engines import adopted_versions, wait_adopted
    from situ.registry.snapshots import publish_deployment

    bus = await open_bus(address, name="situ apply", timeout=_CONNECT, patience=_CONNECT)
    try:
        await publish_deployment(bus, deployment)
        waiting = await wait_adopted(bus, deployment.version, PATIENCE)
        versions = await adopted_versions(bus)
    finally:
        await bus.close()
    adopted = sorted(engine for engine, version in versions.items() if version >= deployment.version)
    late = NOT_ADOPTED(seconds=f"{PATIENCE:g}", version=deployment.version, engines=waiting)
    return Effect(
        version=deployment.version,
        adopted=tuple(adopted),
        waiting=waiting,
        problems=(late,) if waiting else (),
    )
