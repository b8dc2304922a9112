"""The deployment: everything a project declares, checked and frozen, with one canonical form and a digest.

Declarations only; :mod:`situ.stages.plan` compiles them. Behind the deployment: the scopes of single epochs as the bus
keeps them, and what declarations about quality are checked against.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.contexts.table import EMPTY_CONTEXTS, Contexts
from situ.lang.expr.definitions import DefinedFunction, callable_functions
from situ.lang.expr.scope import Definition
from situ.lang.records import replace
from situ.lang.types.table import Types
from situ.model.kinds import PARTS, canonical, deployment_as_json, read_parts
from situ.policies.actions.model import DeclaredActions
from situ.policies.check.domain import Domain
from situ.policies.load import StoppedPolicy
from situ.policies.model import Policy, PolicyStart
from situ.policies.ontology.model import Ontology
from situ.quality.model.declarations import NO_QUALITY, Quality, QualityEnvironment
from situ.quality.model.shapes import UNSHAPED, Shape
from situ.routing.model import ROOT, Advertisement, ClientDeclaration, Subscription
from situ.scopes.graph import NO_SCOPES, ScopeGraph
from situ.scopes.json_form import scopes_as_json, scopes_from_json
from situ.scopes.stamp_codec import NO_NUMBERING, StampNumbers
from situ.settings import Settings
from situ.sources.model import Push, Source

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The deployment and its digest.
#
# The digest is that of the canonical form without the version, so it depends on what is declared and on nothing else:
# not on files, their order, comments, blanks, machine or time. Secrets are not in it: settings keep the references to
# the environment as they were written. Neither are numbers that the registry gave: the version, those of contexts, the
# epoch of the scopes, and those that stamps of events are made of.


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
    functions: Mapping[str, DefinedFunction] = field(default_factory=_nothing)
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
        content = {key: value for key, value in self.as_json().items() if PARTS[key].content}
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
        return deployment_as_json(self)

    @classmethod
    def from_json(cls, value: Any) -> Deployment:
        """The deployment that :meth:`as_json` gave; ValueError for what it cannot have given."""
        try:
            return _from_json(value)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"this is no deployment: {error!r}") from error


def _from_json(value: Any) -> Deployment:
    deployment = read_parts(value, Deployment())
    used = {each.context for each in deployment.clients.values()}
    used |= {each.context for each in deployment.subscriptions.values()}
    if unknown := used - deployment.contexts.by_id.keys():
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
