"""The commands put together, and what becomes of problems: messages and exit codes.

Every command lives in a module of its own and imports what it needs when it runs, so that ``situ --help`` costs no more
than reading the arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from situ import __version__
from situ.cli import actions, client, dead_letters, explain, scopes, types
from situ.cli.apply import apply
from situ.cli.change import add, alter, remove, resume, suspend
from situ.cli.check import check
from situ.cli.create import init, schemas
from situ.cli.diff import diff
from situ.cli.exits import Exit, Stop, exit_of
from situ.cli.fmt import fmt
from situ.cli.folder_meant import remedy_for_place, remedy_for_usage
from situ.cli.get import get
from situ.cli.groups import group
from situ.cli.late import late
from situ.cli.options import OF_COMMANDS
from situ.cli.output import standard_output
from situ.cli.publish import publish
from situ.cli.quality import quality
from situ.cli.replay import replay
from situ.cli.run import run as run_project
from situ.cli.situations import situations
from situ.cli.status import status
from situ.cli.subscribe import subscribe
from situ.cli.test import run_policy_tests
from situ.cli.transform import transform
from situ.errors import SituError

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


app.command()(init)
app.command()(check)
app.command()(diff)
app.command()(fmt)
app.command("test")(run_policy_tests)
app.command("run")(run_project)
app.command()(status)
app.command()(publish)
app.command()(subscribe)
app.command()(replay)
app.command()(transform)
app.add_typer(dead_letters.app)
app.add_typer(actions.app)
app.command()(situations)
app.command()(late)
app.command()(quality)
app.command()(apply)
app.command()(get)
app.command("add")(add)
app.command("alter")(alter)
app.command()(remove)
app.command()(suspend)
app.command()(resume)
app.add_typer(client.app)
app.add_typer(types.app)
app.add_typer(scopes.app)
app.add_typer(explain.app)
app.command()(schemas)


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
    except Stop as stop:
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
    command = context.command_path if context is not None else "situ"
    misplaced = getattr(error, "option_name", "") in OF_COMMANDS and command.split()[1:] in _GROUPS
    message = error.message if misplaced else error.format_message()
    lines = [f"situ: {message.replace('Value error, ', '')}"]
    if misplaced:
        lines.append("Options stand behind the command, as in `situ check --json`.")
    if remedy := remedy_for_usage(error, given):
        lines.append(remedy)
    return "\n".join((*lines, f"Try `{command} --help`."))
