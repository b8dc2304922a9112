"""Situ: event middleware that understands what it carries."""

__version__ = "0.1.0"
