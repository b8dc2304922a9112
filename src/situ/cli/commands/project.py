"""``situ fmt``: the project's files in their one form."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.options import Json, Project, Quiet, begin
from situ.cli.output import visible


class Form(StrEnum):
    """What a file can be converted to."""

    YAML = "yaml"


def fmt(
    context: typer.Context,
    files: Annotated[
        list[Path] | None,
        typer.Argument(metavar="FILES", help="Only these files of the project.", show_default=False),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Change nothing; end with 1 if something would change.")
    ] = False,
    to: Annotated[
        Form | None,
        typer.Option("--to", help="Show a context that is in XML in this form, without its comments; change nothing."),
    ] = None,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
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
    output = begin(context, json=as_json, quiet=quiet)
    if to is not None:
        file, text = _converted(files or [], project)
        if as_json:
            output.data({"file": file, "form": to.value, "text": text})
        else:
            output.text(text)
        return Exit.DONE
    changed = _format_files(files, project, check) if files else _format_project(project, check)
    if as_json:
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
    from situ.cli.opened import locate_project
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
    from situ.cli.files import read_file
    from situ.documents import parse_yaml
    from situ.errors import Problems
    from situ.interpretation.xml_form import parse_context_xml
    from situ.project.format import format_text
    from situ.project.places import is_policy, is_xml
    from situ.situation.language.parse import parse_policy

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
    from situ.cli.files import read_file
    from situ.errors import Problems
    from situ.interpretation.xml_form import parse_context_xml
    from situ.interpretation.yaml_form import as_yaml
    from situ.project.places import is_xml

    if len(files) != 1 or not is_xml(_name_in_project(files[0], project)):
        raise typer.BadParameter("name one file contexts/*.xml", param_hint="'FILES' / '--to'")
    document = parse_context_xml(read_file(str(files[0])), str(files[0]))
    Problems(document.problems).raise_errors()
    return str(files[0]), as_yaml(document)


def _name_in_project(file: Path, project: Path | None) -> str:
    """What the file is called inside the project, which decides what is expected in it."""
    from situ.catalogue import NOT_OF_PROJECT
    from situ.cli.opened import locate_project, project_of
    from situ.errors import Location
    from situ.project.places import FOLDERS, SETTINGS_FILE, kind_of

    place = file.resolve()
    folder = (locate_project(project) if project is not None else project_of(place.parent)).resolve()
    name = place.relative_to(folder).as_posix() if place.is_relative_to(folder) else ""
    if kind_of(name) is None:
        known = (SETTINGS_FILE, *(f"{each}/*.yaml" for each in FOLDERS))
        raise Stop(Exit.USAGE, NOT_OF_PROJECT(Location(file=str(file)), project=str(folder), known=known))
    return name
