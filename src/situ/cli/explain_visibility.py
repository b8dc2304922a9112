"""``situ explain visibility``: why a subscription sees an event, or does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, Json, Project, Quiet, Server, begin

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.explained_visibility import Answer
    from situ.cli.output import Output
    from situ.deployment import Deployment
    from situ.edge.searching import Progress
    from situ.visibility.graph import ScopeGraph


def explain_visibility(
    context: typer.Context,
    to: Annotated[str, typer.Option("--to", metavar="CLIENT/NAME", help="The subscription.")],
    event: Annotated[
        str, typer.Argument(metavar="[EVENT]", help="The event's id, its key (client.incarnation.seq) or its position.")
    ] = "",
    source: Annotated[
        str,
        typer.Option("--from", metavar="CLIENT/NAME", help="Instead: what this advertisement would publish."),
    ] = "",
    data: Annotated[
        str,
        typer.Option("--data", metavar="FILE", help="The data of it, or a whole event; - is standard input."),
    ] = "",
    project: Project = None,
    credentials: Credentials = None,
    server: Server = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain why an event is visible to a subscription, or why not.

    In each dimension it shows the way that the event takes, the filters on it and what they said, and what would help;
    of a situation also what it was made of. An event is decided by the scopes of its time and by those in force.

    With --credentials a client asks: about its own events or its own subscription, and is told the answer and what it
    said itself; an administrator or observer of all closed dimensions is told everything.

    \b
    Examples:
      situ explain visibility tracker.1793520000000.12 --to desk/arrivals
      situ explain visibility --from tracker/sightings --data sighting.json --to desk/arrivals
      situ explain visibility 4512874496 --to desk/arrivals --credentials desk.creds
    """
    import asyncio

    from situ.cli.progress import progress

    output = begin(context, json=as_json, quiet=quiet)
    if bool(event) == bool(source):
        raise typer.BadParameter("name an event, or an advertisement with --from", param_hint="'EVENT' / '--from'")
    if bool(source) != bool(data):
        raise typer.BadParameter("--from and --data belong together", param_hint="'--from' / '--data'")
    with progress("Searching", shown=output.has_terminal) as advance:
        if credentials is not None or server:
            answer = asyncio.run(_as_client(project, output, credentials, server, event, source, data, to))
        else:
            answer = asyncio.run(_as_operator(project, output, event, source, data, to, advance))

    def shown() -> Any:
        from rich.text import Text

        from situ.cli.output import visible

        return [Text(visible(answer.text))]

    output.answer(lambda: answer.data, shown)
    return Exit.DONE


async def _as_operator(
    project: Path | None, output: Output, event: str, source: str, data: str, to: str, advance: Progress | None
) -> Answer:
    from situ.cli.explained_visibility import explain_visibility as explain
    from situ.cli.explained_visibility import explain_visibility_of_sample
    from situ.cli.files import read_file
    from situ.cli.in_force import find_run, open_in_force
    from situ.cli.on_bus import bus_of
    from situ.cli.outcome import Raw
    from situ.registry.snapshots import fetch_deployment

    if source:
        opened = await open_in_force(project, output)
        written = _written(opened.path, opened.deployment)
        return explain_visibility_of_sample(source, Raw(data, read_file(data)), to, opened, written)
    live = find_run(project, output)
    async with bus_of(live, "explain") as bus:
        deployment = await fetch_deployment(bus)
        return await explain(event, to, bus, deployment, _written(live.path, deployment), advance)


def _written(path: Path, deployment: Deployment) -> ScopeGraph:
    """The scopes as they stand in the folder, for the places of filters; while that has errors, those in force."""
    from situ.project.check import check_folder

    found = check_folder(path).deployment
    return deployment.scopes if found is None else found.scopes


async def _as_client(
    project: Path | None,
    output: Output,
    credentials: Path | None,
    server: str,
    event: str,
    source: str,
    data: str,
    to: str,
) -> Answer:
    from situ.cli.as_client import as_client
    from situ.cli.explained_visibility import Answer
    from situ.cli.files import read_file
    from situ.edge.connecting import connect

    who = as_client(project, "", credentials, server, output)
    sample = read_file(data).decode(errors="replace") if data else ""
    async with connect(who.place, client=who.name, **who.options) as node:
        told = await node.explain_visibility(event, to=to, ad=source, sample=sample)
    return Answer(text=told.text, data=dict(told.answer))
