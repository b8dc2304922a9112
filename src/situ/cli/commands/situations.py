"""``situ late``: events that came after policies had decided without them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.in_force import Live
    from situ.cli.late_events import Late


def late(
    context: typer.Context,
    type: Annotated[str, typer.Option("--type", metavar="TYPE", help="Only of this type.", show_default=False)] = "",
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="Only too late for this policy.", show_default=False),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The latest so many.")] = 50,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """List events that came too late for policies, the latest last.

    A policy decides when the lateness it grants has passed (lateness in the policy, in its push source, or in
    situ.yaml). What comes after that is delivered to subscribers as ever, but the policy does not count it.

    \b
    Examples:
      situ late
      situ late --policy unaccompanied-guest --type Sighting
    """
    import asyncio

    from situ.cli.in_force import find_run

    output = begin(context, json=as_json, quiet=quiet)
    found = asyncio.run(_latest(find_run(project, output), type, policy, limit))

    def shown() -> Any:
        from situ.cli.show_late import show_late

        return show_late(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


async def _latest(live: Live, type: str, policy: str, limit: int) -> list[Late]:
    from collections import deque

    from situ.cli.late_events import late_events
    from situ.cli.on_bus import bus_of

    async with bus_of(live, "late") as bus:
        kept: deque[Late] = deque(maxlen=limit)
        async for each in late_events(bus, type=type, policy=policy):
            kept.append(each)
        return list(kept)
