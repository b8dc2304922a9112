"""The options that every command has, and what they are turned into."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from situ.cli.exits import Exit
from situ.cli.output import Output

Project = Annotated[
    Path | None,
    typer.Option(
        "--project",
        metavar="PATH",
        help="The project folder; by default the nearest folder upwards with a situ.yaml.",
        show_default=False,
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result.")]

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
    typer.Option("--new", help="The client that --client names is new, although its name is similar to another."),
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


def common_options(command: Callable[..., Exit]) -> Callable[..., Exit]:
    """Give a command the options that all have, behind its own: --project, --json and --quiet.

    It takes the output that they set up, then ``project`` if it is about one. A command that has other options behind
    --project declares that itself, where it stands.
    """
    return _with_options(command, {"json": Json, "quiet": Quiet})


def quiet_option(command: Callable[..., Exit]) -> Callable[..., Exit]:
    """The same for a command whose answer is a file for others, and never JSON."""
    return _with_options(command, {"quiet": Quiet})


def _with_options(command: Callable[..., Exit], options: Mapping[str, Any]) -> Callable[..., Exit]:
    own = dict(inspect.signature(command).parameters)
    hints = get_type_hints(command, localns={"Output": Output, "Path": Path}, include_extras=True)
    del own["output"]
    passes_context = own.pop("context", None) is not None
    parameters: dict[str, tuple[Any, Any]] = {"context": (typer.Context, inspect.Parameter.empty)}
    parameters |= {name: (hints[name], each.default) for name, each in own.items()}
    if "project" in own and own["project"].default is inspect.Parameter.empty:
        del parameters["project"]
        parameters["project"] = (Project, None)
    parameters |= {name: (option, False) for name, option in options.items()}

    @wraps(command)
    def run(context: typer.Context, **given: Any) -> Exit:
        # situ.cli.app.run made the output, and sees what is set here, too.
        output: Output = context.obj
        output.json, output.quiet = given.pop("json", False), given.pop("quiet")
        return command(output, **given, **({"context": context} if passes_context else {}))

    # typer reads both. By keyword: arguments without a default may stand behind options that have one.
    run.__annotations__ = {name: annotation for name, (annotation, _) in parameters.items()}
    run.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
            for name, (annotation, default) in parameters.items()
        ]
    )
    return run
