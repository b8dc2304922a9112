"""Why something is visible to a subscription, or not: in the epoch it was stamped in, in the one in force, and part by
part.

Explains what :mod:`situ.deployment.seeing` decides, by the same stamps: a filter was true if the stamp says so. The
event, where it is at hand, says why the others were not. Finding events, and who may ask, is for others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from situ.deployment.parts import Part, read_parts
from situ.deployment.seeing import Seeing
from situ.event.row import Row
from situ.subscription.reading import data_reader, read_envelope
from situ.tags import NO_TAGS, TagSet
from situ.visibility.bits import numbers_in
from situ.visibility.epochs import NOTHING_RELEASED
from situ.visibility.explain import Answers, Explained, Side, explain_visibility, may_know_all, one_side
from situ.visibility.graph import NO_SCOPES, ScopeGraph
from situ.visibility.placed import with_places
from situ.visibility.rights import Principal
from situ.visibility.stamping import RootEvent


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One stamped thing: an event, or a part of a situation. Without ``tags`` nobody but operators sees it.

    ``then`` is what the scopes of its epoch say, None if nobody knows them; ``now`` what those in force say, None if
    they are the same. A sample was never stamped: of it there is ``now`` alone.
    """

    tags: TagSet | None
    epoch: int | None
    visible: bool
    then: Explained | None = None
    now: Explained | None = None
    released: frozenset[str] = NOTHING_RELEASED

    @property
    def shown(self) -> Explained | None:
        """The answer that is worth telling: the one that says no."""
        if self.now is not None and not self.now.visible:
            return self.now
        return self.then if self.epoch is not None else self.now


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """The whole answer. ``side``: for somebody who may know this side only; ``epoch`` is the one in force."""

    visible: bool
    epoch: int
    own: Decided
    parts: tuple[Decided, ...] = ()
    side: Side | None = None
    policy: str = ""
    """Of what has parts: the policy that it comes from."""

    @property
    def held_back_in(self) -> tuple[str, ...]:
        """The dimensions in which nothing but its parts keeps it from being seen: a release there would let it go."""
        hidden = [each for each in self.parts if not each.visible]
        if not self.own.visible or any(each.shown is None for each in hidden):
            return ()
        found = {dimension.dimension for each in hidden if each.shown for dimension in each.shown.hidden}
        return tuple(sorted(found))


def explain_row(seeing: Seeing, row: Row, subscribed: TagSet, written: ScopeGraph = NO_SCOPES) -> Why:
    """Why an event of the log is handed to a subscription, or is not. ``written`` knows the places of filters."""
    look = seeing.look(row)
    event = _root_event(seeing, row)
    stamped = Part(row.tags, row.epoch, row.bits)
    return Why(
        visible=seeing.sees(look, subscribed),
        epoch=seeing.epoch,
        own=_decided(seeing, stamped, look[3], subscribed, event, written),
        parts=tuple(
            _decided(seeing, part, seeing.bits_now(part.tags, part.epoch, part.bits), subscribed, None, written)
            for part in read_parts(row.parts)
        ),
        policy=row.client if row.parts else "",
    )


def explain_sample(
    seeing: Seeing, event: RootEvent, advertised: TagSet, subscribed: TagSet, written: ScopeGraph = NO_SCOPES
) -> Why:
    """Why an event that was made up would be handed to a subscription now, or would not."""
    now = explain_visibility(with_places(seeing.graph, written), event, advertised, subscribed)
    return Why(
        visible=now.visible,
        epoch=seeing.epoch,
        own=Decided(tags=advertised, epoch=None, visible=now.visible, now=now),
    )


def without_scopes() -> Why:
    """Where there are no scopes, and never were."""
    nothing = Explained(visible=True, dimensions=())
    return Why(visible=True, epoch=0, own=Decided(tags=NO_TAGS, epoch=None, visible=True, now=nothing))


def sample_event(seeing: Seeing, type: str, envelope: Mapping[str, Any], data: Mapping[str, Any]) -> RootEvent:
    return RootEvent(filters=seeing.filters, type=type, envelope={**envelope, "type": type}, data=data)


def may_know(seeing: Seeing, by: Principal, why: Why, subscribed: TagSet) -> bool:
    """Whether somebody may know both sides: in the scopes in force and in those it was stamped under, part by part."""
    for each in (why.own, *why.parts):
        if each.tags is None:
            return by.operator
        graphs = (seeing.graph, None if each.epoch is None else seeing.scopes_of(each.epoch))
        if not all(graph is None or may_know_all(graph, by, each.tags, subscribed) for graph in graphs):
            return False
    return True


def of_one_side(visible: bool, side: Side, own: TagSet) -> Why:
    """For those who may not know more: nothing of parts, epochs and filters either."""
    said = one_side(visible, side, own)
    return Why(visible=visible, epoch=0, side=side, own=Decided(tags=own, epoch=None, visible=visible, now=said))


def _decided(
    seeing: Seeing, part: Part, now_bits: int, subscribed: TagSet, event: RootEvent | None, written: ScopeGraph
) -> Decided:
    tags, then_graph = seeing.numbers.tag_set(part.tags), seeing.scopes_of(part.epoch)
    if tags is None:
        return Decided(tags=None, epoch=part.epoch, visible=False, released=part.released)

    def explained(graph: ScopeGraph | None, bits: int) -> Explained | None:
        if graph is None:
            return None
        answers = Answers(true=_texts(seeing, bits), event=event)
        return explain_visibility(with_places(graph, written), answers, tags, subscribed, part.released)

    then = explained(then_graph, part.bits)
    now = None if part.epoch == seeing.epoch else explained(seeing.graph, now_bits)
    return Decided(
        tags=tags,
        epoch=part.epoch,
        visible=then is not None and then.visible and (now is None or now.visible),
        then=then,
        now=now,
        released=part.released,
    )


def _texts(seeing: Seeing, bits: int) -> frozenset[str]:
    texts = seeing.numbers.filters.texts()
    return frozenset(texts[number] for number in numbers_in(bits) if number < len(texts))


def _root_event(seeing: Seeing, row: Row) -> RootEvent | None:
    """The event to be asked; None where its type is gone."""
    type = seeing.filters.types.event(row.type)
    if type is None:
        return None
    envelope = {**read_envelope(row), "type": row.type}
    data = data_reader(type, None, seeing.filters.types)(row.data)
    return RootEvent(filters=seeing.filters, type=row.type, envelope=envelope, data=data)
