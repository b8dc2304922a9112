"""The publisher's side of quality at a client: capability profiles, their use, and advice.

`CapabilityHandler` registers profiles and hears usage and advice. `ReactionManager` follows advice by itself.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from situ.bus.event_loop import end
from situ.bus.interface import Bus
from situ.client.feedback import FeedbackListener, QualityRegistrations
from situ.client.quality_files import Body, ProfileDraft, read_profiles, write_file
from situ.client.session import Session
from situ.lang.catalogue import NOT_NEGOTIATED
from situ.lang.problems import SituError
from situ.protocol.messages import AnswerAdvice, AskQuality, ChangeProfile, Provide, RevokeProfile
from situ.quality.negotiation.feedback import Advice, Usage, Value

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Profiles and advice. The client keeps what it registered: when its router has forgotten it, it is registered again,
# with the same version. An advice that comes once more, because its answer was lost, is answered again; the application
# is not asked twice what to do about it.

_log = logging.getLogger("situ.client")
_MOST_REMEMBERED = 1000

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Accept:
    """Answers an :class:`situ.Advice`: it will be done.

    >>> listener = gate.capabilities.on_advice(lambda advice: situ.Accept())
    >>> await listener.close()
    """


@dataclass(frozen=True, slots=True)
class Refuse:
    """Answers an :class:`situ.Advice`: it cannot be done. ``value`` is what can: one value, or property → value if the
    advice has several.

    >>> listener = gate.capabilities.on_advice(lambda advice: situ.Refuse({"rate": 3}))
    >>> await listener.close()
    """

    value: Value | Mapping[str, Value] | None = None


Answer = Accept | Refuse | None
"""None: whoever was asked answers by itself, later."""
OnAdvice = Callable[[Advice], Awaitable[Answer] | Answer]


@dataclass(slots=True, eq=False)
class RegisteredProfile:
    """A profile of capabilities that is registered: what a publisher can do for an event type.

    >>> rate = {"lb": 1, "ub": 60, "cv": 2, "cost": "0.1 * x"}
    >>> profile = await gate.capabilities.register("TruckSeen", {"rate": rate})
    >>> profile.id, profile.value("rate")
    ('gate/TruckSeen', 2)
    >>> await gate.capabilities.revoke(profile)
    """

    publisher: str
    type: str
    capabilities: dict[str, dict[str, Any]] = field(default_factory=dict)
    modes: tuple[Body, ...] = ()
    mode: str | None = None
    version: int = 1

    @property
    def id(self) -> str:
        return f"{self.publisher}/{self.type}"

    @property
    def body(self) -> dict[str, Any]:
        """As a file says it."""
        found: dict[str, Any] = {"capabilities": self.capabilities} if self.capabilities else {}
        if self.modes:
            found |= {"mode": self.mode, "modes": [dict(each) for each in self.modes]}
        return found

    def value(self, name: str) -> Value | None:
        """What it operates at now; None if it says nothing of the property."""
        if name in self.capabilities:
            found: Value | None = self.capabilities[name].get("cv")
            return found
        for each in self.modes:
            if each.get("name") == self.mode:
                return each["values"].get(name)  # type: ignore[no-any-return]  # as the application gave it
        return None


class CapabilityHandler(QualityRegistrations[RegisteredProfile, Advice | Usage]):
    """The capability profiles of one client, by event type: ``client.capabilities``."""

    def __init__(self, bus: Bus, session: Session, advertise: Callable[[str], Awaitable[object]]) -> None:
        super().__init__(bus, session, "pub")
        self._advertise = advertise
        self._answers: dict[str, tuple[str, Mapping[str, Value]]] = {}
        self._asked: dict[str, None] = {}
        """Advice that somebody was asked about, the latest last."""

    # ── calls ──

    async def register(
        self,
        type: str,
        capabilities: Mapping[str, Body] | None = None,
        *,
        modes: Iterable[Body] | None = None,
        mode: str | None = None,
    ) -> RegisteredProfile:
        """Say what this client can do for an event type, which is advertised if it is not yet."""
        made = RegisteredProfile(
            publisher=self.client,
            type=type,
            capabilities={name: dict(each) for name, each in (capabilities or {}).items()},
            modes=tuple(modes or ()),
            mode=mode,
        )
        await self._advertise(type)
        async with self._negotiating.turn(type):
            await self._hearing.begin()
            message = Provide(req=self._negotiating.request(), type=type, body=made.body)
            made.version = _version(await self._negotiating.ask(message), made)
            self.registered[type] = made
        return made

    async def update(
        self,
        profile: RegisteredProfile | str,
        *,
        capabilities: Mapping[str, Body] | None = None,
        mode: str | None = None,
        version: int | None = None,
    ) -> RegisteredProfile:
        """Say what has become different: of a capability only what is named, such as ``{"rate": {"cv": 12}}``."""
        type = _type(profile, self.client)
        async with self._negotiating.turn(type):
            known = self.registered.get(type)
            body: dict[str, Any] = {} if mode is None else {"mode": mode}
            if capabilities:
                body["capabilities"] = {name: dict(each) for name, each in capabilities.items()}
            if version is None and known is not None:
                version = known.version + 1
            message = ChangeProfile(req=self._negotiating.request(), type=type, body=body, version=version)
            answer = await self._change(known, message)
            after = _as_answered(answer)
            if known is None:  # the project declares it: nothing to register again
                return after
            # As the router has put it together: what was said may be in other units than what it goes beside.
            known.capabilities, known.modes, known.mode = after.capabilities, after.modes, after.mode
            known.version = after.version
        return known

    async def revoke(self, profile: RegisteredProfile | str) -> None:
        """This client can do nothing any more, as far as others rely on it."""
        type = _type(profile, self.client)
        async with self._negotiating.turn(type):
            await self._negotiating.ask(RevokeProfile(req=self._negotiating.request(), type=type))
            self.registered.pop(type, None)

    async def answer(self, advice: Advice, verdict: str, values: Mapping[str, Value] | None = None) -> None:
        """Tell what becomes of an advice: ``accepted``, ``refused`` or ``failed``, with what can be done instead."""
        self._remember(advice.id, verdict, values or {})
        await self._send(advice.id)

    # ── hearing ──

    async def usage(self, profile: RegisteredProfile | str) -> Usage:
        """Who relies on the profile, as far as a publisher is told."""
        await self._hearing.begin()
        type = _type(profile, self.client)
        message = AskQuality(req=self._negotiating.request(), about=type, publisher=True)
        found = (await self._negotiating.ask(message)).get("usage")
        if not found:
            raise SituError(NOT_NEGOTIATED(what="profile", name=type, nearest=tuple(self.registered)))
        return Usage.from_json(found)

    def on_advice(self, callback: OnAdvice) -> FeedbackListener[Advice | Usage]:
        """Ask the callback what to do about an advice; plain callables run in a thread of their own.

        It gives :class:`Accept` or :class:`Refuse`. What takes longer is begun, and accepted first. ``relax`` and
        ``withdraw`` need no answer.
        """

        async def hear(message: Advice | Usage) -> None:
            if isinstance(message, Advice):
                await self._heard(message, callback)

        return self._call_back(hear)

    def on_usage(self, callback: Callable[[Usage], Awaitable[object] | object]) -> FeedbackListener[Advice | Usage]:
        """Call back when a profile is used, or no more, and each minute in between."""

        async def hear(message: Advice | Usage) -> None:
            if isinstance(message, Usage) and inspect.isawaitable(result := callback(message)):
                await result

        return self._call_back(hear)

    # ── files ──

    def store(self, path: str | os.PathLike[str]) -> None:
        """Write what is registered to a file."""
        entries = [{"publisher": self.client, "type": each.type, **each.body} for each in self.registered.values()]
        write_file(path, {"profiles": entries})

    def load(self, path: str | os.PathLike[str]) -> list[ProfileDraft]:
        """What a file says; nothing is registered."""
        return read_profiles(path)

    async def register_draft(self, draft: ProfileDraft) -> RegisteredProfile:
        return await self.register(draft.type, draft.capabilities, modes=draft.modes, mode=draft.mode)

    # ── how ──

    async def _register_again(self, registered: RegisteredProfile) -> None:
        message = Provide(
            req=self._negotiating.request(),
            type=registered.type,
            body=registered.body,
            version=registered.version,
        )
        await self._negotiating.ask(message)

    async def _heard(self, advice: Advice, callback: OnAdvice) -> None:
        if advice.id in self._answers:
            if advice.kind == "raise":  # it was heard before, and the answer was not
                await self._send(advice.id)
                return
        elif advice.kind == "raise" and advice.id in self._asked:
            return  # it is being answered
        _put_last(self._asked, advice.id, None)
        try:
            if inspect.iscoroutinefunction(callback):
                answer = await callback(advice)
            else:
                answer = await asyncio.to_thread(callback, advice)
                if inspect.isawaitable(answer):
                    answer = await answer
        except Exception as error:  # noqa: BLE001 - the application's own
            _log.error("%s: advice %s was not followed", self.client, advice.id, exc_info=error)
            answer = Refuse()
        if advice.kind != "raise" or answer is None:
            return
        if isinstance(answer, Refuse):
            await self.answer(advice, "refused", _by_property(answer.value, advice))
        else:
            await self.answer(advice, "accepted")

    def _remember(self, advice: str, verdict: str, values: Mapping[str, Value]) -> None:
        _put_last(self._answers, advice, (verdict, values))

    async def _send(self, advice: str) -> None:
        verdict, values = self._answers[advice]
        message = AnswerAdvice(req=self._negotiating.request(), advice=advice, verdict=verdict, values=dict(values))
        await self._negotiating.ask(message)

    async def _catch_up(self) -> None:
        answer = await self._negotiating.ask(AskQuality(req=self._negotiating.request(), publisher=True))
        for each in answer.get("advice", ()):
            self._hearing.tell(Advice.from_json(each))


def _put_last(kept: dict[str, T], id: str, value: T) -> None:
    """Advice is short-lived: of what was long ago nobody asks any more."""
    kept.pop(id, None)
    kept[id] = value
    if len(kept) > _MOST_REMEMBERED:
        del kept[next(iter(kept))]


def _as_answered(answer: Mapping[str, Any]) -> RegisteredProfile:
    return RegisteredProfile(
        publisher=answer["publisher"],
        type=answer["type"],
        capabilities=dict(answer.get("capabilities", {})),
        modes=tuple(answer.get("modes", ())),
        mode=answer.get("mode"),
        version=answer["version"],
    )


def _version(answer: Mapping[str, Any], known: RegisteredProfile) -> int:
    return int(answer.get("version", known.version))


def _type(profile: RegisteredProfile | str, client: str) -> str:
    return profile.removeprefix(f"{client}/") if isinstance(profile, str) else profile.type


def _by_property(value: Value | Mapping[str, Value] | None, advice: Advice) -> Mapping[str, Value]:
    if value is None:
        return {}
    if isinstance(value, Mapping):
        return value
    return dict.fromkeys(advice.values, value) if len(advice.values) == 1 else {}


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A publisher that follows advice by itself: accepts it, adapts, and says what it operates at from then on.

Adapt = Callable[[Advice], Awaitable[None] | None]


class ReactionManager:
    """Has ``adapt`` follow every advice; plain callables run in a thread of their own.

    One that takes longer than ``timeout`` seconds, or fails, is tried ``retries`` times more; then the advice has
    failed, and the values of now are the best there is.

    >>> def adapt(advice):
    ...     print("from now on", advice.values["rate"])
    >>> profile = await gate.capabilities.register("TruckSeen", {"rate": {"lb": 1, "ub": 60, "cv": 2}})
    >>> reaction = situ.ReactionManager(gate.capabilities, adapt)
    >>> trucks = await office.register_for_events("TruckSeen")
    >>> wanted = await office.expectations.register(trucks, {"rate": {"lb": 5, "ub": 10}})
    >>> async for change in office.expectations.changes():
    ...     if change.state == "satisfied":
    ...         break
    from now on 5.0
    >>> await reaction.close()
    >>> await gate.capabilities.revoke(profile)
    """

    def __init__(self, handler: CapabilityHandler, adapt: Adapt, *, timeout: float = 5.0, retries: int = 1) -> None:
        self.adapted = 0
        self.failed = 0
        self._handler = handler
        self._adapt = adapt
        self._timeout = timeout
        self._retries = retries
        self._turns: dict[str, asyncio.Lock] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._hearer = handler.on_advice(self._react)

    async def close(self) -> None:
        """Follow nothing any more."""
        await self._hearer.close()
        await end(self._tasks)

    async def _react(self, advice: Advice) -> None:
        if advice.kind == "withdraw":
            return
        if advice.kind == "raise":
            await self._handler.answer(advice, "accepted")
        # The next advice is heard meanwhile; those about one profile are followed one after the other.
        task = asyncio.get_running_loop().create_task(self._follow(advice))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _follow(self, advice: Advice) -> None:
        async with self._turns.setdefault(advice.profile, asyncio.Lock()):
            done = await self._try(advice)
            try:
                if done:
                    self.adapted += 1
                    await self._tell(advice)
                else:
                    self.failed += 1
                    await self._handler.answer(advice, "failed", self._values_now(advice))
            except SituError as error:
                _log.error("%s: what became of advice %s could not be told: %s", advice.profile, advice.id, error)

    async def _try(self, advice: Advice) -> bool:
        for _ in range(1 + self._retries):
            try:
                async with asyncio.timeout(self._timeout):
                    if inspect.iscoroutinefunction(self._adapt):
                        await self._adapt(advice)
                    elif inspect.isawaitable(result := await asyncio.to_thread(self._adapt, advice)):
                        await result
                return True
            except TimeoutError:
                _log.error("%s takes longer than %g s to adapt", advice.profile, self._timeout)
            except Exception as error:  # noqa: BLE001 - the application's own
                _log.error("%s could not adapt", advice.profile, exc_info=error)
        return False

    async def _tell(self, advice: Advice) -> None:
        """What is so makes the advice effective."""
        capabilities: dict[str, Any] = {name: {"cv": value} for name, value in advice.values.items()}
        await self._handler.update(advice.profile, capabilities=capabilities, mode=advice.mode or None)

    def _values_now(self, advice: Advice) -> dict[str, float | str]:
        profile = self._profile(advice)
        if profile is None:
            return {}
        found = {name: profile.value(name) for name in advice.values}
        return {name: value for name, value in found.items() if value is not None}

    def _profile(self, advice: Advice) -> RegisteredProfile | None:
        return self._handler.registered.get(advice.profile.removeprefix(f"{self._handler.client}/"))
