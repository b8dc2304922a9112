"""The page of all commands, from the command line's own help."""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Iterator
from enum import Enum
from typing import Any

import typer.main

from reference.markdown import anchored, block, code, head, sections, table
from situ.cli import exits
from situ.cli.app import app

_VERBATIM = "\b"  # in a help text, marks a paragraph that is shown as it is
_SHARED = ("--project", "--json", "--quiet", "--help")

_INTRODUCTION = """\
`situ COMMAND --help` shows the same in the terminal, in the words of the installed version.
"""

_COMMON = """\
Most commands take these options; the tables below leave them out.
"""


def page() -> str:
    root = typer.main.get_command(app)
    commands = list(_commands(root, "situ"))
    return sections(
        head("Commands", "src/situ/cli/"),
        _INTRODUCTION,
        table(["command", "does"], ([f"[`{name}`](#{_anchor(name)})", _first(each.help)] for name, each in commands)),
        "## For all commands\n",
        _COMMON,
        _options(_shared(commands)),
        "## Exit codes\n",
        table(["code", "name", "meaning"], _exits()),
        *(_command(name, each) for name, each in commands),
    )


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """All commands in the order of the help; groups alone do nothing and are left out."""
    for below in getattr(command, "commands", {}).values():
        if not below.hidden:
            full = f"{name} {below.name}"
            if hasattr(below, "commands"):
                yield from _commands(below, full)
            else:
                yield full, below


def _command(name: str, command: Any) -> str:
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option" and not _is_shared(each)]
    words = [_word(each) for each in arguments]
    usage = " ".join([name, *(["[OPTIONS]"] if command.params else []), *words])
    rows = [*map(_argument, arguments), *map(_option, options)]
    return sections(
        anchored(2, code(name), _anchor(name)),
        block(usage, "text"),
        *_paragraphs(command.help),
        table(["", "meaning", "default"], rows) if rows else "",
    )


def _word(argument: Any) -> str:
    word = argument.metavar + ("…" if argument.nargs != 1 else "")
    return word if argument.required else f"[{word}]"


def _paragraphs(text: str) -> Iterator[str]:
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        if not paragraph.startswith(_VERBATIM):
            yield paragraph
            continue
        title, *lines = paragraph.removeprefix(_VERBATIM).strip("\n").split("\n")
        yield f"{title}\n"
        yield block(inspect.cleandoc("\n".join(lines)), "sh" if title == "Examples:" else "text")


def _options(options: list[Any]) -> str:
    return table(["", "meaning", "default"], map(_option, options))


def _argument(argument: Any) -> list[str]:
    return [code(argument.metavar), argument.help or "", _default(argument)]


def _option(option: Any) -> list[str]:
    names = ", ".join(code(name) for name in option.opts)
    takes = "" if option.is_flag else f" {code(_metavar(option))}"
    return [names + takes, option.help or "", _default(option)]


def _default(parameter: Any) -> str:
    value = getattr(parameter.default, "value", parameter.default)
    return code(str(value)) if parameter.show_default and value not in (None, False, "") else ""


def _metavar(option: Any) -> str:
    """What follows an option: its own word, its choices, or its name."""
    annotation = option.type_descriptor.annotation
    if option.metavar is None and isinstance(annotation, type) and issubclass(annotation, Enum):
        return "|".join(member.value for member in annotation)
    return option.metavar or option.name.upper()


def _shared(commands: list[tuple[str, Any]]) -> list[Any]:
    found = {each.opts[0]: each for _, command in commands for each in command.params if _is_shared(each)}
    return [found[name] for name in _SHARED if name in found]


def _is_shared(option: Any) -> bool:
    return option.param_type_name == "option" and option.opts[0] in _SHARED


def _exits() -> Iterator[list[str]]:
    """Each exit code with the text that stands below it in the source: an enumeration keeps none for its members."""
    (body,) = (each.body for each in ast.parse(inspect.getsource(exits.Exit)).body if isinstance(each, ast.ClassDef))
    for member, text in itertools.pairwise(body):
        if isinstance(member, ast.Assign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            name = member.targets[0].id  # type: ignore[attr-defined]  # members are plain names
            yield [code(str(exits.Exit[name].value)), name.lower(), str(text.value.value)]


def _first(text: str) -> str:
    return inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")


def _anchor(name: str) -> str:
    return name.replace(" ", "-")
