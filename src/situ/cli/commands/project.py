"""Commands about the files of a project: ``situ init``, ``schemas``, ``check``, ``diff``, ``fmt`` and ``test``."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from situ.cli.commands.explain_policy import policy_completion
from situ.cli.exits import CommandError, Exit
from situ.cli.options import common_options
from situ.cli.output import visible

if TYPE_CHECKING:
    from situ.cli.output import Output
    from situ.model import Deployment
    from situ.model.visibility_diff import VisibilityChange
    from situ.project.check import CheckedProject


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ init`` and ``situ schemas``: a new project, and what editors need to help with it.


@common_options
def init(
    output: Output,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="The folder to make; it must be new or empty.")] = Path(),
    example: Annotated[
        bool, typer.Option("--example", help="Start from a building with readers and cameras instead.")
    ] = False,
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the project, instead of the folder's.", show_default=False)
    ] = None,
) -> Exit:
    """Make a project.

    It is small, but complete and without errors. Nothing is overwritten.

    \b
    Examples:
      situ init my-project
      situ init building --example
    """
    from situ.lang.catalogue import FOLDER_NOT_EMPTY
    from situ.lang.problems import SituError
    from situ.project.create import create_project

    try:
        files = create_project(path, name=name, example=example)
    except SituError as error:
        full = any(problem.code is FOLDER_NOT_EMPTY for problem in error.problems)
        raise CommandError(Exit.REFUSED if full else Exit.USAGE, *error.problems) from None
    if output.json:
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


@common_options
def schemas(output: Output, project: Path | None) -> Exit:
    """Write JSON Schemas of the project's files, for editors.

    With them editors complete and check while you type; files of a new project point to them in their first line. They
    go to .situ/schemas and belong to this release: write them again after an update.

    \b
    Examples:
      situ schemas
    """
    from situ.cli.project import locate_project
    from situ.project.schemas import write_schemas

    files = write_schemas(locate_project(project))
    if output.json:
        output.data({"files": [str(file) for file in files]})
    else:
        output.say("Wrote\n" + "\n".join(f"  {file}" for file in files))
    return Exit.DONE


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ check``: is everything declared as it should be?


@common_options
def check(
    output: Output,
    project: Path | None,
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
            help="Another project folder, such as an older version: list who sees more or less than there.",
            show_default=False,
        ),
    ] = None,
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
    from situ.cli.progress import progress, seconds_since_start
    from situ.cli.project import locate_project
    from situ.project.check import check_folder

    path = locate_project(project)
    with progress("Checking", shown=output.has_terminal) as advance:
        checked = check_folder(path, progress=advance)
    if snapshot is not None and checked.deployment is not None:
        from situ.project.snapshot import write_snapshot

        write_snapshot(checked.deployment, snapshot)
    changes = None if against is None or checked.deployment is None else _against(against, checked.deployment)
    if output.json:
        data = _as_json(checked, seconds_since_start())
        output.data(data if changes is None else {**data, "against": [each.as_json() for each in changes]})
    else:
        from situ.cli.render.check import show_check

        output.show(show_check(checked, seconds_since_start(), verbose=verbose, summary=not output.quiet))
        if changes is not None:
            from situ.cli.render.registry import show_against

            output.show(show_against(changes, str(against)))
    return Exit.NO if checked.errors else Exit.DONE


def _against(path: Path, deployment: Deployment) -> tuple[VisibilityChange, ...]:
    """Who sees more or less than in another folder, which must be in order itself."""
    from situ.cli.project import locate_project, relative_to_here
    from situ.model.visibility_diff import visibility_changes
    from situ.project.check import check_folder

    other = check_folder(locate_project(path))
    if other.deployment is None:
        raise CommandError(Exit.REFUSED, *relative_to_here(other.errors, other.path))
    return tuple(visibility_changes(other.deployment, deployment))


def _as_json(checked: CheckedProject, seconds: float) -> dict[str, Any]:
    from situ.cli.render.check import counts

    deployment = checked.deployment
    return {
        "project": str(checked.path),
        "problems": [problem.as_json() for problem in checked.problems],
        "summary": {**counts(checked), "seconds": round(seconds, 3)},
        "digest": None if deployment is None else deployment.digest,
    }


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ diff``: what would change?


@common_options
def diff(
    output: Output,
    project: Path | None,
    against: Annotated[
        Path | None,
        typer.Option(
            "--against",
            metavar="PATH",
            help="A project folder, or a snapshot that `situ check` wrote; without it everything is new.",
            show_default=False,
        ),
    ] = None,
) -> Exit:
    """Show what differs from another folder or a snapshot.

    What is declared counts, not how it is written. Ends with 0 if both declare the same, with 1 if not.

    \b
    Examples:
      situ check --snapshot before.json
      situ diff --against before.json
      situ diff --against ../production
    """
    from situ.cli.project import open_project
    from situ.cli.render.registry import show_difference
    from situ.model import diff_deployments

    new = open_project(project).deployment
    old = _other(against) if against is not None else None
    changes = diff_deployments(old, new)
    if output.json:
        digests = {"before": None if old is None else old.digest, "after": new.digest}
        output.data({"changes": [change.as_json() for change in changes], "digests": digests})
    else:
        output.show(show_difference(changes, summary=not output.quiet))
    return Exit.NO if changes else Exit.DONE


def _other(path: Path) -> Deployment:
    from situ.cli.project import open_project
    from situ.lang.problems import SituError
    from situ.project.snapshot import read_snapshot

    if path.is_dir():
        return open_project(path).deployment
    try:
        return read_snapshot(path)
    except SituError as error:
        raise CommandError(Exit.REFUSED if path.exists() else Exit.USAGE, *error.problems) from None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ fmt``: the project's files in their one form.


class ContextFormat(StrEnum):
    """What a file can be converted to."""

    YAML = "yaml"


@common_options
def fmt(
    output: Output,
    project: Path | None,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Only these files of the project.", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; end with 1 if something would change.")
    ] = False,
    to: Annotated[
        ContextFormat | None,
        typer.Option("--to", help="Show a context that is in XML in this form, without its comments; change nothing."),
    ] = None,
) -> Exit:
    """Give the project's files their one form.

    Comments, order and meaning stay. Contexts in XML stay as they are.

    \b
    Examples:
      situ fmt
      situ fmt --check
      situ fmt types/events.yaml
      situ fmt --to yaml contexts/us.xml > contexts/us.yaml
    """
    if to is not None:
        file, text = _converted(files or [], project)
        if output.json:
            output.data({"file": file, "form": to.value, "text": text})
        else:
            output.text(text)
        return Exit.DONE
    changed = _format_files(files, project, check) if files else _format_project(project, check)
    if output.json:
        output.data({"changed": list(changed), "written": not check})
        return Exit.NO if check and changed else Exit.DONE
    for file in changed:
        output.text(f"{visible(file)}\n")
    if not changed:
        output.note("Everything is in form.")
    elif check:
        output.note("These would change: run `situ fmt`.")
    return Exit.NO if check and changed else Exit.DONE


def _format_project(project: Path | None, check: bool) -> tuple[str, ...]:
    from situ.cli.project import locate_project
    from situ.project.format import format_folder

    return format_folder(locate_project(project), write=not check)


def _format_files(files: list[Path], project: Path | None, check: bool) -> tuple[str, ...]:
    """All are read before any is written: a slip in the last name changes none of the others."""
    from situ.project.format import replace_file

    formatted = [(file, *_formatted(file, project)) for file in files]
    changed = [(file, after) for file, before, after in formatted if before != after]
    if not check:
        for file, after in changed:
            replace_file(file.resolve(), after)
    return tuple(str(file) for file, _ in changed)


def _formatted(file: Path, project: Path | None) -> tuple[str, str]:
    """The file as it is and as it should be; a file that is not right has no form."""
    from situ.cli.arguments import read_file
    from situ.contexts.xml_form import parse_context_xml
    from situ.lang.documents import parse_yaml
    from situ.lang.problems import Problems
    from situ.policies.language.parse import parse_policy
    from situ.project.folder import is_policy, is_xml
    from situ.project.format import format_text

    data = read_file(str(file))
    name = _name_in_project(file, project)
    if is_policy(name):
        parse_policy(data, str(file))
        text = data.decode("utf-8")
        return text, format_text(text, name)
    document = parse_context_xml(data, str(file)) if is_xml(name) else parse_yaml(data, str(file))
    Problems(document.problems).raise_errors()
    text = data.decode("utf-8")
    return text, format_text(text, name)


def _converted(files: list[Path], project: Path | None) -> tuple[str, str]:
    """One context of XML in YAML."""
    from situ.cli.arguments import read_file
    from situ.contexts.xml_form import as_yaml, parse_context_xml
    from situ.lang.problems import Problems
    from situ.project.folder import is_xml

    if len(files) != 1 or not is_xml(_name_in_project(files[0], project)):
        raise typer.BadParameter("name one file contexts/*.xml", param_hint="'FILES' / '--to'")
    document = parse_context_xml(read_file(str(files[0])), str(files[0]))
    Problems(document.problems).raise_errors()
    return str(files[0]), as_yaml(document)


def _name_in_project(file: Path, project: Path | None) -> str:
    """What the file is called inside the project, which decides what is expected in it."""
    from situ.cli.project import locate_project, project_of
    from situ.lang.catalogue import NOT_OF_PROJECT
    from situ.lang.problems import Location
    from situ.project.folder import FOLDERS, SETTINGS_FILE, kind_of

    place = file.resolve()
    folder = (locate_project(project) if project is not None else project_of(place.parent)).resolve()
    name = place.relative_to(folder).as_posix() if place.is_relative_to(folder) else ""
    if kind_of(name) is None:
        known = (SETTINGS_FILE, *(f"{each}/*.yaml" for each in FOLDERS))
        raise CommandError(Exit.USAGE, NOT_OF_PROJECT(Location(file=str(file)), project=str(folder), known=known))
    return name


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ test``: are policies detected as their tests expect?


@common_options
def run_policy_tests(
    output: Output,
    project: Path | None,
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
    from situ.cli.progress import progress
    from situ.cli.project import find_named_tests, open_project
    from situ.cli.render.policy_tests import show_tests, tests_as_json
    from situ.project.policy_tests import run_tests

    opened = open_project(project)
    files = find_named_tests(opened, names or ())
    with progress(f"Testing on {engine}", shown=output.has_terminal):
        tested = run_tests(opened, files, engine=engine)
    output.answer(
        lambda: tests_as_json(tested),
        lambda: show_tests(tested, opened.path, verbose=verbose, summary=not output.quiet),
    )
    return Exit.DONE if all(each.passed for each in tested) else Exit.NO
