"""The inputs and effects of the negotiator, as plain data.

Inputs are calls of clients, answers to advice, measurements, deployments, and time; effects are what the host of the
machine is to do: store, shape, notify, reply, wake.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from situ.lang.problems import Problem
from situ.quality.measurement.panes import Pane
from situ.quality.model.declarations import Capability, Expectation, Profile
from situ.quality.model.shapes import Shape
from situ.quality.negotiation.feedback import Feedback

if TYPE_CHECKING:
    from situ.quality.model.declarations import Quality


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Inputs. A *ticket* is the host's number of a call that waits for its answer; the machine hands it back and never looks
# into it. Ids of expectations and profiles are whole (``client/…``, ``publisher/type``). Values are those of
# properties, levels by their places; the host reads the JSON of clients with the properties that are declared.

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
    """What :class:`~situ.quality.negotiation.inputs_and_effects.StoreValues` wrote down before. The machine begins with
    this and ``DeployedQuality``.
    """

    kept: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    number: int = 0
    """From which messages are numbered where nothing was kept. Clients may have heard somebody before whose memory is
    lost, and take what has a lower number for a repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployedQuality:
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
    """The time of a :class:`~situ.quality.negotiation.inputs_and_effects.Wake` has come. One too many does no harm."""


Input = (
    Restored
    | DeployedQuality
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Effects. The host carries out the effects of a step in their order, and all of them before the next step. A step keeps
# first and tells then. Whoever is killed in between starts with what was kept, and what was to be told is told again
# under the same id and number, by which receivers know it.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreValues:
    """Write all of these down at once or none: key → JSON, None: there is nothing under this key any more."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapesChanged:
    """Subscription → what is done to its events from now on; None: nothing any more. Others stay as they are."""

    shapes: Mapping[str, Shape | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyClient:
    """Tell a client something: a subscriber (``sub``) about an expectation, a publisher (``pub``) about a profile."""

    client: str
    kind: Literal["sub", "pub"]
    id: str
    message: Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer the call of this ticket: what there is now, or why not."""

    ticket: int
    result: Expectation | Profile | Problem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Give a ``Tick`` at this time (seconds since the epoch). Only the last one counts; None: no more."""

    at: float | None


Effect = StoreValues | ShapesChanged | NotifyClient | Reply | Wake
