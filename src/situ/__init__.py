"""Situ: event middleware that understands what it carries."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.edge.blocking import connect_blocking as connect_blocking
    from situ.edge.capabilities import Accept as Accept
    from situ.edge.capabilities import Refuse as Refuse
    from situ.edge.connecting import connect as connect
    from situ.edge.reaction import ReactionManager as ReactionManager
    from situ.interpretation.python_form import context as context
    from situ.interpretation.python_form import conv_function as conv_function
    from situ.interpretation.python_form import declared_contexts as declared_contexts
    from situ.interpretation.python_form import maps_to as maps_to
    from situ.interpretation.python_form import transform_with as transform_with
    from situ.interpretation.python_types import Typed as Typed
    from situ.interpretation.python_types import Unit as Unit

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
    "Accept": "situ.edge.capabilities",
    "ReactionManager": "situ.edge.reaction",
    "Refuse": "situ.edge.capabilities",
    "Typed": "situ.interpretation.python_types",
    "Unit": "situ.interpretation.python_types",
    "connect": "situ.edge.connecting",
    "connect_blocking": "situ.edge.blocking",
    "context": "situ.interpretation.python_form",
    "conv_function": "situ.interpretation.python_form",
    "declared_contexts": "situ.interpretation.python_form",
    "maps_to": "situ.interpretation.python_form",
    "transform_with": "situ.interpretation.python_form",
}


def __getattr__(name: str) -> Any:
    # Most who import the package want a part of it that needs no bus: what connects is loaded when it is asked for.
    if name not in _PLACES:
        raise AttributeError(f"module 'situ' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)
