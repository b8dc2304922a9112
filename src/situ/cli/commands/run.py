"""``situ run``: the deployment, running, until it is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.live_view import View
    from situ.host.running import Running


def run(
    context: typer.Context,
    engine: Annotated[
        Literal["spark", "edge"] | None,
        typer.Option("--engine", help="What executes it, instead of what situ.yaml says.", show_default=False),
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Stop by itself after so long, as in 30s.", show_default=False)
    ] = "",
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long to wait for a bus that does not answer.")
    ] = "30s",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Run the project: bus, router and engine, until Ctrl-C.

    Shows what flows. With --json, every second one object a line. Stops in order at the first Ctrl-C or TERM, at once
    at the second Ctrl-C; nothing that was accepted is lost either way. What happened stands in .situ/logs/situ.log.

    \b
    Examples:
      situ run
      situ run --engine edge --for 30s
      situ run --json | jq .taken_rate
    """
    from situ.cli.live_view import live_view
    from situ.cli.moments import read_duration
    from situ.cli.opened import open_project
    from situ.cli.stopping import run_until_stopped
    from situ.host.running import Running

    output = begin(context, json=as_json, quiet=quiet)
    output.lined = True
    seconds = read_duration(duration, "--for").total_seconds() if duration else None
    patience = read_duration(wait, "--wait").total_seconds()
    opened = open_project(project)
    running = Running(opened.path, opened.deployment, engine=engine, patience=patience, digests=opened.digests)
    try:
        with live_view(output, opened.deployment.settings.name) as view:
            run_until_stopped(_run(running, view, seconds), None)
    finally:
        figures = running.figures
        if figures.version and not as_json and not quiet:
            from situ.cli.show_figures import show_summary

            output.show(show_summary(figures))
    return Exit.DONE


async def _run(running: Running, view: View, seconds: float | None) -> None:
    import asyncio

    from situ.garbage import settle

    watching = asyncio.create_task(_watch(running, view))
    try:
        async with running:
            settle()
            try:
                async with asyncio.timeout(seconds):
                    await running.ended()
            except TimeoutError:
                pass
    finally:
        watching.cancel()
        view.end(running.figures)


async def _watch(running: Running, view: View) -> None:
    import asyncio

    from situ.cli.live_view import EVERY

    while True:
        view.update(running.figures)
        await asyncio.sleep(EVERY)
