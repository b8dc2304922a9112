"""Declarations of clients on their way into the registry, and what a router tells clients about the deployment.

`terms_of` and `TypeDescriptions` give terms and types, `DeclarationQueue` takes declarations, contexts and changes of
scopes into the registry, `suspended_declarations` says which declarations are suspended and why.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from situ.bus.interface import Bus
from situ.event.subjects import BusNames
from situ.lang.catalogue import CONTEXT_IN_USE, DECLARATION_SUSPENDED, NOT_A_MEMBER
from situ.lang.documents import parse_yaml
from situ.lang.problems import Problem, SituError
from situ.lang.tags import ANY
from situ.lang.types.model import Struct, format_attribute, supertypes
from situ.model import Deployment
from situ.protocol.effects import (
    Declaration,
    Declare,
    Declared,
    Define,
    Defined,
    Input,
    Refused,
    Rescope,
    Rescoped,
    Suspended,
    Withdraw,
)
from situ.protocol.messages import Describe, DescribeAck, Description, Notice, Terms
from situ.quality.model.shapes import Shape
from situ.registry import Object, Registry
from situ.registry.changes import why_suspended
from situ.registry.snapshots import publish_deployment
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.rights import Principal, nothing_said
from situ.settings import Settings
from situ.stages.type_visibility import TypeVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What clients are told: the terms they keep to, and the types of events.

_BEATS = 6
"""Signs of life of a client within the time after which its silence means that it is gone."""


def terms_of(settings: Settings) -> Terms:
    """What clients keep to."""
    batch = settings.batch
    return Terms(
        batch_events=batch.events,
        batch_size=batch.size,
        linger=batch.linger.total_seconds(),
        event_limit=settings.limits.event,
        install_timeout=settings.defaults.install_timeout.total_seconds(),
        heartbeat=max(settings.overlay.child_grace.total_seconds() / _BEATS, 0.1),
    )


class TypeDescriptions:
    """What one router tells its clients. Types of which a client could never see an event do not exist for it."""

    def __init__(self) -> None:
        self._deployment = Deployment()
        self._showing: TypeVisibility | None = None

    def adopt(self, deployment: Deployment) -> None:
        self._deployment, self._showing = deployment, TypeVisibility.of(deployment, self._showing)

    def describe(self, asked: Describe, client: str) -> DescribeAck:
        """The types asked for, or all types of events, as the client knows them."""
        showing = self._showing
        shown = None if showing is None else showing.types(client) | showing.parts(client)
        return describe(self._deployment, asked, client, shown)

    def told(self, problem: Problem, client: str) -> Problem:
        """What is wrong, as this client may know it."""
        return problem if self._showing is None else self._showing.told(problem, client)

    def observed(self, problems: Iterable[Problem], client: str) -> list[Problem]:
        """What is worth saying and kept nothing from being done, without what this client may not know."""
        showing = self._showing
        if showing is None:
            return list(problems)
        return [showing.told(each, client) for each in problems if not showing.names_hidden(each, client)]


def describe(
    deployment: Deployment, asked: Describe, client: str = "", shown: frozenset[str] | None = None
) -> DescribeAck:
    """The types asked for, or all types of events, as the client knows them; those that do not exist are left out.

    ``shown`` are those that exist for the client; None: all.
    """
    known_as = deployment.clients.get(client)
    context = None if known_as is None else deployment.contexts.get(known_as.context)
    types = deployment.types if context is None else context.types
    found: dict[str, Description] = {}
    for name in asked.types or sorted(types.events):
        known = types.get(name)
        if isinstance(known, Struct) and (shown is None or name in shown):
            above = tuple(str(each) for each in supertypes(known) if str(each) != name)
            attributes = {each.name: format_attribute(each) for each in known.attributes}
            found[name] = Description(event=name in types.events, above=above, attributes=attributes)
    return DescribeAck(req=asked.req, version=deployment.version, types=found)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations on their way: those that come close together become one version. Taking an advertisement back waits,
# where another process decodes what clients sent, until that process has taken everything that was stored before: those
# events were published while the advertisement held.

_log = logging.getLogger("situ.router")
_TOGETHER = 0.02
_LOOK_EVERY = 0.5


@dataclass(slots=True)
class _DeclarationWork:
    ticket: int | None
    what: Declaration
    withdraw: bool


@dataclass(slots=True)
class _HeldDeclaration:
    """Taken back when the ingress stream has nothing left up to this sequence."""

    what: Declaration
    until: int | None = None


class DeclarationQueue:
    """The one way of clients' declarations into the registry."""

    def __init__(
        self,
        bus: Bus,
        registry: Registry,
        tell: Callable[[Input], None],
        made: Callable[[Deployment], None],
        describing: TypeDescriptions,
        *,
        drains: bool,
    ) -> None:
        self._bus = bus
        self._registry = registry
        self._tell = tell
        self._made = made
        self._describing = describing
        self._drains = drains
        self._stream = BusNames(bus.zone).in_stream
        self._work: list[_DeclarationWork] = []
        self._held: dict[tuple[type, str], _HeldDeclaration] = {}
        self._some = asyncio.Event()
        self._version = 0

    def declare(self, effect: Declare) -> None:
        self._held.pop((type(effect.what), effect.what.id), None)
        self._work.append(_DeclarationWork(effect.ticket, effect.what, withdraw=False))
        self._some.set()

    def withdraw(self, effect: Withdraw) -> None:
        for what in effect.what:
            if self._drains and isinstance(what, Advertisement):
                self._held[type(what), what.id] = _HeldDeclaration(what)
                if effect.ticket is not None:
                    self._tell(Declared(ticket=effect.ticket, version=self._version))
            else:
                self._work.append(_DeclarationWork(effect.ticket, what, withdraw=True))
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
                    self._work.append(_DeclarationWork(None, held.what, withdraw=True))
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

    async def _store(self, work: list[_DeclarationWork]) -> None:
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
            ads = outcome.deployment.advertisements.values() if isinstance(each.what, ClientDeclaration) else ()
            kept = tuple(ad.id for ad in ads if ad.client == each.what.client)
            taken = None if each.withdraw else _taken(outcome.deployment, each.what)
            said = self._remarks(outcome.deployment, taken)
            self._tell(Declared(ticket=each.ticket, version=outcome.version, kept=kept, what=taken, said=said))

    def _remarks(self, deployment: Deployment, what: Declaration | None) -> tuple[Notice, ...]:
        """What should be known of a declaration that was taken."""
        if what is None or isinstance(what, ClientDeclaration):
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
    if isinstance(what, ClientDeclaration):
        return None
    return (deployment.advertisements if isinstance(what, Advertisement) else deployment.subscriptions).get(what.id)


def _said(problems: Iterable[Problem]) -> tuple[Notice, ...]:
    return tuple(Notice(code=each.code.code, message=each.message, hint=each.hint) for each in problems)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Declarations that clients have no right to any more: which, and what they lack.


def suspended_declarations(deployment: Deployment, objects: Iterable[Object]) -> tuple[Suspended, ...]:
    """Suspended declarations as the router's machine takes them; those that only a later version lacks are not yet."""
    found = []
    for each in objects:
        if each.name in (deployment.advertisements if each.kind == "advertisement" else deployment.subscriptions):
            continue
        of = Advertisement if each.kind == "advertisement" else Subscription
        what: Advertisement | Subscription = of.from_json(each.name, json.loads(each.body))
        why = why_suspended(deployment, what) or _meanwhile(what)
        found.append(Suspended(what=what, version=each.version, code=why.code.code, message=why.message, hint=why.hint))
    return tuple(found)


def _meanwhile(what: Advertisement | Subscription) -> Problem:
    """Its client has the right again, and had lost it: that takes a new declaration."""
    named = [(dimension, tag) for dimension, tag in what.scopes.named if tag != ANY]
    dimension, scope = named[0] if named else ("rest", ANY)
    return NOT_A_MEMBER(who=what.client, scope=scope, dimension=dimension, memberships=())
