"""Why something is visible to a subscription, or not: in both epochs and part by part, as data and in words.

`explain_row` explains an event of the log, `explain_sample` one that was made up, `explanation_lines` says the answer
in words. Finding events, and who may ask, is for others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import indent
from typing import Any, Literal, Self

import msgspec

from situ.event.data_reader import data_reader, read_envelope
from situ.event.row import Row
from situ.lang.json_form import Explanation
from situ.lang.records import replace
from situ.lang.tags import ANY, NO_TAGS, TagSet
from situ.scopes.epochs import NOTHING_RELEASED
from situ.scopes.explanation import (
    FilterAnswers,
    RootEvent,
    VisibilityExplanation,
    dimension_lines,
    explain_visibility,
    may_know_all,
    summary,
)
from situ.scopes.filter_sets import numbers_in
from situ.scopes.graph import NO_SCOPES, ScopeGraph, with_places
from situ.scopes.rights import Principal
from situ.scopes.stamp_codec import StampPart, read_parts
from situ.stages.visibility import EventVisibility

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Explains what :mod:`situ.stages.visibility` decides, by the same stamps: a filter was true if the stamp says so. The
# event, where it is at hand, says why the others were not.


Side = Literal["producer", "consumer"]


class StampDecision(Explanation, frozen=True, kw_only=True):
    """One stamped thing: an event, or a part of a situation. A sample was never stamped: of it there is `now` alone."""

    visible: bool
    tags: TagSet | None
    """Dimension → scope, or `any`; `rest`: in all others. Null: nobody but operators sees it."""
    epoch: int | None = msgspec.field(name="stamped")
    """The epoch in which it was stamped."""
    released: frozenset[str] = NOTHING_RELEASED
    then: VisibilityExplanation | None = None
    """What the scopes of its epoch say; null: nobody knows them any more."""
    now: VisibilityExplanation | None = None
    """What those in force say; null: they are the same."""

    @property
    def shown(self) -> VisibilityExplanation | None:
        """The answer that is worth telling: the one that says no."""
        if self.now is not None and not self.now.visible:
            return self.now
        return self.then if self.epoch is not None else self.now


class VisibilityRelease(Explanation, frozen=True, kw_only=True):
    """What an administrator can release, so that what comes of a policy is visible from then on."""

    policy: str
    dimensions: tuple[str, ...]
    """Those in which nothing but its parts keeps it from being seen."""


class VisibilityAnswer(Explanation, frozen=True, kw_only=True):
    """What is asked about, and whether it is visible; of an event that somebody may not know, its name alone."""

    event: str | None = None
    """Its id, or the name under which it was asked for; null: a sample."""
    key: str | msgspec.UnsetType | None = msgspec.UNSET
    type: str | msgspec.UnsetType = msgspec.UNSET
    source: str | msgspec.UnsetType = msgspec.field(default=msgspec.UNSET, name="from")
    advertisement: str | msgspec.UnsetType | None = msgspec.UNSET
    to: str = ""
    visible: bool
    side: Side | None = None
    """Whoever asked may know this side only, and the other is left out."""

    def about(self, subject: Mapping[str, str | None], to: str) -> Self:
        """The same about an event or a sample, and a subscription."""
        return replace(self, **subject, to=to)


class OwnTag(Explanation, frozen=True, kw_only=True):
    """What whoever asked said of a dimension: as a producer, or as a consumer."""

    dimension: str
    advertised: str | msgspec.UnsetType = msgspec.UNSET
    subscribed: str | msgspec.UnsetType = msgspec.UNSET


class OneSideExplanation(VisibilityAnswer, frozen=True, kw_only=True):
    """For those who may not know more: the answer, and what they said themselves. No foreign scope, filter or value."""

    dimensions: tuple[OwnTag, ...]


class EventVisibilityExplanation(VisibilityAnswer, frozen=True, kw_only=True):
    """The whole answer."""

    epoch: int
    """The one in force."""
    own: StampDecision = msgspec.field(name="itself")
    parts: tuple[StampDecision, ...] = ()
    release: VisibilityRelease | None = None


def explain_row(
    seeing: EventVisibility, row: Row, subscribed: TagSet, written: ScopeGraph = NO_SCOPES
) -> EventVisibilityExplanation:
    """Why an event of the log is handed to a subscription, or is not. ``written`` knows the places of filters."""
    look = seeing.look(row)
    event = _root_event(seeing, row)
    stamped = StampPart(row.tags, row.epoch, row.bits)
    own = _decided(seeing, stamped, look[3], subscribed, event, written)
    parts = tuple(
        _decided(seeing, part, seeing.bits_now(part.tags, part.epoch, part.bits), subscribed, None, written)
        for part in read_parts(row.parts)
    )
    held_back_in = _held_back_in(own, parts)
    return EventVisibilityExplanation(
        visible=seeing.sees(look, subscribed),
        epoch=seeing.epoch,
        own=own,
        parts=parts,
        release=VisibilityRelease(policy=row.client, dimensions=held_back_in) if held_back_in else None,
    )


def _held_back_in(own: StampDecision, parts: Iterable[StampDecision]) -> tuple[str, ...]:
    """The dimensions in which nothing but its parts keeps it from being seen: a release there would let it go."""
    hidden = [each for each in parts if not each.visible]
    if not own.visible or any(each.shown is None for each in hidden):
        return ()
    return tuple(sorted({dimension.dimension for each in hidden if each.shown for dimension in each.shown.hidden}))


def explain_sample(
    seeing: EventVisibility, event: RootEvent, advertised: TagSet, subscribed: TagSet, written: ScopeGraph = NO_SCOPES
) -> EventVisibilityExplanation:
    """Why an event that was made up would be handed to a subscription now, or would not."""
    now = explain_visibility(with_places(seeing.graph, written), event, advertised, subscribed)
    return EventVisibilityExplanation(
        visible=now.visible,
        epoch=seeing.epoch,
        own=StampDecision(tags=advertised, epoch=None, visible=now.visible, now=now),
    )


def without_scopes() -> EventVisibilityExplanation:
    """Where there are no scopes, and never were."""
    nothing = VisibilityExplanation(visible=True, dimensions=())
    return EventVisibilityExplanation(
        visible=True, epoch=0, own=StampDecision(tags=NO_TAGS, epoch=None, visible=True, now=nothing)
    )


def sample_event(seeing: EventVisibility, type: str, envelope: Mapping[str, Any], data: Mapping[str, Any]) -> RootEvent:
    return RootEvent(filters=seeing.filters, type=type, envelope={**envelope, "type": type}, data=data)


def may_know(seeing: EventVisibility, by: Principal, why: EventVisibilityExplanation, subscribed: TagSet) -> bool:
    """Whether somebody may know both sides: in the scopes in force and in those it was stamped under, part by part."""
    for each in (why.own, *why.parts):
        if each.tags is None:
            return by.operator
        graphs = (seeing.graph, None if each.epoch is None else seeing.scopes_of(each.epoch))
        if not all(graph is None or may_know_all(graph, by, each.tags, subscribed) for graph in graphs):
            return False
    return True


def of_one_side(visible: bool, side: Side, own: TagSet) -> OneSideExplanation:
    """Nothing of parts, epochs and filters, nor of single dimensions: that would tell of the other side."""
    key = "advertised" if side == "producer" else "subscribed"
    said = tuple(OwnTag(dimension=dimension, **{key: tag}) for dimension, tag in own.named)
    return OneSideExplanation(visible=visible, side=side, dimensions=said)


def _decided(
    seeing: EventVisibility,
    part: StampPart,
    now_bits: int,
    subscribed: TagSet,
    event: RootEvent | None,
    written: ScopeGraph,
) -> StampDecision:
    tags, then_graph = seeing.numbers.tag_set(part.tags), seeing.scopes_of(part.epoch)
    if tags is None:
        return StampDecision(tags=None, epoch=part.epoch, visible=False, released=part.released)

    def explained(graph: ScopeGraph | None, bits: int) -> VisibilityExplanation | None:
        if graph is None:
            return None
        answers = FilterAnswers(true=_texts(seeing, bits), event=event)
        return explain_visibility(with_places(graph, written), answers, tags, subscribed, part.released)

    then = explained(then_graph, part.bits)
    now = None if part.epoch == seeing.epoch else explained(seeing.graph, now_bits)
    return StampDecision(
        tags=tags,
        epoch=part.epoch,
        visible=then is not None and then.visible and (now is None or now.visible),
        then=then,
        now=now,
        released=part.released,
    )


def _texts(seeing: EventVisibility, bits: int) -> frozenset[str]:
    texts = seeing.numbers.filters.texts()
    return frozenset(texts[number] for number in numbers_in(bits) if number < len(texts))


def _root_event(seeing: EventVisibility, row: Row) -> RootEvent | None:
    """The event to be asked; None where its type is gone."""
    type = seeing.filters.types.event(row.type)
    if type is None:
        return None
    envelope = {**read_envelope(row), "type": row.type}
    data = data_reader(type, None, seeing.filters.types)(row.data)
    return RootEvent(filters=seeing.filters, type=row.type, envelope=envelope, data=data)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The answer in words: both epochs, every dimension, every part.

_MOST_PARTS = 20


def explanation_lines(why: VisibilityAnswer) -> str:
    """The answer as lines of text."""
    what = "an event as in the sample" if why.event is None else f"event {why.event}"
    if why.source is not msgspec.UNSET:
        what = f"{what}  {why.type}  from {why.source}"
    if isinstance(why, EventVisibilityExplanation):
        head = f"{what}{_epochs(why.own, why.epoch)}"
        return "\n".join((head, *_lines(why.own), *_parts(why), _verdict(why), *_release(why)))
    assert isinstance(why, OneSideExplanation)
    said = (f"{each.dimension}  {each.advertised or each.subscribed}" for each in why.dimensions)
    return "\n".join((what, *said, "visible" if why.visible else "not visible"))


def _epochs(own: StampDecision, epoch: int) -> str:
    if own.epoch is None:
        return f"  in epoch {epoch}" if epoch > 0 else ""
    if own.then is None or own.now is None:
        return f"  stamped in epoch {own.epoch}" + (f", now {epoch}" if own.epoch != epoch else "")
    agree = {
        (True, False): "visible then, not now",
        (False, True): "not visible then: what is opened later does not reach back",
    }.get((own.then.visible, own.now.visible), "same answer in both")
    return f"  stamped in epoch {own.epoch}, now {epoch} ({agree})"


def _lines(each: StampDecision) -> Iterator[str]:
    if each.tags is None:
        yield "it came under no known advertisement: only operators see it, and whoever sent it"
    elif each.epoch is not None and each.then is None:
        yield f"what the scopes of epoch {each.epoch} were is not known any more: nobody sees it"
    elif each.shown is not None:
        yield from dimension_lines(each.shown) or ["there are no scopes"]


def _parts(why: EventVisibilityExplanation) -> Iterator[str]:
    if not why.parts:
        return
    yield f"it was made of what has {'this stamp' if len(why.parts) == 1 else f'these {len(why.parts)} stamps'}:"
    # What keeps it from being seen comes first.
    for each in sorted(why.parts, key=lambda part: part.visible)[:_MOST_PARTS]:
        released = f", released in {', '.join(sorted(each.released))}" if each.released else ""
        verdict = "visible" if each.visible else "NOT VISIBLE"
        yield f"   {_tags(each.tags)}{_epochs(each, why.epoch)}{released}  {verdict}"
        if not each.visible:
            yield from (indent(line, "      ") for line in _lines(each))
    if len(why.parts) > _MOST_PARTS:
        yield f"   … {len(why.parts) - _MOST_PARTS} more"


def _release(why: EventVisibilityExplanation) -> Iterator[str]:
    if (release := why.release) is not None:
        form = f"{{ policy: {release.policy}, dimensions: [{', '.join(release.dimensions)}], keep: [ … ], by: … }}"
        who = f"an administrator of {' and '.join(release.dimensions)}"
        yield f"{who} can release what comes of {release.policy}, from then on:"
        yield f"   in scopes.yaml, under releases:  - {form}"


def about_event(row: Row) -> Mapping[str, str | None]:
    """What is asked about, as fields of the answer."""
    came = row.ad or row.client
    return {"event": row.id, "key": row.key, "type": row.type, "source": came, "advertisement": row.ad or None}


def about_sample(advertisement: str, type: str) -> Mapping[str, str | None]:
    return {"event": None, "key": None, "type": type, "source": advertisement, "advertisement": advertisement}


def _verdict(why: EventVisibilityExplanation) -> str:
    hidden = sum(not each.visible for each in why.parts)
    if why.own.visible and hidden:
        some = f"{hidden} of these {len(why.parts)} {'is' if hidden == 1 else 'are'} not"
        return f"not visible: {'what it was made of is not' if len(why.parts) == 1 else some}"
    if why.own.shown is None:
        return "visible" if why.visible else "not visible"
    return summary(why.own.shown)


def _tags(tags: TagSet | None) -> str:
    if tags is None:
        return "no known tags"
    named = ", ".join(f"{dimension} {tag}" for dimension, tag in tags.named)
    rest = f"rest {ANY}" if tags.rest else ""
    return ", ".join(filter(None, (named, rest))) or "nothing said"
