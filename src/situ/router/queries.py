"""What clients ask a router: what types are, why they see something or not, and what there was before they came.

`HistoryReader` reads the root log page by page for a subscription, `ClientQueries` answers all such questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from situ.bus.interface import Bus
from situ.event.lines import place
from situ.event.message import PLACES, join_lines
from situ.event.row import Row
from situ.event.seal import Seal
from situ.event.subjects import BusNames
from situ.lang.problems import SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.protocol.effects import Look
from situ.protocol.messages import Describe, Explain, FromRouter, History, HistoryAck, Nack
from situ.registry.past_scopes import learn_epochs
from situ.router.declarations import TypeDescriptions
from situ.router.explain_visibility import VisibilityExplainer
from situ.routing.model import Subscription
from situ.sources import Source, Table
from situ.sources.table import Keyed
from situ.stages.deliver import route
from situ.stages.plan import Plan, compile_plan
from situ.stages.root_log import read_lines, upgrade_message
from situ.tables.cache import TablesInUse

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# History: what a subscription would have got, read from the root log and filtered. A position here is a place in the
# root log itself: sequence of a message times 65,536 plus the place in it. Where there are scopes, clients get
# positions and keys sealed: from the log's own they could count what they must not know of.

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_EVENTS = 2000
_MOST_BYTES = 256 * 1024
_MOST_SECONDS = 0.25
_KEPT = 64
_CURSOR = (1 << 64) - 1
"""Stands where keys have an incarnation, so that no key is taken for a position."""


class HistoryReader:
    """Reads the root log of one zone for its clients; what is looked up is looked up in the tables as they are now.

    ``folder`` is the project's, where the files of its tables are.
    """

    def __init__(self, bus: Bus, folder: Path = Path()) -> None:
        self._bus = bus
        self._tables = TablesInUse(folder)
        self._sources: Mapping[str, Source] = {}
        self._keyed: dict[str, set[Keyed]] = {}
        self._stream = BusNames(bus.zone).root_stream
        self._plans: dict[Subscription, Plan] = {}

    async def page(self, asked: History, wanted: Subscription, deployment: Deployment) -> HistoryAck:
        """The next page: it ends when it is full, when reading took long enough, or with the log."""
        plan = self._plan(wanted, deployment)
        await self._look_up(plan)
        state = await self._bus.state(self._stream)
        seal = None if plan.seeing is None else plan.seeing.seal
        seq, skip = divmod(await self._begin(asked, state.first, seal), PLACES)
        seq = max(seq, state.first)
        most = min(max(asked.limit, 1), _MOST_EVENTS)
        clock = asyncio.get_running_loop().time
        until = clock() + _MOST_SECONDS
        found: list[bytes] = []
        size = 0
        async for stored in self._bus.read(self._stream, seq, state.last):
            rows, lines = read_lines(upgrade_message(stored, plan.interpretation))
            await learn_epochs(self._bus, plan, rows)
            first = skip if stored.seq == seq else 0
            matching = [each for each in _matching(rows, lines, stored.seq, wanted, plan) if each[0] >= first]
            for number, line in matching:
                if found and (len(found) >= most or size + len(line) > _MOST_BYTES):
                    return _page(stored.seq * PLACES + number, found, wanted, seal, more=True)
                found.append(line)
                size += len(line)
            if clock() > until and stored.seq < state.last:
                return _page((stored.seq + 1) * PLACES, found, wanted, seal, more=True)
        return _page((max(state.last, seq - 1) + 1) * PLACES, found, wanted, seal, more=False)

    async def _look_up(self, plan: Plan) -> None:
        """Have the tables that a plan needs; SituError if one cannot be used."""
        deployment, interpretation = plan.deployment, plan.interpretation
        if not deployment.sources:
            return
        keyed = interpretation.keyed(each.context for each in deployment.subscriptions.values())
        if keyed:
            interpretation.rows.tables = await asyncio.to_thread(self._read, deployment.sources, keyed)

    def _read(self, sources: Mapping[str, Source], keyed: Mapping[str, set[Keyed]]) -> Mapping[str, Table]:
        if sources != self._sources:
            self._sources, self._keyed = sources, {}
        # What others asked for stays open: they are likely to ask for the next page.
        wanted = {name: self._keyed.get(name, set()) | keyed.get(name, set()) for name in {*self._keyed, *keyed}}
        self._tables.use(sources, wanted)
        self._keyed = wanted
        self._tables.refresh()
        return self._tables.snapshot

    def close(self) -> None:
        """End the connections to databases."""
        self._tables.close()

    async def _begin(self, asked: History, first: int, seal: Seal | None) -> int:
        if asked.after is not None and (after := _place(asked.after, seal)) is not None:
            return after
        if not asked.since:
            return first * PLACES
        at = _EPOCH + timedelta(microseconds=asked.since)
        return await self._bus.find(self._stream, at) * PLACES

    def _plan(self, wanted: Subscription, deployment: Deployment) -> Plan:
        """The plan of a deployment that has this subscription alone."""
        known = self._plans.get(wanted)
        if known is not None and _same_terms(known.deployment, deployment):
            return known
        while len(self._plans) >= _KEPT:
            self._plans.pop(next(iter(self._plans)))
        plan = compile_plan(replace(deployment.numbered(), subscriptions={wanted.id: wanted}, advertisements={}))
        self._plans[wanted] = plan
        return plan


def _same_terms(one: Deployment, other: Deployment) -> bool:
    same = one.types is other.types and one.contexts is other.contexts and one.clients is other.clients
    return same and one.scopes is other.scopes and one.epoch == other.epoch and one.numbers == other.numbered().numbers


def _matching(
    rows: list[Row], lines: list[bytes], seq: int, wanted: Subscription, plan: Plan
) -> list[tuple[int, bytes]]:
    """Places and lines of the events of a message of the log that the subscription wants and may see, in its terms."""
    if not rows or rows[0].client == wanted.client:
        return []
    routed = route(rows, plan)
    if not routed.durable and not routed.live:
        return []
    worded = plan.interpretation.worded(rows, place(rows, lines, seq), routed, plan.routing)
    found = {index: line for index, _, line in worded.durable} | {index: line for index, _, _, line in worded.live}
    return [(number, found[number]) for number in sorted(found)]


def _page(after: int, lines: list[bytes], wanted: Subscription, seal: Seal | None, *, more: bool) -> HistoryAck:
    mark = str(after)
    if seal is not None:
        mark, lines = seal.token(_CURSOR, after), seal.handed(lines, wanted.client)
    return HistoryAck(after=mark, more=more, count=len(lines), body=join_lines(lines))


def _place(mark: str, seal: Seal | None) -> int | None:
    """The position that a mark stands for; None, if it stands for none, as those from before there were scopes."""
    if seal is None:
        return int(mark) if mark.isascii() and mark.isdigit() and len(mark) < 20 else None
    kind, after = seal.opened(mark) or (None, 0)
    return after if kind == _CURSOR else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# All questions of clients to one router.

_AT_ONCE = 4
"""Questions for which the log is read; others wait."""


class ClientQueries:
    """To one router. ``folder`` is the project's."""

    def __init__(self, bus: Bus, folder: Path) -> None:
        self.describing = TypeDescriptions()
        self._history = HistoryReader(bus, folder)
        self._explaining = VisibilityExplainer(bus)
        self._reading = asyncio.Semaphore(_AT_ONCE)
        self._deployment = Deployment()

    def adopt(self, deployment: Deployment) -> None:
        self._deployment = deployment
        self.describing.adopt(deployment)

    async def close(self) -> None:
        await asyncio.to_thread(self._history.close)

    async def answer(self, effect: Look) -> FromRouter:
        asked = effect.message
        if isinstance(asked, Describe):
            return self.describing.describe(asked, effect.client)
        try:
            async with self._reading:
                if isinstance(asked, Explain):
                    return await self._explaining.answer(effect.client, asked, self._deployment)
                assert effect.wanted is not None
                return await self._page(asked, effect.wanted)
        except SituError as error:
            problem, of = error.problems[0], type(asked).__name__
            return Nack(of=of, req=asked.req, code=error.code, message=problem.message, hint=problem.hint)

    async def _page(self, asked: History, wanted: Subscription) -> HistoryAck:
        """A page by the scopes that are in force when it is sent."""
        while True:
            deployment = self._deployment
            page = await self._history.page(asked, wanted, deployment)
            if self._deployment.epoch == deployment.epoch:
                return page
