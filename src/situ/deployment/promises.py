"""What advertisements promise of their events beside the type: filters, decided as those of subscriptions are.

A filter in the terms of a context asks of root events what a subscription there would ask. One that nobody can decide,
because the context does not see its own events, is true for none: what cannot be held to a promise is not let in.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from situ.deployment.interpreting import Interpretation
from situ.deployment.snapshot import Deployment
from situ.errors import SituError
from situ.event.row import Row
from situ.subscription.model import Advertisement, Subscription
from situ.subscription.routing import Routing, compile_routing


class Promises:
    """The filters of the advertisements of one deployment."""

    def __init__(self, deployment: Deployment, interpretation: Interpretation, before: Promises | None = None) -> None:
        self._deployment = deployment
        self._interpretation = interpretation
        self._routing: Routing | None = before._routing if before is not None else None
        self._asked: Mapping[str, Subscription] = {}
        self._undecided: frozenset[str] = frozenset()
        self.learn(deployment.advertisements)

    @property
    def promising(self) -> Collection[str]:
        return self._asked.keys()

    def said(self, ad: str) -> str:
        return self._asked[ad].where

    def kept(self, ad: str, row: Row) -> bool:
        if ad in self._undecided or self._routing is None or not self._routing.matches(ad, row):
            return False
        later = self._interpretation.decision(self._asked[ad], row.type)
        return later is None or bool(later.wants(row))

    def learn(self, advertisements: Mapping[str, Advertisement]) -> None:
        """These hold, too."""
        new = {id: self._as_asked(each) for id, each in advertisements.items() if each.where}
        if not new:
            return
        self._asked = {**self._asked, **new}
        try:
            self._routing = self._compiled(self._decided())
        except SituError:
            self._undecided |= {id for id, each in new.items() if not self._is_decidable(each)}
            self._routing = self._compiled(self._decided())

    def _decided(self) -> Mapping[str, Subscription]:
        return {id: each for id, each in self._asked.items() if id not in self._undecided}

    def _as_asked(self, each: Advertisement) -> Subscription:
        context = self._interpretation.context_of(each.client)
        return Subscription(client=each.client, name=each.name, types=(each.type,), where=each.where, context=context)

    def _is_decidable(self, asked: Subscription) -> bool:
        try:
            self._compiled({asked.id: asked})
        except SituError:
            return False
        return True

    def _compiled(self, asked: Mapping[str, Subscription]) -> Routing:
        deployment = self._deployment
        return compile_routing(
            types=deployment.types,
            functions=deployment.definitions,
            subscriptions=asked,
            limits=deployment.settings.expression_limits,
            mediator=self._interpretation,
            previous=self._routing,
        )
