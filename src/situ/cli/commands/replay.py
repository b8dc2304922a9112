"""``situ replay``: the root log through the subscriptions or policies of now, without delivering anything."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Literal

import typer

from situ.cli.commands.explain_policy import policy_completion
from situ.cli.exits import CommandError, Exit
from situ.cli.options import common_options

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping, Sequence
    from datetime import datetime

    from situ.app.history import HistoryOutcome
    from situ.app.replay import ReplayedDelivery, ReplayedSituation, ReplayOutcome
    from situ.bus.interface import Bus
    from situ.cli.output import Output
    from situ.cli.progress import Advance
    from situ.cli.project import LiveRun, ProjectLocation
    from situ.event.row import Row
    from situ.lang.problems import Problem
    from situ.model import Deployment
    from situ.policies.model import Policy
    from situ.project.check import LoadedProject


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ replay --policy``: what policies would have detected over the root log, or over an archive or files.

ENDING = ".dpl"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryPlace:
    """What ``--over`` and the options beside it say."""

    place: str
    maps: Sequence[Path] = ()
    table: str = ""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayedDetections:
    """What policies would have detected; ``causes`` are the events at their positions, if they were asked for."""

    policies: Mapping[str, Policy]
    outcome: ReplayOutcome
    causes: Mapping[int, Row] = field(default_factory=dict)
    warnings: tuple[Problem, ...] = ()
    history: HistoryOutcome | None = None
    """What was seen besides, of an archive or of files."""
    table: str = ""
    """Where situations were written to, instead of here."""

    def sentence(self, each: ReplayedSituation) -> str:
        from situ.policies.lifecycle import situation_sentence

        return situation_sentence(self.policies[each.policy], each.bindings)

    def as_json(self) -> dict[str, Any]:
        from situ.event.instants import print_instant

        tally = self.outcome.tally
        return {
            "situations": [self._as_json(each) for each in self.outcome.situations],
            "detections": sum(tally.detections.values()),
            "events": dict(sorted(tally.events.items())),
            "looked": {
                name: {"sources": list(each.sources), "seen": each.seen, "hidden": each.hidden}
                for name, each in sorted(self.outcome.looked.items())
            },
            "late": tally.late_events,
            "unknown": {name: {"count": each.count, "sample": each.sample} for name, each in tally.unknown.items()},
            "failures": {test: {"count": each.count, "sample": each.sample} for test, each in tally.failures.items()},
            "settled": {name: print_instant(each) for name, each in self.outcome.settled.items()},
            **self._of_history(),
        }

    def _of_history(self) -> dict[str, Any]:
        found = self.history
        if found is None:
            return {}
        dead = [
            {"code": each.code, "file": each.file, "row": each.row, "message": each.message} for each in found.samples
        ]
        about = {"read": found.events, "found": found.situations, "dead": dict(sorted(found.dead.items()))}
        return {**about, "dead letters": dead, **({"table": self.table} if self.table else {})}

    def _as_json(self, each: ReplayedSituation) -> dict[str, Any]:
        from situ.event.instants import print_instant

        return {
            "situation": each.id,
            "policy": each.policy,
            "bindings": dict(each.bindings),
            "start": print_instant(each.start),
            "last": print_instant(each.last),
            "end": None if each.end is None else print_instant(each.end),
            "detections": each.detections,
            "text": self.sentence(each),
            "causes": [{"source": cause.source, "id": cause.id} for cause in each.causes],
        }


def replay_detection(
    output: Output, live: LiveRun, names: Sequence[str], since: datetime, until: datetime | None, *, verbose: bool
) -> Exit:
    """The command: ends with 1 if nothing was detected."""
    import asyncio
    from datetime import UTC, datetime

    from situ.cli.progress import progress

    with progress("Replaying", shown=output.has_terminal) as advance:
        found = asyncio.run(_replayed(live, names, since, until or datetime.now(UTC), verbose, advance))
    if found.warnings and not output.quiet:
        output.warn(found.warnings)

    def shown() -> Any:
        from situ.cli.render.situations import show_replayed

        return show_replayed(found, verbose=verbose, summary=not output.quiet)

    output.answer(found.as_json, shown)
    return Exit.DONE if found.outcome.situations else Exit.NO


def replay_over(
    output: Output, opened: LoadedProject, names: Sequence[str], query: HistoryPlace, *, verbose: bool
) -> Exit:
    """The command over an archive or over files: ends with 1 if nothing was detected."""
    from situ.app.history import HistoryQuery, SituationTable, replay_history
    from situ.app.replay import ReplayOutcome
    from situ.cli.arguments import read_file
    from situ.cli.progress import progress

    deployment = opened.deployment
    policies, warnings = policies_of(names or tuple(deployment.running), deployment)
    asked = HistoryQuery(
        place=query.place,
        policies=policies,
        maps=tuple((str(each), read_file(str(each))) for each in query.maps),
        since=query.since,
        until=query.until,
    )
    table = SituationTable(query.table, policies) if query.table else None
    situations: list[ReplayedSituation] = []
    told = situations.append if table is None else table.add
    with progress("Replaying", shown=output.has_terminal):
        history = replay_history(opened.path, deployment, asked, told)
    if table is not None:
        table.finish()
    situations.sort(key=lambda each: (each.start, each.policy, each.bindings, each.id))
    outcome = ReplayOutcome(situations=tuple(situations), tally=history.counts, looked=history.looked)
    found = ReplayedDetections(
        policies=policies, outcome=outcome, warnings=warnings, history=history, table=query.table
    )
    if warnings and not output.quiet:
        output.warn(warnings)

    def shown() -> Any:
        from situ.cli.render.situations import show_replayed

        return show_replayed(found, verbose=verbose, summary=not output.quiet)

    output.answer(found.as_json, shown)
    return Exit.DONE if history.situations else Exit.NO


async def _replayed(
    live: LiveRun, names: Sequence[str], since: datetime, until: datetime, verbose: bool, advance: Advance | None
) -> ReplayedDetections:
    from situ.app.history import archive_in
    from situ.archive.history import with_archive
    from situ.cli.project import bus_of

    async with bus_of(live, "replay") as bus:
        past = with_archive(bus, archive_in(live.path, live.settings))
        return await replay_over_log(past, live, names, since, until, verbose=verbose, advance=advance)


async def replay_over_log(
    bus: Bus,
    place: ProjectLocation,
    names: Sequence[str],
    since: datetime,
    until: datetime,
    *,
    verbose: bool = False,
    advance: Advance | None = None,
) -> ReplayedDetections:
    """What these policies, by name or from files, would have detected of what was stored in this time."""
    from situ.app.replay import events_at, replay_policies
    from situ.registry.snapshots import fetch_deployment

    deployment = await fetch_deployment(bus)
    policies, warnings = policies_of(names, deployment)
    outcome = await replay_policies(bus, place.path, deployment, tuple(policies.values()), since, until, advance)
    causes: Mapping[int, Row] = {}
    if verbose:
        positions = [each for situation in outcome.situations for each in situation.positions if each]
        causes = await events_at(bus, deployment, positions)
    return ReplayedDetections(policies=policies, outcome=outcome, causes=causes, warnings=warnings)


def policies_of(names: Sequence[str], deployment: Deployment) -> tuple[dict[str, Policy], tuple[Problem, ...]]:
    """Policies in force by name, and those of files as if they were part of the deployment; with warnings."""
    from situ.cli.arguments import STDIN, read_file
    from situ.explain.policy import find_policy
    from situ.lang.problems import Problems, SituError
    from situ.policies.load import PolicyFile, load_policies

    files = [name for name in dict.fromkeys(names) if name == STDIN or "/" in name or name.endswith(ENDING)]
    found = {name: find_policy(name, deployment) for name in names if name not in files}
    problems = Problems()
    written = [PolicyFile(file=file, data=read_file(file)) for file in files]
    found |= load_policies(written, deployment.domain, deployment.sources, problems)
    if problems.errors:
        raise SituError(*problems.sorted())
    return found, problems.sorted()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# ``situ replay``: which events each subscription would get. With ``--policy`` it calls what stands above.

_SHOWN = 20  # lines passed over that are shown


@common_options
def replay(
    output: Output,
    project: Path | None,
    since: Annotated[
        str, typer.Option("--from", metavar="TIME", help="Events stored since then: 1 h ago, begin, a time.")
    ] = "begin",
    until: Annotated[
        str, typer.Option("--to", metavar="TIME", help="Events stored before then.", show_default=False)
    ] = "",
    subscriptions: Annotated[
        list[str] | None,
        typer.Option(
            "--subscription",
            metavar="CLIENT/NAME",
            help="Only for this subscription; may be repeated.",
            show_default=False,
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
            help="Write what each subscription would get to a file of JSON lines; - writes all to standard output.",
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
    over: Annotated[
        str,
        typer.Option(
            "--over",
            metavar="URI",
            help="Detect over an archive or over files instead of the log, as a batch on Spark; nothing needs to run.",
            show_default=False,
        ),
    ] = "",
    maps: Annotated[
        list[Path] | None,
        typer.Option(
            "--map",
            metavar="FILE",
            help="With --over: what the columns of files of others are; may be repeated.",
            show_default=False,
        ),
    ] = None,
    to_table: Annotated[
        str,
        typer.Option(
            "--to-table",
            metavar="URI",
            help="With --over: write the situations to Parquet files in a folder.",
            show_default=False,
        ),
    ] = "",
    engine: Annotated[
        Literal["spark", "edge"] | None,
        typer.Option("--engine", help="The engine that replays, instead of the one that runs.", show_default=False),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="With --policy: show the events behind each situation.")
    ] = False,
) -> Exit:
    """Replay the root log: which events would each subscription get, or what would a policy detect?

    Reads the log of the run as fast as it can, through the subscriptions in force, and before that what `log.archive`
    has kept of it. Nothing is published, delivered or done. With --policy it tells which situations there would have
    been; the policy may be a file that is not part of the project. With --over it detects over months as a batch, by
    the time of events, on the Spark of the project. Ends with 1 if no event matched, or nothing was detected.

    \b
    Examples:
      situ replay --from '1 h ago'
      situ replay --policy night-watch.dpl --over s3a://plant/archive --from 2026-09-01 --to-table situations
      situ replay --policy night-watch.dpl --from 2026-11-01 -v
      situ replay --from 2026-11-01 --to 2026-11-02 --subscription desk/arrivals --out arrivals
      situ replay --files yesterday.jsonl
    """
    import asyncio

    from situ.cli.arguments import STDIN, read_moment
    from situ.cli.progress import progress
    from situ.cli.project import find_run, open_project

    first, last = read_moment(since, "--from"), read_moment(until, "--to") if until else None
    if over:
        _refuse_with({"--subscription": subscriptions, "--out": out, "--files": files, "--engine": engine}, "--over")
        begin = first if since != "begin" else None
        query = HistoryPlace(place=over, maps=tuple(maps or ()), table=to_table, since=begin, until=last)
        return replay_over(output, open_project(project), policies or (), query, verbose=verbose)
    for option, value in {"--map": maps, "--to-table": to_table}.items():
        if value:
            raise typer.BadParameter("this goes with --over only", param_hint=f"'{option}'")
    if policies:
        _refuse_with({"--subscription": subscriptions, "--out": out, "--files": files, "--engine": engine}, "--policy")
        return replay_detection(output, find_run(project, output), policies, first, last, verbose=verbose)
    chosen = tuple(subscriptions or ())
    passed: list[Problem] = []
    with progress("Replaying", shown=output.has_terminal) as advance, ReplayedDeliveries(out, output) as deliveries:
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
    if passed and not output.quiet:
        output.warn(passed[:_SHOWN])

    def shown() -> Any:
        from situ.cli.render.situations import show_replay

        return show_replay(deliveries.counts)

    if out != STDIN:
        counts = dict(sorted(deliveries.counts.items()))
        output.answer(lambda: {"deliveries": sum(counts.values()), "subscriptions": counts}, shown)
    return Exit.DONE if deliveries.counts else Exit.NO


def _refuse_with(others: dict[str, Any], asked: str) -> None:
    for option, value in others.items():
        if value:
            raise typer.BadParameter(f"this does not go with {asked}", param_hint=f"'{option}'")


def _replay_files(
    opened: LoadedProject,
    files: Path,
    since: datetime | None,
    until: datetime | None,
    subscriptions: tuple[str, ...],
    deliveries: ReplayedDeliveries,
    report: Callable[[Problem], None],
) -> None:
    from situ.app.replay import plan_for, replay_files

    deployment = opened.deployment
    _check(subscriptions, deployment)
    plan = plan_for(deployment, subscriptions, opened.path)
    for some in replay_files(files, plan, start=since, end=until, report=report):
        deliveries.add(some)


async def _replay(
    live: LiveRun,
    engine: str | None,
    since: datetime,
    until: datetime | None,
    subscriptions: tuple[str, ...],
    deliveries: ReplayedDeliveries,
    advance: Advance | None,
) -> None:
    from situ.app.history import archive_in
    from situ.app.replay import plan_for, replay_in_process
    from situ.archive.history import with_archive
    from situ.bus.interface import log_range
    from situ.cli.project import bus_of
    from situ.project.status import running_engine
    from situ.registry.snapshots import fetch_deployment

    async with bus_of(live, "replay") as bus:
        deployment = await fetch_deployment(bus)
        _check(subscriptions, deployment)
        past = with_archive(bus, archive_in(live.path, live.settings))
        first, last = await log_range(past, since, until)
        if first > last:
            return
        found = (
            _on_spark(live, deployment, subscriptions, first, last)
            if (engine or await running_engine(bus) or live.settings.engine) == "spark"
            else replay_in_process(past, plan_for(deployment, subscriptions, live.path), first, last, advance)
        )
        async for some in found:
            deliveries.add([each for each in some if not subscriptions or each.subscription in subscriptions])


def _on_spark(
    live: LiveRun, deployment: Deployment, subscriptions: tuple[str, ...], first: int, last: int
) -> AsyncIterator[list[ReplayedDelivery]]:
    from situ.app.replay import replay_on_spark, tables_for
    from situ.bus.address import resolve_address

    settings = live.settings
    address = resolve_address(live.path, settings)
    tables = tables_for(deployment, subscriptions, live.path)
    return replay_on_spark(live.path, settings, address, deployment.version, first, last, tables)


def _check(subscriptions: tuple[str, ...], deployment: Deployment) -> None:
    from situ.lang.catalogue import UNKNOWN_SUBSCRIPTION
    from situ.lang.problems import nearest

    unknown = [each for each in subscriptions if each not in deployment.subscriptions]
    if unknown:
        known = deployment.subscriptions
        raise CommandError(
            Exit.NO, *(UNKNOWN_SUBSCRIPTION(name=each, nearest=nearest(each, known)) for each in unknown)
        )


class ReplayedDeliveries:
    """Counts what each subscription would get and writes it where it was asked for."""

    def __init__(self, out: str, output: Output) -> None:
        from situ.cli.arguments import STDIN

        self.counts: Counter[str] = Counter()
        self._out = out
        self._to_output = out == STDIN
        self._output = output
        self._files: dict[str, BinaryIO] = {}
        self._stack = ExitStack()

    def __enter__(self) -> ReplayedDeliveries:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def add(self, deliveries: list[ReplayedDelivery]) -> None:
        self.counts.update(each.subscription for each in deliveries)
        if self._to_output:
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
