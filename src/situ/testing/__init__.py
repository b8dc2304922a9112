"""What users need in their tests: a bus in memory, a clock that they set, a zone to start, a policy to try.

It owns how a zone of a project folder is started inside a test, and how a policy is tried on events given in Python. It
hosts the same router and engine as a run and adds nothing to what they do. It must not know commands or a run's files.

Front door: `MemoryBus`, `Clock`, `Zone`, `PolicyCase`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.bus.memory import MemoryBus as MemoryBus
    from situ.testing.fixtures import Clock as Clock
    from situ.testing.policy_case import PolicyCase as PolicyCase
    from situ.testing.zone import Zone as Zone

__all__ = ["Clock", "MemoryBus", "PolicyCase", "Zone"]

_PLACES = {
    "Clock": "situ.testing.fixtures",
    "MemoryBus": "situ.bus.memory",
    "PolicyCase": "situ.testing.policy_case",
    "Zone": "situ.testing.zone",
}


def __getattr__(name: str) -> Any:
    # Who tries a policy needs neither the bus client nor the database.
    if name not in _PLACES:
        raise AttributeError(f"module 'situ.testing' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
