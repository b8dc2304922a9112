"""Stamp: under which advertisement an event was published, and whether it may be.

Nobody publishes what he did not announce: the advertisement is the client's own (R002), the event of its type or one
below it, and its filter true for it (R003). A client that does not say which gets the only one that fits. Policies are
clients that announce nothing: what they publish follows from what they are.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from situ.event.failures import failed
from situ.event.lines import encode_row
from situ.event.row import BadRow, Row, errors_of
from situ.lang.catalogue import NO_SUCH_DECLARATION, NOT_AS_ADVERTISED
from situ.lang.problems import Problem
from situ.lang.types.model import supertypes
from situ.lang.types.table import RESERVED_EVENTS, Types
from situ.routing.model import Advertisement

STAGE = "stamp"


class _Own(str):
    """Like no advertisement to everybody else."""


OWN = _Own()
"""Stands in a row for the advertisement of what detection published: policies that are gone tell what they close."""
_MOST_REMEMBERED = 100_000
_MOST_NAMED = 5


class AdvertisementConditions(Protocol):
    """What advertisements say of their events beside the type."""

    @property
    def promising(self) -> Collection[str]:
        """The ids of those that say anything."""

    def kept(self, ad: str, row: Row) -> bool:
        """Whether an event is as its advertisement says."""

    def said(self, ad: str) -> str:
        """What that is, as it is written."""


class AdvertisementCheck:
    """The advertisements of one deployment; knows the answer for (client, type, advertisement) once it was asked."""

    def __init__(
        self,
        types: Types,
        advertisements: Mapping[str, Advertisement],
        policies: Mapping[str, frozenset[str]] = MappingProxyType({}),
        promises: AdvertisementConditions | None = None,
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

    def learn_promises(self, promises: AdvertisementConditions) -> None:
        """What those say that were learnt."""
        self._promises = promises if promises.promising else None

    def _held_to(self, promises: AdvertisementConditions, rows: list[Row | BadRow]) -> list[Row | BadRow]:
        for place, row in enumerate(rows):
            if type(row) is not Row or row.ad not in promises.promising:
                continue
            try:
                if not promises.kept(row.ad, row):
                    rows[place] = _refused(row, filter_not_met(row.ad, promises.said(row.ad)))
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


def not_of_type(type: str, ad: str, advertised: str) -> Problem:
    """The event is of another type than its advertisement says."""
    return NOT_AS_ADVERTISED(
        reason=f"is of type `{type}`, but `{ad}` advertises `{advertised}`",
        remedy="Publish it under an advertisement of its type or of one above it, or leave `situad` out.",
    )


def filter_not_met(ad: str, where: str) -> Problem:
    """The filter of its advertisement is not true for the event."""
    return NOT_AS_ADVERTISED(
        reason=f"is not as `{ad}` advertises: `{where}` is not true for it",
        remedy="Publish it under an advertisement without this filter, or with one that is true for it.",
    )


def _refused(row: Row, problem: Problem) -> BadRow:
    return BadRow(
        pos=row.pos,
        client=row.client,
        incarnation=row.incarnation,
        seq=row.seq,
        context=row.context,
        recv=row.recv,
        ad=row.ad,
        stage=STAGE,
        errors=errors_of([problem]),
        original=encode_row(row),
    )
