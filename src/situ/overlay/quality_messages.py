"""What a client and its router say to each other about quality: expectations, profiles, advice.

Part of :mod:`situ.overlay.messages`; bodies are JSON in the words of a project's ``quality/*.yaml``, which the overlay
does not look into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

# ── from a client to its router ───────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Expect:
    """This is what a subscription of mine needs, as a file of the project would say it."""

    req: int
    expectation: str
    sub: str
    body: dict[str, Any]
    version: int | None = None
    """That it has, of one that was registered before; None: it is new."""
    suspended: bool = False
    """It rests, and does so from the first moment where it is not known any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeExpectation:
    """It needs something else from now on; what is not said stays. The version is that of what is new."""

    req: int
    expectation: str
    body: dict[str, Any]
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveExpectation:
    """Let an expectation rest (``suspend``), wake it (``resume``), or end it (``revoke``)."""

    req: int
    expectation: str
    call: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Provide:
    """This is what I can do as a publisher of a type, as a file of the project would say it."""

    req: int
    type: str
    body: dict[str, Any]
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeProfile:
    """I do something else from now on; what is not said stays."""

    req: int
    type: str
    body: dict[str, Any]
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeProfile:
    req: int
    type: str
    version: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAdvice:
    """I will do what I am advised to (``accepted``), or not (``refused``), or I tried (``failed``).

    ``values`` is what I can do instead: property → value.
    """

    req: int
    advice: str
    verdict: str
    values: dict[str, float | str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class AskQuality:
    """How do things stand? ``about`` is an expectation, or a profile if ``publisher``; all of mine, if empty.

    ``explain``: and why, in words.
    """

    req: int
    about: str = ""
    publisher: bool = False
    explain: bool = False


Negotiated = (
    Expect | ChangeExpectation | MoveExpectation | Provide | ChangeProfile | RevokeProfile | AnswerAdvice | AskQuality
)
"""What clients say about quality: the router passes it on to whoever negotiates."""


# ── from a router to its child ────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class QualityAck:
    """Done: what is in force now, as JSON. To a question: the answer, in words and as JSON."""

    req: int = 0
    body: dict[str, Any] = field(default_factory=dict)
    text: str = ""
