"""What is declared right now, versioned and stored; hands out deployment snapshots and changes."""

from situ.registry.objects import KINDS, Key, Kind, Object
from situ.registry.open import current_user, open_registry
from situ.registry.principals import Admitted, Principals
from situ.registry.registry import Applied, Declared, Registry
from situ.registry.store import Recorded, Version

__all__ = [
    "KINDS",
    "Admitted",
    "Applied",
    "Declared",
    "Key",
    "Kind",
    "Object",
    "Principals",
    "Recorded",
    "Registry",
    "Version",
    "current_user",
    "open_registry",
]
