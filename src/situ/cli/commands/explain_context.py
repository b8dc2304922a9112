"""``situ explain context`` and ``situ explain transform``: what contexts make of events, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.contexts.transform.transformation import Transformation
    from situ.explain.conversion import ContextConversions
    from situ.explain.transform import ConvertedSample
    from situ.model import Deployment
    from situ.project.check import LoadedProject
    from situ.project.event_files import InputEvent


def context_completion(incomplete: str) -> list[str]:
    """The contexts here, for the completion of shells: nothing rather than a complaint."""
    from situ.cli.project import open_project

    try:
        names = sorted(open_project(None).deployment.contexts.by_id)
    except (CommandError, OSError):
        return []
    return [name for name in names if name.startswith(incomplete)]


@common_options
def explain_context(
    output: Output,
    project: Path | None,
    name: Annotated[
        str, typer.Argument(metavar="CONTEXT", help="A context of the project.", autocompletion=context_completion)
    ] = "root",
) -> Exit:
    """Explain a context: what it declares and inherits, who uses it, and what becomes of each event type.

    Of each direction it shows the mappings and rules in force, with the place where they are declared; an event type is
    mapped, converted under its own name, passes, or is not available.

    \b
    Examples:
      situ explain context us
      situ explain context acme.us --json
    """
    from situ.cli.project import open_project
    from situ.cli.render.transform import show_context
    from situ.explain.context import explain_context
    from situ.explain.conversion import find_context

    deployment = open_project(project).deployment
    explained = explain_context(find_context(name, deployment), deployment)
    output.answer(explained.as_json, lambda: show_context(explained))
    return Exit.DONE


@common_options
def explain_transform(
    output: Output,
    project: Path | None,
    of: Annotated[
        str, typer.Option("--context", metavar="CONTEXT", help="The context.", autocompletion=context_completion)
    ] = "",
    out: Annotated[
        str,
        typer.Option(
            "--out", metavar="TYPE|FILE", help="From root to the context: a type of root, or an event in a file."
        ),
    ] = "",
    into: Annotated[
        str,
        typer.Option(
            "--in", metavar="TYPE|FILE", help="From the context to root: a type of it, or an event in a file."
        ),
    ] = "",
    type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="The type, if the file has only the data of an event.")
    ] = "",
    why: Annotated[
        str,
        typer.Option("--why", metavar="ATTRIBUTE", help="Every rule about this attribute, and why it applies or not."),
    ] = "",
    where: Annotated[
        str, typer.Option("--filter", metavar="TEXT", help="How this filter of a subscription reads on root events.")
    ] = "",
    fused: Annotated[
        tuple[str, str],
        typer.Option(
            "--fused",
            metavar="FROM TO",
            help="From one context straight to another; --in names the type or file.",
            show_default=False,
        ),
    ] = ("", ""),
) -> Exit:
    """Explain what becomes of an event in a context.

    Shows for each attribute the rule that counts and where it is declared, the function, and with an event the value
    before and after; then which rules were beaten by it or do not match, and what is to say about the whole.

    Ends with 1 if the event type is not available there, or the event cannot be converted.

    \b
    Examples:
      situ explain transform --context us --out PositionUpdate
      situ explain transform --context us --out position.json
      situ explain transform --context camera --in seen.json --type Seen
      situ explain transform --context us --out PositionUpdate --why to
      situ explain transform --context us --out PositionUpdate --filter 'distance > 109'
      situ explain transform --fused camera us --in seen.json
    """
    from situ.cli.project import open_project
    from situ.cli.render.transform import show_filter, show_transform, show_why
    from situ.contexts.model import Direction
    from situ.explain.conversion import ContextConversions, find_context
    from situ.explain.transform import explain_transform as explain
    from situ.explain.transform_why import explain_filter, explain_rules

    if fused != ("", ""):
        if of or out or why or where:
            raise typer.BadParameter("takes no other options than --in and --type", param_hint="'--fused'")
        return _fused(output, fused, into, type, open_project(project))
    if not of:
        raise typer.BadParameter("say which context", param_hint="'--context'")
    if bool(out) == bool(into):
        raise typer.BadParameter("say which way, by one of the two", param_hint="'--out' / '--in'")
    if where and into:
        raise typer.BadParameter("filters are about what is delivered; take --out", param_hint="'--filter'")
    opened = open_project(project)
    deployment = opened.deployment
    ways = ContextConversions.of(find_context(of, deployment), Direction.OUT if out else Direction.IN)
    way, sample = _way(out or into, type, ways, opened)
    explained = explain(way, ways, deployment.settings.defaults, sample)
    if why:
        answer = explain_rules(why, way, explained, ways)
        output.answer(answer.as_json, lambda: show_why(answer))
        return Exit.DONE
    if where:
        found = explain_filter(where, way, sample, ways, deployment)
        output.answer(found.as_json, lambda: show_filter(found))
        return Exit.DONE
    output.answer(explained.as_json, lambda: show_transform(explained))
    return Exit.NO if explained.failures else Exit.DONE


def _fused(output: Output, between: tuple[str, str], subject: str, type: str, opened: LoadedProject) -> Exit:
    """From one context to the other: a type, an event, or all types that lead there."""
    from situ.cli.render.transform import show_all_fused, show_fused
    from situ.contexts.model import Direction
    from situ.explain.conversion import ContextConversions, LookupTables, find_context
    from situ.explain.fused_transform import ContextPair, explain_fused

    deployment = opened.deployment
    producer, consumer = (find_context(name, deployment) for name in between)
    found = ContextPair(
        incoming=ContextConversions.of(producer, Direction.IN),
        outgoing=ContextConversions.of(consumer, Direction.OUT),
        tables=LookupTables(deployment.sources, opened.path),
    )
    if not subject:
        all_ways = [explain_fused(found.way(name), found) for name in found.types]
        output.answer(lambda: [each.as_json() for each in all_ways], lambda: show_all_fused(all_ways))
        return Exit.DONE
    if _is_type(subject, found.incoming):
        explained = explain_fused(found.way(subject), found)
        output.answer(explained.as_json, lambda: show_fused(explained))
        return Exit.DONE
    given = _given(subject, type, deployment)
    way = found.way(given.type)
    read = _sample(given, subject, way.inbound, opened)
    explained = explain_fused(way, found, (read.envelope, read.data))
    output.answer(explained.as_json, lambda: show_fused(explained))
    return Exit.NO if explained.failures else Exit.DONE


def _is_type(subject: str, ways: ContextConversions) -> bool:
    """What is no file is taken for a type if it could be one."""
    from pathlib import Path

    from situ.cli.arguments import STDIN

    is_file = subject == STDIN or "/" in subject or subject.endswith((".json", ".jsonl")) or Path(subject).is_file()
    return subject in ways.context.types_of(ways.direction).events or not is_file


def _way(
    subject: str, type: str, ways: ContextConversions, opened: LoadedProject
) -> tuple[Transformation, ConvertedSample | None]:
    """The way of the type or the event that is named, and the latter converted."""
    if _is_type(subject, ways):
        return ways.get(subject), None
    given = _given(subject, type, opened.deployment)
    way = ways.get(given.type)
    return way, _sample(given, subject, way, opened)


def _sample(given: InputEvent, file: str, way: Transformation, opened: LoadedProject) -> ConvertedSample:
    from datetime import UTC, datetime

    from situ.explain.conversion import LookupTables
    from situ.explain.transform import convert_sample

    tables = LookupTables(opened.deployment.sources, opened.path)
    extra = opened.deployment.settings.defaults.extra
    return convert_sample(given, way, tables, datetime.now(UTC), extra, file)


def _given(file: str, type: str, deployment: Deployment) -> InputEvent:
    """The first event of a file."""
    from situ.cli.arguments import read_file
    from situ.lang.catalogue import FILE_UNREADABLE
    from situ.lang.problems import Location
    from situ.project.event_files import EventLineReader, InputError

    reader = EventLineReader(file, type, deployment.settings.limits.event, "--type Sighting")
    found = [*reader.feed(read_file(file)), *reader.finish()]
    if not found:
        remedy = "Put an event there, or name a type instead."
        raise CommandError(Exit.USAGE, FILE_UNREADABLE(Location(file=file), reason="it is empty", remedy=remedy))
    first = found[0]
    if isinstance(first, InputError):
        raise CommandError(Exit.NO, *first.problems)
    return first
