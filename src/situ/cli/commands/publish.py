"""``situ publish``: events from the command line or a file into the running project."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, InScopes, New, Server, common_options, read_scopes
from situ.lang.records import replace

if TYPE_CHECKING:
    from situ.cli.connection import ClientIdentity
    from situ.cli.output import Output
    from situ.client.client import Client
    from situ.client.publish_queue import Receipt
    from situ.lang.problems import Problem, SituError
    from situ.project.event_files import InputError, InputEvent

_UNDER_WAY = 5_000  # receipts that are waited for at once
_ARGUMENT = "--data"
_SHOWN = 20  # refused events that are shown in full


@common_options
def publish(
    output: Output,
    project: Path | None,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="The type of bare data; a CloudEvent says its own.")] = "",
    data: Annotated[
        str, typer.Option("--data", metavar="JSON", help="The data of one event, or a CloudEvent.", show_default=False)
    ] = "",
    file: Annotated[
        str,
        typer.Option("--file", metavar="FILE", help="One event a line; - is standard input.", show_default=False),
    ] = "",
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help="Publish as this client.", show_default=False)
    ] = "",
    terms: Annotated[
        str,
        typer.Option("--context", metavar="NAME", help="Publish in the terms of this context.", show_default=False),
    ] = "",
    new: New = False,
    scopes: InScopes = None,
    credentials: Credentials = None,
    server: Server = "",
) -> Exit:
    """Publish events, and wait until they are stored.

    Each is a CloudEvent, or only its data. Without --client they come from a client that exists as long as the command
    runs. Do not take the name of a client that is connected: one name is one client, and the earlier one is closed.

    Ends with 1 if some were refused.

    \b
    Examples:
      situ publish Sighting --data '{"who": "p07", "at": {"x": 1.5, "y": 2.0}}'
      situ publish Sighting --file sightings.jsonl
      python -m simulator --for 10s | situ publish --file -
    """
    from situ.cli.arguments import STDIN
    from situ.cli.connection import as_client
    from situ.cli.signals import run_until_stopped

    if bool(data) == bool(file):
        raise typer.BadParameter("say what to publish, by one of the two", param_hint="'--data' / '--file'")
    tags = read_scopes(scopes)
    if tags and not type:
        raise typer.BadParameter("what is published into scopes is of one type; name it", param_hint="'TYPE'")
    speaker = as_client(project, client, credentials, server, output, new=new)
    outcome = PublishOutcome(client=speaker.name)
    whole = run_until_stopped(_publish(speaker, output, outcome, type, data, file, terms or None, tags), False)
    output.answer(outcome.as_json, outcome.shown)
    if not output.json:
        output.warn(outcome.problems)
    if not whole and file != STDIN:
        return Exit.INTERRUPTED
    return Exit.NO if outcome.refused else Exit.DONE


@dataclass(slots=True)
class PublishOutcome:
    """What became of the events."""

    client: str
    stored: int = 0
    duplicates: int = 0
    refused: int = 0
    last: str = ""
    """The key of the last event that was stored."""
    problems: list[Problem] = field(default_factory=list)

    def refuse(self, problems: tuple[Problem, ...], line: int, file: str) -> None:
        from situ.lang.problems import Location

        self.refused += 1
        if len(self.problems) < _SHOWN:
            place = Location(file=file, line=line)
            self.problems += [replace(each, location=each.location or place) for each in problems]

    def as_json(self) -> dict[str, Any]:
        return {
            "client": self.client,
            "stored": self.stored,
            "duplicates": self.duplicates,
            "refused": self.refused,
            "last": self.last or None,
            "problems": [problem.as_json() for problem in self.problems],
        }

    def shown(self) -> Iterator[Any]:
        from rich.text import Text

        from situ.cli.render.text import count

        text = Text(f"{count(self.stored, 'event')} stored")
        if self.stored == 1:
            text.append(f" as {self.last}")
        if self.duplicates:
            text.append(f", {self.duplicates:,} of an id that was published before and not published again")
        if self.refused:
            text.append(f", {self.refused:,} refused", "bold red")
        yield text


async def _publish(
    speaker: ClientIdentity,
    output: Output,
    outcome: PublishOutcome,
    type: str,
    data: str,
    file: str,
    terms: str | None,
    scopes: dict[str, list[str]] | None,
) -> bool:
    """Publish all there is; True at its end. When it is cancelled, what is queued is stored first."""
    from situ.cli.progress import progress
    from situ.client.connection import connect

    publishing = _Publishing(outcome, file or _ARGUMENT, speaker, terms or "")
    limit = speaker.settings.limits.event
    size = Path(file).stat().st_size if file and Path(file).is_file() else 0
    with progress("Publishing", shown=output.has_terminal) as advance:
        async with connect(speaker.place, client=speaker.name, context=terms, **speaker.options) as node:
            if scopes:
                await node.advertise(type, scopes=scopes)
            try:
                async for given in _given(data, file, type, limit):
                    for each in given:
                        await publishing.put(node, each)
                    if advance is not None:
                        advance(f"{outcome.stored:,} stored", given[-1].size, size or given[-1].size + 1)
            finally:
                await publishing.settle()
    return True


async def _given(data: str, file: str, type: str, limit: int) -> AsyncIterator[list[InputEvent | InputError]]:
    from situ.cli.arguments import read_events
    from situ.project.event_files import EventLineReader

    if file:
        async for given in read_events(file, type, limit):
            yield given
        return
    reader = EventLineReader(_ARGUMENT, type, limit)
    found = [*reader.feed(os.fsencode(data)), *reader.finish()]
    if found:
        yield found


class _Publishing:
    """Puts events into the node's queue, and waits for the receipts of many at a time."""

    def __init__(self, outcome: PublishOutcome, file: str, speaker: ClientIdentity, terms: str) -> None:
        self.outcome = outcome
        self._speaker, self._terms = speaker, terms
        self._file = file
        self._waiting: list[tuple[int, Receipt]] = []

    async def put(self, node: Client, given: InputEvent | InputError) -> None:
        from situ.lang.problems import SituError
        from situ.project.event_files import InputError

        if isinstance(given, InputError):
            self.outcome.refuse(given.problems, given.line, self._file)
            return
        try:
            receipt = await node.publish_event(given.type, given.data, **given.envelope)
        except SituError as error:
            self.outcome.refuse(await self._told(error, given.type), given.line, self._file)
            return
        if receipt.duplicate:
            self.outcome.duplicates += 1
            return
        self._waiting.append((given.line, receipt))
        if len(self._waiting) >= _UNDER_WAY:
            await self.settle()

    async def _told(self, error: SituError, type: str) -> tuple[Problem, ...]:
        """What an operator can be told about a type that is not there; asked for as often as it is shown."""
        if len(self.outcome.problems) >= _SHOWN:
            return error.problems
        return await self._speaker.explained(error.problems, [type], self._terms)

    async def settle(self) -> None:
        from situ.lang.problems import SituError

        waiting, self._waiting = self._waiting, []
        for line, receipt in waiting:
            try:
                self.outcome.last = await receipt.stored
                self.outcome.stored += 1
            except SituError as error:
                self.outcome.refuse(error.problems, line, self._file)
