"""``situ status``: what runs here, and how it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.cli.output import Shown


def status(context: typer.Context, project: Project = None, as_json: Json = False, quiet: Quiet = False) -> Exit:
    """Show what runs: engines, streams, durable subscriptions and what waits for them, clients, actions.

    Ends with 1 if nothing runs.

    \b
    Examples:
      situ status
      situ status --json | jq '.consumers[].waiting'
    """
    import asyncio

    from situ.cli.in_force import find_run
    from situ.cli.kept_actions import numbers
    from situ.cli.looked_at import look
    from situ.cli.suspended import suspended_in
    from situ.host.asked import Asked

    output = begin(context, json=as_json, quiet=quiet)
    live = find_run(project, output)
    found = asyncio.run(look(live))
    actions = numbers(Asked(live.path))
    lost = suspended_in(live) if found.running else ()

    def shown() -> Shown:
        from situ.cli.show_actions import show_numbers
        from situ.cli.show_status import show_status
        from situ.cli.suspended import show_suspended

        yield from show_status(found)
        yield from show_numbers(actions)
        yield from show_suspended(lost)

    suspended = [{"kind": each.kind, "name": each.name} for each in lost]
    output.answer(lambda: {**found.as_json(), "actions": actions, "suspended": suspended}, shown)
    if found.problem is not None:
        return Exit.UNREACHABLE
    return Exit.DONE if found.running else Exit.NO
