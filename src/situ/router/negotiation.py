"""Quality negotiation in a router: one queue of inputs, the machine of `situ.quality`, and what it wants done.

`ShapeRollout` has shapes of subscriptions come into force, `NegotiationHost` runs the machine, keeps its state in the
registry and answers clients.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from situ.bus.failure_log import InternalErrors
from situ.bus.interface import Bus, Serving, StoreAck
from situ.event.message import Message
from situ.event.subjects import BusNames
from situ.lang.problems import Problem, SituError
from situ.lang.records import replace
from situ.model import Deployment
from situ.protocol.effects import Negotiate, Presence
from situ.protocol.messages import AskQuality, FromRouter, Nack, QualityAck
from situ.quality.measurement.meter import MeasuredPublishers
from situ.quality.measurement.panes import Pane
from situ.quality.model.declarations import Expectation, Profile
from situ.quality.model.json_form import expectation_as_json, profile_as_json
from situ.quality.model.shapes import Shape
from situ.quality.negotiation.inputs_and_effects import (
    Came,
    DeployedQuality,
    Gone,
    Input,
    Measured,
    NotifyClient,
    Providing,
    Relevance,
    Reply,
    Restored,
    Retracting,
    Revising,
    ShapesChanged,
    StoreValues,
    Tick,
    Wake,
)
from situ.quality.negotiation.negotiator import new_state, step
from situ.quality.negotiation.state import ExpectationRecord, ProfileRecord
from situ.registry import Registry
from situ.router import quality_calls
from situ.router.quality_calls import EarlyCalls, QualityAnswers, QualityCalls, RelevantProfiles
from situ.router.strategy_plugins import load_strategies

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Shapes on their way into force: those that change close together become one version of the deployment.

_log = logging.getLogger("situ.quality")
_TOGETHER = 0.02
_PAUSE = 0.5


class ShapeRollout:
    """Of one zone. ``shape`` has shapes be in force, None for a subscription that has one no more."""

    def __init__(self, shape: Callable[[dict[str, Shape | None]], Awaitable[None]]) -> None:
        self.shape = shape
        self._shapes: dict[str, Shape | None] = {}
        self._reshaped = asyncio.Event()
        self.mistakes = InternalErrors(_log)

    def put(self, shapes: Mapping[str, Shape | None]) -> None:
        if shapes:
            self._shapes.update(shapes)
            self._reshaped.set()

    async def run(self) -> None:
        """For ever: have what has come together be in force."""
        while True:
            await self._reshaped.wait()
            await asyncio.sleep(_TOGETHER)
            self._reshaped.clear()
            shapes, self._shapes = self._shapes, {}
            try:
                await self._put_in_force(shapes)
            except SituError as error:
                _log.warning("shapes are not in force yet: %s", error)
                self._shapes = {**shapes, **self._shapes}
                self._reshaped.set()
                await asyncio.sleep(_PAUSE)

    async def _put_in_force(self, shapes: dict[str, Shape | None]) -> None:
        """All at once; where that goes wrong, one by one: what is wrong with one must not hold up the others. It is
        tried again when it has become another, or when the router is started."""
        try:
            await self.shape(shapes)
        except SituError:
            raise
        except Exception as error:  # noqa: BLE001 - see above
            if len(shapes) == 1:
                failure = self.mistakes.note(error, "quality shape")
                _log.error("mistake %s: the shape of %s is not in force", failure.id, next(iter(shapes)))
                return
            for id, shape in shapes.items():
                await self._put_in_force({id: shape})


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The machine. What it keeps is in the registry before anything of the same step is told; what was told and perhaps not
# heard is told again after a restart. Which profiles matter to whom follows from the deployment, and is worked out only
# where somebody speaks of quality at all.

_PART = "quality"
_MOST_TOLD = 10
"""Things that are wrong with one call."""


_LOOKED_AT = (
    "quality",
    "advertisements",
    "subscriptions",
    "scopes",
    "contexts",
    "clients",
    "types",
    "functions",
    "sources",
    "settings",
)
"""What of a deployment negotiation depends on."""


_CHANGE_PUBLISHERS = (DeployedQuality, Restored, Providing, Retracting)


@dataclass(frozen=True, slots=True)
class _LookAgain:
    """The time of a call that waits may have come."""


@dataclass(frozen=True, slots=True)
class _GraceOver:
    """Whoever was here before the router was started, and has not come back, is gone."""


_Given = Input | Negotiate | Deployment | _LookAgain | _GraceOver


class NegotiationHost:
    """Negotiation in one zone."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        answer: Callable[[int, FromRouter], Awaitable[None]],
        shape: Callable[[dict[str, Shape | None]], Awaitable[None]],
        measure: Callable[[MeasuredPublishers], Awaitable[None]],
        clock: Callable[[], int],
    ) -> None:
        self.dropped: Callable[[], Mapping[str, int]] = dict
        """What shaping dropped so far, by subscription and reason; the engine knows."""
        self._bus = bus
        self._clock = clock
        self._names = BusNames(bus.zone)
        self._kept = registry.kept(_PART)
        self._answer = answer
        self.reshaping = ShapeRollout(shape)
        self._measure = measure
        self._measured: MeasuredPublishers | None = None
        """Whose events are measured."""
        self._state = new_state(load_strategies())
        self._queue: asyncio.Queue[_Given] = asyncio.Queue()
        self._deployment = Deployment()
        self._in_use = False
        """Whether anybody speaks of quality."""
        self._pools: RelevantProfiles | None = None
        self._of: dict[int, tuple[str, int]] = {}
        """Ticket → the kind of message that asked, and its number."""
        self._early = EarlyCalls()
        self._timer: asyncio.TimerHandle | None = None
        self._grace: asyncio.TimerHandle | None = None
        self._awaited: set[str] = set()
        """Who was here when the router ended, by what was kept, and has not come back yet."""
        self._serving: Serving | None = None
        self.mistakes = InternalErrors(_log)

    # ── beginning and end ──

    async def start(self) -> None:
        """Go on with what was kept."""
        kept = await asyncio.to_thread(self._kept.read)
        self._queue.put_nowait(Restored(kept=kept, number=time.time_ns() // 1_000_000))
        self._in_use = bool(kept)
        self._serving = await self._bus.serve(self._names.quality, self._asked)

    async def close(self) -> None:
        for timer in (self._timer, self._grace):
            if timer is not None:
                timer.cancel()
        if self._serving is not None:
            await self._serving.close()

    # ── what happens ──

    def adopt(self, deployment: Deployment) -> None:
        self._queue.put_nowait(deployment)

    def take(self, call: Negotiate) -> None:
        """What a client says; it is answered when it is done."""
        self._queue.put_nowait(call)

    def presence(self, effect: Presence) -> None:
        self._queue.put_nowait(Came(client=effect.client) if effect.here else Gone(client=effect.client))

    def measured(self, panes: Iterable[Pane], until: int) -> None:
        """What engines measured, by the names of root; all panes that end before ``until`` are complete."""
        self._queue.put_nowait(Measured(panes=tuple(panes), until=until))

    # ── the machine ──

    async def run(self) -> None:
        """For ever: one thing at a time."""
        while True:
            given = await self._queue.get()
            try:
                await self._take(given)
            except SituError as error:
                _log.warning("%s: %s", type(given).__name__, error)
            except Exception as error:  # noqa: BLE001 - one thing that goes wrong is not the end of negotiation
                self.mistakes.note(error, f"quality {type(given).__name__}")

    async def _take(self, given: _Given) -> None:
        match given:
            case Deployment():
                await self._adopt(given)
                if self._grace is None:
                    self._await_those_of_before()
            case Negotiate():
                await self._call(given)
            case _LookAgain():
                await self._try_early()
            case Measured():
                await self._step(replace(given, panes=tuple(map(self._as_called, given.panes))))
            case _GraceOver():
                for client in sorted(self._awaited):
                    await self._step(Gone(client=client))
                self._awaited = set()
            case Came() | Gone():
                self._awaited.discard(given.client)
                await self._step(given)
            case _:
                await self._step(given)

    def _await_those_of_before(self) -> None:
        """Who was here when the router ended is taken to be here for as long as a lost link is waited for."""
        state = self._state
        known: list[ExpectationRecord | ProfileRecord] = [*state.expectations.values(), *state.profiles.values()]
        self._awaited = state.here | {each.client for each in known if not each.declared}
        wait = self._deployment.settings.overlay.child_grace.total_seconds()
        self._grace = asyncio.get_running_loop().call_later(wait, self._queue.put_nowait, _GraceOver())

    def _is_publisher(self, client: str) -> bool:
        """Whether a client is known as a publisher: most have nothing to do with quality."""
        state = self._state
        return bool(state.profiles.of(client))

    def _changes_publishers(self, given: Input) -> bool:
        """Whether others are to be measured after it, perhaps."""
        if isinstance(given, Revising):
            return "reliability" in given.capabilities
        if isinstance(given, Gone):
            return self._is_publisher(given.client)
        return isinstance(given, _CHANGE_PUBLISHERS)

    async def _step(self, given: Input) -> None:
        told, changes_publishers = [], self._changes_publishers(given)
        for effect in step(self._state, given, self._clock() / 1e6):
            if isinstance(effect, NotifyClient):
                told.append((effect, await self._tell(effect)))
            else:
                await self._do(effect)
        # The next step forgets what this one told.
        for effect, stored in told:
            await self._until_told(effect, stored)
        if changes_publishers:
            await self._have_measured()

    async def _have_measured(self) -> None:
        """Engines measure those who have told what they can do, and nobody else."""
        whom = MeasuredPublishers.of(each.profile for each in self._state.profiles.values())
        if self._state.begun and whom != self._measured:
            await self._measure(whom)
            self._measured = whom

    async def _adopt(self, deployment: Deployment) -> None:
        before, self._deployment = self._deployment, deployment
        self._in_use = self._in_use or bool(deployment.quality)
        if not self._in_use:
            if before.version == 0:
                await self._step(DeployedQuality(quality=deployment.quality, relevance=Relevance()))
            return
        if self._pools is None or _matters(before, deployment):
            await self._work_out()
        await self._try_early()

    async def _work_out(self) -> None:
        self._in_use = True
        self._pools = await asyncio.to_thread(RelevantProfiles.of, self._deployment, self._pools)
        relevance = await asyncio.to_thread(self._pools.relevance)
        had_begun = self._state.begun
        await self._step(DeployedQuality(quality=self._deployment.quality, relevance=relevance))
        if not had_begun:
            # A process before this one may have been ended before it could take these away.
            self.reshaping.put({id: None for id in self._deployment.shapes if id not in self._state.shapes})

    def _as_called(self, pane: Pane) -> Pane:
        """With the type as its publisher calls it."""
        called = None if self._pools is None else self._pools.root_types.get((pane.publisher, pane.type))
        return pane if called is None else replace(pane, type=called)

    # ── calls ──

    async def _carry_out(self, call: Negotiate) -> None:
        message = call.message
        if self._pools is None:
            await self._work_out()
        assert self._pools is not None
        loop = asyncio.get_running_loop()
        if self._early.hold(call, self._pools, loop.time()):
            loop.call_later(quality_calls.PATIENCE, self._queue.put_nowait, _LookAgain())
            return
        try:
            if isinstance(message, AskQuality):
                body, text = QualityAnswers(self._state, self.dropped()).to_client(call.client, message)
                await self._answer(call.ticket, QualityAck(req=message.req, body=body, text=text))
                return
            given = QualityCalls(self._pools, self._state).read(call.ticket, call.client, message)
        except SituError as error:
            await self._refuse(call, error.problems)
            return
        self._of[call.ticket] = type(message).__name__, message.req
        await self._step(given)

    async def _call(self, call: Negotiate) -> None:
        """Whatever becomes of it, whoever called is answered."""
        try:
            await self._carry_out(call)
        except SituError:
            raise
        except Exception as error:  # noqa: BLE001 - mistakes of ours are answered, too
            self._of.pop(call.ticket, None)
            await self._refuse(call, (self.mistakes.told(error, f"quality {type(call.message).__name__}"),))

    async def _try_early(self) -> None:
        """Make the calls whose time has come."""
        assert self._pools is not None
        for call in self._early.due(self._pools, asyncio.get_running_loop().time()):
            await self._call(call)

    async def _refuse(self, call: Negotiate, problems: Iterable[Problem]) -> None:
        """All that is wrong, under the first code; of very much the first."""
        found = tuple(problems)
        messages = list(dict.fromkeys(each.message for each in found))
        if (more := len(messages) - _MOST_TOLD) > 0:
            messages[_MOST_TOLD:] = [f"And {more:,} more."]
        text = " ".join(messages)
        of, first = type(call.message).__name__, found[0]
        nack = Nack(of=of, req=call.message.req, code=first.code.code, message=text, hint=first.hint)
        await self._answer(call.ticket, nack)

    async def _asked(self, message: Message) -> Message:
        """A question of somebody who may know everything: no client can write to this subject."""
        try:
            asked = json.loads(message.body or b"{}")
            body, text = QualityAnswers(self._state, self.dropped()).to_operator(asked)
            said: dict[str, Any] = {"body": body, "text": text}
        except Exception as error:  # noqa: BLE001 - mistakes of ours are answered, too
            problem = (
                error.problems[0] if isinstance(error, SituError) else self.mistakes.told(error, "quality question")
            )
            said = {"code": problem.code.code, "message": problem.message, "hint": problem.hint}
        return Message(subject=message.subject, body=json.dumps(said).encode())

    # ── effects ──

    async def _do(self, effect: StoreValues | ShapesChanged | Reply | Wake) -> None:
        match effect:
            case StoreValues():
                await self._keep(effect)
            case ShapesChanged():
                self.reshaping.put(effect.shapes)
            case Reply():
                await self._reply(effect)
            case Wake():
                self._wake(effect.at)

    async def _keep(self, effect: StoreValues) -> None:
        """Nothing is told before it is kept, however long that takes."""
        while True:
            try:
                await asyncio.to_thread(self._kept.keep, effect.values)
                return
            except SituError as error:
                _log.warning("what was negotiated is not kept yet: %s", error)
            await asyncio.sleep(_PAUSE)

    async def _tell(self, effect: NotifyClient) -> asyncio.Future[StoreAck]:
        subject = self._names.feedback(effect.kind, effect.client)
        return await self._bus.store(Message(subject=subject, body=json.dumps(effect.message.as_json()).encode()))

    async def _until_told(self, effect: NotifyClient, stored: asyncio.Future[StoreAck]) -> None:
        while True:
            try:
                await stored
                return
            except SituError as error:
                _log.warning("feedback to %s is not told yet: %s", effect.client, error)
            await asyncio.sleep(_PAUSE)
            stored = await self._tell(effect)

    async def _reply(self, effect: Reply) -> None:
        kind, req = self._of.pop(effect.ticket, ("", 0))
        result = effect.result
        if isinstance(result, Problem):
            nack = Nack(of=kind, req=req, code=result.code.code, message=result.message, hint=result.hint)
            await self._answer(effect.ticket, nack)
        else:
            await self._answer(effect.ticket, QualityAck(req=req, body=_as_json(result)))

    def _wake(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(at - self._clock() / 1e6, 0.0), self._queue.put_nowait, Tick())


def _as_json(result: Expectation | Profile | None) -> dict[str, Any]:
    """What is in force, with its version."""
    if result is None:
        return {}
    written = expectation_as_json(result) if isinstance(result, Expectation) else profile_as_json(result)
    return {**written, "version": result.version}


def _matters(before: Deployment, after: Deployment) -> bool:
    """Whether anything differs that negotiation depends on: shapes, which follow from it, do not count."""
    return any(getattr(before, name) != getattr(after, name) for name in _LOOKED_AT)
