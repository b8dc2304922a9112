"""Actions that wait or failed, as commands speak of them: from the files of the project, whoever runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from situ.host.asked import AGAIN, FAILED, WAITING, Asked, Request


@dataclass(frozen=True, slots=True)
class Kept:
    """A request and where it stands: ``waiting`` or ``failed``."""

    request: Request
    state: str

    @property
    def key(self) -> str:
        return self.request.key

    @property
    def policy(self) -> str:
        return self.request.policy

    def as_json(self) -> dict[str, Any]:
        request = self.request
        return {
            "key": request.key,
            "state": self.state,
            "verb": request.verb,
            "action": request.action,
            "policy": request.policy,
            "situation": request.situation,
            "time": request.time,
            "bindings": {each["alias"]: each["id"] for each in request.about["bindings"]},
            "target": request.target or None,
            "attempts": request.attempts,
            "problem": dict(request.problem) or None,
        }


def kept_actions(asked: Asked) -> list[Kept]:
    """In the order in which they were asked for."""
    return sorted(_all(asked), key=lambda each: (each.request.pos, each.key))


def find_action(asked: Asked, key: str) -> Kept | None:
    found = asked.find(key)
    return None if found is None else Kept(found[0], _STATES[found[1]])


def numbers(asked: Asked) -> dict[str, int]:
    """How many wait, and how many failed."""
    return {
        "waiting": sum(asked.count(state) for state, said in _STATES.items() if said == "waiting"),
        "failed": asked.count(FAILED),
    }


_STATES = {WAITING: "waiting", AGAIN: "waiting", FAILED: "failed"}


def _all(asked: Asked) -> Iterator[Kept]:
    for state, said in _STATES.items():
        yield from (Kept(each, said) for each in asked.all(state))
