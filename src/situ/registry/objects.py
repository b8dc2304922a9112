"""A deployment as objects: the single things that are declared, each with a kind, a name and a body.

An object is what one person changes at a time and what the history is about: a type, a function, a subscription; all
settings together are one. Bodies are canonical JSON, and the canonical form of a deployment is put together from them
without looking into them, so its digest costs little however much is declared.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from situ.contexts.table import as_file
from situ.lang.expr.definitions import functions_as_json
from situ.model import Deployment, canonical
from situ.policies.actions.load import actions_as_json
from situ.policies.load import policies_as_json
from situ.policies.ontology.load import ontology_as_json
from situ.quality.model.declarations import NO_QUALITY
from situ.quality.model.json_form import quality_as_json, quality_from_json
from situ.quality.model.shapes import Shape, shape_as_json, shape_from_json
from situ.routing.model import Advertisement, ClientDeclaration, Subscription
from situ.scopes.graph import NO_SCOPES
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.settings import settings_as_json
from situ.sources.declare import PUSH_KEYS, SOURCE_KEYS
from situ.sources.model import pushes_as_json, sources_as_json

Kind = Literal[
    "settings",
    "unit",
    "type",
    "event",
    "function",
    "source",
    "push",
    "concept",
    "group",
    "container",
    "relationship",
    "measure",
    "action",
    "opposed",
    "policy",
    "suspended",
    "start",
    "context",
    "scopes",
    "quality",
    "client",
    "advertisement",
    "subscription",
    "shape",
]
Origin = Literal["folder", "client", "api"]

KINDS: tuple[Kind, ...] = (
    "settings",
    "unit",
    "type",
    "event",
    "function",
    "source",
    "push",
    "concept",
    "group",
    "container",
    "relationship",
    "measure",
    "action",
    "opposed",
    "policy",
    "suspended",
    "start",
    "context",
    "scopes",
    "quality",
    "client",
    "advertisement",
    "subscription",
    "shape",
)
ONTOLOGY: Mapping[Kind, str] = MappingProxyType(
    {
        "concept": "concepts",
        "group": "groups",
        "container": "containers",
        "relationship": "relationships",
        "measure": "measures",
    }
)
"""The kinds of which an ontology is made, with the sections of its file."""

CLIENT_KINDS: tuple[Kind, ...] = ("client", "advertisement", "subscription")
"""What clients are and declare: nothing else refers to it, so it changes without anything else being looked at."""

_SINGLE_KINDS: tuple[Kind, ...] = (*CLIENT_KINDS, "scopes", "quality", "shape")
"""What a deployment takes over by itself, without all the rest being read again."""

SUSPENDED = canonical(True)
"""The body of the object that says of a policy that it is suspended."""

SETTINGS = "situ.yaml"
"""The name of the one object that all settings are."""

SCOPES = "scopes.yaml"
"""The name of the one object that all scopes are; there is none where there are no scopes."""

QUALITY = "quality"
"""The name of the one object that is declared about quality: the order of what is in it counts."""


class Key(NamedTuple):
    """What an object is called; names are unique within a kind."""

    kind: Kind
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


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
        value = json.loads(self.body)
        if self.kind == "subscription":
            return Subscription.from_json(self.name, value).as_json()
        if self.kind == "source":
            return {key: value[key] for key in SOURCE_KEYS if key in value}
        if self.kind == "push":
            return {key: value[key] for key in PUSH_KEYS if key in value}
        if self.kind == "context":
            return as_file(self.name, value)
        if self.kind == "quality":
            return quality_as_json(quality_from_json(value))
        return value


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


def bodies_of(deployment: Deployment) -> dict[Key, str]:
    """Everything declared, each with its body."""
    return {**schema_bodies(deployment), **client_bodies(deployment)}


def schema_bodies(deployment: Deployment) -> dict[Key, str]:
    """Settings, types, functions, sources, ontology, policies and contexts: what clients have no part in."""
    types = deployment.types.as_json()
    events = set(types["events"])
    found: dict[Key, str] = {Key("settings", SETTINGS): canonical(settings_as_json(deployment.settings))}
    found.update((Key("unit", name), canonical(body)) for name, body in types["units"].items())
    for name, body in types["types"].items():
        found[Key("event" if name in events else "type", name)] = canonical(body)
    for name, body in functions_as_json(deployment.functions).items():
        found[Key("function", name)] = canonical(body)
    for name, body in sources_as_json(deployment.sources).items():
        found[Key("source", name)] = canonical(body)
    for name, body in pushes_as_json(deployment.push).items():
        found[Key("push", name)] = canonical(body)
    written = ontology_as_json(deployment.ontology)
    for kind, section in ONTOLOGY.items():
        found.update((Key(kind, name), canonical(body)) for name, body in written[section].items())
    actions = actions_as_json(deployment.actions)
    found.update((Key("action", name), canonical(body)) for name, body in actions["actions"].items())
    found.update((Key("opposed", " and ".join(pair)), canonical(pair)) for pair in actions["opposed"])
    for name, text in policies_as_json(deployment.policies, deployment.stopped).items():
        found[Key("policy", name)] = canonical(text)
    found.update((Key("suspended", name), SUSPENDED) for name in deployment.suspended)
    found.update((Key("start", name), canonical(start.as_json())) for name, start in deployment.starts.items())
    for id, body in deployment.contexts.as_json().items():
        found[Key("context", id)] = canonical(body)
    if scopes := scopes_as_json(deployment.scopes):
        found[Key("scopes", SCOPES)] = canonical(scopes)
    if quality := quality_as_json(deployment.quality):
        found[Key("quality", QUALITY)] = canonical(quality)
    return found


def client_bodies(deployment: Deployment) -> dict[Key, str]:
    groups: tuple[Iterable[ClientDeclaration | Advertisement | Subscription], ...] = (
        deployment.clients.values(),
        deployment.advertisements.values(),
        deployment.subscriptions.values(),
    )
    found = {key_of(thing): body_of(thing) for group in groups for thing in group}
    return found | {Key("shape", id): shape_body(shape) for id, shape in deployment.shapes.items()}


def shape_body(shape: Shape) -> str:
    return canonical(shape_as_json(shape))


def epoch_of(objects: Mapping[Key, Object]) -> int:
    """Which of the scope graphs there were is in force: the version of its object; 0 without scopes."""
    found = objects.get(Key("scopes", SCOPES))
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
    changed = tuple(changed)
    if any(key.kind not in _SINGLE_KINDS for key in changed):
        return deployment_of(bodies, version, versions)
    if any(key.kind == "scopes" for key in changed):
        written = bodies.get(Key("scopes", SCOPES))
        old = replace(old, scopes=NO_SCOPES if written is None else scopes_from_json(json.loads(written)))
    if any(key.kind == "quality" for key in changed):
        written = bodies.get(Key("quality", QUALITY))
        old = replace(old, quality=NO_QUALITY if written is None else quality_from_json(json.loads(written)))
    clients, advertisements = dict(old.clients), dict(old.advertisements)
    subscriptions, shapes = dict(old.subscriptions), dict(old.shapes)
    for key in changed:
        if key.kind in ("scopes", "quality"):
            continue
        body = bodies.get(key)
        if key.kind == "shape":
            _set(shapes, key.name, None if body is None else shape_from_json(json.loads(body)))
        elif key.kind == "client":
            _set(clients, key.name, None if body is None else ClientDeclaration.from_json(key.name, json.loads(body)))
        elif key.kind == "advertisement":
            _set(
                advertisements, key.name, None if body is None else Advertisement.from_json(key.name, json.loads(body))
            )
        else:
            _set(subscriptions, key.name, None if body is None else Subscription.from_json(key.name, json.loads(body)))
    old = replace(old, shapes=MappingProxyType(shapes))
    return with_clients(old, clients, advertisements, subscriptions).at_version(version)


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
    by_kind: dict[str, list[tuple[str, str]]] = {kind: [] for kind in KINDS}
    for key, body in bodies.items():
        by_kind[key.kind].append((key.name, body))
    settings = by_kind["settings"][0][1] if by_kind["settings"] else canonical(settings_as_json(Deployment().settings))
    events = ",".join(canonical(name) for name, _ in sorted(by_kind["event"]))
    types = ",".join(
        (
            f'"events":[{events}]',
            f'"types":{_members(by_kind["type"] + by_kind["event"])}',
            f'"units":{_members(by_kind["unit"])}',
        )
    )
    sections = sorted((section, by_kind[kind]) for kind, section in ONTOLOGY.items())
    ontology = ",".join(f'"{section}":{_members(entries)}' for section, entries in sections if entries)
    suspended = ",".join(canonical(name) for name, _ in sorted(by_kind["suspended"]))
    opposed = ",".join(sorted(body for _, body in by_kind["opposed"]))
    actions = f'"actions":{{"actions":{_members(by_kind["action"])},"opposed":[{opposed}]}},'
    return (
        # A deployment without situations says nothing of them.
        ("{" + actions if by_kind["action"] else "{") + f'"advertisements":{_members(by_kind["advertisement"])}'
        f',"clients":{_members(by_kind["client"])}'
        f',"contexts":{_members(by_kind["context"])}'
        f',"functions":{_members(by_kind["function"])}'
        + (f',"ontology":{{{ontology}}}' if ontology else "")
        + (f',"policies":{_members(by_kind["policy"])}' if by_kind["policy"] else "")
        + (f',"push":{_members(by_kind["push"])}' if by_kind["push"] else "")
        + (f',"quality":{by_kind["quality"][0][1]}' if by_kind["quality"] else "")
        + (f',"scopes":{by_kind["scopes"][0][1]}' if by_kind["scopes"] else "")
        + f',"settings":{settings}'
        + (f',"shapes":{_members(by_kind["shape"])}' if by_kind["shape"] else "")
        + f',"sources":{_members(by_kind["source"])}'
        + (f',"starts":{_members(by_kind["start"])}' if by_kind["start"] else "")
        + f',"subscriptions":{_members(by_kind["subscription"])}'
        + (f',"suspended":[{suspended}]' if suspended else "")
        + f',"types":{{{types}}}}}'
    )


def digest_of(content: str) -> str:
    """The digest of a deployment with this content; the same as its own :attr:`Deployment.digest`."""
    return hashlib.sha256(content.encode()).hexdigest()


def _members(entries: list[tuple[str, str]]) -> str:
    return "{" + ",".join([f"{canonical(name)}:{body}" for name, body in sorted(entries)]) + "}"


def _set(things: dict[str, Any], name: str, thing: Any) -> None:
    if thing is None:
        things.pop(name, None)
    else:
        things[name] = thing
