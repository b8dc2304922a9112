"""``situ subscribe`` and ``situ tail``: events as they come, to a client, or all of the root log to an operator."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, InScopes, New, Server, common_options, read_scopes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime
    from pathlib import Path

    from situ.bus.interface import Bus
    from situ.cli.connection import ClientIdentity
    from situ.cli.output import Output
    from situ.cli.project import LiveRun
    from situ.client.declarations import Registration
    from situ.client.events import Event
    from situ.event.row import Row
    from situ.model import Deployment
    from situ.routing.filter import Filter


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ subscribe``: the events of a subscription of one client.


def _event_types(incomplete: str) -> list[str]:
    from situ.cli.project import type_names

    return [name for name in type_names() if name.startswith(incomplete)]


@common_options
def subscribe(
    output: Output,
    project: Path | None,
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
        str, typer.Option("--where", metavar="EXPR", help="Only events that meet this condition.", show_default=False)
    ] = "",
    durable: Annotated[
        str,
        typer.Option(
            "--durable",
            metavar="NAME",
            help="Durable subscription of this name: events are kept while nobody reads; needs --client.",
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
            help="Subscribe and receive in the terms of this context.",
            show_default=False,
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Begin with events stored since then: 1 h ago, begin, a time.",
            show_default=False,
        ),
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="End after this many events.", show_default=False)
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="End after this time, as in 10s.", show_default=False)
    ] = "",
    new: New = False,
    scopes: InScopes = None,
    credentials: Credentials = None,
    server: Server = "",
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
    from situ.cli.arguments import read_duration, read_moment
    from situ.cli.connection import as_client
    from situ.cli.signals import run_until_stopped

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
    showing = _SubscriptionView(output)
    hearer = as_client(project, client, credentials, server, output, new=new)
    work = _subscribe(hearer, showing, terms or None, types or [], options, seconds)
    in_time = run_until_stopped(work, True)
    if not in_time and not showing.shown:
        output.note("No event came in time.")
    return Exit.DONE if in_time or (limit is None and showing.shown) else Exit.NO


async def _subscribe(
    hearer: ClientIdentity,
    showing: _SubscriptionView,
    terms: str | None,
    types: list[str],
    options: dict[str, Any],
    seconds: float | None,
) -> bool:
    """Show events; False if the time was up before the limit was reached."""
    import asyncio

    from situ.client.connection import connect
    from situ.lang.problems import SituError

    limit = options.pop("limit")
    try:
        connection = connect(hearer.place, client=hearer.name, context=terms, **hearer.options)
        async with asyncio.timeout(seconds), connection as node:
            registration = await node.register_for_events(*types, **options, wait=False)
            await registration.installing.wait(None)
            showing.ready(registration, hearer.name)
            # Only the client's own iterator takes the last event of a durable subscription as read.
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


class _SubscriptionView:
    """Writes events, and counts them."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self.shown = 0

    def ready(self, registration: Registration, client: str) -> None:
        from situ.protocol.wire import problem_from_wire

        self._output.warn(problem_from_wire(each.code, each.message, each.hint) for each in registration.said)
        self._output.note(f"Waiting for {', '.join(registration.types)} as {client}; Ctrl-C ends it.")

    def show(self, event: Event) -> None:
        self.shown += 1
        if self._output.json:
            self._output.line(as_json(event))
        else:
            from situ.cli.render.text import show_event

            self._output.show([show_event(event)])


def as_json(event: Event) -> dict[str, Any]:
    """The event as CloudEvents JSON, with the marks that a reader may need."""
    from situ.routing.model import ROOT

    optional = {"subject": event.subject, "confidence": event.confidence, "imprecision": event.imprecision}
    terms = {"situcontext": event.context, "situfrom": event.origin}
    return {
        "specversion": "1.0",
        "id": event.id,
        "source": event.source,
        "type": event.type,
        "time": event.time.isoformat().replace("+00:00", "Z"),
        **{name: value for name, value in optional.items() if value is not None},
        **({"released": event.released} if event.released else {}),
        **{name: context for name, context in terms.items() if context != ROOT},
        "situkey": event.key,
        "situpos": str(event.pos),
        **({"situredelivered": True} if event.redelivered else {}),
        "data": event.data,
    }


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ tail``: the root log as it grows. Who has the project folder is its operator and sees everything, so nothing is
# subscribed to: no client, no rights, no scopes. Events are shown in the terms of root, as the log has them, situations
# and other events of Situ's own included.

_GLANCE = 0.2  # seconds between two looks at the log, when it does not grow


@common_options
def tail(
    output: Output,
    project: Path | None,
    types: Annotated[
        list[str] | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="Only events of this type and its subtypes; repeatable.",
            autocompletion=_event_types,
            show_default=False,
        ),
    ] = None,
    where: Annotated[
        str,
        typer.Option("--where", metavar="EXPR", help="Only events that meet this condition.", show_default=False),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Begin with events stored since then: 1 h ago, begin, a time.",
            show_default=False,
        ),
    ] = "",
    limit: Annotated[
        int | None, typer.Option("--limit", metavar="N", min=1, help="End after this many events.", show_default=False)
    ] = None,
    timeout: Annotated[
        str, typer.Option("--timeout", metavar="TIME", help="End after this time, as in 10s.", show_default=False)
    ] = "",
) -> Exit:
    """Show all events of the run as they are stored, until Ctrl-C.

    This is the operator's view: all that is in the root log, in root's terms, whoever may see it. It subscribes to
    nothing, so nobody has to be given a right for it; what a client gets is shown by `situ subscribe --client NAME`.

    A condition is about events of the types that are named; without --type, of all those that have what it asks for.
    With --json each event is a line. Ends with 1 if --timeout passes before the first event, or before all that --limit
    asks for.

    \b
    Examples:
      situ tail
      situ tail --type Sighting --where 'at.x < 5 m' --since '1 h ago'
      situ tail --where "event.source = 'reader-7'" --json
      situ tail --type situ.situation --since begin --limit 10
    """
    from situ.cli.arguments import read_duration, read_moment
    from situ.cli.project import find_run
    from situ.cli.signals import run_until_stopped

    output.lined = True
    start = read_moment(since, "--since") if since else None
    seconds = read_duration(timeout, "--timeout").total_seconds() if timeout else None
    showing = _TailView(output, limit)
    in_time = run_until_stopped(_tail(find_run(project, output), showing, types or [], where, start, seconds), True)
    if not in_time and not showing.shown:
        output.note("No event came in time.")
    return Exit.DONE if in_time or (limit is None and showing.shown) else Exit.NO


class _TailView:
    """Writes events, and counts them."""

    def __init__(self, output: Output, limit: int | None) -> None:
        self._output, self._limit = output, limit
        self.shown = 0

    @property
    def done(self) -> bool:
        return self.shown == self._limit

    def ready(self) -> None:
        self._output.note("Waiting for events; Ctrl-C ends it.")

    def show(self, event: Event) -> None:
        self.shown += 1
        if self._output.json:
            self._output.line(as_json(event))
        else:
            from situ.cli.render.text import show_event

            self._output.show([show_event(event)])


async def _tail(
    live: LiveRun, showing: _TailView, types: Sequence[str], where: str, since: datetime | None, seconds: float | None
) -> bool:
    """Show events; False if the time was up before the limit was reached."""
    import asyncio

    from situ.cli.project import bus_of
    from situ.event.subjects import BusNames

    async with bus_of(live, "tail") as bus:
        selection = await Selection.of(bus, types, where)
        stream = BusNames(bus.zone).root_stream
        first = (await bus.state(stream)).last + 1 if since is None else await bus.find(stream, since)
        showing.ready()
        try:
            async with asyncio.timeout(seconds), aclosing(_follow(bus, selection, first)) as events:
                async for event in events:
                    showing.show(event)
                    if showing.done:
                        break
        except TimeoutError:
            return False
    return True


async def _follow(bus: Bus, selection: Selection, first: int) -> AsyncGenerator[Event, None]:
    """The events of the log that are asked for, from this message on, for ever; each once."""
    import asyncio

    from situ.event.lines import bare_line, decode_line, stored_lines
    from situ.event.message import position
    from situ.event.subjects import BusNames
    from situ.stages.root_log import upgrade_message

    stream = BusNames(bus.zone).root_stream
    highest: dict[tuple[str, int], int] = {}
    while True:
        last = (await bus.state(stream)).last
        if last < first:
            await asyncio.sleep(_GLANCE)
            continue
        selection = await selection.renewed(bus)
        async with aclosing(bus.read(stream, first, last)) as messages:
            async for message in messages:
                for place, line in enumerate(stored_lines(upgrade_message(message, selection.interpretation))):
                    row = decode_line(line, pos=position(message.seq, place))
                    author = (row.client, row.incarnation)
                    if row.seq <= highest.get(author, 0):
                        continue  # the log may have an event again; its readers take the first
                    highest[author] = row.seq
                    if selection.wants(row):
                        yield _event(row, bare_line(row, line))
        first = last + 1


def _event(row: Row, line: bytes) -> Event:
    from situ.client.events import read_events
    from situ.event.message import join_lines

    (event,) = read_events(join_lines([line]))
    event.number = row.pos  # in the log, as `situ explain event` takes it
    return event


class Selection:
    """Which events are asked for, by the deployment in force; its types may change while one looks."""

    def __init__(self, deployment: Deployment, types: Sequence[str], where: str) -> None:
        from situ.lang.types.lookup import EventData
        from situ.stages.interpret import Interpretation

        self.version = deployment.version
        self.interpretation = Interpretation.of(deployment)
        self._asked = (types, where)
        self._types = deployment.types
        self._data = EventData(deployment.types)
        self._filters: dict[str, Filter] = _filters(deployment, types, where)
        self._all = not types and not where

    @classmethod
    async def of(cls, bus: Bus, types: Sequence[str], where: str) -> Selection:
        from situ.registry.snapshots import fetch_deployment

        return cls(await fetch_deployment(bus), types, where)

    async def renewed(self, bus: Bus) -> Selection:
        """By what is in force now; itself if that is the same."""
        from situ.registry.snapshots import current_deployment, fetch_deployment

        current = await current_deployment(bus)
        if current is None or current.version == self.version:
            return self
        return Selection(await fetch_deployment(bus), *self._asked)

    def wants(self, row: Row) -> bool:
        import msgspec

        from situ.event.data_reader import read_envelope
        from situ.lang.types.model import supertypes

        if self._all:
            return True
        struct = self._types.event(row.type)
        if struct is None:
            return False
        found = [self._filters[str(each)] for each in supertypes(struct) if str(each) in self._filters]
        if not found or any(each.always for each in found):
            return bool(found)
        event, data = read_envelope(row), self._data.decode(row.type, msgspec.json.decode(row.data)).value
        return any(each.test(event, data) for each in found)


def _filters(deployment: Deployment, types: Sequence[str], where: str) -> dict[str, Filter]:
    """The filter for each type that is asked for; without types, for all that the condition can be about."""
    from situ.lang.problems import SituError, nearest
    from situ.lang.types.lookup import not_declared
    from situ.lang.types.table import RESERVED_EVENTS
    from situ.routing.filter import Filter, read_filter

    known = deployment.types
    found: dict[str, Filter] = {}
    for name in types or (*known.events, *RESERVED_EVENTS):
        event = known.event(name)
        if event is None:
            raise SituError(not_declared(name, nearest=nearest(name, sorted(known.events))))
        limits = deployment.settings.expression_limits
        try:
            node = read_filter("situ tail", event, where, known, deployment.definitions, limits)
        except SituError:
            if types:
                raise
            continue  # others may have what it asks for
        found[name] = Filter(name, node)
    if not found:
        raise typer.BadParameter(
            "no type of events has what this asks for; name one with --type", param_hint="'--where'"
        )
    return found
