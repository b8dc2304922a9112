"""Failures that are put into handlers: whatever touches one marked event raises something that nobody foresaw.

What a handler is given is looked through for the mark, whichever form the event has there.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec
import pyarrow as pa
import pytest

MARK = "marked-event"
_DEEPEST = 6


class Unforeseen(RuntimeError):
    """No part of Situ knows this."""


def is_marked(value: Any, depth: int = 0) -> bool:
    """Whether an event with the mark is in there."""
    if isinstance(value, str):
        return MARK in value
    if isinstance(value, bytes | bytearray):
        return MARK.encode() in value
    if depth > _DEEPEST or value is None or isinstance(value, int | float | type):
        return False
    if isinstance(value, pa.RecordBatch):
        return MARK in str(value.to_pylist())
    if isinstance(value, Mapping):
        return any(is_marked(each, depth + 1) for pair in value.items() for each in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return any(is_marked(each, depth + 1) for each in value)
    if isinstance(value, msgspec.Struct):
        return any(is_marked(getattr(value, name), depth + 1) for name in value.__struct_fields__)
    module = type(value).__module__
    if (
        module.startswith("situ.")
        and hasattr(value, "__dataclass_fields__")
        and not module.startswith("situ.stages.plan")
    ):
        names = value.__dataclass_fields__
        return len(names) < 12 and any(is_marked(getattr(value, name), depth + 1) for name in names)
    return False


class Injection:
    """A handler that raises: for the marked event, or ``once`` for whatever comes first."""

    def __init__(self, work: Callable[..., Any], *, once: bool = False, at: int | None = None) -> None:
        self.raised = 0
        self.at = at
        self.work = work
        self.once = once

    def _raise_if_due(self, args: Iterable[Any], kwargs: Mapping[str, Any]) -> None:
        if self.once:
            due = self.raised == 0
        else:
            given = [*args, *kwargs.values()] if self.at is None else list(args)[self.at : self.at + 1]
            due = any(map(is_marked, given))
        if due:
            self.raised += 1
            raise Unforeseen("put in by a test")

    def made(self) -> Callable[..., Any]:
        work = self.work
        if inspect.iscoroutinefunction(work):

            @functools.wraps(work)
            async def later(*args: Any, **kwargs: Any) -> Any:
                self._raise_if_due(args, kwargs)
                return await work(*args, **kwargs)

            return later

        @functools.wraps(work)
        def now(*args: Any, **kwargs: Any) -> Any:
            self._raise_if_due(args, kwargs)
            return work(*args, **kwargs)

        return now


def inject(patch: pytest.MonkeyPatch, place: str, *, once: bool = False) -> Injection:
    """Have a function ``module:name`` or a method ``module:Class.name`` raise, wherever it was imported to.

    ``module:name@2``: only the argument at this place is looked at for the mark. That of others may name who it is of.
    """
    place, _, number = place.partition("@")
    at = int(number) if number else None
    module_name, _, name = place.partition(":")
    module = __import__(module_name, fromlist=["x"])
    if "." in name:
        owner_name, _, method = name.partition(".")
        owner = getattr(module, owner_name)
        given = inspect.getattr_static(owner, method)
        assert not isinstance(given, staticmethod | classmethod | property), place
        injection = Injection(given, once=once, at=at)
        patch.setattr(owner, method, injection.made())
        return injection
    work = getattr(module, name)
    injection = Injection(work, once=once, at=at)
    made = injection.made()
    for each in list(sys.modules.values()):
        if getattr(each, "__name__", "").startswith("situ.") and getattr(each, name, None) is work:
            patch.setattr(each, name, made)
    return injection


def functions_of(module_name: str) -> set[str]:
    """The functions that a module has for others."""
    module = __import__(module_name, fromlist=["x"])
    found = inspect.getmembers(module, inspect.isfunction)
    return {name for name, each in found if each.__module__ == module_name and not name.startswith("_")}
