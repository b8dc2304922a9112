"""How large a tree may become, and room on Python's stack for what recurses over it."""

from __future__ import annotations

import sys

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
