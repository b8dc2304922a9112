"""What clients announce to publish, and what they ask for."""

from situ.routing.model import Advertisement, ClientDeclaration, Clients, Subscription

__all__ = ["Advertisement", "ClientDeclaration", "Clients", "Subscription"]
