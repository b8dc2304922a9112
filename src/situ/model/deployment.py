"""The deployment: everything a project declares, checked and frozen, with one canonical form and a digest.

Declarations only; :mod:`situ.stages.plan` compiles them. Behind the deployment: the scopes of single epochs as the bus
keeps them, and what declarations about quality are checked against.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from situ.contexts.load import contexts_from_json
from situ.contexts.table import EMPTY_CONTEXTS, Contexts
from situ.lang.expr.definitions import Function, callable_functions, functions_as_json, functions_from_json
from situ.lang.expr.scope import Definition
from situ.lang.types.table import Types
from situ.policies.actions.load import actions_as_json, actions_from_json
from situ.policies.actions.model import DeclaredActions
from situ.policies.check.domain import Domain
from situ.policies.load import StoppedPolicy, policies_as_json, policies_from_json
from situ.policies.model import Policy, PolicyStart, starts_as_json, starts_from_json
from situ.policies.ontology.load import ontology_as_json, ontology_from_json
from situ.policies.ontology.model import Ontology
from situ.quality.model.declarations import NO_QUALITY, Quality, QualityEnvironment
from situ.quality.model.json_form import quality_as_json, quality_from_json
from situ.quality.model.shapes import UNSHAPED, Shape, shape_as_json, shape_from_json
from situ.routing.model import ROOT, Advertisement, ClientDeclaration, Subscription
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.stamp_codec import NO_NUMBERING, StampNumbers
from situ.settings import Settings, settings_as_json, settings_from_json
from situ.sources.load import pushes_from_json, sources_from_json
from situ.sources.model import Push, Source, pushes_as_json, sources_as_json

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The deployment and its digest.
#
# The digest is that of the canonical form without the version, so it depends on what is declared and on nothing else:
# not on files, their order, comments, blanks, machine or time. Secrets are not in it: settings keep the references to
# the environment as they were written. Neither are numbers that the registry gave: the version, those of contexts, the
# epoch of the scopes, and those that stamps of events are made of.

_KEYS = {
    "version",
    "settings",
    "types",
    "functions",
    "sources",
    "contexts",
    "clients",
    "advertisements",
    "subscriptions",
}
_SITUATIONS = ("ontology", "push", "actions", "policies", "suspended", "starts")
_MAY_LACK = {"versions", "scopes", "visibility", "quality", "shapes", *_SITUATIONS}
"""Versions of contexts that were changed, and what a project without scopes, situations or quality has nothing of."""
_NO_CONTENT = ("version", "versions", "visibility")


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """What is declared. Version 0 was made from a folder and belongs to no registry yet.

    Without contexts there is only root, which has the types and conversions of the deployment.
    """

    version: int = 0
    settings: Settings = field(default_factory=Settings)
    types: Types = field(default_factory=lambda: Types(types={}))
    functions: Mapping[str, Function] = field(default_factory=_nothing)
    sources: Mapping[str, Source] = field(default_factory=_nothing)
    push: Mapping[str, Push] = field(default_factory=_nothing)
    ontology: Ontology = field(default_factory=Ontology)
    actions: DeclaredActions = field(default_factory=DeclaredActions)
    policies: Mapping[str, Policy] = field(default_factory=_nothing)
    stopped: Mapping[str, StoppedPolicy] = field(default_factory=_nothing)
    """Policies that fit the ontology when they came, and no longer do."""
    suspended: frozenset[str] = frozenset()
    """Names of policies that somebody suspended; one may be gone, and is suspended again if it comes back."""
    starts: Mapping[str, PolicyStart] = field(default_factory=_nothing)
    """Policies that began, or are to begin, before they were added."""
    contexts: Contexts = EMPTY_CONTEXTS
    scopes: ScopeGraph = NO_SCOPES
    epoch: int = 0
    """Which of the scope graphs there were this is; 0: the registry has not said, or there are no scopes."""
    numbers: StampNumbers = NO_NUMBERING
    """What stamps of events are made of. Empty unless there are scopes, or were."""
    clients: Mapping[str, ClientDeclaration] = field(default_factory=_nothing)
    advertisements: Mapping[str, Advertisement] = field(default_factory=_nothing)
    subscriptions: Mapping[str, Subscription] = field(default_factory=_nothing)
    quality: Quality = NO_QUALITY
    shapes: Mapping[str, Shape] = field(default_factory=_nothing)
    """What negotiation makes of subscriptions, by their ids; one may be gone, and its shape goes after it."""

    def __post_init__(self) -> None:
        if self.contexts is EMPTY_CONTEXTS:
            object.__setattr__(self, "contexts", Contexts.only_root(self.types, self.functions))

    def __hash__(self) -> int:
        return hash(self.digest)

    @property
    def digest(self) -> str:
        """SHA-256 of the canonical form without versions, in hexadecimal."""
        content = {key: value for key, value in self.as_json().items() if key not in _NO_CONTENT}
        return hashlib.sha256(canonical(content).encode()).hexdigest()

    @property
    def definitions(self) -> Mapping[str, Definition]:
        """The functions that expressions can call."""
        return callable_functions(self.functions)

    @property
    def running(self) -> Mapping[str, Policy]:
        """The policies that are to be detected."""
        return MappingProxyType({name: each for name, each in self.policies.items() if name not in self.suspended})

    @property
    def domain(self) -> Domain:
        """What policies are checked against."""
        return Domain.of(self.ontology, self.push.values(), self.types, self.settings, self.actions)

    @property
    def routed(self) -> Mapping[str, Subscription]:
        """The subscriptions as events are routed to them: those that have a shape are delivered to by themselves."""
        with_shapes = {id: self.as_routed(self.subscriptions[id]) for id in self.shapes if id in self.subscriptions}
        return {**self.subscriptions, **with_shapes} if with_shapes else self.subscriptions

    def as_routed(self, subscription: Subscription) -> Subscription:
        """One of them."""
        shaped = self.shapes.get(subscription.id, UNSHAPED) != UNSHAPED
        return replace(subscription, shaped=True) if shaped else subscription

    def at_version(self, version: int, versions: Mapping[str, int] | None = None) -> Deployment:
        """The same declarations as this version; ``versions`` are those of its contexts, if they are others."""
        contexts = self.contexts if versions is None else self.contexts.at_versions(versions)
        return replace(self, version=version, contexts=contexts)

    def numbered(self, before: StampNumbers = NO_NUMBERING) -> Deployment:
        """With a number for everything that is stamped; itself, if the registry has given them all.

        ``before`` are those that were at work until now, if nobody else has given any.
        """
        tags = (each.scopes for each in self.advertisements.values())
        of_rows = (each.scopes for each in self.sources.values())
        numbers = (self.numbers or before).with_all(self.scopes, (*tags, *of_rows))
        return self if numbers is self.numbers else replace(self, numbers=numbers)

    def as_json(self) -> dict[str, Any]:
        """Plain JSON values, from which :meth:`from_json` makes an equal deployment."""
        return {
            "version": self.version,
            "settings": settings_as_json(self.settings),
            "types": self.types.as_json(),
            "functions": functions_as_json(self.functions),
            "sources": sources_as_json(self.sources),
            "contexts": self.contexts.as_json(),
            "clients": {name: self.clients[name].as_json() for name in sorted(self.clients)},
            "advertisements": {id: self.advertisements[id].as_json() for id in sorted(self.advertisements)},
            "subscriptions": {id: self.subscriptions[id].as_json() for id in sorted(self.subscriptions)},
            "versions": dict(self.contexts.versions),
            **({"scopes": scopes} if (scopes := scopes_as_json(self.scopes)) else {}),
            **({"visibility": {"epoch": self.epoch, **self.numbers.as_json()}} if self.epoch or self.numbers else {}),
            **({"quality": quality} if (quality := quality_as_json(self.quality)) else {}),
            **({"shapes": {id: shape_as_json(self.shapes[id]) for id in sorted(self.shapes)}} if self.shapes else {}),
            **self._situations(),
        }

    def _situations(self) -> dict[str, Any]:
        """Only what there is, so that a deployment without situations is the one that it always was."""
        ontology = {section: part for section, part in ontology_as_json(self.ontology).items() if part}
        actions = actions_as_json(self.actions)
        found = {
            "ontology": ontology,
            "push": pushes_as_json(self.push),
            "actions": actions if any(actions.values()) else {},
            "policies": policies_as_json(self.policies, self.stopped),
            "suspended": sorted(self.suspended),
            "starts": starts_as_json(self.starts),
        }
        return {key: part for key, part in found.items() if part}

    @classmethod
    def from_json(cls, value: Any) -> Deployment:
        """The deployment that :meth:`as_json` gave; ValueError for what it cannot have given."""
        try:
            return _from_json(value)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no deployment: {error!r}") from error


def canonical(value: Any) -> str:
    """The one text of a JSON value: sorted keys, no blanks."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _versions(value: Any) -> dict[str, int]:
    if not isinstance(value, dict) or not all(type(version) is int and version > 0 for version in value.values()):
        raise TypeError("versions")
    return value


def _epoch(value: Mapping[str, Any]) -> int:
    if type(value.get("epoch", 0)) is not int:
        raise TypeError("epoch")
    return int(value.get("epoch", 0))


def _from_json(value: Any) -> Deployment:
    if not isinstance(value, dict) or value.keys() - _MAY_LACK != _KEYS:
        raise ValueError("this is no deployment of this release: it has other parts")
    if not isinstance(value["version"], int) or isinstance(value["version"], bool):
        raise TypeError("version")
    settings = settings_from_json(value["settings"])
    types = Types.from_json(value["types"])
    functions = functions_from_json(value["functions"], types, settings.expression_limits)
    sources = sources_from_json(value["sources"], types)
    rows = {name: source.row for name, source in sources.items()}
    contexts = contexts_from_json(value["contexts"], types, functions, settings.expression_limits, rows)
    contexts = contexts.at_versions(_versions(value.get("versions", {})))
    definitions = callable_functions(functions)
    deployment = Deployment(
        version=value["version"],
        settings=settings,
        types=types,
        functions=functions,
        sources=sources,
        push=pushes_from_json(value.get("push", {}), types),
        ontology=ontology_from_json(value.get("ontology", {}), types, definitions, settings.expression_limits),
        actions=actions_from_json(value["actions"], types) if "actions" in value else DeclaredActions(),
        contexts=contexts,
        scopes=scopes_from_json(value["scopes"]) if "scopes" in value else NO_SCOPES,
        epoch=_epoch(value.get("visibility", {})),
        numbers=StampNumbers.from_json(value["visibility"]) if "visibility" in value else NO_NUMBERING,
        clients=MappingProxyType(
            {name: ClientDeclaration.from_json(name, body) for name, body in value["clients"].items()}
        ),
        advertisements=MappingProxyType(
            {id: Advertisement.from_json(id, body) for id, body in value["advertisements"].items()}
        ),
        subscriptions=MappingProxyType(
            {id: Subscription.from_json(id, body) for id, body in value["subscriptions"].items()}
        ),
        quality=quality_from_json(value["quality"]) if "quality" in value else NO_QUALITY,
        shapes=MappingProxyType({id: shape_from_json(body) for id, body in value.get("shapes", {}).items()}),
    )
    # Policies come last: they are read against the domain, which is made of the rest.
    policies = policies_from_json(value.get("policies", {}), deployment.domain)
    suspended = frozenset(value.get("suspended", ()))
    deployment = replace(
        deployment,
        policies=policies.running,
        stopped=policies.stopped,
        suspended=suspended,
        starts=starts_from_json(value.get("starts", {})),
    )
    used = {each.context for each in deployment.clients.values()}
    used |= {each.context for each in deployment.subscriptions.values()}
    if unknown := used - contexts.by_id.keys():
        raise ValueError(f"this is no deployment: somebody is in {', '.join(sorted(unknown))}, which is no context")
    return deployment


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Scopes of single epochs as the bus keeps them: what was stamped in an epoch is decided by its scopes for good.


def scopes_name(epoch: int) -> str:
    """The object that holds the scopes of an epoch."""
    return f"scopes-{epoch}"


def encode_scopes(graph: ScopeGraph) -> bytes:
    return canonical(scopes_as_json(graph)).encode()


def decode_scopes(content: bytes | None) -> ScopeGraph | None:
    """What :func:`encode_scopes` wrote; None if it is not there, or this release cannot read it: it shows nothing."""
    try:
        return None if content is None else scopes_from_json(json.loads(content))
    except ValueError:
        return None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What declarations about quality are checked against.


def quality_environment(deployment: Deployment) -> QualityEnvironment:
    """Event types of subscriptions are told in root's terms; of those in another context nobody can say them here."""
    contexts = deployment.contexts.by_id
    return QualityEnvironment(
        properties=deployment.quality.known,
        types=deployment.types,
        subscriptions={id: each.types if each.context == ROOT else () for id, each in deployment.subscriptions.items()},
        clients={
            name: contexts[each.context].types if each.context in contexts else deployment.types
            for name, each in deployment.clients.items()
        },
    )
