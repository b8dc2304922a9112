"""What a router tells clients about the deployment: the terms they keep to, and the types of events."""

from __future__ import annotations

from collections.abc import Iterable

from situ.deployment import Deployment
from situ.deployment.showing import Showing
from situ.errors import Problem
from situ.overlay.messages import Describe, DescribeAck, Description, Terms
from situ.settings import Settings
from situ.types.model import Struct, supertypes
from situ.types.syntax import format_attribute

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


class Describing:
    """What one router tells its clients. Types of which a client could never see an event do not exist for it."""

    def __init__(self) -> None:
        self._deployment = Deployment()
        self._showing: Showing | None = None

    def adopt(self, deployment: Deployment) -> None:
        self._deployment, self._showing = deployment, Showing.of(deployment, self._showing)

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
