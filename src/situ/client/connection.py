"""``connect``: find the bus of a project, open it, and make a client on it.

Who can read the credentials of a project may connect as any of its clients. Who has the credentials of one client
connects as that one: what the file says is checked here, so that a mistake is told at once; that nothing else is
possible is the server's doing.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from situ.bus.address import Address, read_secret, resolve_address, settings_of_run
from situ.bus.credentials import read_client
from situ.bus.interface import Bus
from situ.bus.nats import open_bus
from situ.client.client import Client
from situ.client.state_files import ClientFiles, state_folder
from situ.lang.catalogue import NO_PROJECT, NO_RIGHT
from situ.lang.documents import parse_yaml, substitute
from situ.lang.problems import Problems, SituError
from situ.lang.records import replace
from situ.routing.model import NAME
from situ.settings import Settings, load_settings

SETTINGS_FILE = "situ.yaml"
_TIMEOUT = 10.0
_QUEUE_TIMEOUT, _QUEUE_EVENTS = 30.0, 100_000


@asynccontextmanager
async def connect(
    project: str | os.PathLike[str] = ".",
    *,
    client: str,
    servers: Sequence[str] = (),
    credentials: str | None = None,
    context: str | None = None,
    bus: Bus | None = None,
    timeout: float = _TIMEOUT,
    queue_timeout: float = _QUEUE_TIMEOUT,
    queue_events: int = _QUEUE_EVENTS,
) -> AsyncIterator[Client]:
    """Connect as a client of a project, found by its folder or by the ``servers`` of its bus.

    ``credentials`` is the file that ``situ client add`` wrote for this client, or another one that the server of the
    bus accepts; whoever can read those of the project needs none.
    ``context`` is the one in whose terms the client speaks and hears, if the project does not say that already.
    ``timeout`` is how long the first connection may take, ``queue_timeout`` how long a publication waits for room among
    the ``queue_events`` that wait to be stored, both in seconds.

    >>> async with situ.connect(client="scale") as client:
    ...     receipt = await client.publish_event("TruckSeen", truck="LY-204", speed=12.0)
    ...     key = await receipt.stored
    """
    if not NAME.fullmatch(client):
        reason = "a client's name has letters, digits and `-`, at most 64"
        raise SituError(NO_RIGHT(client=client, reason=reason))
    folder = find_folder(Path(project))
    opened = bus
    if opened is None:
        address = address_of(folder, project, servers, credentials)
        if address.principal and address.principal != client:
            reason = f"the credentials in `{credentials}` are those of `{address.principal}`"
            raise SituError(NO_RIGHT(client=client, reason=reason))
        opened = await open_bus(address, name=client, timeout=timeout)
    try:
        files = ClientFiles(state_folder(folder, opened.zone, client))
        node = Client(opened, client, files, queue_timeout=queue_timeout, queue_events=queue_events)
        try:
            await node.open(timeout)
            if context is not None:
                await node.use_context(context)
            yield node
        finally:
            await node.close()
    finally:
        if bus is None:
            await opened.close()


def find_folder(start: Path) -> Path | None:
    """The nearest project folder at or above this one."""
    here = start.absolute()
    return next((folder for folder in (here, *here.parents) if (folder / SETTINGS_FILE).is_file()), None)


def address_of(
    folder: Path | None, project: str | os.PathLike[str], servers: Sequence[str], credentials: str | None
) -> Address:
    """Where the bus is, and how to get in: with these credentials if they are given, else with the project's."""
    settings = (settings_of_run(folder) or _settings(folder)) if folder is not None else Settings()
    secret = str(Path(credentials).expanduser().absolute()) if credentials else ""
    if servers:
        address = Address(zone=settings.zone, servers=tuple(servers), credentials=secret)
    elif folder is None:
        raise SituError(NO_PROJECT(place=str(project)))
    else:
        address = resolve_address(folder, settings)
        if secret:
            address = replace(address, credentials=secret, token_file="")
    own = read_client(read_secret(secret, "the credentials")) if secret else None
    return address if own is None else replace(address, zone=own.zone, principal=own.client)


def _settings(folder: Path) -> Settings:
    problems = Problems()
    document = parse_yaml((folder / SETTINGS_FILE).read_bytes(), SETTINGS_FILE)
    if document.root is not None:
        document = replace(document, root=substitute(document.root, os.environ, problems))
    settings = load_settings(document, problems)
    problems.raise_errors()
    return settings
