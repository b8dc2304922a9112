"""The options that every command has, and what they are turned into."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from situ.cli.output import Output

Project = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="PATH",
        help="The project folder; by default the nearest one upwards that has a situ.yaml.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Answer with JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say only what was asked for.")]

Credentials = Annotated[
    Path | None,
    typer.Option(
        "--credentials",
        metavar="FILE",
        help="Connect with these credentials of the client, as `situ client add` wrote them.",
        show_default=False,
    ),
]
Server = Annotated[
    str,
    typer.Option(
        "--server",
        metavar="URL",
        help="The bus, where there is no project folder; needs --credentials.",
        show_default=False,
    ),
]

InScopes = Annotated[
    list[str] | None,
    typer.Option(
        "--scope",
        metavar="DIMENSION=SCOPE",
        help="The scope of the client that this is in, any, or rest=any; repeatable.",
        show_default=False,
    ),
]


New = Annotated[
    bool,
    typer.Option(
        "--new", help="The client that --client names is new, and no slip, however much it looks like another."
    ),
]


def read_scopes(given: list[str] | None) -> dict[str, list[str]] | None:
    """What is said of scopes, as a node takes it; None if nothing is."""
    scopes: dict[str, list[str]] = {}
    for each in given or ():
        dimension, sign, scope = each.partition("=")
        if not (dimension and sign and scope):
            raise typer.BadParameter(
                f"{each!r} names no scope of a dimension: write membership=line-a", param_hint="'--scope'"
            )
        scopes.setdefault(dimension, []).append(scope)
    return scopes or None


OF_COMMANDS = ("--project", "--json", "--quiet", "-q")
"""What these are called, for whoever writes them before the command."""


def begin(context: typer.Context, *, json: bool, quiet: bool) -> Output:
    """The command's output, set up as its options say; :func:`situ.cli.app.run` made it and sees it, too."""
    output: Output = context.obj
    output.json, output.quiet = json, quiet
    return output
