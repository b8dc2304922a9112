"""Situ: event middleware that understands what it carries."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.edge.blocking import connect_blocking as connect_blocking
    from situ.edge.connecting import connect as connect

__version__ = "0.1.0"
__all__ = ["__version__", "connect", "connect_blocking"]

_PLACES = {"connect": "situ.edge.connecting", "connect_blocking": "situ.edge.blocking"}


def __getattr__(name: str) -> Any:
    # Most who import the package want a part of it that needs no bus: what connects is loaded when it is asked for.
    if name not in _PLACES:
        raise AttributeError(f"module 'situ' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
