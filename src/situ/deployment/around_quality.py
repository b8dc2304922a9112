"""What a deployment has that declarations about quality are checked against."""

from __future__ import annotations

from situ.deployment.snapshot import Deployment
from situ.quality.around import Around
from situ.subscription.model import ROOT


def around_quality(deployment: Deployment) -> Around:
    """Event types of subscriptions are told in root's terms; of those in another context nobody can say them here."""
    contexts = deployment.contexts.by_id
    return Around(
        properties=deployment.quality.known,
        types=deployment.types,
        subscriptions={id: each.types if each.context == ROOT else () for id, each in deployment.subscriptions.items()},
        clients={
            name: contexts[each.context].types if each.context in contexts else deployment.types
            for name, each in deployment.clients.items()
        },
    )
