"""``situ test``: are policies detected as their tests expect?"""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from situ.cli.exits import Exit
from situ.cli.explain_policies import policy_completion
from situ.cli.options import Json, Project, Quiet, begin


def run_policy_tests(
    context: typer.Context,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME|FILE]...",
            help="Tests of these policies, or these files; by default all of the project.",
            autocompletion=policy_completion,
        ),
    ] = None,
    engine: Annotated[
        Literal["edge", "spark", "reference"],
        typer.Option(
            "--engine",
            help="edge: event by event, at once. spark: the same in batches on Spark, which takes seconds to start. "
            "reference: by definition, slowly; nothing is late.",
        ),
    ] = "edge",
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show what was expected of tests that pass.")
    ] = False,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Run the tests of policies, `policies/*.test.yaml`.

    Each gives events and the rows of tables, and says which situations are to come of them. Nothing needs to run, and
    nothing is published. Ends with 1 if something else came, or if a test cannot be understood.

    \b
    Examples:
      situ test
      situ test unaccompanied-guest -v
      situ test --engine spark
      situ test policies/night-watch.test.yaml --engine reference
    """
    from situ.cli.opened import open_project
    from situ.cli.progress import progress
    from situ.cli.show_test import show_tests, tests_as_json
    from situ.cli.tested import find_tests, run_tests

    output = begin(context, json=as_json, quiet=quiet)
    opened = open_project(project)
    files = find_tests(opened, names or ())
    with progress(f"Testing on {engine}", shown=output.has_terminal):
        tested = run_tests(opened, files, engine=engine)
    output.answer(
        lambda: tests_as_json(tested), lambda: show_tests(tested, opened.path, verbose=verbose, summary=not quiet)
    )
    return Exit.DONE if all(each.passed for each in tested) else Exit.NO
