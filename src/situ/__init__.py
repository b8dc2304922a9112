"""Situ: event middleware that understands what it carries.

The names here and those of `situ.testing` are what programs use; everything below them may change.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from situ.client.capabilities import Accept as Accept
    from situ.client.capabilities import ReactionManager as ReactionManager
    from situ.client.capabilities import Refuse as Refuse
    from situ.client.capabilities import RegisteredProfile as RegisteredProfile
    from situ.client.client import Client as Client
    from situ.client.client import ClientStatus as ClientStatus
    from situ.client.client import ScopeChangeReceipt as ScopeChangeReceipt
    from situ.client.client import WhyVisible as WhyVisible
    from situ.client.connection import connect as connect
    from situ.client.contexts import DefinedContext as DefinedContext
    from situ.client.declarations import AdvertisementHandle as AdvertisementHandle
    from situ.client.declarations import Listener as Listener
    from situ.client.declarations import Registration as Registration
    from situ.client.events import Event as Event
    from situ.client.events import Situation as Situation
    from situ.client.expectations import RegisteredExpectation as RegisteredExpectation
    from situ.client.expectations import WhyQuality as WhyQuality
    from situ.client.publish_queue import Receipt as Receipt
    from situ.client.sync_client import BlockingClient as BlockingClient
    from situ.client.sync_client import BlockingReceipt as BlockingReceipt
    from situ.client.sync_client import connect_blocking as connect_blocking
    from situ.contexts.decorators import Typed as Typed
    from situ.contexts.decorators import Unit as Unit
    from situ.contexts.decorators import context as context
    from situ.contexts.decorators import conv_function as conv_function
    from situ.contexts.decorators import declared_contexts as declared_contexts
    from situ.contexts.decorators import maps_to as maps_to
    from situ.contexts.decorators import transform_with as transform_with
    from situ.lang.problems import Problem as Problem
    from situ.lang.problems import SituError as SituError
    from situ.protocol.messages import Notice as Notice
    from situ.quality.negotiation.feedback import Advice as Advice
    from situ.quality.negotiation.feedback import StateChange as StateChange
    from situ.quality.negotiation.feedback import Usage as Usage

__version__ = "0.1.0"
__all__ = [
    "Accept",
    "AdvertisementHandle",
    "Advice",
    "BlockingClient",
    "BlockingReceipt",
    "Client",
    "ClientStatus",
    "DefinedContext",
    "Event",
    "Listener",
    "Notice",
    "Problem",
    "ReactionManager",
    "Receipt",
    "Refuse",
    "RegisteredExpectation",
    "RegisteredProfile",
    "Registration",
    "ScopeChangeReceipt",
    "SituError",
    "Situation",
    "StateChange",
    "Typed",
    "Unit",
    "Usage",
    "WhyQuality",
    "WhyVisible",
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
    "situ.client.capabilities": ("Accept", "ReactionManager", "Refuse", "RegisteredProfile"),
    "situ.client.client": ("Client", "ClientStatus", "ScopeChangeReceipt", "WhyVisible"),
    "situ.client.connection": ("connect",),
    "situ.client.contexts": ("DefinedContext",),
    "situ.client.declarations": ("AdvertisementHandle", "Listener", "Registration"),
    "situ.client.events": ("Event", "Situation"),
    "situ.client.expectations": ("RegisteredExpectation", "WhyQuality"),
    "situ.client.publish_queue": ("Receipt",),
    "situ.client.sync_client": ("BlockingClient", "BlockingReceipt", "connect_blocking"),
    "situ.contexts.decorators": (
        "Typed",
        "Unit",
        "context",
        "conv_function",
        "declared_contexts",
        "maps_to",
        "transform_with",
    ),
    "situ.lang.problems": ("Problem", "SituError"),
    "situ.protocol.messages": ("Notice",),
    "situ.quality.negotiation.feedback": ("Advice", "StateChange", "Usage"),
}


def __getattr__(name: str) -> Any:
    # Most who import the package want a part of it that needs no bus: what connects is loaded when it is asked for.
    place = next((module for module, names in _PLACES.items() if name in names), None)
    if place is None:
        raise AttributeError(f"module 'situ' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(place), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
