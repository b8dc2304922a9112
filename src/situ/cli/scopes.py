"""``situ scopes``: who is in what, drawn; and the commands by which that is changed stand below it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.groups import group
from situ.cli.options import Json, Project, Quiet, begin
from situ.cli.rescope import (
    carriers,
    command_of,
    drop,
    grant,
    history,
    join,
    leave,
    link,
    mode,
    put,
    revoke,
    set_filter,
)

app = group(
    "scopes",
    """Draw scopes: what is in what, the filters at their boundaries, and the clients in them.

    Edges go from a scope up to what it is in. A scope that is in several is shown below each of them, and what is in it
    below the first. While the project runs its scopes are drawn as they are in force.

    \b
    Examples:
      situ scopes
      situ scopes --dimension membership --svg membership.svg
      situ scopes join press-7 line-a --dimension membership
    """,
)


@app.callback(invoke_without_command=True)
def scopes(
    context: typer.Context,
    dimension: Annotated[
        str, typer.Option("--dimension", "-d", metavar="NAME", help="Only this one.", show_default=False)
    ] = "",
    svg: Annotated[
        str, typer.Option("--svg", metavar="FILE", help="Draw them into this file, too.", show_default=False)
    ] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Its help is the one above."""
    import asyncio
    from pathlib import Path

    from situ.cli.draw_scopes import draw_scopes
    from situ.cli.files import write_new
    from situ.cli.in_force import deployment_in_force
    from situ.visibility.json_form import scopes_as_json
    from situ.visibility.rights import unknown_dimension

    if context.invoked_subcommand is not None:
        return Exit.DONE
    output = begin(context, json=as_json, quiet=quiet)
    deployment = asyncio.run(deployment_in_force(project, output))
    graph = deployment.scopes
    if dimension and dimension not in graph.dimensions:
        raise Stop(Exit.NO, unknown_dimension(graph, dimension))
    wanted = (dimension,) if dimension else tuple(graph.dimensions)
    if svg:
        write_new(Path(svg), draw_scopes(graph, wanted), overwrite=True)

    def shown() -> Any:
        from situ.cli.show_scopes import show_scopes

        return show_scopes(graph, wanted)

    def data() -> dict[str, Any]:
        written = scopes_as_json(graph)
        epoch = {"epoch": deployment.epoch} if deployment.epoch else {}
        return {**epoch, **written, "dimensions": {name: written["dimensions"][name] for name in wanted}}

    output.answer(data, shown)
    if deployment.epoch:
        output.note(f"Epoch {deployment.epoch}, version {deployment.version}.")
    if svg:
        output.note(f"The scopes are drawn in {svg}.")
    return Exit.DONE


for _each in (join, leave, put, drop, link, carriers, mode, grant, revoke):
    app.command()(command_of(_each))
app.command("filter")(command_of(set_filter))
app.command()(history)
