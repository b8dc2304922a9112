"""The command ``situ``: its table of commands, and what becomes of problems: messages and exit codes.

`remedy_for_usage` and `remedy_for_place` help whoever names the project folder as an argument instead of by
``--project``. `COMMANDS` says where each command is, `run` executes one.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from situ import __version__
from situ.cli.exits import CommandError, Exit, exit_of
from situ.cli.groups import group, lazy_group
from situ.cli.options import OF_COMMANDS
from situ.cli.output import standard_output
from situ.lang.problems import SituError

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ check FOLDER`` where ``situ check --project FOLDER`` is meant: the remedy names the option.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The commands. A command is imported when it is asked for, and imports what it needs when it runs: ``situ --help``
# costs no more than reading the arguments.

# Where each command or group of commands is, and what the help says of it: the first paragraph of its own.
COMMANDS = {
    "init": ("situ.cli.commands.project:init", "Make a project."),
    "check": ("situ.cli.commands.project:check", "Check the whole project."),
    "diff": ("situ.cli.commands.project:diff", "Show what differs from another folder or a snapshot."),
    "fmt": ("situ.cli.commands.project:fmt", "Give the project's files their one form."),
    "test": ("situ.cli.commands.project:run_policy_tests", "Run the tests of policies, `policies/*.test.yaml`."),
    "run": ("situ.cli.commands.run:run", "Run the project: bus, router and engine, until Ctrl-C."),
    "status": (
        "situ.cli.commands.run:status",
        "Show what runs: engines, streams, durable subscriptions and what waits for them, clients, actions.",
    ),
    "publish": ("situ.cli.commands.publish:publish", "Publish events, and wait until they are stored."),
    "subscribe": ("situ.cli.commands.subscribe:subscribe", "Show events as they come, until Ctrl-C."),
    "tail": ("situ.cli.commands.subscribe:tail", "Show all events of the run as they are stored, until Ctrl-C."),
    "replay": (
        "situ.cli.commands.replay:replay",
        "Replay the root log: which events would each subscription get, or what would a policy detect?",
    ),
    "transform": (
        "situ.cli.commands.transform:transform",
        "Transform events: in through one context, out through another.",
    ),
    "situations": (
        "situ.cli.commands.situations:situations",
        "List the situations that policies detected, the latest last.",
    ),
    "late": ("situ.cli.commands.situations:late", "List events that came too late for policies, the latest last."),
    "quality": (
        "situ.cli.commands.quality:quality",
        "Show what subscribers expect, what publishers can do, what holds, and why not.",
    ),
    "apply": ("situ.cli.commands.registry:apply", "Put what the project declares in force."),
    "get": ("situ.cli.commands.registry:get", "Show what is in force."),
    "add": ("situ.cli.commands.registry:add", "Add one thing to what is in force."),
    "alter": (
        "situ.cli.commands.registry:alter",
        "Put another thing of the same name in the place of one that `situ add` made.",
    ),
    "remove": (
        "situ.cli.commands.registry:remove",
        "Take out one thing that `situ add` made, or that a client left behind.",
    ),
    "suspend": ("situ.cli.commands.registry:suspend", "Let a policy rest until `situ resume`."),
    "resume": ("situ.cli.commands.registry:resume", "Let a policy that was suspended run again, from now on."),
    "schemas": ("situ.cli.commands.project:schemas", "Write JSON Schemas of the project's files, for editors."),
    "dead-letters": (
        "situ.cli.commands.dead_letters:app",
        "Look at events that could not go on, and publish them again.",
    ),
    "actions": (
        "situ.cli.commands.actions:app",
        "Look at what policies asked for that is not done yet, or failed; try it again, or drop it.",
    ),
    "client": ("situ.cli.commands.client:app", "Give clients credentials of their own, and take them back."),
    "package": ("situ.cli.commands.package:app", "Pack what machines of a cluster need to run the project."),
    "types": ("situ.cli.commands.types:app", "Exchange types with JSON Schema, Spark and Arrow."),
    "simulate": (
        "situ.cli.commands.simulate:simulate",
        "Simulate routers of several zones, with faults, and check that everything holds.",
    ),
    "scopes": (
        "situ.cli.commands.scopes:app",
        "Draw scopes: what is in what, the filters at their boundaries, and the clients in them.",
    ),
    "explain": (
        "situ.cli.commands.explain:app",
        (
            "Explain types, expressions, functions, subscriptions, events, visibility, quality, contexts, policies, "
            "detections, codes."
        ),
    ),
}

app = group(
    "situ",
    """Declare, check, run and explain event processing.

    A project is a folder with a situ.yaml. Every command finds it from any folder inside, or is told by --project.

    \b
    Examples:
      situ init my-project --example   a project to start from
      situ check                       all that is wrong in it, with places and hints
      situ explain types               what is declared
      situ run                         bus, router and engine, until Ctrl-C
      situ subscribe Sighting          events as they come
    """,
    cls=lazy_group(COMMANDS),
)


def _version(context: typer.Context, asked: bool) -> None:
    if asked:
        context.obj.text(f"situ {__version__}\n")
        raise typer.Exit(Exit.DONE)


@app.callback()
def situ(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", is_eager=True, callback=_version)
    ] = False,
) -> None:
    """Options of the command itself; its help is the one above."""


_GROUPS: tuple[list[str], ...] = ([], ["types"], ["explain"], ["dead-letters"], ["actions"], ["client"])


def run(arguments: Sequence[str]) -> Exit:
    """Run one command to its end; a group without a command shows its help."""
    output = standard_output()
    given = list(arguments)
    try:
        asked = [*given, "--help"] if given in _GROUPS else given
        return Exit(app(args=asked, prog_name="situ", obj=output, standalone_mode=False))
    except typer.TyperException as error:
        output.complain(_usage(error, given))
        return Exit.USAGE
    except CommandError as stop:
        output.refuse(stop.problems)
        if stop.code is Exit.USAGE and not output.json and (remedy := remedy_for_place(given)):
            output.complain(remedy)
        return stop.code
    except SituError as error:
        output.refuse(error.problems)
        return exit_of(error)
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        output.complain(f"situ: {place}{error.strerror or error}")
        return Exit.REFUSED


def _usage(error: typer.TyperException, given: Sequence[str]) -> str:
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else " ".join(("situ", *_named(given)))
    misplaced = getattr(error, "option_name", "") in OF_COMMANDS and command.split()[1:] in _GROUPS
    message = error.message if misplaced else error.format_message()
    lines = [f"situ: {message.replace('Value error, ', '')}"]
    if misplaced:
        lines.append("Options stand behind the command, as in `situ check --json`.")
    if remedy := remedy_for_usage(error, given):
        lines.append(remedy)
    return "\n".join((*lines, f"Try `{command} --help`."))


def _named(given: Sequence[str]) -> Sequence[str]:
    """The command that is asked for, where the error does not know it."""
    if not given or given[0] not in COMMANDS:
        return ()
    words = 2 if [given[0]] in _GROUPS and len(given) > 1 and not given[1].startswith("-") else 1
    return given[:words]
