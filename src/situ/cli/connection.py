"""As which client a command connects, and where: in a project, or with credentials alone.

Who has the credentials of a client needs no project folder: they name the client and its zone, and the bus is named by
its address. Who has the folder may speak as any client, also as one that nothing declares; but a name that nothing
knows and that is almost one of those known is a slip, and what is said under it would be said by another.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from situ.bus.address import read_secret
from situ.bus.credentials import read_client
from situ.bus.names import Names
from situ.catalogue import NOT_A_CLIENT, TYPE_NOT_AVAILABLE, UNKNOWN_EVENT_TYPE
from situ.cli.exits import Exit, Stop
from situ.cli.in_force import Live, find_run
from situ.cli.on_bus import bus_of
from situ.cli.output import Output
from situ.edge.client_files import state_folder
from situ.errors import Problem, nearest
from situ.interpretation.model import ROOT
from situ.registry import open_registry
from situ.registry.snapshots import fetch_deployment
from situ.settings import Settings

if TYPE_CHECKING:
    from situ.deployment import Deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class AsClient:
    """Whom to connect as; ``options`` are those of ``connect``. ``live`` is where an operator finds the run."""

    name: str
    place: Path
    settings: Settings
    options: Mapping[str, Any] = field(default_factory=dict)
    live: Live | None = None

    async def explained(self, problems: Iterable[Problem], types: Iterable[str], terms: str) -> tuple[Problem, ...]:
        """The problems; where one is that there is no such type, and some context has it, with that.

        Only for an operator: a client is told nothing about the terms of others.
        """
        told = tuple(problems)
        if self.live is None or not any(each.code.code in _NO_TYPE for each in told):
            return told
        async with bus_of(self.live, "explain") as bus:
            deployment = await fetch_deployment(bus)
        return tuple(_with_context(each, types, terms or ROOT, deployment) for each in told)


_ALIKE = 0.8
_PASSING = "console-"
"""What names of clients begin with that exist as long as a command."""
_NO_TYPE = {each.code: each for each in (TYPE_NOT_AVAILABLE, UNKNOWN_EVENT_TYPE)}


def as_client(
    project: Path | None,
    client: str,
    credentials: Path | None,
    server: str,
    output: Output | None = None,
    *,
    new: bool = False,
) -> AsClient:
    """The client that is named, else the one whose credentials are given, else one of this command alone.

    One that is named without credentials must not be almost like one that is known, unless it is said to be ``new``.
    """
    name = client
    options: dict[str, Any] = {}
    if credentials is not None:
        own = read_client(read_secret(str(credentials), "the credentials"))
        name = client or (own.client if own is not None else "")
        options["credentials"] = str(credentials)
    name = name or f"{_PASSING}{os.getpid()}"
    if server:
        if credentials is None:
            raise typer.BadParameter("name the credentials to connect with", param_hint="'--credentials'")
        options["servers"] = (server,)
        place = project if project is not None else Path.cwd()
        return AsClient(name=name, place=place, settings=Settings(), options=options)
    live = find_run(project, output)
    if credentials is not None:
        return AsClient(name=name, place=live.path, settings=live.settings, options=options)
    if client and not new:
        asyncio.run(_check_spelling(live, client))
    return AsClient(name=name, place=live.path, settings=live.settings, options=options, live=live)


async def _check_spelling(live: Live, name: str) -> None:
    own = state_folder(live.path, live.settings.zone, name)
    before = {each.name for each in own.parent.iterdir()} if own.parent.is_dir() else set()
    if name in before:
        return
    async with bus_of(live, "client") as bus:
        deployment = await fetch_deployment(bus)
        connected = [entry.key for entry in await bus.entries(Names(bus.zone).clients)]
    known = {*_declared(deployment), *connected, *(each for each in before if not each.startswith(_PASSING))}
    if name not in known:
        with open_registry(live.path, live.settings) as registry:
            known |= {each.name for each in registry.principals.list()}
    if name not in known and (close := tuple(each for each in nearest(name, sorted(known)) if _is_slip(name, each))):
        raise Stop(Exit.NO, NOT_A_CLIENT(name=name, nearest=close))


def _is_slip(name: str, known: str) -> bool:
    """Whether the two are the same but for a letter or two: one too much, one too few, two in the wrong order."""
    return SequenceMatcher(None, name.casefold(), known.casefold()).ratio() >= _ALIKE


def _declared(deployment: Deployment) -> Iterator[str]:
    yield from deployment.clients
    yield from (each.client for each in deployment.advertisements.values())
    yield from (each.client for each in deployment.subscriptions.values())
    yield from deployment.scopes.clients


def _with_context(problem: Problem, types: Iterable[str], terms: str, deployment: Deployment) -> Problem:
    code = _NO_TYPE.get(problem.code.code)
    found = next((type for type in types if f"`{type}`" in problem.message), "")
    if code is None or not found:
        return problem
    if terms != ROOT and found in deployment.types.events:
        remedy = f"`{found}` is a type of root: leave `--context {terms}` out, or name what `{terms}` has in its place."
        return code(problem.location, type=found, where=f" in the context `{terms}`", nearest=(), remedy=remedy)
    others = [context.id for context in deployment.contexts if found in context.own & context.types.events]
    others = [each for each in others if each != terms]
    if not others:
        return problem
    where = "" if terms == ROOT else f" in the context `{terms}`"
    remedy = f"`{found}` is a type of the context `{others[0]}`: say `--context {others[0]}`."
    return code(problem.location, type=found, where=where or " in root", nearest=(), remedy=remedy)
