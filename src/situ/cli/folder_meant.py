"""The project that somebody names as an argument, where it is the option ``--project``: `situ check FOLDER`."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

import typer

_OPTION = "--project"


def remedy_for_usage(error: typer.TyperException, given: Sequence[str]) -> str:
    """For an argument too much: how the folder is named, if the command has one and it may be what was meant."""
    context = getattr(error, "ctx", None)
    if context is None or "unexpected extra argument" not in error.message:
        return ""
    if _OPTION not in (name for each in context.command.params for name in each.opts) or _is_said(given):
        return ""
    takes_arguments = any(each.param_type_name == "argument" for each in context.command.params)
    meant = next((each for each in reversed(given) if Path(each).is_dir()), None)
    if meant is None and not takes_arguments:
        meant = next((each for each in reversed(given) if not each.startswith("-")), None)
    return "" if meant is None else _remedy(context.command_path, meant)


def remedy_for_place(given: Sequence[str]) -> str:
    """For a project or a file that is not there: an argument that is the folder of a project, if one is."""
    if _is_said(given):
        return ""
    meant = next((each for each in given if (Path(each) / "situ.yaml").is_file()), None)
    if meant is None:
        return ""
    return _remedy("situ " + shlex.join(each for each in given if each != meant), meant)


def _remedy(command: str, meant: str) -> str:
    return f"The folder of a project is named by an option: `{command} {_OPTION} {shlex.quote(meant)}`."


def _is_said(given: Sequence[str]) -> bool:
    return any(each == _OPTION or each.startswith(f"{_OPTION}=") for each in given)
