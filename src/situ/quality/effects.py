"""What the negotiator wants done.

The host carries out the effects of a step in their order, and all of them before the next step. A step keeps first and
tells then. Whoever is killed in between starts with what was kept, and what was to be told is told again under the same
id and number, by which receivers know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from situ.errors import Problem
from situ.quality.expectation import Expectation
from situ.quality.feedback import Feedback
from situ.quality.profile import Profile
from situ.quality.shape import Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Keep:
    """Write all of these down at once or none: key → JSON, None: there is nothing under this key any more."""

    values: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shaped:
    """Subscription → what is done to its events from now on; None: nothing any more. Others stay as they are."""

    shapes: Mapping[str, Shape | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Tell a client something: a subscriber (``sub``) about an expectation, a publisher (``pub``) about a profile."""

    client: str
    kind: Literal["sub", "pub"]
    id: str
    message: Feedback


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """Answer the call of this ticket: what there is now, or why not."""

    ticket: int
    result: Expectation | Profile | Problem | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Wake:
    """Give a ``Tick`` at this time (seconds since the epoch). Only the last one counts; None: no more."""

    at: float | None


Effect = Keep | Shaped | Tell | Reply | Wake
