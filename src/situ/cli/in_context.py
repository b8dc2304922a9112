"""Contexts that are named on the command line, and the ways of events in and out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from situ.catalogue import NO_WAY, UNKNOWN_CONTEXT
from situ.cli.exits import Exit, Stop
from situ.cli.opened import open_project
from situ.errors import Location, Problem, Problems, nearest
from situ.interpretation.check_rules import check_rules
from situ.interpretation.model import ROOT, Context, Direction
from situ.interpretation.transformation import transformations
from situ.types.undeclared import unknown_event

if TYPE_CHECKING:
    from collections.abc import Mapping

    from situ.deployment import Deployment
    from situ.interpretation.transformation import Transformation


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """The ways of all event types through a context in one direction, and what is to say about them."""

    context: Context
    direction: Direction
    by_type: Mapping[str, Transformation]
    problems: tuple[Problem, ...]

    @classmethod
    def of(cls, context: Context, direction: Direction) -> Ways:
        problems = Problems()
        check_rules(context, direction, problems)
        found = transformations(context, direction, problems)
        return cls(context=context, direction=direction, by_type=found, problems=problems.sorted())

    def get(self, type: str) -> Transformation:
        """The way of this event type; else why there is none: no such type, or nothing becomes of it."""
        found = self.by_type.get(type)
        if found is None:
            raise Stop(Exit.NO, self.missing(type))
        return found

    def missing(self, type: str) -> Problem:
        """Why there is no way for this event type."""
        known = self.context.types_of(self.direction).events
        if type not in known:
            return unknown_event(type, nearest(type, sorted(known)))
        said = (each for each in self.problems if each.code is NO_WAY and each.values["type"] == type)
        return next(said)

    def reason(self, type: str) -> str:
        """In words, why an event type is not available; empty if it is."""
        if type in self.by_type or type not in self.context.types_of(self.direction).events:
            return ""
        return str(self.missing(type).values["reason"])


def find_context(name: str, deployment: Deployment) -> Context:
    """The context called ``acme.us`` or ``acme.us@7``; refused with the nearest names if there is none."""
    found = deployment.contexts.get(name)
    if found is not None:
        return found
    id, _, _ = name.partition("@")
    there = deployment.contexts.by_id.get(id)
    reason = "there is none of that name" if there is None else f"its version is {there.version}"
    known = sorted(deployment.contexts.by_id)
    remedy = f"Contexts are declared in contexts/*.yaml; there is {', '.join(known)}."
    raise Stop(Exit.NO, UNKNOWN_CONTEXT(name=name, reason=reason, nearest=nearest(id, known), remedy=remedy))


def context_names() -> tuple[str, ...]:
    """The contexts here, for the completion of shells: nothing rather than a complaint."""
    try:
        return tuple(sorted(open_project(None).deployment.contexts.by_id))
    except (Stop, OSError):
        return ()


def place_text(location: Location | None) -> str:
    """``contexts/us.yaml:20``; empty for what is written nowhere."""
    return "" if location is None else f"{location.file}:{location.line}"


def type_text(name: str, context: Context) -> str:
    """A type with the context that declares it, unless that is root."""
    owner = next((each.id for each in context.chain if name in each.own), ROOT)
    return name if owner == ROOT else f"{owner}:{name}"
