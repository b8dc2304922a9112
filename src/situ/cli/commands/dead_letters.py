"""``situ dead-letters``: events that went no further, why, and once more with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import CommandError, Exit
from situ.cli.groups import group
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.cli.project import LiveRun
    from situ.explain.dead_letters import StoredDeadLetter
    from situ.lang.problems import Problem

app = group(
    "dead-letters",
    """Look at events that could not go on, and publish them again.

    An event that cannot be decoded, does not fit its type or was not advertised becomes a dead letter, with the reason
    and a hint. Nothing is thrown away before its time (log.dead in situ.yaml).
    """,
)


@app.command("list")
@common_options
def list_letters(
    output: Output,
    project: Path | None,
    client: Annotated[
        str, typer.Option("--client", metavar="NAME", help="Only of this client.", show_default=False)
    ] = "",
    code: Annotated[str, typer.Option("--code", metavar="CODE", help="Only with this code.", show_default=False)] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many, newest first.")] = 50,
) -> Exit:
    """List dead letters, the latest last.

    \b
    Examples:
      situ dead-letters list
      situ dead-letters list --client reader-7 --code INT707
    """
    import asyncio

    from situ.cli.project import find_run

    found = asyncio.run(_latest(find_run(project, output), client, code.upper(), limit))

    def shown() -> Any:
        from situ.cli.render.dead_letters import show_letters

        return show_letters(found)

    output.answer(lambda: [letter.as_json() for letter in found], shown)
    return Exit.DONE


@app.command("show")
@common_options
def show_letter(
    output: Output,
    project: Path | None,
    id: Annotated[str, typer.Argument(metavar="ID", help="Of a dead letter, or the key of its event.")],
) -> Exit:
    """Show one dead letter: what was sent, what is wrong with it, what to do.

    \b
    Examples:
      situ dead-letters show reader-7.1793520000000.12.decode
    """
    import asyncio

    from situ.cli.project import find_run

    letter = asyncio.run(_found(find_run(project, output), [id]))[0]

    def shown() -> Any:
        from situ.cli.render.dead_letters import show_letter

        return show_letter(letter)

    output.answer(letter.as_json, shown)
    return Exit.DONE


@app.command("retry")
@common_options
def retry_letters(
    output: Output,
    project: Path | None,
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Of dead letters, or the keys of their events.", show_default=False),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All that were not published again yet.")] = False,
) -> Exit:
    """Publish the events of dead letters again.

    Each comes as from the same client and under the same advertisement, with a new key. Do this when what was wrong is
    mended: a type that lacked an attribute, an advertisement that was missing. Ends with 1 if some are refused again.

    \b
    Examples:
      situ dead-letters retry reader-7.1793520000000.12.decode
      situ dead-letters retry --all
    """
    import asyncio

    from situ.cli.progress import progress
    from situ.cli.project import find_run
    from situ.cli.render.text import count

    if bool(ids) == every:
        raise typer.BadParameter("name dead letters, or say --all", param_hint="'ID' / '--all'")
    with progress("Publishing again", shown=output.has_terminal) as advance:
        done, refused = asyncio.run(_retry(find_run(project, output), ids, advance))
    if output.json:
        output.data({"published": [letter.id for letter in done], "problems": [each.as_json() for each in refused]})
    else:
        output.say(f"{count(len(done), 'event')} published again, {len(refused):,} refused")
        output.warn(refused)
    return Exit.NO if refused else Exit.DONE


async def _latest(live: LiveRun, client: str, code: str, limit: int) -> list[StoredDeadLetter]:
    from situ.cli.project import bus_of
    from situ.explain.dead_letters import latest_dead_letters, read_dead_letters

    async with bus_of(live, "dead-letters") as bus:
        if not code:
            return await latest_dead_letters(bus, limit, client=client)
        return [letter async for letter in read_dead_letters(bus, client=client) if letter.code == code][-limit:]


async def _found(live: LiveRun, ids: list[str]) -> list[StoredDeadLetter]:
    """The letters of these ids; the command ends if one is missing."""
    from situ.cli.project import bus_of
    from situ.explain.dead_letters import find_dead_letter
    from situ.lang.catalogue import UNKNOWN_LETTER

    async with bus_of(live, "dead-letters") as bus:
        found = await find_dead_letter(bus, ids)
    if missing := [id for id in ids if id not in found]:
        raise CommandError(Exit.NO, *(UNKNOWN_LETTER(id=id) for id in missing))
    return [found[id] for id in ids]


async def _retry(live: LiveRun, ids: list[str] | None, advance: Any) -> tuple[list[StoredDeadLetter], list[Problem]]:
    from situ.cli.project import bus_of
    from situ.explain.dead_letters import mark_retried, publish_again, read_dead_letters
    from situ.lang.problems import SituError

    chosen = await _found(live, ids) if ids else []
    done: list[StoredDeadLetter] = []
    refused: list[Problem] = []
    async with bus_of(live, "dead-letters") as bus:
        if not ids:
            chosen = [letter async for letter in read_dead_letters(bus) if not letter.retried]
        for number, letter in enumerate(chosen, 1):
            try:
                await publish_again(bus, letter)
                done.append(letter)
            except SituError as error:
                refused += error.problems
            if advance is not None:
                advance(letter.id, number, len(chosen))
        await mark_retried(bus, done)
    return done, refused
