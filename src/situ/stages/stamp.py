"""Stage stamp: under which advertisement an event was published, whether it may be, and who may see it.

`AdvertisementFilters` decides what advertisements promise, `AdvertisementCheck` what they allow, `stamp` is the stage.
Nobody publishes what he did not announce: the advertisement is the client's own (R002), the event of its type or one
below it, and its filter true for it (R003). A client that does not say which gets the only one that fits. Policies are
clients that announce nothing: what they publish follows from what they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from situ.event.failures import failed
from situ.event.lines import encode_row
from situ.event.row import BadRow, Row, errors_of
from situ.lang.catalogue import NO_SUCH_DECLARATION, NOT_AS_ADVERTISED
from situ.lang.problems import Problem, SituError
from situ.lang.types.model import supertypes
from situ.lang.types.table import RESERVED_EVENTS, Types
from situ.model.deployment import Deployment
from situ.routing.filter import Filter
from situ.routing.model import Advertisement, Subscription, not_of_type
from situ.routing.routing_table import RoutingTable, compile_routing
from situ.stages.interpret import Interpretation
from situ.stages.type_visibility import redact_hidden_types
from situ.stages.visibility import STAGE

if TYPE_CHECKING:
    from situ.stages.plan import Plan


class _Own(str):
    """Like no advertisement to everybody else."""


OWN = _Own()
"""Stands in a row for the advertisement of what detection published: policies that are gone tell what they close."""
_MOST_REMEMBERED = 100_000
_MOST_NAMED = 5


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What advertisements promise of their events beside the type: filters, decided as those of subscriptions are. A filter
# in the terms of a context asks of root events what a subscription there would ask. One that nobody can decide, because
# the context does not see its own events, is true for none: what cannot be held to a promise is not let in.


class AdvertisementFilters:
    """The filters of the advertisements of one deployment."""

    def __init__(
        self, deployment: Deployment, interpretation: Interpretation, before: AdvertisementFilters | None = None
    ) -> None:
        self._deployment = deployment
        self._interpretation = interpretation
        self._routing: RoutingTable | None = before._routing if before is not None else None
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

    def promised(self, ad: str, type: str) -> Sequence[Filter]:
        """As :class:`situ.routing.pruned_index.AdvertisementPromises` has it."""
        if ad not in self._asked or ad in self._undecided or self._routing is None:
            return ()
        return self._routing.filters_for(ad, type)

    def learn(self, advertisements: Mapping[str, Advertisement]) -> None:
        """These hold, too."""
        new = {id: self._as_asked(each) for id, each in advertisements.items() if each.where}
        if not new:
            return
        known = self._routing if self._asked else None  # of these advertisements, and not of those before
        self._asked = {**self._asked, **new}
        try:
            self._routing = known.updated(new) if known is not None else self._compiled(self._decided())
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

    def _compiled(self, asked: Mapping[str, Subscription]) -> RoutingTable:
        deployment = self._deployment
        return compile_routing(
            types=deployment.types,
            functions=deployment.definitions,
            subscriptions=asked,
            limits=deployment.settings.expression_limits,
            mediator=self._interpretation,
            previous=self._routing,
        )


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# What advertisements allow.


class AdvertisementCheck:
    """The advertisements of one deployment; knows the answer for (client, type, advertisement) once it was asked."""

    def __init__(
        self,
        types: Types,
        advertisements: Mapping[str, Advertisement],
        policies: Mapping[str, frozenset[str]] = MappingProxyType({}),
        promises: AdvertisementFilters | None = None,
    ) -> None:
        """``policies``: the types that each of them publishes; ``promises`` are those of the advertisements."""
        self._promises = promises if promises is not None and promises.promising else None
        self._types = types
        self._policies = policies
        self._advertisements = advertisements
        self._of_client: dict[str, list[Advertisement]] = {}
        for each in advertisements.values():
            self._of_client.setdefault(each.client, []).append(each)
        self._known: dict[tuple[str, str, str], str | Problem] = {}

    def learn(self, advertisements: Mapping[str, Advertisement]) -> None:
        """These hold, too, before the deployment that has them is at work: their clients were told so."""
        self._advertisements = {**self._advertisements, **advertisements}
        for each in advertisements.values():
            self._of_client.setdefault(each.client, []).append(each)
        self._known.clear()

    def each(self, rows: Iterable[Row | BadRow]) -> list[Row | BadRow]:
        """The rows with their advertisements, or why they have none; what was bad before stays as it is."""
        stamped: list[Row | BadRow] = []
        client = type_ = ad = ""
        found: str | Problem = ""
        for row in rows:
            if type(row) is not Row:
                stamped.append(row)
                continue
            if row.ad is OWN:
                row.ad = ""
                stamped.append(row)
                continue
            # Rows of a message are mostly alike.
            if row.type != type_ or row.client != client or row.ad != ad:
                client, type_, ad = row.client, row.type, row.ad
                try:
                    found = self._answer(client, type_, ad)
                except Exception as error:  # noqa: BLE001 - of this event, and of others that are like it
                    stamped.append(failed(row, STAGE, error))
                    type_ = ""
                    continue
            if type(found) is str:
                row.ad = found
                stamped.append(row)
            else:
                assert isinstance(found, Problem)
                stamped.append(_refused(row, found))
        return stamped if self._promises is None else self._held_to(self._promises, stamped)

    def learn_promises(self, promises: AdvertisementFilters) -> None:
        """What those say that were learnt."""
        self._promises = promises if promises.promising else None

    def _held_to(self, promises: AdvertisementFilters, rows: list[Row | BadRow]) -> list[Row | BadRow]:
        for place, row in enumerate(rows):
            if type(row) is not Row or row.ad not in promises.promising:
                continue
            try:
                if not promises.kept(row.ad, row):
                    rows[place] = _refused(row, _filter_not_met(row.ad, promises.said(row.ad)))
            except Exception as error:  # noqa: BLE001 - of this event, and of no other
                rows[place] = failed(row, STAGE, error)
        return rows

    def stamp(self, row: Row) -> Row | BadRow:
        """The same for one row."""
        return self.each([row])[0]

    def _answer(self, client: str, type: str, ad: str) -> str | Problem:
        asked = (client, type, ad)
        found = self._known.get(asked)
        if found is None:
            if len(self._known) >= _MOST_REMEMBERED:
                self._known.clear()
            found = self._known[asked] = self._find(*asked)
        return found

    def _find(self, client: str, type: str, ad: str) -> str | Problem:
        if not ad and type in self._policies.get(client, ()):
            return ""
        if type in RESERVED_EVENTS:
            reason = f"may not publish `{type}`, which only Situ does"
            return NO_SUCH_DECLARATION(client=client, reason=reason, remedy="Publish an event type of your own.")
        if ad:
            return self._check(client, type, ad)
        fitting = sorted(each.id for each in self._of_client.get(client, ()) if self._fits(type, each.type))
        if len(fitting) == 1:
            return fitting[0]
        if fitting:
            named = ", ".join(f"`{id}`" for id in fitting[:_MOST_NAMED])
            reason = f"has several advertisements for `{type}`: {named}"
            remedy = "Say which one in the attribute `situad`."
        else:
            reason = f"has not advertised events of type `{type}`"
            remedy = "Advertise the type first, in a file of clients/ or through the client library."
        return NO_SUCH_DECLARATION(client=client, reason=reason, remedy=remedy)

    def advertises(self, client: str, type: str) -> bool:
        """Whether the client has advertised events of this type, in root's terms."""
        return any(self._fits(type, each.type) for each in self._of_client.get(client, ()))

    def _check(self, client: str, type: str, ad: str) -> str | Problem:
        declared = self._advertisements.get(ad)
        if declared is None or declared.client != client:
            reason = f"has no advertisement `{ad[:140]}`"
            own = sorted(each.id for each in self._of_client.get(client, ()))[:_MOST_NAMED]
            remedy = f"It has {', '.join(own)}." if own else "Advertise the type first."
            return NO_SUCH_DECLARATION(client=client, reason=reason, remedy=remedy)
        if not self._fits(type, declared.type):
            return not_of_type(type, ad, declared.type)
        return ad

    def _fits(self, type: str, advertised: str) -> bool:
        event = self._types.event(type)
        return event is not None and any(str(above) == advertised for above in supertypes(event))


def _filter_not_met(ad: str, where: str) -> Problem:
    """The filter of its advertisement is not true for the event."""
    return NOT_AS_ADVERTISED(
        reason=f"is not as `{ad}` advertises: `{where}` is not true for it",
        remedy="Publish it under an advertisement without this filter, or with one that is true for it.",
    )


def _refused(row: Row, problem: Problem) -> BadRow:
    return BadRow.of(row, STAGE, errors_of([problem]), encode_row(row))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Stage stamp: each row gets the advertisement it was published under, or is no event of its client's. Where there are
# scopes it learns what it must know of its own visibility, too.


def stamp(rows: Iterable[Row | BadRow], plan: Plan, *, own: bool = False) -> tuple[list[Row], list[BadRow]]:
    """The rows that go on, and those that do not. Of ``own`` ones, which detection says, nobody asks if they may."""
    if not own:
        rows = plan.stamp.each(rows)
        if plan.showing is not None:  # why it is none is told as its client may know it
            rows = redact_hidden_types(rows, plan.showing, plan.stamp.advertises)
    good, bad = _sort_out(rows)
    if plan.seeing is not None and (failed := plan.seeing.stamp(good)):
        gone = {each.seq for each in failed}
        return [row for row in good if row.seq not in gone], [*bad, *failed]
    return good, bad


def _sort_out(rows: Iterable[Row | BadRow]) -> tuple[list[Row], list[BadRow]]:
    """The events, and what is none."""
    good: list[Row] = []
    bad: list[BadRow] = []
    for row in rows:
        if isinstance(row, Row):
            good.append(row)
        else:
            bad.append(row)
    return good, bad
