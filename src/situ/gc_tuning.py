"""When processes of our own look for garbage, and when they give back what it took."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from functools import cache

_NEW_OBJECTS = 50_000
"""After how many of them to look. The events of a few messages are more, and none of them is part of a cycle."""


def freeze_loaded() -> None:
    """What is loaded by now stays: it need not be looked through again, nor its pages be copied after a fork."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)


def trim_memory() -> None:
    """Return free pages to the system, for processes that make large things over and over.

    What was freed between things that are still in use would stay with the process otherwise, a little more each time.
    It takes some milliseconds to go through all that is free: not for every batch.
    """
    _trim()(0)


@cache
def _trim() -> Callable[[int], object]:
    """The way of the C library; other ones than GNU's see to it themselves, or have none."""
    return getattr(ctypes.CDLL(None), "malloc_trim", lambda pad: None)
