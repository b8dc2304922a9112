"""``situ check``: is everything declared as it should be?"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.project.check import Checked


def check(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show observations, too.")] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option("--snapshot", metavar="FILE", help="Write what is declared, for `situ diff`.", show_default=False),
    ] = None,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Check the whole project.

    Shows every problem with its place and a hint. Ends with 1 if there are errors; warnings and observations do not
    count.

    \b
    Examples:
      situ check
      situ check -v --project examples/smart-building
      situ check --json | jq '.problems[].code'
    """
    from situ.cli.opened import locate_project
    from situ.cli.progress import progress
    from situ.project.check import check_folder

    output = begin(context, json=as_json, quiet=quiet)
    path = locate_project(project)
    begun = time.perf_counter()
    with progress("Checking", shown=output.has_terminal) as advance:
        checked = check_folder(path, progress=advance)
    seconds = time.perf_counter() - begun
    if snapshot is not None and checked.deployment is not None:
        from situ.project.snapshot import write_snapshot

        write_snapshot(checked.deployment, snapshot)
    if as_json:
        output.data(_as_json(checked, seconds))
    else:
        from situ.cli.show_check import show_check

        output.show(show_check(checked, seconds, verbose=verbose, summary=not quiet))
    return Exit.NO if checked.errors else Exit.DONE


def _as_json(checked: Checked, seconds: float) -> dict[str, Any]:
    from situ.cli.show_check import counts

    deployment = checked.deployment
    return {
        "project": str(checked.path),
        "problems": [problem.as_json() for problem in checked.problems],
        "summary": {**counts(checked), "seconds": round(seconds, 3)},
        "digest": None if deployment is None else deployment.digest,
    }
