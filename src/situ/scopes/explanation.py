"""Why an event is visible to a subscription, or why not: the way it takes in each dimension, and what would help.

Data only; :mod:`situ.visibility.explain_text` puts it in words. Who lacks the right to know what there is in closed
dimensions gets the answer and his own side of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Literal

from situ.expr.interpret import interpret
from situ.expr.runtime import FAILURES
from situ.expr.tree import Read, walk
from situ.tags import ANY, TagSet
from situ.visibility.bits import NO_NUMBERS, bits_of, numbers_in
from situ.visibility.compile import number_filters
from situ.visibility.dimension_plan import compile_dimension, constant
from situ.visibility.epochs import NOTHING_RELEASED
from situ.visibility.families import ALWAYS, NEVER, Sets, suppose
from situ.visibility.graph import Dimension, Filter, ScopeGraph
from situ.visibility.rights import Principal, administers, may
from situ.visibility.stamping import RootEvent
from situ.visibility.ways import Leg, Way, ways_between

_MOST_OTHERS = 3
"""Further ways that are told of an event that is not visible."""

Side = Literal["producer", "consumer"]


class Cell(Enum):
    """Why it is as it is in a dimension, where the table alone decides, and where a way must be found."""

    BETWEEN = "between scopes"
    ANY_WANTED = "any scope is wanted"
    NO_LIMIT = "the producer puts no limit"
    UNUSED = "nobody names a scope"
    CLOSED = "closed, and nothing is said"
    SCOPE_AGAINST_NOTHING = "a scope against nothing"
    NOTHING_AGAINST_SCOPE = "nothing against a scope"
    NO_SUCH_SCOPE = "a scope that is not there"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A filter that was put to the event, with what it said: ``true``, ``false``, ``NULL`` or ``fails``, and why."""

    interface: str
    filter: Filter
    value: str
    reason: str = ""

    @property
    def passes(self) -> bool:
        return self.value == "true"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step of a way, with the filters that were asked there."""

    start: str
    end: str
    up: bool
    asked: tuple[Asked, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class InDimension:
    """One dimension: what both sides say, and what comes of it.

    ``way`` is the shortest that is open, or if none is the shortest there is; ``others`` are ways that were tried in
    vain besides. ``lacking`` are the smallest sets of filters that would open a way if they were true.
    """

    dimension: str
    advertised: str | None
    subscribed: str | None
    cell: Cell
    visible: bool
    way: tuple[Step, ...] = ()
    others: tuple[tuple[Step, ...], ...] = ()
    lacking: tuple[tuple[str, ...], ...] = ()

    @property
    def blocked(self) -> Asked | None:
        """The first filter on the way that did not pass."""
        return first_blocked(self.way)


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The answer. ``side``: it was asked by somebody who may only see this side, and the other is left out."""

    visible: bool
    dimensions: tuple[InDimension, ...]
    side: Side | None = None

    @property
    def hidden(self) -> tuple[InDimension, ...]:
        """The dimensions in which it is not visible."""
        return tuple(each for each in self.dimensions if not each.visible)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What filters said of an event when it was stamped: ``true`` are those that were.

    ``event`` is the event itself, which can say why the others were not. A part of a situation is not at hand.
    """

    true: frozenset[str]
    event: RootEvent | None = None

    def passes(self, text: str) -> bool:
        return text in self.true or constant(text) is True

    def value(self, text: str) -> tuple[str, str]:
        if self.passes(text):
            return "true", ""
        value, reason = value_of(self.event, text) if self.event is not None else ("not true", "")
        return ("not true", "when it was stamped") if value == "true" else (value, reason)


def explain_visibility(
    graph: ScopeGraph,
    event: RootEvent | Answers,
    advertised: TagSet,
    subscribed: TagSet,
    released: frozenset[str] = NOTHING_RELEASED,
) -> Explained:
    """Everything about one event between two tag sets; dimensions in the order in which they are written, if known."""
    names = {name: None for tags in (advertised, subscribed) for name, tag in tags.named if tag != ANY}
    found = [
        _in_dimension(name, graph, event, advertised.tag(name), subscribed.tag(name))
        for name in sorted({*graph.dimensions, *names} - released, key=lambda name: _order(graph, name))
    ]
    return Explained(visible=all(each.visible for each in found), dimensions=tuple(found))


def _order(graph: ScopeGraph, name: str) -> tuple[bool, int, int, str]:
    dimension = graph.dimensions.get(name)
    place = None if dimension is None else dimension.place
    return (True, 0, 0, name) if place is None else (False, place.line, place.column, name)


def may_know_all(graph: ScopeGraph, by: Principal, advertised: TagSet, subscribed: TagSet) -> bool:
    """Whether somebody may ask about both sides: an observer or administrator of every closed dimension."""
    return all(
        administers(graph, by, name)
        or may(graph, by.name, "observe", name)
        or _administers_ends(graph, by, name, advertised.tag(name), subscribed.tag(name))
        for name, dimension in graph.dimensions.items()
        if dimension.closed
    )


def one_side(visible: bool, side: Side, own: TagSet) -> Explained:
    """For those who may not know more: the answer, and what they said themselves. No foreign scope, filter or value.

    Nothing is told of single dimensions, and none is named that they did not name: that would tell of the other side.
    """
    return Explained(
        visible=visible,
        side=side,
        dimensions=tuple(
            InDimension(
                dimension=name,
                advertised=tag if side == "producer" else None,
                subscribed=tag if side == "consumer" else None,
                cell=Cell.BETWEEN,
                visible=visible,
            )
            for name, tag in own.named
        ),
    )


def _administers_ends(graph: ScopeGraph, by: Principal, name: str, *ends: str | None) -> bool:
    scopes = [each for each in ends if each not in (None, ANY)]
    return bool(scopes) and all(administers(graph, by, name, each) for each in scopes)


def first_blocked(way: tuple[Step, ...]) -> Asked | None:
    return next((asked for step in way for asked in step.asked if not asked.passes), None)


def _in_dimension(
    name: str, graph: ScopeGraph, event: RootEvent | Answers, advertised: str | None, subscribed: str | None
) -> InDimension:
    dimension = graph.dimensions.get(name)
    cell, visible = _cell(dimension, advertised, subscribed)
    if cell is not Cell.BETWEEN or dimension is None or advertised is None or subscribed is None:
        return InDimension(dimension=name, advertised=advertised, subscribed=subscribed, cell=cell, visible=visible)
    return _between(dimension, event, advertised, subscribed)


def _cell(dimension: Dimension | None, advertised: str | None, subscribed: str | None) -> tuple[Cell, bool]:
    scopes = dimension.scopes if dimension is not None else {}
    if any(tag not in (None, ANY) and tag not in scopes for tag in (advertised, subscribed)):
        return Cell.NO_SUCH_SCOPE, False
    closed = dimension is not None and dimension.closed
    match advertised, subscribed:
        case None | "any", None:
            return (Cell.CLOSED, False) if closed else (Cell.UNUSED, True)
        case _, None:
            return Cell.SCOPE_AGAINST_NOTHING, False
        case None | "any", "any":
            return (Cell.ANY_WANTED, True) if closed else (Cell.UNUSED, True)
        case _, "any":
            return Cell.ANY_WANTED, True
        case None, _:
            return Cell.NOTHING_AGAINST_SCOPE, False
        case "any", _:
            return Cell.NO_LIMIT, True
        case _:
            return Cell.BETWEEN, False


def _between(dimension: Dimension, event: RootEvent | Answers, advertised: str, subscribed: str) -> InDimension:
    answers: dict[str, tuple[str, str]] = {}

    def ask(interface: str, each: Filter) -> Asked:
        if each.text not in answers:
            answers[each.text] = event.value(each.text) if isinstance(event, Answers) else value_of(event, each.text)
        value, reason = answers[each.text]
        return Asked(interface=interface, filter=each, value=value, reason=reason)

    def is_open(leg: Leg) -> bool:
        return all(ask(name, each).passes for name, each in leg.filters)

    def told(way: Way) -> tuple[Step, ...]:
        return tuple(
            Step(start=leg.start, end=leg.end, up=leg.up, asked=tuple(ask(name, each) for name, each in leg.filters))
            for leg in way
        )

    def answered(visible: bool, *ways: Way, lacking: tuple[tuple[str, ...], ...] = ()) -> InDimension:
        shown = [told(way) for way in ways]
        return InDimension(
            dimension=dimension.name,
            advertised=advertised,
            subscribed=subscribed,
            cell=Cell.BETWEEN,
            visible=visible,
            way=shown[0] if shown else (),
            others=tuple(shown[1:]),
            lacking=lacking,
        )

    for way in ways_between(dimension, advertised, subscribed, is_open):
        return answered(True, way)
    tried = list(islice(ways_between(dimension, advertised, subscribed), 1 + _MOST_OTHERS))
    return answered(False, *tried, lacking=_lacking(dimension, event, advertised, subscribed, tried))


def _lacking(
    dimension: Dimension, event: RootEvent | Answers, advertised: str, subscribed: str, ways: list[Way]
) -> tuple[tuple[str, ...], ...]:
    """The smallest sets of filters that are not true and would do; of a way, where there are too many to compare."""
    alone = ScopeGraph(dimensions={dimension.name: dimension})
    numbers = number_filters(alone, NO_NUMBERS)
    true = bits_of(number for text, number in numbers.given.items() if event.passes(text))
    family = compile_dimension(dimension, [advertised], [subscribed], numbers).family(advertised, subscribed)
    left = suppose(family, true, 0)
    texts = numbers.texts()
    if isinstance(left, Sets):
        if left in (ALWAYS, NEVER):
            return ()
        least = left.sets[0].bit_count()
        return tuple(
            tuple(texts[number] for number in numbers_in(needed)) for needed in left.sets if needed.bit_count() == least
        )
    asked = {each.text: None for way in ways[:1] for leg in way for _, each in leg.filters}
    return (tuple(text for text in asked if not event.passes(text)),)


def value_of(event: RootEvent, text: str) -> tuple[str, str]:
    """What a filter says of an event, and why where that is not plain: what is missing, what fails."""
    if event.passes(text):
        return "true", ""
    meaning = next((each for each in event.filters.meanings(text) if event.type in each.types), None)
    if meaning is None or meaning.node is None:
        return "NULL", f"{event.type} has nothing that it asks for"
    values: dict[str, Mapping[str, Any]] = {"event": {**event.envelope, "type": event.type}, "data": event.data}
    try:
        value = interpret(meaning.node, values)
    except FAILURES as failure:
        return "fails", str(failure) or "the operation fails"
    if value is not None:
        return str(bool(value)).lower(), ""
    reads = {each: None for each in walk(meaning.node) if isinstance(each, Read) and interpret(each, values) is None}
    missing = ", ".join(dict.fromkeys(".".join((each.variable, *each.path)) for each in reads))
    return "NULL", f"{missing} {'are' if ',' in missing else 'is'} missing" if missing else ""
