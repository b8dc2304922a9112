"""``situ quality``: who expects what, who can do what, what holds, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, Json, Project, Quiet, Server, begin

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output


def quality(
    context: typer.Context,
    project: Project = None,
    credentials: Credentials = None,
    server: Server = "",
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Show what subscribers expect, what publishers can do, what holds, and why not.

    With --credentials a client asks, and is shown how its own expectations stand.

    \b
    Examples:
      situ quality
      situ quality --json
      situ quality --credentials desk.creds
    """
    import asyncio

    output = begin(context, json=as_json, quiet=quiet)
    if credentials is not None or server:
        found = asyncio.run(_as_client(project, output, credentials, server))
    else:
        found = asyncio.run(_as_operator(project, output))

    def shown() -> Any:
        from situ.cli.show_quality import show_quality

        return show_quality(found)

    output.answer(lambda: found, shown)
    return Exit.DONE


async def _as_operator(project: Path | None, output: Output) -> dict[str, Any]:
    from situ.cli.asked_quality import ask_quality
    from situ.cli.in_force import find_run

    body, _ = await ask_quality(find_run(project, output), {})
    return body


async def _as_client(project: Path | None, output: Output, credentials: Path | None, server: str) -> dict[str, Any]:
    from situ.cli.as_client import as_client
    from situ.edge.connecting import connect

    who = as_client(project, "", credentials, server, output)
    async with connect(who.place, client=who.name, **who.options) as node:
        return {"expectations": [each.as_json() for each in await node.expectations.states()]}
