"""What goes into the negotiator: calls of clients, answers to advice, measurements, what is declared, and time.

A *ticket* is the host's number of a call that waits for its answer; the machine hands it back and never looks into it.
Ids of expectations and profiles are whole (``client/…``, ``publisher/type``). Values are those of properties, levels
by their places; the host reads the JSON of clients with the properties that are declared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from situ.quality.expectation import Expectation
from situ.quality.panes import Pane
from situ.quality.profile import Capability, Profile

if TYPE_CHECKING:
    from situ.quality.declared import Quality

Verdict = Literal["accepted", "refused", "failed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Relevance:
    """Which profiles a subscription can get events of. A profile without a pool is relevant to nobody."""

    pools: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Id of a profile that is advertised (``publisher/type``) → the pool it is in."""
    relevant: Mapping[str, frozenset[str]] = field(default_factory=lambda: MappingProxyType({}))
    """Subscription → the pools of which it can get events. Every subscription that there is has an entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What :class:`~situ.quality.effects.Keep` wrote down before. The machine begins with this and ``Deployed``."""

    kept: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    number: int = 0
    """From which messages are numbered where nothing was kept. Clients may have heard somebody before whose memory is
    lost, and take what has a lower number for a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployed:
    """What the project declares now, and who can get what of whom."""

    quality: Quality
    relevance: Relevance


@dataclass(frozen=True, slots=True, kw_only=True)
class Registering:
    ticket: int
    client: str
    expectation: Expectation


@dataclass(frozen=True, slots=True, kw_only=True)
class Updating:
    """An expectation gets new needs, utility or options."""

    ticket: int
    client: str
    id: str
    changes: Mapping[str, Any]
    """Fields of :class:`Expectation` that get another value."""
    version: int | None = None
    """That it is to have then; None: the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspending:
    ticket: int
    client: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resuming:
    ticket: int
    client: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoking:
    ticket: int
    client: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Providing:
    """A publisher tells what it can do."""

    ticket: int
    client: str
    profile: Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Revising:
    """A publisher tells what has become different of a profile; what is left out stays."""

    ticket: int
    client: str
    id: str
    capabilities: Mapping[str, Capability] = field(default_factory=lambda: MappingProxyType({}))
    values: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    """Property → the value that it operates at now."""
    mode: str | None = None
    version: int | None = None
    """That it is to have then; None: the next."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retracting:
    ticket: int
    client: str
    id: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A publisher answers an advice. ``values`` is what it can do, of one that it refused or failed to follow."""

    client: str
    advice: str
    verdict: Verdict
    values: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    ticket: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What engines measured. All panes that end before ``until`` (µs of event time) are complete with these."""

    panes: tuple[Pane, ...]
    until: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone:
    """A client left, or its lease is lost."""

    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A client is here (again)."""

    client: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """The time of a :class:`~situ.quality.effects.Wake` has come. One too many does no harm."""


Input = (
    Restored
    | Deployed
    | Registering
    | Updating
    | Suspending
    | Resuming
    | Revoking
    | Providing
    | Revising
    | Retracting
    | Answered
    | Measured
    | Gone
    | Came
    | Tick
)
