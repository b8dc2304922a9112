"""``situ replay``: yesterday's events through today's subscriptions, without delivering anything."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from situ.cli.exits import Exit, Stop
from situ.cli.explain_policies import policy_completion
from situ.cli.files import STDIN
from situ.cli.options import Json, Project, Quiet, begin

if TYPE_CHECKING:
    from datetime import datetime

    from situ.cli.in_force import Live
    from situ.cli.opened import Opened
    from situ.cli.output import Output
    from situ.cli.progress import Advance
    from situ.deployment import Deployment
    from situ.errors import Problem
    from situ.host.replaying import Delivery

_SHOWN = 20  # lines passed over that are shown


def replay(
    context: typer.Context,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Events stored since then: 1 h ago, begin, a time.")
    ] = "begin",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="And before then.", show_default=False)] = "",
    subscriptions: Annotated[
        list[str] | None,
        typer.Option(
            "--subscription", metavar="CLIENT/NAME", help="Only for this one; may be repeated.", show_default=False
        ),
    ] = None,
    policies: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="NAME|FILE",
            help="What this policy would have detected, in place of subscriptions; may be repeated.",
            show_default=False,
            autocompletion=policy_completion,
        ),
    ] = None,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Write what each would get, a file of JSON lines for each; - writes all to standard output.",
            show_default=False,
        ),
    ] = "",
    files: Annotated[
        Path | None,
        typer.Option(
            "--files",
            metavar="FOLDER",
            help="Read events from files (JSON Lines, Parquet) instead of the log; nothing needs to run.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        Literal["spark", "edge"] | None,
        typer.Option("--engine", help="What replays, instead of the engine that runs.", show_default=False),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="With --policy: show the events behind each situation.")
    ] = False,
    project: Project = None,
    as_json: Json = False,
    quiet: Quiet = False,
) -> Exit:
    """Replay the root log: which events would each subscription get, or what would a policy detect?

    Reads the log of the run as fast as it can, through the subscriptions in force. Nothing is published, delivered or
    done. With --policy it tells which situations there would have been; the policy may be a file that is not part of
    the project. Ends with 1 if no event matched, or nothing was detected.

    \b
    Examples:
      situ replay --from '1 h ago'
      situ replay --policy night-watch.dpl --from 2026-11-01 -v
      situ replay --from 2026-11-01 --to 2026-11-02 --subscription desk/arrivals --out arrivals
      situ replay --files yesterday.jsonl
    """
    import asyncio

    from situ.cli.in_force import find_run
    from situ.cli.moments import read_moment
    from situ.cli.opened import open_project
    from situ.cli.progress import progress

    output = begin(context, json=as_json, quiet=quiet)
    first, last = read_moment(since, "--from"), read_moment(until, "--to") if until else None
    if policies:
        from situ.cli.replayed_policies import replay_detection

        _refuse_with_policies({"--subscription": subscriptions, "--out": out, "--files": files, "--engine": engine})
        return replay_detection(output, find_run(project, output), policies, first, last, verbose=verbose)
    chosen = tuple(subscriptions or ())
    passed: list[Problem] = []
    with progress("Replaying", shown=output.has_terminal) as advance, Deliveries(out, output) as deliveries:
        if files is not None:
            _replay_files(
                open_project(project),
                files,
                first if since != "begin" else None,
                last,
                chosen,
                deliveries,
                passed.append,
            )
        else:
            asyncio.run(_replay(find_run(project, output), engine, first, last, chosen, deliveries, advance))
    if passed and not quiet:
        output.warn(passed[:_SHOWN])

    def shown() -> Any:
        from situ.cli.show_replay import show_replay

        return show_replay(deliveries.counts)

    if out != STDIN:
        counts = dict(sorted(deliveries.counts.items()))
        output.answer(lambda: {"deliveries": sum(counts.values()), "subscriptions": counts}, shown)
    return Exit.DONE if deliveries.counts else Exit.NO


def _refuse_with_policies(others: dict[str, Any]) -> None:
    for option, value in others.items():
        if value:
            raise typer.BadParameter("this is about subscriptions, and --policy is not", param_hint=f"'{option}'")


def _replay_files(
    opened: Opened,
    files: Path,
    since: datetime | None,
    until: datetime | None,
    subscriptions: tuple[str, ...],
    deliveries: Deliveries,
    report: Callable[[Problem], None],
) -> None:
    from situ.host.replaying import replay_files, wanted_only

    deployment = opened.deployment
    _check(subscriptions, deployment)
    plan = wanted_only(deployment, subscriptions, opened.path)
    for some in replay_files(files, plan, start=since, end=until, report=report):
        deliveries.add(some)


async def _replay(
    live: Live,
    engine: str | None,
    since: datetime,
    until: datetime | None,
    subscriptions: tuple[str, ...],
    deliveries: Deliveries,
    advance: Advance | None,
) -> None:
    from situ.cli.looked_at import engine_at_work
    from situ.cli.on_bus import bus_of
    from situ.host.replaying import replay_here, span, wanted_only
    from situ.registry.snapshots import fetch_deployment

    async with bus_of(live, "replay") as bus:
        deployment = await fetch_deployment(bus)
        _check(subscriptions, deployment)
        first, last = await span(bus, since, until)
        if first > last:
            return
        found = (
            _on_spark(live, deployment, subscriptions, first, last)
            if (engine or await engine_at_work(bus) or live.settings.engine) == "spark"
            else replay_here(bus, wanted_only(deployment, subscriptions, live.path), first, last, advance)
        )
        async for some in found:
            deliveries.add([each for each in some if not subscriptions or each.subscription in subscriptions])


def _on_spark(
    live: Live, deployment: Deployment, subscriptions: tuple[str, ...], first: int, last: int
) -> AsyncIterator[list[Delivery]]:
    from situ.bus.address import resolve_address
    from situ.host.replaying import replay_on_spark, tables_for

    settings = live.settings
    address = resolve_address(live.path, settings)
    tables = tables_for(deployment, subscriptions, live.path)
    return replay_on_spark(live.path, settings, address, deployment.version, first, last, tables)


def _check(subscriptions: tuple[str, ...], deployment: Deployment) -> None:
    from situ.catalogue import UNKNOWN_SUBSCRIPTION
    from situ.errors import nearest

    unknown = [each for each in subscriptions if each not in deployment.subscriptions]
    if unknown:
        known = deployment.subscriptions
        raise Stop(Exit.NO, *(UNKNOWN_SUBSCRIPTION(name=each, nearest=nearest(each, known)) for each in unknown))


class Deliveries:
    """Counts what each subscription would get and writes it where it was asked for."""

    def __init__(self, out: str, output: Output) -> None:
        self.counts: Counter[str] = Counter()
        self._out = out
        self._output = output
        self._files: dict[str, BinaryIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Deliveries:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, deliveries: list[Delivery]) -> None:
        self.counts.update(each.subscription for each in deliveries)
        if self._out == STDIN:
            lines = (f'{{"subscription":"{each.subscription}","event":{each.line.decode()}}}\n' for each in deliveries)
            self._output.text("".join(lines))
        elif self._out:
            for each in deliveries:
                (self._files.get(each.subscription) or self._open(each.subscription)).write(each.line + b"\n")

    def _open(self, subscription: str) -> BinaryIO:
        folder = Path(self._out)
        folder.mkdir(parents=True, exist_ok=True)
        name = subscription.replace("/", "_")
        file = self._files[subscription] = self._stack.enter_context((folder / f"{name}.jsonl").open("wb"))
        return file
