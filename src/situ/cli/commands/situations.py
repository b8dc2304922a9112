"""``situ situations`` and ``situ late``: what policies detected, and which events came too late for them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from situ.cli.exits import Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from pathlib import Path

    from situ.cli.output import Output
    from situ.cli.project import LiveRun
    from situ.explain.dead_letters import LateEvent
    from situ.explain.situations import SituationRecord


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ situations``.


@common_options
def situations(
    output: Output,
    project: Path | None,
    policy: Annotated[
        str, typer.Option("--policy", metavar="NAME", help="Only of this policy.", show_default=False)
    ] = "",
    only_open: Annotated[bool, typer.Option("--open", help="Only those that are open.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many, newest first.")] = 50,
) -> Exit:
    """List the situations that policies detected, the latest last.

    Each with whom and what it is about, and one sentence that says why. To be told of them as they come, subscribe to
    situ.situation; for all about one, see `situ explain detection`.

    \b
    Examples:
      situ situations
      situ situations --open --policy unaccompanied-guest
    """
    import asyncio

    from situ.cli.project import find_run

    found = asyncio.run(_latest_situations(find_run(project, output), policy, limit, only_open=only_open))

    def shown() -> Any:
        from situ.cli.render.situations import show_situation_list

        return show_situation_list(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


async def _latest_situations(live: LiveRun, policy: str, limit: int, *, only_open: bool) -> list[SituationRecord]:
    from situ.cli.project import bus_of
    from situ.explain import situations as told_situations

    async with bus_of(live, "situations") as bus:
        return (await told_situations.read_situations(bus, policy=policy, only_open=only_open))[-limit:]


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ late``: events that came after policies had decided without them.


@common_options
def late(
    output: Output,
    project: Path | None,
    type: Annotated[str, typer.Option("--type", metavar="TYPE", help="Only of this type.", show_default=False)] = "",
    policy: Annotated[
        str,
        typer.Option("--policy", metavar="NAME", help="Only too late for this policy.", show_default=False),
    ] = "",
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, help="At most this many, newest first.")] = 50,
) -> Exit:
    """List events that came too late for policies, the latest last.

    A policy decides when the lateness it grants has passed (lateness in the policy, in its push source, or in
    situ.yaml). What comes after that is delivered to subscribers as ever, but the policy does not count it.

    \b
    Examples:
      situ late
      situ late --policy unaccompanied-guest --type Sighting
    """
    import asyncio

    from situ.cli.project import find_run

    found = asyncio.run(_latest_late(find_run(project, output), type, policy, limit))

    def shown() -> Any:
        from situ.cli.render.dead_letters import show_late

        return show_late(found)

    output.answer(lambda: [each.as_json() for each in found], shown)
    return Exit.DONE


async def _latest_late(live: LiveRun, type: str, policy: str, limit: int) -> list[LateEvent]:
    from collections import deque

    from situ.cli.project import bus_of
    from situ.explain.dead_letters import read_late_events

    async with bus_of(live, "late") as bus:
        kept: deque[LateEvent] = deque(maxlen=limit)
        async for each in read_late_events(bus, type=type, policy=policy):
            kept.append(each)
        return list(kept)
