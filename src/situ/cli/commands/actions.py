"""``situ actions``: what policies asked for and is not done yet, or was given up; tried again, or dropped."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.groups import group
from situ.cli.options import common_options

if TYPE_CHECKING:
    from situ.app.action_queue import ActionQueue, QueuedAction
    from situ.cli.output import Output

app = group(
    "actions",
    """Look at what policies asked for that is not done yet, or failed; try it again, or drop it.

    Requests to addresses are tried again, after longer and longer pauses, when nobody answers or the answer is 5xx.
    What fails for good is kept until somebody decides. None of this needs a run.
    """,
)

Keys = Annotated[
    list[str] | None, typer.Argument(metavar="[KEY]...", help="As `situ actions list` shows them.", show_default=False)
]


@app.command("list")
@common_options
def list_actions(
    output: Output,
    project: Path | None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Only of this policy.", show_default=False)
    ] = "",
    state: Annotated[
        Literal["waiting", "failed"] | None,
        typer.Option("--state", help="Only those that wait, or those that failed.", show_default=False),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many, newest first.")] = 50,
) -> Exit:
    """List what waits to be done and what failed, the latest last.

    \b
    Examples:
      situ actions list
      situ actions list --state failed --policy unaccompanied-guest
    """
    from situ.app.action_queue import queued_actions

    found = [
        each for each in queued_actions(_asked(project)) if policy in ("", each.policy) and state in (None, each.state)
    ][-limit:]

    def shown() -> Any:
        from situ.cli.render.status import show_actions

        return show_actions(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


@app.command("show")
@common_options
def show_action(
    output: Output,
    project: Path | None,
    key: Annotated[str, typer.Argument(metavar="KEY", help="As `situ actions list` shows it.")],
) -> Exit:
    """Show one: what is to be done, for which situation, what became of it, what to do.

    \b
    Examples:
      situ actions show 5f2b8c1e9d7a4b60a1c2d3e4f5061728-0.0
    """
    (found,) = _found(_asked(project), [key])

    def shown() -> Any:
        from situ.cli.render.status import show_action

        return show_action(found)

    output.answer(found.as_json, shown)
    return Exit.DONE


@app.command("retry")
@common_options
def retry_actions(
    output: Output,
    project: Path | None,
    keys: Keys = None,
    every: Annotated[bool, typer.Option("--all", help="All that failed.")] = False,
) -> Exit:
    """Let failed actions be done again, by the run that is there or by the next one.

    They are done as they were declared when they were asked for, with the same key.

    \b
    Examples:
      situ actions retry 5f2b8c1e9d7a4b60a1c2d3e4f5061728-0.0
      situ actions retry --all
    """
    from situ.bus.folder_lock import read_lock
    from situ.cli.render.text import count

    path = _project(project)
    asked = _asked(project)
    chosen = _chosen(asked, keys, every, "failed")
    done = [each for each in chosen if asked.again(each)]
    if output.json:
        output.data({"again": done})
    else:
        later = "" if read_lock(path) is not None else ", when `situ run` runs"
        output.say(f"{count(len(done), 'action')} to be done again{later}")
    return Exit.DONE


@app.command("drop")
@common_options
def drop_actions(
    output: Output,
    project: Path | None,
    keys: Keys = None,
    every: Annotated[bool, typer.Option("--all", help="All that failed.")] = False,
) -> Exit:
    """Forget actions that failed, or that wait: they are not done any more.

    \b
    Examples:
      situ actions drop 5f2b8c1e9d7a4b60a1c2d3e4f5061728-0.0
      situ actions drop --all
    """
    from situ.app.action_queue import AGAIN, FAILED, WAITING
    from situ.cli.render.text import count

    asked = _asked(project)
    chosen = _chosen(asked, keys, every, "")
    done = [key for key in chosen if any(asked.drop(key, state) for state in (FAILED, AGAIN, WAITING))]
    if output.json:
        output.data({"dropped": done})
    else:
        output.say(f"{count(len(done), 'action')} dropped")
    return Exit.DONE


def _project(project: Path | None) -> Path:
    from situ.cli.project import locate_project

    return locate_project(project)


def _asked(project: Path | None) -> ActionQueue:
    from situ.app.action_queue import ActionQueue

    return ActionQueue(_project(project))


def _chosen(asked: ActionQueue, keys: list[str] | None, every: bool, state: str) -> list[str]:
    """The keys that were named, or of all that failed; the command ends if one is missing."""
    from situ.app.action_queue import FAILED

    if bool(keys) == every:
        raise typer.BadParameter("name actions, or say --all", param_hint="'KEY' / '--all'")
    if every:
        return [each.key for each in asked.all(FAILED)]
    return [each.key for each in _found(asked, keys or [], state)]


def _found(asked: ActionQueue, keys: list[str], state: str = "") -> list[QueuedAction]:
    from situ.app.action_queue import find_action
    from situ.lang.catalogue import UNKNOWN_KEPT_ACTION

    found = {key: find_action(asked, key) for key in keys}
    wanted = f"{state or 'waits or failed'}"
    known = [each for each in found.values() if each is not None and state in ("", each.state)]
    if len(known) < len(found):
        there = {each.key for each in known}
        raise CommandError(Exit.NO, *(UNKNOWN_KEPT_ACTION(key=key, state=wanted) for key in keys if key not in there))
    return known
