"""The plan of a deployment: what the stages of every engine need of it, compiled once.

The same plan for all engines: they differ in where it runs, not in what it says.
"""

from __future__ import annotations

from dataclasses import dataclass

from situ.deployment.detecting import Detecting
from situ.deployment.interpreting import Interpretation
from situ.deployment.snapshot import Deployment
from situ.subscription.routing import Routing, compile_routing
from situ.subscription.stamp import Stamp


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One version of the deployment, ready to run."""

    deployment: Deployment
    stamp: Stamp
    routing: Routing
    interpretation: Interpretation
    detecting: Detecting

    @property
    def version(self) -> int:
        return self.deployment.version

    @property
    def zone(self) -> str:
        return self.deployment.settings.zone


def compile_plan(deployment: Deployment, previous: Plan | None = None) -> Plan:
    """The plan of a deployment; what the previous one has compiled already is taken from there."""
    interpretation = Interpretation.of(deployment, previous.interpretation if previous is not None else None)
    detecting = Detecting.of(deployment, previous.detecting if previous is not None else None)
    return Plan(
        deployment=deployment,
        interpretation=interpretation,
        detecting=detecting,
        stamp=Stamp(
            deployment.types,
            {id: interpretation.advertised(each) for id, each in deployment.advertisements.items()},
            {name: watch.publishes for name, watch in detecting.watches.items()},
        ),
        routing=compile_routing(
            types=deployment.types,
            functions=deployment.definitions,
            subscriptions=deployment.subscriptions,
            limits=deployment.settings.expression_limits,
            mediator=interpretation,
            previous=previous.routing if previous is not None else None,
        ),
    )
