"""``situ run`` and ``situ status``: run a project until it is stopped, and show what runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from situ.cli.exits import Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.app.run import RunProcess
    from situ.cli.output import Output, Shown
    from situ.cli.project import LiveRun
    from situ.cli.render.run import RunView
    from situ.project.status import RunStatus
    from situ.registry.lookup import SuspendedDeclaration


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ run``.


@common_options
def run(
    output: Output,
    project: Path | None,
    engine: Annotated[
        Literal["spark", "edge"] | None,
        typer.Option("--engine", help="The engine, instead of the one in situ.yaml.", show_default=False),
    ] = None,
    duration: Annotated[
        str, typer.Option("--for", metavar="TIME", help="Stop after this time, as in 30s.", show_default=False)
    ] = "",
    wait: Annotated[
        str, typer.Option("--wait", metavar="TIME", help="How long to wait for a bus that does not answer.")
    ] = "30s",
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
    from situ.app.run import RunProcess
    from situ.cli.arguments import read_duration
    from situ.cli.project import open_project
    from situ.cli.render.run import live_view
    from situ.cli.signals import run_until_stopped

    output.lined = True
    seconds = read_duration(duration, "--for").total_seconds() if duration else None
    patience = read_duration(wait, "--wait").total_seconds()
    opened = open_project(project)
    running = RunProcess(opened.path, opened.deployment, engine=engine, patience=patience, digests=opened.digests)
    try:
        with live_view(output, opened.deployment.settings.name) as view:
            run_until_stopped(_run(running, view, seconds), None)
    finally:
        figures = running.figures
        if figures.version and not output.json and not output.quiet:
            from situ.cli.render.run import show_summary

            output.show(show_summary(figures))
    return Exit.DONE


async def _run(running: RunProcess, view: RunView, seconds: float | None) -> None:
    import asyncio

    from situ.gc_tuning import freeze_loaded

    watching = asyncio.create_task(_watch(running, view))
    try:
        async with running:
            freeze_loaded()
            try:
                async with asyncio.timeout(seconds):
                    await running.ended()
            except TimeoutError:
                pass
    finally:
        watching.cancel()
        view.end(running.figures)


async def _watch(running: RunProcess, view: RunView) -> None:
    import asyncio

    from situ.cli.render.run import EVERY

    while True:
        view.update(running.figures)
        await asyncio.sleep(EVERY)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ status``: what runs here, and how it is.


@common_options
def status(output: Output, project: Path | None) -> Exit:
    """Show what runs: engines, streams, durable subscriptions and what waits for them, clients, actions.

    Ends with 1 if nothing runs.

    \b
    Examples:
      situ status
      situ status --json | jq '.consumers[].waiting'
    """
    import asyncio

    from situ.app.action_queue import ActionQueue, count_actions
    from situ.cli.project import find_run

    live = find_run(project, output)
    found = asyncio.run(_read_status(live))
    actions = count_actions(ActionQueue(live.path))
    lost = _suspended(live) if found.running else ()

    def shown() -> Shown:
        from situ.cli.render.status import show_numbers, show_status, show_suspended

        yield from show_status(found)
        yield from show_numbers(actions)
        yield from show_suspended(lost)

    suspended = [{"kind": each.kind, "name": each.name} for each in lost]
    output.answer(lambda: {**found.as_json(), "actions": actions, "suspended": suspended}, shown)
    if found.problem is not None:
        return Exit.UNREACHABLE
    return Exit.DONE if found.running else Exit.NO


_PATIENCE = 2.0


def _suspended(live: LiveRun) -> tuple[SuspendedDeclaration, ...]:
    """What the registry of a run has suspended; nothing if it does not answer, which other commands say."""
    from situ.lang.problems import SituError
    from situ.registry.lookup import suspended_names

    try:
        return suspended_names(live.path, live.settings, patience=_PATIENCE)
    except SituError:
        return ()


async def _read_status(live: LiveRun) -> RunStatus:
    """Look at the run in this folder, and at the bus it uses."""
    from situ.bus.folder_lock import read_lock
    from situ.cli.project import bus_of
    from situ.lang.problems import SituError
    from situ.lang.records import replace
    from situ.project.status import RunStatus, read_status_on_bus

    settings = live.settings
    holder = read_lock(live.path)
    nothing = RunStatus(project=settings.name, zone=settings.zone, holder=holder, edited=live.edited)
    if settings.bus.kind == "embedded" and holder is None:
        return nothing
    try:
        async with bus_of(live, "status") as bus:
            return replace(await read_status_on_bus(bus, settings.name, holder), edited=live.edited)
    except SituError as error:
        return replace(nothing, problem=error.problems[0])
