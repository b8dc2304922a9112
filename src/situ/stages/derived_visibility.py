"""Releases: an administrator lets situations of a policy go further than what they come from may be seen.

In the dimensions that are named only the situation's own tags count. So that nothing else gets out by that, no event is
inside any more, and of attributes only those are left that are to be kept. What is released says so, in the attribute
``released`` of its envelope. Requests for actions are not released: whoever does them needs all of what they say. What
was taken out stays in the log, beside the stamps, for operators.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from situ.catalogue import REQUIRED_NOT_KEPT, UNKNOWN_KEPT
from situ.deployment.acting import Acted
from situ.deployment.parts import Part
from situ.deployment.snapshot import Deployment
from situ.errors import Problem, nearest
from situ.event.instants import print_instant
from situ.situation.actions.action import Command, Notify, Publish, Record, Step
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.meaning.lifecycle import Transition
from situ.situation.meaning.telling import situation_data
from situ.situation.policies.policy import Policy
from situ.types.reserved import ACTION, COMMAND, NOTICE, SITUATION
from situ.visibility.graph import Release, ScopeGraph

RELEASED = "released"
"""The attribute of the envelope that names the dimensions."""
_WHICH = ("situation", "policy", "end")
"""What every event of a situation says, however little of it is left. Only a closed one has an end, which is the time
of that event itself: without it nobody could tell that the situation is over."""
_TIMES = ("start", "last")
_INSIDE = "causes"
_DEFAULT = ("situation", "bindings")
"""What a command says of which nothing else is declared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LetGo:
    """What holds for the situations of a policy that are released."""

    dimensions: frozenset[str]
    keep: frozenset[str]
    """Of several releases, what all of them keep."""
    by: str

    @property
    def text(self) -> str:
        return ",".join(sorted(self.dimensions))


class Releases:
    """Those of one scope graph, by policy."""

    def __init__(self, graph: ScopeGraph) -> None:
        self._of: dict[str, LetGo] = {}
        for name in sorted({each.policy for each in graph.releases}):
            some = [each for each in graph.releases if each.policy == name]
            dimensions = frozenset(dimension for each in some for dimension in each.dimensions)
            if dimensions:
                keep = frozenset(some[0].keep).intersection(*(each.keep for each in some))
                by = ", ".join(sorted({each.by for each in some}))
                self._of[name] = LetGo(dimensions=dimensions, keep=keep, by=by)

    def get(self, policy: str) -> LetGo | None:
        return self._of.get(policy)

    def let_go(self, policy: str, parts: Iterable[Part]) -> Iterator[Part]:
        """What situations of a policy come from, as it counts for these."""
        found = self._of.get(policy)
        for each in parts:
            yield each if found is None else each._replace(released=each.released | found.dimensions)


def released_situation(
    transition: Transition, policy: Policy, keep: Collection[str]
) -> tuple[bytes, Mapping[str, Any]]:
    """The data of the event that tells a transition, and the attributes that it does not tell.

    Where a time must be, and is not kept, it is the event's own.
    """
    data: dict[str, Any] = msgspec.json.decode(situation_data(transition, policy, ()))
    now = print_instant(transition.time)
    left: dict[str, Any] = {}
    for attribute in SITUATION.attributes:
        name = attribute.name
        if name in data and (name in keep or name in _WHICH or name == _INSIDE):
            left[name] = data[name]
        elif not attribute.optional:
            left[name] = now if name in _TIMES else type(data[name])()
    return msgspec.json.encode(left), {name: data[name] for name in data if left.get(name) != data[name]}


def released_event(event: Acted, keep: Collection[str]) -> Acted:
    """What is left of an event that an action came to."""
    data: dict[str, Any] = msgspec.json.decode(event.data)
    if event.type == NOTICE.name:
        data["text"] = data["text"] if "text" in keep else ""
    elif event.type == COMMAND.name:
        sent = msgspec.json.decode(data["data"])
        wanted = {*keep, "situation"}
        left = {name: value for name, value in sent.items() if name in wanted} if isinstance(sent, dict) else None
        data["data"] = msgspec.json.encode(left).decode()
    else:
        data = {name: value for name, value in data.items() if name in keep}
    return replace(event, data=msgspec.json.encode(data))


def is_released(event: Acted) -> bool:
    """Whether releases are for such an event at all."""
    return event.type != ACTION.name


# ── checking ──────────────────────────────────────────────────────────────────────────────────────────


def check_releases(deployment: Deployment) -> Iterator[Problem]:
    """Attributes to keep that nothing has, and types that cannot be without what is not kept."""
    for release in deployment.scopes.releases:
        policy = deployment.policies.get(release.policy)
        if policy is not None:
            yield from _check_release(deployment, release, policy)


def _check_release(deployment: Deployment, release: Release, policy: Policy) -> Iterator[Problem]:
    steps = [step for action in policy.actions for step in steps_of(action, deployment.actions)]
    known = {each.name for each in SITUATION.attributes} - {_INSIDE}
    known.update(name for step in steps for name in _names(step, deployment))
    for name in release.keep:
        if name not in known:
            place = release.keep_places.get(name, release.place)
            near = nearest(name, known)
            yield UNKNOWN_KEPT(place, policy=policy.name, name=name, nearest=near, known=tuple(sorted(known)))
    for type in sorted({step.type for step in steps if isinstance(step, Publish)}):
        for name, required in _attributes(deployment, type).items():
            if required and name not in release.keep:
                yield REQUIRED_NOT_KEPT(release.place, policy=policy.name, name=name, type=type)


def _names(step: Step, deployment: Deployment) -> Iterator[str]:
    match step:
        case Publish(type=type):
            yield from _attributes(deployment, type)
        case Notify():
            yield "text"
        case Command(data=Record(entries=entries)):
            yield from (name for name, _ in entries)
        case Command(data=None):
            yield from _DEFAULT
        case _:
            pass


def _attributes(deployment: Deployment, type: str) -> Mapping[str, bool]:
    """Those of an event type; whether each must be there."""
    declared = deployment.types.event(type)
    if declared is None:
        return {}
    return {each.name: not each.optional and each.default is None for each in declared.attributes}
