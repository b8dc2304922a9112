"""Type verification: what a mapping gives must fit what it is mapped to, place by place.

Checked are the places of an event that are really made, not the rules: one that is wrong where it never wins does no
harm. This module says what is wrong; who finds it is :mod:`situ.interpretation.build`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from situ.catalogue import (
    ATTRIBUTE_DROPPED,
    EVENT_LACKS_ATTRIBUTE,
    FRACTIONAL_RESULT,
    INCOMPATIBLE_DIMENSIONS,
    LEFT_IN_UNIT,
    LOSSY,
    NO_FUNCTION_BETWEEN,
    NOT_SUPPLIED,
    OPTIONAL_FEEDS_REQUIRED,
    READS_UNCONVERTED,
    RESULT_UNFIT,
    UNIT_ON_ONE_SIDE,
)
from situ.errors import Location, Problem, Problems
from situ.interpretation.model import Rule
from situ.types.model import Struct, Type
from situ.units import NO_UNIT, Unit


@dataclass(slots=True, kw_only=True)
class Verification:
    """What is found out about one event type on its way from ``source`` to ``target``.

    ``where`` is the mapping's place, if there is one; ``sides`` are the contexts that the two types belong to.
    """

    source: Struct
    target: Struct
    sides: tuple[str, str] = ("", "")
    where: Location | None = None
    problems: Problems = field(default_factory=Problems)
    lossy: bool = False
    dropped: list[str] = field(default_factory=list)

    @property
    def failed(self) -> bool:
        return bool(self.problems.errors)

    @property
    def _into(self) -> str:
        return self._of_side(self.target, 1)

    def _of_side(self, type: Type, side: int) -> str:
        """The name of a type; where both sides call their types alike, with the context whose it is."""
        name = self.sides[side]
        return f"{name}:{type}" if name and str(self.source) == str(self.target) else str(type)

    def unfit(self, at: str, found: str, expected: Type, rule: Rule | None = None, remedy: str = "") -> None:
        usual = "Let a rule convert it, except it by a rule of its own, or declare the attribute with what it gets."
        self._add(
            RESULT_UNFIT(
                self._at(rule),
                target=at or "the event",
                type=self._into,
                found=found,
                expected=str(expected),
                remedy=remedy or usual,
            )
        )

    def not_supplied(self, at: str, source: Type | None) -> None:
        self._add(NOT_SUPPLIED(self.where, target=at, type=self._into, source=self._of_side(source or self.source, 0)))

    def drop(self, path: str) -> None:
        self.dropped.append(path)
        self._add(ATTRIBUTE_DROPPED(self.where, path=path, source=self._of_side(self.source, 0), target=self._into))

    def optional_feeds_required(self, at: str) -> None:
        self._add(OPTIONAL_FEEDS_REQUIRED(self.where, target=at, type=self._into))

    def reads_unconverted(self, at: str, path: str, rule: Rule) -> None:
        self._add(READS_UNCONVERTED(self.where, target=at, path=path, rule=str(rule)))

    def lacks(self, at: str, function: str, attributes: tuple[str, ...], event: Struct, rule: Rule | None) -> None:
        for attribute in attributes:
            self._add(
                EVENT_LACKS_ATTRIBUTE(
                    self._at(rule), function=function, attribute=attribute, type=str(event), path=at or "the event"
                )
            )

    def incompatible(self, at: str, units: tuple[Unit, Unit], *, physical: bool) -> None:
        found, expected = map(str, units)
        if physical:
            problem = INCOMPATIBLE_DIMENSIONS(self.where, target=at, type=self._into, found=found, expected=expected)
        else:
            form = f"name: T {found} -> T {expected} = …"
            problem = NO_FUNCTION_BETWEEN(self.where, path=at, found=found, expected=expected, form=form)
        self._add(problem)

    def left_in_unit(self, at: str, rule: Rule, units: tuple[Unit, Unit]) -> None:
        found, expected = (str(each) or "no unit" for each in units)
        self._add(
            LEFT_IN_UNIT(rule.location, rule=str(rule), target=at, type=self._into, found=found, expected=expected)
        )

    def fractional(self, at: str, units: tuple[Unit, Unit]) -> None:
        found, expected = map(str, units)
        self._add(FRACTIONAL_RESULT(self.where, target=at, type=self._into, found=found, expected=expected))

    def loses(self, at: str, reason: str) -> None:
        self.lossy = True
        self._add(LOSSY(self.where, target=at, type=self._into, reason=reason))

    def one_sided(self, at: str, units: tuple[Unit, Unit]) -> None:
        known = "its source has no unit, it is in {}" if units[0] == NO_UNIT else "its source is in {}, it has no unit"
        reason = known.format(units[1] if units[0] == NO_UNIT else units[0])
        self._add(UNIT_ON_ONE_SIDE(self.where, target=at, type=self._into, reason=reason))

    def add_all(self, problems: tuple[Problem, ...]) -> None:
        self.problems.extend(problems)

    def _at(self, rule: Rule | None) -> Location | None:
        return rule.location if rule is not None and rule.location is not None else self.where

    def _add(self, problem: Problem) -> None:
        self.problems.add(problem)
