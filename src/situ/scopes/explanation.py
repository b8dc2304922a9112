"""Why an event is visible to a subscription, or why not: as data, which is its own JSON form, and in words.

`RootEvent` is an event that filters can be asked about, `paths_between` finds ways between two scopes,
`explain_visibility` explains each dimension, `dimension_lines` and `summary` say it in words.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Literal

import msgspec

from situ.lang.expr.interpret import interpret
from situ.lang.expr.runtime import FAILURES
from situ.lang.expr.tree import Read, walk
from situ.lang.json_form import Explanation
from situ.lang.tags import ANY, TagSet
from situ.scopes.dimension_plan import compile_dimension, constant
from situ.scopes.epochs import NOTHING_RELEASED
from situ.scopes.filter_sets import ALWAYS, NEVER, NO_NUMBERS, FilterSets, bits_of, numbers_in, suppose
from situ.scopes.filters import FilterMeanings
from situ.scopes.graph import BoundaryFilter, Dimension, ScopeGraph
from situ.scopes.rights import Principal, administers, may
from situ.scopes.visibility_plan import number_filters


@dataclass(frozen=True, slots=True, kw_only=True)
class RootEvent:
    """An event in the terms of root that can be asked: the slow way, one filter at a time."""

    filters: FilterMeanings
    type: str
    envelope: Mapping[str, Any]
    data: Mapping[str, Any]

    def passes(self, text: str) -> bool:
        """Whether a filter is true for it; not if it is false, null or fails."""
        try:
            return interpret(self.filters.node(text, self.type), {"event": self.envelope, "data": self.data}) is True
        except FAILURES:
            return False


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Ways between two scopes: up, then down, no scope twice; the shortest first, and by name among equally short ones.

_MOST_LOOKED_AT = 5_000
"""Beginnings of ways that are looked at: graphs may have more ways than anybody could list."""


@dataclass(frozen=True, slots=True)
class PathLeg:
    """One step of a way: from a scope up into a container of it, or down into a member, past these filters."""

    start: str
    end: str
    up: bool
    filters: tuple[tuple[str, BoundaryFilter], ...]
    """What is asked, by the name of the interface: ``output(s)``, ``link up``, ``input(s)``, ``link down``."""


Way = tuple[PathLeg, ...]
Open = Callable[[PathLeg], bool]


def paths_between(dimension: Dimension, start: str, end: str, is_open: Open = lambda leg: True) -> Iterator[Way]:
    """The ways whose legs are all open, in order; not all of them where they are very many."""
    to_go = _distances(dimension, start, end, is_open)
    first = (start, True)
    if first not in to_go:
        return
    waiting: list[tuple[int, tuple[str, ...], bool, Way]] = [(to_go[first], (start,), True, ())]
    for _ in range(_MOST_LOOKED_AT):
        if not waiting:
            return
        _, names, up, way = heapq.heappop(waiting)
        if names[-1] == end:
            yield way
            continue
        for leg in _legs(dimension, names[-1], going_up=up):
            left = to_go.get((leg.end, leg.up))
            if left is not None and leg.end not in names and is_open(leg):
                heapq.heappush(waiting, (len(names) + left, (*names, leg.end), leg.up, (*way, leg)))


def _legs(dimension: Dimension, scope: str, *, going_up: bool) -> Iterator[PathLeg]:
    if going_up:
        for container in dimension.containers(scope):
            yield leg_up(dimension, scope, container)
    for member in dimension.members(scope):
        yield leg_down(dimension, scope, member)


def leg_up(dimension: Dimension, member: str, container: str) -> PathLeg:
    scope = dimension.scopes[member]
    asked = ((f"output({member})", scope.output), ("link up", scope.link(container).up))
    return PathLeg(member, container, True, tuple((name, each) for name, each in asked if each is not None))


def leg_down(dimension: Dimension, container: str, member: str) -> PathLeg:
    scope = dimension.scopes[member]
    asked = ((f"input({member})", scope.input), ("link down", scope.link(container).down))
    return PathLeg(container, member, False, tuple((name, each) for name, each in asked if each is not None))


def _distances(dimension: Dimension, start: str, end: str, is_open: Open) -> dict[tuple[str, bool], int]:
    """How many steps are left at least, by scope and whether it is still going up, for all that lead to the end."""
    above = dimension.above(start)
    result: dict[tuple[str, bool], int] = {(end, False): 0}
    waiting = [(end, False)]
    if end in above:
        result[end, True] = 0
        waiting.append((end, True))
    for here, up in waiting:
        far = result[here, up] + 1
        before: list[tuple[str, bool]] = []
        if up:
            before = [(each, True) for each in dimension.members(here) if is_open(leg_up(dimension, each, here))]
        else:
            for container in dimension.containers(here):
                if is_open(leg_down(dimension, container, here)):
                    before += [(container, False), (container, True)]
        for state in before:
            if state not in result and (not state[1] or state[0] in above):
                result[state] = far
                waiting.append(state)
    return result


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# The explanation as data: the way an event takes in each dimension, and what would help. Who lacks the right to know
# what there is in closed dimensions gets the answer and his own side of it.

_MOST_OTHERS = 3
"""Further ways that are told of an event that is not visible."""

FilterValue = tuple[Literal["true", "false", "NULL", "fails", "not true"], str | None]
"""What a filter said of an event, and why if that is not plain."""


class DimensionCase(Enum):
    """Why it is as it is in a dimension, where the table alone decides, and where a way must be found."""

    BETWEEN = "between"
    ANY_WANTED = "any_wanted"
    NO_LIMIT = "no_limit"
    UNUSED = "unused"
    CLOSED = "closed"
    SCOPE_AGAINST_NOTHING = "scope_against_nothing"
    NOTHING_AGAINST_SCOPE = "nothing_against_scope"
    NO_SUCH_SCOPE = "no_such_scope"


class FilterAnswer(Explanation, frozen=True, kw_only=True):
    """A filter that was put to the event, and what it said."""

    interface: str
    """`output(SCOPE)`, `link up`, `input(SCOPE)` or `link down`."""
    filter: str
    value: Literal["true", "false", "NULL", "fails", "not true"]
    """`not true`: the event is not at hand, or it would be true now and was not when it was stamped."""
    reason: str | None
    place: str | None
    """Where the folder has the filter."""

    @property
    def passes(self) -> bool:
        return self.value == "true"


class ScopePathStep(Explanation, frozen=True, kw_only=True):
    """One step of a way, with the filters that were asked there."""

    start: str = msgspec.field(name="from")
    end: str = msgspec.field(name="to")
    direction: Literal["up", "down"]
    asked: tuple[FilterAnswer, ...]


class DimensionExplanation(Explanation, frozen=True, kw_only=True):
    """One dimension: what both sides say, and what comes of it."""

    dimension: str
    advertised: str | None
    subscribed: str | None
    visible: bool
    cell: DimensionCase = msgspec.field(name="code")
    way: tuple[ScopePathStep, ...] = ()
    """The shortest that is open, or if none is the shortest there is."""
    others: tuple[tuple[ScopePathStep, ...], ...] = msgspec.field(default=(), name="also_tried")
    blocked: FilterAnswer | None = None
    """The first filter on the way that did not pass."""
    lacking: tuple[tuple[str, ...], ...] = ()
    """The smallest sets of filters that would open a way if they were true."""


class VisibilityExplanation(Explanation, frozen=True, kw_only=True):
    """The answer of the scopes of one epoch."""

    visible: bool
    dimensions: tuple[DimensionExplanation, ...]

    @property
    def hidden(self) -> tuple[DimensionExplanation, ...]:
        """The dimensions in which it is not visible."""
        return tuple(each for each in self.dimensions if not each.visible)


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterAnswers:
    """What filters said of an event when it was stamped: ``true`` are those that were.

    ``event`` is the event itself, which can say why the others were not. A part of a situation is not at hand.
    """

    true: frozenset[str]
    event: RootEvent | None = None

    def passes(self, text: str) -> bool:
        return text in self.true or constant(text) is True

    def value(self, text: str) -> FilterValue:
        if self.passes(text):
            return "true", None
        value, reason = value_of(self.event, text) if self.event is not None else ("not true", None)
        return ("not true", "when it was stamped") if value == "true" else (value, reason)


def explain_visibility(
    graph: ScopeGraph,
    event: RootEvent | FilterAnswers,
    advertised: TagSet,
    subscribed: TagSet,
    released: frozenset[str] = NOTHING_RELEASED,
) -> VisibilityExplanation:
    """Everything about one event between two tag sets; dimensions in the order in which they are written, if known."""
    names = {name: None for tags in (advertised, subscribed) for name, tag in tags.named if tag != ANY}
    found = [
        _in_dimension(name, graph, event, advertised.tag(name), subscribed.tag(name))
        for name in sorted({*graph.dimensions, *names} - released, key=lambda name: _order(graph, name))
    ]
    return VisibilityExplanation(visible=all(each.visible for each in found), dimensions=tuple(found))


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


def _administers_ends(graph: ScopeGraph, by: Principal, name: str, *ends: str | None) -> bool:
    scopes = [each for each in ends if each not in (None, ANY)]
    return bool(scopes) and all(administers(graph, by, name, each) for each in scopes)


def first_blocked(way: tuple[ScopePathStep, ...]) -> FilterAnswer | None:
    return next((asked for step in way for asked in step.asked if not asked.passes), None)


def _in_dimension(
    name: str, graph: ScopeGraph, event: RootEvent | FilterAnswers, advertised: str | None, subscribed: str | None
) -> DimensionExplanation:
    dimension = graph.dimensions.get(name)
    cell, visible = _cell(dimension, advertised, subscribed)
    if cell is not DimensionCase.BETWEEN or dimension is None or advertised is None or subscribed is None:
        return DimensionExplanation(
            dimension=name, advertised=advertised, subscribed=subscribed, cell=cell, visible=visible
        )
    return _between(dimension, event, advertised, subscribed)


def _cell(dimension: Dimension | None, advertised: str | None, subscribed: str | None) -> tuple[DimensionCase, bool]:
    scopes = dimension.scopes if dimension is not None else {}
    if any(tag not in (None, ANY) and tag not in scopes for tag in (advertised, subscribed)):
        return DimensionCase.NO_SUCH_SCOPE, False
    closed = dimension is not None and dimension.closed
    match advertised, subscribed:
        case None | "any", None:
            return (DimensionCase.CLOSED, False) if closed else (DimensionCase.UNUSED, True)
        case _, None:
            return DimensionCase.SCOPE_AGAINST_NOTHING, False
        case None | "any", "any":
            return (DimensionCase.ANY_WANTED, True) if closed else (DimensionCase.UNUSED, True)
        case _, "any":
            return DimensionCase.ANY_WANTED, True
        case None, _:
            return DimensionCase.NOTHING_AGAINST_SCOPE, False
        case "any", _:
            return DimensionCase.NO_LIMIT, True
        case _:
            return DimensionCase.BETWEEN, False


def _between(
    dimension: Dimension, event: RootEvent | FilterAnswers, advertised: str, subscribed: str
) -> DimensionExplanation:
    answers: dict[str, FilterValue] = {}

    def ask(interface: str, each: BoundaryFilter) -> FilterAnswer:
        if each.text not in answers:
            answers[each.text] = (
                event.value(each.text) if isinstance(event, FilterAnswers) else value_of(event, each.text)
            )
        value, reason = answers[each.text]
        place = None if each.place is None else str(each.place)
        return FilterAnswer(interface=interface, filter=each.text, value=value, reason=reason, place=place)

    def is_open(leg: PathLeg) -> bool:
        return all(ask(name, each).passes for name, each in leg.filters)

    def told(way: Way) -> tuple[ScopePathStep, ...]:
        return tuple(
            ScopePathStep(
                start=leg.start,
                end=leg.end,
                direction="up" if leg.up else "down",
                asked=tuple(ask(name, each) for name, each in leg.filters),
            )
            for leg in way
        )

    def answered(visible: bool, *ways: Way, lacking: tuple[tuple[str, ...], ...] = ()) -> DimensionExplanation:
        shown = [told(way) for way in ways]
        return DimensionExplanation(
            dimension=dimension.name,
            advertised=advertised,
            subscribed=subscribed,
            cell=DimensionCase.BETWEEN,
            visible=visible,
            way=shown[0] if shown else (),
            others=tuple(shown[1:]),
            blocked=first_blocked(shown[0]) if shown else None,
            lacking=lacking,
        )

    for way in paths_between(dimension, advertised, subscribed, is_open):
        return answered(True, way)
    tried = list(islice(paths_between(dimension, advertised, subscribed), 1 + _MOST_OTHERS))
    return answered(False, *tried, lacking=_lacking(dimension, event, advertised, subscribed, tried))


def _lacking(
    dimension: Dimension, event: RootEvent | FilterAnswers, advertised: str, subscribed: str, ways: list[Way]
) -> tuple[tuple[str, ...], ...]:
    """The smallest sets of filters that are not true and would do; of a way, where there are too many to compare."""
    alone = ScopeGraph(dimensions={dimension.name: dimension})
    numbers = number_filters(alone, NO_NUMBERS)
    true = bits_of(number for text, number in numbers.given.items() if event.passes(text))
    family = compile_dimension(dimension, [advertised], [subscribed], numbers).family(advertised, subscribed)
    left = suppose(family, true, 0)
    texts = numbers.texts()
    if isinstance(left, FilterSets):
        if left in (ALWAYS, NEVER):
            return ()
        least = left.sets[0].bit_count()
        return tuple(
            tuple(texts[number] for number in numbers_in(needed)) for needed in left.sets if needed.bit_count() == least
        )
    asked = {each.text: None for way in ways[:1] for leg in way for _, each in leg.filters}
    return (tuple(text for text in asked if not event.passes(text)),)


def value_of(event: RootEvent, text: str) -> FilterValue:
    """What a filter says of an event, and why where that is not plain: what is missing, what fails."""
    if event.passes(text):
        return "true", None
    meaning = next((each for each in event.filters.meanings(text) if event.type in each.types), None)
    if meaning is None or meaning.node is None:
        return "NULL", f"{event.type} has nothing that it asks for"
    values: dict[str, Mapping[str, Any]] = {"event": {**event.envelope, "type": event.type}, "data": event.data}
    try:
        value = interpret(meaning.node, values)
    except FAILURES as failure:
        return "fails", str(failure) or "the operation fails"
    if value is not None:
        return "true" if value else "false", None
    reads = {each: None for each in walk(meaning.node) if isinstance(each, Read) and interpret(each, values) is None}
    missing = ", ".join(dict.fromkeys(".".join((each.variable, *each.path)) for each in reads))
    return "NULL", f"{missing} {'are' if ',' in missing else 'is'} missing" if missing else None


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# In words: one block a dimension, then the sentence that sums it up.

_NOT = "NOT VISIBLE"
_CASES = {
    DimensionCase.ANY_WANTED: "any scope is wanted",
    DimensionCase.NO_LIMIT: "the producer puts no limit",
    DimensionCase.UNUSED: "nobody names a scope",
    DimensionCase.CLOSED: "closed, and nothing is said",
    DimensionCase.SCOPE_AGAINST_NOTHING: "a scope against nothing",
    DimensionCase.NOTHING_AGAINST_SCOPE: "nothing against a scope",
    DimensionCase.NO_SUCH_SCOPE: "a scope that is not there",
}
_ARROWS = {"up": "↑", "down": "↓"}
_WIDEST = 72
"""Columns before verdicts; a longer way pushes its own aside."""


def dimension_lines(explained: VisibilityExplanation) -> list[str]:
    """What happens in each dimension, the verdicts below each other."""
    names = max((len(each.dimension) for each in explained.dimensions), default=0)
    heads = {each.dimension: f"{each.dimension:{names}}  {_head(each)}" for each in explained.dimensions}
    width = min(max((len(head) for head in heads.values()), default=0), _WIDEST)
    return [line for each in explained.dimensions for line in _dimension(each, f"{heads[each.dimension]:{width}}")]


def summary(explained: VisibilityExplanation) -> str:
    """The verdict, and what would change it."""
    if explained.visible:
        return "visible"
    names = ", ".join(each.dimension for each in explained.hidden)
    remedies = [_remedy(each) for each in explained.hidden]
    if any(not remedy for remedy in remedies):
        return f"not visible ({names}); no event would be"
    return f"not visible ({names}); would be visible if: {', and '.join(remedies)}"


def _remedy(hidden: DimensionExplanation) -> str:
    match hidden.cell:
        case DimensionCase.BETWEEN:
            return ", or ".join(" and ".join(texts) for texts in hidden.lacking)
        case DimensionCase.SCOPE_AGAINST_NOTHING:
            return f"the subscription named a {hidden.dimension} scope that sees {hidden.advertised}, or any"
        case DimensionCase.NOTHING_AGAINST_SCOPE:
            return f"the advertisement named a {hidden.dimension} scope that {hidden.subscribed} sees, or any"
        case DimensionCase.CLOSED:
            return f"both named {hidden.dimension} scopes, or the subscription any"
        case _:
            return ""


def _head(each: DimensionExplanation) -> str:
    if each.cell is DimensionCase.BETWEEN and each.visible:
        return _route(each.way) if each.way else f"{each.advertised}"
    return f"{_tag(each.advertised)} → {_tag(each.subscribed)}"


def _dimension(each: DimensionExplanation, head: str) -> Iterator[str]:
    verdict = "visible" if each.visible else _NOT
    if each.cell is not DimensionCase.BETWEEN:
        yield f"{head}  {verdict} ({_CASES[each.cell]})"
        return
    if each.visible:
        asked = "; ".join(dict.fromkeys(question.filter for step in each.way for question in step.asked))
        yield f"{head}  {verdict}" + (f"  {asked}" if asked else "")
        return
    yield f"{head}  {verdict}"
    if not each.way:
        yield "   no scope leads from the one to the other"
    yield from _steps(each.way)
    for other in each.others:
        blocked = first_blocked(other)
        at = f", blocked first at {blocked.interface}" if blocked is not None else ""
        yield f"   also tried: {_route(other)}{at}"


def _steps(way: tuple[ScopePathStep, ...]) -> Iterator[str]:
    rows: list[tuple[str, FilterAnswer | None]] = []
    for step in way:
        shown = f"{step.start} {_ARROWS[step.direction]} {step.end}"
        rows += [(shown if place == 0 else "", asked) for place, asked in enumerate(step.asked or (None,))]
    wide = max((len(shown) for shown, _ in rows), default=0)
    names = max((len(asked.interface) for _, asked in rows if asked is not None), default=0)
    texts = max((len(asked.filter) for _, asked in rows if asked is not None), default=0)
    for shown, asked in rows:
        if asked is None:
            yield f"   {shown}"
            continue
        value = f"{asked.value}: {asked.reason}" if asked.reason else asked.value
        place = f"   {asked.place}" if asked.place is not None else ""
        yield f"   {shown:{wide}}  {asked.interface:{names}}  {asked.filter:{texts}}  {value}{place}"


def _route(way: tuple[ScopePathStep, ...]) -> str:
    parts = [way[0].start] if way else []
    for step in way:
        parts += [_ARROWS[step.direction], step.end]
    return " ".join(parts)


def _tag(tag: str | None) -> str:
    return "nothing said" if tag is None else "any" if tag == ANY else tag
