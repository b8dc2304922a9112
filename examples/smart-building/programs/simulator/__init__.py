"""A simulated building full of people and sensors: the events of the smart-building example, to try and to measure."""

from simulator.delivery import Flaw
from simulator.floor_plan import Building, PlanError, example_building, load_building, write_building
from simulator.simulation import GuestAlone, Simulation, simulate

__all__ = [
    "Building",
    "Flaw",
    "GuestAlone",
    "PlanError",
    "Simulation",
    "example_building",
    "load_building",
    "simulate",
    "write_building",
]
