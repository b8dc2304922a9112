"""What the registry holds at one version, and a proposal of what to hold next.

Plain data between those who propose changes (:mod:`folder_changes`, :mod:`client_changes`, :mod:`api_changes`) and the
one who stores them (:mod:`registry`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from situ.catalogue import OTHER_ORIGIN
from situ.deployment import Deployment
from situ.errors import Location, Problem
from situ.registry.objects import Key, Object, Origin
from situ.registry.written import NOWHERE, Written
from situ.visibility.graph import NO_SCOPES, ScopeGraph

_BELOW = ("advertisement", "subscription")

_OWNERS = {"folder": "the project folder", "client": "the client that declared it", "api": "`situ add`"}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """All objects in force, and the deployment they make."""

    version: int = 0
    digest: str = ""
    objects: Mapping[Key, Object] = field(default_factory=lambda: MappingProxyType({}))
    deployment: Deployment = field(default_factory=Deployment)
    suspended: Mapping[Key, Object] = field(default_factory=lambda: MappingProxyType({}))
    """Declarations that are in force no more, because their clients have no right to them."""
    folder_scopes: ScopeGraph = NO_SCOPES
    """What the folder said of scopes when it was applied last; others may have changed them since."""

    def below(self, client: str) -> Iterator[Key]:
        """The advertisements and subscriptions of a client."""
        prefix = f"{client}/"
        return (key for key in self.objects if key.name.startswith(prefix) and key.kind in _BELOW)


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """An object as it shall be."""

    body: str
    origin: Origin
    written: Written = NOWHERE
    suspended: bool = False
    """It is not to be in force."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A deployment that was checked, and how its objects differ from those in force; None removes one.

    ``problems`` are those that kept nothing else from being proposed.
    """

    deployment: Deployment
    moves: Mapping[Key, Move | None]
    problems: tuple[Problem, ...] = ()
    folder_scopes: ScopeGraph | None = None
    """What the folder says of scopes; None: it was not asked."""


def owner_of(each: Object) -> str:
    """Whose an object is, in words."""
    place = f" ({each.file})" if each.file else ""
    return _OWNERS[each.origin] + place


def remedy_for(each: Object) -> str:
    """What to do to change an object that belongs to another origin."""
    match each.origin:
        case "folder":
            return f"Change it in {each.file or 'the project folder'}, then run `situ apply`."
        case "client":
            return f"Let the client withdraw it, or run `situ remove {each.kind} {each.name}`; or take another name."
        case "api":
            return f"Run `situ remove {each.kind} {each.name}` first, or take another name."


def elsewhere(each: Object, place: Location | None = None) -> Problem:
    """The object is there already, of another origin."""
    return OTHER_ORIGIN(place, kind=each.kind, name=each.name, owner=owner_of(each), remedy=remedy_for(each))
