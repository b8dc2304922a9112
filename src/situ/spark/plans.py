"""What a Spark worker fetches from the bus and keeps: compiled plans by deployment version, tables by digest."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Mapping

from situ.bus.address import Address
from situ.bus.sync_bus import shared_bus
from situ.event.subjects import DEPLOYMENTS, REGISTRY
from situ.lang.catalogue import ENGINE_FAILED
from situ.lang.problems import SituError
from situ.model import Deployment
from situ.model.deployment import decode_scopes, scopes_name
from situ.policies.model import InstancesByConcept
from situ.scopes.graph import ScopeGraph
from situ.stages.interpret import Interpretation
from situ.stages.plan import Plan, compile_plan
from situ.tables.bus_store import FetchedTables

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Plans. A task learns the version from the offset of its batch and fetches the deployment from the bus. The plans of
# the last few versions stay: a batch that is repeated may need one that is no longer current, and a new version differs
# from the one before by a few declarations, so compiling it starts from there.

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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Tables. The offset of a batch names the digests, so a batch that is repeated finds the rows that it found the first
# time. Who puts them on the bus is :mod:`situ.spark.tables`.


def former(address: Address, version: int, now: Plan, digests: Mapping[str, str]) -> Interpretation | None:
    """What contexts did in the deployment of this version, with the tables of now; None if the bus has it no more.

    A source that has changed since then is another table: it is not there.
    """
    try:
        plan = load_plan(address, version)
    except SituError:
        return None
    then = plan.deployment.sources
    same = {name: each for name, each in digests.items() if then.get(name) == now.deployment.sources[name]}
    use_tables(plan, address, same)
    now.interpretation.resume()
    return plan.interpretation


DETECT = "detect"
"""The query of detection, whose tables are its own."""
_fetched, _for_detection = FetchedTables(), FetchedTables(DETECT)


def known_instances(plan: Plan, address: Address, digests: Mapping[str, str]) -> InstancesByConcept:
    """What the tables of detection with these digests know of instances."""
    deployment, bus = plan.deployment, shared_bus(address)
    found = _for_detection.get(bus, digests, deployment.sources, deployment.types) if digests else {}
    return plan.detecting.tables.of(found)


def use_tables(plan: Plan, address: Address, digests: Mapping[str, str]) -> None:
    """Have a worker look up in the tables with these digests from here on."""
    deployment = plan.deployment
    found = _fetched.get(shared_bus(address), digests, deployment.sources, deployment.types) if digests else {}
    plan.interpretation.rows.tables = found
