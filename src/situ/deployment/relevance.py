"""Which capability profiles matter to which subscriptions.

A profile belongs to a *pool*: the root type of its events, where they are published and with which filter, all as the
advertisements of its publisher say. Profiles of one pool matter to the same subscriptions, so whoever matches needs to
know of pools alone. Whoever advertises nothing of the kind has no pool, and matters to nobody.

A pool matters to a subscription if its events are of a subscribed type, are visible to it whatever they say, and do not
contradict its filter. Where it depends on the event whether it is visible, its publisher is for the subscription as one
that is not there: what a profile says, or what is measured of it, is said of events that must not be known. For the
same reason all that is published under a profile has to be visible, not only what comes by one of its advertisements.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from situ.deployment.interpreting import Interpretation
from situ.deployment.seeing import Seeing
from situ.deployment.showing import Showing
from situ.deployment.snapshot import Deployment
from situ.errors import SituError
from situ.expr.tree import FALSE, Node
from situ.quality.inputs import Relevance
from situ.subscription.contradicting import contradict
from situ.subscription.model import ROOT, Advertisement, Subscription
from situ.subscription.wanted import Meaning
from situ.tags import TagSet
from situ.types.model import Struct


@dataclass(frozen=True, slots=True)
class _Offer:
    """Under which tags, and with which filter in root's terms, something is published."""

    scopes: TagSet
    where: str


@dataclass(frozen=True, slots=True)
class _Pool:
    type: str
    """As root calls it."""
    offers: tuple[_Offer, ...]

    @property
    def key(self) -> str:
        return " | ".join((self.type, *(f"{each.scopes.as_json()} {each.where}".strip() for each in self.offers)))


@dataclass(frozen=True, slots=True)
class _Wanting:
    """All that the relevance of a pool to a subscription depends on."""

    types: tuple[str, ...]
    where: str
    context: str
    scopes: TagSet


@dataclass(slots=True)
class Pools:
    """The pools of one deployment. Made by :meth:`of`; what is worked out is kept for the next one."""

    deployment: Deployment
    interpretation: Interpretation
    seeing: Seeing | None
    meaning: Meaning
    profiles: Mapping[str, str] = field(default_factory=dict)
    """Every profile that there could be, ``publisher/type`` as the publisher calls it → its pool."""
    root_types: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Publisher and root type → what the publisher calls the type, if that is another name."""
    showing: Showing | None = None
    """What there is for whom; None: all for everybody."""
    _by_type: dict[str, dict[str, _Pool]] = field(default_factory=dict)
    _found: dict[_Wanting, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, deployment: Deployment, before: Pools | None = None) -> Pools:
        deployment = deployment.numbered()
        interpretation = Interpretation.of(deployment, None if before is None else before.interpretation)
        seeing = Seeing.of(deployment, None if before is None else before.seeing)
        limits = deployment.settings.expression_limits
        meaning = Meaning(deployment.types, deployment.definitions, limits, interpretation.mediator)
        if before is not None and before.meaning == meaning:
            meaning = before.meaning
        showing = Showing.of(deployment, None if before is None else before.showing)
        made = cls(deployment, interpretation, seeing, meaning, showing=showing)
        made._collect()
        same = before is not None and before.meaning is meaning and before.deployment.scopes == deployment.scopes
        if before is not None and same and before._by_type == made._by_type:
            made._found.update(before._found)
        return made

    def relevance(self) -> Relevance:
        """What negotiation is told: the pool of each profile, and which of them matter to each subscription."""
        subscriptions = self.deployment.subscriptions
        wanting = {id: _wanting(each) for id, each in subscriptions.items()}
        found: dict[_Wanting, frozenset[str]] = {}
        for id, key in wanting.items():
            if key not in found:
                known = self._found.get(key)
                found[key] = frozenset(self._work_out(subscriptions[id])) if known is None else known
        self._found = found  # subscriptions that are gone need not be known for the next deployment
        return Relevance(pools=self.profiles, relevant={id: found[key] for id, key in wanting.items()})

    def root_type(self, publisher: str, type: str) -> str:
        """What root calls the events that a publisher calls so."""
        return self.interpretation.advertised(Advertisement(client=publisher, name="profile", type=type)).type

    def types_of(self, wanted: Subscription) -> tuple[str, ...]:
        """What root calls the event types of a subscription; none, where they have no meaning any more."""
        if wanted.context == ROOT:
            return wanted.types
        try:
            return tuple(self.meaning.conditions(wanted))
        except SituError:
            return ()

    def _collect(self) -> None:
        offers: dict[tuple[str, str], set[_Offer]] = {}
        root_types: dict[tuple[str, str], str] = {}
        for ad in self.deployment.advertisements.values():
            context = self.interpretation.context_of(ad.client)
            offer = _Offer(ad.scopes, ad.where if context == ROOT else "")
            for type in self._below(context, ad.type):
                offers.setdefault((ad.client, type), set()).add(offer)
        profiles: dict[str, str] = {}
        for (publisher, type), found in offers.items():
            root = self.root_type(publisher, type)
            if root != type:
                root_types[publisher, root] = type
            pool = _Pool(root, tuple(sorted(found, key=_order)))
            self._by_type.setdefault(root, {})[pool.key] = pool
            profiles[f"{publisher}/{type}"] = pool.key
        self.profiles, self.root_types = profiles, root_types

    def _below(self, context: str, type: str) -> Iterator[str]:
        """An event type of a context and all below it, by their names there."""
        known = self.deployment.contexts.get(context) if context != ROOT else None
        types = self.deployment.types if known is None else known.types
        event = types.event(type)
        if event is not None:
            yield from (each.name for each in types.subtypes(event) if isinstance(each, Struct))

    def _work_out(self, wanted: Subscription) -> Iterator[str]:
        try:
            conditions = self.meaning.conditions(wanted)
        except SituError:  # it wants what is not there any more
            return
        for type, asked in conditions.items():
            if asked == FALSE:
                continue
            for below in self._below(ROOT, type):
                for key, pool in self._by_type.get(below, {}).items():
                    if self._is_seen(below, pool, wanted.scopes) and any(
                        not each.where or not self._contradicts(below, each.where, asked) for each in pool.offers
                    ):
                        yield key

    def _is_seen(self, type: str, pool: _Pool, subscribed: TagSet) -> bool:
        """Whether a subscription with these tags sees all that is published in a pool."""
        seeing = self.seeing
        return seeing is None or all(seeing.always_sees(each.scopes, subscribed, [type]) for each in pool.offers)

    def _contradicts(self, type: str, where: str, asked: Node) -> bool:
        offered = Subscription(client="offered", name="offered", types=(type,), where=where)
        return contradict(self.meaning.node(offered, type), asked)


def _wanting(wanted: Subscription) -> _Wanting:
    return _Wanting(wanted.types, wanted.where, wanted.context, wanted.scopes)


def _order(offer: _Offer) -> tuple[object, ...]:
    return offer.where, offer.scopes.named, offer.scopes.rest
