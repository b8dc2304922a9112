"""Policies whose actions oppose each other and that can hold at the same time for the same thing.

Every two policies could be such, and there may be thousands: those whose properties list different values of an
attribute, ``floor = '1'`` and ``floor = '2'``, are told apart by an index and never looked at together.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from situ.catalogue import OPPOSED_TOGETHER
from situ.errors import Problem
from situ.situation.actions.action import Actions, references_of
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.domain.ontology import Ontology
from situ.situation.policies.impossible import Path, exclude_each_other, listed_values
from situ.situation.policies.policy import Action, Alias, Policy

_MOST_OPPOSED = 50


@dataclass(frozen=True)
class _Thing:
    """What an action may be about."""

    alias: Alias
    concepts: tuple[str, ...]

    @cached_property
    def listed(self) -> Mapping[Path, tuple[Any, ...]]:
        return {} if self.alias.constraint is None else listed_values(self.alias.constraint)


@dataclass(frozen=True, slots=True)
class _Acting:
    """An action of a policy."""

    policy: Policy
    action: Action
    things: tuple[_Thing, ...]


def opposed(policies: Mapping[str, Policy], actions: Actions, ontology: Ontology) -> Iterator[Problem]:
    """A warning for each two, as far as they are not too many."""
    names = {name for pair in actions.opposed for name in pair}
    acting = [
        _Acting(policy, action, _about(policy, action, actions, ontology))
        for _, policy in sorted(policies.items())
        for action in policy.actions
        if action.name in names
    ]
    index = _Index(acting)
    told = 0
    for place, one in enumerate(acting):
        against = [each for each in sorted(names) if actions.oppose(one.action.name, each)]
        for other in (acting[each] for each in index.candidates(one, against) if each >= place):
            if told == _MOST_OPPOSED:
                return
            if what := _same_thing(one, other):
                told += 1
                yield OPPOSED_TOGETHER(
                    one.action.location or one.policy.location,
                    action=one.action.name,
                    other_action=other.action.name,
                    other=other.policy.name,
                    what=what,
                )


def _about(policy: Policy, action: Action, actions: Actions, ontology: Ontology) -> tuple[_Thing, ...]:
    """The aliases that the action refers to; if it refers to none, all of the policy."""
    named = {each.name for step in steps_of(action, actions) for each in references_of(step) if each.is_alias}
    aliases = tuple(alias for alias in policy.aliases if alias.name in named) or policy.aliases
    return tuple(_Thing(alias, _members(alias.concept, ontology)) for alias in aliases)


def _members(concept: str, ontology: Ontology) -> tuple[str, ...]:
    declared = ontology.concepts.get(concept)
    return (declared.members or (concept,)) if declared is not None else (concept,)


def _same_thing(one: _Acting, other: _Acting) -> str:
    """What both actions can be about at the same time; empty if there is nothing."""
    for left in one.things:
        for right in other.things:
            common = [each for each in left.concepts if each in right.concepts]
            if common and not _exclude(left.alias, right.alias):
                return f"the same {common[0]}"
    return ""


def _exclude(one: Alias, other: Alias) -> bool:
    """Whether no instance can satisfy both."""
    if one.constraint is None or other.constraint is None:
        return False
    return exclude_each_other((one.constraint, other.constraint))


class _Index:
    """Who acts, by action and by concept of what it may be about."""

    def __init__(self, acting: Sequence[_Acting]) -> None:
        self._by: dict[tuple[str, str], _Things] = {}
        for place, each in enumerate(acting):
            for thing in each.things:
                for concept in thing.concepts:
                    self._by.setdefault((each.action.name, concept), _Things()).add(place, thing)

    def candidates(self, one: _Acting, against: Sequence[str]) -> list[int]:
        """Where those are who may be about the same and do one of these actions, in order."""
        found: set[int] = set()
        for thing in one.things:
            for concept in thing.concepts:
                for action in against:
                    if (things := self._by.get((action, concept))) is not None:
                        found.update(things.not_apart(thing))
        return sorted(found)


class _Things:
    """Who is about things of one concept, by what their properties list."""

    def __init__(self) -> None:
        self._all: list[tuple[int, _Thing]] = []
        self._by: dict[Path, dict[Any, list[int]]] = {}
        self._without: dict[Path, list[int]] = {}

    def add(self, place: int, thing: _Thing) -> None:
        self._all.append((place, thing))
        for path, values in thing.listed.items():
            by_value = self._by.setdefault(path, {})
            for value in values:
                by_value.setdefault(value, []).append(place)

    def not_apart(self, thing: _Thing) -> list[int]:
        """Those who do not list other values only, for the attribute for which these are fewest."""
        found = [place for place, _ in self._all]
        for path, values in thing.listed.items():
            by_value = self._by.get(path)
            if by_value is None:
                continue
            if path not in self._without:
                self._without[path] = [place for place, each in self._all if path not in each.listed]
            fitting = [*self._without[path], *(place for value in values for place in by_value.get(value, ()))]
            found = min(found, fitting, key=len)
        return found
