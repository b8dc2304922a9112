"""``situ quality`` and ``situ explain quality``: what is expected and offered, what holds, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Credentials, Project, Server, common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ quality``: who expects what, who can do what, what holds.


@common_options
def quality(
    output: Output,
    project: Project = None,
    credentials: Credentials = None,
    server: Server = "",
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

    if credentials is not None or server:
        found = asyncio.run(_as_client(project, output, credentials, server))
    else:
        found = asyncio.run(_as_operator(project, output))

    def shown() -> Any:
        from situ.cli.render.quality import show_quality

        return show_quality(found)

    output.answer(lambda: found, shown)
    return Exit.DONE


async def _as_operator(project: Path | None, output: Output) -> dict[str, Any]:
    from situ.cli.connection import ask_quality
    from situ.cli.project import find_run

    body, _ = await ask_quality(find_run(project, output), {})
    return body


async def _as_client(project: Path | None, output: Output, credentials: Path | None, server: str) -> dict[str, Any]:
    from situ.cli.connection import as_client
    from situ.client.connection import connect

    who = as_client(project, "", credentials, server, output)
    async with connect(who.place, client=who.name, **who.options) as node:
        return {"expectations": [each.as_json() for each in await node.expectations.states()]}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ explain quality``: why an expectation is met or is not, and what a publisher is asked to do for whom.


@common_options
def explain_quality(
    output: Output,
    name: Annotated[str, typer.Argument(metavar="[EXPECTATION]", help="The id of an expectation.")] = "",
    publisher: Annotated[
        str,
        typer.Option("--publisher", metavar="CLIENT", help="Instead: what this publisher is asked to do."),
    ] = "",
    project: Project = None,
    credentials: Credentials = None,
    server: Server = "",
) -> Exit:
    """Explain how an expectation stands with every publisher, what would satisfy it, and why that is not done.

    Of a publisher: what is claimed of it, what each claim pays for, what it did before, and what it is advised.

    With --credentials a client asks about an expectation of its own; who publishes is not told.

    \b
    Examples:
      situ explain quality watch
      situ explain quality --publisher badge-reader
      situ explain quality watch --credentials desk.creds
    """
    import asyncio

    if name and publisher:
        raise typer.BadParameter("name an expectation or a publisher, not both", param_hint="'--publisher'")
    if not name and not publisher:
        raise typer.BadParameter("name an expectation, or a publisher with --publisher", param_hint="'EXPECTATION'")
    as_client = credentials is not None or bool(server)
    if as_client and publisher:
        raise typer.BadParameter("only who runs the project may ask", param_hint="'--publisher'")
    if as_client:
        data, text = asyncio.run(_explain_as_client(project, output, credentials, server, name))
    else:
        data, text = asyncio.run(_explain_as_operator(project, output, name or publisher, publisher=bool(publisher)))

    def shown() -> Any:
        from rich.text import Text

        from situ.cli.output import visible

        return [Text(visible(text))]

    output.answer(lambda: data, shown)
    return Exit.DONE


async def _explain_as_operator(
    project: Path | None, output: Output, about: str, *, publisher: bool
) -> tuple[dict[str, Any], str]:
    from situ.cli.connection import ask_quality
    from situ.cli.project import find_run

    return await ask_quality(find_run(project, output), {"about": about, "publisher": publisher})


async def _explain_as_client(
    project: Path | None, output: Output, credentials: Path | None, server: str, name: str
) -> tuple[dict[str, Any], str]:
    from situ.cli.connection import as_client
    from situ.client.connection import connect

    who = as_client(project, "", credentials, server, output)
    async with connect(who.place, client=who.name, **who.options) as node:
        told = await node.expectations.explain(name)
    return dict(told.answer), told.text
