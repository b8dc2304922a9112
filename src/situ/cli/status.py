"""``situ status``: what runs here, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.output import Shown


def status(context: typer.Context, project: Project = None, as_json: Json = False, quiet: Quiet = False) -> Exit:
    """Show what runs: engines, streams, durable subscriptions and what waits for them, clients.

    Ends with 1 if nothing runs.

    \b
    Examples:
      situ status
      situ status --json | jq '.consumers[].waiting'
    """
    import asyncio

    from situ.cli.looked_at import look
    from situ.cli.opened import open_project

    output = begin(context, json=as_json, quiet=quiet)
    found = asyncio.run(look(open_project(project)))

    def shown() -> Shown:
        from situ.cli.show_status import show_status

        return show_status(found)

    output.answer(found.as_json, shown)
    if found.problem is not None:
        return Exit.UNREACHABLE
    return Exit.DONE if found.running else Exit.NO
