"""What clients announce to publish, and what they ask for."""

from situ.subscription.model import Advertisement, Client, Clients, Subscription

__all__ = ["Advertisement", "Client", "Clients", "Subscription"]
