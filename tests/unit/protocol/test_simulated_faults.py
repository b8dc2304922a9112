"""Fifty routers in five zones under random faults: a hundred seeds, and in the long tests a thousand."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from situ.protocol.simulator.random_scenario import random_scenario
from situ.protocol.simulator.scenario import FAULTS
from situ.protocol.simulator.simulation import Outcome, Simulation


def outcome(seed: int, **world: Any) -> Outcome:
    return Simulation(random_scenario(seed, **world), seed).run()


@pytest.mark.parametrize("tens", range(10))
def test_fifty_routers_in_five_zones_with_faults(tens: int) -> None:
    for seed in range(tens * 10 + 1, tens * 10 + 11):
        found = outcome(seed)
        assert found.violation is None, f"situ simulate --random --seed {seed}: {found.violation}"
        assert found.delivered > 100


@pytest.mark.soak
def test_a_thousand_seeds() -> None:
    failed, faults = {}, Counter[str]()
    for seed in range(1, 1001):
        found = outcome(seed)
        faults.update(set(found.faults))
        if found.violation is not None:
            failed[seed] = str(found.violation)
    assert failed == {}
    assert min(faults[kind] for kind in FAULTS) >= 50, faults


@pytest.mark.soak
def test_two_hundred_routers_and_two_thousand_clients() -> None:
    found = outcome(1, zones=10, routers=20, clients=2000, events=500, faults=0, lasting=6.0, quiet=12.0)
    assert found.violation is None
    assert found.steps > 1_000_000
    assert found.delivered > 100_000
