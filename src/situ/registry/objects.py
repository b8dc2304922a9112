"""A deployment as objects: the single things that are declared, each with a kind, a name and a body.

An object is what one person changes at a time and what the history is about: a type, a function, a subscription; all
settings together are one. Bodies are canonical JSON, and the canonical form of a deployment is put together from them
without looking into them, so its digest costs little however much is declared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from situ.lang.records import replace
from situ.model import Deployment, canonical
from situ.model import kinds as table
from situ.model.kinds import CLIENT_KINDS, KINDS, PARTS, Kind, StoredAs, things_in
from situ.quality.model.shapes import Shape, shape_as_json
from situ.routing.model import Advertisement, ClientDeclaration, Subscription

Origin = Literal["folder", "client", "api"]

_OF_RUN: tuple[Kind, ...] = (*CLIENT_KINDS, "shape")
"""What changes while events flow: what clients declare, and what negotiation makes of it."""

_SCHEMA: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind not in _OF_RUN)

SUSPENDED = canonical(True)
"""The body of the object that says of a policy that it is suspended."""


class Key(NamedTuple):
    """What an object is called; names are unique within a kind."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


SCOPES_KEY = Key("scopes", KINDS["scopes"].only)
"""The one object that all scopes are; there is none where there are no scopes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Object:
    """One declared thing as the registry holds it. ``text`` and ``file`` say how and where somebody wrote it."""

    key: Key
    version: int
    body: str
    origin: Origin
    text: str = ""
    file: str = ""
    suspended: bool = False
    """It is no part of what is in force: its client has no right to it any more."""

    @property
    def kind(self) -> Kind:
        return self.key.kind

    @property
    def name(self) -> str:
        return self.key.name

    @property
    def value(self) -> Any:
        """The body as plain JSON values, in the order in which people write them."""
        return KINDS[self.kind].ordered(self.name, json.loads(self.body))


def key_of(thing: ClientDeclaration | Advertisement | Subscription) -> Key:
    if isinstance(thing, ClientDeclaration):
        return Key("client", thing.name)
    return Key("advertisement" if isinstance(thing, Advertisement) else "subscription", thing.id)


def body_of(thing: ClientDeclaration | Advertisement | Subscription) -> str:
    return canonical(thing.as_json())


def client_of(key: Key) -> Key:
    """The client that an advertisement or subscription is one of."""
    return Key("client", key.name.partition("/")[0])


# ── from a deployment to objects ──────────────────────────────────────────────────────────────────


def bodies_of(deployment: Deployment, kinds: Iterable[Kind] = KINDS) -> dict[Key, str]:
    """Everything declared, or all of these kinds, each with its body."""
    return {Key(kind, name): canonical(body) for kind, name, body in things_in(deployment, kinds)}


def schema_bodies(deployment: Deployment) -> dict[Key, str]:
    """Settings, types, functions, sources, ontology, policies and contexts: what clients have no part in."""
    return bodies_of(deployment, _SCHEMA)


def shape_body(shape: Shape) -> str:
    return canonical(shape_as_json(shape))


def epoch_of(objects: Mapping[Key, Object]) -> int:
    """Which of the scope graphs there were is in force: the version of its object; 0 without scopes."""
    found = objects.get(SCOPES_KEY)
    return 0 if found is None else found.version


# ── from objects to a deployment ──────────────────────────────────────────────────────────────────


def versions_of(objects: Iterable[Object]) -> dict[str, int]:
    """Those of contexts, which events are stamped with."""
    return {each.name: each.version for each in objects if each.kind == "context"}


def deployment_of(
    bodies: Mapping[Key, str], version: int, versions: Mapping[str, int] = MappingProxyType({})
) -> Deployment:
    """The deployment that these objects make; ValueError if they make none. ``versions`` are those of contexts."""
    content = json.loads(content_of(bodies))
    return Deployment.from_json({"version": version, **content, "versions": dict(versions)})


def revised(
    old: Deployment,
    bodies: Mapping[Key, str],
    changed: Iterable[Key],
    version: int,
    versions: Mapping[str, int] = MappingProxyType({}),
) -> Deployment:
    """The deployment of these objects, of which only the changed ones are other than in the old deployment."""
    parts = sorted((KINDS[key.kind].place[0], key) for key in changed)
    if not all(PARTS[part].single for part, _ in parts):
        return deployment_of(bodies, version, versions)
    for part, keys in groupby(parts, key=itemgetter(0)):
        old = replace(old, **{part: _revise_part(old, part, [key for _, key in keys], bodies)})
    return old.at_version(version)


def _revise_part(old: Deployment, part: str, changed: Collection[Key], bodies: Mapping[Key, str]) -> Any:
    """A part of the deployment with the bodies of what changed; what has none is gone."""
    found = {key: json.loads(bodies[key]) for key in changed if key in bodies}
    if all(KINDS[key.kind].form is StoredAs.WHOLE for key in changed):
        written = next(iter(found.values()), None)
        return getattr(Deployment(), part) if written is None else PARTS[part].read(written, old)[part]
    gone = {key.name for key in changed}
    things = {name: thing for name, thing in getattr(old, part).items() if name not in gone}
    things |= PARTS[part].read({key.name: body for key, body in found.items()}, old)[part]
    return MappingProxyType({name: things[name] for name in sorted(things)})


def with_clients(
    deployment: Deployment,
    clients: Mapping[str, ClientDeclaration],
    advertisements: Mapping[str, Advertisement],
    subscriptions: Mapping[str, Subscription],
) -> Deployment:
    """The deployment with these clients and what they declare, each in the order of names."""
    return replace(
        deployment,
        clients=MappingProxyType({name: clients[name] for name in sorted(clients)}),
        advertisements=MappingProxyType({id: advertisements[id] for id in sorted(advertisements)}),
        subscriptions=MappingProxyType({id: subscriptions[id] for id in sorted(subscriptions)}),
    )


def content_of(bodies: Mapping[Key, str]) -> str:
    """The canonical form of the deployment that these objects make, without its version."""
    return table.content_of((*key, body) for key, body in bodies.items())


def digest_of(content: str) -> str:
    """The digest of a deployment with this content; the same as its own :attr:`Deployment.digest`."""
    return hashlib.sha256(content.encode()).hexdigest()
