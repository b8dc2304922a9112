"""Plans: what the stages need of one version of the deployment, compiled once in each process that runs them.

A task learns the version from the offset of its batch and fetches the deployment from the bus. The plans of the last
few versions stay: a batch that is repeated may need one that is no longer current, and a new version differs from the
one before by a few declarations, so compiling it starts from there.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from dataclasses import dataclass

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.names import DEPLOYMENTS, REGISTRY, Names
from situ.catalogue import ENGINE_FAILED
from situ.deployment import Deployment
from situ.errors import SituError
from situ.event.intake import Intake
from situ.subscription.routing import Routing, compile_routing
from situ.subscription.stamp import Stamp

_KEPT = 4


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
    def names(self) -> Names:
        return Names(self.deployment.settings.zone)


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


_plans: OrderedDict[tuple[Address, int], Plan] = OrderedDict()
_lock = threading.Lock()


def load_plan(address: Address, version: int) -> Plan:
    """The plan of this version, from this process's memory or from the bus."""
    place = (address, version)
    with _lock:
        if place in _plans:
            _plans.move_to_end(place)
            return _plans[place]
        latest = next((plan for key, plan in reversed(_plans.items()) if key[0] == address), None)
        plan = compile_plan(fetch(address, version), latest)
        _plans[place] = plan
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
        return plan


def fetch(address: Address, version: int) -> Deployment:
    content = shared_bus(address).get_object(DEPLOYMENTS, str(version))
    if content is None:
        reason = f"the bus has no deployment of version {version}"
        remedy = "Start `situ run` again: it puts the registry's deployments back on the bus."
        raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=remedy))
    return Deployment.from_json(json.loads(content))


def current_version(address: Address) -> int:
    """The version the registry says is in force; 0 if it has said nothing yet."""
    entry = shared_bus(address).get(REGISTRY, "current")
    return int(json.loads(entry.value)["version"]) if entry is not None and entry.value else 0
