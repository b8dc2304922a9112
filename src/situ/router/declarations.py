"""Declarations of clients on their way into the registry: those that come close together become one version.

Taking an advertisement back waits, where another process decodes what clients sent, until that process has taken
everything that was stored before: those events were published while the advertisement held.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from situ.bus.interface import Bus
from situ.bus.names import Names
from situ.catalogue import CONTEXT_IN_USE, DECLARATION_SUSPENDED
from situ.deployment import Deployment
from situ.documents import parse_yaml
from situ.edge.describing import Describing
from situ.errors import Problem, SituError
from situ.overlay.effects import (
    Declaration,
    Declare,
    Declared,
    Define,
    Defined,
    Input,
    Refused,
    Rescope,
    Rescoped,
    Withdraw,
)
from situ.overlay.messages import Said
from situ.quality.shape import Shape
from situ.registry import Registry
from situ.registry.snapshots import publish_deployment
from situ.subscription.model import Advertisement, Client
from situ.visibility.rights import Principal, nothing_said

_log = logging.getLogger("situ.router")
_TOGETHER = 0.02
_LOOK_EVERY = 0.5


@dataclass(slots=True)
class _Work:
    ticket: int | None
    what: Declaration
    withdraw: bool


@dataclass(slots=True)
class _Held:
    """Taken back when the ingress stream has nothing left up to this sequence."""

    what: Declaration
    until: int | None = None


class Declarations:
    """The one way of clients' declarations into the registry."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        tell: Callable[[Input], None],
        made: Callable[[Deployment], None],
        describing: Describing,
        *,
        drains: bool,
    ) -> None:
        self._bus = bus
        self._registry = registry
        self._tell = tell
        self._made = made
        self._describing = describing
        self._drains = drains
        self._stream = Names(bus.zone).in_stream
        self._work: list[_Work] = []
        self._held: dict[tuple[type, str], _Held] = {}
        self._some = asyncio.Event()
        self._version = 0

    def declare(self, effect: Declare) -> None:
        self._held.pop((type(effect.what), effect.what.id), None)
        self._work.append(_Work(effect.ticket, effect.what, withdraw=False))
        self._some.set()

    def withdraw(self, effect: Withdraw) -> None:
        for what in effect.what:
            if self._drains and isinstance(what, Advertisement):
                self._held[type(what), what.id] = _Held(what)
                if effect.ticket is not None:
                    self._tell(Declared(ticket=effect.ticket, version=self._version))
            else:
                self._work.append(_Work(effect.ticket, what, withdraw=True))
                self._some.set()

    async def define(self, effect: Define) -> None:
        """Have the registry take a context that a client defines."""
        document = parse_yaml(effect.text, f"context {effect.context}")
        try:
            applied = await asyncio.to_thread(
                self._registry.define, effect.context, document, who=effect.client, reason="defined by the client"
            )
        except SituError as error:
            self._tell(self._refused(effect.ticket, error.problems, effect.client))
            return
        self._made(applied.deployment)
        await self._publish(applied.deployment)
        said = _said(self._describing.observed(applied.problems, effect.client))
        forks = [each.values["fork"] for each in applied.problems if each.code is CONTEXT_IN_USE]
        name = next(iter(forks), effect.context)
        self._tell(Defined(ticket=effect.ticket, context=name, version=applied.version, said=said))

    async def rescope(self, effect: Rescope) -> None:
        """Have the registry change scopes, with the rights of the client that asks."""
        by = Principal(name=effect.client)
        try:
            applied = await asyncio.to_thread(
                self._registry.change_scopes, effect.operation, by, epoch=effect.epoch, reason="asked by the client"
            )
        except SituError as error:
            self._tell(self._refused(effect.ticket, error.problems, effect.client))
            return
        if applied.changes:
            self._made(applied.deployment)
            await self._publish(applied.deployment)
        deployment = applied.deployment
        # Whose declarations are suspended by it is not for everybody to know who administers a scope.
        said = _said(each for each in applied.problems if each.code is not DECLARATION_SUSPENDED)
        self._tell(Rescoped(ticket=effect.ticket, epoch=deployment.epoch, version=deployment.version, said=said))

    async def shape(self, shapes: Mapping[str, Shape | None]) -> None:
        """Have the registry take what negotiation makes of subscriptions."""
        applied = await asyncio.to_thread(self._registry.shape, shapes, who="situ", reason="negotiated")
        if applied.changes:
            self._made(applied.deployment)
            await self._publish(applied.deployment)

    async def run(self) -> None:
        """For ever: take what has come together, and make it a version."""
        while True:
            await self._some.wait()
            await asyncio.sleep(_TOGETHER)
            self._some.clear()
            work, self._work = self._work, []
            if work:
                await self._store(work)

    async def release(self) -> None:
        """For ever: take back what was waiting for the ingress stream to run empty."""
        while True:
            await asyncio.sleep(_LOOK_EVERY)
            if not self._held:
                continue
            try:
                state = await self._bus.state(self._stream)
            except SituError:
                continue
            for key, held in tuple(self._held.items()):
                if held.until is None:
                    held.until = state.last
                if state.first > held.until:
                    del self._held[key]
                    self._work.append(_Work(None, held.what, withdraw=True))
                    self._some.set()

    async def _publish(self, deployment: Deployment) -> None:
        """The registry has it: it will be on the bus, if not now then as soon as there is one."""
        while True:
            try:
                await publish_deployment(self._bus, deployment)
                return
            except SituError as error:
                _log.warning("deployment %d is not on the bus yet: %s", deployment.version, error)
            await asyncio.sleep(_LOOK_EVERY)

    async def _store(self, work: list[_Work]) -> None:
        # Of what was said about one thing, the last holds.
        last = {(type(each.what), each.what.id): each for each in work}
        declared = [each.what for each in last.values() if not each.withdraw]
        withdrawn = [each.what for each in last.values() if each.withdraw]
        who = ", ".join(sorted({each.what.client for each in work}))
        try:
            outcome = await asyncio.to_thread(
                self._registry.declare, declared, withdraw=withdrawn, who=who, reason="declared by clients"
            )
        except SituError as error:
            _log.warning("declarations of clients were refused: %s", error)
            for each in work:
                if each.ticket is not None:
                    self._tell(self._refused(each.ticket, error.problems[:1], each.what.client))
            return
        self._made(outcome.deployment)
        await self._publish(outcome.deployment)
        self._version = outcome.version
        for each in work:
            refused = outcome.refused(each.what) if not each.withdraw else ()
            if each.ticket is None:
                continue
            if refused:
                self._tell(self._refused(each.ticket, refused, each.what.client))
                continue
            ads = outcome.deployment.advertisements.values() if isinstance(each.what, Client) else ()
            kept = tuple(ad.id for ad in ads if ad.client == each.what.client)
            taken = None if each.withdraw else _taken(outcome.deployment, each.what)
            said = self._remarks(outcome.deployment, taken)
            self._tell(Declared(ticket=each.ticket, version=outcome.version, kept=kept, what=taken, said=said))

    def _remarks(self, deployment: Deployment, what: Declaration | None) -> tuple[Said, ...]:
        """What should be known of a declaration that was taken."""
        if what is None or isinstance(what, Client):
            return ()
        publishes = isinstance(what, Advertisement)
        found = nothing_said(deployment.scopes, what.scopes, what.id, publishes=publishes)
        return _said(self._describing.observed(found, what.client))

    def _refused(self, ticket: int, problems: Sequence[Problem], client: str) -> Refused:
        """All that is wrong, under the first code."""
        found = [self._describing.told(each, client) for each in problems]
        texts = [each.message if each.cause is None else f"{each.message} {each.cause.message}" for each in found]
        first = found[0]
        return Refused(ticket=ticket, code=first.code.code, message=" ".join(dict.fromkeys(texts)), hint=first.hint)


def _taken(deployment: Deployment, what: Declaration) -> Declaration | None:
    """A declaration as it is in force: it may have tags from its client."""
    if isinstance(what, Client):
        return None
    return (deployment.advertisements if isinstance(what, Advertisement) else deployment.subscriptions).get(what.id)


def _said(problems: Iterable[Problem]) -> tuple[Said, ...]:
    return tuple(Said(code=each.code.code, message=each.message, hint=each.hint) for each in problems)
