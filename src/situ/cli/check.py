"""``situ check``: is everything declared as it should be?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.deployment import Deployment
    from situ.deployment.sight_changes import SightChange
    from situ.project.check import Checked


def check(
    context: typer.Context,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show observations, too.")] = False,
    snapshot: Annotated[
        Path | None,
        typer.Option("--snapshot", metavar="FILE", help="Write what is declared, for `situ diff`.", show_default=False),
    ] = None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PATH",
            help="Another project folder, such as this one before: list who sees more or less than there.",
            show_default=False,
        ),
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
      git worktree add ../before HEAD && situ check --against ../before
    """
    from situ.cli.opened import locate_project
    from situ.cli.progress import progress, seconds_since_start
    from situ.project.check import check_folder

    output = begin(context, json=as_json, quiet=quiet)
    path = locate_project(project)
    with progress("Checking", shown=output.has_terminal) as advance:
        checked = check_folder(path, progress=advance)
    if snapshot is not None and checked.deployment is not None:
        from situ.project.snapshot import write_snapshot

        write_snapshot(checked.deployment, snapshot)
    changes = None if against is None or checked.deployment is None else _against(against, checked.deployment)
    if as_json:
        data = _as_json(checked, seconds_since_start())
        output.data(data if changes is None else {**data, "against": [each.as_json() for each in changes]})
    else:
        from situ.cli.show_check import show_check

        output.show(show_check(checked, seconds_since_start(), verbose=verbose, summary=not quiet))
        if changes is not None:
            from situ.cli.show_against import show_against

            output.show(show_against(changes, str(against)))
    return Exit.NO if checked.errors else Exit.DONE


def _against(path: Path, deployment: Deployment) -> tuple[SightChange, ...]:
    """Who sees more or less than in another folder, which must be in order itself."""
    from situ.cli.opened import locate_project, seen_from_here
    from situ.deployment.sight_changes import sight_changes
    from situ.project.check import check_folder

    other = check_folder(locate_project(path))
    if other.deployment is None:
        raise Stop(Exit.REFUSED, *seen_from_here(other.errors, other.path))
    return tuple(sight_changes(other.deployment, deployment))


def _as_json(checked: Checked, seconds: float) -> dict[str, Any]:
    from situ.cli.show_check import counts

    deployment = checked.deployment
    return {
        "project": str(checked.path),
        "problems": [problem.as_json() for problem in checked.problems],
        "summary": {**counts(checked), "seconds": round(seconds, 3)},
        "digest": None if deployment is None else deployment.digest,
    }
