"""``situ explain policy``: what a policy means, and how it is detected."""

from __future__ import annotations

from typing import Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin


def policy_completion(incomplete: str) -> list[str]:
    from situ.cli.opened import open_project

    try:
        return [name for name in open_project(None).deployment.policies if name.startswith(incomplete)]
    except (Stop, OSError):
        return []


def explain_policy(
    context: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE", help="A policy of the project, or a file with one.", autocompletion=policy_completion
        ),
    ],
    svg: Annotated[str, typer.Option("--svg", metavar="FILE", help="Draw the logic tree into this file.")] = "",
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Explain a policy: its text, its normal form, its logic tree, and the plan by which it is detected.

    While the project runs it is explained as it is in force. A file is explained as if it were part of that: what it
    shares with the policies there is shown, too.

    \b
    Examples:
      situ explain policy unaccompanied-guest
      situ explain policy new.dpl --svg tree.svg
    """
    import asyncio
    from pathlib import Path

    from situ.cli.draw_tree import draw_tree
    from situ.cli.explained_policy import explain_policy, find_policy, read_policy
    from situ.cli.files import read_file, write_new
    from situ.cli.in_force import deployment_in_force
    from situ.cli.show_policy import show_policy

    output = begin(context, json=as_json, quiet=quiet)
    deployment = asyncio.run(deployment_in_force(project, output))
    policy = read_policy(read_file(name), name, deployment) if _is_file(name) else find_policy(name, deployment)
    explained = explain_policy(policy, deployment.ontology, deployment.policies.values())
    if svg:
        write_new(Path(svg), draw_tree(explained.tree), overwrite=True)
    output.answer(explained.as_json, lambda: show_policy(explained))
    if svg:
        output.note(f"The logic tree is drawn in {svg}.")
    return Exit.DONE


def _is_file(name: str) -> bool:
    from situ.cli.files import STDIN

    return name == STDIN or "/" in name or name.endswith(".dpl")
