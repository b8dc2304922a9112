"""``situ explain policy``: what a policy means, and how it is detected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from situ.deployment import Deployment
    from situ.situation.policy import Policy


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

    A file is explained as if it were part of the project: what it shares with its policies is shown, too.

    \b
    Examples:
      situ explain policy unaccompanied-guest
      situ explain policy new.dpl --svg tree.svg
    """
    from pathlib import Path

    from situ.cli.draw_tree import draw_tree
    from situ.cli.explained_policy import explain_policy
    from situ.cli.files import write_new
    from situ.cli.opened import open_project
    from situ.cli.show_policy import show_policy

    output = begin(context, json=as_json, quiet=quiet)
    deployment = open_project(project).deployment
    policy = _from_file(name, deployment) if _is_file(name) else _of_name(name, deployment)
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


def _of_name(name: str, deployment: Deployment) -> Policy:
    from situ.catalogue import UNKNOWN_POLICY
    from situ.errors import nearest

    found = deployment.policies.get(name)
    if found is None:
        raise Stop(Exit.NO, UNKNOWN_POLICY(name=name, nearest=nearest(name, deployment.policies)))
    return found


def _from_file(file: str, deployment: Deployment) -> Policy:
    from pathlib import Path

    from situ.cli.files import read_file
    from situ.errors import Problems, SituError
    from situ.situation.check_policy import check_policy
    from situ.situation.parse import parse_policy

    problems = Problems()
    try:
        written = parse_policy(read_file(file), file)
    except SituError as error:
        raise Stop(Exit.NO, *error.problems) from None
    policy = check_policy(written, deployment.domain, problems, name=Path(file).stem)
    if policy is None:
        raise Stop(Exit.NO, *problems.sorted())
    return policy
