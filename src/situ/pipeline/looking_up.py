"""The tables that batches look up in, as workers have them: kept on the bus by digest, fetched once.

The offset of a batch names the digests, so a batch that is repeated finds the rows that it found the first time. Who
puts them there is :mod:`situ.pipeline.planned_tables`.
"""

from __future__ import annotations

from collections.abc import Mapping

from situ.bus.address import Address
from situ.bus.blocking import shared_bus
from situ.deployment.interpreting import Interpretation
from situ.deployment.plan import Plan
from situ.errors import SituError
from situ.pipeline.plans import load_plan
from situ.situation.meaning.detection import Instances
from situ.tables.stored import FetchedTables


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


def known_instances(plan: Plan, address: Address, digests: Mapping[str, str]) -> Instances:
    """What the tables of detection with these digests know of instances."""
    deployment, bus = plan.deployment, shared_bus(address)
    found = _for_detection.get(bus, digests, deployment.sources, deployment.types) if digests else {}
    return plan.detecting.tables.of(found)


def use_tables(plan: Plan, address: Address, digests: Mapping[str, str]) -> None:
    """Have a worker look up in the tables with these digests from here on."""
    deployment = plan.deployment
    found = _fetched.get(shared_bus(address), digests, deployment.sources, deployment.types) if digests else {}
    plan.interpretation.rows.tables = found
