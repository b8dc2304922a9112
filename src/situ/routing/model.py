"""Clients, advertisements and subscriptions, as declared.

Plain data: names of types and the text of a filter, checked when they were loaded. What filters mean together, which
one covers which, is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from situ.lang.catalogue import NOT_AS_ADVERTISED
from situ.lang.json_form import text_of
from situ.lang.problems import Location, Problem
from situ.lang.tags import NO_TAGS, TagSet, WrittenTags
from situ.routing.topics import DELIVERIES, QUEUED, REAL_TIME, TopicSource, TopicTarget

NAME = re.compile(r"[A-Za-z0-9-]{1,64}")
"""Names of clients, advertisements and subscriptions: they become subjects of the bus."""

ROOT = "root"
"""The context of a client that names none: the terms of the project itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientDeclaration:
    """Whoever publishes or subscribes, under one name, in the terms of its context."""

    name: str
    context: str = ROOT
    scopes: TagSet = NO_TAGS
    """The tags of what it declares without saying any."""
    kafka: TopicSource | None = None
    """The topics that its events come from, if they do not come from a program that connects."""

    @property
    def client(self) -> str:
        return self.name

    @property
    def id(self) -> str:
        return self.name

    def as_json(self) -> dict[str, Any]:
        context: dict[str, Any] = {} if self.context == ROOT else {"context": self.context}
        kafka = {"kafka": self.kafka.as_json()} if self.kafka is not None else {}
        return {**context, **_scopes_as_json(self.scopes), **kafka}

    @classmethod
    def from_json(cls, name: str, value: Mapping[str, Any]) -> ClientDeclaration:
        if not NAME.fullmatch(name) or value.keys() - {"context", "scopes", "kafka"}:
            raise ValueError(f"{name!r} is no client of this release")
        kafka = TopicSource.from_json(value["kafka"]) if "kafka" in value else None
        context = text_of(value.get("context", ROOT))
        return cls(name=name, context=context, scopes=_scopes(value), kafka=kafka)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advertisement:
    """A client's statement that it will publish events of a type, or of its subtypes, that ``where`` is true of.

    Type and filter are in the terms of the client's context. An empty ``where`` is true of all. ``scopes`` says where
    they are published.
    """

    client: str
    name: str
    type: str
    where: str = ""
    scopes: TagSet = NO_TAGS

    @property
    def id(self) -> str:
        return f"{self.client}/{self.name}"

    def as_json(self) -> dict[str, Any]:
        where = {"where": self.where} if self.where else {}
        return {"type": self.type, **where, **_scopes_as_json(self.scopes)}

    @classmethod
    def from_json(cls, id: str, value: Mapping[str, Any]) -> Advertisement:
        client, name = _parts(id)
        where = text_of(value.get("where", ""))
        return cls(client=client, name=name, type=text_of(value["type"]), where=where, scopes=_scopes(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscription:
    """A client's statement of which events it wants: those of these types and their subtypes that ``where`` is true of.

    An empty ``where`` wants all of them. ``types`` are in the order of their names. Types and filter are in the terms
    of ``context``, and so are the events that are delivered. ``scopes`` says where they are wanted from.
    """

    client: str
    name: str
    types: tuple[str, ...]
    where: str = ""
    durable: bool = False
    context: str = ROOT
    scopes: TagSet = NO_TAGS
    kafka: TopicTarget | None = None
    """The topic that it is delivered to. It is durable then."""
    delivery: str = QUEUED
    """How its events reach that topic, one of :data:`situ.routing.topics.DELIVERIES`."""
    shaped: bool = False
    """Whether something is done to its events that is not done to those of others. It is not declared."""

    @property
    def id(self) -> str:
        return f"{self.client}/{self.name}"

    @property
    def in_real_time(self) -> bool:
        """Whether what can be is delivered in real time."""
        return self.delivery == REAL_TIME

    def as_json(self) -> dict[str, Any]:
        result: dict[str, Any] = {"types": list(self.types)}
        if self.where:
            result["where"] = self.where
        if self.durable:
            result["durable"] = True
        if self.context != ROOT:
            result["context"] = self.context
        if self.kafka is not None:
            result["kafka"] = self.kafka.as_json()
        if self.delivery != QUEUED:
            result["delivery"] = self.delivery
        return {**result, **_scopes_as_json(self.scopes)}

    @classmethod
    def from_json(cls, id: str, value: Mapping[str, Any]) -> Subscription:
        client, name = _parts(id)
        durable = value.get("durable", False)
        if not isinstance(durable, bool):
            raise TypeError("durable is true or false")
        delivery = text_of(value.get("delivery", QUEUED))
        if delivery not in DELIVERIES:
            raise ValueError(f"{delivery!r} is no delivery of this release")
        return cls(
            client=client,
            name=name,
            types=tuple(text_of(type) for type in value["types"]),
            where=text_of(value.get("where", "")),
            durable=durable,
            context=text_of(value.get("context", ROOT)),
            scopes=_scopes(value),
            kafka=TopicTarget.from_json(value["kafka"]) if "kafka" in value else None,
            delivery=delivery,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """What the files of ``clients/`` declare together; advertisements and subscriptions by their ids."""

    clients: Mapping[str, ClientDeclaration] = field(default_factory=lambda: MappingProxyType({}))
    advertisements: Mapping[str, Advertisement] = field(default_factory=lambda: MappingProxyType({}))
    subscriptions: Mapping[str, Subscription] = field(default_factory=lambda: MappingProxyType({}))
    places: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """Where clients are declared, by name."""
    tags: Mapping[str, WrittenTags] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """Where the tags stand that an advertisement or subscription says itself or has from its client, by its id."""
    deliveries: Mapping[str, Location] = field(default_factory=lambda: MappingProxyType({}), compare=False)
    """Where subscriptions say how they are delivered, by their ids."""


def _scopes(value: Mapping[str, Any]) -> TagSet:
    return TagSet.from_json(value["scopes"]) if "scopes" in value else NO_TAGS


def _scopes_as_json(tags: TagSet) -> dict[str, Any]:
    """Who says nothing of scopes is what it always was."""
    return {} if tags == NO_TAGS else {"scopes": tags.as_json()}


def _parts(id: str) -> tuple[str, str]:
    client, slash, name = id.partition("/")
    if not slash or not NAME.fullmatch(client) or not NAME.fullmatch(name):
        raise ValueError(f"{id!r} is no `client/name`")
    return client, name


def not_of_type(type: str, ad: str, advertised: str) -> Problem:
    """The event is of another type than its advertisement says."""
    return NOT_AS_ADVERTISED(
        reason=f"is of type `{type}`, but `{ad}` advertises `{advertised}`",
        remedy="Publish it under an advertisement of its type or of one above it, or leave `situad` out.",
    )
