"""Filters at the boundaries of scopes: what one text means for events of each type, and what it may say at all.

`FilterMeanings` gives the tree of a text for each type, `check_filter` and `check_filters` say what is wrong with one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeAlias

import msgspec

from situ.lang.catalogue import (
    BLOCKED_TYPES,
    BOUNDARY_NO_CONDITION,
    BOUNDARY_NOT_ALLOWED,
    BOUNDARY_UNKNOWN_NAME,
    NOT_IN_LANGUAGE,
    SYNTAX,
    UNKNOWN_NAME,
)
from situ.lang.expr.checker.check import check_bounded
from situ.lang.expr.faults import NO_FAULTS, Faults
from situ.lang.expr.limits import DEFAULT_LIMITS, ExpressionLimits
from situ.lang.expr.scope import event_scope
from situ.lang.expr.simplify import simplify
from situ.lang.expr.syntax import Locate, locate_in
from situ.lang.expr.tree import FALSE, And, Literal, Node, Or, Read, rebuild, walk
from situ.lang.problems import Problem, nearest
from situ.lang.records import replace
from situ.lang.types.model import BOOLEAN, STRING, Attribute, Struct, plain
from situ.lang.types.table import RESERVED_EVENTS, Types, built_in
from situ.scopes.graph import ScopeGraph

# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# A filter stands between events of all types. For events of one type it is an expression over the attributes of that
# type; what other types have and this one has not is missing there, hence null, and ``type IS T`` is decided. So a text
# has a tree for each type, simplified with all that is known of it. Only true passes: where it counts, null is false.

Path: TypeAlias = tuple[str, ...]
Blocked: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]


class FilterMeaning(msgspec.Struct, frozen=True, kw_only=True):
    """What a filter is to events that have what it asks for in the same form.

    ``node`` is None if it means nothing to any event. ``missing`` are paths that these types have not, and others have.
    """

    types: tuple[str, ...]
    payload: Struct
    node: Node | None
    missing: frozenset[Path]
    problems: tuple[Problem, ...] = ()


class FilterMeanings:
    """The meanings of filters under one table of types. Remembers them; says nothing of scopes."""

    def __init__(self, types: Types, limits: ExpressionLimits = DEFAULT_LIMITS) -> None:
        self.types, self.limits = types, limits
        self._events = {name: event for name in event_types(types) if (event := types.event(name)) is not None}
        self._having: dict[str, list[str]] = {}
        for name, event in self._events.items():
            for attribute in event.attributes:
                self._having.setdefault(attribute.name, []).append(name)
        self._meanings: dict[str, tuple[FilterMeaning, ...]] = {}
        self._by_type: dict[str, dict[str, FilterMeaning]] = {}
        self._nodes: dict[tuple[str, str], Node] = {}
        self._blocked: dict[str, Blocked] = {}

    @property
    def attributes(self) -> Collection[str]:
        """The names of the attributes that some event type has."""
        return self._having.keys()

    def node(self, text: str, type: str) -> Node:
        """The filter for events of a type, over ``event`` and ``data``: ``TRUE`` always, ``FALSE`` never passes.

        A type that is not in the table has nothing that a filter could ask for.
        """
        found = self._nodes.get((text, type))
        if found is None:
            found = self._nodes[text, type] = self._node(text, type)
        return found

    def meanings(self, text: str, locate: Locate | None = None) -> tuple[FilterMeaning, ...]:
        """The filter by groups of types, never empty; all without a tree if it means nothing to any event."""
        found = self._meanings.get(text)
        if found is None or (locate is not None and any(each.problems for each in found)):
            found = self._meanings[text] = self._checked(text, locate or locate_in(text))
        return found

    def blocked(self, text: str) -> Blocked:
        """The declared types of which no event passes for want of what the filter asks for; and the names of that."""
        found = self._blocked.get(text)
        if found is None:
            found = self._blocked[text] = self._find_blocked(text)
        return found

    def _find_blocked(self, text: str) -> Blocked:
        types: list[str] = []
        names: set[str] = set()
        for meaning in self.meanings(text):
            node = meaning.node
            declared = [type for type in meaning.types if type not in RESERVED_EVENTS]
            wanted = _read(node) & meaning.missing if node is not None else frozenset()
            if node is None or not wanted or not declared:
                continue
            asked = declared if _asks_for_type(node) else declared[:1]
            # What the test of the type keeps out is meant to be kept out.
            kept_out = [
                type
                for type in asked
                if self.node(text, type) == FALSE and passing(_known(node, type, frozenset())) != FALSE
            ]
            if kept_out:
                types += kept_out if asked is declared else declared
                names |= {".".join(path) for path in wanted}
        return tuple(sorted(types)), tuple(sorted(names))

    def _node(self, text: str, type: str) -> Node:
        by_type = self._by_type.get(text)
        if by_type is None:
            by_type = {each: meaning for meaning in self.meanings(text) for each in meaning.types}
            self._by_type[text] = by_type
        meaning = by_type.get(type)
        if meaning is None or meaning.node is None:
            return FALSE
        return passing(_known(meaning.node, type, meaning.missing))

    def _checked(self, text: str, locate: Locate) -> tuple[FilterMeaning, ...]:
        """Groups that have most of what is mentioned come first: what they mean is known of those that have less."""
        mentioned = sorted(set(_WORD.findall(text)))
        groups = sorted(self._groups(mentioned).items(), key=lambda group: len(group[0][1]))
        right: list[FilterMeaning] = []
        wrong: list[FilterMeaning] = []
        less: list[FilterMeaning] = []
        for (payload, missing), types in groups:
            meaning = FilterMeaning(types=tuple(types), payload=payload, node=None, missing=missing)
            if any(_present(meaning) <= set(other.payload.attributes) for other in right):
                less.append(meaning)
                continue
            meaning = self._read(text, locate, meaning)
            (wrong if meaning.node is None else right).append(meaning)
        if not right:
            return tuple(wrong)
        return (*right, *(_lacking(each, right) for each in (*less, *wrong)))

    def _groups(self, mentioned: Sequence[str]) -> dict[tuple[Struct, frozenset[Path]], list[str]]:
        """Types that have what is mentioned in the same form are one group, and checked once."""
        groups: dict[tuple[Struct, frozenset[Path]], list[str]] = {}
        lenders = {
            name: [self._events[each] for each in self._having.get(name, ())[:_MOST_LENDERS]] for name in mentioned
        }
        for name, event in self._events.items():
            missing: set[Path] = set()
            payload = _seen(event, mentioned, lenders, (), missing)
            groups.setdefault((payload, frozenset(missing)), []).append(name)
        return groups or {(Struct("", ()), frozenset()): []}

    def _read(self, text: str, locate: Locate, meaning: FilterMeaning) -> FilterMeaning:
        scope = event_scope(meaning.payload, types=self.types, limits=self.limits)
        checked = check_bounded(text, scope, locate, BOOLEAN)
        return replace(meaning, node=checked.node, problems=tuple(each for each in checked.problems if each.is_error))


_MOST_LENDERS = 20
_WORD = re.compile(r"[^\W\d]\w*")
"""What may be a name. A word in a text or a type may be, too: then more is looked at than is asked for."""


def _present(meaning: FilterMeaning) -> set[Attribute]:
    return {each for each in meaning.payload.attributes if (each.name,) not in meaning.missing}


def _lacking(meaning: FilterMeaning, right: Sequence[FilterMeaning]) -> FilterMeaning:
    """The same for types that have less, or something else by a name: what the filter asks for they have not."""
    present = _present(meaning)
    own = {each.name for each in present}  # the other may only have been lent what these types have themselves

    def differing(other: FilterMeaning) -> frozenset[Path]:
        others = {(each.name,) for each in other.payload.attributes if each not in present}
        return meaning.missing | others | {path for path in other.missing if path[0] not in own}

    nearest = min(right, key=lambda other: len(differing(other)))
    return replace(meaning, node=nearest.node, missing=differing(nearest), problems=())


def _asks_for_type(node: Node) -> bool:
    return any(isinstance(each, Read) and (each.variable, each.path) == ("event", ("type",)) for each in walk(node))


def event_types(types: Types) -> Iterator[str]:
    """The event types of root, in the order of their names, Situ's own last."""
    yield from sorted(types.events)
    yield from sorted(RESERVED_EVENTS)


def passing(node: Node) -> Node:
    """The condition under which the node is true; it may be false where the node is null."""
    simplest = simplify(node)
    if isinstance(simplest, And | Or):
        return simplify(rebuild(simplest, passing))
    if isinstance(simplest, Literal):
        return simplest if simplest.value is True else FALSE
    return simplest


def _known(node: Node, type: str, missing: Collection[Path]) -> Node:
    """The node with what is known of events of a type: its name, and what they do not have."""
    if isinstance(node, Read):
        if node.variable == "event" and node.path == ("type",):
            return Literal(type, STRING, span=node.span)
        if node.variable == "data" and node.path and _is_missing(node.path, missing):
            return Literal(None, plain(node.type), node.unit, span=node.span)
        return node
    return rebuild(node, lambda part: _known(part, type, missing))


def _read(node: Node) -> frozenset[Path]:
    """The paths into the data that are read, and those on the way there."""
    paths = [each.path for each in walk(node) if isinstance(each, Read) and each.variable == "data"]
    return frozenset(path[: length + 1] for path in paths for length in range(len(path)))


def _is_missing(path: Path, missing: Collection[Path]) -> bool:
    return any(path[: length + 1] in missing for length in range(len(path)))


def _seen(
    event: Struct, mentioned: Iterable[str], lenders: dict[str, list[Struct]], above: Path, missing: set[Path]
) -> Struct:
    """What a filter sees of events: of what it mentions their own attributes, and those that others have."""
    attributes: list[Attribute] = []
    for name in mentioned:
        own = event.attribute(name)
        others = [found for each in lenders.get(name, ()) if (found := each.attribute(name)) is not None]
        if own is not None:
            attributes.append(_widened(own, mentioned, others, above, missing))
        elif others:
            attributes.append(replace(others[0], optional=True, default=None))
            missing.add((*above, name))
    return Struct("", tuple(attributes))


def _widened(
    own: Attribute, mentioned: Iterable[str], others: Sequence[Attribute], above: Path, missing: set[Path]
) -> Attribute:
    """The attribute, and below it what attributes of its name have in other types."""
    struct = plain(own.type)
    if not isinstance(struct, Struct) or built_in().get(struct.name) == struct:
        return own
    below = [found for each in others if isinstance(found := plain(each.type), Struct)]
    lent = {
        name: having
        for name in mentioned
        if struct.attribute(name) is None and (having := [each for each in below if each.attribute(name) is not None])
    }
    if not lent:
        return own
    added = [replace(lent[name][0].attribute(name) or own, optional=True, default=None) for name in lent]
    missing.update((*above, own.name, name) for name in lent)
    return replace(own, type=Struct(struct.name, (*struct.attributes, *added), struct.supers))


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Checks: names that some event type has, nothing that changes by itself, true or false. The problem of the declaration
# is outside, that of the expression inside as its cause.

_SELF_CONTAINED = "A filter says the same of an event at any time and place, and needs nothing but the event."
_CLOCK = "The current time is another one for everybody who asks. `event.time` is the time of the event."
_CHANCE = "A filter says the same of an event each time it is asked."
_SEVERAL = "A filter sees one event at a time. A policy looks at several, and publishes what it finds."
_ON_THE_WAY = "It changes while the event travels, and a filter says the same of an event everywhere."

_FUNCTIONS = {
    **dict.fromkeys(("now", "current_timestamp", "current_date", "current_time", "localtimestamp"), _CLOCK),
    **dict.fromkeys(("rand", "random", "randn", "uuid", "shuffle"), _CHANCE),
    **dict.fromkeys(("sum", "count", "avg", "min", "max", "first", "last", "stddev", "variance"), _SEVERAL),
    "lookup": _SELF_CONTAINED,
}
_NAMES = {
    **dict.fromkeys(("current_timestamp", "current_date", "current_time"), _CLOCK),
    **dict.fromkeys(("latency", "freshness", "rate"), _ON_THE_WAY),
}
_SUBQUERY = re.compile(r"\bSELECT\b", re.IGNORECASE)
_MOST_NAMED = 8


def check_filter(
    scope: str,
    text: str,
    filters: FilterMeanings,
    locate: Locate,
    functions: Collection[str] = (),
    faults: Faults = NO_FAULTS,
) -> Iterator[Problem]:
    """What is wrong with a filter of a scope, and whom it blocks. ``functions`` are those that the project has."""
    meanings = filters.meanings(text, locate)
    if all(meaning.node is None for meaning in meanings):
        own = {name.lower() for name in functions}
        found = {(each.code.code, each.location, each.message): each for each in meanings[0].problems}
        yield from (_wrong(scope, text, each, filters, own) for each in found.values() if not faults.explain(each))
        return
    types, names = filters.blocked(text)
    if types:
        yield BLOCKED_TYPES(locate(0, len(text)), scope=scope, names=_listed(names), types=_listed(types))


def check_filters(graph: ScopeGraph, filters: FilterMeanings) -> Iterator[Problem]:
    """What is wrong with the filters of a graph under these types; places are in their texts."""
    for dimension in graph.dimensions.values():
        for name, scope in dimension.scopes.items():
            sides = (scope.output, scope.input, *(side for _, link in scope.links for side in (link.up, link.down)))
            for each in sides:
                if each is not None:
                    yield from check_filter(name, each.text, filters, locate_in(each.text, f"filter of {name}"))


def _no_condition(scope: str, problem: Problem) -> Problem:
    remedy = "" if problem.hint else "Write a comparison, such as `severity >= 4`, or `type IS …`."
    return BOUNDARY_NO_CONDITION(problem.location, cause=problem, scope=scope, remedy=remedy)


def _wrong(scope: str, text: str, problem: Problem, filters: FilterMeanings, functions: Collection[str]) -> Problem:
    if problem.code is NOT_IN_LANGUAGE or (problem.code is SYNTAX and _SUBQUERY.search(text)):
        found = "a query of its own" if problem.code is SYNTAX else problem.values["found"]
        return BOUNDARY_NOT_ALLOWED(problem.location, cause=problem, scope=scope, found=found, reason=_SELF_CONTAINED)
    if problem.code is not UNKNOWN_NAME or problem.values["kind"] == "unit":
        return _no_condition(scope, problem)
    kind, name = problem.values["kind"], problem.values["name"]
    reason = _FUNCTIONS.get(name.lower()) if kind == "function" else _NAMES.get(name.lower())
    found = f"`{name}`"
    if kind == "function" and name.lower() in functions:
        found, reason = f"`{name}`, a function of the project", _SELF_CONTAINED
    if reason is not None:
        return BOUNDARY_NOT_ALLOWED(problem.location, cause=problem, scope=scope, found=found, reason=reason)
    close = problem.values["nearest"] if kind in ("type", "function") else nearest(name, filters.attributes)
    return BOUNDARY_UNKNOWN_NAME(problem.location, cause=problem, scope=scope, name=name, nearest=close)


def _listed(names: Collection[str]) -> str:
    shown = [f"`{name}`" for name in sorted(names)[:_MOST_NAMED]]
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
