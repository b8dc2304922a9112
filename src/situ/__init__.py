"""Situ: event middleware that understands what it carries."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.client.capabilities import Accept as Accept
    from situ.client.capabilities import ReactionManager as ReactionManager
    from situ.client.capabilities import Refuse as Refuse
    from situ.client.connection import connect as connect
    from situ.client.sync_client import connect_blocking as connect_blocking
    from situ.contexts.decorators import Typed as Typed
    from situ.contexts.decorators import Unit as Unit
    from situ.contexts.decorators import context as context
    from situ.contexts.decorators import conv_function as conv_function
    from situ.contexts.decorators import declared_contexts as declared_contexts
    from situ.contexts.decorators import maps_to as maps_to
    from situ.contexts.decorators import transform_with as transform_with

__version__ = "0.1.0"
__all__ = [
    "Accept",
    "ReactionManager",
    "Refuse",
    "Typed",
    "Unit",
    "__version__",
    "connect",
    "connect_blocking",
    "context",
    "conv_function",
    "declared_contexts",
    "maps_to",
    "transform_with",
]

_PLACES = {
    "Accept": "situ.client.capabilities",
    "ReactionManager": "situ.client.capabilities",
    "Refuse": "situ.client.capabilities",
    "Typed": "situ.contexts.decorators",
    "Unit": "situ.contexts.decorators",
    "connect": "situ.client.connection",
    "connect_blocking": "situ.client.sync_client",
    "context": "situ.contexts.decorators",
    "conv_function": "situ.contexts.decorators",
    "declared_contexts": "situ.contexts.decorators",
    "maps_to": "situ.contexts.decorators",
    "transform_with": "situ.contexts.decorators",
}


def __getattr__(name: str) -> Any:
    # Most who import the package want a part of it that needs no bus: what connects is loaded when it is asked for.
    if name not in _PLACES:
        raise AttributeError(f"module 'situ' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
