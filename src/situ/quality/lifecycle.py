"""The lives of expectations and profiles: which call is allowed when, and which version of something it is about.

A call that names a version says which one there is to be after it. The same version again is the same call again, and
nothing happens; an older one is refused. What was revoked is not known any more, and can be registered anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Literal

from situ.catalogue import CALL_NOT_ALLOWED, STALE_VERSION
from situ.errors import SituError

Call = Literal["register", "update", "suspend", "resume", "revoke"]


class Life(Enum):
    """What somebody who looks at it finds."""

    UNKNOWN = "is not registered"
    ACTIVE = "is active"
    SUSPENDED = "is suspended"


UNKNOWN, ACTIVE, SUSPENDED = Life.UNKNOWN, Life.ACTIVE, Life.SUSPENDED

NEXT: Mapping[tuple[Call, Life], Life] = MappingProxyType(
    {
        ("register", UNKNOWN): ACTIVE,
        # Of a client that was away: it registers again what it has.
        ("register", ACTIVE): ACTIVE,
        ("register", SUSPENDED): SUSPENDED,
        ("update", ACTIVE): ACTIVE,
        ("update", SUSPENDED): SUSPENDED,
        ("suspend", ACTIVE): SUSPENDED,
        ("suspend", SUSPENDED): SUSPENDED,
        ("resume", SUSPENDED): ACTIVE,
        ("resume", ACTIVE): ACTIVE,
        ("revoke", ACTIVE): UNKNOWN,
        ("revoke", SUSPENDED): UNKNOWN,
        ("revoke", UNKNOWN): UNKNOWN,
    }
)
"""Calls that are not in it are not allowed."""

_REPLACING: tuple[Call, ...] = ("register", "update")
_DONE: Mapping[Call, str] = MappingProxyType(
    {
        "register": "registered",
        "update": "updated",
        "suspend": "suspended",
        "resume": "resumed",
        "revoke": "revoked",
    }
)


@dataclass(frozen=True, slots=True)
class Step:
    """What a call leads to."""

    life: Life
    version: int
    happens: bool
    """False: it was done before, and there is nothing to do."""


def step(call: Call, id: str, life: Life, current: int = 0, version: int | None = None, *, same: bool = True) -> Step:
    """Where a call leads something that is at version ``current``; :class:`SituError` with Q111 or Q112.

    ``version`` is the one that there is to be after it; None: the next, if the call replaces something. ``same`` tells
    whether what is to be registered says what is there already.
    """
    after = NEXT.get((call, life))
    if after is None:
        raise _not_allowed(call, id, life, "Register it first.")
    if life is not UNKNOWN and version is not None and version < current:
        raise SituError(STALE_VERSION(id=id, given=version, current=current))
    if call not in _REPLACING:
        return Step(after, current, after is not life)
    if life is UNKNOWN:
        return Step(after, 1 if version is None else version, happens=True)
    if call == "register" and version is None:
        if not same:
            raise _not_allowed(call, id, life, "Update it, or take another id.")
        return Step(after, current, happens=False)
    return Step(after, current + 1 if version is None else version, version != current)


def _not_allowed(call: Call, id: str, life: Life, remedy: str) -> SituError:
    return SituError(CALL_NOT_ALLOWED(id=id, done=_DONE[call], state=life.value, remedy=remedy))
