"""How a node is: its connection, its queue, what flows to it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribed:
    """One registration. ``dropped``: too much came at once; ``repeats``: came again and were not given again."""

    types: tuple[str, ...]
    durable: bool
    installed: bool
    received: int
    dropped: int
    repeats: int
    waiting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    client: str
    zone: str
    router: str
    connected: bool
    session: int
    incarnation: int
    remembers: bool
    """What it must not forget is on disk."""
    published: int
    stored: int
    queued: int
    resent: int
    """Messages that were sent again."""
    duplicates: int
    """Events whose id was published before."""
    reconnects: int
    advertisements: tuple[str, ...]
    subscriptions: Mapping[str, Subscribed]
    suspended: tuple[str, ...] = ()
    """Names of advertisements and registrations that this client has lost its right to."""
    failures: Mapping[str, int] = field(default_factory=dict)
    """What failed here in a way that nobody foresaw, by what it was; the log has how."""
