"""The operations by which scopes are changed while events flow: plain data, carried out elsewhere.

Each says how things shall be, not how they become so: doing it again changes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Literal

from situ.visibility.graph import Grant, ScopeGraph

Side = Literal["output", "input"]


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinScope:
    """``member``, a client or a scope, shall be directly in ``scope``."""

    member: str
    scope: str
    dimension: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveScope:
    """``member`` shall not be directly in ``scope``."""

    member: str
    scope: str
    dimension: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PutScope:
    """The scope shall be there, and be this. ``links`` are texts of filters: container → (up, down)."""

    dimension: str
    scope: str
    containers: tuple[str, ...] = ()
    output: str | None = None
    input: str | None = None
    links: Mapping[str, tuple[str | None, str | None]] = field(default_factory=lambda: MappingProxyType({}))
    carriers: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DropScope:
    """The scope shall not be there."""

    dimension: str
    scope: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SetFilter:
    """The filter of an interface; without a text it lets everything pass."""

    dimension: str
    scope: str
    side: Side
    text: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetLink:
    """The filters of one membership."""

    dimension: str
    member: str
    scope: str
    up: str | None = None
    down: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetCarriers:
    """The zones that a scope lists; None: it lists none."""

    dimension: str
    scope: str
    carriers: tuple[str, ...] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetMode:
    """Whether a dimension is closed."""

    dimension: str
    closed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GrantRights:
    """Somebody shall have these rights."""

    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeRights:
    """Somebody shall not have these rights by a grant on exactly these scopes."""

    grant: Grant


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyScopes:
    """The whole document shall be this: all or nothing."""

    graph: ScopeGraph


Operation = (
    JoinScope
    | LeaveScope
    | PutScope
    | DropScope
    | SetFilter
    | SetLink
    | SetCarriers
    | SetMode
    | GrantRights
    | RevokeRights
    | ApplyScopes
)
