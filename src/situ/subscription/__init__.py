"""What clients announce to publish, and what they ask for."""

from situ.subscription.load import CLIENT_KEYS, load_clients
from situ.subscription.model import Advertisement, Client, Clients, Subscription

__all__ = ["CLIENT_KEYS", "Advertisement", "Client", "Clients", "Subscription", "load_clients"]
