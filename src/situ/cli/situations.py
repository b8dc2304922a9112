"""``situ situations``: what policies have detected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.in_force import Live
    from situ.cli.told_situations import Told


def situations(
    context: typer.Context,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Only of this policy.", show_default=False)
    ] = "",
    only_open: Annotated[bool, typer.Option("--open", help="Only those that are open.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="The latest so many.")] = 50,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """List the situations that policies detected, the latest last.

    Each with whom and what it is about, and one sentence that says why. To be told of them as they come, subscribe to
    situ.situation; for all about one, see `situ explain detection`.

    \b
    Examples:
      situ situations
      situ situations --open --policy unaccompanied-guest
    """
    import asyncio

    from situ.cli.in_force import find_run

    output = begin(context, json=as_json, quiet=quiet)
    found = asyncio.run(_latest(find_run(project, output), policy, limit, only_open=only_open))

    def shown() -> Any:
        from situ.cli.show_told import show_told

        return show_told(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


async def _latest(live: Live, policy: str, limit: int, *, only_open: bool) -> list[Told]:
    from situ.cli import told_situations
    from situ.cli.on_bus import bus_of

    async with bus_of(live, "situations") as bus:
        return (await told_situations.situations(bus, policy=policy, only_open=only_open))[-limit:]
