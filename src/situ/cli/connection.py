"""As which client a command connects, and where; and questions about quality that only an operator may ask.

`as_client` makes a `ClientIdentity` of the options of a command; `ask_quality` asks the run as its operator.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from situ.bus.address import read_secret
from situ.bus.credentials import read_client
from situ.cli.exits import CommandError, Exit
from situ.cli.output import Output
from situ.cli.project import LiveRun, bus_of, find_run
from situ.client.state_files import state_folder
from situ.event.message import Message
from situ.event.subjects import BusNames
from situ.lang.catalogue import NOT_A_CLIENT, TYPE_NOT_AVAILABLE, UNKNOWN_EVENT_TYPE
from situ.lang.problems import Problem, SituError, nearest
from situ.protocol.wire import problem_from_wire
from situ.registry.lookup import admitted_names
from situ.registry.snapshots import fetch_client_names, fetch_deployment
from situ.routing.model import ROOT
from situ.settings import Settings

if TYPE_CHECKING:
    from situ.cli.project import ProjectLocation
    from situ.model import Deployment


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Identity. Who has the credentials of a client needs no project folder: they name the client and its zone, and the bus
# is named by its address. Who has the folder may speak as any client, also as one that nothing declares; but a name
# that nothing knows and that is almost one of those known is a slip, and what is said under it would be said by
# another.


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientIdentity:
    """Whom to connect as; ``options`` are those of ``connect``. ``live`` is where an operator finds the run."""

    name: str
    place: Path
    settings: Settings
    options: Mapping[str, Any] = field(default_factory=dict)
    live: LiveRun | None = None

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
) -> ClientIdentity:
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
        return ClientIdentity(name=name, place=place, settings=Settings(), options=options)
    live = find_run(project, output)
    if credentials is not None:
        return ClientIdentity(name=name, place=live.path, settings=live.settings, options=options)
    if client and not new:
        asyncio.run(_check_spelling(live, client))
    return ClientIdentity(name=name, place=live.path, settings=live.settings, options=options, live=live)


async def _check_spelling(live: LiveRun, name: str) -> None:
    own = state_folder(live.path, live.settings.zone, name)
    before = {each.name for each in own.parent.iterdir()} if own.parent.is_dir() else set()
    if name in before:
        return
    async with bus_of(live, "client") as bus:
        declared = await fetch_client_names(bus)
        connected = [entry.key for entry in await bus.entries(BusNames(bus.zone).clients)]
    known = {*declared, *connected, *(each for each in before if not each.startswith(_PASSING))}
    if name not in known:
        known |= admitted_names(live.path, live.settings)
    if name not in known and (close := tuple(each for each in nearest(name, sorted(known)) if _is_slip(name, each))):
        raise CommandError(Exit.NO, NOT_A_CLIENT(name=name, nearest=close))


def _is_slip(name: str, known: str) -> bool:
    """Whether the two are the same but for a letter or two: one too much, one too few, two in the wrong order."""
    return SequenceMatcher(None, name.casefold(), known.casefold()).ratio() >= _ALIKE


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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Quality, asked by somebody who may know everything.

_WITHIN = 10.0


async def ask_quality(place: ProjectLocation, asked: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The answer of the run, as data and in words; what it refuses is raised."""
    async with bus_of(place, "quality") as bus:
        message = Message(subject=BusNames(bus.zone).quality, body=json.dumps(asked).encode())
        answer = json.loads((await bus.request(message, timeout=_WITHIN)).body)
    if "code" in answer:
        raise SituError(problem_from_wire(answer["code"], answer["message"], answer["hint"]))
    return answer["body"], answer["text"]
