"""``situ transform``: events out of one context into another, on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.commands.explain_context import context_completion
from situ.cli.exits import Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.explain.conversion import ContextTransformer


@common_options
def transform(
    output: Output,
    project: Path | None,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Events, one a line, or one; - is standard input.")] = "-",
    from_: Annotated[
        str,
        typer.Option(
            "--from", metavar="CONTEXT", help="The context that they are in.", autocompletion=context_completion
        ),
    ] = "root",
    to: Annotated[
        str,
        typer.Option("--to", metavar="CONTEXT", help="The context to convert to.", autocompletion=context_completion),
    ] = "root",
    type: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="The type of bare data; a CloudEvent says its own.")
    ] = "",
) -> Exit:
    """Transform events: in through one context, out through another.

    Prints each event on a line, as a client of the other context would get it; what came as data alone leaves as data
    alone. Why an event cannot be transformed is said on standard error, as its dead letter would, or with --json on a
    line in its place. Nothing needs to run; what is looked up is looked up in the tables as they are now.

    Ends with 1 if there was one that could not.

    \b
    Examples:
      situ transform --to us position.json
      situ transform --from camera --to us seen.jsonl
      situ transform --from camera --type Seen < data.jsonl
    """
    import asyncio

    from situ.cli.project import open_project
    from situ.explain.conversion import ContextTransformer, find_context

    output.lined = True
    opened = open_project(project)
    deployment = opened.deployment
    passage = ContextTransformer.of(find_context(from_, deployment), find_context(to, deployment), opened)
    failed = asyncio.run(_transform(output, passage, file, type, deployment.settings.limits.event))
    return Exit.NO if failed else Exit.DONE


async def _transform(output: Output, passage: ContextTransformer, file: str, type: str, limit: int) -> int:
    """Transform all there is; how many could not be."""
    from situ.cli.arguments import read_events
    from situ.lang.problems import Location
    from situ.lang.records import replace
    from situ.project.event_files import InputError

    failed = 0
    async for given in read_events(file, type, limit, "situ transform --type Sighting …"):
        for each in given:
            problems = each.problems if isinstance(each, InputError) else ()
            if not isinstance(each, InputError):
                found = passage.transform(each)
                if isinstance(found, dict):
                    output.line(found)
                    continue
                problems = found
            failed += 1
            place = Location(file=file, line=each.line)
            output.refuse([replace(problem, location=problem.location or place) for problem in problems])
    return failed
