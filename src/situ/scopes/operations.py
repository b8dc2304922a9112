"""Operations by which scopes are changed while events flow, and their JSON form.

An `Operation` is plain data, carried out by :mod:`situ.scopes.change`; `operation_as_json` and `operation_from_json`
are how operations travel and how the audit record keeps them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

import msgspec

from situ.lang.json_form import plain
from situ.scopes.graph import RIGHTS, Grant, Right, ScopeGraph
from situ.scopes.json_form import scopes_as_json, scopes_from_json

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Each operation says how things shall be, not how they become so: doing it again changes nothing.

Side = Literal["output", "input"]


class JoinScope(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="join"):
    """``member``, a client or a scope, shall be directly in ``scope``."""

    member: str
    scope: str
    dimension: str


class LeaveScope(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="leave"):
    """``member`` shall not be directly in ``scope``."""

    member: str
    scope: str
    dimension: str


class PutScope(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="put"):
    """The scope shall be there, and be this. ``links`` are texts of filters: container → (up, down)."""

    dimension: str
    scope: str
    containers: tuple[str, ...] = msgspec.field(default=(), name="in")
    output: str | None = None
    input: str | None = None
    links: Mapping[str, tuple[str | None, str | None]] = MappingProxyType({})
    carriers: tuple[str, ...] | None = None


class DropScope(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="drop"):
    """The scope shall not be there."""

    dimension: str
    scope: str


class SetFilter(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="filter"):
    """The filter of an interface; without a text it lets everything pass."""

    dimension: str
    scope: str
    side: Side
    text: str | None


class SetLink(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="link"):
    """The filters of one membership."""

    dimension: str
    member: str
    scope: str
    up: str | None = None
    down: str | None = None


class SetCarriers(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="carriers"):
    """The zones that a scope lists; None: it lists none."""

    dimension: str
    scope: str
    carriers: tuple[str, ...] | None


class SetMode(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="mode"):
    """Whether a dimension is closed."""

    dimension: str
    closed: bool


class GrantRights(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="grant"):
    """Somebody shall have these rights."""

    grant: Grant


class RevokeRights(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="revoke"):
    """Somebody shall not have these rights by a grant on exactly these scopes."""

    grant: Grant


class ApplyScopes(msgspec.Struct, frozen=True, kw_only=True, tag_field="do", tag="apply"):
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


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Operations as plain JSON values, and back. Reading back checks the form only.


def operation_as_json(operation: Operation) -> dict[str, Any]:
    """Plain JSON values, from which :func:`operation_from_json` makes an equal operation."""
    do = operation.__struct_config__.tag
    match operation:
        case GrantRights(grant=grant) | RevokeRights(grant=grant):
            to = {"do": do, "to": grant.to, "dimension": grant.dimension}
            return {**to, "may": list(grant.may), "scopes": list(grant.scopes)}
        case ApplyScopes(graph=graph):
            return {"do": do, "document": scopes_as_json(graph)}
    found: dict[str, Any] = plain(operation)
    if isinstance(operation, PutScope):
        found["links"] = {name: {"up": up, "down": down} for name, (up, down) in operation.links.items()}
    return found


def operation_from_json(value: Any) -> Operation:
    """The operation that :func:`operation_as_json` gave; ValueError for what it cannot have given."""
    if not isinstance(value, Mapping):
        raise ValueError("an operation is an object")
    make = _MAKERS.get(str(value.get("do")))
    if make is None:
        raise ValueError(f"`do` is one of {', '.join(_MAKERS)}")
    return make(_Fields(value))


class _Fields:
    """What an operation says, part by part, each of the right kind."""

    def __init__(self, value: Mapping[str, Any]) -> None:
        self._value = value

    def text(self, name: str) -> str:
        found = self._value.get(name)
        if not isinstance(found, str):
            raise ValueError(f"`{name}` is a text")
        return found

    def maybe(self, name: str) -> str | None:
        return None if self._value.get(name) is None else self.text(name)

    def texts(self, name: str) -> tuple[str, ...]:
        found = self._value.get(name, ())
        if not isinstance(found, list | tuple) or not all(isinstance(each, str) for each in found):
            raise ValueError(f"`{name}` is a list of texts")
        return tuple(found)

    def carriers(self) -> tuple[str, ...] | None:
        return None if self._value.get("carriers") is None else self.texts("carriers")

    def truth(self, name: str) -> bool:
        found = self._value.get(name)
        if not isinstance(found, bool):
            raise ValueError(f"`{name}` is true or false")
        return found

    def side(self) -> Side:
        for side in get_args(Side):
            if self._value.get("side") == side:
                return side  # type: ignore[no-any-return]  # one of the literals
        raise ValueError("`side` is output or input")

    def links(self) -> dict[str, tuple[str | None, str | None]]:
        found = self._value.get("links", {})
        if not isinstance(found, Mapping) or not all(isinstance(each, Mapping) for each in found.values()):
            raise ValueError("`links` has filters by containers")
        return {name: (_Fields(each).maybe("up"), _Fields(each).maybe("down")) for name, each in found.items()}

    def grant(self) -> Grant:
        rights = self.texts("may")
        if not rights or set(rights) - set(RIGHTS):
            raise ValueError(f"`may` is a list of {', '.join(RIGHTS)}")
        may: tuple[Right, ...] = tuple(right for right in RIGHTS if right in rights)
        return Grant(to=self.text("to"), dimension=self.text("dimension"), may=may, scopes=self.texts("scopes"))

    def document(self) -> ApplyScopes:
        return ApplyScopes(graph=scopes_from_json(self._value.get("document")))


def _member(kind: type[JoinScope] | type[LeaveScope]) -> Callable[[_Fields], Operation]:
    return lambda of: kind(member=of.text("member"), scope=of.text("scope"), dimension=of.text("dimension"))


def _put(of: _Fields) -> Operation:
    return PutScope(
        dimension=of.text("dimension"),
        scope=of.text("scope"),
        containers=of.texts("in"),
        output=of.maybe("output"),
        input=of.maybe("input"),
        links=of.links(),
        carriers=of.carriers(),
    )


def _link(of: _Fields) -> Operation:
    member, scope = of.text("member"), of.text("scope")
    return SetLink(dimension=of.text("dimension"), member=member, scope=scope, up=of.maybe("up"), down=of.maybe("down"))


_MAKERS: Mapping[str, Callable[[_Fields], Operation]] = {
    "join": _member(JoinScope),
    "leave": _member(LeaveScope),
    "put": _put,
    "drop": lambda of: DropScope(dimension=of.text("dimension"), scope=of.text("scope")),
    "filter": lambda of: SetFilter(
        dimension=of.text("dimension"), scope=of.text("scope"), side=of.side(), text=of.maybe("text")
    ),
    "link": _link,
    "carriers": lambda of: SetCarriers(dimension=of.text("dimension"), scope=of.text("scope"), carriers=of.carriers()),
    "mode": lambda of: SetMode(dimension=of.text("dimension"), closed=of.truth("closed")),
    "grant": lambda of: GrantRights(grant=of.grant()),
    "revoke": lambda of: RevokeRights(grant=of.grant()),
    "apply": lambda of: of.document(),
}
