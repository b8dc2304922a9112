"""What is in force: the deployment of the run, with what clients declared themselves; without a run, the folder's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from situ.bus.folder_lock import read_lock
from situ.cli.on_bus import bus_of
from situ.registry.snapshots import fetch_deployment

if TYPE_CHECKING:
    from situ.cli.opened import Opened
    from situ.deployment import Deployment


async def deployment_in_force(opened: Opened) -> Deployment:
    """Version 0 is that of the folder, which nobody runs."""
    if opened.deployment.settings.bus.kind == "embedded" and read_lock(opened.path) is None:
        return opened.deployment
    async with bus_of(opened, "explain") as bus:
        found = await fetch_deployment(bus)
    return found if found.version else opened.deployment
