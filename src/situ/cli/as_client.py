"""As which client a command connects, and where: in a project, or with credentials alone.

Who has the credentials of a client needs no project folder: they name the client and its zone, and the bus is named by
its address.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import typer

from situ.bus.address import read_secret
from situ.bus.credentials import read_client
from situ.cli.in_force import find_run
from situ.cli.output import Output
from situ.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class AsClient:
    """Whom to connect as; ``options`` are those of ``connect``."""

    name: str
    place: Path
    settings: Settings
    options: Mapping[str, Any] = field(default_factory=dict)


def as_client(
    project: Path | None, client: str, credentials: Path | None, server: str, output: Output | None = None
) -> AsClient:
    """The client that is named, else the one whose credentials are given, else one of this command alone."""
    name = client
    options: dict[str, Any] = {}
    if credentials is not None:
        own = read_client(read_secret(str(credentials), "the credentials"))
        name = client or (own.client if own is not None else "")
        options["credentials"] = str(credentials)
    name = name or f"console-{os.getpid()}"
    if server:
        if credentials is None:
            raise typer.BadParameter("name the credentials to connect with", param_hint="'--credentials'")
        options["servers"] = (server,)
        place = project if project is not None else Path.cwd()
        return AsClient(name=name, place=place, settings=Settings(), options=options)
    live = find_run(project, output)
    return AsClient(name=name, place=live.path, settings=live.settings, options=options)
