"""What goes into forwarding and what comes out: offers and advice between routers, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.quality.hops import Figures
from situ.quality.problem import Target
from situ.quality.profile import Profile

# ── messages between routers ──────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """All that the sender offers of some pools; of others nothing has changed."""

    epoch: int
    pools: Mapping[str, tuple[Profile, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """Advice on its way to a publisher: ``publisher`` is a handle of the receiver."""

    epoch: int
    publisher: str
    type: str
    target: Target


Message = Offered | Wanted

# ── inputs ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Provided:
    """A publisher of this router offers something, or something else than before."""

    profile: Profile
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Withdrawn:
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Linked:
    """There is a link to a neighbour, or it has other figures. Both ends are told the same epoch."""

    neighbour: str
    epoch: int
    figures: Figures = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, kw_only=True)
class Unlinked:
    neighbour: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Came:
    """A message of a neighbour."""

    neighbour: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Advised:
    """Somebody at this router wants a profile that is known here to be different."""

    profile: str
    target: Target


Input = Provided | Withdrawn | Linked | Unlinked | Came | Advised

# ── effects ───────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    neighbour: str
    message: Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """A profile that expectations of this router are to be matched against is there, or is another."""

    profile: Profile
    pool: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    profile: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapt:
    """A publisher of this router is to be advised."""

    profile: str
    target: Target


@dataclass(frozen=True, slots=True, kw_only=True)
class Impossible:
    """Advice that leads nowhere: nobody has that handle any more, or it can no longer do that."""

    neighbour: str
    publisher: str
    type: str


Effect = Send | Known | Lost | Adapt | Impossible
