"""A connection to the bus of a project, for commands that look or speak and then end."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from situ.bus.address import resolve_address

if TYPE_CHECKING:
    from situ.bus.nats import NatsBus
    from situ.cli.in_force import Place

_TIMEOUT = 5.0


@asynccontextmanager
async def bus_of(place: Place, command: str) -> AsyncIterator[NatsBus]:
    """The bus the project uses now; B-codes if there is none or it does not answer."""
    from situ.bus.nats import open_bus

    address = resolve_address(place.path, place.settings)
    async with await open_bus(address, name=f"situ {command}", timeout=_TIMEOUT, patience=_TIMEOUT) as bus:
        yield bus
