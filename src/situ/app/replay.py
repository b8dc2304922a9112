"""Replay: the root log, or a part of it, through the same routing again, and nothing is published.

On Spark the pipeline does it, with all cores; in one process it is done here, with the routing of the edge engine. Both
give a delivery for each event and each subscription it is for, each event once however often the log holds it. What is
looked up is looked up in the tables as they are when the replay begins; what is remembered, in one process, is what the
part of the log that is replayed has.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import msgspec

from situ.bus.address import Address
from situ.bus.files import Report, event_time, read_files
from situ.bus.folder_lock import private_folder
from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.catalogue import MALFORMED_LINE
from situ.deployment import Deployment
from situ.deployment.former_terms import in_terms_of_now
from situ.deployment.holding import Holding, Said
from situ.deployment.interpreting import Interpretation
from situ.deployment.plan import Plan, compile_plan
from situ.deployment.wording import Worded
from situ.edge.epochs import learn_epochs
from situ.event.instants import microseconds
from situ.event.lines import bare_line, decode_line, encode_row, stored_lines
from situ.event.message import PLACES, join_lines, position
from situ.event.row import Origin, Row
from situ.host.logs import LOGS
from situ.settings import Settings
from situ.sources import Table
from situ.subscription.model import Subscription
from situ.tables.in_use import TablesInUse

Progress = Callable[[str, int, int], None]

_BATCH = 2_000  # events that are routed at once
_REMEMBERED = 200_000  # keys of events of files, by which repeats are known
_SHOWN = 80  # characters of a line that is passed over


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event as a line of text, and the subscription it is for."""

    subscription: str
    line: bytes


async def span(bus: Bus, begin: datetime, end: datetime | None) -> tuple[int, int]:
    """The first and the last message of the root log that was stored in this time."""
    stream = Names(bus.zone).root_stream
    state = await bus.state(stream)
    last = state.last if end is None else min(await bus.find(stream, end) - 1, state.last)
    return max(await bus.find(stream, begin), state.first), last


def wanted_only(deployment: Deployment, subscriptions: Sequence[str], folder: Path) -> Plan:
    """The plan for these subscriptions of a deployment, or for all if none is named; with the tables that it needs."""
    plan = compile_plan(replace(deployment, subscriptions=_chosen(deployment, subscriptions)))
    plan.interpretation.rows.tables = tables_for(deployment, subscriptions, folder)
    return plan


def tables_for(deployment: Deployment, subscriptions: Sequence[str], folder: Path) -> Mapping[str, Table]:
    """The tables as they are now that are looked up in for these subscriptions, or for all; SituError if one is not."""
    contexts = {each.context for each in _chosen(deployment, subscriptions).values()}
    with TablesInUse(folder) as tables:
        return tables.use(deployment.sources, Interpretation.of(deployment).keyed(contexts))


def _chosen(deployment: Deployment, subscriptions: Sequence[str]) -> Mapping[str, Subscription]:
    wanted = set(subscriptions)
    return {id: each for id, each in deployment.subscriptions.items() if not wanted or id in wanted}


async def replay_here(
    bus: Bus, plan: Plan, first: int, last: int, progress: Progress | None = None
) -> AsyncIterator[list[Delivery]]:
    """The deliveries of these messages of the root log, in the order of the log."""
    stream = Names(bus.zone).root_stream
    replay = Replay(plan)
    async with aclosing(bus.read(stream, first, last)) as messages:
        async for message in messages:
            lines = stored_lines(in_terms_of_now(message, plan.interpretation))
            rows = [decode_line(line, pos=position(message.seq, place)) for place, line in enumerate(lines)]
            await learn_epochs(bus, plan, rows)
            for row, line in zip(rows, lines, strict=True):
                replay.add(row, bare_line(row, line))
            if replay.full:
                yield replay.finish()
            if progress is not None:
                progress("", message.seq - first + 1, max(last - first + 1, 1))
    yield replay.finish()


class Replay:
    """Routes lines of a log, many at a time. In a log a client's events are in order, in files they need not be."""

    def __init__(self, plan: Plan, *, ordered: bool = True) -> None:
        self.events = 0
        self._plan = plan
        self._ordered = ordered
        self._highest: dict[tuple[str, int], int] = {}
        self._seen: OrderedDict[tuple[str, int, int], None] = OrderedDict()
        self._rows: list[Row] = []
        self._texts: list[bytes] = []
        plan.interpretation.outgoing.holds = True
        self._holding = Holding(plan.interpretation.outgoing)

    @property
    def full(self) -> bool:
        return len(self._rows) >= _BATCH

    def add(self, row: Row, line: bytes) -> None:
        if self._is_new(row):
            self._rows.append(row)
            self._texts.append(line)

    def _is_new(self, row: Row) -> bool:
        if self._ordered:
            key = (row.client, row.incarnation)
            new = row.seq > self._highest.get(key, 0)
            self._highest[key] = max(row.seq, self._highest.get(key, 0))
            return new
        exact = (row.client, row.incarnation, row.seq)
        if exact in self._seen:
            return False
        self._seen[exact] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def finish(self) -> list[Delivery]:
        rows, texts = self._rows, self._texts
        self._rows, self._texts = [], []
        self.events += len(rows)
        plan = self._plan
        if plan.interpretation.remembers:
            return [each for said in self._said(rows, texts) for each in self._deliveries(said.rows, said.worded)]
        worded = plan.interpretation.worded(rows, texts, plan.routing.route(rows), plan.routing)
        return self._deliveries(rows, worded)

    def _said(self, rows: list[Row], texts: list[bytes]) -> Iterator[Said]:
        """Message by message, as engines do where conversions ask what came before."""
        for _, places in groupby(range(len(rows)), key=lambda place: rows[place].pos // PLACES):
            first, *others = places
            part = slice(first, first + 1 + len(others))
            yield from self._holding.word(rows[part], texts[part], self._plan)

    def _deliveries(self, rows: Sequence[Row], worded: Worded) -> list[Delivery]:
        found = [
            (index, subscription, line)
            for index, group, line in worded.durable
            for subscription in self._plan.routing.groups[group].subscriptions
            if not subscription.startswith(f"{rows[index].client}/")
        ]
        found += [
            (index, f"{client}/{name}", line) for index, client, names, line in worded.live for name in names.split(",")
        ]
        found.sort(key=lambda each: each[0])
        return [Delivery(subscription, line) for _, subscription, line in found]


def replay_files(
    folder: Path,
    plan: Plan,
    *,
    start: datetime | None = None,
    end: datetime | None = None,
    report: Report,
) -> Iterator[list[Delivery]]:
    """The deliveries of events in files: lines of a root log, or CloudEvents as clients write them."""
    replay, reader = Replay(plan, ordered=False), FileReader(plan)
    for lines in read_files(folder, start=start, end=end, report=report):
        for line in lines:
            row = reader.read(line, report)
            if row is not None:
                text = bare_line(row, line) if b'"situkey"' in line else encode_row(row)
                _stamp_anew(row, plan)
                replay.add(row, text)
        if replay.full:
            yield replay.finish()
    yield replay.finish()


def _stamp_anew(row: Row, plan: Plan) -> None:
    """What is in files is seen as the scopes of the folder say: what others were at work when it came is not known."""
    row.tags = row.epoch = row.bits = 0
    row.parts = ""
    if plan.seeing is not None and row.ad in plan.deployment.advertisements:
        plan.seeing.stamp([row])


class FileReader:
    """Lines of files → rows. What clients wrote has no key yet: it is numbered as it comes, by source."""

    def __init__(self, plan: Plan) -> None:
        self._interpretation = plan.interpretation
        self._number = 0

    def read(self, line: bytes, report: Report) -> Row | None:
        self._number += 1
        if b'"situkey"' in line:
            try:
                return decode_line(line, pos=position(self._number))
            except (msgspec.DecodeError, ValueError):
                pass  # then it is not from a root log
        at = event_time(line)
        received = 0 if at is None or at.tzinfo is None else microseconds(at)
        origin = Origin(client="file", incarnation=1, seq=self._number, received=received, pos=position(self._number))
        row = self._interpretation.decode(join_lines([line]), origin)[0]
        if isinstance(row, Row):
            return row
        code, _, message, _ = row.errors[0]
        shown = line[:_SHOWN].decode(errors="replace")
        report(MALFORMED_LINE(reason=f"{code} {message.rstrip('.')} ({shown}…)"))
        return None


async def replay_on_spark(
    folder: Path,
    settings: Settings,
    address: Address,
    version: int,
    first: int,
    last: int,
    tables: Mapping[str, Table] = MappingProxyType({}),
) -> AsyncIterator[list[Delivery]]:
    """The same by the pipeline: what a subscription gets of one client is in the order of the log."""
    rows = await asyncio.to_thread(_open, folder, settings, address, version, first, last, tables)
    try:
        while chunk := await asyncio.to_thread(_some, rows):
            yield chunk
    finally:
        rows.close()


def _open(
    folder: Path,
    settings: Settings,
    address: Address,
    version: int,
    first: int,
    last: int,
    tables: Mapping[str, Table],
) -> Any:
    from situ.pipeline.replay import replay
    from situ.pipeline.session import open_session

    log = folder / LOGS / "replay.log"
    private_folder(log.parent)
    conf = {name: value.value for name, value in settings.spark.conf}
    session = open_session(app="situ replay", master=settings.spark.master.value, conf=conf, log=log)

    def rows() -> Iterator[Delivery]:
        try:
            found = replay(session, address, version, first=first, last=last, tables=tables)
            for row in found.toLocalIterator():
                yield Delivery(row["subscription"], bytes(row["event"]))
        finally:
            session.stop()

    return rows()


def _some(rows: Iterator[Delivery]) -> list[Delivery]:
    return list(islice(rows, _BATCH))
