"""How large an expression may be; apart from the parser, which those who only keep settings need not load."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """``literals`` counts the values of IN lists, which are not nodes."""

    nodes: int = 1000
    depth: int = 64
    literals: int = 4096
    characters: int = 1 << 17


DEFAULT_LIMITS = Limits()
