"""``situ init`` and ``situ schemas``: a new project, and what editors need to help with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin


def init(
    context: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder to make; it must be new or empty.")] = Path(),
    example: Annotated[
        bool, typer.Option("--example", help="Start from a building with readers and cameras instead.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the project, instead of the folder's.", show_default=False)
    ] = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Make a project.

    It is small, but complete and without errors. Nothing is overwritten.

    \b
    Examples:
      situ init my-project
      situ init building --example
    """
    from situ.catalogue import FOLDER_NOT_EMPTY
    from situ.errors import SituError
    from situ.project.create import create_project

    output = begin(context, json=as_json, quiet=quiet)
    try:
        files = create_project(path, name=name, example=example)
    except SituError as error:
        full = any(problem.code is FOLDER_NOT_EMPTY for problem in error.problems)
        raise Stop(Exit.REFUSED if full else Exit.USAGE, *error.problems) from None
    if as_json:
        output.data({"project": str(path), "files": [str(file) for file in files]})
    else:
        output.say(_next_steps(path, files))
    return Exit.DONE


def _next_steps(path: Path, files: tuple[Path, ...]) -> str:
    listed = "\n".join(f"  {file}" for file in files if ".situ" not in file.parts)
    enter = "" if path.absolute() == Path.cwd() else f"  cd {path}\n"
    return (
        f"Made a project:\n{listed}\n\n"
        f"Next:\n{enter}"
        "  situ check            is everything declared as it should be?\n"
        "  situ explain types    what is there\n"
    ).rstrip("\n")


def schemas(context: typer.Context, project: Project = None, as_json: Json = False, quiet: Quiet = False) -> Exit:
    """Write JSON Schemas of the project's files, for editors.

    With them editors complete and check while you type; files of a new project point to them in their first line. They
    go to .situ/schemas and belong to this release: write them again after an update.

    \b
    Examples:
      situ schemas
    """
    from situ.cli.opened import locate_project
    from situ.project.schemas import write_schemas

    output = begin(context, json=as_json, quiet=quiet)
    files = write_schemas(locate_project(project))
    if as_json:
        output.data({"files": [str(file) for file in files]})
    else:
        output.say("Wrote\n" + "\n".join(f"  {file}" for file in files))
    return Exit.DONE
