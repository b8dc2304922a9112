"""Properties of immutable values that are worked out once: trees ask their parts again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

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
