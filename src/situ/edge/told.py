"""Errors that came over the wire, as errors of ours: the code, the message and the hint the router gave."""

from __future__ import annotations

from types import MappingProxyType

from situ.catalogue import CODES
from situ.errors import Code, Problem, Severity, SituError
from situ.overlay.messages import Nack


def problem_told(code: str, message: str, hint: str) -> Problem:
    """A problem whose texts are these; nothing in them is filled in any more."""
    known = CODES.get(code)
    severity = Severity.ERROR if known is None else known.severity
    entry = Code(code, severity, message, _literally(message), _literally(hint), "", MappingProxyType({}))
    return Problem(code=entry, location=None, values=MappingProxyType({}))


def error_told(nack: Nack) -> SituError:
    return SituError(problem_told(nack.code, nack.message, nack.hint))


def _literally(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
