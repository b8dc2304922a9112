"""A simulated building full of people and sensors: the events of the smart-building example, to try and to measure."""

from situ.testing.building.delivery import Flaw
from situ.testing.building.files import example_building, example_folder, load_building, write_building
from situ.testing.building.plan import Building, PlanError
from situ.testing.building.simulation import GuestAlone, Simulation, simulate

__all__ = [
    "Building",
    "Flaw",
    "GuestAlone",
    "PlanError",
    "Simulation",
    "example_building",
    "example_folder",
    "load_building",
    "simulate",
    "write_building",
]
