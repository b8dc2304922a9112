"""Plans in the workers of Spark: one version of the deployment, compiled once in each process that runs it.

A task learns the version from the offset of its batch and fetches the deployment from the bus. The plans of the last
few versions stay: a batch that is repeated may need one that is no longer current, and a new version differs from the
one before by a few declarations, so compiling it starts from there.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.bus.names import DEPLOYMENTS, REGISTRY
from situ.catalogue import ENGINE_FAILED
from situ.deployment import Deployment
from situ.deployment.past_scopes import decode_scopes, scopes_name
from situ.deployment.plan import Plan, compile_plan
from situ.errors import SituError
from situ.visibility.graph import ScopeGraph

_KEPT = 4


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
        if plan.seeing is not None:
            plan.seeing.load = lambda epoch: fetch_scopes(address, epoch)
        _plans[place] = plan
        while len(_plans) > _KEPT:
            _plans.popitem(last=False)
        return plan


def former_plan(address: Address, version: int, plan: Plan) -> Plan:
    """The plan of the batch before, which mostly is this one; this one as well if the other is not to be had."""
    if version in (0, plan.version):
        return plan
    try:
        return load_plan(address, version)
    except SituError:
        return plan


def fetch(address: Address, version: int) -> Deployment:
    return Deployment.from_json(json.loads(fetch_text(address, version)))


def fetch_scopes(address: Address, epoch: int) -> ScopeGraph | None:
    """The scopes of a past epoch; None if the bus has them no more."""
    return decode_scopes(shared_bus(address).get_object(DEPLOYMENTS, scopes_name(epoch)))


def fetch_text(address: Address, version: int) -> bytes:
    """The deployment of this version as the bus has it."""
    content = shared_bus(address).get_object(DEPLOYMENTS, str(version))
    if content is None:
        reason = f"the bus has no deployment of version {version}"
        remedy = "Start `situ run` again: it puts the registry's deployments back on the bus."
        raise SituError(ENGINE_FAILED(engine="spark", reason=reason, remedy=remedy))
    return content


def current_version(address: Address) -> int:
    """The version the registry says is in force; 0 if it has said nothing yet."""
    entry = shared_bus(address).get(REGISTRY, "current")
    return int(json.loads(entry.value)["version"]) if entry is not None and entry.value else 0
