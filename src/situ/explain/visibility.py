"""Why an event is visible to a subscription, or not, for an operator: the event from the log, or a sample of one.

Scopes are those in force, filters have the places that they have in the folder where they are the same there.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from situ.bus.interface import Bus
from situ.event.row import Row
from situ.event.seal import Seal, seal_of
from situ.explain.conversion import ContextTransformer, find_context
from situ.explain.expression import RawSample, read_sample
from situ.lang.catalogue import NO_SUCH_DECLARATION, UNKNOWN_EVENT, UNKNOWN_SUBSCRIPTION
from situ.lang.problems import SituError, nearest
from situ.lang.types.lookup import unknown_event
from situ.model import Deployment
from situ.project.event_files import EventLineReader, InputError, InputEvent
from situ.registry.snapshots import fetch_scopes
from situ.router.explain_visibility import EventReference, Progress, search_dead_letters, search_log
from situ.routing.model import ROOT, Advertisement, Subscription
from situ.stages.explain_visibility import (
    VisibilityAnswer,
    about_event,
    about_sample,
    explain_row,
    explain_sample,
    sample_event,
    without_scopes,
)
from situ.stages.visibility import EventVisibility

if TYPE_CHECKING:
    from situ.project.check import LoadedProject
    from situ.scopes.graph import ScopeGraph

_ENVELOPE = {"specversion": "1.0", "id": "sample"}


async def explain_visibility(
    name: str, to: str, bus: Bus, deployment: Deployment, written: ScopeGraph, progress: Progress | None = None
) -> VisibilityAnswer:
    """About an event that was stored; :class:`SituError` if it, or the subscription, is not there."""
    subscription = _subscription(to, deployment)
    row = await _find(name, bus, seal_of(deployment.numbers.seal), progress)
    seeing = EventVisibility.of(deployment.numbered())
    if seeing is None:
        return without_scopes().about(about_event(row), to)
    for epoch in seeing.missing([row]):
        seeing.know(epoch, await fetch_scopes(bus, epoch))
    return explain_row(seeing, row, subscription.scopes, written).about(about_event(row), to)


def explain_visibility_of_sample(
    ad: str, raw: RawSample, to: str, opened: LoadedProject, written: ScopeGraph
) -> VisibilityAnswer:
    """About an event as this advertisement could publish it, in the terms of its client."""
    deployment = opened.deployment
    subscription = _subscription(to, deployment)
    advertisement = deployment.advertisements.get(ad)
    if advertisement is None:
        client, _, own = ad.partition("/")
        reason, remedy = f"has no advertisement `{own}`", "`situ get advertisements` lists them."
        raise SituError(NO_SUCH_DECLARATION(client=client, reason=reason, remedy=remedy))
    context = deployment.clients[advertisement.client].context
    type, raw = (advertisement.type, raw) if context == ROOT else _in_root(raw, advertisement, context, opened)
    payload = deployment.types.event(type)
    if payload is None:
        raise SituError(unknown_event(type, nearest(type, sorted(deployment.types.events))))
    values = read_sample(raw, payload, deployment.types, datetime.now(UTC)).values
    about = about_sample(ad, values["event"]["type"])
    seeing = EventVisibility.of(deployment.numbered())
    if seeing is None:
        return without_scopes().about(about, to)
    event = sample_event(seeing, values["event"]["type"], values["event"], values["data"])
    return explain_sample(seeing, event, advertisement.scopes, subscription.scopes, written).about(about, to)


def _in_root(
    raw: RawSample, advertisement: Advertisement, context: str, opened: LoadedProject
) -> tuple[str, RawSample]:
    """The sample as it is once it is taken in, and its type."""
    passage = ContextTransformer.of(
        find_context(context, opened.deployment), find_context(ROOT, opened.deployment), opened
    )
    reader = EventLineReader(raw.file, advertisement.type, opened.deployment.settings.limits.event)
    # One that is empty is read as one that is cut off.
    given, *_ = [*reader.feed(raw.content or b"{"), *reader.finish()]
    found = given.problems if isinstance(given, InputError) else passage.transform(given)
    if isinstance(found, tuple):
        raise SituError(*found)
    assert isinstance(given, InputEvent)
    type = found["type"] if given.sent else passage.incoming.by_type[given.type].target.name
    event = found if given.sent else {**_ENVELOPE, "source": advertisement.client, "type": type, "data": found}
    return type, RawSample(raw.file, json.dumps(event).encode())


async def _find(name: str, bus: Bus, seal: Seal, progress: Progress | None) -> Row:
    wanted = EventReference.parse(name, seal)
    found = await search_log(wanted, bus, progress)
    row = found[1] if found is not None else await search_dead_letters(wanted, bus)
    if row is None:
        raise SituError(UNKNOWN_EVENT(name=name))
    return row


def _subscription(id: str, deployment: Deployment) -> Subscription:
    found = deployment.subscriptions.get(id)
    if found is None:
        raise SituError(UNKNOWN_SUBSCRIPTION(name=id, nearest=nearest(id, deployment.subscriptions)))
    return found
