"""What a router tells clients about the deployment: the terms they keep to, and the types of events."""

from __future__ import annotations

from situ.deployment import Deployment
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


def describe(deployment: Deployment, asked: Describe, client: str = "") -> DescribeAck:
    """The types asked for, or all types of events, as the client knows them; those that do not exist are left out."""
    known_as = deployment.clients.get(client)
    context = None if known_as is None else deployment.contexts.get(known_as.context)
    types = deployment.types if context is None else context.types
    found: dict[str, Description] = {}
    for name in asked.types or sorted(types.events):
        known = types.get(name)
        if isinstance(known, Struct):
            above = tuple(str(each) for each in supertypes(known) if str(each) != name)
            attributes = {each.name: format_attribute(each) for each in known.attributes}
            found[name] = Description(event=name in types.events, above=above, attributes=attributes)
    return DescribeAck(req=asked.req, version=deployment.version, types=found)
