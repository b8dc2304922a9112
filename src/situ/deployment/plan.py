"""The plan of a deployment: what the stages of every engine need of it, compiled once.

The same plan for all engines: they differ in where it runs, not in what it says.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.deployment.snapshot import Deployment
from situ.event.intake import Intake
from situ.subscription.routing import Routing, compile_routing
from situ.subscription.stamp import Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One version of the deployment, ready to run."""

    deployment: Deployment
    intake: Intake
    stamp: Stamp
    routing: Routing

    @property
    def version(self) -> int:
        return self.deployment.version

    @property
    def zone(self) -> str:
        return self.deployment.settings.zone


def compile_plan(deployment: Deployment, previous: Plan | None = None) -> Plan:
    """The plan of a deployment; what the previous one has compiled already is taken from there."""
    settings = deployment.settings
    return Plan(
        deployment=deployment,
        intake=Intake(
            deployment.types,
            extra=settings.defaults.extra,  # type: ignore[arg-type]  # the settings allow just these words
            ahead=settings.limits.ahead,
            limit=settings.limits.event,
        ),
        stamp=Stamp(deployment.types, deployment.advertisements),
        routing=compile_routing(
            types=deployment.types,
            functions=deployment.definitions,
            subscriptions=deployment.subscriptions,
            limits=settings.expression_limits,
            previous=previous.routing if previous is not None else None,
        ),
    )
