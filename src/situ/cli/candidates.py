"""Why a rule counts at a place of an event and others do not: all that are about such a value, with their keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from situ.cli.in_context import place_text
from situ.interpretation.model import Context, Direction, Pattern, Rule
from situ.interpretation.patterns import Traversal, holds, matches
from situ.interpretation.precedence import ATTRIBUTE, SAYS_NOTHING, LevelKey, explain_choice, key
from situ.interpretation.resolution import Place, Rules, expand
from situ.types.model import Struct, is_subtype


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A rule about such a value. ``keys`` are for the target, the event, and so on inwards; none: it does not match."""

    rule: str
    place: str
    context: str
    counts: bool = False
    keys: tuple[str, ...] = ()
    reason: str = ""
    """Why it does not count."""

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "from": self.place or None,
            "context": self.context,
            "counts": self.counts,
            "matches": bool(self.keys),
            "keys": list(self.keys),
            "reason": self.reason or None,
        }


class Candidates:
    """The rules of a context and direction, at the places of one event type."""

    def __init__(self, context: Context, direction: Direction, event: Struct) -> None:
        self._rules = Rules.of(context, direction)
        types = context.types_of(direction)
        self._places: dict[str, list[Place]] = {}
        self._whole: dict[int, Place] = {}
        for each in types.subtypes(event) or (event,):
            if isinstance(each, Struct):
                for place, whole in _all(expand(each, self._rules, types, covered=True)):
                    self._places.setdefault(str(place.path), []).append(place)
                    if whole is not None:
                        self._whole[id(place)] = whole

    def places(self, path: str) -> list[Place]:
        """The places of this path, one for each dynamic type, and for each of the event."""
        return self._places.get(path, [])

    def whole(self, place: Place) -> Place | None:
        """The place above that a rule converts as a whole, so that no rule below it is asked; None if there is none.

        It depends on the dynamic type: what is an attribute of one subtype may be converted with the whole of another.
        """
        return self._whole.get(id(place))

    def place(self, path: str, rule: Rule | None) -> Place | None:
        """The first of them at which this rule counts."""
        found = self.places(path)
        return next((each for each in found if each.rule is rule), next(iter(found), None))

    def at(self, place: Place) -> tuple[Candidate, ...]:
        """All that are about a value of the type there: the one that counts, the beaten ones, those that miss."""
        return (*self._matching(place), *self._missing(place.path))

    def _matching(self, place: Place) -> Iterator[Candidate]:
        winner = place.rule
        if winner is None:
            return
        for rule in (winner, *place.beaten):
            yield Candidate(
                rule=str(rule),
                place=place_text(rule.location),
                context=rule.context,
                counts=rule is winner,
                keys=tuple(map(_shown, key(rule.pattern, place.path))),
                reason="" if rule is winner else explain_choice(winner, rule, place.path),
            )

    def _missing(self, path: Traversal) -> Iterator[Candidate]:
        for rule in _latest(self._rules.rules):
            if is_subtype(path.type, rule.pattern.target) and not matches(rule.pattern, path):
                yield Candidate(
                    rule=str(rule),
                    place=place_text(rule.location),
                    context=rule.context,
                    reason=_why_not(rule.pattern, path),
                )


def levels(path: Traversal) -> tuple[str, ...]:
    """What the keys are about: the target, then from the event inwards."""
    way = (f"level {number} ({type})" for number, type in enumerate(path.types[:-1]))
    return (f"target ({path.type})", *way)


def _all(place: Place, whole: Place | None = None) -> Iterator[tuple[Place, Place | None]]:
    """The places from here down, each with the outermost one above it that has a rule."""
    yield place, whole
    for each in place.below:
        yield from _all(each, whole or (place if place.rule is not None else None))


def _latest(rules: Iterable[Rule]) -> Iterable[Rule]:
    """One rule a pattern: the others are overridden wherever it is in question."""
    found: dict[Pattern, Rule] = {}
    for rule in rules:
        if rule.pattern not in found or found[rule.pattern].context == rule.context:
            found[rule.pattern] = rule
    return found.values()


def _why_not(pattern: Pattern, path: Traversal) -> str:
    if not is_subtype(path.event, pattern.head):
        return f"the event is no {pattern.head}"
    *inner, last = pattern.qualifiers
    for number, (qualifier, step) in enumerate(zip(inner, path.steps, strict=False), start=1):
        if not holds(qualifier, step):
            return f"at level {number} it asks for {qualifier}"
    if not path.steps or len(path.steps) < len(pattern.qualifiers):
        return "it asks for a place further down"
    if last.attribute and len(path.steps) != len(pattern.qualifiers):
        return f"it asks for a place at level {len(pattern.qualifiers)}"
    return f"the attribute is not {last.attribute}{'[]' if last.elements else ''}"


def _shown(level: LevelKey) -> str:
    if level == SAYS_NOTHING:
        return "–"
    distance, kind, order = level
    return f"{distance:.0f} {'attribute' if kind == ATTRIBUTE else 'type'} {order}"
