"""How large expressions and their trees may be, and properties of trees that are worked out once.

It does not import the parser, which those who only keep settings need not load.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

import msgspec


class ExpressionLimits(msgspec.Struct, frozen=True, kw_only=True):
    """``literals`` counts the values of IN lists, which are not nodes."""

    nodes: int = 1000
    depth: int = 64
    literals: int = 4096
    characters: int = 1 << 17


DEFAULT_LIMITS = ExpressionLimits()


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# How large a tree may become, and room on Python's stack for what recurses over it.

MOST_NODES = 20_000
"""Functions of a project, and what stands for BETWEEN and the like, repeat their parts: trees outgrow their text."""

MOST_LEVELS = 300
"""How deep a tree may be nested, functions of the project and implicit steps put in. Passes recurse over trees."""

MOST_CHOICES = 16
"""How many CASE and coalesce may stand inside each other: Spark's work doubles with each that is asked first."""

# The SQL parser takes some twenty frames for a level of text, a pass over a tree up to ten for a level of it. Not
# much more than that: Python's own readers in C rely on the limit to protect a stack of 8 MB.
_FRAMES = 6_000


def make_room() -> None:
    """Let the stack be as deep as our limits allow; never shallower, for another thread may rely on it by now."""
    if sys.getrecursionlimit() < _FRAMES:
        sys.setrecursionlimit(_FRAMES)


# ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────
# Properties of immutable values that are worked out once: trees ask their parts again and again.

T = TypeVar("T")


class Remembering:
    """Has a place for what was worked out. It is no field: equality, hash and copies do not see it."""

    __slots__ = ("_worked_out",)


class once(Generic[T]):  # noqa: N801 - used as a decorator, like ``property``
    """A property of a :class:`Remembering` value that is computed when it is first asked for."""

    def __init__(self, compute: Callable[[Any], T]) -> None:
        self._compute, self._name = compute, compute.__name__
        self.__doc__ = compute.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> once[T]: ...

    @overload
    def __get__(self, instance: Any, owner: type) -> T: ...

    def __get__(self, instance: Any, owner: type) -> once[T] | T:
        if instance is None:
            return self
        try:
            known: dict[str, Any] = instance._worked_out
        except AttributeError:
            known = {}
            object.__setattr__(instance, "_worked_out", known)  # the value is frozen, what it means is not changed
        if self._name not in known:
            known[self._name] = self._compute(instance)
        return known[self._name]  # type: ignore[no-any-return]  # stored two lines above
