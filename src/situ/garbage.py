"""When processes of our own look for garbage."""

from __future__ import annotations

import gc

_NEW_OBJECTS = 50_000
"""After how many of them to look. The events of a few messages are more, and none of them is part of a cycle."""


def settle() -> None:
    """What is loaded by now stays: it need not be looked through again, nor its pages be copied after a fork."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_NEW_OBJECTS)
