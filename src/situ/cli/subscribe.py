"""``situ subscribe``: events of the running project as they come."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, InScopes, Json, New, Project, Quiet, Server, begin, read_scopes

if TYPE_CHECKING:
    from situ.cli.as_client import AsClient
    from situ.cli.output import Output
    from situ.edge.declared import Registration
    from situ.edge.event import Event


def _event_types(incomplete: str) -> list[str]:
    from situ.cli.opened import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


def subscribe(
    context: typer.Context,
    types: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[TYPE]...",
            help="Event types; none for a durable subscription that the project declares.",
            autocompletion=_event_types,
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str, typer.Option("--where", metavar="EXPR", help="Only those for which this holds.", show_default=False)
    ] = "",
    durable: Annotated[
        str,
        typer.Option(
            "--durable",
            metavar="NAME",
            help="Keep what comes while nobody reads, under this name; needs --client.",
            show_default=False,
        ),
    ] = "",
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help="Subscribe as this client.", show_default=False)
    ] = "",
    terms: Annotated[
        str,
        typer.Option(
            "--context",
            metavar="NAME",
            help="Subscribe, and be told, in the terms of this context.",
            show_default=False,
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since", metavar="TIME", help="First what came since then: 1 h ago, begin, a time.", show_default=False
        ),
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="End after so many.", show_default=False)
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="End after so long, as in 10s.", show_default=False)
    ] = "",
    new: New = False,
    scopes: InScopes = None,
    credentials: Credentials = None,
    server: Server = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Show events as they come, until Ctrl-C.

    With --json each is a line, the event as it was delivered. A durable subscription goes on where it ended the last
    time; an event counts as read when the next one is asked for.

    Ends with 1 if --timeout passes before the first event, or before all that --limit asks for.

    \b
    Examples:
      situ subscribe Sighting
      situ subscribe Sighting --where 'at.x < 5 m' --since '1 h ago'
      situ subscribe --client desk --durable arrivals --json
      situ subscribe Alarm --client desk --scope membership=operations --scope rest=any
    """
    from situ.cli.as_client import as_client
    from situ.cli.moments import read_duration, read_moment
    from situ.cli.stopping import run_until_stopped

    output = begin(context, json=as_json, quiet=quiet)
    output.lined = True
    if durable and not client and credentials is None:
        raise typer.BadParameter("a durable subscription belongs to a client; name it", param_hint="'--client'")
    if not types and not durable:
        raise typer.BadParameter("name the types of the events", param_hint="'TYPE'")
    options = {
        "where": where or None,
        "durable": durable or None,
        "since": read_moment(since, "--since") if since else None,
        "scopes": read_scopes(scopes),
        "limit": limit,
    }
    seconds = read_duration(timeout, "--timeout").total_seconds() if timeout else None
    showing = _Showing(output)
    hearer = as_client(project, client, credentials, server, output, new=new)
    work = _subscribe(hearer, showing, terms or None, types or [], options, seconds)
    in_time = run_until_stopped(work, True)
    if not in_time and not showing.shown:
        output.note("No event came in time.")
    return Exit.DONE if in_time or (limit is None and showing.shown) else Exit.NO


async def _subscribe(
    hearer: AsClient,
    showing: _Showing,
    terms: str | None,
    types: list[str],
    options: dict[str, Any],
    seconds: float | None,
) -> bool:
    """Show events; False if the time was up before the limit was reached."""
    import asyncio

    from situ.edge.connecting import connect
    from situ.errors import SituError

    limit = options.pop("limit")
    try:
        connection = connect(hearer.place, client=hearer.name, context=terms, **hearer.options)
        async with asyncio.timeout(seconds), connection as node:
            registration = await node.register_for_events(*types, **options, wait=False)
            await registration.installing.wait(None)
            showing.ready(registration, hearer.name)
            # Only the node's own iterator takes the last event of a durable subscription as read.
            events = node.events(*types, **options, limit=limit) if registration.durable else aiter(registration)
            async with aclosing(events):
                async for event in events:
                    showing.show(event)
                    if showing.shown == limit and not registration.durable:
                        break
    except TimeoutError:
        return False
    except SituError as error:
        raise SituError(*await hearer.explained(error.problems, types, terms or "")) from None
    return True


class _Showing:
    """Writes events, and counts them."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.shown = 0

    def ready(self, registration: Registration, client: str) -> None:
        from situ.edge.told import problem_told

        self._output.warn(problem_told(each.code, each.message, each.hint) for each in registration.said)
        self._output.note(f"Waiting for {', '.join(registration.types)} as {client}; Ctrl-C ends it.")

    def show(self, event: Event) -> None:
        self.shown += 1
        if self._output.json:
            self._output.line(as_json(event))
        else:
            from situ.cli.show_events import show_event

            self._output.show([show_event(event)])


def as_json(event: Event) -> dict[str, Any]:
    """The event as CloudEvents JSON, with the marks that a reader may need."""
    optional = {"subject": event.subject, "confidence": event.confidence}
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": event.time.isoformat().replace("+00:00", "Z"),
        **{name: value for name, value in optional.items() if value is not None},
        "situkey": event.key,
        "situpos": str(event.pos),
        **({"situredelivered": True} if event.redelivered else {}),
        "data": event.data,
    }
