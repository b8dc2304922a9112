"""How literals and clauses read, for people."""

from __future__ import annotations

from datetime import timedelta

from situ.quantities import format_duration
from situ.situation.policies.policy import Clause, Is, Literal


def literal_text(literal: Literal, window: int = -1) -> str:
    """``A is not inside R``, ``A is inside R followed-by within 5 s B is inside R``.

    A window is said where it is another than that of the policy.
    """
    if isinstance(literal, Is):
        return _sign(literal)
    within = "" if literal.within == window else f" within {duration_text(literal.within)}"
    return f"{_sign(literal.first)} followed-by{within} {_sign(literal.second)}"


def clause_text(clause: Clause, window: int = -1) -> str:
    """The literals, joined by ``or``."""
    return " or ".join(literal_text(each, window) for each in clause)


def duration_text(microseconds: int) -> str:
    return format_duration(timedelta(microseconds=microseconds))


def _sign(literal: Is) -> str:
    text = literal.relation.text
    if not literal.negated:
        return text
    alias, blank, said = text.partition(" ")
    if not blank:
        return f"not {text}"
    return f"{alias} is not {said.removeprefix('is ')}" if said.startswith("is ") else f"{alias} not {said}"
