"""``situ diff``: what would change?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.deployment import Deployment


def diff(
    context: typer.Context,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PATH",
            help="A project folder, or a snapshot that `situ check` wrote; without it everything is new.",
            show_default=False,
        ),
    ] = None,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Show what differs from another folder or a snapshot.

    What is declared counts, not how it is written. Ends with 0 if both declare the same, with 1 if not.

    \b
    Examples:
      situ check --snapshot before.json
      situ diff --against before.json
      situ diff --against ../production
    """
    from situ.cli.opened import open_project
    from situ.cli.show_difference import show_difference
    from situ.deployment import difference

    output = begin(context, json=as_json, quiet=quiet)
    new = open_project(project).deployment
    old = _other(against) if against is not None else None
    changes = difference(old, new)
    if as_json:
        digests = {"before": None if old is None else old.digest, "after": new.digest}
        output.data({"changes": [change.as_json() for change in changes], "digests": digests})
    else:
        output.show(show_difference(changes, summary=not quiet))
    return Exit.NO if changes else Exit.DONE


def _other(path: Path) -> Deployment:
    from situ.cli.opened import open_project
    from situ.errors import SituError
    from situ.project.snapshot import read_snapshot

    if path.is_dir():
        return open_project(path).deployment
    try:
        return read_snapshot(path)
    except SituError as error:
        raise Stop(Exit.REFUSED if path.exists() else Exit.USAGE, *error.problems) from None
