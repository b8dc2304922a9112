"""A request → what to do: the step it names, as it was declared when it was asked for, with the facts it brought.

What to do is looked up in the registry and never taken from the event, so that nobody who can publish can let a run
call an address that no administrator wrote down, or give away what its environment holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from situ.catalogue import ACTION_LACKS, ACTION_NOT_DECLARED
from situ.deployment import Deployment
from situ.deployment.acting import digest_of
from situ.errors import SituError
from situ.event.instants import instant_at, read_instant
from situ.host.asked import Request
from situ.registry import Registry
from situ.situation.actions.action import Actions, Step, references_of
from situ.situation.actions.perform import Deed, deed
from situ.situation.actions.resolve_actions import steps_of
from situ.situation.actions.templates import Facts
from situ.situation.policies.policy import Action

_LOOKED_BACK = 1000
"""Changes of the registry among which the one is looked for that made a step another."""
_REMEMBERED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Resolved:
    """What to do, and where it goes to as people may see it: without what the environment says."""

    deed: Deed
    shown: str


class Resolving:
    """Finds what requests ask for; versions that were looked up are remembered."""

    def __init__(self, registry: Registry, environment: Mapping[str, str]) -> None:
        self._registry = registry
        self._environment = environment
        self._versions: dict[int, Deployment] = {}

    def resolve(self, request: Request) -> Resolved:
        """Asks the registry; :class:`SituError` with why it cannot be done."""
        action, actions = self._declared(request)
        number, place = int(request.about["number"]), int(request.about["place"])
        step = steps_of(action, actions)[place]
        facts = facts_of(request, self._environment)
        as_written = replace(facts, environment={name: f"${{{name}}}" for name in _environment_of(step)})
        lacking = [name for name in _environment_of(step) if name not in self._environment]
        if lacking:
            raise SituError(
                ACTION_LACKS(action=request.action, policy=request.policy, name=lacking[0], key=request.key)
            )
        said = situation_of(request)
        found = deed(action, number, place, actions, facts, said)
        if found.verb in ("delete policy", "suspend policy"):
            return Resolved(deed=found, shown=found.target)  # a name, which the environment may give
        return Resolved(deed=found, shown=deed(action, number, place, actions, as_written, said).target)

    def _declared(self, request: Request) -> tuple[Action, Actions]:
        for deployment in self._candidates(request.policy):
            found = _action_in(deployment, request)
            if found is not None:
                return found, deployment.actions
        raise SituError(ACTION_NOT_DECLARED(action=request.action, policy=request.policy, key=request.key))

    def _candidates(self, policy: str) -> Iterator[Deployment]:
        """What is in force, then what was before policy or actions were changed, the latest first."""
        yield self._registry.current()
        versions = {
            each.deployment - 1
            for each in self._registry.changes(_LOOKED_BACK)
            if each.key.kind == "action" or each.key == ("policy", policy)
        }
        for version in sorted(versions - {0}, reverse=True):
            if version not in self._versions:
                if len(self._versions) >= _REMEMBERED:
                    self._versions.clear()
                self._versions[version] = self._registry.at(version)
            yield self._versions[version]


def facts_of(request: Request, environment: Mapping[str, str]) -> Facts:
    """What templates can refer to, as it was known when the situation was detected."""
    about = request.about
    time = read_instant(request.time)
    return Facts(
        policy=request.policy,
        situation=request.situation,
        detection=str(about["detection"]),
        time=None if time is None else instant_at(time),
        bindings={each["alias"]: each["id"] for each in about["bindings"]},
        attributes=json.loads(about["attributes"]),
        environment=environment,
    )


def situation_of(request: Request) -> dict[str, Any]:
    """What is sent where an action does not say what."""
    about = request.about
    known = json.loads(about["attributes"])
    return {
        "policy": request.policy,
        "situation": request.situation,
        "detection": about["detection"],
        "time": request.time,
        "bindings": {
            each["alias"]: {
                "concept": each["concept"],
                "id": each["id"],
                "attributes": {name: value for name, value in known.get(each["alias"], {}).items() if name != "id"},
            }
            for each in about["bindings"]
        },
    }


def _action_in(deployment: Deployment, request: Request) -> Action | None:
    policy = deployment.policies.get(request.policy)
    number, place = request.about["number"], request.about["place"]
    if policy is None or number >= len(policy.actions):
        return None
    action = policy.actions[number]
    steps = steps_of(action, deployment.actions)
    return action if place < len(steps) and digest_of(steps[place], action) == request.about["digest"] else None


def _environment_of(step: Step) -> list[str]:
    return [each.name[1:] for each in references_of(step) if each.is_environment]
